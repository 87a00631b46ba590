import Foundation
import SealedDB
import Testing

/// Every type goes through a column and comes back.
@Suite(.hangLimit)
struct ValueTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (v)")
    }

    /// Stores the value alone, checks its SQL type, and reads it back.
    private func stored<Value: Bindable & ColumnReadable>(_ value: Value, as type: String) throws -> Value {
        try database.executeUpdate("DELETE FROM t")
        try database.executeUpdate("INSERT INTO t VALUES (?)", value)
        let (result, found) = try #require(
            try database.executeQuery("SELECT v, typeof(v) FROM t").first((Value, String).self)
        )
        #expect(found == type)
        return result
    }

    private func extremes<Value: FixedWidthInteger & Bindable & ColumnReadable>(_ type: Value.Type) throws {
        for value in [Value.min, 0, 1, Value.max] { #expect(try stored(value, as: "integer") == value) }
    }

    @Test func integers() throws {
        try extremes(Int.self)
        try extremes(Int8.self)
        try extremes(Int16.self)
        try extremes(Int32.self)
        try extremes(Int64.self)
        try extremes(UInt.self)
        try extremes(UInt8.self)
        try extremes(UInt16.self)
        try extremes(UInt32.self)
        try extremes(UInt64.self)
        _ = try stored(UInt64.max, as: "integer")
        #expect(try database.executeQuery("SELECT v FROM t").scalar(Int64.self) == -1)
    }

    @Test func floatingPoint() throws {
        for value in [0, 1.5, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity] as [Double] {
            #expect(try stored(value, as: "real") == value)
        }
        #expect(try stored(-0.0, as: "real").sign == .minus)
        for value in [0, 1.5, .greatestFiniteMagnitude, -.infinity] as [Float] {
            #expect(try stored(value, as: "real") == value)
        }
        #expect(try stored(Double.nan as Double?, as: "null") == nil)
        #expect(try stored(Float.nan as Float?, as: "null") == nil)
        #expect(try database.executeQuery("SELECT 9007199254740993").scalar(Double.self) == 9_007_199_254_740_992)
    }

    @Test func booleans() throws {
        #expect(try stored(true, as: "integer"))
        #expect(try stored(false, as: "integer") == false)
        #expect(try database.executeQuery("SELECT 4294967296").scalar(Bool.self) == true)
    }

    @Test func text() throws {
        for value in ["", "a", "a\0b\0", "👩‍👩‍👧‍👦 – ü", String(repeating: "long ", count: 100_000), "'); DROP TABLE t; --"] {
            #expect(try stored(value, as: "text") == value)
        }
        #expect(try stored("xabc".dropFirst(), as: "text") == "abc")
    }

    @Test func bytes() throws {
        for value in [Data(), Data([0, 255, 0]), Data(repeating: 7, count: 1_000_000), Data([1, 2, 3, 4])[2...]] {
            #expect(try stored(value, as: "blob") == value)
        }
        #expect(try stored([UInt8](), as: "blob") == [])
        #expect(try stored([0, 255] as [UInt8], as: "blob") == [0, 255])
        #expect(try stored(Data() as Data?, as: "blob") == Data())
        #expect(try stored(nil as Data?, as: "null") == nil)
    }

    @Test func optionals() throws {
        #expect(try stored(nil as Int?, as: "null") == nil)
        #expect(try stored(5 as Int?, as: "integer") == 5)
        #expect(try stored(Optional(Optional("x")), as: "text") == "x")
        try database.executeUpdate("INSERT INTO t VALUES (?)", .null)
        #expect(try database.executeQuery("SELECT count(*) FROM t WHERE v IS NULL").scalar(Int.self) == 1)
    }

    @Test func foundationTypes() throws {
        let identifier = UUID()
        #expect(try stored(identifier, as: "text") == identifier)
        let bytes = withUnsafeBytes(of: identifier.uuid) { Data($0) }
        #expect(try database.executeQuery("SELECT \(bytes)").scalar(UUID.self) == identifier)
        #expect(try database.executeQuery("SELECT lower(\(identifier))").scalar(UUID.self) == identifier)

        let url = try #require(URL(string: "https://example.org/a%20b?q=ü#f"))
        #expect(try stored(url, as: "text") == url)

        for text in ["0", "-1.5", "12345678901234567890.123456789012345678", "0.000000000000000000000000000001"] {
            let value = try #require(Decimal(string: text))
            #expect(try stored(value, as: "text") == value)
        }
        #expect(try stored(Decimal.greatestFiniteMagnitude, as: "text") == .greatestFiniteMagnitude)
        #expect(try stored(Decimal.nan as Decimal?, as: "null") == nil)
        #expect(try database.executeQuery("SELECT 0.1").scalar(Decimal.self) == Decimal(string: "0.1"))
        #expect(
            try database.executeQuery("SELECT 1e300 / 1e290").scalar(Decimal.self) == Decimal(string: "10000000000")
        )
        #expect(try database.executeQuery("SELECT 9223372036854775807").scalar(Decimal.self) == Decimal(Int64.max))
        #expect(try database.executeQuery("SELECT '+01.50e1'").scalar(Decimal.self) == 15)
    }

    @Test func decimalsInANumericColumn() throws {
        try database.executeUpdate("CREATE TABLE price (amount DECIMAL(10, 2))")
        let amount = try #require(Decimal(string: "19.99"))
        try database.executeUpdate("INSERT INTO price VALUES (\(amount))")
        #expect(try database.executeQuery("SELECT amount FROM price").scalar(Decimal.self) == amount)
    }

    @Test func dates() throws {
        let date = Date(timeIntervalSince1970: 1_000_000_000.25)
        #expect(try stored(date, as: "real") == date)
        #expect(
            try database.executeQuery("SELECT 1000000000").scalar(Date.self)
                == Date(timeIntervalSince1970: 1_000_000_000)
        )
        #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT 'in 2001'").scalar(Date.self) }

        database.setDateFormat(Database.storeableDateFormat("yyyy-MM-dd HH:mm:ss"))
        let whole = Date(timeIntervalSince1970: 1_000_000_000)
        #expect(try stored(whole, as: "text") == whole)
        #expect(try database.executeQuery("SELECT v FROM t").scalar(String.self) == "2001-09-09 01:46:40")
        #expect(try database.executeQuery("SELECT \(whole)").scalar(String.self) == "2001-09-09 01:46:40")
        for wrong: SQL in ["'yesterday'", "1000000000", "1e9"] {
            #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT \(wrong)").scalar(Date.self) }
        }
        try database.executeUpdate("INSERT INTO t VALUES (?)", values: [whole])
        #expect(try database.executeQuery("SELECT count(*) FROM t WHERE v = \(whole)").scalar(Int.self) == 2)
    }

    @Test func valuesOfAnyType() throws {
        for (value, type) in [
            (.null, "null"), (.integer(.min), "integer"), (.real(1.5), "real"), (.text("a\0b"), "text"),
            (.blob(Data([0])), "blob"), (.blob(Data()), "blob"),
        ] as [(SQLValue, String)] {
            #expect(try stored(value, as: type) == value)
        }
    }

    @Test func databasesInUTF16() throws {
        let other = Database(path: nil)
        #expect(other.open())
        #expect(other.executeStatements("PRAGMA encoding = 'UTF-16'; CREATE TABLE t (v)"))
        try other.executeUpdate("INSERT INTO t VALUES (\("a\0ü👍")), (\(JSON(["ü"])))")
        #expect(try other.executeQuery("SELECT v FROM t").first(String.self) == "a\0ü👍")
        #expect(try other.executeQuery("SELECT v FROM t WHERE rowid = 2").scalar(JSON<[String]>.self)?.value == ["ü"])
        let rows = try other.executeQuery("SELECT v FROM t")
        #expect(rows.next())
        #expect(rows.withUnsafeBytes(forColumn: "v") { [UInt8]($0) } == [UInt8]("a\0ü👍".utf8))
        #expect(rows.data(forColumn: "v") == Data("a\0ü👍".utf8))
    }

    private enum Colour: String, Bindable, ColumnReadable { case red, green }
    private struct Flags: OptionSet, Bindable, ColumnReadable { let rawValue: UInt8 }

    @Test func rawValues() throws {
        #expect(try stored(Colour.green, as: "text") == .green)
        #expect(try stored(Flags(rawValue: 5), as: "integer") == Flags(rawValue: 5))
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 'mauve' AS c").scalar(Colour.self)
        }
        #expect(error?.message.contains("raw values") == true)
        #expect(error?.message.contains("mauve") == false)
    }

    struct Celsius: Bindable, ColumnReadable, Equatable {
        var degrees: Double

        init(_ degrees: Double) { self.degrees = degrees }

        func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
            guard degrees >= -273.15 else { throw slot.mismatch(Self.self, "is below absolute zero") }
            try degrees.bind(to: slot)
        }

        init(column: borrowing Column) throws(DatabaseError) {
            degrees = try Double(column: column)
            if degrees < -273.15 { throw column.mismatch(Self.self, "that is below absolute zero") }
        }
    }

    /// Binds the bytes, and reads column properties.
    struct Raw: Bindable, ColumnReadable {
        var bytes: [UInt8]
        var name = ""

        func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
            let result = bytes.withUnsafeBytes { bytes in Array(bytes) }
            if result.isEmpty { try slot.bindNull() } else { try slot.bind(String(decoding: result, as: UTF8.self)) }
        }

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        init(column: borrowing Column) throws(DatabaseError) {
            guard column.type == .text || column.isNull else { throw column.mismatch(Self.self) }
            bytes = column.withUnsafeBytes { [UInt8]($0) }
            name = "\(column.name)/\(column.index)"
        }
    }

    @Test func typesOfOnesOwn() throws {
        #expect(try stored(Celsius(21.5), as: "real") == Celsius(21.5))
        let binding = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t VALUES (?)", Celsius(-300))
        }
        #expect(binding?.reason == .typeMismatch)
        #expect(binding?.message == "The Celsius for parameter 1 is below absolute zero. Nothing was executed.")
        let reading = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT -300 AS temp").scalar(Celsius.self)
        }
        #expect(
            reading?.message
                == "Row 1, column \"temp\" (index 0): expected Celsius, found INTEGER that is below absolute zero."
        )
        #expect(try stored(Raw([97, 98]), as: "text").bytes == [97, 98])
        #expect(try stored(Raw([]), as: "null").name == "v/0")
        // And where values come as Any.
        try database.executeUpdate("INSERT INTO t VALUES (?)", values: [Celsius(1)])
        #expect(database.executeUpdate("INSERT INTO t VALUES (:c)", withParameterDictionary: ["c": Celsius(2)]))
        #expect(try database.executeQuery("SELECT v FROM t WHERE typeof(v) = 'real'").all(Double.self) == [1, 2])
        #expect(!database.executeUpdate("INSERT INTO t VALUES (?)", withArgumentsIn: [Celsius(-300)]))
    }

    @Test func wideIntegersAreRefused() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t VALUES (?)", Int128.max)
        }
        #expect(error?.reason == .typeMismatch)
        #expect(!database.executeUpdate("INSERT INTO t VALUES (?)", withArgumentsIn: [Stranger()]))
        #expect(try database.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 0)
    }

    private struct Stranger {}

    /// By way of a Double, it would be rounded down first.
    @Test func integersAreRoundedOnceToFloats() throws {
        let number: Int64 = 0x4000_0040_0000_0001
        #expect(try database.executeQuery("SELECT \(number)").scalar(Float.self) == Float(number))
        #expect(try database.executeQuery("SELECT \(Int64.min)").scalar(Float.self) == -0x1p63)
    }
}

/// As a user might declare it: the default must not cut the value off.
extension Int128: Bindable {}
