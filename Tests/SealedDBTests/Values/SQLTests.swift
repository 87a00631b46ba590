import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct SQLTests {
    private let database: Database
    private let evil = "x'); DROP TABLE t; -- \" ` ? :a"

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (id INTEGER PRIMARY KEY, name, data)")
    }

    @Test func interpolatedValuesAreBound() throws {
        try database.executeUpdate("INSERT INTO t VALUES (\(1), \(evil), \(nil as Int?))")
        let rows = try database.executeQuery("SELECT name FROM t WHERE name = \(evil) AND data IS \(nil as String?)")
        #expect(try rows.nextWithError())
        #expect(rows.string(forColumnIndex: 0) == evil)
        rows.close()
        #expect(try database.scalar(String.self, "SELECT name FROM t WHERE name = \(evil)") == evil)
        #expect(try database.first(String.self, "SELECT \(evil)") == evil)
        #expect(try database.all((String, Int).self, "SELECT \(evil), \(2)").map(\.0) == [evil])
        #expect(try database.all([String: String].self, "SELECT \(evil) AS e") == [["e": evil]])
        #expect(try database.query(String.self, "SELECT \(evil)").next() == evil)
        #expect(try database.dictionary((Int, String).self, "SELECT \(1), \(evil)") == [1: evil])
        let keyed: [Int: [String: String?]] = try database.dictionary(
            [String: String?].self,
            keyedBy: "k",
            "SELECT \(1) AS k, \(evil) AS v WHERE 0"
        )
        #expect(keyed.isEmpty)
        #expect(try database.stringForQuery("SELECT \(evil)") == evil)
        #expect(database.tableExists("t"))
    }

    @Test func literalsBindWhereverTheyStand() throws {
        try database.executeUpdate(database.isOpen ? "INSERT INTO t (name) VALUES (\(evil))" : "SELECT 1")
        try database.executeUpdate("INSERT INTO t (name) " + "VALUES (\(evil))")
        try database.executeUpdate(
            """
            INSERT INTO t (name)
            VALUES (\(evil))
            """
        )
        try database.executeUpdate(["INSERT INTO t (name)", "VALUES (\(evil))"].joined(separator: " ") as SQL)
        var sql: SQL = "INSERT INTO t (name)"
        sql += " VALUES (\(evil))"
        try database.executeUpdate(sql)
        #expect(try database.scalar(Int.self, "SELECT count(*) FROM t WHERE name = \(evil)") == 5)
        #expect(sql.text == "INSERT INTO t (name) VALUES (?)")
        #expect("\(sql)" == sql.text)
        #expect(!String(reflecting: sql).contains("DROP"))
        var dumped = ""
        dump(sql, to: &dumped)
        #expect(!dumped.contains("DROP"))
    }

    @Test func textInAVariable() throws {
        let insert = "INSERT INTO t (name) VALUES (?)"
        try database.executeUpdate(insert, evil)
        let select = "SELECT name FROM t WHERE name = ?"
        #expect(try database.executeQuery(select, evil).next())
        #expect(try database.scalar(String.self, select, evil) == evil)
        #expect(try database.first(String.self, select, evil) == evil)
        let names = try database.first((String, String).self, "SELECT name, name FROM t WHERE name = " + "?", evil)
        #expect(names?.1 == evil)
        #expect(try database.first([String: String].self, select, evil) == ["name": evil])
        #expect(try database.all(String.self, select, evil) == [evil])
        #expect(try database.all((String?).self, select, evil) == [evil])
        #expect(try database.all([String: String].self, select, evil) == [["name": evil]])
        let pair = "SELECT ?, ?"
        let values = try database.query((String, String).self, pair, evil, evil).next()
        #expect(values?.0 == evil)
        #expect(try database.query(String.self, select, evil).next() == evil)
        #expect(try database.query([String: String].self, select, evil).next() == ["name": evil])
        #expect(try database.dictionary((Int, String).self, pair, 1, evil) == [1: evil])
        let keyed: [String: [String: String]] = try database.dictionary(
            [String: String].self,
            keyedBy: "name",
            select,
            evil
        )
        #expect(keyed == [evil: ["name": evil]])
        #expect(try database.scalar(Int.self, SQL(raw: "SELECT count(*) FROM t")) == 1)
    }

    @Test func lists() throws {
        for number in 1...5 { try database.executeUpdate("INSERT INTO t (id) VALUES (\(number))") }
        let ids = [1, 3, 9]
        #expect(try database.all(Int.self, "SELECT id FROM t WHERE id IN \(ids)") == [1, 3])
        #expect(try database.all(Int.self, "SELECT id FROM t WHERE id IN \(Set([5]))") == [5])
        #expect(try database.all(Int.self, "SELECT id FROM t WHERE id IN \(ids.lazy.map { $0 + 1 })") == [2, 4])
        #expect(try database.all(Int.self, "SELECT id FROM t WHERE id IN \([Int]())").isEmpty)
        #expect(try database.all(Int.self, "SELECT id FROM t WHERE id NOT IN \([Int]())").count == 5)
        #expect(("\(ids) \([Int]()) \([1, nil])" as SQL).text == "(?, ?, ?) (SELECT NULL WHERE 0) (?, ?)")
        // Bytes are one value.
        #expect(("\(Data([1, 2])) \([1, 2] as [UInt8])" as SQL).text == "? ?")
        #expect(try database.scalar(Data.self, "SELECT \(Data([1, 2]))") == Data([1, 2]))
        #expect(("\([Data([1])])" as SQL).text == "(?)")
    }

    @Test func nestedSQLAndRawText() throws {
        try database.executeUpdate("INSERT INTO t (id, name) VALUES (\(1), \(evil))")
        let name: SQL = "name = \(evil)"
        let order = "ORDER BY id"
        let sql: SQL = "SELECT id FROM t WHERE id = \(1) AND (\(name)) AND id < \(2) \(raw: order)"
        #expect(try database.all(Int.self, sql) == [1])
        #expect(sql.text == "SELECT id FROM t WHERE id = ? AND (name = ?) AND id < ? ORDER BY id")
        let parts: [SQL] = ["\(1)", "\(2)"]
        #expect(parts.joined(separator: " + ").text == "? + ?")
        #expect([SQL]().joined().text == "")
    }

    @Test func identifiersAreQuoted() throws {
        for name in ["plain", "two words", "back`quote", "quote\"d", "it's", "]", "ü", "select", ""] {
            try database.executeUpdate("CREATE TABLE \(identifier: name) (\(identifier: "c" + name))")
            try database.executeUpdate("INSERT INTO \(identifier: name) (\(identifier: "c" + name)) VALUES (\(7))")
            #expect(try database.scalar(Int.self, "SELECT \(identifier: "c" + name) FROM \(identifier: name)") == 7)
            #expect(database.tableExists(name))
        }
        #expect(throws: DatabaseError.self) {
            try database.all(String.self, "SELECT \(identifier: "no such column") FROM t")
        }
        let error = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("DELETE FROM \(identifier: "t\0x")")
        }
        #expect(error?.message.contains("NUL") == true)
        #expect(throws: DatabaseError.self) {
            let nested: SQL = "\(identifier: "t\0x")"
            try database.executeUpdate("DELETE FROM " + nested)
        }
    }

    @Test func valuesAndPositionalValuesDoNotMix() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t (id, name) VALUES (\(1), ?)", "a")
        }
        #expect(error?.reason == .misuse)
        #expect(error?.message.contains("values of its own") == true)
        let quoted = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t (name) VALUES ('\(evil)')")
        }
        #expect(quoted?.code == SQLITE_RANGE)
        #expect(quoted?.message.contains("inside of quotes") == true)
        #expect(throws: DatabaseError.self) { try database.executeUpdate("INSERT INTO t (id, name) VALUES (\(1), ?)") }
        #expect(try database.scalar(Int.self, "SELECT count(*) FROM t") == 0)
    }

    @Test func digitAfterAValueIsNotItsNumber() throws {
        #expect(throws: DatabaseError.self) { try database.scalar(Int.self, "SELECT \(5)1") }
        #expect(throws: DatabaseError.self) { try database.scalar(Int.self, "SELECT \(5)\(raw: "1")") }
        #expect(("\("\(5)" as SQL)1" as SQL).text == "? 1")
        #expect(("'?\(raw: "1")'" as SQL).text == "'?1'")
    }

    private struct Stranger: CustomStringConvertible { var description: String { "name); DROP TABLE t; --" } }

    /// Would Swift take such a literal for a String, the values in it would become text.
    @available(*, deprecated)
    @Test func whatCannotBeBoundIsNotSplicedIn() throws {
        let statements: [() throws -> Void] = [
            { try database.executeUpdate("INSERT INTO t (name) VALUES (\(Stranger()))") },
            { try database.executeUpdate("INSERT INTO t (id, name) VALUES (?, \(Stranger()))", 1) },
            { try database.executeUpdate("INSERT INTO t (name) VALUES (\(evil as Any))") },
            { try database.executeUpdate("INSERT INTO t (name) VALUES (\(["x"] as [String]?))") },
            { _ = try database.all(Int.self, "SELECT id FROM t WHERE name = \(Stranger())") },
            { _ = try database.all((Int, Int).self, "SELECT id FROM t WHERE name = \(Stranger()) AND id = ?", 1) },
            { _ = try database.all([String: Int].self, "SELECT id FROM t WHERE name = \([Stranger()])") },
        ]
        for statement in statements {
            let error = #expect(throws: DatabaseError.self) { try statement() }
            #expect(error?.message.contains("cannot be bound") == true)
        }
        #expect(database.tableExists("t"))
        #expect(try database.scalar(Int.self, "SELECT count(*) FROM t") == 0)
    }
}
