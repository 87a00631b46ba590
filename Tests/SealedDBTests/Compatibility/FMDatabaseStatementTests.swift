import Foundation
import SealedDB
import Testing

/// `FMDatabase`: updates, queries, scripts. A test for each member, named after it.
@Suite(.hangLimit)
struct FMDatabaseStatementTests {
    private let db = FMDatabase()

    init() {
        #expect(db.open())
        #expect(db.executeStatements("create table t (a, b)"))
    }

    private func rows(_ sql: String) throws -> [[String?]] {
        let set = try db.executeQuery(sql, values: nil)
        var result: [[String?]] = []
        while try set.nextWithError() {
            result.append((0..<set.columnCount).map { set.string(forColumnIndex: $0) })
        }
        return result
    }

    // MARK: Updates

    @Test func executeUpdateWithArgumentsIn() throws {
        #expect(db.executeUpdate("insert into t values (?, ?)", withArgumentsIn: [1, NSNull()]))
        #expect(try rows("select a, b from t") == [["1", nil]])
        #expect(!db.executeUpdate("insert into t values (?, ?)", withArgumentsIn: [1]))
        #expect(db.lastErrorCode() == SQLITE_RANGE)
        #expect(!db.executeUpdate("insert into nowhere values (1)", withArgumentsIn: []))
        #expect(db.lastErrorMessage() == "no such table: nowhere")
        #expect(try rows("select count(*) from t") == [["1"]])
    }

    @Test func executeUpdateValuesThrows() throws {
        try db.executeUpdate("insert into t values (?, ?)", values: ["a", 2.5])
        try db.executeUpdate("insert into t values ('b', 3)", values: nil)
        #expect(try rows("select a, b from t") == [["a", "2.5"], ["b", "3"]])
        // FMDB throws code 0, "not an error".
        let error = #expect(throws: DatabaseError.self) {
            try db.executeUpdate("insert into t values (?, ?)", values: ["a"])
        }
        #expect(error?.code == SQLITE_RANGE)
        #expect(error.map { $0 as NSError }?.domain == "FMDatabase")
    }

    @Test func executeUpdateWithParameterDictionary() throws {
        // A name used twice is one parameter; surplus keys are ignored.
        #expect(db.executeUpdate("insert into t values (:a, :a)", withParameterDictionary: ["a": 1, "c": 2]))
        #expect(try rows("select a, b from t") == [["1", "1"]])
        #expect(!db.executeUpdate("insert into t values (:a, :b)", withParameterDictionary: ["a": 1]))
        #expect(db.lastErrorMessage().contains(":b"))
        #expect(!db.executeUpdate("insert into t values (?, :b)", withParameterDictionary: ["b": 1]))
        #expect(!db.executeUpdate("insert into t values (@a, $b)", withParameterDictionary: ["a": 1, "b": 2]))
        #expect(try rows("select count(*) from t") == [["1"]])
    }

    @Test func executeUpdatePassesOverRows() throws {
        // FMDB reports a failure for each of these, and leaves the statement open.
        try db.executeUpdate("pragma foreign_keys = on", values: nil)
        try db.executeUpdate("pragma journal_mode = memory", values: nil)
        try db.executeUpdate("insert into t values (1, 2), (3, 4) returning a", values: nil)
        try db.executeUpdate("select * from t", values: nil)
        #expect(try rows("select count(*) from t") == [["2"]])
        #expect(!db.hasOpenResultSets)
    }

    @Test func executeUpdateRefusesSeveralStatements() throws {
        #expect(!db.executeUpdate("insert into t values (1, 1); insert into t values (2, 2)", withArgumentsIn: []))
        #expect(try rows("select count(*) from t") == [["0"]])
        #expect(db.executeUpdate("insert into t values (1, 1);  \n;", withArgumentsIn: []))
        for nothing in ["", " ", "-- a comment", "/* another */"] {
            #expect(!db.executeUpdate(nothing, withArgumentsIn: []))
            #expect(db.lastErrorCode() == SQLITE_MISUSE)
            #expect(db.executeQuery(nothing, withArgumentsIn: []) == nil)
        }
    }

    @Test func lastInsertRowIdAndChanges() throws {
        let closed = FMDatabase()
        #expect(closed.lastInsertRowId == 0 && closed.changes == 0)
        #expect(db.lastInsertRowId == 0)
        try db.executeUpdate("insert into t values (1, 1), (2, 2)", values: nil)
        #expect(db.lastInsertRowId == 2)
        #expect(db.changes == 2)
        try db.executeUpdate("update t set b = 0 where a = 1", values: nil)
        #expect(db.changes == 1)
        // No row: not a failure, but it can be known.
        #expect(db.executeUpdate("update t set b = 0 where a = 99", withArgumentsIn: []))
        #expect(db.changes == 0)
    }

    // MARK: Scripts

    @Test func executeStatements() throws {
        #expect(db.executeStatements("insert into t values (1, 1); -- one\n insert into t values (2, 2)"))
        #expect(try rows("select count(*) from t") == [["2"]])
        // What came before the failure stays.
        #expect(!db.executeStatements("insert into t values (3, 3); no statement; insert into t values (4, 4)"))
        #expect(try rows("select count(*) from t") == [["3"]])
        #expect(!FMDatabase().executeStatements("select 1"))
    }

    @Test func executeStatementsWithResultBlock() throws {
        var seen: [[String: String]] = []
        let script = """
            insert into t values (1, 'x'), (2.5, null), (x'616200', x'ff');
            select a as Name, b from t;
            select 1 as n, 2 as n
            """
        #expect(
            db.executeStatements(script) { row in
                seen.append(
                    Dictionary(uniqueKeysWithValues: row.map { ("\($0.key)", $0.value as? String ?? "NSNull") })
                )
                return 0
            }
        )
        #expect(
            seen == [
                ["Name": "1", "b": "x"], ["Name": "2.5", "b": "NSNull"], ["Name": "ab\0", "b": "NSNull"], ["n": "2"],
            ]
        )
        var count = 0
        #expect(
            !db.executeStatements("select a from t; insert into t values (9, 9)") { _ in
                count += 1
                return 1
            }
        )
        #expect(count == 1)
        #expect(db.lastErrorCode() == SQLITE_ABORT)
        #expect(try rows("select count(*) from t") == [["3"]])
    }

    // MARK: Queries

    @Test func executeQueryWithArgumentsIn() throws {
        #expect(db.executeStatements("insert into t values (1, 'x'), (2, 'y')"))
        let set = try #require(db.executeQuery("select b from t where a > ?", withArgumentsIn: [1]))
        #expect(set.query == "select b from t where a > ?")
        #expect(set.next() && set.string(forColumn: "b") == "y" && !set.next())
        #expect(db.executeQuery("select ?", withArgumentsIn: []) == nil)
        #expect(db.executeQuery("select ?", withArgumentsIn: [1, 2]) == nil)
        #expect(db.executeQuery("no statement", withArgumentsIn: []) == nil)
        #expect(FMDatabase().executeQuery("select 1", withArgumentsIn: []) == nil)
    }

    @Test func executeQueryValuesThrows() throws {
        let set = try db.executeQuery("select ?, ?", values: [1, "x"])
        #expect(set.next() && set.int(forColumnIndex: 0) == 1 && set.string(forColumnIndex: 1) == "x")
        #expect(throws: DatabaseError.self) { try db.executeQuery("select ?", values: nil) }
        #expect(throws: DatabaseError.self) { try FMDatabase().executeQuery("select 1", values: nil) }
    }

    @Test func executeQueryWithParameterDictionary() throws {
        let set = try #require(db.executeQuery("select :x + :y", withParameterDictionary: ["x": 1, "y": 2]))
        #expect(set.next() && set.int(forColumnIndex: 0) == 3)
        #expect(db.executeQuery("select 1", withParameterDictionary: nil) != nil)
        #expect(db.executeQuery("select :x", withParameterDictionary: nil) == nil)
        #expect(db.executeQuery("select :x", withParameterDictionary: [:]) == nil)
    }

    @Test func executionErrorsShowAtNext() throws {
        let set = try #require(db.executeQuery("select abs(-9223372036854775808)", withArgumentsIn: []))
        #expect(!set.next())
        #expect(db.lastErrorMessage() == "integer overflow")
    }

    @Test func prepare() throws {
        let insert = try db.prepare("insert into t values (?, ?)")
        for number in 1...3 {
            #expect(insert.bind(with: [number, "row \(number)"]))
            #expect(insert.step())
        }
        let select = try db.prepare("select b from t where a = :a")
        for number in 1...3 {
            #expect(select.bind(with: ["a": number]))
            #expect(select.next() && select.string(forColumnIndex: 0) == "row \(number)" && !select.next())
        }
        // FMDB returns nil here, with a type that is not optional.
        #expect(throws: DatabaseError.self) { try db.prepare("no statement") }
    }

    @Test func hasOpenResultSetsAndCloseOpenResultSets() throws {
        #expect(!db.hasOpenResultSets)
        var set: FMResultSet? = try db.executeQuery("select 1 union select 2", values: nil)
        #expect(db.hasOpenResultSets)
        #expect(set?.next() == true)
        db.closeOpenResultSets()
        #expect(!db.hasOpenResultSets)
        #expect(set?.next() == false)
        set = try db.executeQuery("select 1", values: nil)
        #expect(db.hasOpenResultSets)
        while set?.next() == true {}
        #expect(!db.hasOpenResultSets)
        set = try db.executeQuery("select 1", values: nil)
        set = nil
        #expect(!db.hasOpenResultSets)
    }

    // MARK: Errors

    @Test func droppingATableThatIsBeingRead() throws {
        #expect(db.executeStatements("insert into t values (1, 1), (2, 2)"))
        let set = try db.executeQuery("select a from t", values: nil)
        #expect(set.next())
        #expect(!db.executeUpdate("drop table t", withArgumentsIn: []))
        #expect(db.lastErrorCode() == SQLITE_LOCKED)
        #expect(db.lastErrorMessage().hasPrefix("A result set of this connection is still open; close it first"))
        set.close()
        #expect(db.executeUpdate("drop table t", withArgumentsIn: []))
    }

    @Test func lastErrorMessageAndCodes() throws {
        #expect(!db.hadError())
        #expect(db.lastErrorMessage() == "not an error")
        #expect(db.lastErrorCode() == 0 && db.lastExtendedErrorCode() == 0)
        #expect((db.lastError() as NSError).code == 0)
        #expect(db.executeStatements("create table k (a primary key) without rowid; insert into k values (1)"))
        #expect(!db.executeUpdate("insert into k values (1)", withArgumentsIn: []))
        #expect(db.hadError())
        #expect(db.lastErrorCode() == SQLITE_CONSTRAINT)
        #expect(db.lastExtendedErrorCode() == SQLITE_CONSTRAINT_PRIMARYKEY)
        let error = db.lastError() as NSError
        #expect(error.domain == "FMDatabase" && error.code == Int(SQLITE_CONSTRAINT))
        #expect(error.localizedDescription == "UNIQUE constraint failed: k.a")
        // A reader that finds nothing is no error.
        let set = try db.executeQuery("select 1", values: nil)
        #expect(set.int(forColumnIndex: 5) == 0 && set.string(forColumn: "none") == nil)
        #expect(!db.hadError())
    }

    @Test func closedDatabaseIsNotOutOfMemory() {
        let closed = FMDatabase()
        #expect(!closed.executeUpdate("select 1", withArgumentsIn: []))
        #expect(closed.lastErrorCode() == SQLITE_MISUSE)
        #expect(closed.lastErrorMessage().contains("not open"))
    }
}
