import Foundation
import SealedDB
import Testing

/// What is dumped can be made again, to the byte, by this command and by the stock shells.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct DumpTests {
    /// Every type, and values at the edges of each.
    static let script = """
        CREATE TABLE `odd "name` (id INTEGER PRIMARY KEY AUTOINCREMENT, v, `gen"d` AS (v || 'x'));
        INSERT INTO `odd "name` (v) VALUES (NULL), (0), (-9223372036854775808), (9223372036854775807), (1.0), (-0.0),
            (0.1), (1e300), (5e-324), (1.7976931348623157e308), (9e999), (-9e999), (''), ('it''s'), ('a' || char(0) || 'b'),
            (char(13, 10) || '~^|@' || char(0)), ('line' || char(10) || ';' || char(10) || '.quit' || char(10) || '/'),
            (CAST(x'ff00fe' AS TEXT)), (x''), (x'00ff0d0a27'), ('日本' || char(769)), ('\u{1fef}\u{37e}');
        DELETE FROM `odd "name` WHERE id = 2;
        CREATE TABLE plain (a TEXT, b REAL, rowid);
        INSERT INTO plain (_rowid_, a, b, rowid) VALUES (7, '1', 2, 'not the row id'), (-5, 3, '4', NULL);
        CREATE TABLE bare (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
        INSERT INTO bare VALUES ('z', 1), ('a', 2);
        CREATE TABLE later (a REFERENCES bare (k)); INSERT INTO later VALUES ('nowhere');
        CREATE INDEX i ON plain (a COLLATE NOCASE DESC) WHERE b > 1;
        CREATE VIEW w AS SELECT a, b FROM plain;
        CREATE TRIGGER r INSTEAD OF INSERT ON w BEGIN INSERT INTO plain (a) VALUES (new.a); SELECT 'it''s'; END;
        CREATE TRIGGER deny BEFORE INSERT ON bare BEGIN SELECT RAISE(FAIL, 'no'); END;
        CREATE VIRTUAL TABLE words USING fts5(body, tokenize = 'porter'); INSERT INTO words VALUES ('running'), ('dogs');
        INSERT INTO words (words, rank) VALUES ('pgsz', 512);
        CREATE VIRTUAL TABLE outside USING fts5(a, content='plain', content_rowid='_rowid_');
        INSERT INTO outside (outside) VALUES ('rebuild');
        CREATE VIRTUAL TABLE terms USING fts5vocab(words, row);
        CREATE TABLE kept_content (id INTEGER PRIMARY KEY, a); INSERT INTO kept_content VALUES (3, 'the user''s own');
        CREATE VIRTUAL TABLE kept USING fts5(a, content = [kept_content], content_rowid = id);
        INSERT INTO kept (kept) VALUES ('rebuild');
        CREATE TABLE checked (a CHECK (a > 0), b NOT NULL ON CONFLICT IGNORE, c UNIQUE ON CONFLICT REPLACE);
        PRAGMA ignore_check_constraints = ON; INSERT INTO checked VALUES (-1, 1, 1); PRAGMA ignore_check_constraints = OFF;
        CREATE VIEW source AS SELECT 1 AS id, 'seen' AS a;
        CREATE VIRTUAL TABLE viewed USING/**/"fts5"(a, /* x */ content = source, content_rowid = 'id');
        INSERT INTO viewed (viewed) VALUES ('rebuild');
        CREATE TABLE pragma_table_list (schema, name, type, ncol, wr, strict);
        INSERT INTO pragma_table_list VALUES ('main', 'bare', 'shadow', 1, 0, 0);
        CREATE TABLE descending (a INTEGER PRIMARY KEY DESC); INSERT INTO descending (rowid, a) VALUES (9, 1), (4, 2);
        CREATE TABLE said (a, -- the end;
            b) -- of it
        ;
        CREATE VIEW dotted AS SELECT 1 AS x,
        go
        .output FROM (SELECT 1 AS output) AS go;
        CREATE VIRTUAL TABLE spoken USING fts4(body, languageid="lid");
        INSERT INTO spoken (body, lid) VALUES ('mots', 3);
        CREATE VIRTUAL TABLE old USING fts4(body); INSERT INTO old VALUES ('cats');
        CREATE VIRTUAL TABLE box USING rtree(id, x0, x1); INSERT INTO box VALUES (4, 1.5, 2.5);
        PRAGMA user_version = 42; PRAGMA application_id = -7;
        """

    private func makeStore() throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: Self.script)
        return sandbox
    }

    private func dump(_ sandbox: Sandbox, _ store: String, _ options: String...) throws -> String {
        let outcome = try sandbox.run([Tool.sealdb, "dump", store, "--key-file", "key"] + options)
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        return outcome.output
    }

    /// The types and bytes of all values, as the SQL of the stock shell sees them.
    private static let census = """
        SELECT id, typeof(v), hex(CAST(v AS BLOB)), v = 9e999, printf('%!.17g', v) FROM `odd "name` ORDER BY id;
        SELECT _rowid_, typeof(a), a, typeof(b), b, typeof(rowid), rowid FROM plain ORDER BY _rowid_;
        SELECT * FROM bare; SELECT * FROM later; SELECT * FROM w; SELECT rowid, * FROM words;
        SELECT rowid FROM words WHERE words MATCH 'run'; SELECT rowid FROM outside WHERE outside MATCH '1';
        SELECT rowid, body FROM old WHERE old MATCH 'cats'; SELECT * FROM box; SELECT v FROM words_config WHERE k = 'pgsz';
        SELECT * FROM kept_content; SELECT rowid FROM kept WHERE kept MATCH 'user'; SELECT rowid, * FROM descending;
        SELECT * FROM terms; SELECT * FROM checked;
        SELECT rowid FROM viewed WHERE viewed MATCH 'seen'; SELECT name FROM pragma_table_list; SELECT rowid, body, lid FROM spoken WHERE spoken MATCH 'mots' AND lid = 3;
        SELECT name FROM sqlite_schema WHERE name NOT LIKE '%stat_' ORDER BY name; SELECT * FROM sqlite_sequence;
        PRAGMA user_version; PRAGMA application_id;
        PRAGMA ignore_check_constraints = ON; PRAGMA integrity_check;
        """

    private func census(_ sandbox: Sandbox, _ shell: [String], key: String = "") throws -> String {
        let outcome = try sandbox.run(shell, input: key + Self.census)
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        #expect(outcome.lines.last == "ok")
        return outcome.output
    }

    @Test func loadedByThisCommandAndByTheShells() throws {
        let sandbox = try makeStore()
        let sql = try dump(sandbox, "db")
        let text = String(decoding: try sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        let pragma = "PRAGMA key = \"x'\(text)'\";\n"
        let original = try census(sandbox, ["sqlcipher", "db"], key: pragma)
        #expect(original.split(separator: "\n").count > 50)

        try sandbox.succeed("create", "copy", "--key-file", "key")
        try sandbox.succeed("exec", "copy", "-", "--key-file", "key", input: sql)
        #expect(try dump(sandbox, "copy") == sql)
        #expect(try census(sandbox, ["sqlcipher", "copy"], key: pragma) == original)

        let encrypted = try sandbox.run(["sqlcipher", "loaded"], input: pragma + sql)
        #expect(encrypted.status == 0 && encrypted.error.isEmpty, "\(encrypted.error)")
        #expect(try census(sandbox, ["sqlcipher", "loaded"], key: pragma) == original)
        #expect(try dump(sandbox, "loaded") == sql)
        // The shell has not taken the line with the dot for a command of its own, which would make this file.
        #expect(!sandbox.exists("FROM"))
    }

    @Test func parts() throws {
        let sandbox = try makeStore()
        let schema = try dump(sandbox, "db", "--schema-only")
        #expect(schema.contains("CREATE TRIGGER deny") && !schema.contains("INTO \"plain\""))
        let rows = try dump(sandbox, "db", "--data-only", "--table", "PLAIN")
        #expect(
            rows == """
                PRAGMA foreign_keys = OFF;
                PRAGMA ignore_check_constraints = ON;
                BEGIN TRANSACTION;
                INSERT OR ABORT INTO "plain"("_rowid_","a","b","rowid") VALUES(-5,'3',4.0,NULL);
                INSERT OR ABORT INTO "plain"("_rowid_","a","b","rowid") VALUES(7,'1',2.0,'not the row id');
                COMMIT;
                PRAGMA ignore_check_constraints = OFF;

                """
        )
        let one = try dump(sandbox, "db", "--table", "bare")
        #expect(one.contains("CREATE TRIGGER deny") && !one.contains("plain") && !one.contains("user_version"))
        let none = try sandbox.sealdb("dump", "db", "--table", "absent", "--key-file", "key")
        #expect(none.status == 65 && !none.output.contains("COMMIT"))
        try sandbox.fail(64, "dump", "db", "--schema-only", "--data-only", "--key-file", "key")
    }

    /// What stands behind the statement in the schema, which SQLite ignores, is not written.
    @Test func aSchemaThatWasMeddledWith() throws {
        let sandbox = try makeStore()
        let text = String(decoding: try sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        let script = """
            .dbconfig defensive off
            PRAGMA key = "x'\(text)'"; PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = sql || char(59, 10) || '.shell touch touched' || char(10) WHERE name = 'plain';
            """
        let meddled = try sandbox.run(["sqlcipher", "db"], input: script)
        #expect(meddled.status == 0, "\(meddled.error)")
        let sql = try dump(sandbox, "db")
        #expect(!sql.contains("touch touched\n;") && sql.contains("CREATE TABLE plain (a TEXT, b REAL, rowid);\n"))
        let loaded = try sandbox.run(["sqlcipher", "loaded"], input: "PRAGMA key = \"x'\(text)'\";\n" + sql)
        #expect(loaded.status == 0 && loaded.error.isEmpty, "\(loaded.error)")
        #expect(!sandbox.exists("touched"))
    }

    @Test func tablesThatKeepNoText() throws {
        let sandbox = try makeStore()
        try sandbox.succeed(
            "exec",
            "db",
            "CREATE VIRTUAL TABLE bodiless USING/**/\"fts5\"(a, /*x*/ content = '')",
            "--key-file",
            "key"
        )
        let outcome = try sandbox.sealdb("dump", "db", "--key-file", "key")
        #expect(outcome.status == 65)
        #expect(outcome.error.contains("bodiless"))
        #expect(outcome.output.isEmpty)
        // The schema alone can be written.
        #expect(try dump(sandbox, "db", "--schema-only").contains("bodiless"))
    }

    /// Tables that are called as if a virtual table had made them, beside some for which it has made none, or later.
    @Test(arguments: [
        ("notes_stat", "USING fts3(body)"), ("notes_docsize", "USING fts3(body)"),
        ("notes_content", "USING rtree(a, b, c)"),
        ("notes_docsize", "USING fts4(body, matchinfo=fts3)"), ("notes_docsize", "USING fts5(body, columnsiz=0)"),
        ("notes_content", "USING fts5(body, cont='notes_content')"), ("notes_node", "USING fts5(body)"),
        ("notes_content", "USING fts4(body, content=notes_content)"),
    ])
    func tablesOfTheUsersBesideVirtualOnes(table: String, form: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        let script = """
            CREATE TABLE \(table) (id INTEGER PRIMARY KEY, body); INSERT INTO \(table) VALUES (7, 'precious');
            CREATE VIRTUAL TABLE notes \(form);
            \(form.contains("cont") ? "INSERT INTO notes (notes) VALUES ('rebuild');" : "")
            """
        try sandbox.succeed("exec", "db", script, "--key-file", "key")
        #expect(try sandbox.succeed("tables", "db", "--key-file", "key").lines.sorted() == ["notes", table])
        let sql = try dump(sandbox, "db")
        try sandbox.succeed("create", "copy", "--key-file", "key")
        try sandbox.succeed("exec", "copy", "-", "--key-file", "key", input: sql)
        let found = try sandbox.succeed(
            "query",
            "copy",
            "SELECT * FROM \(table)",
            "--format",
            "csv",
            "--key-file",
            "key"
        )
        #expect(found.output == "id,body\n7,precious\n")
        #expect(try dump(sandbox, "copy") == sql)
    }

    /// What the text of a statement seems to say, and the module reads otherwise.
    @Test func optionsThatAreNone() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        let script = """
            CREATE VIRTUAL TABLE old USING fts3(a, content='x'); INSERT INTO old VALUES ('one', 'two');
            INSERT INTO old(old) VALUES ('automerge=2');
            """
        try sandbox.succeed("exec", "db", script, "--key-file", "key")
        let sql = try dump(sandbox, "db")
        #expect(!sql.contains("old_stat") && sql.contains("'one','two'"))
        try sandbox.succeed("create", "copy", "--key-file", "key")
        try sandbox.succeed("exec", "copy", "-", "--key-file", "key", input: sql)
        #expect(try dump(sandbox, "copy") == sql)
        // This one keeps no text.
        try sandbox.succeed("exec", "db", "CREATE VIRTUAL TABLE bare USING fts5(a, cont='')", "--key-file", "key")
        try sandbox.fail(65, "dump", "db", "--key-file", "key")
    }

    /// A store that somebody else wrote.
    @Test func settingsThatAreCommandsAndCountersOfNothing() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let text = String(decoding: try sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        let script = """
            PRAGMA key = "x'\(text)'"; CREATE TABLE c (a INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE t (a);
            INSERT INTO sqlite_sequence VALUES ('t', 5);
            """
        #expect(try sandbox.run(["sqlcipher", "db"], input: script).status == 0)
        let sql = try dump(sandbox, "db", "--table", "t")
        #expect(!sql.contains("sqlite_sequence"))
        let hostile = """
            .dbconfig defensive off
            PRAGMA key = "x'\(text)'"; CREATE VIRTUAL TABLE words USING fts5(a, content='t');
            INSERT INTO words_config VALUES ('delete-all', 0);
            """
        #expect(try sandbox.run(["sqlcipher", "db"], input: hostile).status == 0)
        let outcome = try sandbox.sealdb("dump", "db", "--key-file", "key")
        #expect(outcome.status == 65 && outcome.error.contains("delete-all"))
        #expect(!outcome.output.contains("'delete-all'"))
    }

    @Test func aDamagedPage() throws {
        let sandbox = try makeStore()
        try sandbox.succeed(
            "exec",
            "db",
            "CREATE TABLE big (b); INSERT INTO big VALUES (zeroblob(50000))",
            "--key-file",
            "key"
        )
        let size = try sandbox.contents("db").count
        try sandbox.overwrite("db", at: UInt64(size - 4096 * 2 + 100), with: [1, 2, 3])
        let outcome = try sandbox.sealdb("dump", "db", "--key-file", "key")
        #expect(outcome.status == 65)
        #expect(!outcome.output.contains("COMMIT"))
        #expect(outcome.output.hasSuffix("ROLLBACK;\nSELECT this_dump_is_incomplete;\n"))
        // Whoever loads it fails, too: the status of a pipe is that of its last command.
        try sandbox.succeed("create", "copy", "--key-file", "key")
        try sandbox.fail(65, "exec", "copy", "-", "--key-file", "key", input: outcome.output)
        #expect(try sandbox.run(["sqlcipher", "loaded"], input: outcome.output).status != 0)
    }

    @Test func storesInUTF16() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let text = String(decoding: try sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        let script = """
            PRAGMA key = "x'\(text)'"; PRAGMA encoding = 'UTF-16le';
            CREATE TABLE t (a); INSERT INTO t VALUES ('é' || char(0, 13) || '日本');
            """
        let meddled = try sandbox.run(["sqlcipher", "db"], input: script)
        #expect(meddled.status == 0, "\(meddled.error)")
        let sql = try dump(sandbox, "db")
        #expect(sql.hasPrefix("PRAGMA encoding = 'UTF-16le';\n"))
        try sandbox.succeed("create", "copy", "--key-file", "key")
        try sandbox.succeed("exec", "copy", "-", "--key-file", "key", input: sql)
        let found = try sandbox.succeed(
            "query",
            "copy",
            "SELECT a = 'é' || char(0, 13) || '日本' AS same FROM t",
            "--format",
            "csv",
            "--key-file",
            "key"
        )
        #expect(found.output == "same\n1\n")
    }

    @Test func schemaAndTables() throws {
        let sandbox = try makeStore()
        let tables = try sandbox.succeed("tables", "db", "--key-file", "key")
        #expect(
            tables.lines == [
                "bare", "box", "checked", "descending", "dotted", "kept", "kept_content", "later", "odd \"name", "old",
                "outside", "plain", "pragma_table_list", "said", "source", "spoken", "terms", "viewed", "w", "words",
            ]
        )
        let schema = try sandbox.succeed("schema", "db", "bare", "--key-file", "key")
        #expect(
            schema.output == """
                CREATE TABLE bare (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
                CREATE TRIGGER deny BEFORE INSERT ON bare BEGIN SELECT RAISE(FAIL, 'no'); END;

                """
        )
        let all = try sandbox.succeed("schema", "db", "--key-file", "key")
        #expect(all.output.contains("CREATE VIRTUAL TABLE box") && !all.output.contains("words_data"))
        try sandbox.fail(65, "schema", "db", "absent", "--key-file", "key")
        try sandbox.fail(64, "tables", "db")
    }
}
