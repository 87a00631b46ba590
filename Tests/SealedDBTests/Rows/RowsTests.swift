import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct RowsTests {
    private let database: Database
    /// Fails in its third row with an integer overflow.
    private let failing: SQL = """
        SELECT CASE value WHEN 3 THEN abs(-9223372036854775807 - 1) ELSE value END FROM json_each('[1,2,3,4]')
        """

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, email TEXT)")
        try database.executeUpdate("INSERT INTO person VALUES (1, 'Ada', 'ada@example.org'), (2, 'Bob', NULL)")
    }

    @Test func tuples() throws {
        let people = try database.all((Int, String, String?).self, "SELECT * FROM person ORDER BY id")
        #expect(people.map(\.0) == [1, 2])
        #expect(people.map(\.1) == ["Ada", "Bob"])
        #expect(people.map(\.2) == ["ada@example.org", nil])
        let first = try database.first((String, Int).self, "SELECT name, id FROM person WHERE id = ?", 2)
        #expect(first?.0 == "Bob")
        #expect(try database.first((String, Int).self, "SELECT name, id FROM person WHERE id = \(9)") == nil)
        // Further columns are passed over, missing ones are not.
        #expect(try database.all(Int.self, "SELECT * FROM person") == [1, 2])
        let error = #expect(throws: DatabaseError.self) {
            try database.all((Int, String).self, "SELECT id FROM person")
        }
        #expect(error?.message == "2 columns were asked for, but the query has 1.")
    }

    @Test func tuplesOfAllUsualTypes() throws {
        typealias Row = (Int64, Int, Double, String, Data, Int?, Double?, String?, Data?)
        let full = try #require(
            try database.first(
                Row.self,
                "SELECT 1, -2, 3.5, 'a text that is no short one', x'0102', 6, 7.5, 'h', x'09'"
            )
        )
        #expect(full.0 == 1 && full.1 == -2 && full.2 == 3.5 && full.3 == "a text that is no short one")
        #expect(full.4 == Data([1, 2]) && full.5 == 6 && full.6 == 7.5 && full.7 == "h" && full.8 == Data([9]))
        let empty = try #require(
            try database.first(Row.self, "SELECT 0, 0, 4, '', x'', NULL, NULL, NULL, NULL")
        )
        #expect(empty.2 == 4 && empty.3 == "" && empty.4 == Data())
        #expect(empty.5 == nil && empty.6 == nil && empty.7 == nil && empty.8 == nil)
        // One that is none of them, and more than sixteen.
        let date = try #require(try database.first((Int, Date, String).self, "SELECT 1, 2, 'three'"))
        #expect(date.0 == 1 && date.1 == Date(timeIntervalSince1970: 2) && date.2 == "three")
        typealias Wide = (Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, String)
        let wide = try #require(
            try database.first(Wide.self, "SELECT 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 'last'")
        )
        #expect(wide.0 == 1 && wide.15 == 16 && wide.16 == "last")
    }

    @Test func tupleWithAValueOfAnotherType() throws {
        let text = String(repeating: "long ", count: 20)
        for (sql, column, found) in [
            ("SELECT ?, x'00', 'x', 1.5, 1", 0, "INTEGER"), ("SELECT ?1, 'x', 'x', 1.5, 1", 1, "TEXT"),
            ("SELECT ?1, x'00', CAST(x'ff' AS TEXT), 1.5, 1", 2, "TEXT"), ("SELECT ?1, x'00', 'x', NULL, 1", 3, "NULL"),
            ("SELECT ?1, x'00', NULL, 1.5, 'x'", 4, "TEXT"),
        ] {
            let rows =
                try column == 0 ? database.executeQuery(SQL(raw: sql), 1) : database.executeQuery(SQL(raw: sql), text)
            let error = try #require(throws: DatabaseError.self) {
                try rows.rows((String, Data, String?, Double, Int?).self).next()
            }
            #expect(error.reason == .typeMismatch)
            #expect(error.message.hasPrefix("Row 1, column"))
            #expect(error.message.contains("(index \(column))") && error.message.contains("found \(found)"))
        }
    }

    @Test func scalars() throws {
        #expect(try database.scalar(Int.self, "SELECT count(*) FROM person") == 2)
        #expect(try database.scalar(String.self, "SELECT email FROM person WHERE id = 2") == nil)
        #expect(try database.scalar(String.self, "SELECT email FROM person WHERE id = 3") == nil)
        #expect(try database.scalar(String?.self, "SELECT email FROM person WHERE id = 1") == "ada@example.org")
        #expect(throws: DatabaseError.self) { try database.scalar(Int.self, "SELECT name FROM person") }
        #expect(throws: DatabaseError.self) { try database.scalar(Int.self, "SELECT nothing FROM person") }
        #expect(!database.hasOpenResultSets)
    }

    @Test func rowsOneAtATime() throws {
        let rows = try database.query((Int, String).self, "SELECT id, name FROM person ORDER BY id")
        var seen: [String] = []
        while let (id, name) = try rows.next() { seen.append("\(id) \(name)") }
        #expect(seen == ["1 Ada", "2 Bob"])
        #expect(try rows.next() == nil)
        #expect(!database.hasOpenResultSets)

        struct Stop: Error {}
        let other = try database.query(Int.self, "SELECT id FROM person")
        #expect(throws: Stop.self) { try other.forEach { if $0 == 1 { throw Stop() } } }
        #expect(!database.hasOpenResultSets)
        #expect(try other.next() == nil)
        var sum = 0
        try database.query(Int.self, "SELECT id FROM person").forEach { sum += $0 }
        #expect(sum == 3)
    }

    @Test func rowsThatAreDroppedFreeTheirLocks() throws {
        var rows: Rows<Int>? = try database.query(Int.self, "SELECT id FROM person")
        #expect(try rows?.next() == 1)
        #expect(database.hasOpenResultSets)
        rows = nil
        #expect(!database.hasOpenResultSets)
        #expect(try database.first(Int.self, "SELECT id FROM person") == 1)
        #expect(!database.hasOpenResultSets)
        try database.executeUpdate("DROP TABLE person")
    }

    @Test func errorInTheMiddleIsNotTheEnd() throws {
        let rows = try database.query(Int.self, failing)
        #expect(try rows.next() == 1)
        #expect(try rows.next() == 2)
        let error = try #require(throws: DatabaseError.self) { try rows.next() }
        #expect(error.message == "integer overflow")
        #expect(throws: error) { try rows.next() }
        #expect(throws: error) { try rows.all() }
        rows.close()
        #expect(throws: DatabaseError.self) { try database.all(Int.self, failing) }
        #expect(throws: DatabaseError.self) {
            try database.dictionary((Int, Int).self, "SELECT 1, x FROM (\(failing))")
        }
        var seen: [Int] = []
        #expect(throws: DatabaseError.self) { try database.query(Int.self, failing).forEach { seen.append($0) } }
        #expect(seen == [1, 2])
        let decoded = try database.query([String: Int].self, failing)
        _ = try (decoded.next(), decoded.next())
        #expect(throws: DatabaseError.self) { try decoded.next() }
        #expect(throws: DatabaseError.self) { try decoded.next() }
        #expect(!database.hasOpenResultSets)
    }

    @Test func closingTheDatabaseIsNotTheEnd() throws {
        let rows = try database.query(Int.self, "SELECT id FROM person")
        let people = try database.query([String: Int].self, "SELECT id FROM person")
        #expect(try rows.next() == 1)
        #expect(try people.next() == ["id": 1])
        database.close()
        #expect(throws: DatabaseError.self) { try rows.next() }
        #expect(throws: DatabaseError.self) { try people.all() }
    }

    @Test func unreadableValueEndsTheRows() throws {
        let rows = try database.query(String.self, "SELECT email FROM person ORDER BY id")
        #expect(try rows.next() == "ada@example.org")
        let error = try #require(throws: DatabaseError.self) { try rows.next() }
        #expect(error.message.hasPrefix("Row 2, column \"email\" (index 0)"))
        #expect(throws: error) { try rows.next() }
        #expect(database.lastErrorMessage() == error.message)
        #expect(!database.hasOpenResultSets)
    }

    @Test func failureOfAPreparedSetDoesNotStartItAgain() throws {
        let set = try database.prepare("SELECT * FROM (\(raw: failing.text)) WHERE ?")
        try set.bind(1)
        let rows = set.rows(Int.self)
        #expect(throws: DatabaseError.self) { try rows.all() }
        #expect(throws: DatabaseError.self) { try rows.next() }
        try set.bind(0)
        let empty = set.rows(Int.self)
        #expect(try empty.next() == nil)
        #expect(try empty.next() == nil)
    }

    @Test func dictionaries() throws {
        let names = try database.dictionary((Int, String).self, "SELECT id, name FROM person")
        #expect(names == [1: "Ada", 2: "Bob"])
        struct Person: Decodable { var name: String }
        let people: [Int: Person] = try database.dictionary(Person.self, keyedBy: "id", "SELECT * FROM person")
        #expect(people[2]?.name == "Bob")
        let repeated = #expect(throws: DatabaseError.self) {
            try database.dictionary((Int, String).self, "SELECT 1, name FROM person")
        }
        #expect(repeated?.message.contains("same key") == true)
        #expect(throws: DatabaseError.self) {
            let _: [Int: Person] = try database.dictionary(
                Person.self,
                keyedBy: "one",
                "SELECT *, 1 AS one FROM person"
            )
        }
        #expect(throws: DatabaseError.self) {
            let _: [Int: Person] = try database.dictionary(Person.self, keyedBy: "age", "SELECT * FROM person")
        }
        #expect(throws: DatabaseError.self) {
            let _: [String: Person] = try database.dictionary(Person.self, keyedBy: "email", "SELECT * FROM person")
        }
        let optional: [String?: Person] = try database.dictionary(Person.self, keyedBy: "email", "SELECT * FROM person")
        #expect(optional[nil]?.name == "Bob")
        #expect(!database.hasOpenResultSets)
    }

    @Test func typedErrorsNeedNoCast() {
        do throws(DatabaseError) {
            try database.executeUpdate("INSERT INTO person (id) VALUES (?)", 1)
            _ = try database.all((Int, String).self, "SELECT id, name FROM person")
        } catch {
            #expect(error.extendedCode == SQLITE_CONSTRAINT_PRIMARYKEY)
        }
    }
}
