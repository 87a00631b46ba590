import Foundation
import SealedDB
import Testing

/// What two stores hold otherwise is told, and the SQL for it makes them hold the same.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct DiffTests {
    private func makeStores(_ script: String, _ change: String = "") throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "a", "--key-file", "key")
        try sandbox.succeed("exec", "a", "-", "--key-file", "key", input: script)
        try sandbox.succeed("backup", "a", "b", "--key-file", "key")
        if !change.isEmpty { try sandbox.succeed("exec", "b", "-", "--key-file", "key", input: change) }
        return sandbox
    }

    private func diff(_ sandbox: Sandbox, _ options: String..., status: Int32 = 1) throws -> Outcome {
        try diff(sandbox, options: options, status: status)
    }

    private func diff(_ sandbox: Sandbox, options: [String], status: Int32) throws -> Outcome {
        let outcome = try sandbox.run([Tool.sealdb, "diff", "a", "b", "--key-file", "key"] + options)
        #expect(outcome.status == status && outcome.error.isEmpty, "\(outcome.error)")
        return outcome
    }

    @Test func storesThatHoldTheSame() throws {
        let sandbox = try makeStores(DumpTests.script)
        for option in ["--quiet", "--schema-only"] {
            #expect(try diff(sandbox, option, status: 0).output.isEmpty)
        }
        // Other pages, but the same contents.
        try sandbox.succeed("exec", "b", "VACUUM", "--key-file", "key")
        #expect(try diff(sandbox, status: 0).output.isEmpty)
    }

    private static let base = """
        CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 3);
        CREATE TABLE u (k TEXT NOT NULL, n INT NOT NULL, v UNIQUE, PRIMARY KEY (k, n)) WITHOUT ROWID;
        INSERT INTO u VALUES ('x', 1, 10), ('x', 2, 20); CREATE INDEX i ON t (v); CREATE VIEW w AS SELECT 1;
        CREATE TRIGGER w AFTER DELETE ON t BEGIN SELECT 1; END;
        CREATE TABLE wide (a); INSERT INTO wide VALUES (1);
        """

    private static let change = """
        UPDATE t SET v = '3' WHERE id = 3; DELETE FROM t WHERE id = 1; INSERT INTO t (v) VALUES ('d');
        DROP INDEX i; CREATE INDEX j ON u (v); DROP VIEW w; CREATE VIEW w AS SELECT 2; ALTER TABLE wide ADD b;
        DELETE FROM u WHERE n = 1; INSERT INTO u VALUES ('y', 1, 10), ('z', 1, NULL); PRAGMA user_version = 5;
        """

    @Test func summary() throws {
        let sandbox = try makeStores(Self.base, Self.change)
        let outcome = try diff(sandbox)
        #expect(
            outcome.output == """
                table t: 1 row differs, 1 row only in a, 1 row only in b
                table u: 1 row only in a, 2 rows only in b
                table wide: made by another statement
                index i: only in a
                view w: made by another statement
                index j: only in b
                user_version: 0 in a, 5 in b
                last row id of t: 3 in a, 4 in b

                """
        )
        #expect(
            try diff(sandbox, "--table", "U").lines == [
                "table u: 1 row only in a, 2 rows only in b", "index j: only in b",
            ]
        )
        #expect(
            try diff(sandbox, "--schema-only", "--table", "t").lines == [
                "index i: only in a"
            ]
        )
        let first = try #require(try diff(sandbox, "--json").lines.first)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any])
        #expect(object["object"] as? String == "table" && object["name"] as? String == "t")
        #expect(object["rowsThatDiffer"] as? Int == 1 && object["rowsOnlyInSecond"] as? Int == 1)
    }

    /// The key tells rows apart that its columns by themselves do not.
    @Test(arguments: ["", "WITHOUT ROWID"])
    func aKeyWithACollationOfItsOwn(kind: String) throws {
        let sandbox = try makeStores(
            """
            CREATE TABLE t (a TEXT COLLATE NOCASE, b, c, PRIMARY KEY (a COLLATE BINARY, b)) \(kind);
            INSERT INTO t VALUES ('A', 2, 1), ('a', 2, 2), ('B', 1, 1);
            """,
            "UPDATE t SET c = 9 WHERE a = 'a' COLLATE BINARY"
        )
        #expect(try diff(sandbox).lines == ["table t: 1 row differs"])
        let sql = try diff(sandbox, "--sql").output
        let made = try sandbox.run([Tool.sealdb, "exec", "a", "-", "--key-file", "key"], input: sql)
        #expect(made.status == 0, "\(made.error)")
        #expect(try diff(sandbox, status: 0).output.isEmpty)
    }

    /// Values that are equal to SQLite may have another type, or another case.
    @Test func valuesAreComparedToTheByte() throws {
        let sandbox = try makeStores(
            """
            CREATE TABLE t (k TEXT COLLATE NOCASE NOT NULL PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), ('b', 'é'), ('c', x'61');
            """,
            """
            UPDATE t SET k = 'A', v = 1 WHERE k = 'a'; UPDATE t SET v = 'e' || char(769) WHERE k = 'b';
            UPDATE t SET v = 'a' WHERE k = 'c'; 
            """
        )
        #expect(try diff(sandbox).lines == ["table t: 3 rows differ"])
        #expect(try diff(sandbox, "--sql").output.contains("DELETE FROM \"t\" WHERE \"k\" COLLATE \"nocase\" = 'a';\n"))
    }

    /// Tables with every kind of key, and values that have to be unique.
    private static let keys = """
        CREATE TABLE pairs (k TEXT COLLATE NOCASE NOT NULL, n INT NOT NULL, v UNIQUE ON CONFLICT REPLACE, PRIMARY KEY (k, n));
        INSERT INTO pairs VALUES ('a', 1, 10), ('b', 1, 20), ('c', 2, 30), (CAST(x'ff61' AS TEXT), 3, 40);
        CREATE TABLE loose (k TEXT PRIMARY KEY, v); INSERT INTO loose VALUES (NULL, 1), (NULL, 2), ('x', 3);
        CREATE TABLE logged (a); CREATE TRIGGER noted AFTER INSERT ON pairs BEGIN INSERT INTO logged VALUES (new.v); END;
        CREATE TRIGGER erased AFTER DELETE ON pairs BEGIN INSERT INTO logged VALUES (-old.v); END;
        CREATE TABLE parent (id INTEGER PRIMARY KEY);
        CREATE TABLE child (id REFERENCES parent (id) ON DELETE CASCADE); INSERT INTO parent VALUES (1), (2);
        INSERT INTO child VALUES (1), (2);
        """

    private static let changes = [
        "UPDATE `odd \"name` SET v = 'other' WHERE id = 3;", "DELETE FROM `odd \"name` WHERE id > 10;",
        "INSERT INTO `odd \"name` (v) VALUES (x'0001'), (1e-300), ('a' || char(0, 13) || 'b');",
        "UPDATE plain SET rowid = 5;", "DELETE FROM plain WHERE _rowid_ = 7;", "UPDATE plain SET a = a || char(0);",
        "DROP TRIGGER deny; INSERT INTO bare VALUES ('m', 9);", "UPDATE bare SET v = v + 1;",
        "UPDATE bare SET k = 'A' WHERE k = 'a';",
        "UPDATE pairs SET v = NULL WHERE k = 'a'; UPDATE pairs SET v = 10 WHERE k = 'b'; UPDATE pairs SET v = 20 WHERE k = 'a';",
        "UPDATE pairs SET k = upper(k);", "DELETE FROM pairs WHERE n = 3;", "INSERT INTO pairs VALUES ('z', 9, 90);",
        "DELETE FROM loose WHERE v = 1; INSERT INTO loose VALUES (NULL, 7);", "UPDATE loose SET k = v;",
        "DROP INDEX i; CREATE INDEX i ON plain (a, b);", "ALTER TABLE later ADD COLUMN extra DEFAULT 5;",
        "DROP VIEW w; CREATE VIEW w AS SELECT 1 AS a;",
        "INSERT INTO words VALUES ('cats'); DELETE FROM words WHERE rowid = 1;",
        "INSERT INTO words (words, rank) VALUES ('pgsz', 1024);", "INSERT INTO box VALUES (9, 0.25, 0.5);",
        "UPDATE box SET x1 = 8 WHERE id = 4;", "DROP TABLE kept;",
        "CREATE TABLE fresh (a, b); INSERT INTO fresh VALUES (1, 2);",
        "DROP TABLE descending; CREATE VIEW descending AS SELECT 1;", "DELETE FROM parent WHERE id = 1;",
        "DROP TABLE checked; CREATE TABLE checked (a); CREATE INDEX plain_c ON checked (a);",
        "CREATE TRIGGER plain AFTER UPDATE ON pairs BEGIN SELECT 1; END;",
        "DROP TRIGGER noted; DROP TRIGGER erased; DROP TABLE logged;",
        "PRAGMA user_version = 7;", "PRAGMA application_id = 0;", "UPDATE spoken SET body = 'paroles', lid = 3;",
        "INSERT INTO old VALUES ('dogs');", "DELETE FROM kept_content;", "DELETE FROM sqlite_sequence;",
    ]

    /// The SQL makes any of these stores hold what the other holds, to the byte.
    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func theSQLMakesThemTheSame(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let chosen = Self.changes.shuffled(using: &generator).filter { _ in
            Int.random(in: 0..<3, using: &generator) == 0
        }
        // SQL can make only indexes of the whole text.
        let rebuilds = ["outside", "kept", "viewed"].filter { !chosen.contains("DROP TABLE \($0);") }
            .map { "INSERT INTO \($0) (\($0)) VALUES ('rebuild');" }
        let changes = ["PRAGMA foreign_keys = ON;"] + chosen + rebuilds
        let sandbox = try makeStores(DumpTests.script + Self.keys, changes.joined())
        let sql = try diff(sandbox, "--sql").output
        try sandbox.succeed("exec", "a", "-", "--key-file", "key", input: sql)
        #expect(try diff(sandbox, status: 0).output.isEmpty, "\(chosen)\n\(sql)")
        // Row ids that no column shows are not compared where there is a primary key.
        let dumps = try ["a", "b"].map { store in
            try sandbox.succeed("dump", store, "--key-file", "key").lines
                .filter { !$0.contains("INTO \"pairs\"") && !$0.contains("INTO \"loose\"") }.sorted()
        }
        #expect(dumps[0] == dumps[1])
        try sandbox.succeed("verify", "a", "--key-file", "key", "--deep")
    }

    private func withStockShell(_ sandbox: Sandbox, _ store: String, _ script: String) throws -> Outcome {
        let key = String(decoding: try sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        return try sandbox.run(["sqlcipher", store], input: "PRAGMA key = \"x'\(key)'\";\n" + script)
    }

    /// SQLite hands out both texts as the same UTF-8.
    @Test(arguments: ["UTF-16le", "UTF-16be"])
    func textsThatAreNotValidUTF16(encoding: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let halves = encoding == "UTF-16le" ? ["00D86100", "00D861DC"] : ["D8000061", "D800DC61"]
        for (store, text) in zip(["a", "b"], halves) {
            let script = """
                PRAGMA encoding = '\(encoding)'; CREATE TABLE t (a, k TEXT PRIMARY KEY NOT NULL);
                INSERT INTO t VALUES (CAST(x'\(text)' AS TEXT), 'same'), (1, CAST(x'\(text)' AS TEXT)), ('é日\u{1f600}', '\u{1f600}');
                """
            #expect(try withStockShell(sandbox, store, script).status == 0)
        }
        #expect(try diff(sandbox).lines == ["table t: 1 row differs, 1 row only in a, 1 row only in b"])
        let sql = try sandbox.sealdb("diff", "a", "b", "--key-file", "key", "--sql")
        #expect(sql.status == 65 && sql.output.hasSuffix("SELECT this_dump_is_incomplete;\n"))
        let dump = try sandbox.sealdb("dump", "a", "--key-file", "key")
        #expect(dump.status == 65 && dump.error.contains("not valid UTF-16"))
        // The store whose text is valid.
        try sandbox.succeed("dump", "b", "--key-file", "key")
    }

    @Test func otherEncodings() throws {
        let sandbox = try makeStores("CREATE TABLE t (a); INSERT INTO t VALUES ('é')")
        try FileManager.default.removeItem(atPath: sandbox.path("b"))
        let script = "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a); INSERT INTO t VALUES ('é');"
        #expect(try withStockShell(sandbox, "b", script).status == 0)
        #expect(try diff(sandbox).lines == ["encoding: UTF-8 in a, UTF-16le in b"])
        try sandbox.fail(65, "diff", "a", "b", "--key-file", "key", "--sql")
    }

    /// Applies what is written for these options, and expects that nothing is left to do, and that the index is whole.
    private func applying(_ sandbox: Sandbox, _ options: String...) throws {
        let outcome = try sandbox.run([Tool.sealdb, "diff", "a", "b", "--key-file", "key", "--sql"] + options)
        #expect(outcome.status == 1, "\(outcome.error)")
        try sandbox.succeed("exec", "a", "-", "--key-file", "key", input: outcome.output)
        #expect(try diff(sandbox, options: options, status: 0).output.isEmpty)
    }

    /// What stands in the first store under the name of a table, and what is kept beside the rows of one.
    @Test(arguments: [
        (
            "CREATE VIEW t AS SELECT 1;",
            "DROP VIEW t; CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (1), (10); DELETE FROM t WHERE a = 10;"
        ),
        (
            "CREATE TABLE b (x); CREATE INDEX n ON b (x);",
            "DROP INDEX n; CREATE TABLE n (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO n VALUES (7); DELETE FROM n;"
        ),
        (
            "CREATE TABLE n (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO n VALUES (7);",
            "DROP TABLE n; CREATE VIEW n AS SELECT 1;"
        ),
        ("CREATE TABLE n (a INTEGER PRIMARY KEY AUTOINCREMENT);", "INSERT INTO n VALUES (7); DELETE FROM n;"),
    ])
    func countersOfRowIDs(script: String, change: String) throws {
        try applying(try makeStores(script, change))
    }

    @Test func indexesOfTextsThatAreElsewhere() throws {
        let script = """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE VIEW v AS SELECT id, a FROM t WHERE id = 1;
            CREATE VIRTUAL TABLE f USING fts5(a, content = 't', content_rowid = 'id');
            CREATE VIRTUAL TABLE g USING fts5(a, content = 'v', content_rowid = 'id');
            CREATE TRIGGER fed AFTER INSERT ON t BEGIN INSERT INTO f (rowid, a) VALUES (new.id, new.a); END;
            INSERT INTO t VALUES (1, 'alpha'); INSERT INTO g (g) VALUES ('rebuild');
            """
        let whole = ["f", "g"].map { "INSERT INTO \($0) (\($0), rank) VALUES ('integrity-check', 1);" }.joined()
        let changes: [(String, [String])] = [
            ("INSERT INTO t VALUES (2, 'beta');", ["--table", "t"]),
            (
                "INSERT INTO t VALUES (2, 'beta'); DROP VIEW v; CREATE VIEW v AS SELECT id, a FROM t WHERE id = 2; INSERT INTO g (g) VALUES ('rebuild');",
                []
            ),
        ]
        for (change, options) in changes {
            let sandbox = try makeStores(script, change)
            try sandbox.run([Tool.sealdb, "exec", "a", whole, "--key-file", "key"])
            let outcome = try sandbox.run([Tool.sealdb, "diff", "a", "b", "--key-file", "key", "--sql"] + options)
            #expect(outcome.status == 1, "\(outcome.error)")
            try sandbox.succeed("exec", "a", "-", "--key-file", "key", input: outcome.output)
            try sandbox.succeed("exec", "a", whole, "--key-file", "key")
            let found = try sandbox.succeed(
                "query",
                "a",
                "SELECT rowid FROM f('beta')",
                "--key-file",
                "key",
                "--format",
                "csv"
            )
            #expect(found.lines == ["rowid", "2"])
        }
    }

    /// Where "rebuild" would make another index than the second store has, or than the first has of what is not compared.
    @Test(arguments: [
        ("INSERT INTO t VALUES (2, 'beta');", "b", "\"f\" has an index"),
        ("INSERT INTO f (f) VALUES ('delete-all'); CREATE TABLE u (a);", "b", "\"f\" has an index"),
        (
            "DROP TABLE f; CREATE VIRTUAL TABLE f USING fts5(b, content = 't', content_rowid = 'id');", "b",
            "no such column"
        ),
        ("ALTER TABLE t RENAME TO u;", "b", "no such table"),
        ("INSERT INTO t VALUES (2, 'beta');", "a", "\"f\" has an index"),
    ])
    func indexesThatHoldSomethingElse(change: String, second: String, reason: String) throws {
        let script = """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'alpha');
            CREATE VIRTUAL TABLE f USING fts5(a, content = 't', content_rowid = 'id'); INSERT INTO f (f) VALUES ('rebuild');
            """
        let sandbox = try makeStores(script, change)
        let stores = second == "b" ? ["a", "b"] : ["b", "a", "--table", "t"]
        let outcome = try sandbox.run([Tool.sealdb, "diff"] + stores + ["--key-file", "key", "--sql"])
        #expect(outcome.status == 65 && outcome.output.isEmpty && outcome.error.contains(reason), "\(outcome)")
        // What says only what differs needs no index.
        #expect(try !diff(sandbox).output.isEmpty)
    }

    /// What belongs to the whole store is left out with --table. Without differences the SQL does nothing, and well.
    @Test func partsAndNothing() throws {
        let sandbox = try makeStores("CREATE TABLE t (a)", "PRAGMA user_version = 9; PRAGMA application_id = 5;")
        #expect(try diff(sandbox, "--table", "t", status: 0).output.isEmpty)
        let sql = try diff(sandbox, "--table", "t", "--sql", status: 0).output
        #expect(sql.hasPrefix("PRAGMA foreign_keys") && !sql.contains("user_version"))
        try sandbox.succeed("exec", "a", "-", "--key-file", "key", input: sql)
        try applying(sandbox)
    }

    /// What is found without this command differs where it says so, and nowhere else.
    @Test func aDamagedPageIsNoDifference() throws {
        let sandbox = try makeStores("CREATE TABLE big (b); INSERT INTO big VALUES (zeroblob(50000)), (1)")
        let size = try sandbox.contents("b").count
        try sandbox.overwrite("b", at: UInt64(size - 4096 * 2 + 100), with: [1, 2, 3])
        for options in [[], ["--sql"]] {
            let outcome = try sandbox.run([Tool.sealdb, "diff", "a", "b", "--key-file", "key"] + options)
            #expect(outcome.status == 65 && outcome.output.isEmpty)
        }
    }

    @Test func otherKeysAndFormats() throws {
        let sandbox = try makeStores(Self.base)
        try sandbox.makeKey("other")
        try sandbox.succeed("rotate", "b", "--key-file", "key", "--new-key-file", "other")
        try sandbox.fail(77, "diff", "a", "b", "--key-file", "key")
        try sandbox.succeed("diff", "a", "b", "--key-file", "key", "--other-key-file", "other")
        // A descriptor gives its key once, for both.
        try sandbox.succeed("rotate", "b", "--key-file", "other", "--new-key-file", "key")
        let key = String(decoding: try sandbox.contents("key"), as: UTF8.self)
        try sandbox.succeed("diff", "a", "b", "--key-file", "-", input: key)
        try sandbox.fail(64, "diff", "a", "b", "--key-fd", "0", "--other-key-fd", "0", input: key)
    }

    @Test func refusals() throws {
        let sandbox = try makeStores(Self.base)
        try sandbox.fail(65, "diff", "a", "b", "--key-file", "key", "--table", "absent")
        try sandbox.fail(66, "diff", "a", "absent", "--key-file", "key")
        try sandbox.fail(64, "diff", "a", "b", "--key-file", "key", "--sql", "--schema-only")
        try sandbox.fail(64, "diff", "a", "b", "--key-file", "key", "--sql", "--json")
        try sandbox.fail(64, "diff", "a", "--key-file", "key")
        let hidden = "CREATE TABLE hidden (rowid, _rowid_, oid); INSERT INTO hidden VALUES (1, 2, 3)"
        for store in ["a", "b"] { try sandbox.succeed("exec", store, hidden, "--key-file", "key") }
        let outcome = try sandbox.fail(65, "diff", "a", "b", "--key-file", "key")
        #expect(outcome.error.contains("hidden"))
        try sandbox.succeed("diff", "a", "b", "--key-file", "key", "--table", "t")
        // What keeps no text cannot be compared, but how it was made can.
        let bare = "DROP TABLE hidden; CREATE VIRTUAL TABLE bare USING fts5(a, content = '')"
        for store in ["a", "b"] { try sandbox.succeed("exec", store, bare, "--key-file", "key") }
        try sandbox.fail(65, "diff", "a", "b", "--key-file", "key")
        try sandbox.succeed("diff", "a", "b", "--key-file", "key", "--schema-only")
    }
}
