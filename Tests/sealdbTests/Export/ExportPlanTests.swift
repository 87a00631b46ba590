import Foundation
import SealedDB
import Testing

/// What a store becomes, as --dry-run tells it, which needs no PostgreSQL.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ExportPlanTests {
    private func plan(_ script: String, _ options: String..., status: Int32 = 0) throws -> Outcome {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: script)
        let outcome = try sandbox.run([Tool.sealdb, "export", "db", "--dry-run", "--key-file", "key"] + options)
        #expect(outcome.status == status, "\(outcome.error)")
        return outcome
    }

    @Test func typesFromDeclarationsAndContents() throws {
        let outcome = try plan(
            """
            CREATE TABLE t (i INTEGER, r REAL, s VARCHAR(9), b BLOB, n NUMERIC(9, 2), o BOOLEAN, d DATE, m DATETIME,
                z TIMESTAMP, x, y, u STRING, e, w NUMERIC(4,2));
            INSERT INTO t VALUES (1, 2, 'a', x'00', 1.25, 1, '2026-01-01', '2026-01-01 10:00', '2026-01-01 10:00Z', 7, 7, 5.5,
                NULL, 123.5), (NULL, 1.5, NULL, NULL, 3, 0, NULL, '2026-01-01', NULL, 8, 8.5, 6, NULL, 1);
            """
        )
        let wanted = """
            "i" bigint, "r" double precision, "s" text, "b" bytea, "n" numeric(9,2), "o" boolean, "d" date, \
            "m" timestamp without time zone, "z" timestamp with time zone, "x" bigint, "y" double precision, \
            "u" double precision, "e" text, "w" numeric )
            """
        let text = outcome.output.replacing("\n", with: " ").split(separator: " ").joined(separator: " ")
        #expect(text.contains(wanted), "\(outcome.output)")
        #expect(outcome.output.contains("-- not taken: type \"t.w\": has numbers with more digits"))
    }

    /// Each with what the column becomes with --widen.
    @Test(arguments: [
        ("INTEGER", "'nine'", "row id 7 holds a text, and bigint does not", "text"),
        ("INTEGER", "1.5", "holds a floating-point number", "double precision"),
        ("INTEGER", "x'00'", "holds a blob", "bytea"),
        ("TEXT", "x'00'", "holds a blob", "bytea"),
        ("TEXT", "'a' || char(0)", "holds a text with a NUL", "bytea"),
        ("TEXT", "CAST(x'ff' AS TEXT)", "holds a text that is not valid UTF-8", "bytea"),
        ("BLOB", "'text'", "holds a text, and bytea does not", "text"),
        ("BOOLEAN", "2", "holds an integer, and boolean does not", "bigint"),
        ("NUMERIC", "9e999", "holds an infinite number", "double precision"),
        ("DATE", "'tomorrow'", "holds a text, and timestamp without time zone does not", "text"),
        ("DATETIME", "'2026-01-01 10:00:00.1234567'", "holds a text", "text"),
        ("REAL", "'x'", "holds a text, and double precision does not", "text"),
    ])
    func valuesThatDoNotFit(_ declared: String, _ value: String, _ told: String, _ widened: String) throws {
        // A value that fits is before it, and one that is NULL.
        let fitting = [
            "INTEGER": "1", "TEXT": "'a'", "BLOB": "NULL", "BOOLEAN": "1", "NUMERIC": "1", "DATE": "'2026-01-01'",
            "DATETIME": "'2026-01-01'", "REAL": "1",
        ][declared]!
        let script = """
            CREATE TABLE t (v \(declared)); INSERT INTO t (rowid, v) VALUES (5, \(fitting)), (6, NULL), (7, \(value)), (8, \(value));
            """
        let outcome = try plan(script, status: 65)
        #expect(outcome.error.contains("table \"t\", column \"v\" (\(declared)): row id 7"), "\(outcome.error)")
        #expect(outcome.error.contains(told) && outcome.error.contains("becomes \(widened)."), "\(outcome.error)")
        let wide = try plan(script, "--widen")
        #expect(wide.output.contains("\"v\" \(widened)\n"), "\(wide.output)")
        #expect(wide.output.contains("not taken: type \"t.v\""))
    }

    @Test func aTextInUTF16ThatIsNoText() throws {
        let script = """
            PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('ü€😀'), (CAST(x'00d8' AS TEXT));
            """
        let outcome = try plan(script, status: 65)
        #expect(outcome.error.contains("row id 2 holds a text that is not valid"), "\(outcome.error)")
        #expect(try plan(script, "--widen").output.contains("\"v\" bytea"))
    }

    @Test func tablesWithoutRowIDsTellThePlace() throws {
        let outcome = try plan(
            """
            CREATE TABLE t (k TEXT PRIMARY KEY, v INT) WITHOUT ROWID; INSERT INTO t VALUES ('secret a', 1), ('secret b', 'x');
            """,
            status: 65
        )
        #expect(outcome.error.contains("row 2 in the order of the primary key holds a text"), "\(outcome.error)")
        #expect(!outcome.error.contains("secret"))
    }

    @Test func constraintsThatRowsViolate() throws {
        let script = """
            CREATE TABLE t (k TEXT PRIMARY KEY, v INT); INSERT INTO t VALUES (NULL, 1);
            CREATE TABLE p (a INTEGER PRIMARY KEY); CREATE TABLE c (a REFERENCES p); INSERT INTO c VALUES (NULL), (9);
            """
        let outcome = try plan(script, status: 65)
        #expect(outcome.error.contains("column \"k\" (PRIMARY KEY): row id 1 holds NULL"), "\(outcome.error)")
        #expect(outcome.error.contains("foreign key (a): row id 2 refers to no row of \"p\""), "\(outcome.error)")
        let wide = try plan(script, "--widen", "--without", "foreign-keys")
        #expect(
            wide.output.contains("\"t_pkey\" UNIQUE (\"k\")") && !wide.output.contains("FOREIGN KEY"),
            "\(wide.output)"
        )
    }

    @Test func namesThatPostgreSQLCannotHave() throws {
        let long = String(repeating: "é", count: 32)
        let outcome = try plan(
            "CREATE TABLE \"\(long)\" (a, \"\", xmin); CREATE TABLE t (a); CREATE INDEX \"\(long)i\" ON t (a);",
            status: 65
        )
        for text in [
            "table \"\(long)\" has a name of 64 bytes, and PostgreSQL takes 63", "column \"\" has no name",
            "column \"xmin\"",
            "index \"\(long)i\" has a name of 65 bytes",
        ] {
            #expect(outcome.error.contains(text), "\(outcome.error)")
        }
    }

    @Test func whatIsNotTakenIsListed() throws {
        let outcome = try plan(
            """
            CREATE TABLE t (a INT CHECK (a % 2 = 0) DEFAULT (abs(1)), b TEXT COLLATE NOCASE UNIQUE ON CONFLICT REPLACE,
                g TEXT AS (b || 'x') STORED, c DATE DEFAULT 'soon', UNIQUE (a, b));
            INSERT INTO t (a, b, c) VALUES (2, 'b', '2026-01-01');
            CREATE INDEX ie ON t (a + 1); CREATE UNIQUE INDEX ip ON t (a) WHERE b LIKE 'a%'; CREATE INDEX ok ON t (a) WHERE a > 1;
            CREATE TABLE fk (b TEXT REFERENCES t (b), n TEXT REFERENCES t (a), o REFERENCES gone);
            CREATE VIEW v AS SELECT 1; CREATE TRIGGER r AFTER DELETE ON t BEGIN SELECT 1; END;
            CREATE VIRTUAL TABLE words USING fts5(x); CREATE TABLE counted (n DATETIME); INSERT INTO counted VALUES (1790000000);
            """
        )
        for text in [
            "check \"t\": PostgreSQL may read it otherwise: a % 2 = 0", "default \"t.a\"", "default \"t.c\"",
            "collation \"t.b\"",
            "clause \"t\": ON CONFLICT", "expression \"t.g\"", "index \"ie\"", "unique index \"ip\"", "view \"v\"",
            "trigger \"r\"",
            "virtual table \"words\"", "foreign key \"fk (b) to t\": the key is not compared",
            "foreign key \"fk (n) to t\"",
            "foreign key \"fk (o) to gone\": that table is not exported",
            "type \"counted.n\": holds numbers where dates",
        ] {
            #expect(outcome.output.contains("-- not taken: \(text)"), "\(text) in \(outcome.output)")
        }
        #expect(outcome.output.contains("CREATE INDEX \"ok\" ON \"public\".\"t\" (\"a\") WHERE \"a\" > 1;"))
        #expect(!outcome.output.contains("words_content"))
    }

    @Test func aCommentStaysOne() throws {
        let outcome = try plan("CREATE VIEW \"v\n; DROP TABLE x; --\" AS SELECT 1;")
        #expect(outcome.lines.allSatisfy { !$0.hasPrefix("; DROP") })
    }

    @Test func planAsJSON() throws {
        let outcome = try plan("CREATE TABLE t (a INT); INSERT INTO t VALUES ('x');", "--json", status: 65)
        let object = try #require(try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any])
        #expect(object["status"] as? String == "failed" && object["exitCode"] as? Int == 65)
        #expect((object["problems"] as? [String])?.count == 1 && (object["statements"] as? [String])?.count == 2)
    }

    @Test func wrongUsage() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.fail(64, "export", "db", "--key-file", "key")
        try sandbox.fail(64, "export", "db", "--dry-run", "--key-file", "key", "--schema", "")
        try sandbox.fail(64, "export", "db", "--dry-run", "--key-file", "key", "--schema", "pg_own")
        try sandbox.fail(64, "export", "db", "--dry-run", "--key-file", "key", "--without", "rows")
        try sandbox.fail(65, "export", "db", "--dry-run", "--key-file", "key", "--table", "absent")
        try sandbox.makeKey("other")
        try sandbox.fail(77, "export", "db", "--dry-run", "--key-file", "other")
    }
}
