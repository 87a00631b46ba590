import Foundation
import Testing

@testable import SealedDB

/// Queues and pools that ship their store by themselves: what was acknowledged can be restored, whatever becomes of the queue,
/// the key and the repository.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicationServiceTests {
    private let directory: TemporaryDirectory
    private let restoredCount = Guarded(0)

    /// What both have in common.
    enum Kind: CaseIterable, Sendable { case queue, pool }

    protocol Service: DatabaseAccess {
        var replicationStatus: ReplicationStatus? { get }
        var shipper: Shipper? { get }
        func replicate() throws
        func replicate() async throws
        func rotateKey(
            to newKey: Key,
            progress: ((KeyRotation.Progress) throws -> Void)?
        ) throws -> KeyRotation.Report
        func closeAll()
    }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var path: String { directory.file("app.db") }
    private var repository: String { directory.file("repository") }

    /// By default it ships when it is asked to.
    private func configuration(
        key: UInt8 = 1,
        _ change: (inout Replication) -> Void = { _ in }
    ) throws -> Configuration {
        var replication = Replication(to: repository)
        replication.interval = .seconds(3600)
        change(&replication)
        return Configuration(key: try .testing(key), replication: replication)
    }

    private func service(_ kind: Kind, _ configuration: Configuration) throws -> any Service {
        switch kind {
        case .queue: try DatabaseQueue(path: path, configuration: configuration)
        case .pool: DatabasePool(path: path, configuration: configuration)
        }
    }

    private static func insert(_ db: Database, _ count: Int = 1, bytes: Int = 100) throws {
        try db.executeUpdate("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, x)", values: nil)
        for _ in 0..<count { try db.executeUpdate("INSERT INTO t (x) VALUES (randomblob(?))", values: [bytes]) }
    }

    /// How many rows the repository has.
    private func restored(_ moment: RepositoryMoment = .newest, key: UInt8 = 1) throws -> Int {
        let number = restoredCount.withLock { count in
            count += 1
            return count
        }
        let target = directory.file("restored-\(number).db")
        try RepositoryRestore(from: repository, at: moment, to: target).run()
        let soundness = try IntegrityReport.verify(path: target, key: .testing(key))
        #expect(soundness.isSound, "\(soundness)")
        let copy = try Database.testing(target, key: key)
        defer { copy.close() }
        return try copy.integers("SELECT count(*) FROM t")[0]
    }

    private func generations() throws -> [String?] {
        try RepositoryStatus.of(directory: repository, verifies: true).generations.map(\.begunBecause)
    }

    // MARK: Shipping

    @Test(arguments: Kind.allCases) func whatWasCommittedIsThere(_ kind: Kind) async throws {
        let service = try service(kind, configuration())
        try await service.write { db in try Self.insert(db, 3) }
        try await service.replicate()
        #expect(try restored() == 3)
        try await service.write { db in try Self.insert(db, 4) }
        try await service.replicate()
        #expect(try restored() == 7)
        let status = try #require(service.replicationStatus)
        #expect(status.isActive && status.lastError == nil && status.failureCount == 0)
        #expect(status.generation == 1 && status.unshippedBytes == 0)
        #expect(try #require(status.lag) < .seconds(1000))
        #expect(abs(try #require(status.lastSuccess).timeIntervalSinceNow) < 1000)
        await service.shutDown()
        #expect(try generations() == ["first"])
    }

    /// In a block, of which that counts which was committed before.
    @Test(arguments: Kind.allCases) func inABlock(_ kind: Kind) throws {
        let service = try service(kind, configuration())
        try service.write { db in try Self.insert(db, 3) }
        try service.writeWithoutTransaction { db in
            try Self.insert(db)
            try service.replicate()
        }
        #expect(try restored() == 4)
        service.closeAll()
    }

    /// A pool whose writer nobody has used yet.
    @Test func whatALentConnectionHasCommitted() throws {
        let pool = DatabasePool(path: path, configuration: try configuration())
        try pool.inDatabase { db in try Self.insert(db, 3) }
        #expect(pool.shipper?.isFollowing == true)
        try pool.replicate()
        #expect(try restored() == 3)
        pool.closeAll()
    }

    /// Others may wait for the block, so it ships nothing, and closes all the same.
    @Test func aPoolThatIsReleasedInABlock() throws {
        let pool = DatabasePool(path: path, configuration: try configuration())
        try pool.write { db in try Self.insert(db, 3) }
        try pool.read { _ in pool.releaseAllDatabases() }
        #expect(pool.countOfOpenDatabases == 0)
        try pool.write { db in try Self.insert(db) }
        try pool.replicate()
        #expect(try restored() == 4)
        pool.releaseAllDatabases()
    }

    @Test(arguments: Kind.allCases) func itShipsByItself(_ kind: Kind) throws {
        let service = try service(kind, configuration { $0.interval = .milliseconds(10) })
        try service.write { db in try Self.insert(db, 2) }
        let began = Date()
        while try #require(service.replicationStatus).lastSuccess ?? .distantPast <= began { sched_yield() }
        #expect(try restored() == 2)
        service.closeAll()
    }

    /// What `replicate` acknowledges is there at that moment, beside others that write.
    @Test(arguments: Kind.allCases) func severalThatWrite(_ kind: Kind) async throws {
        let service = try service(kind, configuration { $0.interval = .milliseconds(20) })
        try await service.write { db in try Self.insert(db) }
        try await service.replicate()
        let write: @Sendable () async throws -> Int = {
            try await service.write { db in try Self.insert(db, 2, bytes: 2000) }
            // More may be there by then, but not less than this writer has.
            let count = try await service.read { db in try db.integers("SELECT count(*) FROM t")[0] }
            try await service.replicate()
            return count
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 1...3 {
                group.addTask { for _ in 0..<10 { _ = try await write() } }
            }
            for round in 0..<10 {
                let count = try await write()
                if round % 4 == 3 { #expect(try restored() >= count) }
            }
            try await group.waitForAll()
        }
        #expect(try restored() == 81)
        #expect(try generations() == ["first"])
        await service.shutDown()
        #expect(try restored() == 81)
    }

    // MARK: Keys

    @Test(arguments: Kind.allCases) func anotherKey(_ kind: Kind) throws {
        let service = try service(kind, configuration())
        try service.write { db in try Self.insert(db, 5) }
        try service.replicate()
        // Shipped right before the file is replaced.
        try service.write { db in try Self.insert(db) }
        _ = try service.rotateKey(to: .testing(2), progress: nil)
        try service.write { db in try Self.insert(db, 4) }
        try service.replicate()
        #expect(try #require(service.replicationStatus).generation == 2)
        #expect(try restored(key: 2) == 10)
        #expect(try restored(.generation(1)) == 6)
        _ = try service.rotateKey(to: .testing(3), progress: nil)
        try service.replicate()
        #expect(try restored(key: 3) == 10)
        #expect(try generations() == ["first", "replaced", "replaced"])
        #expect(try restored(.generation(1)) == 6)
        service.closeAll()
        let again = try self.service(kind, configuration(key: 3))
        try again.write { db in try Self.insert(db) }
        try again.replicate()
        #expect(try restored(key: 3) == 11)
        again.closeAll()
    }

    /// In a block of a queue, by copy and in place.
    @Test(arguments: [false, true]) func anotherKeyInABlock(inPlace: Bool) throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try Self.insert(db, 5) }
        try queue.replicate()
        try queue.writeWithoutTransaction { db in
            if inPlace {
                #expect(db.rekey("x'\(String(repeating: "02", count: 32))'"), "\(db.lastError())")
            } else {
                try db.rotateKey(to: .testing(2))
            }
        }
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        #expect(try restored(key: 2) == 6)
        #expect(try restored(.generation(1)) == 5)
        queue.close()
    }

    /// A rotation that fails leaves the shipper at work.
    @Test(arguments: Kind.allCases) func aRotationThatIsStopped(_ kind: Kind) throws {
        struct Stop: Error {}
        let service = try service(kind, configuration())
        try service.write { db in try Self.insert(db, 5) }
        try service.replicate()
        #expect(throws: DatabaseError.self) {
            try service.rotateKey(to: .testing(2)) { if $0.phase == .swap { throw Stop() } }
        }
        try service.write { db in try Self.insert(db) }
        try service.replicate()
        #expect(try restored() == 6)
        service.closeAll()
    }

    // MARK: Ends

    /// Closing ships what is there and gives the repository back; what comes after goes on in the same generation.
    @Test(arguments: Kind.allCases) func closing(_ kind: Kind) throws {
        let service = try service(kind, configuration())
        try service.write { db in try Self.insert(db, 2) }
        service.closeAll()
        #expect(try restored() == 2)
        #expect(try #require(service.replicationStatus).isActive == false)
        let other = try Replicator(path: path, key: .testing(1), directory: repository)
        #expect(try other.ship().commitCount == 0)
        other.close()
        try service.write { db in try Self.insert(db) }
        try service.replicate()
        #expect(try restored() == 3)
        service.closeAll()
        // A closed one opens for it.
        try service.replicate()
        #expect(try generations() == ["first"])
        service.closeAll()
    }

    @Test(arguments: Kind.allCases) func shuttingDown(_ kind: Kind) async throws {
        let service = try service(kind, configuration())
        try await service.write { db in try Self.insert(db, 2) }
        await service.shutDown(interruptingAfter: .seconds(60))
        #expect(try restored() == 2)
        let error = await #expect(throws: DatabaseError.self) { try await service.replicate() }
        #expect(error?.reason == .shutDown)
        // Nobody has the store open any more.
        try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
    }

    /// The thread of one that is dropped ends, and lets go of all.
    @Test(arguments: Kind.allCases) func dropping(_ kind: Kind) throws {
        weak var shipper: Shipper?
        do {
            let service = try service(kind, configuration { $0.interval = .milliseconds(10) })
            shipper = service.shipper
            try service.write { db in try Self.insert(db, 2) }
            try service.replicate()
        }
        while shipper != nil { sched_yield() }
        #expect(directory.names.contains("app.db-sealdb-lock") == false)
        let again = try service(kind, configuration())
        try again.write { db in try Self.insert(db) }
        try again.replicate()
        #expect(try restored() == 3)
        #expect(try generations() == ["first"])
        again.closeAll()
    }

    /// A snapshot that would take hours does not keep anybody from closing, and what is left comes later.
    @Test(arguments: Kind.allCases) func closingWhileItShips(_ kind: Kind) throws {
        let service = try service(kind, configuration { $0.maximumBytesPerSecond = 1000 })
        switch service {
        case let queue as DatabaseQueue: queue.maximumWait = .milliseconds(200)
        case let pool as DatabasePool: pool.maximumWait = .milliseconds(200)
        default: break
        }
        try service.write { db in try Self.insert(db, 300, bytes: 8000) }
        while (try? FileManager.default.contentsOfDirectory(atPath: repository + "/chunks")) == nil { sched_yield() }
        service.closeAll()
        let again = try self.service(kind, configuration())
        #expect(try again.read { db in try db.integers("SELECT count(*) FROM t") } == [300])
        try again.replicate()
        #expect(try restored() == 300)
        again.closeAll()
    }

    @Test func cancelling() async throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration { $0.maximumBytesPerSecond = 1000 })
        try await queue.write { db in try Self.insert(db, 300, bytes: 8000) }
        let task = Task { try await queue.replicate() }
        while (try? FileManager.default.contentsOfDirectory(atPath: repository + "/chunks")) == nil {
            await Task.yield()
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await queue.shutDown(interruptingAfter: .zero)
    }

    // MARK: Failures

    /// A repository that is away for a while.
    @Test(arguments: Kind.allCases) func aRepositoryThatComesBack(_ kind: Kind) throws {
        let errors = Log<DatabaseError>()
        let service = try service(kind, configuration { $0.didFail = { errors.add($0) } })
        try service.write { db in try Self.insert(db, 2) }
        try service.replicate()
        #expect(rename(repository, repository + "-away") == 0)
        try service.write { db in try Self.insert(db) }
        let error = #expect(throws: DatabaseError.self) { try service.replicate() }
        while errors.values.isEmpty { sched_yield() }
        let status = try #require(service.replicationStatus)
        #expect(status.lastError == error && errors.values == [error])
        #expect(status.isActive && status.failureCount == 1 && status.unshippedBytes > 0)
        #expect(rename(repository + "-away", repository) == 0)
        try service.replicate()
        while try #require(service.replicationStatus).lastError != nil { sched_yield() }
        #expect(try restored() == 3)
        #expect(try generations() == ["first"])
        service.closeAll()
    }

    /// What is told of a failure asks the thread that tells it, which cannot wait for itself.
    @Test(arguments: Kind.allCases) func askedOnItsOwnThread(_ kind: Kind) throws {
        let answers = Log<DatabaseError>()
        let asked = Guarded<(any Service)?>(nil)
        let service = try service(
            kind,
            configuration { replication in
                replication.didFail = { _ in
                    guard let service = asked.withLock({ $0 }) else { return }
                    do { try service.replicate() } catch let error as DatabaseError { answers.add(error) } catch {}
                }
            }
        )
        try service.write { db in try Self.insert(db) }
        try service.replicate()
        asked.withLock { $0 = service }
        defer { asked.withLock { $0 = nil } }
        #expect(rename(repository, repository + "-away") == 0)
        #expect(throws: DatabaseError.self) { try service.replicate() }
        while answers.values.isEmpty { sched_yield() }
        #expect(answers.values.allSatisfy { $0.reason == .misuse && $0.message.contains("cannot wait for itself") })
        #expect(rename(repository + "-away", repository) == 0)
        try service.replicate()
        service.closeAll()
    }

    /// Where the repository cannot be made, the store is opened, unless that is not wanted.
    @Test func noRepository() throws {
        let missing = directory.file("missing")
        let queue = try DatabaseQueue(
            path: path,
            configuration: configuration { $0.repository = missing + "/repository" }
        )
        try queue.write { db in try Self.insert(db) }
        #expect(throws: DatabaseError.self) { try queue.replicate() }
        queue.close()
        let required = try configuration {
            $0.repository = missing + "/repository"
            $0.isRequiredForOpening = true
        }
        let error = #expect(throws: DatabaseError.self) {
            try DatabaseQueue(path: path, configuration: required)
        }
        #expect(error?.message.contains("is opened only if it can be shipped") == true, "\(String(describing: error))")
        let pool = DatabasePool(path: path, configuration: required)
        #expect(throws: DatabaseError.self) { try pool.read { _ in } }
        #expect(mkdir(missing, 0o700) == 0)
        #expect(try pool.read { db in try db.integers("SELECT count(*) FROM t") } == [1])
        #expect(pool.replicationStatus?.generation == 1)
        pool.releaseAllDatabases()
    }

    /// Somebody has to do something: nothing is shipped any more, and the store's log is not kept for it.
    @Test(arguments: Kind.allCases) func theRepositoryOfAnotherStore(_ kind: Kind) throws {
        let other = try DatabaseQueue(path: directory.file("other.db"), configuration: configuration())
        try other.write { db in try Self.insert(db) }
        other.close()
        let service = try service(kind, configuration())
        try service.write { db in try Self.insert(db, 2) }
        for _ in 1...2 {
            let error = #expect(throws: DatabaseError.self) { try service.replicate() }
            #expect(error?.reason == .alreadyExists)
        }
        #expect(service.replicationStatus?.isActive == false)
        #expect(try restored() == 1)
        service.closeAll()
        let moved = try self.service(kind, configuration { $0.acceptsMovedStore = true })
        try moved.write { db in try Self.insert(db) }
        try moved.replicate()
        #expect(try restored() == 3)
        moved.closeAll()
    }

    @Test func whatCannotBeShipped() throws {
        func refuse(_ path: String?, _ change: (inout Configuration) -> Void) throws {
            var configuration = try configuration()
            change(&configuration)
            for open in [
                { _ = try DatabaseQueue(path: path, configuration: configuration) },
                { try DatabasePool(path: path, configuration: configuration).read { _ in } },
                { try DatabasePool(path: path, configuration: configuration).write { _ in } },
            ] {
                let error = #expect(throws: DatabaseError.self, performing: open)
                #expect(error?.reason == .misuse && error?.message.contains("Nothing was opened") == true)
            }
        }
        try refuse(nil) { _ in }
        try refuse("") { _ in }
        try refuse(path) { $0.key = nil }
        try refuse(path) { $0.isReadOnly = true }
        try refuse(path) { $0.journalMode = .delete }
        #expect(directory.names == [])
        let single = Database(path: path, configuration: try configuration())
        let error = #expect(throws: DatabaseError.self) { try single.openVerified() }
        #expect(error?.message.contains("DatabaseQueue") == true)
        #expect(directory.names == [])
        let without = try DatabaseQueue(path: path, configuration: Configuration(key: .testing(1)))
        #expect(without.replicationStatus == nil)
        #expect(throws: DatabaseError.self) { try without.replicate() }
    }

    // MARK: The log

    /// The shipper's transaction does not keep a pool from emptying its log.
    @Test(arguments: Kind.allCases) func theLogStaysShort(_ kind: Kind) throws {
        var configuration = try configuration { $0.interval = .milliseconds(20) }
        configuration.maximumLogSize = 1 << 20
        let service = try service(kind, configuration)
        for _ in 0..<40 { try service.write { db in try Self.insert(db, 50, bytes: 8000) } }
        // It begins anew when the shipper has come so far, which small commits wait for.
        var size = Int64.max
        while size > 6 << 20 {
            try service.write { db in try Self.insert(db) }
            try service.replicate()
            if kind == .pool { try service.write { db in try Self.insert(db, 50, bytes: 8000) } }
            let position = try service.writeWithoutTransaction { db in
                _ = try db.integers("SELECT count(*) FROM sqlite_schema")
                return try db.connection?.logPosition()
            }
            size = try #require(position).frameCount * 4120
        }
        try service.replicate()
        let count = try service.read { db in try db.integers("SELECT count(*) FROM t")[0] }
        #expect(try restored() == count)
        #expect(try generations() == ["first"])
        service.closeAll()
    }

    /// What cannot be removed is told, and keeps nothing from being shipped.
    @Test func snapshotsThatCannotBeRemoved() throws {
        // The service ships at once when it begins: the snapshot is to have all that is there, so that no segment follows.
        let before = try DatabaseQueue(path: path, configuration: Configuration(key: .testing(1)))
        try before.write { db in try Self.insert(db) }
        before.close()
        let queue = try DatabaseQueue(
            path: path,
            configuration: configuration {
                $0.snapshotInterval = .zero
                $0.maximumSnapshotCount = 1
            }
        )
        try queue.replicate()
        let storage = try DirectoryStorage(repository, creates: false)
        let first = ObjectName.snapshot(generation: 1, sequence: 0)
        var bytes = try #require(try storage.read(first.text))
        bytes[bytes.count / 2] ^= 1
        try storage.replace(bytes, as: first.text)
        try queue.write { db in try Self.insert(db) }
        // It is the last that was shipped, so that nothing is shipped on top of it.
        #expect(throws: DatabaseError.self) { try queue.replicate() }
        try queue.replicate()
        while try #require(queue.replicationStatus).lastError?.message.contains("All is shipped, but") != true {
            sched_yield()
        }
        let error = try #require(queue.replicationStatus?.lastError)
        #expect(error.message.contains(first.text), "\(error)")
        #expect(queue.replicationStatus?.isActive == true)
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        queue.close()
        #expect(try restored() == 3)
    }

    @Test func snapshotsThatAreKept() throws {
        let queue = try DatabaseQueue(
            path: path,
            configuration: configuration {
                $0.snapshotInterval = .zero
                $0.maximumSnapshotCount = 2
            }
        )
        for _ in 0..<5 {
            try queue.write { db in try Self.insert(db) }
            try queue.replicate()
        }
        queue.close()
        #expect(try restored() == 5)
        let storage = try DirectoryStorage(repository, creates: false)
        let names = try storage.objects(under: ObjectName.generations).map(\.name)
        let snapshots = names.count { $0.contains("/snapshot-") }
        #expect(snapshots == 2)
    }
}

extension DatabaseQueue: ReplicationServiceTests.Service {
    func closeAll() { close() }
}

extension DatabasePool: ReplicationServiceTests.Service {
    func closeAll() { releaseAllDatabases() }
}
