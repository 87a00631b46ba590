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

    /// What a statement has written is not undone because a row that it returns cannot be read. The error says so.
    @Test(arguments: [true, false]) func rowsOfAWriterThatCannotBeRead(inTransaction: Bool) throws {
        struct Wrong: Decodable { var missing: Int }
        struct Named: Decodable { var id: Int }
        let calls: [(ResultSet) throws -> Void] = [
            { _ = try $0.all((Int, String).self) }, { _ = try $0.rows((String, Int).self).first() },
            { _ = try $0.all(Wrong.self) }, { _ = try $0.scalar(Data.self) },
            { _ = try $0.dictionary(Named.self, keyedBy: "nothing") as [Int: Named] },
            { _ = try $0.dictionary(Named.self, keyedBy: "same") as [Int: Named] },
            { try $0.forEach { (_: Int, _: Int) in } }, { _ = try $0.rows((Int, Int, Int, Int).self).next() },
        ]
        for (number, call) in calls.enumerated() {
            if inTransaction { #expect(database.beginTransaction()) }
            let rows = try database.executeQuery(
                "UPDATE person SET email = NULL, name = \(number) RETURNING id, email, 7 AS same"
            )
            let error = #expect(throws: DatabaseError.self) { try call(rows) }
            #expect(error?.mayBeStored == !inTransaction, "\(number): \(error as Any)")
            let words = inTransaction ? "is a part of the transaction" : "is stored"
            #expect(error?.message.hasPrefix("What the statement has written \(words), but") == true, "\(error as Any)")
            #expect(
                try database.executeQuery("SELECT DISTINCT name FROM person").all(String.self) == ["\(number)"],
                "\(number)"
            )
            if inTransaction { #expect(database.commit()) }
        }
        // Not one that fails itself, nor one that only reads.
        for sql: SQL in ["INSERT INTO person (id) VALUES (1) RETURNING id", "SELECT name, email FROM person"] {
            let error = #expect(throws: DatabaseError.self) { _ = try database.executeQuery(sql).all((Int, Int).self) }
            #expect(error?.mayBeStored == false && error?.message.contains("What the statement") == false)
        }
    }

    /// The columns of a query that runs again may have changed their order.
    @Test func rowsThatAreReadOnAfterTheirStatementWasBound() throws {
        struct Pair: Decodable, Equatable { var a: Int, b: Int }
        try database.execute(script: "CREATE TABLE ab (a, b); INSERT INTO ab VALUES (1, 2), (1, 2)")
        let query = try database.prepare("SELECT * FROM ab WHERE 1 = ?")
        try query.bind(1)
        let rows = query.rows(Pair.self)
        #expect(try rows.next() == Pair(a: 1, b: 2))
        // Ends the execution, so that the table can be dropped.
        try query.bind(2)
        #expect(try !query.nextWithError())
        try database.execute(script: "DROP TABLE ab; CREATE TABLE ab (b, a); INSERT INTO ab VALUES (2, 1)")
        try query.bind(1)
        #expect(try rows.next() == Pair(a: 1, b: 2))
    }

    @Test func tuples() throws {
        let people = try database.executeQuery("SELECT * FROM person ORDER BY id").all((Int, String, String?).self)
        #expect(people.map(\.0) == [1, 2])
        #expect(people.map(\.1) == ["Ada", "Bob"])
        #expect(people.map(\.2) == ["ada@example.org", nil])
        let first = try database.executeQuery("SELECT name, id FROM person WHERE id = ?", 2).first((String, Int).self)
        #expect(first?.0 == "Bob")
        #expect(
            try database.executeQuery("SELECT name, id FROM person WHERE id = \(9)").first((String, Int).self) == nil
        )
        // Further columns are passed over, missing ones are not.
        #expect(try database.executeQuery("SELECT * FROM person").all(Int.self) == [1, 2])
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT id FROM person").all((Int, String).self)
        }
        #expect(error?.message == "2 columns were asked for, but the query has 1.")
    }

    @Test func tuplesOfAllUsualTypes() throws {
        typealias Row = (Int64, Int, Double, String, Data, Int?, Double?, String?, Data?)
        let full = try #require(
            try database.executeQuery("SELECT 1, -2, 3.5, 'a text that is no short one', x'0102', 6, 7.5, 'h', x'09'")
                .first(Row.self)
        )
        #expect(full.0 == 1 && full.1 == -2 && full.2 == 3.5 && full.3 == "a text that is no short one")
        #expect(full.4 == Data([1, 2]) && full.5 == 6 && full.6 == 7.5 && full.7 == "h" && full.8 == Data([9]))
        let empty = try #require(
            try database.executeQuery("SELECT 0, 0, 4, '', x'', NULL, NULL, NULL, NULL").first(Row.self)
        )
        #expect(empty.2 == 4 && empty.3 == "" && empty.4 == Data())
        #expect(empty.5 == nil && empty.6 == nil && empty.7 == nil && empty.8 == nil)
        // One that is none of them, and more than sixteen.
        let date = try #require(try database.executeQuery("SELECT 1, 2, 'three'").first((Int, Date, String).self))
        #expect(date.0 == 1 && date.1 == Date(timeIntervalSince1970: 2) && date.2 == "three")
        typealias Wide = (Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, String)
        let wide = try #require(
            try database.executeQuery("SELECT 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 'last'").first(
                Wide.self
            )
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
        #expect(try database.executeQuery("SELECT count(*) FROM person").scalar(Int.self) == 2)
        #expect(try database.executeQuery("SELECT email FROM person WHERE id = 2").scalar(String.self) == nil)
        #expect(try database.executeQuery("SELECT email FROM person WHERE id = 3").scalar(String.self) == nil)
        #expect(
            try database.executeQuery("SELECT email FROM person WHERE id = 1").scalar(String?.self) == "ada@example.org"
        )
        #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT name FROM person").scalar(Int.self) }
        #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT nothing FROM person").scalar(Int.self) }
        #expect(!database.hasOpenResultSets)
    }

    @Test func rowsOneAtATime() throws {
        let rows = try database.executeQuery("SELECT id, name FROM person ORDER BY id").rows((Int, String).self)
        var seen: [String] = []
        while let (id, name) = try rows.next() { seen.append("\(id) \(name)") }
        #expect(seen == ["1 Ada", "2 Bob"])
        #expect(try rows.next() == nil)
        #expect(!database.hasOpenResultSets)

        struct Stop: Error {}
        let other = try database.executeQuery("SELECT id FROM person").rows(Int.self)
        #expect(throws: Stop.self) { try other.forEach { if $0 == 1 { throw Stop() } } }
        #expect(!database.hasOpenResultSets)
        #expect(try other.next() == nil)
        var sum = 0
        try database.executeQuery("SELECT id FROM person").rows(Int.self).forEach { sum += $0 }
        #expect(sum == 3)
    }

    private struct Person: Decodable, Equatable {
        var id: Int64
        var name: String
        var email: String?
    }

    @Test func closuresAndInitializers() throws {
        let ada = Person(id: 1, name: "Ada", email: "ada@example.org")
        let sql: SQL = "SELECT id, name, email FROM person ORDER BY id"
        #expect(try database.executeQuery(sql).all(Person.init) == [ada, Person(id: 2, name: "Bob")])
        #expect(try database.executeQuery(sql).first(Person.init) == ada)
        #expect(try database.executeQuery("SELECT id, name FROM person WHERE id = 9").first { (_: Int) in 1 } == nil)
        let texts = try database.executeQuery(sql).all { (id: Int, name: String) in "\(id) \(name)" }
        #expect(texts == ["1 Ada", "2 Bob"])
        let set = try database.prepare("SELECT id FROM person WHERE id >= ?")
        for first in 1...3 {
            try set.bind(first)
            #expect(try set.all { (id: Int) in id } == Array(first..<3))
            try set.bind(first)
            var seen: [Int] = []
            try set.forEach { (id: Int) in seen.append(id) }
            #expect(seen == Array(first..<3))
        }
        set.close()
        // A writing statement runs to its end, whatever is read of it.
        let added = try database.executeQuery("INSERT INTO person (name) VALUES ('C'), ('D') RETURNING id")
            .first { (id: Int) in id }
        #expect(added == 3)
        #expect(try database.executeQuery("SELECT count(*) FROM person").scalar(Int.self) == 4)
        #expect(!database.hasOpenResultSets)
    }

    @Test func closuresThatFail() throws {
        struct Stop: Error {}
        let sql: SQL = "SELECT id, email FROM person ORDER BY id"
        var seen: [Int] = []
        func stop(_ id: Int) throws { if id == 2 { throw Stop() } else { seen.append(id) } }
        #expect(throws: Stop.self) { try database.executeQuery(sql).forEach(stop) }
        #expect(throws: Stop.self) { _ = try database.executeQuery(sql).all { (id: Int) in try stop(id) } }
        #expect(throws: Stop.self) { _ = try database.executeQuery(sql).first { (_: Int) -> Int in throw Stop() } }
        #expect(seen == [1, 1])
        #expect(!database.hasOpenResultSets)
        // What cannot be read is the error of the database, and not the end.
        let error = try #require(throws: DatabaseError.self) {
            try database.executeQuery(sql).forEach { (id: Int, _: String) in seen.append(id) }
        }
        #expect(error.message.hasPrefix("Row 2, column \"email\" (index 1)"))
        #expect(database.lastErrorMessage() == error.message)
        #expect(seen == [1, 1, 1])
        #expect(throws: DatabaseError.self) { _ = try database.executeQuery(failing).all { (value: Int) in value } }
        #expect(throws: DatabaseError.self) {
            _ = try database.executeQuery("SELECT 1").all { (one: Int, two: Int) in one + two }
        }
        let closed = try database.executeQuery(sql)
        closed.close()
        #expect(throws: DatabaseError.self) { try closed.forEach { (_: Int) in } }
        #expect(!database.hasOpenResultSets)
    }

    @Test func rowsThatAreDroppedFreeTheirLocks() throws {
        var rows: Rows<Int>? = try database.executeQuery("SELECT id FROM person").rows(Int.self)
        #expect(try rows?.next() == 1)
        #expect(database.hasOpenResultSets)
        rows = nil
        #expect(!database.hasOpenResultSets)
        #expect(try database.executeQuery("SELECT id FROM person").first(Int.self) == 1)
        #expect(!database.hasOpenResultSets)
        try database.executeUpdate("DROP TABLE person")
    }

    @Test func errorInTheMiddleIsNotTheEnd() throws {
        let rows = try database.executeQuery(failing).rows(Int.self)
        #expect(try rows.next() == 1)
        #expect(try rows.next() == 2)
        let error = try #require(throws: DatabaseError.self) { try rows.next() }
        #expect(error.message == "integer overflow")
        #expect(throws: error) { try rows.next() }
        #expect(throws: error) { try rows.all() }
        rows.close()
        #expect(throws: DatabaseError.self) { try database.executeQuery(failing).all(Int.self) }
        #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 1, x FROM (\(failing))").dictionary((Int, Int).self)
        }
        var seen: [Int] = []
        #expect(throws: DatabaseError.self) {
            try database.executeQuery(failing).rows(Int.self).forEach { seen.append($0) }
        }
        #expect(seen == [1, 2])
        let decoded = try database.executeQuery(failing).rows([String: Int].self)
        _ = try (decoded.next(), decoded.next())
        #expect(throws: DatabaseError.self) { try decoded.next() }
        #expect(throws: DatabaseError.self) { try decoded.next() }
        #expect(!database.hasOpenResultSets)
    }

    @Test func closingTheDatabaseIsNotTheEnd() throws {
        let rows = try database.executeQuery("SELECT id FROM person").rows(Int.self)
        let people = try database.executeQuery("SELECT id FROM person").rows([String: Int].self)
        #expect(try rows.next() == 1)
        #expect(try people.next() == ["id": 1])
        database.close()
        #expect(throws: DatabaseError.self) { try rows.next() }
        #expect(throws: DatabaseError.self) { try people.all() }
    }

    @Test func unreadableValueEndsTheRows() throws {
        let rows = try database.executeQuery("SELECT email FROM person ORDER BY id").rows(String.self)
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
        let names = try database.executeQuery("SELECT id, name FROM person").dictionary((Int, String).self)
        #expect(names == [1: "Ada", 2: "Bob"])
        struct Person: Decodable { var name: String }
        let people: [Int: Person] = try database.executeQuery("SELECT * FROM person").dictionary(
            Person.self,
            keyedBy: "id"
        )
        #expect(people[2]?.name == "Bob")
        let repeated = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT 1, name FROM person").dictionary((Int, String).self)
        }
        #expect(repeated?.message.contains("same key") == true)
        #expect(throws: DatabaseError.self) {
            let _: [Int: Person] = try database.executeQuery("SELECT *, 1 AS one FROM person").dictionary(
                Person.self,
                keyedBy: "one"
            )
        }
        #expect(throws: DatabaseError.self) {
            let _: [Int: Person] = try database.executeQuery("SELECT * FROM person").dictionary(
                Person.self,
                keyedBy: "age"
            )
        }
        #expect(throws: DatabaseError.self) {
            let _: [String: Person] = try database.executeQuery("SELECT * FROM person").dictionary(
                Person.self,
                keyedBy: "email"
            )
        }
        let optional: [String?: Person] = try database.executeQuery("SELECT * FROM person").dictionary(
            Person.self,
            keyedBy: "email"
        )
        #expect(optional[nil]?.name == "Bob")
        #expect(!database.hasOpenResultSets)
    }

    @Test func rowsByTheNamesOfTheirColumns() throws {
        let query: SQL = "SELECT *, 1.5 AS Size, x'00ff' AS bytes FROM person ORDER BY id"
        let rows = try database.executeQuery(query).all([String: SQLValue].self)
        #expect(
            rows == [
                [
                    "id": 1, "name": "Ada", "email": "ada@example.org", "Size": 1.5, "bytes": .blob(Data([0, 0xff])),
                ],
                ["id": 2, "name": "Bob", "email": nil, "Size": 1.5, "bytes": .blob(Data([0, 0xff]))],
            ]
        )
        let cursor = try database.executeQuery(query).rows([String: SQLValue].self)
        var kept = try #require(try cursor.next())
        kept["name"] = "another"
        // What the caller does with a row changes no later one.
        #expect(try cursor.next()?["name"] == "Bob")
        #expect(try cursor.next() == nil)
        #expect(kept.count == 5 && kept["id"] == 1)

        // Of equal names the last one counts, as in FMDB's form; names are equal as Swift has it.
        let repeated = try database.executeQuery("SELECT 1 AS a, 2 AS b, 3 AS a, 4 AS A").first([String: SQLValue].self)
        #expect(repeated == ["a": 3, "b": 2, "A": 4])
        let objects = try database.executeQuery("SELECT 1 AS a, 2 AS b, 3 AS a, NULL AS A")
        #expect(try objects.nextWithError())
        let row = try #require(objects.resultDictionary)
        #expect(row["a"] as? Int == 3 && row["b"] as? Int == 2 && row["A"] is NSNull && row.count == 3)
        objects.close()
        #expect(try database.executeQuery("SELECT 1 WHERE 0").first([String: SQLValue].self) == nil)
        #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT CAST(x'ff' AS TEXT) AS broken").all([String: SQLValue].self)
        }
        #expect(!database.hasOpenResultSets)
    }

    /// A statement that is used again after the schema changed has the new names.
    @Test func namesAfterTheSchemaChanged() throws {
        let read = { try database.executeQuery("SELECT * FROM person WHERE id = 1").first([String: SQLValue].self) }
        #expect(try read()?.keys.sorted() == ["email", "id", "name"])
        try database.executeUpdate("ALTER TABLE person RENAME COLUMN email TO address")
        try database.executeUpdate("ALTER TABLE person ADD COLUMN age INTEGER DEFAULT 36")
        #expect(try read() == ["id": 1, "name": "Ada", "address": "ada@example.org", "age": 36])
    }

    @Test func valuesByTheNamesOfParameters() throws {
        func names(_ sql: String, _ values: [String: (any Bindable)?]) throws -> [String] {
            try database.executeQuery(sql, values).all(String.self)
        }
        #expect(try names("SELECT name FROM person WHERE id = :id", ["id": 2]) == ["Bob"])
        // One value for one name, whatever sign it has, as often as it stands there.
        #expect(
            try names(
                "SELECT name FROM person WHERE id = :id OR id = @id OR id = $id OR id > :low",
                ["id": 1, "low": 1]
            )
                == ["Ada", "Bob"]
        )
        for (values, message) in [
            (["id": 1], "there is no value for its parameter :low"),
            (["id": 1, "low": 1, "high": 3, "Low": 2], "with the name of these values: Low, high"),
            (["id": 1, "high": 3], "there is no value for its parameter :low"),
        ] as [([String: (any Bindable)?], String)] {
            let error = #expect(throws: DatabaseError.self) {
                try names("SELECT name FROM person WHERE id = :id AND id > :low", values)
            }
            #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        }
        // Equal to Swift, and two parameters to SQLite.
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        let sql = "SELECT name FROM person WHERE id = :" + composed
        #expect(try names(sql, [composed: 2]) == ["Bob"])
        let other = #expect(throws: DatabaseError.self) { try names(sql, [decomposed: 2]) }
        #expect(other?.message.contains("there is no value for its parameter") == true, "\(other as Any)")
        let found = database.executeQuery(SQL(raw: sql), withParameterDictionary: [composed: 2])
        #expect(found?.next() == true)
        found?.close()
        #expect(database.executeQuery(SQL(raw: sql), withParameterDictionary: [decomposed: 2]) == nil)
        let nameless = #expect(throws: DatabaseError.self) {
            try names("SELECT name FROM person WHERE id = ?", ["": 1])
        }
        #expect(nameless?.message.contains("no value for its parameter 1") == true)
        #expect(try names("SELECT name FROM person WHERE id IS :id", ["id": nil]) == [])
    }

    @Test func typedErrorsNeedNoCast() {
        do throws(DatabaseError) {
            try database.executeUpdate("INSERT INTO person (id) VALUES (?)", 1)
            _ = try database.executeQuery("SELECT id, name FROM person").all((Int, String).self)
        } catch {
            #expect(error.extendedCode == SQLITE_CONSTRAINT_PRIMARYKEY)
        }
    }
}
