import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct TypedStatementTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (a, b, c)")
    }

    @Test func manyTypesInOneCall() throws {
        let date = Date(timeIntervalSince1970: 5)
        let absent: String? = nil
        try database.executeUpdate("INSERT INTO t VALUES (?, ?, ?)", 1, "a", absent)
        try database.executeUpdate("INSERT INTO t VALUES (?, ?, ?)", 2.5, Data([1]), date)
        try database.executeUpdate("INSERT INTO t VALUES (?, ?, ?)", true, UUID?.none, [UInt8]([2]))
        try database.executeUpdate("INSERT INTO t VALUES (?, ?, ?)", .null, Optional(7), "b"[...])
        let types = try database.executeQuery("SELECT typeof(a) || typeof(b) || typeof(c) FROM t").all(String.self)
        #expect(types == ["integertextnull", "realblobreal", "integernullblob", "nullintegertext"])
        let rows = try database.executeQuery("SELECT b FROM t WHERE a = ? AND b = ?", 1, "a")
        #expect(try rows.nextWithError())
        #expect(try rows.nextWithError() == false)
    }

    @Test func everyParameterNeedsAValue() throws {
        for call in [
            { try database.executeUpdate("INSERT INTO t VALUES (?, ?, 1)") },
            { try database.executeUpdate("INSERT INTO t VALUES (?, ?, 1)", 1) },
            { try database.executeUpdate("INSERT INTO t VALUES (?, ?, 1)", 1, 2, 3) },
            { _ = try database.executeQuery("SELECT ? + ?", 1) },
            { _ = try database.executeQuery("SELECT 1", 1) },
            { try database.executeUpdate("INSERT INTO t VALUES (?, ?, 1)", values: [1]) },
        ] as [() throws -> Void] {
            let error = #expect(throws: DatabaseError.self) { try call() }
            #expect(error?.code == SQLITE_RANGE)
            #expect(error?.reason == .misuse)
            #expect(error?.message.contains("Nothing was executed") == true)
            #expect(database.lastErrorCode() == SQLITE_RANGE)
        }
        #expect(try database.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 0)
        #expect(!database.hasOpenResultSets)
    }

    @Test func otherErrors() throws {
        #expect(throws: DatabaseError.self) { try database.executeUpdate("INSERT INTO nowhere VALUES (?)", 1) }
        #expect(throws: DatabaseError.self) { try database.executeUpdate("DELETE FROM t; DELETE FROM t") }
        #expect(throws: DatabaseError.self) { try database.executeUpdate("") }
        database.close()
        let error = #expect(throws: DatabaseError.self) { try database.executeUpdate("DELETE FROM t WHERE a = ?", 1) }
        #expect(error?.message == database.lastErrorMessage())
    }

    @Test func preparedSets() throws {
        let insert = try database.prepare("INSERT INTO t VALUES (?, ?, ?)")
        for number in 1...3 {
            try insert.bind(number, "x", number == 2 ? nil : 0.5)
            try insert.stepWithError()
        }
        let missing = #expect(throws: DatabaseError.self) { try insert.bind(1, 2) }
        #expect(missing?.code == SQLITE_RANGE)
        #expect(throws: DatabaseError.self) { try insert.bind(1, 2, 3, 4) }
        try insert.bind(4, "y", 1)
        try insert.stepWithError()
        insert.close()
        #expect(throws: DatabaseError.self) { try insert.bind(1, 2, 3) }
        #expect(try database.executeQuery("SELECT a FROM t WHERE c IS NOT NULL").all(Int.self) == [1, 3, 4])

        let find = try database.prepare("SELECT b FROM t WHERE a = ?")
        try find.bind(4)
        #expect(try find.rows(String.self).all() == ["y"])
        try find.bind(99)
        #expect(try find.rows(String.self).all().isEmpty)
    }

    @Test func failedBindingKeepsTheStatementFromRunning() throws {
        let insert = try database.prepare("INSERT INTO t VALUES (?, ?, ?)")
        try insert.bind(1, 2, 3)
        try insert.stepWithError()
        #expect(throws: DatabaseError.self) { try insert.bind(7, 8, JSON([Double.nan])) }
        let error = #expect(throws: DatabaseError.self) { try insert.stepWithError() }
        #expect(error?.reason == .misuse)
        #expect(!insert.bind(with: [1]))
        #expect(!insert.step())
        #expect(!insert.bind(with: ["a": 1]))
        #expect(!insert.step())
        #expect(try database.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 1)
        try insert.bind(4, 5, 6)
        try insert.stepWithError()
        #expect(try database.executeQuery("SELECT a FROM t").all(Int.self) == [1, 4])
    }

    @Test func typedValuesOfTheCurrentRow() throws {
        let rows = try database.executeQuery("SELECT 300 AS n, 'x' AS Name, NULL AS missing, x'0102' AS bytes")
        let early = #expect(throws: DatabaseError.self) { try rows.value(Int.self, forColumn: "n") }
        #expect(early?.message.contains("stands on no row") == true)
        #expect(try rows.nextWithError())
        let number: Int = try rows.value(forColumn: "n")
        #expect(number == 300)
        #expect(try rows.value(String.self, forColumn: "name") == "x")
        #expect(try rows.value(String.self, forColumnIndex: 1) == "x")
        #expect(try rows.value(Int?.self, forColumn: "missing") == nil)
        #expect(throws: DatabaseError.self) { try rows.value(Int8.self, forColumn: "n") }
        #expect(throws: DatabaseError.self) { try rows.value(Int.self, forColumnIndex: 4) }
        #expect(throws: DatabaseError.self) { try rows.value(Int.self, forColumnIndex: -1) }
        let unknown = #expect(throws: DatabaseError.self) { try rows.value(Int.self, forColumn: "age") }
        #expect(unknown?.message == "There is no column \"age\". The columns are: n, Name, missing, bytes.")
        #expect(database.lastErrorMessage() == unknown?.message)
        #expect(try rows.value(Int.self, forColumn: "n") == 300)
    }

    @Test func bytesWithoutACopy() throws {
        struct Stop: Error {}
        let rows = try database.executeQuery(
            "SELECT x'0102' AS bytes, 'a' || char(0) AS text, NULL AS missing, x'' AS e"
        )
        #expect(rows.withUnsafeBytes(forColumnIndex: 0) { $0.count } == nil)
        #expect(try rows.nextWithError())
        #expect(rows.withUnsafeBytes(forColumnIndex: 0) { [UInt8]($0) } == [1, 2])
        #expect(rows.withUnsafeBytes(forColumn: "text") { [UInt8]($0) } == [97, 0])
        #expect(rows.withUnsafeBytes(forColumn: "missing") { $0.count } == nil)
        #expect(rows.withUnsafeBytes(forColumn: "unknown") { $0.count } == nil)
        #expect(rows.withUnsafeBytes(forColumn: "e") { $0.count } == 0)
        #expect(throws: Stop.self) {
            try rows.withUnsafeBytes(forColumnIndex: 0) { (_) throws(Stop) -> Int in throw Stop() }
        }
    }

    @Test func singleValuesAsInFMDB() throws {
        #expect(try database.intForQuery("SELECT 4294967297") == 1)
        #expect(try database.longForQuery("SELECT '12'") == 12)
        #expect(try database.longForQuery("SELECT \(Int.max)") == .max)
        #expect(try database.boolForQuery("SELECT ? > 1", 2) == true)
        #expect(try database.doubleForQuery("SELECT 1") == 1)
        #expect(try database.stringForQuery("SELECT 5") == "5")
        #expect(try database.dataForQuery("SELECT 'a'") == Data([97]))
        #expect(try database.dateForQuery("SELECT 5") == Date(timeIntervalSince1970: 5))
        let sql = "SELECT ?"
        #expect(try database.intForQuery(sql, 1) == 1)
        #expect(try database.longForQuery(sql, 1) == 1)
        #expect(try database.boolForQuery(sql, 1) == true)
        #expect(try database.doubleForQuery(sql, 1.5) == 1.5)
        #expect(try database.stringForQuery(sql, "x") == "x")
        #expect(try database.dataForQuery(sql, Data([1])) == Data([1]))
        #expect(try database.dateForQuery(sql, Date(timeIntervalSince1970: 1)) == Date(timeIntervalSince1970: 1))
        #expect(try database.intForQuery("SELECT a FROM t") == nil)
        #expect(try database.intForQuery("SELECT NULL") == nil)
        #expect(try database.boolForQuery("SELECT NULL") == nil)
        #expect(throws: DatabaseError.self) { try database.intForQuery("SELECT a FROM nowhere") }
        #expect(throws: DatabaseError.self) { try database.intForQuery("SELECT abs(-9223372036854775807 - 1)") }
        #expect(!database.hasOpenResultSets)
    }
}
