import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct DatabaseTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func opensAndReopens() throws {
        let database = try Database.testing(directory.file("db"))
        #expect(database.isOpen)
        #expect(database.open())
        try database.fill(rows: 3)
        #expect(database.lastInsertRowId == 3)
        #expect(database.changes == 3)
        #expect(database.close())
        #expect(database.close())
        #expect(!database.isOpen)
        #expect(database.lastInsertRowId == 0)
        #expect(database.open())
        #expect(try database.integers("SELECT count(*) FROM t") == [3])
    }

    @Test func temporaryAndMemoryLeaveNoFile() throws {
        for path in ["", nil] {
            let database = try Database.testing(path)
            try database.fill(rows: 2)
            #expect(try database.integers("SELECT count(*) FROM t") == [2])
        }
        #expect(directory.names == [])
    }

    @Test func closedDatabaseSaysSo() {
        let database = Database(path: nil)
        #expect(!database.executeUpdate("SELECT 1", withArgumentsIn: []))
        #expect(database.lastErrorCode() == SQLITE_MISUSE)
        #expect(database.lastErrorMessage().contains("not open"))
        #expect(database.executeQuery("SELECT 1", withArgumentsIn: []) == nil)
        #expect(!database.interrupt())
        #expect(!database.executeStatements("SELECT 1"))
    }

    @Test func missingFileWithoutCreating() throws {
        let database = Database(path: directory.file("absent"))
        #expect(!database.open(withFlags: SQLITE_OPEN_READWRITE))
        #expect(database.lastErrorCode() == SQLITE_CANTOPEN)
        #expect((database.lastError() as NSError).domain == "FMDatabase")
        #expect((database.lastError() as NSError).code == Int(SQLITE_CANTOPEN))
        #expect(directory.names == [])
        #expect(!database.open(withFlags: SQLITE_OPEN_READWRITE, vfs: "nosuch"))
    }

    @Test func uriIsAPath() throws {
        let name = "file:x?key=abc"
        #expect(throws: DatabaseError.self) {
            try Database.testing("file:" + directory.file("nosuchdirectory/x?mode=memory"))
        }
        let database = Database(path: directory.file(name))
        #expect(database.open())
        #expect(database.executeStatements("CREATE TABLE t (a)"))
        #expect(directory.names.contains(name))
        #expect(!Database(path: nil).open(withFlags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI))
    }

    @Test func wrongNumberOfValuesExecutesNothing() throws {
        let database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (a, b)", values: nil)
        for values: [Any] in [[1], [1, 2, 3]] {
            #expect(!database.executeUpdate("INSERT INTO t VALUES (?, ?)", withArgumentsIn: values))
            #expect(database.lastErrorCode() == SQLITE_RANGE)
        }
        #expect(!database.executeUpdate("INSERT INTO t VALUES (:a, :b)", withParameterDictionary: ["a": 1]))
        #expect(!database.executeUpdate("INSERT INTO t VALUES (?, ?)", withParameterDictionary: ["a": 1]))
        #expect(try database.integers("SELECT count(*) FROM t") == [0])
    }

    @Test func severalStatementsAreRefused() throws {
        let database = try Database.testing(nil)
        #expect(!database.executeUpdate("CREATE TABLE a (x); CREATE TABLE b (x)", withArgumentsIn: []))
        #expect(try database.integers("SELECT count(*) FROM sqlite_schema") == [0])
        #expect(database.executeUpdate("CREATE TABLE a (x) ; ", withArgumentsIn: []))
        #expect(!database.executeUpdate(" -- nothing", withArgumentsIn: []))
    }

    @Test func errorsNameTheStatementAndNoValue() throws {
        let database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (a UNIQUE)", values: nil)
        try database.executeUpdate("INSERT INTO t VALUES (?)", values: ["hush"])
        let error = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t VALUES (?)", values: ["hush"])
        }
        #expect(error?.extendedCode == SQLITE_CONSTRAINT_UNIQUE)
        #expect(error?.code == SQLITE_CONSTRAINT)
        #expect(error?.sql == "INSERT INTO t VALUES (?)")
        #expect(!"\(error as Any)".contains("hush"))
        #expect(error?.localizedDescription == "UNIQUE constraint failed: t.a")
        #expect(database.hadError())
        let syntax = #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT 1 FRM t", values: nil) }
        #expect(syntax?.offset != nil)
        // Not every error is about a place in the text.
        #expect(error?.offset == nil)
    }

    @Test func transactionsFollowSQLite() throws {
        let database = try Database.testing(nil)
        #expect(!database.isInTransaction)
        for begin in [
            database.beginTransaction, database.beginDeferredTransaction, database.beginImmediateTransaction,
            database.beginExclusiveTransaction,
        ] {
            #expect(begin())
            #expect(database.isInTransaction)
            #expect(!begin())
            #expect(database.rollback())
        }
        #expect(!database.commit())
        #expect(database.executeStatements("BEGIN"))
        #expect(database.isInTransaction)
        #expect(database.commit())
        #expect(!database.isInTransaction)
    }

    @Test func throwingRollsBack() throws {
        struct Stop: Error {}
        let database = try Database.testing(nil)
        try database.fill(rows: 1)
        #expect(throws: Stop.self) {
            try database.inTransaction {
                try database.fill(rows: 5)
                throw Stop()
            }
        }
        #expect(try database.inTransaction { try database.integers("SELECT count(*) FROM t") } == [1])
    }

    @Test func savepointsNest() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 1)
        let error = database.inSavePoint { _ in
            try? database.fill(rows: 1)
            database.inSavePoint { rollback in
                try? database.fill(rows: 1)
                rollback.pointee = true
            }
        }
        #expect(error == nil)
        #expect(try database.integers("SELECT count(*) FROM t") == [2])
        try database.startSavePoint(withName: "it's")
        try database.rollbackToSavePoint(withName: "it's")
        try database.releaseSavePoint(withName: "it's")
        #expect(throws: DatabaseError.self) { try database.releaseSavePoint(withName: "none") }
    }

    @Test func functionsSurviveReopening() throws {
        let database = try Database.testing(directory.file("db"))
        database.makeFunctionNamed("answer", arguments: 0) { [unowned database] context, _, _ in
            database.resultInt(42, context: context)
        }
        database.close()
        #expect(database.open())
        #expect(try database.integers("SELECT answer()") == [42])
    }

    @Test func prepareClosureConfiguresAndCanRefuse() throws {
        struct No: Error {}
        var configuration = Configuration()
        configuration.prepare = { try $0.executeUpdate("PRAGMA foreign_keys = ON", values: nil) }
        let database = Database(path: nil, configuration: configuration)
        try database.openVerified()
        #expect(try database.integers("PRAGMA foreign_keys") == [1])
        configuration.prepare = { _ in throw No() }
        #expect(!Database(path: nil, configuration: configuration).open())
    }

    /// With FULL a power failure can undo the last commit of a rollback journal.
    @Test func commitsAreSyncedToTheLast() throws {
        let database = try Database.testing(directory.file("db"))
        #expect(try database.integers("PRAGMA synchronous") == [3])
        database.close()
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: database.configuration)
        #expect(try queue.inDatabase { try $0.integers("PRAGMA synchronous") } == [3])
        queue.close()
    }

    /// Without a key, what would write the first page waits for the next opening, and nothing else.
    @Test func settingsOfANewFileWithoutAKey() throws {
        var configuration = Configuration()
        configuration.cacheSize = 4096
        configuration.journalMode = .wal
        configuration.synchronous = .normal
        for opening in 1...2 {
            let database = Database(path: directory.file("db"), configuration: configuration)
            try database.openVerified()
            #expect(try directory.bytes("db").isEmpty == (isEncrypting && opening == 1))
            #expect(try database.integers("PRAGMA cache_size") == [-4096])
            #expect(try database.integers("PRAGMA synchronous") == [1])
            let mode = try database.executeQuery("PRAGMA journal_mode", values: nil)
            #expect(mode.next() && mode.string(forColumnIndex: 0) == (isEncrypting && opening == 1 ? "delete" : "wal"))
            mode.close()
            try database.executeUpdate("CREATE TABLE IF NOT EXISTS t (a)", values: nil)
            #expect(database.close())
        }
        configuration.journalMode = .persist
        configuration.synchronous = nil
        let database = Database(path: directory.file("other"), configuration: configuration)
        try database.openVerified()
        #expect(try database.integers("PRAGMA synchronous") == [3])
        let mode = try database.executeQuery("PRAGMA journal_mode", values: nil)
        #expect(mode.next() && mode.string(forColumnIndex: 0) == "persist")
        mode.close()
        // The key may follow all the same.
        guard isEncrypting else { return }
        #expect(database.setKey("a passphrase"))
        try database.executeUpdate("CREATE TABLE t (a)", values: nil)
        #expect(try database.integers("PRAGMA synchronous") == [3])
        #expect(database.close())
        #expect(try !directory.bytes("other").starts(with: Data("SQLite format".utf8)))
    }

    @Test func settingsTakeEffect() throws {
        var configuration = Configuration()
        configuration.cacheSize = 4096
        configuration.journalMode = .wal
        configuration.synchronous = .normal
        configuration.key = isEncrypting ? try .testing(1) : nil
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        #expect(try database.integers("PRAGMA cache_size") == [-4096])
        #expect(try database.integers("PRAGMA synchronous") == [1])
        let mode = try database.executeQuery("PRAGMA journal_mode", values: nil)
        #expect(mode.next() && mode.string(forColumnIndex: 0) == "wal")
        mode.close()
        database.maxBusyRetryTimeInterval = 0
        #expect(try database.integers("PRAGMA busy_timeout") == [0])
    }

    @Test func readOnlyDoesNotWrite() throws {
        try Database.testing(directory.file("db")).fill(rows: 2)
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.isReadOnly = true
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        #expect(try database.integers("SELECT count(*) FROM t") == [2])
        #expect(!database.executeUpdate("DELETE FROM t", withArgumentsIn: []))
        #expect(database.lastErrorCode() == SQLITE_READONLY)
    }
}
