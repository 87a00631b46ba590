import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct ResultSetTests {
    @Test func readersByNameAndIndex() throws {
        let database = try Database.testing(nil)
        let rows = try database.executeQuery(
            "SELECT 7 AS i, 2.5 AS d, 'text' AS T, x'0102' AS b, NULL AS n, x'' AS e",
            values: nil
        )
        #expect(rows.columnCount == 6)
        #expect(rows.long(forColumn: "i") == 0)
        #expect(rows.resultDictionary == nil)
        #expect(rows.next())
        #expect(rows.hasAnotherRow())
        #expect(rows.int(forColumn: "i") == 7)
        #expect(rows.long(forColumnIndex: 0) == 7)
        #expect(rows.longLongInt(forColumn: "I") == 7)
        #expect(rows.unsignedLongLongInt(forColumn: "i") == 7)
        #expect(rows.bool(forColumn: "i"))
        #expect(rows.double(forColumn: "d") == 2.5)
        #expect(rows.string(forColumn: "t") == "text")
        #expect(rows.utf8String(forColumn: "t").map { String(cString: $0) } == "text")
        #expect(rows.data(forColumn: "b") == Data([1, 2]))
        #expect(rows.data(forColumn: "e") == Data())
        #expect(rows.object(forColumn: "e") as? Data == Data())
        #expect(rows["n"] is NSNull)
        #expect(rows["unknown"] == nil)
        #expect(rows[0] as? Int == 7)
        #expect(rows.columnIsNull("n"))
        #expect(rows.columnIndexIsNull(99))
        #expect(rows.type(forColumn: "b") == .blob)
        #expect(rows.columnName(for: 2) == "T")
        #expect(rows.columnName(for: -1) == nil)
        #expect(rows.columnIndex(forName: "none") == -1)
        #expect(rows.resultDictionary?.count == 6)
        #expect(!rows.next())
        #expect(rows.string(forColumnIndex: 2) == nil)
        #expect(!database.hadError())
    }

    @Test func valuesComeBack() throws {
        let database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (v)", values: nil)
        let text = "a\0b – ü"
        let values: [Any] = [
            text, Data(), UInt64.max, Int8(-3), Float(0.5), true, Optional<Int>.none as Any, [UInt8]([9]),
            Decimal(string: "12345678901234567890.123")!, NSNumber(value: 5), Substring("sub"), Optional("some") as Any,
        ]
        for value in values { try database.executeUpdate("INSERT INTO t VALUES (?)", values: [value]) }
        let rows = try database.executeQuery("SELECT v, typeof(v) FROM t ORDER BY rowid", values: nil)
        var types: [String] = []
        while rows.next() {
            types.append(rows.string(forColumnIndex: 1) ?? "")
            switch types.count {
            case 1: #expect(rows.string(forColumnIndex: 0) == text)
            case 3: #expect(rows.unsignedLongLongInt(forColumnIndex: 0) == .max)
            case 9: #expect(rows.string(forColumnIndex: 0) == "12345678901234567890.123")
            default: break
            }
        }
        #expect(
            types == [
                "text", "blob", "integer", "integer", "real", "integer", "null", "blob", "text", "integer", "text",
                "text",
            ]
        )
        for value: Any in [[1, 2], ["a": 1], Stranger()] {
            #expect(!database.executeUpdate("INSERT INTO t VALUES (?)", withArgumentsIn: [value]))
            #expect(database.lastErrorCode() == SQLITE_MISMATCH)
        }
    }

    private struct Stranger {}

    @Test func datesWithAndWithoutFormat() throws {
        let database = try Database.testing(nil)
        let date = Date(timeIntervalSince1970: 1_000_000_000)
        try database.executeUpdate("CREATE TABLE t (d)", values: nil)
        try database.executeUpdate("INSERT INTO t VALUES (?)", values: [date])
        database.setDateFormat(Database.storeableDateFormat("yyyy-MM-dd HH:mm:ss"))
        #expect(database.hasDateFormatter())
        try database.executeUpdate("INSERT INTO t VALUES (?)", values: [date])
        let rows = try database.executeQuery("SELECT d FROM t WHERE typeof(d) = 'text'", values: nil)
        #expect(rows.next())
        #expect(rows.string(forColumnIndex: 0) == "2001-09-09 01:46:40")
        #expect(rows.date(forColumnIndex: 0) == date)
        rows.close()
        database.setDateFormat(nil)
        let seconds = try database.executeQuery("SELECT d FROM t WHERE typeof(d) = 'real'", values: nil)
        #expect(seconds.next() && seconds.date(forColumn: "d") == date)
    }

    @Test func preparedSetsAreBoundAgain() throws {
        let database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (a, b)", values: nil)
        let insert = try database.prepare("INSERT INTO t VALUES (?, ?)")
        for number in 1...3 {
            #expect(insert.bind(with: [number, "x"]))
            #expect(insert.step())
        }
        #expect(!insert.bind(with: [1]))
        #expect(insert.bind(with: [4, "y"]))
        #expect(insert.step())
        insert.close()
        #expect(!insert.step())
        #expect(try database.integers("SELECT a FROM t") == [1, 2, 3, 4])
    }

    @Test func errorsWhileStepping() throws {
        let database = try Database.testing(nil)
        database.makeFunctionNamed("fail", arguments: 1) { [unowned database] context, _, argv in
            if database.valueInt(argv[0]) == 2 {
                database.resultError("no twos", context: context)
            } else {
                database.resultInt(1, context: context)
            }
        }
        let rows = try database.executeQuery("SELECT fail(value) FROM json_each('[1,2]')", values: nil)
        #expect(try rows.nextWithError())
        let error = #expect(throws: DatabaseError.self) { try rows.nextWithError() }
        #expect(error?.message == "no twos")
        #expect(database.hadError())
        #expect(throws: DatabaseError.self) { try rows.nextWithError() }
    }

    @Test func setsEndWithTheirDatabase() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 10)
        let rows = try database.executeQuery("SELECT * FROM t", values: nil)
        #expect(rows.next())
        #expect(database.hasOpenResultSets)
        database.close()
        #expect(!database.hasOpenResultSets)
        #expect(!rows.next())
        #expect(rows.string(forColumn: "body") == nil)
        #expect(rows.columnCount == 0)
        rows.close()
    }

    @Test func setKeepsItsDatabaseAlive() throws {
        var database: Database? = try Database.testing(nil)
        try database?.fill(rows: 3)
        let rows = try #require(try database?.executeQuery("SELECT id FROM t", values: nil))
        database = nil
        #expect(rows.next())
        #expect(rows.long(forColumnIndex: 0) == 1)
    }
}
