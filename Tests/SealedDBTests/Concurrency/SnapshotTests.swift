import Foundation
import Testing

@testable import SealedDB

/// A state of the store that is kept.
@Suite(.hangLimit)
struct SnapshotTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func pool(_ change: (inout Configuration) -> Void = { _ in }) throws -> DatabasePool {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        change(&configuration)
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try pool.write { db in
            try db.run("CREATE TABLE t (n)")
            try db.run("INSERT INTO t VALUES (1)")
        }
        return pool
    }

    private static let count = "SELECT count(*) FROM t"

    @Test func itStaysWhileOthersWrite() async throws {
        let pool = try pool()
        let snapshot = try pool.snapshot()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask { try await pool.write { db in try db.run("INSERT INTO t VALUES (?)", [number]) } }
                group.addTask {
                    let seen = try await snapshot.read { db in try db.integers(SnapshotTests.count) }
                    #expect(seen == [1])
                }
                group.addTask {
                    let seen = try await onThread { try snapshot.read { db in try db.integers(SnapshotTests.count) } }
                    #expect(seen == [1])
                }
            }
            try await group.waitForAll()
        }
        #expect(try await pool.read { db in try db.integers(SnapshotTests.count) } == [21])
        for sql in ["INSERT INTO t VALUES (2)", "COMMIT", "ROLLBACK", "PRAGMA optimize(0x10002)"] {
            let error = #expect(throws: DatabaseError.self) { try snapshot.read { db in try db.run(sql) } }
            #expect(error?.reason == .misuse, "\(sql)")
        }
        #expect(try await snapshot.read { db in try db.integers(SnapshotTests.count) } == [1])
        #expect(pool.countOfCheckedOutDatabases == 1)
        snapshot.close()
        #expect(pool.countOfCheckedOutDatabases == 0)
        #expect(throws: DatabaseError.self) { try snapshot.read { _ in } }
        await #expect(throws: DatabaseError.self) { try await snapshot.read { _ in } }
        // Its connection is one like others now.
        #expect(pool.inDatabase { db in #expect(throws: Never.self) { try db.run("INSERT INTO t VALUES (3)") } } == nil)
    }

    /// The state after a commit, read when others write again.
    @Test func itIsTheStateJustCommitted() async throws {
        let pool = try pool()
        let snapshot = try await pool.writeWithoutTransaction { db in
            try db.inTransaction(.immediate) { try db.run("INSERT INTO t VALUES (2)") }
            return try pool.snapshot()
        }
        try await pool.write { db in try db.run("INSERT INTO t VALUES (3)") }
        #expect(try await snapshot.read { db in try db.integers("SELECT n FROM t") } == [1, 2])
        // In a transaction it is the one before.
        let before = try await pool.write { db in
            try db.run("DELETE FROM t")
            return try pool.snapshot()
        }
        #expect(try await before.read { db in try db.integers(SnapshotTests.count) } == [3])
    }

    @Test func itEndsWithItsObjectAndWithThePool() async throws {
        let pool = try pool()
        do {
            let snapshot = try pool.snapshot()
            #expect(pool.countOfCheckedOutDatabases == 1)
            withExtendedLifetime(snapshot) {}
        }
        #expect(pool.countOfCheckedOutDatabases == 0)
        let (reading, release) = (Gate(), Gate())
        let snapshot = try pool.snapshot()
        let reader = Task {
            try await snapshot.read { db in
                reading.open()
                release.waitBlocking()
                return try db.integers(SnapshotTests.count)
            }
        }
        await reading.wait()
        async let shutdown: Void = pool.shutDown()
        while !pool.sharedWriter.lane.isRefusing { await Task.yield() }
        release.open()
        #expect(try await reader.value == [1])
        await shutdown
        #expect(throws: DatabaseError.self) { try snapshot.read { _ in } }
        #expect(directory.names == ["db"])
    }

    /// In blocks nobody waits for it, so that nobody waits for himself.
    @Test func blocksDoNotWaitForIt() async throws {
        let pool = try pool()
        let snapshot = try pool.snapshot()
        #expect(try await pool.write { _ in try snapshot.read { db in try db.integers(SnapshotTests.count) } } == [1])
        let nested = #expect(throws: DatabaseError.self) { try snapshot.read { _ in try snapshot.read { _ in } } }
        #expect(nested?.reason == .busy)
        let (inWrite, inRead) = (Gate(), Gate())
        async let reader: Void = onThread {
            try snapshot.read { _ in
                inRead.open()
                inWrite.waitBlocking()
                // Waits for the block below, which does not wait for this one.
                try pool.write { db in try db.run("INSERT INTO t VALUES (2)") }
            }
        }
        await inRead.wait()
        try await onThread {
            try pool.write { _ in
                inWrite.open()
                let error = #expect(throws: DatabaseError.self) { try snapshot.read { _ in } }
                #expect(error?.reason == .busy)
            }
        }
        try await reader
    }

    @Test func aBarrierWaitsForIt() async throws {
        let pool = try pool()
        let snapshot = try pool.snapshot()
        let error = await #expect(throws: DatabaseError.self) {
            try await pool.barrier(waitingAtMost: .milliseconds(5)) { _ in }
        }
        #expect(error?.reason == .busy)
        let barrier = Task { try await pool.barrier { _ in true } }
        while !pool.reception.look({ $0.isBarred }) { await Task.yield() }
        snapshot.close()
        #expect(try await barrier.value)
    }

    /// Those who come after `close()` are refused, so that it ends when those have ended who read before.
    @Test func readersThatOverlapDoNotKeepItFromClosing() async throws {
        let pool = try pool()
        let snapshot = try pool.snapshot()
        let reading = Gate()
        let readers = (0..<3).map { _ in
            Task {
                try await onThread {
                    while true {
                        try snapshot.read { db in
                            reading.open()
                            #expect(throws: Never.self) { try db.integers(SnapshotTests.count) }
                        }
                    }
                }
            }
        }
        await reading.wait()
        snapshot.close()
        for reader in readers {
            let error = await #expect(throws: DatabaseError.self) { try await reader.value }
            #expect(error?.message.contains("closed") == true)
        }
        #expect(pool.countOfCheckedOutDatabases == 0)
    }

    /// The limit does not count snapshots: nobody but their owner could close them, and may be the one who asks.
    @Test func nobodyWaitsForSnapshotsAtTheLimit() throws {
        let pool = try pool()
        pool.maximumNumberOfDatabasesToCreate = 1
        let snapshots = try (0..<3).map { _ in try pool.snapshot() }
        #expect(pool.countOfCheckedOutDatabases == 3)
        #expect(pool.inDatabase { _ in } == nil)
        #expect(try pool.write { _ in pool.inDatabase { _ in } } == nil)
        var inner: (any Error)?
        let outer = pool.inDatabase { _ in inner = pool.inDatabase { _ in } }
        #expect(outer == nil && (inner as? DatabaseError)?.reason == .misuse)
        #expect(try snapshots[1].read { db in try db.integers(SnapshotTests.count) } == [1])
        // Of those that come back, one is kept.
        for snapshot in snapshots { snapshot.close() }
        #expect(pool.countOfCheckedOutDatabases == 0 && pool.countOfCheckedInDatabases <= 2)
        #expect(pool.inDatabase { _ in } == nil)
    }

    @Test func theLimitKeepsNoSnapshotWaiting() async throws {
        let pool = try pool()
        pool.maximumNumberOfDatabasesToCreate = 1
        pool.maximumWait = .seconds(3600)
        let (held, release) = (Gate(), Gate())
        async let holding = onThread {
            pool.inDatabase { _ in
                // Also within the one that there is.
                #expect(throws: Never.self) { try pool.snapshot().close() }
                held.open()
                release.waitBlocking()
            } == nil
        }
        await held.wait()
        async let waiting = onThread { pool.inDatabase { _ in } == nil }
        while !pool.reception.look({ $0.waitingCount(.lent) == 1 }) { await Task.yield() }
        // Before the one that waits for the limit.
        let snapshot = try await onThread { try pool.snapshot() }
        let seen = try await snapshot.read { db in try db.integers(SnapshotTests.count) }
        #expect(seen == [1])
        #expect(pool.reception.look { $0.waitingCount(.lent) } == 1)
        release.open()
        let (first, second) = (try await holding, try await waiting)
        #expect(first && second)
        snapshot.close()
        #expect(pool.countOfCheckedOutDatabases == 0 && pool.countOfCheckedInDatabases <= 2)
    }

    /// It belongs to no thread: who took it is refused nothing, and waits as all others do.
    @Test func itBelongsToNoThread() throws {
        let pool = try pool()
        let snapshot = try pool.snapshot()
        #expect(!pool.reception.isInside)
        let error = #expect(throws: DatabaseError.self) { try pool.barrier(waitingAtMost: .zero) { _ in } }
        #expect(error?.reason == .busy, "\(error as Any)")
        snapshot.close()
        try pool.barrier(waitingAtMost: .zero) { _ in }
    }

    /// Its turns are waited for as long as those of its pool; once it is closed, not at all.
    @Test func howLongItsTurnsAreWaitedFor() async throws {
        let pool = try pool()
        pool.maximumWait = .zero
        let snapshot = try pool.snapshot()
        let (held, release) = (Gate(), Gate())
        async let reading: Void = onThread {
            try snapshot.read { _ in
                held.open()
                release.waitBlocking()
            }
        }
        await held.wait()
        func reason() async -> DatabaseError.Reason? {
            let done = DispatchSemaphore(value: 0)
            let found = Guarded<DatabaseError.Reason?>(nil)
            Thread.detachNewThread {
                do {
                    try snapshot.read { _ in }
                } catch {
                    found.withLock { $0 = (error as? DatabaseError)?.reason }
                }
                done.signal()
            }
            // Without a limit this would wait for ever.
            let isDone = await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: done.wait(timeout: .now() + 60) == .success) }
            }
            #expect(isDone)
            return found.withLock { $0 }
        }
        #expect(await reason() == .busy)
        snapshot.close()
        #expect(await reason() == .misuse)
        release.open()
        try await reading
    }

    /// The connection has begun a transaction by then, and is one that other blocks get.
    @Test func aStateThatCannotBeRead() throws {
        let pool = try pool()
        let isRefused = Guarded(true)
        try pool.inDatabase { (db) throws in
            db.authorizer = { request in request.action == .select && isRefused.withLock { $0 } ? .deny : .allow }
        }
        let error = #expect(throws: DatabaseError.self) { try pool.snapshot() }
        isRefused.withLock { $0 = false }
        #expect(error?.code == SQLITE_AUTH, "\(error as Any)")
        #expect(pool.countOfCheckedOutDatabases == 0)
        let isInTransaction = try pool.inDatabase { (db) throws -> Bool in
            #expect(db.authorizer != nil)
            return db.isInTransaction
        }
        #expect(!isInTransaction)
        #expect(try pool.snapshot().read { db in try db.integers(SnapshotTests.count) } == [1])
    }

    @Test func itNeedsALog() throws {
        let pool = try pool { $0.journalMode = .delete }
        #expect(throws: DatabaseError.snapshotNeedsLog) { try pool.snapshot() }
        #expect(throws: DatabaseError.snapshotNeedsLog) { try DatabasePool(path: nil).snapshot() }
        #expect(pool.countOfCheckedOutDatabases == 0)
        try pool.write { db in try db.run("INSERT INTO t VALUES (2)") }
    }

    /// SQLite says of some statements that they change nothing, and they run others that do.
    @Test(arguments: [
        "PRAGMA optimize(0x10002)", "pragma Main.OPTIMIZE = 65538", "SELECT sqlcipher_export('other')",
        "SELECT 1 FROM pragma_optimize(0x10002)", "SELECT count(*) FROM temp.optimizing",
    ])
    func whatWritesByItself(sql: String) async throws {
        guard isEncrypting || !sql.contains("sqlcipher") else { return }
        _ = try pool()
        let other = directory.file("other")
        let key = isEncrypting ? try Key.testing(1) : nil
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: Configuration(key: key))
        try await queue.writeWithoutTransaction { db in
            try db.run("CREATE INDEX i ON t (n)")
            try db.run("CREATE TEMP VIEW optimizing AS SELECT * FROM pragma_optimize(0x10002)")
            try db.attach(other, as: "other", key: isEncrypting ? try .testing(2) : nil)
        }
        let error = await #expect(throws: DatabaseError.self) {
            try await queue.read { db in _ = try db.executeQuery(SQL(raw: sql)).scalar(Int.self) }
        }
        #expect(error?.code == SQLITE_READONLY)
        let tables = "SELECT count(*) FROM other.sqlite_schema WHERE name = 't'"
        #expect(try await queue.read { db in try db.integers(tables) } == [0])
        #expect(try await queue.read { db in !db.tableExists("sqlite_stat1") })
        try await queue.writeWithoutTransaction { db in _ = try db.executeQuery(SQL(raw: sql)).scalar(Int.self) }
        // What the pragma does depends on the version of SQLite.
        #expect(try await queue.read { db in try db.integers(tables) } == [sql.contains("sqlcipher") ? 1 : 0])
    }
}
