import Foundation
import Testing

@testable import SealedDB

/// Each call that takes SQL binds the values of a literal, and takes the text of a `String` as it is.
@Suite(.hangLimit) struct LiteralFormsTests {
    private let database: Database
    /// Text that would be SQL if it were spliced in.
    private let evil = "x', 'y'); DROP TABLE t; --"

    init() throws {
        database = Database()
        #expect(database.open())
        try database.execute(script: "CREATE TABLE t (id INTEGER PRIMARY KEY, name); CREATE TABLE log (name)")
    }

    private func names() throws -> [String] {
        try database.executeQuery("SELECT name FROM t ORDER BY id").all(String.self)
    }

    @Test func updatesOfFMDBBind() throws {
        #expect(database.executeUpdate("INSERT INTO t (name) VALUES (\(evil))", withArgumentsIn: []))
        try database.executeUpdate("INSERT INTO t (name) VALUES (\(evil))", values: nil)
        try database.executeUpdate("INSERT INTO t (name) VALUES (\(evil))", values: [])
        #expect(database.executeUpdate("INSERT INTO t (name) VALUES (\(evil))", withParameterDictionary: [:]))
        let statement = try database.prepare("INSERT INTO t (name) VALUES (\(evil))")
        #expect(!statement.next())
        statement.close()
        #expect(database.executeStatements("INSERT INTO t (name) VALUES (\(evil))"))
        var ids: [String?] = []
        let isDone = database.executeStatements("INSERT INTO t (name) VALUES (\(evil)) RETURNING id") { row in
            ids.append(row["id"] as? String)
            return 0
        }
        #expect(isDone, "\(database.lastError())")
        #expect(ids == ["7"])
        #expect(try names() == Array(repeating: evil, count: 7))
    }

    @Test func queriesOfFMDBBind() throws {
        try database.executeUpdate("INSERT INTO t (name) VALUES (?)", evil)
        let queries: [() throws -> ResultSet?] = [
            { database.executeQuery("SELECT id FROM t WHERE name = \(evil)", withArgumentsIn: []) },
            { try database.executeQuery("SELECT id FROM t WHERE name = \(evil)", values: nil) },
            { database.executeQuery("SELECT id FROM t WHERE name = \(evil)", withParameterDictionary: nil) },
            { try database.prepare("SELECT id FROM t WHERE name = \(evil)") },
        ]
        for query in queries {
            let rows = try #require(try query())
            #expect(try rows.nextWithError())
            #expect(rows.int(forColumnIndex: 0) == 1)
            rows.close()
        }
        try database.validateSQL("SELECT id FROM t WHERE name = \(evil)")
    }

    /// Where a closure is one expression, the compiler looks at all forms of both calls together.
    @Test func blocksOfOneExpressionAreThoseOfFMDB() throws {
        let queue = DatabaseQueue()
        try queue.write { db in try db.execute(script: "CREATE TABLE t (id INTEGER PRIMARY KEY, name)") }
        queue.inDatabase { db in try? db.executeUpdate("INSERT INTO t (name) VALUES (\(evil))", values: nil) }
        queue.inDatabase { db in db.executeUpdate("INSERT INTO t (name) VALUES (\(evil))", withArgumentsIn: []) }
        queue.inDatabase { $0.executeUpdate("INSERT INTO t (name) VALUES (\(evil))", withArgumentsIn: []) }
        queue.inDatabase { $0.executeStatements("INSERT INTO t (name) VALUES (\(evil))") }
        queue.inDatabase { $0.executeUpdate("INSERT INTO t (name) VALUES (?)", withArgumentsIn: [evil]) }
        queue.inTransaction { db, _ in
            db.executeUpdate("INSERT INTO t (name) VALUES (:name)", withParameterDictionary: ["name": evil])
        }
        let names = try queue.read { db in try db.executeQuery("SELECT name FROM t").all(String.self) }
        #expect(names == Array(repeating: evil, count: 6))
    }

    @Test func textInAStringIsTakenAsItIs() throws {
        let table = "t"
        let text = "INSERT INTO \(table) (name) VALUES"
        #expect(database.executeUpdate(text + " (?)", withArgumentsIn: ["a"]))
        try database.executeUpdate(text + " (?)", values: ["b"])
        #expect(database.executeUpdate(text + " (:n)", withParameterDictionary: ["n": "c"]))
        try database.executeUpdate(text + " (:n)", ["n": "d"])
        #expect(database.executeStatements(text + " ('e')"))
        try database.execute(script: text + " ('f')")
        #expect(try names() == ["a", "b", "c", "d", "e", "f"])
        let query = "SELECT name FROM \(table) LIMIT 1"
        #expect(try database.executeQuery(query, values: nil).nextWithError())
        #expect(database.executeQuery(query.dropLast(8), withArgumentsIn: [])?.next() == true)
        #expect(try database.prepare(query).nextWithError())
        try database.validateSQL(query)
    }

    @Test func aLiteralWithValuesTakesNoOthers() throws {
        let statements: [() throws -> Void] = [
            { try database.executeUpdate("INSERT INTO t VALUES (?, \(evil))", values: [1]) },
            { try database.executeUpdate("INSERT INTO t VALUES (:id, \(evil))", ["id": 1]) },
            { _ = try database.executeQuery("SELECT \(evil), ?", values: [1]) },
        ]
        for statement in statements {
            let error = #expect(throws: DatabaseError.self) { try statement() }
            #expect(error?.message.contains("values of its own") == true)
        }
        #expect(!database.executeUpdate("INSERT INTO t VALUES (:i, \(evil))", withParameterDictionary: ["i": 1]))
        #expect(try names() == [])
    }

    @Test func aValueWithinQuotesIsAnError() throws {
        #expect(!database.executeUpdate("INSERT INTO t (name) VALUES ('\(evil)')", withArgumentsIn: []))
        #expect(
            !database.executeStatements("INSERT INTO t (name) VALUES ('a'); INSERT INTO t (name) VALUES ('\(evil)')")
        )
        #expect(database.lastErrorMessage().contains("within quotes"))
        #expect(try names() == [])
    }

    @Test func aValueInPlaceOfANameSaysWhatToWrite() throws {
        let table = "t"
        for statement in [
            { try database.executeUpdate("DELETE FROM \(table)", values: nil) },
            { try database.execute(script: "DELETE FROM \(table)") },
            { try database.executeUpdate("PRAGMA user_version = \(5)") },
        ] {
            let error = #expect(throws: DatabaseError.self) { try statement() }
            #expect(error?.message.contains("\\(identifier: …)") == true)
        }
    }

    // MARK: Scripts

    @Test func theValuesOfAScriptGoToTheirStatements() throws {
        try database.execute(
            script: """
                INSERT INTO t (name) VALUES (\(evil)); -- ?
                CREATE TABLE u (name);
                INSERT INTO u VALUES ('?'), (\("b")), (\(nil as String?));
                INSERT INTO log SELECT name FROM t WHERE name = \(evil) AND id IN \([1, 2])
                """
        )
        #expect(try names() == [evil])
        #expect(try database.executeQuery("SELECT name FROM u").all(String?.self) == ["?", "b", nil])
        #expect(try database.executeQuery("SELECT name FROM log").all(String.self) == [evil])
    }

    @Test func aScriptWithItsOwnParametersTakesNoValues() throws {
        for script in ["INSERT INTO t VALUES (?, \(evil))", "INSERT INTO t VALUES (:id, \(evil))"] as [SQL] {
            let error = #expect(throws: DatabaseError.self) { try database.execute(script: script) }
            #expect(error?.message.contains("parameters without a value") == true)
        }
        #expect(try names() == [])
    }

    @Test func aScriptStopsAtItsFirstFailure() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.execute(
                script: """
                    INSERT INTO t (name) VALUES (\("a"));
                    INSERT INTO gone (name) VALUES (\("b"));
                    INSERT INTO t (name) VALUES (\("c"))
                    """
            )
        }
        #expect(error?.sql?.contains("gone") == true)
        #expect(error?.sql?.contains("INTO t") == false)
        #expect(database.lastErrorMessage().contains("gone"))
        #expect(try names() == ["a"])
    }

    // MARK: Named values

    @Test func namedValuesAreBoundToEachKindOfParameter() throws {
        try database.executeUpdate("INSERT INTO t VALUES (:id, @name)", ["id": 3, "name": evil])
        try database.executeUpdate("INSERT INTO t VALUES ($id, :name || :name)", ["id": 4, "name": nil])
        let rows = try database.executeQuery("SELECT name FROM t WHERE id >= :id ORDER BY id", ["id": 3])
        #expect(try rows.nextWithError())
        #expect(rows.string(forColumnIndex: 0) == evil)
        #expect(try rows.nextWithError())
        #expect(rows.columnIndexIsNull(0))
        rows.close()
    }

    @Test func eachNamedValueAndParameterNeedsTheOther() throws {
        let cases: [(SQL, [String: (any Bindable)?], String)] = [
            ("INSERT INTO t VALUES (:id, :name)", ["id": 1], ":name"),
            ("INSERT INTO t VALUES (:id, 'a')", ["id": 1, "nmae": "b"], "nmae"),
            ("INSERT INTO t VALUES (?, :name)", ["id": 1, "name": "b"], "parameter 1"),
            ("INSERT INTO t VALUES (?1, :name)", ["1": 1, "nme": "b"], ":name"),
        ]
        for (sql, values, message) in cases {
            let error = #expect(throws: DatabaseError.self) { try database.executeUpdate(sql, values) }
            #expect(error?.message.contains(message) == true)
        }
        #expect(try names() == [])
    }
}
