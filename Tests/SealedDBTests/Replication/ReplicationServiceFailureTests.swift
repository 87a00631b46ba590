import Foundation
import Logging
import Testing

@testable import SealedDB

/// What becomes of a queue or pool that ships its store when something around it goes wrong: what counts as shipped is there,
/// nobody waits for himself, and the log does not grow for ever.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicationServiceFailureTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var path: String { directory.file("app.db") }
    private var repository: String { directory.file("repository") }

    private func configuration(_ change: (inout Replication) -> Void = { _ in }) throws -> Configuration {
        var replication = Replication(to: repository)
        replication.interval = .seconds(3600)
        change(&replication)
        return Configuration(key: try .testing(1), replication: replication)
    }

    private static func insert(_ db: Database, _ count: Int = 1, bytes: Int = 100) throws {
        try db.executeUpdate("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, x)", values: nil)
        for _ in 0..<count { try db.executeUpdate("INSERT INTO t (x) VALUES (randomblob(?))", values: [bytes]) }
    }

    /// How many rows the repository has.
    private func restored() throws -> Int {
        let target = directory.file("restored-\(UUID().uuidString).db")
        try RepositoryRestore(from: repository, to: target).run()
        let copy = try Database.testing(target)
        defer { copy.close() }
        return try copy.integers("SELECT count(*) FROM t")[0]
    }

    private func generations() throws -> [String?] {
        try RepositoryStatus.of(directory: repository, verifies: true).generations.map(\.begunBecause)
    }

    private func takeRepositoryAway() { #expect(rename(repository, repository + "-away") == 0) }
    private func bringRepositoryBack() { #expect(rename(repository + "-away", repository) == 0) }

    // MARK: Which store

    /// The name of the store leads elsewhere, as a relative one does in another working directory: what is shipped is the file
    /// that the queue has open, and no other one is opened in its place.
    @Test func aNameThatLeadsElsewhere() throws {
        for (name, count) in [("one.db", 1), ("two.db", 22)] {
            let queue = try DatabaseQueue(path: directory.file(name), configuration: Configuration(key: .testing(1)))
            try queue.write { db in try Self.insert(db, count) }
            queue.close()
        }
        func link(to name: String) {
            unlink(path)
            #expect(symlink(directory.file(name), path) == 0)
        }
        link(to: "one.db")
        let parent = directory.file("parent")
        let configuration = try configuration { $0.repository = parent + "/repository" }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        // Nothing was shipped before the name leads elsewhere.
        #expect(throws: DatabaseError.self) { try queue.replicate() }
        link(to: "two.db")
        #expect(mkdir(parent, 0o700) == 0)
        try queue.replicate()
        let status = try RepositoryStatus.of(directory: parent + "/repository", verifies: true)
        #expect(status.generations.map(\.store) == [FileSystem.resolve(directory.file("one.db"))])
        queue.close()
        let error = #expect(throws: DatabaseError.self) { try queue.write { db in try Self.insert(db) } }
        #expect(error?.message.contains("Nothing was opened or shipped") == true, "\(String(describing: error))")
        link(to: "one.db")
        try queue.write { db in try Self.insert(db) }
        queue.close()
    }

    @Test func relativePaths() {
        let here = FileManager.default.currentDirectoryPath
        #expect(Replication(to: "a/b").absolute.repository == here + "/a/b")
        #expect(Replication(to: "/a/b").absolute.repository == "/a/b")
        for place in ["s3://bucket/prefix", "s3://", ""] {
            #expect(Replication(to: place).absolute.repository == place)
        }
    }

    /// What was last committed to a file that lost its name, and cannot be told from what came later, does not count as shipped.
    @Test func aStoreThatIsReplacedUnseen() throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try Self.insert(db, 2) }
        try queue.replicate()
        try queue.write { db in try Self.insert(db) }
        try FileManager.default.copyItem(atPath: path, toPath: path + ".other")
        #expect(rename(path + ".other", path) == 0)
        // The log beside the new file is that of the former one.
        let refused = #expect(throws: DatabaseError.self) { try queue.replicate() }
        #expect(refused?.message.contains("log beside it") == true, "\(String(describing: refused))")
        #expect(throws: DatabaseError.self) { try queue.read { _ in } }
        #expect(rename(path + "-wal", path + ".log") == 0)
        try queue.read { _ in }
        let error = #expect(throws: DatabaseError.self) { try queue.replicate() }
        #expect(error?.message.contains("is not in the repository") == true, "\(String(describing: error))")
        try queue.replicate()
        #expect(try generations() == ["first", "replaced-unseen"])
        queue.close()
    }

    // MARK: The repository

    /// Nothing is acknowledged on top of what is not there.
    @Test func anOlderCopyOfTheRepository() throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        try FileManager.default.copyItem(atPath: repository, toPath: repository + "-copy")
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        takeRepositoryAway()
        #expect(rename(repository + "-copy", repository) == 0)
        try queue.write { db in try Self.insert(db) }
        let error = #expect(throws: DatabaseError.self) { try queue.replicate() }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        try queue.replicate()
        #expect(try restored() == 3)
        queue.close()
    }

    /// One that is known and away, as on a disk that is not mounted, is not made: not even if its disk goes after one has looked.
    @Test func aKnownRepositoryIsNotMade() throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        queue.close()
        let mark = try RepositoryMark.existing(DirectoryStorage(repository, creates: false))
        takeRepositoryAway()
        let error = #expect(throws: DatabaseError.self) {
            try Replicator(path: path, key: .testing(1), directory: repository, mark: mark)
        }
        #expect(error?.reason == .noSuchFile, "\(String(describing: error))")
        #expect(access(repository, F_OK) == -1 && errno == ENOENT)
        bringRepositoryBack()
        let replicator = try Replicator(path: path, key: .testing(1), directory: repository, mark: mark)
        #expect(try replicator.ship().generation == 1)
        replicator.close()
    }

    /// What was refused forgets the repository only if it is another one than before.
    @Test func aRepositoryThatIsAwayAfterARefusal() throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        queue.close()
        let other = try DatabaseQueue(
            path: directory.file("other.db"),
            configuration: configuration { $0.acceptsMovedStore = true }
        )
        try other.write { db in try Self.insert(db) }
        try other.replicate()
        other.close()
        try queue.write { db in try Self.insert(db) }
        let refusal = #expect(throws: DatabaseError.self) { try queue.replicate() }
        #expect(refusal?.reason == .alreadyExists, "\(String(describing: refusal))")
        queue.close()
        takeRepositoryAway()
        try queue.write { db in try Self.insert(db) }
        let error = #expect(throws: DatabaseError.self) { try queue.replicate() }
        #expect(error?.reason == .noSuchFile, "\(String(describing: error))")
        #expect(access(repository, F_OK) == -1 && errno == ENOENT)
        bringRepositoryBack()
        queue.close()
    }

    /// Who opens the store while another one waits for its first shipping waits as well.
    @Test func severalThatOpenAStoreThatMustBeShipped() throws {
        let seed = try DatabaseQueue(path: path, configuration: Configuration(key: .testing(1)))
        try seed.write { db in try Self.insert(db, 300, bytes: 8000) }
        seed.close()
        let pool = DatabasePool(
            path: path,
            configuration: try configuration {
                $0.isRequiredForOpening = true
                $0.maximumBytesPerSecond = 2 << 20
            }
        )
        let group = DispatchGroup()
        let read: @Sendable () -> Void = {
            do {
                _ = try pool.read { db in try db.integers("SELECT count(*) FROM t") }
                #expect(pool.replicationStatus?.lastSuccess != nil)
            } catch {
                Issue.record(error)
            }
        }
        DispatchQueue.global().async(group: group, execute: read)
        while !FileSystem.mayExist(repository + "/chunks") { sched_yield() }
        for _ in 0..<2 { DispatchQueue.global().async(group: group, execute: read) }
        group.wait()
        pool.releaseAllDatabases()
    }

    // MARK: Waiting

    /// What is told of a failure uses the queue, while a block of it waits for the thread that ships.
    @Test func aFailureThatIsToldInTheMiddleOfABlock() throws {
        let told = DispatchSemaphore(value: 0)
        let asked = Guarded<DatabaseQueue?>(nil)
        let queue = try DatabaseQueue(
            path: path,
            configuration: configuration { replication in
                replication.didFail = { _ in
                    // It is no longer there when the test ends.
                    try? asked.withLock { $0 }?.write { db in try Self.insert(db) }
                    told.signal()
                }
            }
        )
        asked.withLock { $0 = queue }
        defer { asked.withLock { $0 = nil } }
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        takeRepositoryAway()
        let ended = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            do {
                try queue.writeWithoutTransaction { db in
                    for _ in 0..<3 { #expect(throws: DatabaseError.self) { try queue.replicate() } }
                }
            } catch {
                Issue.record(error)
            }
            ended.signal()
        }
        try #require(ended.wait(timeout: .now() + 300) == .success, "A block waits for itself.")
        try #require(told.wait(timeout: .now() + 300) == .success)
        bringRepositoryBack()
        try queue.replicate()
        #expect(try restored() >= 2)
        queue.close()
    }

    private struct SlowHandler: LogHandler {
        let began: DispatchSemaphore
        let goesOn: DispatchSemaphore
        /// How often somebody has waited for the shipper in vain.
        let waitedCount = Guarded(0)
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let message = event.message.description
            if message.contains("does not answer") { waitedCount.withLock { $0 += 1 } }
            guard message.contains("could not be shipped") else { return }
            began.signal()
            goesOn.wait()
        }
    }

    /// A rotation that cannot have the store let go of changes nothing, and shipping goes on.
    @Test func aRotationWhileTheShipperHangs() throws {
        let handler = SlowHandler(began: DispatchSemaphore(value: 0), goesOn: DispatchSemaphore(value: 0))
        var configuration = try configuration()
        configuration.logger = Logger(label: "test") { _ in handler }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        takeRepositoryAway()
        #expect(throws: DatabaseError.self) { try queue.replicate() }
        handler.began.wait()
        let error = #expect(throws: DatabaseError.self) { try queue.rotateKey(to: .testing(2)) }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        #expect(queue.replicationStatus?.isActive == true)
        bringRepositoryBack()
        for _ in 0..<100 { handler.goesOn.signal() }
        try queue.replicate()
        #expect(try restored() == 1)
        queue.close()
    }

    /// What hangs is waited for once.
    @Test func aShutdownWhileTheShipperHangs() async throws {
        let handler = SlowHandler(began: DispatchSemaphore(value: 0), goesOn: DispatchSemaphore(value: 0))
        var configuration = try configuration()
        configuration.logger = Logger(label: "test") { _ in handler }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try await queue.write { db in try Self.insert(db) }
        try await queue.replicate()
        takeRepositoryAway()
        await #expect(throws: DatabaseError.self) { try await queue.replicate() }
        await onOtherThread { handler.began.wait() }
        await queue.shutDown(interruptingAfter: .zero)
        #expect(handler.waitedCount.withLock { $0 } == 1)
        #expect(queue.replicationStatus?.isActive == false)
        for _ in 0..<100 { handler.goesOn.signal() }
    }

    // MARK: The log

    /// What cannot be shipped is not kept for ever.
    @Test func aLogThatIsTooLong() throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration { $0.maximumUnshippedBytes = 200_000 })
        try queue.write { db in try Self.insert(db) }
        try queue.replicate()
        takeRepositoryAway()
        try queue.write { db in try Self.insert(db, 10, bytes: 4000) }
        #expect(throws: DatabaseError.self) { try queue.replicate() }
        // Up to the limit it is kept.
        #expect(throws: DatabaseError.self) { try queue.checkpoint(.truncate) }
        try queue.write { db in try Self.insert(db, 100, bytes: 4000) }
        // When the second one begins, the first is over.
        for _ in 0..<2 { #expect(throws: DatabaseError.self) { try queue.replicate() } }
        try queue.checkpoint(.truncate)
        try queue.write { db in try Self.insert(db) }
        bringRepositoryBack()
        try queue.replicate()
        #expect(try restored() == 112)
        #expect(try generations() == ["first", "log-unseen"])
        queue.close()
    }

    /// A pool empties its log if nobody ships it any more.
    @Test func theLogOfAPoolThatIsRefused() throws {
        let other = try DatabaseQueue(path: directory.file("other.db"), configuration: configuration())
        try other.write { db in try Self.insert(db) }
        other.close()
        let pool = DatabasePool(path: path, configuration: try configuration())
        try pool.write { db in try Self.insert(db, 20, bytes: 4000) }
        #expect(throws: DatabaseError.self) { try pool.replicate() }
        let emptied = Guarded<Bool?>(nil)
        let done = DispatchSemaphore(value: 0)
        pool.log.empty? { isEmpty in
            emptied.withLock { $0 = isEmpty }
            done.signal()
        }
        done.wait()
        #expect(emptied.withLock { $0 } == true)
        #expect(try FileSystem.status(path + "-wal").st_size == 0)
        pool.releaseAllDatabases()
    }
}
