import Foundation
import SealedDB
import Testing

/// `FMDatabase`: creating, opening, closing. A test for each member, named after it.
@Suite(.hangLimit)
struct FMDatabaseOpeningTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func initWithoutPathIsInMemory() {
        for db in [FMDatabase(), FMDatabase(path: nil), FMDatabase(url: nil)] {
            #expect(!db.isOpen)
            #expect(db.databasePath == nil)
            #expect(db.databaseURL == nil)
            #expect(db.open())
            #expect(db.executeStatements("create table t (a)"))
            #expect(db.close())
            // Each opening is a database of its own.
            #expect(db.open())
            #expect(!db.tableExists("t"))
        }
    }

    @Test func initNeverTouchesTheDisk() {
        let path = directory.file("db")
        let db = FMDatabase(path: path)
        #expect(db.databasePath == path)
        #expect(db.databaseURL == URL(fileURLWithPath: path))
        #expect(FMDatabase(url: URL(fileURLWithPath: path)).databasePath == path)
        #expect(directory.names == [])
    }

    @Test func initWithEmptyPathIsTemporary() {
        let db = FMDatabase(path: "")
        #expect(db.open())
        #expect(db.executeStatements("create table t (a); insert into t values (1)"))
        #expect(db.close())
        #expect(directory.names == [])
    }

    @Test func openCreatesAndIsIdempotent() {
        let db = FMDatabase(path: directory.file("db"))
        #expect(db.open())
        #expect(db.isOpen)
        #expect(db.executeStatements("create table t (a)"))
        #expect(db.open())
        #expect(db.tableExists("t"))
        #expect(directory.names == ["db"])
    }

    @Test func openFailsWithItsReason() {
        let db = FMDatabase(path: directory.file("no/such/directory/db"))
        #expect(!db.open())
        #expect(!db.isOpen)
        #expect(db.hadError())
        #expect(db.lastErrorCode() == SQLITE_CANTOPEN)
        #expect(db.lastErrorMessage().contains("no/such/directory/db"))
    }

    /// The first use tells that it is no database, unless a setting is asked for that nobody can make then.
    @Test func openOfAFileThatOnlyBeginsLikeADatabase() throws {
        let bytes = Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0x55, count: 4080)
        try directory.write("db", bytes)
        let db = FMDatabase(path: directory.file("db"))
        #expect(db.open())
        #expect(!db.executeStatements("create table t (a)"))
        #expect(db.lastErrorCode() == SQLITE_NOTADB)
        db.close()
        var configuration = Configuration()
        configuration.synchronous = .full
        let set = Database(path: directory.file("db"), configuration: configuration)
        #expect(!set.open())
        #expect(set.lastErrorCode() == SQLITE_NOTADB)
        #expect(try directory.bytes("db") == Data(bytes))
        #expect(directory.names == ["db"])
    }

    @Test func openWithFlags() {
        let db = FMDatabase(path: directory.file("db"))
        #expect(!db.open(withFlags: SQLITE_OPEN_READWRITE))
        #expect(db.open(withFlags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE))
        #expect(db.executeStatements("create table t (a)"))
        // Already open: true, whatever the flags.
        #expect(db.open(withFlags: SQLITE_OPEN_READONLY))
        #expect(db.executeStatements("insert into t values (1)"))
        #expect(db.close())
        #expect(db.open(withFlags: SQLITE_OPEN_READONLY))
        #expect(!db.executeStatements("insert into t values (2)"))
        #expect(db.lastErrorCode() == SQLITE_READONLY)
    }

    @Test func openWithFlagsAndVFS() {
        let db = FMDatabase(path: directory.file("db"))
        #expect(!db.open(withFlags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs: "no such VFS"))
        #expect(db.hadError())
        #expect(db.open(withFlags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs: "unix-dotfile"))
        #expect(db.executeStatements("create table t (a)"))
    }

    @Test func closeIsIdempotentAndEndsResultSets() throws {
        let db = FMDatabase(path: directory.file("db"))
        #expect(db.close())
        #expect(db.open())
        #expect(db.executeStatements("create table t (a); insert into t values (1), (2)"))
        let rows = try #require(db.executeQuery("select a from t", withArgumentsIn: []))
        #expect(rows.next())
        let prepared = try db.prepare("insert into t values (?)")
        #expect(db.close())
        #expect(!rows.next())
        #expect(!prepared.step())
        #expect(db.close())
        #expect(!db.isOpen)
    }

    @Test func settingsSurviveReopening() {
        let db = FMDatabase(path: directory.file("db"))
        db.maxBusyRetryTimeInterval = 0.25
        db.setDateFormat(FMDatabase.storeableDateFormat("yyyy"))
        #expect(db.open() && db.close() && db.open())
        #expect(db.maxBusyRetryTimeInterval == 0.25)
        #expect(db.hasDateFormatter())
        let rows = db.executeQuery("pragma busy_timeout", withArgumentsIn: [])
        #expect(rows?.next() == true && rows?.int(forColumnIndex: 0) == 250)
    }

    @Test func goodConnectionReadsTheFile() throws {
        let db = FMDatabase(path: directory.file("db"))
        #expect(!db.goodConnection)
        #expect(db.open())
        #expect(db.executeStatements("create table t (a)"))
        #expect(db.goodConnection)
        try FileManager.default.moveItem(atPath: directory.file("db"), toPath: directory.file("elsewhere"))
        #expect(!db.goodConnection)
        #expect(db.close())
        #expect(!db.goodConnection)
        try Data("this is no database, but long enough for a header or two. ".utf8)
            .write(to: URL(fileURLWithPath: directory.file("text")))
        let other = FMDatabase(path: directory.file("text"))
        #expect(other.open())
        #expect(!other.goodConnection)
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func goodConnectionTestsTheKey() throws {
        try Database.testing(directory.file("db")).fill(rows: 1)
        let db = FMDatabase(path: directory.file("db"))
        #expect(db.open())
        #expect(!db.goodConnection)
        #expect(!db.setKey("wrong"))
        #expect(!db.goodConnection)
        #expect(db.open())
        #expect(db.setKey("x'" + String(repeating: "01", count: 32) + "'"))
        #expect(db.goodConnection)
    }

    @Test func sqliteHandle() {
        let db = FMDatabase()
        #expect(db.sqliteHandle == nil)
        #expect(db.open())
        #expect(db.sqliteHandle != nil)
        #expect(db.close())
        #expect(db.sqliteHandle == nil)
    }

    @Test func interrupt() throws {
        let db = FMDatabase()
        #expect(!db.interrupt())
        #expect(db.open())
        #expect(db.interrupt())
        // From within a statement, so that it is sure to be running.
        db.makeFunctionNamed("stop", arguments: 0) { [unowned db] _, _, _ in db.interrupt() }
        let rows = try db.executeQuery(
            "with recursive n(i) as (select stop() union all select 1 from n) select count(*) from n",
            values: nil
        )
        #expect(!rows.next())
        #expect(db.lastErrorCode() == SQLITE_INTERRUPT)
    }

    @Test func versions() {
        #expect(FMDatabase.isSQLiteThreadSafe())
        #expect(FMDatabase.sqliteLibVersion().hasPrefix("3."))
        #expect(FMDatabase.fmdbUserVersion() == "2.7.12")
    }
}
