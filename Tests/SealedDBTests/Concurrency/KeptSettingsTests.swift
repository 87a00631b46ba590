import Foundation
import Testing

@testable import SealedDB

/// What was set on a connection is still set when it was opened anew without the caller's doing.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeptSettingsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Without a log, so that another file can take the place of the store.
    private func queue() throws -> DatabaseQueue {
        var configuration = Configuration(key: try .testing(1))
        configuration.journalMode = .delete
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in try db.fill(rows: 500) }
        return queue
    }

    /// Each with another value than that of a new connection.
    private static let settings: [(pragma: String, value: String, answer: String)] = [
        ("foreign_keys", "OFF", "0"), ("recursive_triggers", "ON", "1"), ("cache_size", "-777", "-777"),
        ("synchronous", "OFF", "0"), ("busy_timeout", "12345", "12345"), ("secure_delete", "FAST", "2"),
        ("query_only", "ON", "1"), ("ignore_check_constraints", "ON", "1"), ("legacy_alter_table", "ON", "1"),
        ("reverse_unordered_selects", "ON", "1"), ("cell_size_check", "ON", "1"), ("trusted_schema", "OFF", "0"),
        ("automatic_index", "OFF", "0"), ("journal_size_limit", "54321", "54321"),
        ("analysis_limit", "99", "99"), ("max_page_count", "123456", "123456"), ("full_column_names", "ON", "1"),
        ("cache_spill", "OFF", "0"), ("wal_autocheckpoint", "77", "77"),
    ]

    private func set(_ db: Database, but excepted: String? = nil) throws {
        for (pragma, value, _) in Self.settings where pragma != excepted {
            #expect(db.executeStatements("PRAGMA \(raw: pragma) = \(raw: value)"))
        }
        #expect(db.executeStatements("PRAGMA case_sensitive_like = ON"))
        _ = db.limit(for: 0, value: 777_777)
    }

    private func expectSet(
        _ db: Database,
        but excepted: String? = nil,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        for (pragma, _, answer) in Self.settings where pragma != excepted {
            let rows = try db.executeQuery("PRAGMA \(raw: pragma)", values: nil)
            defer { rows.close() }
            let found = try rows.nextWithError() ? rows.string(forColumnIndex: 0) : nil
            #expect(found == answer, "\(pragma)", sourceLocation: location)
        }
        #expect(try db.executeQuery("SELECT 'a' LIKE 'A'").scalar(Int.self) == 0, sourceLocation: location)
        #expect(db.limit(for: 0, value: -1) == 777_777, sourceLocation: location)
    }

    enum Reopening: CaseIterable, Sendable { case rotation, rekey, outside, damage }

    @Test(arguments: Reopening.allCases)
    func everySettingIsKept(reopening: Reopening) throws {
        let other = try queue()
        try other.inDatabase { db in try set(db) }
        switch reopening {
        case .rotation: try other.rotateKey(to: .testing(2))
        case .rekey:
            other.inDatabase { db in #expect(db.rekey("x'\(String(repeating: "02", count: 32))'")) }
        case .outside:
            let copy = directory.file("copy")
            try StoreBackup(path: directory.file("db"), key: .testing(1), to: copy).run()
            #expect(rename(copy, directory.file("db")) == 0)
        case .damage:
            #expect(throws: DatabaseError.self) {
                try other.inDatabase { db throws in try db.openConnection().check(SQLITE_CORRUPT) }
            }
            #expect(!other.writer.isOpen)
        }
        try other.inDatabase { db in try expectSet(db) }
        try other.inDatabase { db in try expectSet(db) }
        // Whoever closes it gets a new one.
        other.close()
        try other.inDatabase { (db) throws in
            #expect(try db.executeQuery("PRAGMA foreign_keys").scalar(Int.self) == 1)
        }
    }

    private func pool() throws -> DatabasePool {
        var configuration = Configuration(key: try .testing(1))
        configuration.maximumReaderCount = 1
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try pool.write { db in try db.fill(rows: 500) }
        return pool
    }

    /// FMDB's connections, one that reads, and the one that writes.
    @Test func everyConnectionOfAPoolKeepsItsSettings() throws {
        let pool = try pool()
        // Checkpoints are the pool's.
        try pool.inDatabase { db in try set(db, but: "wal_autocheckpoint") }
        try pool.read { db in #expect(db.executeStatements("PRAGMA cache_size = -778")) }
        try pool.writeWithoutTransaction { db in #expect(db.executeStatements("PRAGMA cache_size = -779")) }
        #expect(pool.countOfOpenDatabases == 3)
        // Twice, without a use in between.
        for number: UInt8 in [2, 3] { try pool.rotateKey(to: .testing(number)) }
        #expect(pool.countOfOpenDatabases == 1)
        try pool.inDatabase { db in try expectSet(db, but: "wal_autocheckpoint") }
        #expect(try pool.read { db in try db.executeQuery("PRAGMA cache_size").scalar(Int.self) } == -778)
        #expect(try pool.read { db in try db.executeQuery("PRAGMA query_only").scalar(Int.self) } == 1)
        #expect(
            try pool.writeWithoutTransaction { db in try db.executeQuery("PRAGMA cache_size").scalar(Int.self) } == -779
        )
        #expect(pool.countOfOpenDatabases == 3)
        pool.releaseAllDatabases()
        #expect(try pool.inDatabase { db throws in try db.executeQuery("PRAGMA query_only").scalar(Int.self) } == 0)
    }

    /// Who releases the connections, or their memory, does not take them from under the rotation that closes them, and
    /// none of them keeps the key that was.
    @Test func releasesBesideRotations() async throws {
        let pool = try pool()
        let isOver = Guarded(false)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    await withCheckedContinuation { done in
                        Thread.detachNewThread {
                            while !isOver.withLock({ $0 }) {
                                pool.inDatabase { db in #expect(db.executeStatements("PRAGMA cache_size = -500")) }
                                #expect(throws: Never.self) {
                                    try pool.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self)
                                    }
                                }
                                pool.releaseMemory()
                                pool.releaseAllDatabases()
                            }
                            done.resume()
                        }
                    }
                }
            }
            for number: UInt8 in 2...12 {
                do { try await pool.rotateKey(to: .testing(number)) } catch { Issue.record(error) }
            }
            isOver.withLock { $0 = true }
        }
        #expect(try await pool.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } == 500)
    }

    @Test(arguments: [
        ("CREATE TEMP TABLE x (a)", false), ("ATTACH ':memory:' AS x", false), ("ATTACH ':memory:' AS x", true),
    ])
    func whatAnIdleConnectionWouldLoseRefusesTheRotation(sql: String, isReader: Bool) throws {
        let pool = try pool()
        if isReader {
            try pool.read { db in #expect(db.executeStatements(sql)) }
        } else {
            pool.inDatabase { db in #expect(db.executeStatements(sql)) }
        }
        let error = #expect(throws: DatabaseError.self) { try pool.rotateKey(to: .testing(2)) }
        #expect(error?.message.contains("releaseAllDatabases()") == true, "\(error?.message ?? "")")
        #expect(try pool.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } == 500)
        pool.inDatabase { db in #expect(db.executeStatements("INSERT INTO t (body) VALUES ('x')")) }
        pool.releaseAllDatabases()
        try pool.rotateKey(to: .testing(2))
        #expect(try pool.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } == 501)
    }

    @Test func anOrphanIsRefusedAfterTheRotation() throws {
        let queue = try queue()
        queue.inDatabase { db in
            #expect(
                db.executeStatements(
                    "CREATE TABLE child (parent INTEGER REFERENCES t (id)); PRAGMA foreign_keys = ON"
                )
            )
        }
        try queue.rotateKey(to: .testing(2))
        #expect(throws: DatabaseError.self) {
            try queue.write { db in try db.executeUpdate("INSERT INTO child VALUES (123456)") }
        }
    }

    @Test(arguments: [
        "CREATE TEMP TABLE x (a)", "CREATE TEMP VIEW x AS SELECT 1",
        "CREATE TEMP TRIGGER x AFTER INSERT ON main.t BEGIN SELECT 1; END", "ATTACH ':memory:' AS x",
    ])
    func whatCannotBeKeptRefusesTheChange(sql: String) throws {
        let queue = try queue()
        queue.inDatabase { db in #expect(db.executeStatements(sql), "\(db.lastErrorMessage())") }
        let error = #expect(throws: DatabaseError.self) { try queue.rotateKey(to: .testing(2)) }
        #expect(error?.message.contains("x") == true && error?.message.contains("opened anew") == true)
        try queue.inDatabase { db in
            #expect(!db.rekey("x'\(String(repeating: "02", count: 32))'"))
            // All is as it was.
            let isThere = try db.executeQuery(
                "SELECT (SELECT count(*) FROM temp.sqlite_schema) + (SELECT count(*) FROM pragma_database_list WHERE name = 'x')"
            ).scalar(Int.self)
            #expect(isThere == 1)
        }
        #expect(directory.namesOfFiles.filter { !$0.hasPrefix("db") } == [])
    }

    /// Who closes it, gets a new connection.
    @Test(arguments: [false, true]) func onlyUntilItIsClosed(_ isClosed: Bool) throws {
        let database = try Database.testing(directory.file("own"), key: 1)
        try set(database)
        try database.closeForReopening()
        #expect(database.isToBeKept)
        if isClosed { #expect(database.close() && !database.isToBeKept) }
        try database.reopen()
        if isClosed {
            #expect(try database.value("PRAGMA recursive_triggers") == 0)
        } else {
            try expectSet(database)
        }
        database.close()
    }

    @Test func aReplacedStoreTellsWhatIsLost() throws {
        let queue = try queue()
        queue.inDatabase { db in #expect(db.executeStatements("CREATE TEMP TABLE x (a)")) }
        let copy = directory.file("copy")
        try StoreBackup(path: directory.file("db"), key: .testing(1), to: copy).run()
        #expect(rename(copy, directory.file("db")) == 0)
        let error = #expect(throws: DatabaseError.self) { try queue.inDatabase { (_) throws in } }
        #expect(error?.message.contains("temporary objects (x)") == true)
        try queue.inDatabase { (db) throws in
            #expect(try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 500)
        }
    }
}
