import Foundation
import SealedDB
import Testing

/// `FMResultSet` and `FMStatement`. A test for each member, named after it.
@Suite(.hangLimit)
struct FMResultSetTests {
    private let db = FMDatabase()

    init() {
        #expect(db.open())
    }

    private func row(_ sql: String, _ values: [Any] = []) throws -> FMResultSet {
        let set = try db.executeQuery(sql, values: values)
        #expect(set.next())
        return set
    }

    // MARK: Stepping and lifetime

    @Test func nextAndHasAnotherRow() throws {
        let set = try db.executeQuery("select 1 union all select 2", values: nil)
        #expect(!set.hasAnotherRow())
        #expect(set.next() && set.hasAnotherRow())
        // Other calls on the connection do not change it.
        #expect(try db.integers("select 3") == [3])
        #expect(set.hasAnotherRow())
        #expect(set.next() && !set.next())
        #expect(!set.hasAnotherRow() && !set.next())
        #expect(set.parentDB == nil)
    }

    @Test func nextWithError() throws {
        let set = try db.executeQuery("select 1 union all select abs(-9223372036854775808)", values: nil)
        #expect(try set.nextWithError())
        let error = #expect(throws: DatabaseError.self) { try set.nextWithError() }
        #expect(error?.message == "integer overflow")
        // The end is no error; a call after it is.
        let end = try db.executeQuery("select 1 where 0", values: nil)
        #expect(try !end.nextWithError())
        #expect(throws: DatabaseError.self) { try end.nextWithError() }
    }

    @Test func stepAndStepWithError() throws {
        #expect(db.executeStatements("create table t (a unique)"))
        let insert = try db.prepare("insert into t values (?)")
        #expect(insert.bind(with: [1]) && insert.step())
        #expect(insert.bind(with: [1]) && !insert.step())
        #expect(db.lastErrorCode() == SQLITE_CONSTRAINT)
        #expect(insert.bind(with: [1]))
        #expect(throws: DatabaseError.self) { try insert.stepWithError() }
        #expect(insert.bind(with: [2]))
        #expect(try insert.stepWithError())
        #expect(try !db.prepare("select 1").stepWithError())
    }

    @Test func closeIsIdempotent() throws {
        let set = try row("select 1 as a")
        #expect(set.parentDB === db && set.statement != nil)
        set.close()
        set.close()
        #expect(set.parentDB == nil && set.statement == nil && set.query == "select 1 as a")
        #expect(!set.next() && !set.step() && set.columnCount == 0 && set.columnName(for: 0) == nil)
        #expect(set.int(forColumn: "a") == 0 && set.object(forColumn: "a") == nil && set.columnIsNull("a"))
        #expect(!set.bind(with: [1]) && !set.bind(with: ["a": 1]))
    }

    @Test func bindWithArrayAndDictionary() throws {
        let set = try db.prepare("select :a, :b")
        #expect(set.bind(with: [1, "x"]) && set.next())
        #expect(set.int(forColumnIndex: 0) == 1)
        #expect(set.bind(with: ["a": 2, "b": NSNull(), "surplus": 3]) && set.next())
        #expect(set.int(forColumnIndex: 0) == 2 && set.columnIndexIsNull(1))
        // A set whose values were refused can be bound again; FMDB would use freed memory.
        #expect(!set.bind(with: [1]) && !set.bind(with: ["a": 1]) && !set.bind(with: [1, 2, 3]))
        #expect(set.bind(with: [3, 4]) && set.next() && set.int(forColumnIndex: 0) == 3)
    }

    @Test func statement() throws {
        let set = try db.executeQuery("select ?", values: [1])
        let statement = try #require(set.statement)
        #expect(statement.query == "select ?" && statement.useCount == 1 && statement.inUse)
        #expect(set.next())
        statement.reset()
        #expect(!set.hasAnotherRow())
        #expect(set.next() && set.int(forColumnIndex: 0) == 1)
        statement.close()
        statement.close()
        #expect(!statement.inUse && statement.query == "")
        #expect(!set.next())
    }

    // MARK: Columns

    @Test func columnsByNameAndIndex() throws {
        let set = try db.executeQuery("select 1 as Name, 2 as NAME, 3 as 't.a', 4 as ÄÖ, 5 as b, 6 as b", values: nil)
        #expect(set.columnCount == 6)
        #expect(set.columnIndex(forName: "Name") == 0 && set.columnIndex(forName: "NAME") == 1)
        #expect(set.columnIndex(forName: "name") == 1)
        #expect(set.columnIndex(forName: "T.A") == 2 && set.columnIndex(forName: "äö") == 3)
        // Of equal names the last counts.
        #expect(set.columnIndex(forName: "b") == 5)
        #expect(set.columnIndex(forName: "unknown") == -1)
        #expect(set.columnName(for: 0) == "Name" && set.columnName(for: 6) == nil && set.columnName(for: -1) == nil)
        #expect(set.columnNameToIndexMap == ["name": 1, "t.a": 2, "äö": 3, "b": 5])
    }

    @Test func nullAndType() throws {
        let set = try db.executeQuery("select 1, 1.5, 'x', x'00', null, x'', ''", values: nil)
        #expect(set.columnIndexIsNull(0) && set.type(forColumnIndex: 0) == .null)
        #expect(set.next())
        let types: [SqliteValueType] = [.integer, .float, .text, .blob, .null, .blob, .text]
        #expect((0..<7).map { set.type(forColumnIndex: $0) } == types)
        #expect((0..<7).map { set.columnIndexIsNull($0) } == types.map { $0 == .null })
        #expect(set.type(forColumn: "unknown") == .null && set.columnIsNull("unknown"))
        #expect(set.columnIndexIsNull(99) && set.columnIndexIsNull(-1))
        #expect(!set.next() && set.columnIndexIsNull(0))
    }

    // MARK: Readers

    @Test func readersOfNumbers() throws {
        let set = try row("select ? as a, ? as b, null as n, 'abc' as t, 0.5 as h, 'true' as y", [Int64.max, -1.5])
        #expect(set.int(forColumn: "a") == -1 && set.int(forColumnIndex: 1) == -1)
        #expect(set.long(forColumn: "a") == Int.max && set.long(forColumnIndex: 0) == Int.max)
        #expect(set.longLongInt(forColumn: "a") == .max && set.longLongInt(forColumnIndex: 0) == .max)
        #expect(set.double(forColumn: "b") == -1.5 && set.double(forColumnIndex: 1) == -1.5)
        for name in ["n", "t", "unknown"] {
            #expect(set.int(forColumn: name) == 0 && set.double(forColumn: name) == 0 && !set.bool(forColumn: name))
            #expect(set.unsignedLongLongInt(forColumn: name) == 0 && set.long(forColumn: name) == 0)
        }
        #expect(!set.bool(forColumn: "h") && !set.bool(forColumn: "y"))
        // FMDB looks at 32 bits of it only.
        #expect(try row("select 4294967296").bool(forColumnIndex: 0))
    }

    @Test func unsignedLongLongInt() throws {
        let set = try row("select ?, ?", [UInt64.max, UInt64(1) << 63])
        #expect(set.unsignedLongLongInt(forColumnIndex: 0) == .max)
        #expect(set.unsignedLongLongInt(forColumnIndex: 1) == 1 << 63)
        #expect(set.longLongInt(forColumnIndex: 0) == -1)
    }

    @Test func stringAndUTF8String() throws {
        let set = try row("select ? as s, 12, cast(x'ff' as text), null, ''", ["a\0b \u{1F512}"])
        #expect(set.string(forColumn: "s") == "a\0b \u{1F512}")
        #expect(set.string(forColumnIndex: 1) == "12")
        #expect(set.string(forColumnIndex: 2) == nil && set.string(forColumnIndex: 3) == nil)
        #expect(set.string(forColumnIndex: 4) == "")
        #expect(set.utf8String(forColumnIndex: 1).map { String(cString: $0) } == "12")
        #expect(set.utf8String(forColumn: "s")?.pointee == UInt8(ascii: "a"))
        #expect(set.utf8String(forColumnIndex: 3) == nil)
    }

    @Test func data() throws {
        let set = try row("select ? as d, x'', 'text', null", [Data([0, 1, 255])])
        #expect(set.data(forColumn: "d") == Data([0, 1, 255]))
        #expect(set.data(forColumnIndex: 1) == Data())
        #expect(set.data(forColumnIndex: 2) == Data("text".utf8))
        #expect(set.data(forColumnIndex: 3) == nil && set.data(forColumn: "unknown") == nil)
    }

    @Test func objectAndSubscripts() throws {
        let set = try row("select 1 as i, 2.5 as r, x'01' as b, 't' as t, null as n, x'' as e")
        #expect(set.object(forColumn: "i") as? Int == 1 && set["i"] as? Int64 == 1 && set[0] as? Bool == true)
        #expect(set["r"] as? Double == 2.5 && set.object(forColumnIndex: 1) as? Double == 2.5)
        #expect(set["b"] as? Data == Data([1]) && set["t"] as? String == "t")
        #expect(set["n"] is NSNull && set["e"] as? Data == Data())
        #expect(set["unknown"] == nil && set[99] == nil)
    }

    @Test func resultDictionary() throws {
        let set = try db.executeQuery("select 1 as One, null as n, 2 as d, 3 as d", values: nil)
        #expect(set.resultDictionary == nil)
        #expect(set.next())
        let row = try #require(set.resultDictionary)
        #expect(row.count == 3)
        #expect(row["One"] as? Int == 1 && row["n"] is NSNull && row["d"] as? Int == 3 && row["one"] == nil)
        #expect(!set.next() && set.resultDictionary == nil)
    }

    @Test func setsInterleave() throws {
        let first = try row("select 1 union all select 2")
        let second = try row("select 3 union all select 4")
        #expect(first.int(forColumnIndex: 0) == 1 && second.int(forColumnIndex: 0) == 3)
        #expect(first.next() && second.next())
        #expect(first.int(forColumnIndex: 0) == 2 && second.int(forColumnIndex: 0) == 4)
    }
}
