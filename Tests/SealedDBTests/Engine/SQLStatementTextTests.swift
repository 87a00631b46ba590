import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct SQLStatementTextTests {
    private func statements(_ sql: String) -> [SQLStatementText] {
        Array(sql.utf8).withUnsafeBufferPointer { bytes in
            var statements: [SQLStatementText] = []
            var position = 0
            while position < bytes.count {
                statements.append(SQLStatementText(bytes, from: position))
                position = statements.last!.range.upperBound
            }
            return statements
        }
    }

    private func holdsKey(_ sql: String) -> Bool { statements(sql).contains { $0.holdsKey } }

    @Test(arguments: [
        "ATTACH 'x' AS x KEY 'y'", "attach database ? as x key ?", "PRAGMA key = 'y'", "PRAGMA main . [HexKey]='00'",
        "SELECT 1; PRAGMA rekey('y')", "EXPLAIN QUERY PLAN PRAGMA \"key\" = 1", "EXPLAIN ATTACH plan AS x KEY 'y'",
        "EXPLAIN QUERY PLAN ATTACH query AS plan KEY 'y'", "PRAGMA user_version; pragma key=x",
        "/* PRAGMA */ ; -- x\n PRAGMA/**/textkey='a'", "SELECT ';' ; ATTACH 'it''s; fine' AS b KEY x'00'",
        "\u{FEFF}ATTACH 'x' AS x KEY 'y'", ";\u{FEFF} \u{FEFF}PRAGMA \u{FEFF}key = 'y'", "ATTACH ?1 AS ?2KEY ''",
        "ATTACH $a(;'KEY) AS $b::c(--)KEY ''", "ATTACH 'x'AS y KEY''", "ATTACH [a]AS[b]KEY\"c\"", "ATTACH 1AS 1 KEY 2",
        "ATTACH x'00'AS y/*/ * / '*/KEY x", "PRAGMA rekey.main = 'y'", "PRAGMA 'key' = 'y'", "ATTACH 'x' AS 0x1KEY ''",
        "ATTACH 'x' AS key",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END; ATTACH '' AS x KEY ''", " \u{b}ATTACH '' AS x KEY ''",
    ])
    func found(sql: String) {
        #expect(holdsKey(sql))
    }

    @Test func filesAreAttachedFor() {
        for sql in [
            "ATTACH 'x' AS x", "EXPLAIN attach ? AS x", "VACUUM INTO 'x'", "/**/vacuum main/**/into ?",
            "VACUUM \"main\"INTO'x'",
        ] {
            #expect(statements(sql).map(\.attachesFile) == [true], "\(sql)")
        }
        for sql in [
            "VACUUM", "VACUUM \"into\"", "VACUUM 'into'", "SELECT 1 -- INTO", "DETACH x", "INSERT INTO t VALUES (1)",
        ] {
            #expect(statements(sql).map(\.attachesFile) == [false], "\(sql)")
        }
    }

    @Test(arguments: [
        "", "key", "SELECT key FROM t", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "ATTACH 'key' AS \"key\"",
        "ATTACH 'x' AS y; SELECT key FROM y.t", "PRAGMA foreign_keys = ON", "-- PRAGMA key = 'x'", "PRAGMA",
        "SELECT 'PRAGMA key = 1; PRAGMA key = 2'", "PRAGMA foreign_key_list(key)", "ATTACH 'x' AS keys",
        "ATTACH ? AS $KEY",
        "ATTACH 'x' AS a$key", "ATTACH 'x' AS \u{FEFF}_key", "ATTACH 'x' AS y -- KEY 'z'",
        "SELECT 1 -- ; PRAGMA key = 'x'",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; PRAGMA key = 'x'; END",
    ])
    func notFound(sql: String) {
        #expect(!holdsKey(sql))
    }

    @Test(
        .enabled(if: isEncrypting, "needs a codec"),
        arguments: [
            "ATTACH 'x' AS x KEY 'hush' hush", "PRAGMA key = 'hush' hush", "SELECT frm x; PRAGMA key = 'hush'",
            "PRAGMA\u{FEFF}key = 'hush'",
            "ATTACH '/no/such/directory/x' AS x KEY 'hush'", "ATTACH ':memory:' AS x KEY 'hush'; SELECT 1",
            "ATTACH 'x' AS y KE 'hush'", "ATACH 'x' AS y KEY 'hush'", "PRAGM key = 'hush'", "PRAGMA keys 'hush' 1",
            "PRAGMA rekey.main 'hush' hush", "\u{FEFF}ATTACH 'x' AS y KEY hush()", "ATTACH 'x' AS ?1KEY 'hush' hush",
            "ATTACH 'x' AS y KEY 'hush", "ATTACH ? AS y KEY 'hush'", "EXPLAIN ATTACH 'x' AS y KEY 'hush' hush",
            "ATTACH 'x' AS y KEY (SELECT hush FROM hush)", "ATTACH 'x' AS y KEY x'68757368hush",
        ]
    )
    func errorsDoNotShowIt(sql: String) throws {
        let database = Database(path: nil)
        database.open()
        #expect(!database.executeUpdate(sql, withArgumentsIn: []))
        #expect(database.hadError())
        #expect(!"\(database.lastError())".contains("hush"))
    }

    /// A failing script shows the statement that failed.
    @Test func scriptsShowOneStatement() throws {
        let database = Database(path: nil)
        database.open()
        #expect(
            !database.executeStatements(
                "CREATE TABLE t (a); INSERT INTO t VALUES ('before'); SELECT frm t; INSERT INTO t VALUES ('hush')"
            )
        )
        let error = try #require(database.lastError() as? DatabaseError)
        #expect(error.sql == " SELECT frm t;")
        #expect(error.offset == nil || error.sql?.utf8.dropFirst(error.offset!).starts(with: "frm".utf8) == true)
        #expect(!"\(error)".contains("hush") && !"\(error)".contains("before"))
        let literal = String(repeating: "é", count: 100_000)
        #expect(!database.executeStatements("SELECT frm '\(raw: literal)'"))
        #expect("\(database.lastError())".utf8.count < 5000)
    }

    @Test func endsOfStatements() {
        let sql = "; ;SELECT 1;/* ; */ SELECT ';' ; CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END ; -- end"
        let texts = statements(sql).map { String(decoding: Array(sql.utf8)[$0.range], as: UTF8.self) }
        #expect(
            texts == [
                "SELECT 1;", "/* ; */ SELECT ';' ;", " CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END ;",
                " -- end",
            ]
        )
        #expect(statements(sql).map(\.verb) == ["select", "select", "create", nil])
        // Its body has not begun: SQLite refuses it at the semicolon.
        #expect(statements("CREATE TRIGGER t; SELECT 1; END; SELECT 2").count == 4)
    }
}
