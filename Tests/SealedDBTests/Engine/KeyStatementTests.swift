import Testing

@testable import SealedDB

struct KeyStatementTests {
    private func holdsKey(_ sql: String) -> Bool {
        Array(sql.utf8).withUnsafeBufferPointer { KeyStatement.occurs(in: $0) }
    }

    @Test(arguments: [
        "ATTACH 'x' AS x KEY 'y'", "attach database ? as x key ?", "PRAGMA key = 'y'", "PRAGMA main . [HexKey]='00'",
        "SELECT 1; PRAGMA rekey('y')", "EXPLAIN QUERY PLAN PRAGMA \"key\" = 1", "PRAGMA user_version; pragma key=x",
        "/* PRAGMA */ ; -- x\n PRAGMA/**/textkey='a'", "SELECT ';' ; ATTACH 'it''s; fine' AS b KEY x'00'",
    ])
    func found(sql: String) {
        #expect(holdsKey(sql))
    }

    @Test(arguments: [
        "", "key", "SELECT key FROM t", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "ATTACH 'key' AS \"key\"",
        "ATTACH 'x' AS y; SELECT key FROM y.t", "PRAGMA foreign_keys = ON", "-- PRAGMA key = 'x'", "PRAGMA",
        "SELECT 'PRAGMA key = 1; PRAGMA key = 2'", "PRAGMA foreign_key_list(key)",
    ])
    func notFound(sql: String) {
        #expect(!holdsKey(sql))
    }

    @Test(
        .enabled(if: isEncrypting, "needs a codec"),
        arguments: [
            "ATTACH 'x' AS x KEY 'hush' hush", "PRAGMA key = 'hush' hush", "SELECT frm hush; PRAGMA key = 'hush'",
            "ATTACH '/no/such/directory/x' AS x KEY 'hush'", "ATTACH ':memory:' AS x KEY 'hush'; SELECT 1",
        ]
    )
    func errorsDoNotShowIt(sql: String) throws {
        let database = Database(path: nil)
        database.open()
        #expect(!database.executeUpdate(sql, withArgumentsIn: []))
        #expect(database.hadError())
        #expect(!"\(database.lastError())".contains("hush"))
    }
}
