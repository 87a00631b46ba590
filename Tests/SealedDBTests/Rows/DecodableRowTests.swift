import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct DecodableRowTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
    }

    private enum Colour: String, Codable { case red, green }
    private enum Level: Int, Codable { case low = 1, high }

    private struct Everything: Codable, Equatable {
        var int: Int
        var int8: Int8
        var int16: Int16
        var int32: Int32
        var int64: Int64
        var uint: UInt
        var uint8: UInt8
        var uint16: UInt16
        var uint32: UInt32
        var uint64: UInt64
        var double: Double
        var float: Float
        var bool: Bool
        var string: String
        var data: Data
        var bytes: [UInt8]
        var date: Date
        var uuid: UUID
        var url: URL
        var decimal: Decimal
        var colour: Colour
        var level: Level
        var tags: [String]
        var counts: [String: Int]
        var address: Address
        var maybe: String?
        var maybeColour: Colour?
        var maybeAddress: Address?
        var maybeDate: Date?
    }

    private struct Address: Codable, Equatable {
        var street: String
        var number: Int?
    }

    private let everything = Everything(
        int: .min,
        int8: .min,
        int16: .min,
        int32: .min,
        int64: .max,
        uint: .max,
        uint8: .max,
        uint16: .max,
        uint32: .max,
        uint64: .max,
        double: -0.5,
        float: 1.5,
        bool: true,
        string: "a\0b👍",
        data: Data([0, 1]),
        bytes: [],
        date: Date(timeIntervalSince1970: 1_000_000_000.5),
        uuid: UUID(),
        url: URL(string: "https://example.org/")!,
        decimal: Decimal(string: "1234567890.0123456789")!,
        colour: .green,
        level: .high,
        tags: ["a", "b\"c"],
        counts: ["x": 1],
        address: Address(street: "Main", number: nil),
        maybe: nil,
        maybeColour: .red,
        maybeAddress: Address(street: "Side", number: 3),
        maybeDate: nil
    )

    @Test func everyKindOfPropertyComesBack() throws {
        let columns = Mirror(reflecting: everything).children.compactMap(\.label)
        let definitions = columns.map { "\(identifier: $0)" as SQL }.joined(separator: ", ")
        try database.executeUpdate("CREATE TABLE t (\(definitions))")
        var other = everything
        other.maybe = "m"
        other.maybeColour = nil
        other.maybeAddress = nil
        other.maybeDate = Date(timeIntervalSince1970: 7)
        try database.insert(everything, into: "t")
        try database.insert(other, into: "t")
        #expect(try database.executeQuery("SELECT * FROM t").all(Everything.self) == [everything, other])
        #expect(try database.executeQuery("SELECT * FROM t WHERE maybe = \("m")").first(Everything.self) == other)
        let types = try database.executeQuery("SELECT typeof(colour), typeof(level), typeof(tags), typeof(date) FROM t")
            .first((String, String, String, String).self)
        #expect(types.map { [$0.0, $0.1, $0.2, $0.3] } == ["text", "integer", "text", "real"])
        #expect(
            try database.executeQuery("SELECT json_extract(address, '$.street') FROM t").scalar(String.self) == "Main"
        )
    }

    @Test func datesUseTheFormatOfTheDatabase() throws {
        struct Event: Codable, Equatable {
            var at: Date
            var ended: Date?
        }
        database.setDateFormat(Database.storeableDateFormat("yyyy-MM-dd"))
        try database.executeUpdate("CREATE TABLE event (at, ended)")
        let event = Event(at: Date(timeIntervalSince1970: 86_400), ended: Date(timeIntervalSince1970: 0))
        try database.insert(event, into: "event")
        #expect(
            try database.executeQuery("SELECT at || ended FROM event").scalar(String.self) == "1970-01-021970-01-01"
        )
        #expect(try database.executeQuery("SELECT * FROM event").all(Event.self) == [event])
    }

    private struct Person: Codable, Equatable {
        var id: Int
        var firstName: String
        var homeURL: String?
    }

    @Test func columnsAreFoundByName() throws {
        let expected = [Person(id: 1, firstName: "Ada", homeURL: "u")]
        #expect(
            try database.executeQuery("SELECT 'x' AS other, 'u' AS homeURL, 'Ada' AS firstName, 1 AS id").all(
                Person.self
            )
                == expected
        )
        #expect(
            try database.executeQuery("SELECT 'u' AS HOMEURL, 'Ada' AS FirstName, 1 AS ID").all(Person.self) == expected
        )
        // The exact spelling first, and of equal names the last.
        #expect(
            try database.executeQuery("SELECT 'u' AS homeURL, 'Ada' AS firstName, 1 AS id, 2 AS ID").all(Person.self)
                == expected
        )
        #expect(
            try database.executeQuery("SELECT 'u' AS homeURL, 'Ada' AS firstName, 2 AS id, 1 AS id").all(Person.self)
                == expected
        )

        database.columnNaming = .snakeCase
        #expect(
            try database.executeQuery("SELECT 1 AS id, 'Ada' AS first_name, 'u' AS home_url").all(Person.self)
                == expected
        )
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 1 AS id, 'Ada' AS firstName").all(Person.self)
        }
        #expect(error?.message == "Row 1: There is no column \"first_name\". The columns are: id, firstName.")
    }

    @Test func namesInSnakeCase() throws {
        struct Names: Encodable {
            var a = 1, aB = 1, userID = 1, URLString = 1, already_snake = 1, html5Page = 1, _private = 1, aURLOfX = 1
        }
        database.columnNaming = .snakeCase
        try database.executeUpdate(
            "CREATE TABLE n (a, a_b, user_id, url_string, already_snake, html5_page, _private, a_url_of_x)"
        )
        try database.insert(Names(), into: "n")
        struct Clash: Encodable { var userID = 1, userId = 1 }
        let error = #expect(throws: DatabaseError.self) { try database.insert(Clash(), into: "n") }
        #expect(error?.message.contains("two of its properties are column \"user_id\"") == true)
    }

    @Test func missingColumnsAndNull() throws {
        #expect(
            try database.executeQuery("SELECT 1 AS id, 'Ada' AS firstName").first(Person.self)
                == Person(id: 1, firstName: "Ada")
        )
        #expect(
            try database.executeQuery("SELECT 1 AS id, 'Ada' AS firstName, NULL AS homeURL").first(Person.self)
                == Person(id: 1, firstName: "Ada")
        )
        let missing = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 1 AS id").all(Person.self)
        }
        #expect(missing?.reason == .typeMismatch)
        let null = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 1 AS id, NULL AS firstName").all(Person.self)
        }
        #expect(
            null?.message
                == "Row 1, column \"firstName\" (index 1): expected String, found NULL. Read it as an optional."
        )
        #expect(database.lastErrorMessage() == null?.message)
    }

    @Test func wrongTypesNameTheColumn() throws {
        struct Painted: Decodable {
            var id: Int8
            var colour: Colour?
            var tags: [String]?
        }
        func message(_ sql: SQL) -> String? {
            #expect(throws: DatabaseError.self) { try database.executeQuery(sql).all(Painted.self) }?.message
        }
        #expect(
            message("SELECT value AS id FROM json_each('[1,300]')")
                == "Row 2, column \"id\" (index 0): expected Int8, found INTEGER that does not fit."
        )
        #expect(message("SELECT 'x' AS id") == "Row 1, column \"id\" (index 0): expected Int8, found TEXT.")
        #expect(
            message("SELECT 1 AS id, 'mauve' AS colour")
                == "Row 1, column \"colour\" (index 1): expected Colour, found TEXT that is not a valid value."
        )
        #expect(
            message("SELECT 1 AS id, 5 AS colour")
                == "Row 1, column \"colour\" (index 1): expected String, found INTEGER."
        )
        #expect(
            message("SELECT 1 AS id, '[1]' AS tags")
                == """
                Row 1, column "tags" (index 1): expected Array<String>, found TEXT whose JSON does not match \
                (at [0]: expected String).
                """
        )
        #expect(message("SELECT 1 AS id, 7 AS tags")?.hasSuffix("expected Array<String>, found INTEGER.") == true)
        #expect(message("SELECT 1 AS id, 'secret' AS tags")?.contains("secret") == false)
    }

    @Test func singleValuesAndDictionaries() throws {
        #expect(try database.executeQuery("SELECT 'red' UNION ALL SELECT 'green'").all(Colour.self) == [.red, .green])
        #expect(try database.executeQuery("SELECT NULL UNION ALL SELECT 'green'").all(Colour?.self) == [nil, .green])
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 'mauve' AS c").all(Colour.self)
        }
        #expect(error?.message == "Row 1 cannot be read as Colour: not a valid value.")
        #expect(try database.executeQuery("SELECT 1 AS a, 2 AS b").all([String: Int].self) == [["a": 1, "b": 2]])
        #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT 1, 2").all([Int].self) }
        #expect(
            try database.executeQuery("SELECT 1 AS id, 'Ada' AS firstName").first(Person?.self)??.firstName == "Ada"
        )
    }

    @Test func nestedTypesInManyRows() throws {
        struct Wrapper: Codable, Equatable {
            struct Identifier: Codable, Equatable {
                var value: Int
                init(value: Int) { self.value = value }
                init(from decoder: any Decoder) throws { value = try decoder.singleValueContainer().decode(Int.self) }
                func encode(to encoder: any Encoder) throws {
                    var container = encoder.singleValueContainer()
                    try container.encode(value)
                }
            }
            var id: Identifier
            var list: JSON<[Identifier]>
            var optional: Identifier?
        }
        try database.executeUpdate("CREATE TABLE w (id, list, optional)")
        let values = (1...5).map { number in
            Wrapper(
                id: .init(value: number),
                list: JSON([.init(value: number)]),
                optional: number.isMultiple(of: 2) ? .init(value: 0) : nil
            )
        }
        for value in values { try database.insert(value, into: "w") }
        #expect(try database.executeQuery("SELECT * FROM w").all(Wrapper.self) == values)
        #expect(try database.executeQuery("SELECT sum(id) FROM w WHERE typeof(id) = 'integer'").scalar(Int.self) == 15)
    }

    private class Base: Codable {
        var id = 0
        init() {}
    }

    private final class Derived: Base {
        var name = ""

        private enum CodingKeys: CodingKey { case name }

        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            try super.init(from: container.superDecoder())
        }

        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(name, forKey: .name)
            try super.encode(to: container.superEncoder())
        }

        init(id: Int, name: String) {
            super.init()
            self.id = id
            self.name = name
        }
    }

    @Test func inheritance() throws {
        try database.executeUpdate("CREATE TABLE c (id, name)")
        for number in 1...3 { try database.insert(Derived(id: number, name: "n\(number)"), into: "c") }
        let values = try database.executeQuery("SELECT * FROM c").all(Derived.self)
        #expect(values.map(\.id) == [1, 2, 3])
        #expect(values.map(\.name) == ["n1", "n2", "n3"])
    }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Keys that are no enum, in an order that changes from row to row.
    private struct Shuffled: Decodable {
        var a: Int?
        var b: Int?
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: AnyKey.self)
            let first = try container.decode(Bool.self, forKey: AnyKey(stringValue: "first"))
            for name in first ? ["a", "b", "a"] : ["b", "a"] {
                let value = try container.decodeIfPresent(Int.self, forKey: AnyKey(stringValue: name))
                if name == "a" { a = value } else { b = value }
            }
            #expect(try container.decodeIfPresent(Int.self, forKey: AnyKey(stringValue: "none")) == nil)
            #expect(!container.contains(AnyKey(stringValue: "none")))
            #expect(container.contains(AnyKey(stringValue: "b")))
            #expect(container.allKeys.map(\.stringValue) == ["first", "b", "a"])
            #expect(throws: DatabaseError.self) { try container.decodeNil(forKey: AnyKey(stringValue: "none")) }
        }
    }

    /// All keys of an enum that has columns, as a type with a key for each of its kinds asks for them.
    private struct KeyList: Decodable {
        enum Keys: String, CodingKey, CaseIterable { case id, dueDate, _hidden, plain_name, a1, b2C, homeURL }

        var keys: [Keys]
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            keys = container.allKeys
            for key in keys { #expect(container.contains(key), "\(key)") }
        }
    }

    @Test func allKeysFollowTheNaming() throws {
        let sql: SQL = """
            SELECT 1 AS id, 2 AS due_date, 3 AS _hidden, 4 AS plain_name, 5 AS a_1, 6 AS b2_c, 7 AS home_url, 8 AS dueDate, \
            9 AS other, 10 AS "", 11 AS "_"
            """
        let named = try #require(try database.executeQuery(sql).first(KeyList.self))
        #expect(named.keys == [.id, ._hidden, .plain_name, .dueDate])
        database.columnNaming = .snakeCase
        let derived = try #require(try database.executeQuery(sql).first(KeyList.self))
        #expect(derived.keys == [.id, .dueDate, ._hidden, .plain_name, .b2C])
    }

    @Test func keysThatAreNoEnum() throws {
        let rows = try database.executeQuery(
            "SELECT value % 2 AS first, value * 10 AS b, value AS a FROM json_each('[1,2,3,4]')"
        ).all(Shuffled.self)
        #expect(rows.map(\.a) == [1, 2, 3, 4])
        #expect(rows.map(\.b) == [10, 20, 30, 40])
    }

    private struct Validated: Decodable {
        struct Invalid: Error {}
        var id: Int
        private enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            if id < 0 { throw Invalid() }
            if id == 0 {
                throw DecodingError.dataCorruptedError(forKey: .id, in: container, debugDescription: "secret")
            }
        }
    }

    @Test func errorsOfOnesOwn() throws {
        let own = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT -1 AS id").all(Validated.self)
        }
        #expect(own?.underlyingError is Validated.Invalid)
        #expect(own?.reason == .closureFailed)
        #expect(database.lastErrorMessage() == own?.message)
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 0 AS id").all(Validated.self)
        }
        #expect(error?.message.contains("secret") == false)
        #expect(!database.hasOpenResultSets)
    }

    private struct Nesting: Decodable {
        private enum CodingKeys: CodingKey { case a }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            _ = try container.nestedContainer(keyedBy: CodingKeys.self, forKey: .a)
        }
    }

    @Test func nestedContainersAreRefused() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT '{}' AS a").all(Nesting.self)
        }
        #expect(error?.message.contains("a Decodable type of its own") == true)
    }

    @Test func schemaChangeBetweenExecutions() throws {
        try database.executeUpdate("CREATE TABLE s (id, firstName)")
        try database.executeUpdate("INSERT INTO s VALUES (1, 'Ada')")
        let set = try database.prepare("SELECT * FROM s")
        #expect(try set.rows(Person.self).all().map(\.id) == [1])
        try database.executeUpdate("ALTER TABLE s RENAME COLUMN id TO x")
        try database.executeUpdate("ALTER TABLE s ADD COLUMN id DEFAULT 7")
        #expect(try set.rows(Person.self).all().map(\.id) == [7])
    }

    /// What was found out of a column's type is not taken for that of another.
    @Test func oneColumnAsSeveralTypes() throws {
        struct Twofold: Decodable {
            let number: Int
            let small: Int8
            let level: Level
            let date: Date

            enum CodingKeys: CodingKey { case a }

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CodingKeys.self)
                number = try container.decode(Int.self, forKey: .a)
                small = try container.decode(Int8.self, forKey: .a)
                level = try container.decode(Level.self, forKey: .a)
                date = try container.decode(Date.self, forKey: .a)
            }
        }
        let rows = try database.executeQuery("SELECT 1 AS a UNION ALL SELECT 2").all(Twofold.self)
        #expect(rows.map(\.number) == [1, 2])
        #expect(rows.map(\.small) == [1, 2])
        #expect(rows.map(\.level) == [.low, .high])
        #expect(rows.map(\.date.timeIntervalSince1970) == [1, 2])
    }

    @Test func decodingKeepsNothingAlive() throws {
        struct Row: Decodable { var a: Int }
        weak var database: Database?
        do {
            let opened = try Database.testing(nil)
            #expect(try opened.executeQuery("SELECT 1 AS a UNION SELECT 2").all(Row.self).count == 2)
            let rows = try opened.executeQuery("SELECT 3 AS a UNION SELECT 4").rows(Row.self)
            #expect(try rows.next()?.a == 3)
            database = opened
        }
        #expect(database == nil)
    }

    // MARK: Types that read columns, in generic code, which reaches only the calls for Decodable types

    private enum Size: Int, Codable, Bindable, ColumnReadable { case small = 1, large }

    /// As a row it would have a column "degrees".
    private struct Celsius: Codable, Equatable, Bindable, ColumnReadable {
        var degrees: Double

        init(_ degrees: Double) { self.degrees = degrees }

        init(column: borrowing Column) throws(DatabaseError) { degrees = try Double(column: column) }

        func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try degrees.bind(to: slot) }
    }

    /// Reads the only row of the table in each way.
    private func reads<Value: Decodable>(_ type: Value.Type) -> [() throws -> Value?] {
        let (database, sql) = (database, "SELECT * FROM stored" as SQL)
        return [
            { try database.executeQuery(sql).first(type) },
            { try database.executeQuery(sql).all(type).first },
            { try database.executeQuery(sql).rows(type).next() },
            { try (database.executeQuery(sql).dictionary(type, keyedBy: "id") as [Int: Value])[1] },
            { try database.find(type, in: "stored", key: 1) },
        ]
    }

    private func store(_ value: some Bindable) throws {
        try database.execute(script: "DROP TABLE IF EXISTS stored; CREATE TABLE stored (v, id INTEGER PRIMARY KEY)")
        try database.executeUpdate("INSERT INTO stored VALUES (?, 1)", value)
    }

    private func expectSame<Value: Decodable & ColumnReadable & Bindable & Equatable>(_ value: Value) throws {
        try store(value)
        #expect(try database.executeQuery("SELECT v FROM stored").first(Value.self) == value)
        for read in reads(Value.self) { #expect(try read() == value) }
        for read in reads(Value?.self) { #expect(try read() == .some(value)) }
        try store(.null)
        for read in reads(Value?.self) { #expect(try read() == .some(nil)) }
        try expectSameError(Value.self)
        try store([UInt8]([0xff]))
        if !(value is Data), !(value is [UInt8]) { try expectSameError(Value.self) }
    }

    private func expectSameError<Value: Decodable & ColumnReadable>(_ type: Value.Type) throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT * FROM stored").first(Value.self)
        }
        #expect(error?.reason == .typeMismatch)
        for read in reads(type) {
            let other = #expect(throws: DatabaseError.self) { try read() }
            #expect(other?.message == error?.message && other?.reason == error?.reason)
        }
    }

    @Test func everyTypeThatReadsAColumn() throws {
        try expectSame(Int.min)
        try expectSame(Int8.min)
        try expectSame(Int16.min)
        try expectSame(Int32.min)
        try expectSame(Int64.max)
        try expectSame(UInt.max)
        try expectSame(UInt8.max)
        try expectSame(UInt16.max)
        try expectSame(UInt32.max)
        try expectSame(UInt64.max)
        try expectSame(-0.5)
        try expectSame(1.5 as Float)
        try expectSame(true)
        try expectSame("a\0b")
        try expectSame(Data([0, 1]))
        try expectSame([1, 2] as [UInt8])
        try expectSame(Date(timeIntervalSince1970: 1_700_000_000.5))
        try expectSame(UUID())
        try expectSame(URL(string: "https://example.org/")!)
        try expectSame(Decimal(string: "1234567890.0123456789")!)
        try expectSame(JSON(["a", "b"]))
        try expectSame(Size.large)
        try expectSame(Celsius(21.5))
    }

    @Test func datesInTheFormatOfTheDatabase() throws {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "yyyy/MM/dd HH:mm:ss"
        database.setDateFormat(format)
        try expectSame(Date(timeIntervalSince1970: 1_700_000_000))
    }
}
