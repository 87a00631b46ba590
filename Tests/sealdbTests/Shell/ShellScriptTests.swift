import Foundation
import Testing

/// The shell where nobody sits at it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ShellScriptTests {
    private func shell(_ sandbox: Sandbox, _ script: String, _ options: String...) throws -> Outcome {
        try sandbox.run([Tool.sealdb, "shell", "db", "--key-file", "key"] + options, input: script)
    }

    private func store() throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        return sandbox
    }

    @Test func statementsOnSeveralLines() throws {
        let sandbox = try store()
        let outcome = try shell(
            sandbox,
            """

            CREATE TABLE t (a INTEGER PRIMARY KEY, b);
            CREATE TRIGGER r AFTER INSERT ON t BEGIN
              UPDATE t SET b = b || ';' WHERE a = new.a;
            END;
            INSERT INTO t(b) VALUES ('x
            y'), ('z') RETURNING a; SELECT count(*)
            FROM t -- not here;
            ;
            SELECT b FROM t WHERE a = 1;
            """,
            "--format",
            "csv"
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output == "a\n1\n2\ncount(*)\n2\nb\n\"x\ny;\"\n")
    }

    @Test func theFirstErrorEndsAScriptAndIsTheExitCode() throws {
        let sandbox = try store()
        let script =
            "CREATE TABLE t (a);\nINSERT INTO t VALUES (1);\n\nINSERT INTO u\nVALUES (1);\nINSERT INTO t VALUES (2);\n"
        let outcome = try shell(sandbox, script)
        #expect(outcome.status == 65)
        #expect(outcome.error.contains("standard input, line 4, column 1: no such table: u"), "\(outcome.error)")
        #expect(try sandbox.succeed("query", "db", "SELECT a FROM t", "--key-file", "key").lines == ["a", "-", "1"])

        let whole = try shell(
            sandbox,
            ".nothing\nINSERT INTO t VALUES (3);\n.mode csv\nSELECT a FROM t;\n",
            "--keep-going"
        )
        #expect(whole.status == 64, "the first error counts")
        #expect(whole.output == "a\n1\n3\n")
        #expect(whole.error.contains("standard input, line 1: There is no command .nothing."))
    }

    @Test func aTransactionLeftOpenIsRolledBackAndTold() throws {
        let sandbox = try store()
        let outcome = try shell(sandbox, "CREATE TABLE t (a);\nBEGIN;\nINSERT INTO t VALUES (1);\n.quit\nSELECT 1;\n")
        #expect(outcome.status == 65 && outcome.output.isEmpty)
        #expect(outcome.error.contains("A transaction was open. It was rolled back"))
        #expect(
            try sandbox.succeed("query", "db", "SELECT count(*) AS n FROM t", "--key-file", "key").lines.last == "0"
        )
    }

    @Test func rowsOfWritesAreShownOnlyWhenTheyAreStored() throws {
        let sandbox = try store()
        let outcome = try shell(
            sandbox,
            """
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED);
            PRAGMA foreign_keys = ON;
            INSERT INTO c VALUES (77) RETURNING p;
            """
        )
        #expect(outcome.status == 65 && !outcome.output.contains("77"), "\(outcome.output)")
    }

    /// The rows of a statement that cannot be shown are no reason to say that it failed.
    @Test func rowsThatCannotBeShownAreTold() throws {
        let sandbox = try store()
        let script = "CREATE TABLE t (id INTEGER PRIMARY KEY, v);\n.mode insert t\n"
        let stored = try shell(sandbox, script + "INSERT INTO t(v) VALUES ('x'), ('y') RETURNING id, id;\n")
        #expect(stored.status == 65 && stored.output.isEmpty)
        #expect(stored.error.contains("The statement was executed, and what it changed is stored."), "\(stored.error)")
        let open = try shell(sandbox, ".mode insert t\nBEGIN;\nINSERT INTO t(v) VALUES ('z') RETURNING id, id;\n")
        #expect(open.error.contains("within the open transaction") && open.error.contains("It was rolled back"))
        #expect(
            try sandbox.succeed("query", "db", "SELECT count(*) AS n FROM t", "--key-file", "key").lines.last == "2"
        )
    }

    /// Its end is what commits, and so the row is stored.
    @Test(arguments: [("BEGIN", "COMMIT"), ("SAVEPOINT s", "RELEASE s")])
    func aJournalThatSomebodyRemoves(begin: String, end: String) throws {
        let sandbox = try store()
        try sandbox.succeed("exec", "db", "CREATE TABLE t (a)", "--key-file", "key")
        let input = """
            printf '%s; INSERT INTO t VALUES (1);\\n' '\(begin)'
            while [ ! -s db-journal ]; do :; done
            rm db-journal
            printf '%s;\\n' '\(end)'
            """
        let outcome = try sandbox.run(["sh", "-c", "(\(input)) | \"$0\" shell db --key-file key", Tool.sealdb])
        #expect(outcome.status != 0 && outcome.error.contains("may be stored: somebody"), "\(outcome.error)")
        #expect(!outcome.error.contains("rolled back") && !outcome.error.contains("nothing since"), "\(outcome.error)")
        let count = "SELECT count(*) AS n FROM t"
        #expect(try sandbox.succeed("query", "db", count, "--key-file", "key").lines.last == "1")
    }

    @Test func anErrorThatEndsTheTransactionIsToldSo() throws {
        let sandbox = try store()
        let script = """
            CREATE TABLE t (a PRIMARY KEY);
            BEGIN; INSERT INTO t VALUES (1);
            INSERT OR ROLLBACK INTO t VALUES (1);
            INSERT INTO t VALUES (2);
            """
        let outcome = try shell(sandbox, script, "--keep-going")
        #expect(outcome.status == 65 && outcome.error.contains("nothing since BEGIN is stored"), "\(outcome.error)")
        #expect(
            try sandbox.succeed("query", "db", "SELECT count(*) AS n FROM t", "--key-file", "key").lines.last == "0"
        )
    }

    @Test(arguments: ["DELETE FROM t", "DELETE FROM t WHERE a = 1; /* open\nSELECT 1;\n", "SELECT 'open;\n"])
    func aStatementThatIsCutOffIsNotRun(end: String) throws {
        let sandbox = try store()
        let outcome = try shell(sandbox, "CREATE TABLE t (a);\nINSERT INTO t VALUES (1);\n" + end)
        #expect(outcome.status == 65 && outcome.error.contains("has no semicolon"), "\(outcome.error)")
        #expect(
            try sandbox.succeed("query", "db", "SELECT count(*) AS n FROM t", "--key-file", "key").lines.last == "1"
        )
    }

    @Test func commentsAndOtherEndsOfLines() throws {
        let sandbox = try store()
        let script =
            "\u{feff}-- first;\r\n.mode csv\r\n/* a\n b; */\n.headers off\nSELECT 1; /* c\n d */\n.print x\n-- last"
        let outcome = try shell(sandbox, script)
        #expect(outcome.status == 0 && outcome.output == "1\nx\n", "\(outcome.output)\(outcome.error)")
        // Within a statement a line may begin with a dot.
        #expect(try shell(sandbox, "SELECT '\n.quit\n' AS a;\n.mode line\n").status == 0)
    }

    @Test func aTransactionShowsItsRowsWhenItIsStored() throws {
        let sandbox = try store()
        let script = """
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED);
            PRAGMA foreign_keys = ON;
            BEGIN; INSERT INTO c VALUES (77) RETURNING p; COMMIT;
            """
        let outcome = try shell(sandbox, script)
        #expect(outcome.status == 65 && !outcome.output.contains("77"), "\(outcome.output)")
        let stored = try shell(sandbox, "BEGIN; INSERT INTO p VALUES (78) RETURNING id; COMMIT; SELECT 1 AS n;\n")
        #expect(stored.status == 0 && stored.output == "id\n--\n78\nn\n-\n1\n", "\(stored.output)")
    }

    @Test(arguments: [".read -", ".import - t", ".read /dev/stdin"])
    func standardInputIsTheShells(line: String) throws {
        let sandbox = try store()
        #expect(try shell(sandbox, line + "\nSELECT 1;\n").status == 64)
    }

    @Test func aLineThatIsNoText() throws {
        let sandbox = try store()
        try sandbox.write("in", Data("CREATE TABLE t (a);\nBEGIN;\nINSERT INTO t VALUES (1);\n".utf8) + [0xff, 0x0a])
        let outcome = try sandbox.run(["sh", "-c", "'\(Tool.sealdb)' shell db --key-file key < in"])
        #expect(outcome.status == 65)
        #expect(outcome.error.contains("line 4: ") && outcome.error.contains("It was rolled back"), "\(outcome.error)")
    }

    @Test func redirectionsEndWhereTheyShould() throws {
        let sandbox = try store()
        let script = """
            .mode csv
            .headers off
            .once a
            SELECT 1; SELECT 2;
            .once b
            SELCT;
            SELECT 3;
            .once c
            .tables
            SELECT 4;
            .output d
            SELECT 5;
            .output a
            SELECT 6;
            .output stdout
            SELECT 7;
            """
        let outcome = try shell(sandbox, script, "--keep-going")
        #expect(outcome.output == "3\n4\n7\n", "\(outcome.output)")
        #expect(try sandbox.contents("a") == Data("1\n2\n".utf8))
        #expect(try sandbox.contents("b").isEmpty && sandbox.contents("c").isEmpty)
        #expect(try sandbox.contents("d") == Data("5\n6\n".utf8))
    }

    @Test(arguments: ["db-journal", "./db-wal", "../work/db-shm", "|cat", "off", "stderr", "-x", "''"])
    func namesThatMeanSomethingElse(name: String) throws {
        let sandbox = try store()
        for line in [".export \(name) sqlite_schema", ".once \(name)", ".output \(name)"] {
            #expect([64, 73].contains(try shell(sandbox, line + "\n").status), "\(line)")
        }
        #expect(try sandbox.names() == ["db", "key"])
    }

    @Test func readOnly() throws {
        let sandbox = try store()
        #expect(try shell(sandbox, "CREATE TABLE t (a);", "--read-only").status != 0)
        #expect(try shell(sandbox, "SELECT 1;", "--read-only").status == 0)
        #expect(try shell(sandbox, ".tables").output.isEmpty)
    }

    @Test(arguments: [
        "PRAGMA key = 'x';", "ATTACH 'o' AS o KEY 'x';", "PRAGMA rekey = 'x';", "PRAGMA page_size = 512;",
    ])
    func keysInSQLAreRefused(sql: String) throws {
        let sandbox = try store()
        #expect(try shell(sandbox, sql).status == 64)
        #expect(!sandbox.exists("o"))
    }

    @Test func modesAndSettings() throws {
        let sandbox = try store()
        let outcome = try shell(
            sandbox,
            """
            CREATE TABLE t (a, b);
            .changes on
            INSERT INTO t VALUES (1, NULL), (2, 'x y');
            .changes off
            .mode csv
            .headers off
            .nullvalue nil
            .echo on
            SELECT * FROM t;
            .echo off
            .mode insert "o t"
            SELECT * FROM t WHERE a = 2;
            .mode line
            SELECT a FROM t WHERE a = 1;
            .mode jsonl
            SELECT * FROM t WHERE a = 2;
            .mode column
            .headers on
            SELECT a FROM t;
            .print a 'b c'
            .mode
            .show
            """
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(
            outcome.output.hasPrefix(
                """
                changes: 2
                SELECT * FROM t;
                1,nil
                2,x y
                .echo off
                INSERT INTO "o t"("a","b") VALUES(2,'x y');
                a = 1
                {"a":2,"b":"x y"}
                a
                -
                1
                2
                a b c
                table

                """
            ),
            "\(outcome.output)"
        )
        #expect(outcome.output.contains("nullvalue: \"nil\"\n"))
        for line in [".mode insert", ".mode csv t", ".mode nonsense", ".headers maybe", ".print 'open"] {
            #expect(try shell(sandbox, line).status == 64, "\(line)")
        }
    }

    @Test func theSchema() throws {
        let sandbox = try store()
        let outcome = try shell(
            sandbox,
            """
            CREATE TABLE b (x UNIQUE); CREATE TABLE a (y); CREATE INDEX i ON a (y); CREATE VIEW v AS SELECT 1;
            .tables
            .tables %a
            .indexes
            .indexes b
            .schema a
            .databases
            """
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = outcome.lines
        #expect(lines.prefix(5) == ["a", "b", "v", "a", "i"])
        #expect(lines.dropFirst(5).prefix(2) == ["CREATE TABLE a (y);", "CREATE INDEX i ON a (y);"])
        #expect(lines.last?.hasPrefix("main  /") == true, "\(lines)")
        #expect(try shell(sandbox, ".schema nothing").status == 65)
    }

    @Test func databasesAreThoseOfTheConnection() throws {
        let sandbox = try store()
        let script = """
            CREATE TABLE pragma_database_list (seq, name, file); INSERT INTO pragma_database_list VALUES (0, 'ghost', '/g');
            .mode csv
            .databases
            """
        let outcome = try shell(sandbox, script)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.lines.count == 2 && outcome.lines.first == "name,file", "\(outcome.output)")
        #expect(outcome.lines.last?.hasPrefix("main,/") == true, "\(outcome.output)")
    }

    @Test func plansAndTimes() throws {
        let sandbox = try store()
        let outcome = try shell(
            sandbox,
            """
            CREATE TABLE t (a INTEGER PRIMARY KEY);
            EXPLAIN QUERY PLAN SELECT * FROM t UNION SELECT * FROM t;
            .explain on
            .timer on
            SELECT * FROM t WHERE a = :x;
            """
        )
        #expect(outcome.output.hasPrefix("QUERY PLAN\n`--"), "\(outcome.output)")
        #expect(outcome.output.contains("   |--"))
        // Without a value for its parameter, nothing runs.
        #expect(outcome.status != 0 && !outcome.output.contains("Run Time"))
        let timed = try shell(sandbox, ".timer on\n.explain on\n.parameter set :x 1\nSELECT * FROM t WHERE a = :x;")
        #expect(timed.status == 0 && timed.output.contains("`--SEARCH t USING INTEGER PRIMARY KEY"))
        #expect(timed.output.contains("Run Time: real "))
    }

    @Test func parameters() throws {
        let sandbox = try store()
        let outcome = try shell(
            sandbox,
            """
            .mode csv
            .headers off
            .parameter set :n 7
            .parameter set @t '007'
            .parameter set $q "it's"
            SELECT :n + 1, typeof(@t), @t, $q;
            .parameter list
            .parameter unset @t
            .parameter list
            .parameter clear
            .parameter list
            .parameter set :n null
            .parameter set @t "'NULL'"
            SELECT typeof(:n), @t;
            """
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = ["8,text,007,it's", "n  7", "q  'it''s'", "t  '007'", "n  7", "q  'it''s'", "null,NULL"]
        #expect(outcome.lines == lines)
        for line in [".parameter set n 1", ".parameter set : 1", ".parameter", ".parameter set :n", "SELECT :n;"] {
            #expect(try shell(sandbox, line).status == 64 || line.hasPrefix("SELECT"), "\(line)")
        }
        #expect(try shell(sandbox, "SELECT :n;").status != 0)
    }

    @Test func filesAreMadeAndNeverReplaced() throws {
        let sandbox = try store()
        let script = """
            CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, NULL);
            .mode csv
            .once one.csv
            SELECT b FROM t;
            SELECT 1;
            .output all.csv
            SELECT a FROM t;
            SELECT 2;
            .output
            .export t.csv t
            .backup copy.db
            .dump t
            """
        let outcome = try shell(sandbox, script)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output.hasPrefix("1\n1\nt.csv: 2 rows\ncopy.db: backup of 2 pages\nPRAGMA foreign_keys"))
        #expect(try sandbox.contents("one.csv") == Data("b\nx\n\n".utf8))
        #expect(try sandbox.contents("all.csv") == Data("a\n1\n2\n2\n2\n".utf8))
        #expect(try sandbox.contents("t.csv") == Data("a,b\n1,x\n2,\n".utf8))
        for name in ["one.csv", "all.csv", "t.csv", "copy.db"] { #expect(try sandbox.mode(name) == 0o600) }
        try sandbox.succeed("diff", "db", "copy.db", "--key-file", "key")
        for line in [".once one.csv", ".output all.csv", ".export t.csv t", ".backup copy.db"] {
            let again = try shell(sandbox, line)
            #expect(again.status == 73, "\(line): \(again.status) \(again.error)")
        }
        #expect(try sandbox.contents("t.csv") == Data("a,b\n1,x\n2,\n".utf8))
    }

    @Test func anExportThatFailsLeavesNothing() throws {
        let sandbox = try store()
        let outcome = try shell(
            sandbox,
            "CREATE VIEW v AS SELECT 1 UNION ALL SELECT abs(-9223372036854775808);\n.export x v\n"
        )
        #expect(outcome.status == 65, "\(outcome.error)")
        #expect(!sandbox.exists("x"))
    }

    @Test func importing() throws {
        let sandbox = try store()
        try sandbox.write("in.csv", "a,b\n1,x\n2,\n")
        let outcome = try shell(sandbox, ".import in.csv t\n.import in.csv t\n.mode csv\nSELECT typeof(a), b FROM t;\n")
        #expect(
            outcome.lines == ["t: 2 rows imported", "t: 2 rows imported", "typeof(a),b"] + [
                "integer,x", "integer,",
            ] + ["integer,x", "integer,"],
            "\(outcome.output)\(outcome.error)"
        )
        // A temporary table of the name is not meant.
        let temporary = try shell(
            sandbox,
            "CREATE TEMP TABLE u (a, b);\n.import in.csv u\nSELECT count(*) AS n FROM main.u;\n"
        )
        #expect(temporary.status == 0 && temporary.lines.last == "2", "\(temporary.output)\(temporary.error)")
        let open = try shell(sandbox, "BEGIN;\n.import in.csv t\n")
        #expect(open.status == 64 && open.error.contains("A transaction is open."))
    }

    @Test func filesOfStatements() throws {
        let sandbox = try store()
        try sandbox.write("a.sql", "CREATE TABLE t (a);\n.read b.sql\nINSERT INTO t VALUES (2);\n")
        try sandbox.write("b.sql", "INSERT INTO t VALUES (1);\n.quit\nINSERT INTO t VALUES (9);\n")
        let outcome = try shell(sandbox, ".read a.sql\n.mode csv\nSELECT a FROM t;\n")
        #expect(outcome.status == 0 && outcome.output == "a\n1\n2\n", "\(outcome.error)")

        try sandbox.write("c.sql", "INSERT INTO t VALUES (3);\nnonsense;\nINSERT INTO t VALUES (4);\n")
        let broken = try shell(sandbox, ".read c.sql\n")
        #expect(broken.status == 65 && broken.error.contains("c.sql, line 2, column 1: "), "\(broken.error)")
        #expect(try sandbox.succeed("query", "db", "SELECT max(a) AS n FROM t", "--key-file", "key").lines.last == "3")

        try sandbox.write("d.sql", ".read d.sql\n")
        let circle = try shell(sandbox, ".read d.sql\n")
        #expect(circle.status == 64 && circle.error.hasSuffix("d.sql, line 1: Files read each other, 25 deep.\n"))
        #expect(try shell(sandbox, ".read nothing\n").status == 66)
        try sandbox.write("e.sql", Data([0x53, 0xff, 0x0a]))
        #expect(try shell(sandbox, ".read e.sql\n").error.contains("is not UTF-8"))
        try sandbox.write("f.sql", Data("SELECT 1;\0\n".utf8))
        #expect(try shell(sandbox, ".read f.sql\n").error.contains("NUL"))
    }

    @Test func help() throws {
        let sandbox = try store()
        let help = try shell(sandbox, ".help\n").output
        for name in [
            "tables", "schema", "mode", "headers", "import", "export", "dump", "read", "timer", "explain", "quit",
        ] {
            #expect(help.contains("." + name), "\(name)")
        }
        #expect(try shell(sandbox, ".help once\n").lines.count == 1)
        // A beginning that only one command has.
        #expect(try shell(sandbox, ".tab\n").status == 0)
        #expect(try shell(sandbox, ".e\n").error.contains("It could be .echo, .exit, .explain, .export."))
        #expect(try shell(sandbox, ".rekey x\n").error.contains("sealdb rotate"))
        #expect(try shell(sandbox, ".tables a b\n").error.contains("Use: .tables [PATTERN]"))
    }

    @Test func usage() throws {
        let sandbox = try store()
        try sandbox.fail(64, "shell", "db", "--key-file", "-")
        try sandbox.fail(64, "shell", "db")
        try sandbox.fail(66, "shell", "nothing", "--key-file", "key")
        try sandbox.makeKey("other")
        try sandbox.fail(77, "shell", "db", "--key-file", "other")
    }
}
