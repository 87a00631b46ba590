import Foundation
import Testing

/// Full-text tables that have their text elsewhere are dumped as the command that indexes all of it. So their index has to
/// be that one.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct DumpedIndexTests {
    private static let text = """
        CREATE TABLE t (id INTEGER PRIMARY KEY, v, other);
        INSERT INTO t VALUES (1, 'public words', 'x'), (2, 'secret words', 7), (3, '', NULL), (-4, x'6162', 'y');
        """
    private static let rebuild = "INSERT INTO f (f) VALUES ('rebuild');"

    private func makeStore(_ script: String) throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: script)
        return sandbox
    }

    private func found(_ sandbox: Sandbox, _ store: String, _ query: String) throws -> String {
        try sandbox.succeed("query", store, query, "--key-file", "key", "--format", "csv", "--no-header").output
    }

    /// Some rows are withheld from the index, also one without a word; it is older than the text; it holds a row that is
    /// gone; a row of a view has no id; the text is gone, or a column of it.
    @Test(arguments: [
        (
            "fts5(v, content='t', content_rowid='id')", "INSERT INTO f (rowid, v) VALUES (1, 'public words');",
            "'rebuild'"
        ),
        ("fts5(v, content='t', content_rowid='id')", "", "'rebuild'"),
        (
            "fts5(v, content='t', content_rowid='id')",
            rebuild + "INSERT INTO f (f, rowid, v) VALUES ('delete', 3, '');", "'rebuild'"
        ),
        (
            "fts5(v, content='t', content_rowid='id', detail=none, columnsize=0)",
            rebuild + "UPDATE t SET v = 'public word' WHERE id = 1;", "'rebuild'"
        ),
        (
            "fts5(v, other, content='t', content_rowid='id', detail=column)",
            rebuild + "UPDATE t SET v = other, other = v WHERE id = 1;", "'rebuild'"
        ),
        (
            "fts5(v, content='t', content_rowid='id')",
            rebuild + "UPDATE t SET v = 'words public' WHERE id = 1;", "'rebuild'"
        ),
        ("fts5(v, content='t', content_rowid='id')", rebuild + "DELETE FROM t WHERE id = 1;", "'rebuild'"),
        (
            "fts5(v, content='w', content_rowid='id')",
            "CREATE VIEW w AS SELECT NULL AS id, 'hidden' AS v;", "'rebuild'"
        ),
        ("fts5(w, content='t', content_rowid='id')", "INSERT INTO f (rowid, w) VALUES (1, 'hello');", "no such column"),
        (
            "fts5(v, content='t', content_rowid='key')", "INSERT INTO f (rowid, v) VALUES (1, 'hello');",
            "no such column"
        ),
        (
            "fts5(v, content='none', content_rowid='id')", "INSERT INTO f (rowid, v) VALUES (1, 'hello');",
            "no such table"
        ),
        ("fts4(v, content=t)", "INSERT INTO f (docid, v) VALUES (1, 'public words');", "\"t\""),
        ("fts4(w, content=t)", "INSERT INTO f (docid, w) VALUES (1, 'hello');", "\"t\""),
        ("fts4(v, content=none)", "INSERT INTO f (docid, v) VALUES (1, 'hello');", "no such table"),
    ])
    func indexesOfSomethingElse(form: String, script: String, reason: String) throws {
        let sandbox = try makeStore(Self.text + "CREATE VIRTUAL TABLE f USING \(form);" + script)
        for options in [[], ["--data-only"], ["--table", "f"]] {
            let outcome = try sandbox.run([Tool.sealdb, "dump", "db", "--key-file", "key"] + options)
            #expect(outcome.status == 65 && outcome.output.isEmpty, "\(outcome)")
            #expect(outcome.error.contains("The virtual table \"f\" "), "\(outcome.error)")
            #expect(outcome.error.contains(reason) && outcome.error.contains("sealdb backup"), "\(outcome.error)")
            #expect(!outcome.error.contains("public") && !outcome.error.contains("hello"))
        }
        // The other tables and the schema need nothing of it.
        try sandbox.succeed("dump", "db", "--key-file", "key", "--table", "t")
        try sandbox.succeed("dump", "db", "--key-file", "key", "--schema-only")
    }

    /// FTS5 finds no virtual table where it looks for its text. A script that makes the index anew would fail.
    @Test(arguments: [
        ("CREATE VIRTUAL TABLE p USING fts5(v);", "p", ""), ("CREATE VIRTUAL TABLE p USING fts5(v);", "F", ""),
        ("CREATE VIRTUAL TABLE p USING rtree(id, v, w);", "p", ", content_rowid='id'"),
        ("CREATE VIRTUAL TABLE p USING fts5(v); CREATE VIEW s AS SELECT rowid, v FROM p;", "s", ""),
        ("CREATE VIEW s AS SELECT key AS rowid, value AS v FROM json_each('[]');", "s", ""),
        // These are not read: SQLite sees that their rows make no difference.
        (
            """
            CREATE VIRTUAL TABLE p USING fts5(v);
            CREATE VIEW s AS SELECT id AS rowid, v FROM t WHERE 1 OR id IN (SELECT rowid FROM p);
            """,
            "s", ""
        ),
        ("CREATE VIEW s AS SELECT id AS rowid, v FROM t WHERE 1 OR EXISTS (SELECT 1 FROM json_each('[1]'));", "s", ""),
    ])
    func indexesOfVirtualTables(script: String, content: String, options: String) throws {
        let table = "CREATE VIRTUAL TABLE f USING fts5(v, content='\(content)'\(options));"
        let sandbox = try makeStore(Self.text + script + table)
        let outcome = try sandbox.run([Tool.sealdb, "dump", "db", "--key-file", "key"])
        #expect(outcome.status == 65 && outcome.output.isEmpty, "\(outcome)")
        let reason = content == "F" ? "does not find its text in \"f\"" : "takes its text from a virtual table"
        #expect(outcome.error.contains(reason), "\(outcome)")
        // What makes it is refused, and what drops it works.
        try sandbox.succeed("create", "other", "--key-file", "key")
        try sandbox.succeed("exec", "other", Self.text + script, "--key-file", "key")
        let keys = ["--key-file", "key", "--other-key-file", "key"]
        try sandbox.fail(65, "diff", "other", "db", "--sql", "--key-file", "key")
        let removal = try sandbox.run([Tool.sealdb, "diff", "db", "other", "--sql"] + keys)
        #expect(removal.status == 1, "\(removal)")
        try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: removal.output)
        let rest = try sandbox.run([Tool.sealdb, "diff", "db", "other"] + keys)
        #expect(rest.status == 0, "\(rest)")
    }

    /// What the message says mends an index of some rows. The text is longer than what is indexed at a time.
    @Test(arguments: [
        "fts5(v, other, content='t', content_rowid='id')",
        "fts5(v, other UNINDEXED, content='t', content_rowid='id', detail=none, columnsize=0, prefix='2 3')",
        "fts5(other, v, content='t', content_rowid='id', detail=column, tokenize='porter')", "fts4(v, content=t)",
        "fts4(v, content=p)", "fts5(v, conten='t', content_rowid='id')",
    ])
    func indexesOfAllTheText(form: String) throws {
        let long = """
            INSERT INTO t WITH RECURSIVE c (n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM c WHERE n < 69)
                SELECT n, (WITH RECURSIVE w (m) AS (SELECT 1 UNION ALL SELECT m + 1 FROM w WHERE m < 1000)
                    SELECT group_concat('word' || (m * n % 499) || hex(zeroblob(50)), ' ') FROM w), n FROM c;
            """
        // The table with the text is made after it.
        let sandbox = try makeStore("CREATE VIRTUAL TABLE f USING \(form);" + Self.text + long)
        let other = "CREATE VIRTUAL TABLE p USING fts5(v); INSERT INTO p (rowid, v) SELECT id, v FROM t;"
        try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: other)
        try sandbox.fail(65, "dump", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", Self.rebuild, "--key-file", "key")
        let sql = try sandbox.succeed("dump", "db", "--key-file", "key").output
        try sandbox.succeed("create", "copy", "--key-file", "key")
        try sandbox.succeed("exec", "copy", "-", "--key-file", "key", input: sql)
        let query = "SELECT (SELECT count(*) FROM f WHERE f MATCH 'words'), count(*) FROM f WHERE f MATCH 'word*'"
        #expect(try found(sandbox, "copy", query) == found(sandbox, "db", query))
        #expect(try found(sandbox, "copy", query) == "2,62\n")
        try sandbox.succeed("diff", "db", "copy", "--key-file", "key")
        try sandbox.succeed("verify", "copy", "--key-file", "key", "--deep")
        #expect(try sandbox.succeed("dump", "copy", "--key-file", "key").output == sql)
    }
}
