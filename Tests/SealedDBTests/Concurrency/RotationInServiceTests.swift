import Foundation
import Testing

@testable import SealedDB

/// Rotating a store that a queue or pool has in use, from inside and from outside.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RotationInServiceTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func pool(key: UInt8 = 1) throws -> DatabasePool {
        var configuration = Configuration(key: try .testing(key))
        configuration.maximumReaderCount = 3
        return DatabasePool(path: directory.file("db"), configuration: configuration)
    }

    private func count(_ db: Database) throws -> Int { try db.integers("SELECT count(*) FROM t")[0] }

    /// With a limit, what was lent before counts no more.
    @Test func releasingBesideALimit() throws {
        let pool = try pool()
        pool.maximumNumberOfDatabasesToCreate = 2
        for _ in 1...3 {
            let error = pool.inDatabase { _ in
                pool.releaseAllDatabases()
                #expect(pool.countOfCheckedOutDatabases == 0)
            }
            #expect(error == nil)
        }
        var isNested = false
        let error = pool.inDatabase { _ in isNested = pool.inDatabase { _ in } == nil }
        #expect(error == nil && isNested)
    }

    /// Who has a connection has it, although the pool has begun anew since.
    @Test func connectionsThatWereReleasedMeanwhile() throws {
        let pool = try pool()
        try pool.write { db in try db.fill(rows: 5) }
        let new = try Key.testing(2)
        let rotated = DispatchSemaphore(value: 0)
        let error = pool.inDatabase { _ in
            pool.releaseAllDatabases()
            #expect(throws: DatabaseError.self) { try pool.rotateKey(to: new) }
            Thread.detachNewThread {
                #expect(throws: Never.self) { try pool.rotateKey(to: new) }
                rotated.signal()
            }
            // It waits for this block, and so must let it have what it needs to end.
            while !pool.reception.look({ $0.isBarred }) { sched_yield() }
            let inner = pool.inDatabase { db in #expect((try? count(db)) == 5) }
            #expect(inner == nil)
        }
        #expect(error == nil)
        rotated.wait()
        #expect(try pool.read { db in try count(db) } == 5)
    }

    @Test func aPoolGoesOnWithTheNewKey() async throws {
        let pool = try pool()
        try await pool.write { db in try db.fill(rows: 500) }
        let stop = StopFlag()
        let failures = Log<String>()
        let rotated = Log<KeyRotation.Progress.Phase>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    while !stop.isSet {
                        do {
                            _ = try await pool.read { db in try db.integers("SELECT count(*) FROM t") }
                            try await pool.write { db in
                                try db.executeUpdate("INSERT INTO t (body) VALUES ('more')", values: nil)
                            }
                        } catch {
                            failures.add("\(error)")
                        }
                    }
                }
            }
            Thread.detachNewThread {
                while !stop.isSet {
                    let error = pool.inDatabase { db in
                        if (try? db.integers("SELECT count(*) FROM t")) == nil { failures.add("\(db.lastError())") }
                        // A second connection, while the rotation waits for the first.
                        if let error = pool.inDatabase({ _ in }) { failures.add("\(error)") }
                    }
                    if let error { failures.add("\(error)") }
                }
            }
            for byte: UInt8 in [2, 3, 4] {
                try await pool.rotateKey(to: .testing(byte)) { rotated.add($0.phase) }
            }
            stop.set()
            try await group.waitForAll()
        }
        #expect(failures.values == [])
        #expect(Set(rotated.values) == [.copy, .verify, .sync, .swap])
        let rows = try await pool.read { db in try db.integers("SELECT count(*) FROM t") }
        await pool.shutDown()
        #expect(throws: DatabaseError.self) { try self.pool(key: 3).read { _ in } }
        #expect(try await self.pool(key: 4).read { db in try db.integers("SELECT count(*) FROM t") } == rows)
    }

    @Test func aStoppedRotationLeavesTheOldKey() async throws {
        struct Stop: Error {}
        let pool = try pool()
        try await pool.write { db in try db.fill(rows: 500) }
        for phase in [KeyRotation.Progress.Phase.copy, .verify, .sync, .swap] {
            let error = await #expect(throws: DatabaseError.self) {
                try await pool.rotateKey(to: .testing(2)) { if $0.phase == phase { throw Stop() } }
            }
            #expect(error?.reason == .interrupted)
            #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [500])
            try await pool.write { db in try db.executeUpdate("UPDATE t SET body = body", values: nil) }
        }
        await pool.shutDown()
        #expect(directory.names == ["db"])
        #expect(try await self.pool(key: 1).read { db in try db.integers("SELECT count(*) FROM t") } == [500])
    }

    @Test func aStoppedRotationOfAQueue() async throws {
        struct Stop: Error {}
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
        try await queue.write { db in try db.fill(rows: 10) }
        let error = await #expect(throws: DatabaseError.self) {
            try await queue.rotateKey(to: .testing(2)) { _ in throw Stop() }
        }
        #expect(error?.reason == .interrupted)
        queue.close()
        #expect(try await self.pool(key: 1).read { db in try db.integers("SELECT count(*) FROM t") } == [10])
    }

    @Test(arguments: [true, false])
    func aCancelledRotationLeavesTheOldKey(isPool: Bool) async throws {
        let configuration = Configuration(key: try .testing(1))
        let pool = try pool()
        try await pool.write { db in try db.fill(rows: 500) }
        let started = Gate()
        let cancelled = Gate()
        let progress: @Sendable (KeyRotation.Progress) -> Void = { state in
            guard state.phase == .verify else { return }
            started.open()
            cancelled.waitBlocking()
        }
        let queue = isPool ? nil : try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        if !isPool { pool.releaseAllDatabases() }
        let task = Task {
            if let queue {
                try await queue.rotateKey(to: .testing(2), progress: progress)
            } else {
                try await pool.rotateKey(to: .testing(2), progress: progress)
            }
        }
        await started.wait()
        task.cancel()
        cancelled.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        queue?.close()
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [500])
    }

    /// What went wrong is told, also to a task that was cancelled meanwhile: it may be that the store has the new key.
    @Test func aCancelledRotationThatFails() async throws {
        struct Stop: Error {}
        let pool = try pool()
        try await pool.write { db in try db.fill(rows: 500) }
        let (started, cancelled) = (Gate(), Gate())
        let task = Task {
            try await pool.rotateKey(to: .testing(2)) { state in
                guard state.phase == .verify else { return }
                started.open()
                cancelled.waitBlocking()
                throw Stop()
            }
        }
        await started.wait()
        task.cancel()
        cancelled.open()
        let error = await #expect(throws: DatabaseError.self) { try await task.value }
        #expect(error?.underlyingError is Stop, "\(String(describing: error))")
    }

    /// A call that could only wait for itself is refused, also while a rotation waits for the block that makes it.
    @Test func aNestedCallAtTheLimitIsRefusedMeanwhile() async throws {
        let pool = try pool()
        try await pool.write { db in try db.fill(rows: 1) }
        pool.maximumNumberOfDatabasesToCreate = 1
        let lent = Gate()
        let rotating = Gate()
        let failure = Log<DatabaseError>()
        Thread.detachNewThread {
            pool.inDatabase { _ in
                lent.open()
                rotating.waitBlocking()
                if let error = pool.inDatabase({ _ in }) as? DatabaseError { failure.add(error) }
            }
        }
        await lent.wait()
        let key = try Key.testing(2)
        let rotation = Task { try await pool.rotateKey(to: key) }
        while !pool.reception.look({ $0.isBarred }) { await Task.yield() }
        rotating.open()
        _ = try await rotation.value
        #expect(failure.values.first?.reason == .misuse)
    }

    @Test func withinABlockItIsAnError() throws {
        let pool = try pool()
        try pool.write { db in try db.fill(rows: 1) }
        let key = try Key.testing(2)
        for call: () throws -> Void in [
            { try pool.read { _ in _ = try pool.rotateKey(to: key) } },
            { try pool.write { _ in _ = try pool.rotateKey(to: key) } },
            { try pool.inTransaction { _ in _ = try pool.rotateKey(to: key) } },
        ] {
            let error = #expect(throws: DatabaseError.self) { try call() }
            #expect(error?.reason == .misuse)
        }
    }

    /// By somebody who does not ask whether it is in use: a rollback journal keeps no lock on an idle store.
    @Test func aRotationFromOutsideIsFollowed() async throws {
        try KeyFile.create(atPath: directory.file("old"))
        try KeyFile.create(atPath: directory.file("new"))
        let link = directory.file("key")
        try FileManager.default.copyItem(atPath: directory.file("old"), toPath: link)
        chmod(link, 0o600)
        var configuration = Configuration(keySource: .keyFile(link))
        configuration.journalMode = .delete
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try await queue.write { db in try db.fill(rows: 3) }
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [3])
        try await pool.write { db in try db.fill(rows: 1) }

        let (old, new) = (
            try KeySource.keyFile(directory.file("old")).key(), try KeySource.keyFile(directory.file("new")).key()
        )
        try FileManager.default.copyItem(atPath: directory.file("db"), toPath: directory.file("copy"))
        try KeyRotation(path: directory.file("copy"), from: old, to: new).run()
        #expect(rename(directory.file("copy"), directory.file("db")) == 0)
        // Before its key is there the store cannot be opened, and nothing is written to the file that was replaced.
        let early = await #expect(throws: DatabaseError.self) { try await queue.write { _ in } }
        #expect(early?.reason == .wrongKey)
        try FileManager.default.removeItem(atPath: link)
        try FileManager.default.copyItem(atPath: directory.file("new"), toPath: link)
        chmod(link, 0o600)
        try await queue.write { db in try db.fill(rows: 1) }
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [5])
        try await pool.write { db in try db.fill(rows: 1) }
        #expect(try await queue.read { db in try db.integers("SELECT count(*) FROM t") } == [6])
    }

    /// FMDB's calls of a pool have connections of their own.
    @Test func aFileThatIsReplacedIsFollowedByFMDBsCalls() throws {
        let pool = try pool()
        defer { pool.releaseAllDatabases() }
        pool.inDatabase { db in #expect(throws: Never.self) { try db.fill(rows: 2) } }
        try StoreBackup(
            path: directory.file("db"),
            key: .testing(1),
            to: directory.file("copy"),
            backupKey: .testing(1)
        )
        .run()
        for suffix in ["-wal", "-shm"] { unlink(directory.file("db") + suffix) }
        #expect(rename(directory.file("copy"), directory.file("db")) == 0)
        pool.inDatabase { db in
            #expect(throws: Never.self) { try db.executeUpdate("DELETE FROM t WHERE id = 1", values: nil) }
        }
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try count(database) == 1)
    }

    @Test func aStoreThatWasRemovedIsNotMadeAnew() async throws {
        let pool = try pool()
        try await pool.write { db in try db.fill(rows: 1) }
        try FileManager.default.moveItem(atPath: directory.file("db"), toPath: directory.file("elsewhere"))
        let error = await #expect(throws: DatabaseError.self) { try await pool.write { _ in } }
        #expect(error?.reason == .noSuchFile && error?.extendedCode == SQLITE_READONLY_DBMOVED)
        #expect(!directory.names.contains("db"))
        try FileManager.default.moveItem(atPath: directory.file("elsewhere"), toPath: directory.file("db"))
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [1])
    }
}
