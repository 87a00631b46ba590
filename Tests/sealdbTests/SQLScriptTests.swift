import Testing

@testable import sealdb

@Suite(.hangLimit)
struct SQLScriptTests {
    @Test(
        arguments: [
            ("", 0),
            (" ; ;; -- nothing\n /* ; */", 0),
            ("SELECT 1", 1),
            ("SELECT 1;", 1),
            ("SELECT ';' ; SELECT \";\", [;], `;` ; -- ;", 2),
            ("SELECT 'it''s; one'", 1),
            ("CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; UPDATE c SET d = 1; END; SELECT 1", 2),
            ("CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; END", 1),
            ("CREATE TABLE trigger_log (a); INSERT INTO trigger_log VALUES (1)", 2),
            ("SELECT 1 /* open", 1),
        ] as [(String, Int)]
    )
    func statements(_ sql: String, count: Int) {
        #expect(SQLScript(sql).statements.count == count)
    }

    @Test func textsOfStatements() {
        let script = SQLScript("INSERT INTO t VALUES ('é;'); -- next\n SELECT 1 ;; VACUUM")
        #expect(script.statements.map(\.text) == ["INSERT INTO t VALUES ('é;');", " -- next\n SELECT 1 ;", " VACUUM"])
        #expect(script.statements.map(\.verb) == ["INSERT", "SELECT", "VACUUM"])
        #expect(script.statements.map(\.countsChanges) == [true, false, false])
    }

    @Test(
        arguments: [
            ("INSERT INTO t VALUES (1); DELETE FROM t", false),
            ("CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; END", false),
            ("SELECT 'BEGIN'", false),
            ("begin; delete from t; commit", true),
            ("/* first */ VACUUM", true),
            ("PRAGMA user_version = 3", true),
        ] as [(String, Bool)]
    )
    func transactions(_ sql: String, manages: Bool) {
        #expect(SQLScript(sql).managesTransactions == manages)
    }

    @Test(arguments: [
        "-- old line ends\rCREATE TABLE t (a)", "SELECT 1; -- one\r-- two\rSELECT 2\nSELECT 3",
        "SELECT 1 -- \r;\rSELECT 2",
        "--\r\r/* */a",
    ])
    func hiddenLines(_ sql: String) {
        let failure = #expect(throws: Failure.self) { try SQLScript(sql).requireUsable() }
        #expect(failure?.message.contains("line feed") == true && failure?.status == .usage, "\(failure as Any)")
    }

    /// In one pass, however many lines a comment has.
    @Test func aCommentOfManyLines() throws {
        let lines = String(repeating: "--\r", count: 100_000)
        try SQLScript(lines + "\nSELECT 1").requireUsable()
        #expect(throws: Failure.self) { try SQLScript(lines + "SELECT 1").requireUsable() }
    }

    @Test(arguments: [
        "-- \r\nSELECT 1 -- \r\r\n", "SELECT '--\ra'", "SELECT 1\r-- a", "-- a\r \t-- b\r\r",
        "CREATE TABLE t (a, -- first\r b\n c)",
        "/* -- \ra */ SELECT 1",
        "SELECT [--\r], 1 -\r- 1",
    ])
    func nothingHidden(_ sql: String) {
        #expect(throws: Never.self) { try SQLScript(sql).requireUsable() }
    }

    @Test(arguments: [
        "PRAGMA key = 'secret'",
        "pragma main.rekey='secret'",
        "PRAGMA \"key\"='secret'",
        "SELECT 1; PRAGMA hexkey = 'aa'",
        "EXPLAIN PRAGMA key='secret'",
        "EXPLAIN QUERY PLAN PRAGMA key='secret'",
        "/* */ PRAGMA -- \n rekey('secret')",
        "ATTACH 'other.db' AS o KEY 'secret'",
        "PRAGMA cipher_use_hmac = off",
        "PRAGMA cipher_page_size(8192)",
        "PRAGMA temp_store = FILE",
        "PRAGMA main.page_size = 8192",
        "\u{FEFF}ATTACH 'other.db' AS o KEY 'secret'",
        "SELECT 1;\u{FEFF}ATTACH 'other.db' AS ?1KEY ''",
        "\u{FEFF}PRAGMA \u{FEFF}rekey = 'secret'",
    ])
    func refused(_ sql: String) {
        let failure = #expect(throws: Failure.self) { try SQLScript(sql).requireUsable() }
        #expect(failure?.status == .usage)
        #expect(failure?.message.contains("secret") == false)
    }

    @Test(arguments: [
        "SELECT 'PRAGMA key = x'",
        "PRAGMA cipher_version",
        "PRAGMA cipher_integrity_check",
        "PRAGMA page_size",
        "PRAGMA main.user_version",
        "ATTACH 'other.db' AS o",
        "CREATE TABLE t (key TEXT)",
    ])
    func permitted(_ sql: String) throws {
        #expect(throws: Never.self) { try SQLScript(sql).requireUsable() }
    }
}
