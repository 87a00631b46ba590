import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct DatabaseQueueTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func queue(key byte: UInt8 = 1) throws -> DatabaseQueue {
        try DatabaseQueue(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? .testing(byte) : nil)
        )
    }

    /// A value that a test knows to be used by one thread at a time.
    private struct Handed<T>: @unchecked Sendable {
        let value: T
    }

    @Test func manyThreadsShareIt() throws {
        let queue = try queue()
        try queue.inDatabase { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<50 {
                queue.inDatabase { db in
                    _ = db.executeUpdate("INSERT INTO t VALUES (?)", withArgumentsIn: [thread * 50 + number])
                }
            }
        }
        #expect(try queue.inDatabase { db in try db.integers("SELECT count(DISTINCT n) FROM t") } == [400])
        let mode = try queue.inDatabase { db in
            let rows = try db.executeQuery("PRAGMA journal_mode", values: nil)
            return rows.next() ? rows.string(forColumnIndex: 0) : nil
        }
        #expect(mode == "wal")
    }

    @Test func reopensWithItsKey() throws {
        let queue = try queue()
        try queue.inDatabase { db in try db.fill(rows: 2) }
        queue.close()
        #expect(try queue.inDatabase { db in try db.integers("SELECT count(*) FROM t") } == [2])
        queue.inDatabase { db in _ = db.close() }
        #expect(try queue.inDatabase { db in try db.integers("SELECT count(*) FROM t") } == [2])
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: [false, true])
    func keyGivenInABlockAsInFMDB(exists: Bool) throws {
        if exists {
            let database = Database(path: directory.file("db"))
            database.open()
            #expect(database.setKey("p"))
            database.close()
        }
        let queue = try #require(FMDatabaseQueue(path: directory.file("db")))
        queue.inDatabase { db in
            #expect(db.setKey("p"))
        }
        try queue.inDatabase { db in try db.fill(rows: 3) }
        queue.close()
        #expect(try queue.inDatabase { db in try db.integers("SELECT count(*) FROM t") } == [3])
        queue.close()
        #expect(try StoreInfo.inspect(path: directory.file("db"), key: .passphrase("p")).details?.journalMode == "wal")
    }

    @Test func failedReopeningIsReported() throws {
        let queue = try queue()
        queue.close()
        try FileManager.default.removeItem(atPath: directory.file("db"))
        try FileManager.default.createDirectory(atPath: directory.file("db"), withIntermediateDirectories: false)
        let called = Guarded(false)
        let error = queue.inDatabase { _ in called.withLock { $0 = true } }
        #expect(error is DatabaseError)
        #expect(!called.withLock { $0 })
        #expect(queue.inTransaction { _, _ in called.withLock { $0 = true } } is DatabaseError)
        #expect(queue.inSavePoint { _, _ in called.withLock { $0 = true } } is DatabaseError)
        #expect(!called.withLock { $0 })
    }

    @Test func missingDirectoryGivesNil() {
        #expect(DatabaseQueue(path: directory.file("no/such/db")) == nil)
        #expect(DatabaseQueue(path: directory.file("absent"), flags: SQLITE_OPEN_READWRITE) == nil)
    }

    @Test func failedCommitIsReported() throws {
        let queue = try queue()
        try queue.inDatabase { db in
            try db.executeUpdate("PRAGMA foreign_keys = ON", values: nil)
            try db.executeUpdate("CREATE TABLE p (id INTEGER PRIMARY KEY)", values: nil)
            try db.executeUpdate(
                "CREATE TABLE c (p INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
                values: nil
            )
        }
        let error = queue.inTransaction { db, _ in
            _ = db.executeUpdate("INSERT INTO c VALUES (1)", withArgumentsIn: [])
        }
        #expect((error as? DatabaseError)?.code == SQLITE_CONSTRAINT)
        #expect(try queue.inDatabase { db in try db.integers("SELECT count(*) FROM c") } == [0])
    }

    /// Without a journal SQLite could not undo a block that throws.
    @Test func journalModeOffIsRefused() throws {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.journalMode = .off
        configuration.isDefensive = false
        let path = directory.file("db")
        let error = #expect(throws: DatabaseError.self) {
            try DatabaseQueue(path: path, configuration: configuration)
        }
        #expect(error?.reason == .misuse && error?.message.contains("OFF") == true)
        let pool = DatabasePool(path: path, configuration: configuration)
        let inWrite = #expect(throws: DatabaseError.self) { try pool.write { db in try db.fill(rows: 1) } }
        let inRead = #expect(throws: DatabaseError.self) { try pool.read { db in try db.integers("SELECT 1") } }
        let lent = #expect(throws: DatabaseError.self) {
            try pool.inDatabase { db throws in try db.integers("SELECT 1") }
        }
        #expect(inWrite == error && inRead == error && lent == error)
        #expect(directory.names == [])
        // A database alone may have it.
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        #expect(try database.executeQuery("PRAGMA journal_mode").scalar(String.self) == "off")
        #expect(database.executeStatements("PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF"))
    }

    @Test(arguments: [
        "PRAGMA journal_mode = OFF", "PRAGMA main.journal_mode=off", "pragma JOURNAL_MODE(Off)",
        "PRAGMA \"journal_mode\" = 'of'", "PRAGMA journal_mode(o)", "PRAGMA temp.journal_mode = off",
        "EXPLAIN PRAGMA journal_mode = off",
    ])
    func journalModeOffBySQLIsRefused(sql: String) throws {
        let queue = try queue()
        let pool = DatabasePool(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        for access in [queue, pool] as [any DatabaseAccess] {
            try access.writeWithoutTransaction { (db) throws in
                #expect(!db.executeStatements(sql))
                #expect((db.lastError() as? DatabaseError)?.reason == .notAllowed)
                #expect(try db.executeQuery("PRAGMA journal_mode").scalar(String.self) == "wal")
            }
        }
    }

    @Test func otherJournalModesAreAllowed() throws {
        let queue = try queue()
        for mode in ["delete", "truncate", "persist", "memory", "wal"] {
            let effective = try queue.writeWithoutTransaction { db in
                #expect(db.executeStatements("PRAGMA journal_mode = \(raw: mode)"))
                let rows = try db.executeQuery("PRAGMA journal_mode", values: nil)
                return try rows.nextWithError() ? rows.string(forColumnIndex: 0) : nil
            }
            #expect(effective == mode)
        }
    }

    @Test func nestedCallThrows() throws {
        let queue = try queue()
        let other = try DatabaseQueue(path: nil, configuration: Configuration())
        let error = #expect(throws: DatabaseError.self) {
            try queue.inDatabase { _ in
                try other.inDatabase { _ in try queue.inTransaction { db in try db.integers("SELECT 1") } }
            }
        }
        #expect(error?.reason == .misuse)
    }

    #if compiler(>=6.2)
        @Test(.awaitsProcess) func nestedCallTraps() async {
            await #expect(processExitsWith: .failure) {
                let queue = DatabaseQueue(path: nil)
                queue?.inDatabase { _ in _ = queue?.inTransaction { _, _ in } }
            }
        }
    #endif

    @Test func setsEndWithTheBlockAndMayBeDroppedElsewhere() throws {
        let queue = try queue()
        try queue.inDatabase { db in try db.fill(rows: 100) }
        for _ in 0..<50 {
            var escaped: ResultSet? = try queue.inDatabase { db in
                let rows = try db.executeQuery("SELECT * FROM t", values: nil)
                #expect(rows.next())
                return rows
            }
            #expect(escaped?.next() == false)
            escaped = nil
        }
        // Dropped on another thread while the block still runs.
        try queue.inDatabase { db in
            for _ in 0..<50 {
                let set = try db.executeQuery("SELECT * FROM t", values: nil)
                #expect(set.next())
                let box = Unmanaged.passRetained(set)
                let handed = Handed(value: box)
                let thread = Thread { handed.value.release() }
                thread.start()
                #expect(try db.integers("SELECT count(*) FROM t") == [100])
            }
        }
        queue.close()
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func rotationWhileOthersWait() throws {
        let queue = try queue()
        try queue.inDatabase { db in try db.fill(rows: 500) }
        let failures = Guarded(0)
        let group = DispatchGroup()
        for _ in 0..<4 {
            DispatchQueue.global().async(group: group) {
                for _ in 0..<25 {
                    let error = queue.inDatabase { db in
                        if !db.executeUpdate("INSERT INTO t (body) VALUES ('more')", withArgumentsIn: []) {
                            failures.withLock { $0 += 1 }
                        }
                    }
                    if error != nil { failures.withLock { $0 += 1 } }
                }
            }
        }
        var phases: Set<KeyRotation.Progress.Phase> = []
        try queue.rotateKey(to: .testing(2)) { phases.insert($0.phase) }
        group.wait()
        #expect(failures.withLock { $0 } == 0)
        #expect(phases == [.copy, .verify, .sync, .swap])
        #expect(try queue.inDatabase { db in try db.integers("SELECT count(*) FROM t") } == [600])
        queue.close()
        #expect(throws: DatabaseError.self) { try self.queue(key: 1) }
        #expect(try self.queue(key: 2).inDatabase { db in try db.integers("SELECT count(*) FROM t") } == [600])
        #expect(directory.names == ["db"])
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func stoppedRotationLeavesTheOldKey() throws {
        struct Stop: Error {}
        let queue = try queue()
        try queue.inDatabase { db in try db.fill(rows: 500) }
        for phase in [KeyRotation.Progress.Phase.copy, .verify, .sync, .swap] {
            let error = #expect(throws: DatabaseError.self) {
                try queue.rotateKey(to: .testing(2)) { if $0.phase == phase { throw Stop() } }
            }
            #expect(error?.reason == .interrupted)
            #expect(try queue.inDatabase { db in try db.integers("SELECT count(*) FROM t") } == [500])
        }
        queue.close()
        #expect(directory.names == ["db"])
        #expect(try self.queue(key: 1).inDatabase { db in try db.integers("SELECT count(*) FROM t") } == [500])
    }
}
