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
        #expect(try database.executeQuery("SELECT name FROM t WHERE name = \(evil)").scalar(String.self) == evil)
        #expect(try database.executeQuery("SELECT \(evil)").first(String.self) == evil)
        #expect(try database.executeQuery("SELECT \(evil), \(2)").all((String, Int).self).map(\.0) == [evil])
        #expect(try database.executeQuery("SELECT \(evil) AS e").all([String: String].self) == [["e": evil]])
        #expect(try database.executeQuery("SELECT \(evil)").rows(String.self).next() == evil)
        #expect(try database.executeQuery("SELECT \(1), \(evil)").dictionary((Int, String).self) == [1: evil])
        let keyed: [Int: [String: String?]] = try database.executeQuery("SELECT \(1) AS k, \(evil) AS v WHERE 0")
            .dictionary([String: String?].self, keyedBy: "k")
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
        #expect(try database.executeQuery("SELECT count(*) FROM t WHERE name = \(evil)").scalar(Int.self) == 5)
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
        #expect(try database.executeQuery(select, evil).scalar(String.self) == evil)
        #expect(try database.executeQuery(select, evil).first(String.self) == evil)
        let names = try database.executeQuery("SELECT name, name FROM t WHERE name = " + "?", evil).first(
            (String, String).self
        )
        #expect(names?.1 == evil)
        #expect(try database.executeQuery(select, evil).first([String: String].self) == ["name": evil])
        #expect(try database.executeQuery(select, evil).all(String.self) == [evil])
        #expect(try database.executeQuery(select, evil).all((String?).self) == [evil])
        #expect(try database.executeQuery(select, evil).all([String: String].self) == [["name": evil]])
        let pair = "SELECT ?, ?"
        let values = try database.executeQuery(pair, evil, evil).rows((String, String).self).next()
        #expect(values?.0 == evil)
        #expect(try database.executeQuery(select, evil).rows(String.self).next() == evil)
        #expect(try database.executeQuery(select, evil).rows([String: String].self).next() == ["name": evil])
        #expect(try database.executeQuery(pair, 1, evil).dictionary((Int, String).self) == [1: evil])
        let keyed: [String: [String: String]] = try database.executeQuery(select, evil).dictionary(
            [String: String].self,
            keyedBy: "name"
        )
        #expect(keyed == [evil: ["name": evil]])
        #expect(try database.executeQuery(SQL(raw: "SELECT count(*) FROM t")).scalar(Int.self) == 1)
    }

    @Test func lists() throws {
        for number in 1...5 { try database.executeUpdate("INSERT INTO t (id) VALUES (\(number))") }
        let ids = [1, 3, 9]
        #expect(try database.executeQuery("SELECT id FROM t WHERE id IN \(ids)").all(Int.self) == [1, 3])
        #expect(try database.executeQuery("SELECT id FROM t WHERE id IN \(Set([5]))").all(Int.self) == [5])
        #expect(
            try database.executeQuery("SELECT id FROM t WHERE id IN \(ids.lazy.map { $0 + 1 })").all(Int.self) == [
                2, 4,
            ]
        )
        #expect(try database.executeQuery("SELECT id FROM t WHERE id IN \([Int]())").all(Int.self).isEmpty)
        #expect(try database.executeQuery("SELECT id FROM t WHERE id NOT IN \([Int]())").all(Int.self).count == 5)
        #expect(("\(ids) \([Int]()) \([1, nil])" as SQL).text == "(?, ?, ?) (SELECT NULL WHERE 0) (?, ?)")
        // Bytes are one value.
        #expect(("\(Data([1, 2])) \([1, 2] as [UInt8])" as SQL).text == "? ?")
        #expect(try database.executeQuery("SELECT \(Data([1, 2]))").scalar(Data.self) == Data([1, 2]))
        #expect(("\([Data([1])])" as SQL).text == "(?)")
    }

    @Test func nestedSQLAndRawText() throws {
        try database.executeUpdate("INSERT INTO t (id, name) VALUES (\(1), \(evil))")
        let name: SQL = "name = \(evil)"
        let order = "ORDER BY id"
        let sql: SQL = "SELECT id FROM t WHERE id = \(1) AND (\(name)) AND id < \(2) \(raw: order)"
        #expect(try database.executeQuery(sql).all(Int.self) == [1])
        #expect(sql.text == "SELECT id FROM t WHERE id = ? AND (name = ?) AND id < ? ORDER BY id")
        let parts: [SQL] = ["\(1)", "\(2)"]
        #expect(parts.joined(separator: " + ").text == "? + ?")
        #expect([SQL]().joined().text == "")
    }

    @Test func identifiersAreQuoted() throws {
        for name in ["plain", "two words", "back`quote", "quote\"d", "it's", "]", "ü", "select", ""] {
            try database.executeUpdate("CREATE TABLE \(identifier: name) (\(identifier: "c" + name))")
            try database.executeUpdate("INSERT INTO \(identifier: name) (\(identifier: "c" + name)) VALUES (\(7))")
            #expect(
                try database.executeQuery("SELECT \(identifier: "c" + name) FROM \(identifier: name)").scalar(Int.self)
                    == 7
            )
            #expect(database.tableExists(name))
        }
        #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT \(identifier: "no such column") FROM t").all(String.self)
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
        #expect(try database.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 0)
    }

    @Test func digitAfterAValueIsNotItsNumber() throws {
        #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT \(5)1").scalar(Int.self) }
        #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT \(5)\(raw: "1")").scalar(Int.self) }
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
            { _ = try database.executeQuery("SELECT id FROM t WHERE name = \(Stranger())").all(Int.self) },
            {
                _ = try database.executeQuery("SELECT id FROM t WHERE name = \(Stranger()) AND id = ?", 1).all(
                    (Int, Int).self
                )
            },
            { _ = try database.executeQuery("SELECT id FROM t WHERE name = \([Stranger()])").all([String: Int].self) },
        ]
        for statement in statements {
            let error = #expect(throws: DatabaseError.self) { try statement() }
            #expect(error?.message.contains("cannot be bound") == true)
        }
        #expect(database.tableExists("t"))
        #expect(try database.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 0)
    }
}
