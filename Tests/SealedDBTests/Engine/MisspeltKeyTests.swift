import Testing

@testable import SealedDB

/// A key does not stand in an error because the statement that was to hold it is misspelt.
@Suite(.hangLimit)
struct MisspeltKeyTests {
    private static let secret = "TOPSECRET"

    private static let texts = [
        "PRAGMA key 'TOPSECRET'", "PRAGM key='TOPSECRET'", "pragma main key = 'TOPSECRET'",
        "PRAGMA key='TOPSECRET' x", "PRAGMA = 'TOPSECRET' key", "PRAGMA hexkey(TOPSECRET",
        "PRAGMA cipher='TOPSECRET'x", "PRAGMA passphrase='TOPSECRET' x",
        "SET key = 'TOPSECRET'", "KEY 'TOPSECRET'", "ALTER STORE KEY 'TOPSECRET'",
        "ATTCH 'x' AS y KEY 'TOPSECRET'", "ATTACH 'x' y 'TOPSECRET'", "ATTACH 'x' AS y KEY'TOPSECRET",
        "SELECT 1 PRAGMA key='TOPSECRET'", "SELECT 1\nPRAGMA key = TOPSECRET;",
        "SELECT 1\nATTACH 'b' AS c KEY TOPSECRET", "CREATE TABLE a(x)\nATTACH 'b' AS c KEY 'TOPSECRET';",
        "BEGIN\nATTACH 'b' AS c KEY 'TOPSECRET'", "DETACH c ATTACH 'b' AS c KEY 'TOPSECRET'",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN PRAGMA key='TOPSECRET'; END",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN ATTACH 'x' AS y KEY 'TOPSECRET'; END; SELECT 1",
        "WITH x AS (PRAGMA key='TOPSECRET') SELECT 1", "EXPLAIN QUERY PLAN ATTACH 'x' AS y KEY 'TOPSECRET' z",
        "SELECT * FROM pragma_key('TOPSECRET')", "SELECT nosuch('x') KEY 'TOPSECRET'",
        "VACUUM INTO 'x' KEY 'TOPSECRET' y", "PRAGMA cipher_compatibility=3 PRAGMA key='TOPSECRET'",
        "PRAGMA foreign_keys=ON PRAGMA key='TOPSECRET'", "SELECT 'a; ATTACH 'b' AS c KEY 'TOPSECRET'",
        "SELECT \"a; ATTACH 'b' AS c KEY 'TOPSECRET'", "/* PRAGMA key='TOPSECRET' */ SELECT nosuch",
        "SELECT nosuch -- PRAGMA key = 'TOPSECRET'", "CREATE TABLE a(x) 'k' \"key\" 'TOPSECRET'",
        "VACUUM INTO 'x' KEY TOPSECRET", "VACUUM main INTO 'x' WITH KEY TOPSECRET", "DETACH c KEY TOPSECRET",
        "PRAGMA main key = TOPSECRET", "PRAGMA x.y.key = TOPSECRET", "PRAGMA passphrase TOPSECRET",
        "CREATE TABLE a(x) VACUUM INTO 'x' KEY TOPSECRET", "ATACH DATABASE 'b' AS c 'TOPSECRET'",
        "PRAGMA integrity_check('t') PRAGMA key='TOPSECRET'", "PRAGMA integrity_check('TOPSECRET' key",
        "PRAGMA quick_check('a PRAGMA key = 'TOPSECRET')", "PRAGMA integrity_chek('TOPSECRET') x",
        "PRAGMA integrity_check('t'/* PRAGMA key='TOPSECRET' */)", "PRAGMA integrity_check('t'); 'TOPSECRET'",
        "PRGMA kye='TOPSECRET'", "SELECT 1 KEY x'TOPSECRET'", "SELECT 'it's' PASSPHRASE 'TOPSECRET'",
    ]

    @Test(arguments: texts, [true, false])
    func isNotShown(text: String, hasKey: Bool) throws {
        guard isEncrypting || !hasKey else { return }
        let database = Database(path: ":memory:", configuration: hasKey ? try Configuration(key: .testing(1)) : .init())
        try database.openVerified()
        defer { database.close() }
        let error = #expect(throws: DatabaseError.self) { try database.executeUpdate(SQL(raw: text)) }
        #expect(!String(describing: error).contains(MisspeltKeyTests.secret), "\(String(describing: error))")
        #expect(!database.executeStatements("SELECT 1; " + text))
        #expect(!String(describing: database.lastError()).contains(MisspeltKeyTests.secret))
        #expect(!database.lastErrorMessage().contains(MisspeltKeyTests.secret))
    }

    /// Where nothing points to a key, the statement is told.
    @Test(arguments: [
        "SELECT nosuch FROM sqlite_schema WHERE name = 'a'",
        "CREATE TABLE a(id INTEGER PRIMARY KEY, name TEXT DEFAULT 'x', FOREIGN KEY (id) REFERENCES b) nosuch",
        "SELECT value FROM nosuch WHERE key = ?", "SELCT 'a'", "SELECT valu FROM nosuch WHERE key = 'theme'",
        "SELECT value FROM nosuch WHERE key='a' ORDR BY 1", "SELECT keyword FROM nosuch WHERE a = 1",
        "INSERT INTO nosuch VALUES ('a monkey ate it'", "SELECT attach FROM nosuch",
        "CREATE TABLE kv(key TEXT, value TEXT) nosuch",
        "PRAGMA foreign_keys = ON nosuch",
        "SELECT 'x' AS key nosuch", "SELECT \"passphrase\", [key] FROM nosuch",
        "CREATE TABLE a(id PRIMARY KEY DEFAULT 'x') nosuch", "ALTR TABLE t ADD b 5", "ATTCH 1.5e3",
        "ATTACH 'x' AS", "PRAGMA integrity_check('nosuch')", "PRAGMA quick_check(\"nosuch\");",
    ])
    func othersAreShown(text: String) throws {
        let database = Database(path: ":memory:", configuration: Configuration())
        try database.openVerified()
        defer { database.close() }
        let error = #expect(throws: DatabaseError.self) { try database.executeUpdate(SQL(raw: text)) }
        let isSecret = text.hasPrefix("ATTACH")
        #expect((error?.sql == text) == !isSecret, "\(String(describing: error))")
    }
}
