import Foundation
import SealedDB
import Testing

/// `FMDatabase`: checkpoints, limits, dates, and the additions. A test for each member, named after it.
@Suite(.hangLimit)
struct FMDatabaseMaintenanceTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func memory() -> FMDatabase {
        let db = FMDatabase()
        #expect(db.open())
        return db
    }

    // MARK: Checkpoints and limits

    @Test func checkpointInEachMode() throws {
        let db = try Database.testing(directory.file("db"), journalMode: .wal)
        for mode: FMDBCheckpointMode in [.passive, .full, .restart, .truncate] {
            try db.fill(rows: 5)
            try db.checkpoint(mode)
            try db.fill(rows: 5)
            try db.checkpoint(mode, name: "main")
            try db.fill(rows: 5)
            var frames: Int32 = -7
            var moved: Int32 = -7
            try db.checkpoint(mode, name: nil, logFrameCount: &frames, checkpointCount: &moved)
            #expect(mode == .truncate ? frames == 0 : frames > 0)
            #expect(moved == frames)
        }
    }

    @Test func checkpointWithoutALog() throws {
        let db = memory()
        var frames: Int32 = -7
        var moved: Int32 = -7
        try db.checkpoint(.passive, name: nil, logFrameCount: &frames, checkpointCount: &moved)
        #expect(frames == -1 && moved == -1)
    }

    @Test func checkpointReportsFailures() throws {
        #expect(throws: DatabaseError.self) { try FMDatabase().checkpoint(.full) }
        let db = try Database.testing(directory.file("db"), journalMode: .wal)
        db.maxBusyRetryTimeInterval = 0
        #expect(throws: DatabaseError.self) { try db.checkpoint(.full, name: "unknown") }
        let other = try Database.testing(directory.file("db"))
        try other.fill(rows: 1)
        #expect(other.beginImmediateTransaction())
        let error = #expect(throws: DatabaseError.self) { try db.checkpoint(.truncate) }
        #expect(error?.reason == .busy)
    }

    @Test func limit() throws {
        #expect(FMDatabase().limit(for: SQLITE_LIMIT_LENGTH, value: -1) == -1)
        let db = memory()
        let former = db.limit(for: SQLITE_LIMIT_LENGTH, value: 1000)
        #expect(former > 1000)
        #expect(db.limit(for: SQLITE_LIMIT_LENGTH, value: -1) == 1000)
        #expect(db.limit(for: 99, value: -1) == -1)
        #expect(!db.executeUpdate("select ?", withArgumentsIn: [Data(count: 1001)]))
        #expect(db.lastErrorCode() == SQLITE_TOOBIG)
        #expect(db.executeQuery("select ?", withArgumentsIn: [String(repeating: "x", count: 1001)]) == nil)
        #expect(db.lastErrorCode() == SQLITE_TOOBIG)
    }

    // MARK: Dates

    @Test func dateFormats() throws {
        let db = memory()
        #expect(!db.hasDateFormatter())
        #expect(db.date(from: "2001-02-03") == nil && db.string(from: Date()) == nil)
        db.setDateFormat(FMDatabase.storeableDateFormat("yyyy-MM-dd HH:mm:ss"))
        #expect(db.hasDateFormatter())
        let date = try #require(db.date(from: "2001-02-03 04:05:06"))
        #expect(date == Date(timeIntervalSince1970: 981_173_106))
        #expect(db.string(from: date) == "2001-02-03 04:05:06")
        #expect(db.date(from: "no date") == nil)
        let set = try db.executeQuery("select ?, 'no date', null", values: [date])
        #expect(set.next())
        #expect(set.string(forColumnIndex: 0) == "2001-02-03 04:05:06")
        #expect(set.date(forColumnIndex: 0) == date)
        #expect(set.date(forColumnIndex: 1) == nil && set.date(forColumnIndex: 2) == nil)
        db.setDateFormat(nil)
        let seconds = try db.executeQuery("select ?, 0, null", values: [date])
        #expect(seconds.next())
        #expect(seconds.double(forColumnIndex: 0) == 981_173_106)
        #expect(seconds.date(forColumnIndex: 0) == date)
        #expect(seconds.date(forColumnIndex: 1) == Date(timeIntervalSince1970: 0))
        #expect(seconds.date(forColumnIndex: 2) == nil)
    }

    // MARK: Additions

    @Test func tableExists() {
        let db = memory()
        #expect(db.executeStatements("create table Äpfel (a); create view v as select 1; create temp table x (a)"))
        #expect(db.tableExists("Äpfel") && db.tableExists("ÄPFEL") && !db.tableExists("äpfel"))
        #expect(!db.tableExists("v") && !db.tableExists("x") && !db.tableExists("' or 1 or '"))
        #expect(!FMDatabase().tableExists("t"))
    }

    @Test func getSchema() throws {
        let db = memory()
        #expect(
            db.executeStatements(
                """
                create table b (id integer primary key autoincrement, x unique);
                create table a (x); create index a_x on a (x); create temp table c (x)
                """
            )
        )
        let set = try #require(db.getSchema())
        var names: [String] = []
        while set.next() {
            names.append("\(set.string(forColumn: "type") ?? "") \(set.string(forColumn: "name") ?? "")")
        }
        #expect(names == ["table a", "index a_x", "table b", "table c"])
        let first = try #require(db.getSchema())
        #expect(first.next())
        #expect(first.string(forColumn: "tbl_name") == "a" && first.int(forColumn: "rootpage") > 1)
        #expect(first.string(forColumn: "sql") == "CREATE TABLE a (x)")
        #expect(FMDatabase().getSchema() == nil)
    }

    @Test func getTableSchema() throws {
        let db = memory()
        #expect(db.executeStatements("create table \"it's 1\" (a integer primary key, b text not null default 'x')"))
        let set = try #require(db.getTableSchema("it's 1"))
        #expect(set.next())
        #expect(set.string(forColumn: "name") == "a" && set.int(forColumn: "pk") == 1)
        #expect(set.next())
        #expect(set.int(forColumn: "cid") == 1 && set.string(forColumn: "type") == "TEXT")
        #expect(set.bool(forColumn: "notnull") && set.string(forColumn: "dflt_value") == "'x'")
        #expect(!set.next())
        let unknown = try #require(db.getTableSchema("unknown"))
        #expect(!unknown.next() && !db.hadError())
    }

    @Test func columnExists() {
        let db = memory()
        #expect(db.executeStatements("create table t (Name)"))
        #expect(db.columnExists("name", inTableWithName: "T"))
        #expect(!db.columnExists("other", inTableWithName: "t"))
        #expect(!db.columnExists("name", inTableWithName: "unknown"))
    }

    @available(*, deprecated, message: "tests what is deprecated")
    @Test func deprecatedNames() throws {
        let db = memory()
        #expect(db.executeStatements("create table t (Name)"))
        #expect(db.columnExists("t", columnName: "name"))
        #expect(!db.inTransaction())
        let set = try db.executeQuery("select 1 as One", values: nil)
        #expect(set.resultDict() == nil)
        #expect(set.next())
        #expect(set.resultDict()?["one"] as? Int == 1)
    }

    @Test func validateSQL() throws {
        let db = memory()
        try db.validateSQL("select 1")
        try db.validateSQL("create table t (a)")
        #expect(!db.tableExists("t"))
        try db.validateSQL("pragma user_version = 7")
        #expect(db.userVersion == 0)
        // This one takes effect when it is compiled.
        try db.validateSQL("pragma foreign_keys = on")
        #expect(try db.integers("pragma foreign_keys") == [0])
        for wrong in ["select", "select * from unknown", "select 1; select 2", ""] {
            #expect(throws: DatabaseError.self) { try db.validateSQL(wrong) }
        }
        for sql in ["select 1", "pragma user_version"] {
            let error = #expect(throws: DatabaseError.self) { try FMDatabase().validateSQL(sql) }
            #expect(error?.reason == .misuse)
        }
    }

    @Test func applicationIDAndUserVersion() throws {
        let db = try Database.testing(directory.file("db"))
        #expect(db.applicationID == 0 && db.userVersion == 0)
        #expect(db.applicationIDString == "")
        db.applicationIDString = "acrn"
        #expect(db.applicationID == 0x6163_726e && db.applicationIDString == "acrn")
        for wrong in ["", "abc", "abcde", "äbc", "a\nbc"] {
            db.applicationIDString = wrong
            #expect(db.hadError())
            #expect(db.applicationIDString == "acrn")
        }
        db.userVersion = .max
        db.applicationID = 0x8000_0000
        #expect(db.close() && db.open())
        #expect(db.userVersion == .max && db.applicationID == 0x8000_0000)
        #expect(db.close())
        #expect(db.userVersion == 0 && db.hadError())
        db.userVersion = 1
        #expect(db.hadError())
    }
}
