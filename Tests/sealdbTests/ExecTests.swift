import Foundation
import Testing

@testable import sealdb

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ExecTests {
    @Test func printsTheNumberOfChangedRows() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        func exec(_ sql: String, _ parameters: String...) throws -> String {
            let outcome = try sandbox.run([Tool.sealdb, "exec", "db", sql] + parameters + ["--key-file", "key"])
            #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
            return outcome.output
        }
        #expect(try exec("UPDATE people SET name = upper(name) WHERE id <= ?", "10") == "10\n")
        #expect(try exec("DELETE FROM people WHERE id = 999") == "0\n")
        #expect(try exec("CREATE TABLE t (a)") == "0\n")
        #expect(try exec("INSERT INTO t VALUES (?), (?)", "x", "2") == "2\n")
        // Rows come first, as a table.
        #expect(
            try exec("INSERT INTO t VALUES (1); UPDATE t SET a = 5; SELECT 1 AS n; DELETE FROM t;") == "n\n-\n1\n7\n"
        )
        #expect(try exec("SELECT count(*) AS n FROM people") == " n\n--\n50\n0\n")
        #expect(try exec("SELECT 1 AS n WHERE 0") == "0\n")
        #expect(try exec("INSERT INTO t VALUES (1) RETURNING a") == "a\n-\n1\n1\n")
        #expect(try exec("INSERT INTO t VALUES (1), (2) RETURNING a", "--format", "csv", "--no-header") == "1\n2\n2\n")
        #expect(try exec("CREATE VIRTUAL TABLE s USING fts5(a); INSERT INTO s SELECT name FROM people") == "50\n")
    }

    /// What a statement returned is not shown if it is not stored.
    @Test func rowsOfATransactionThatFails() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let sql = "INSERT INTO people (id) VALUES (999) RETURNING id; INSERT INTO absent VALUES (1)"
        let outcome = try sandbox.fail(65, "exec", "db", sql, "--key-file", "key")
        #expect(outcome.output.isEmpty)
        #expect(outcome.error.hasPrefix("sealdb: Statement 2, line 1, column 52: "), "\(outcome.error)")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    /// In SQL that manages its transactions, rows are shown when they are stored, and not before.
    @Test func rowsOfTransactionsOfTheScript() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.succeed("exec", "db", "CREATE TABLE t (a)", "--key-file", "key")
        func exec(_ sql: String, _ status: Int32) throws -> [Substring] {
            let outcome = try sandbox.sealdb(
                "exec",
                "db",
                sql,
                "--format",
                "csv",
                "--no-header",
                "--key-file",
                "key"
            )
            #expect(outcome.status == status, "\(outcome.error)")
            return outcome.output.split(separator: "\n")
        }
        let insert = "INSERT INTO t VALUES"
        #expect(try exec("PRAGMA user_version; \(insert) (1) RETURNING a; \(insert) (2), (3, 4)", 65) == ["0", "1"])
        #expect(try exec("BEGIN; \(insert) (5) RETURNING a; ROLLBACK; SELECT count(*) FROM t", 0) == ["1", "0"])
        #expect(try exec("BEGIN; \(insert) (6) RETURNING a; ROLLBACK TO none", 65) == [])
        #expect(try exec("BEGIN; \(insert) (7) RETURNING a; SELECT hex(zeroblob(99999)); \(insert) (8, 9)", 65) == [])
        #expect(try exec("BEGIN; \(insert) (10) RETURNING a; COMMIT; BEGIN; \(insert) (11) RETURNING a", 65) == ["10"])
        #expect(try exec("SAVEPOINT s; \(insert) (12) RETURNING a; ROLLBACK TO s; RELEASE s", 0) == ["1"])
        #expect(try exec("SELECT a FROM t ORDER BY a", 0) == ["1", "10", "0"])
    }

    /// Of savepoints within others, what is undone is not shown, and what is stored is.
    @Test(arguments: [
        // The outer one stays when all behind it is undone, and can be gone back to again.
        (
            """
            SAVEPOINT a; SAVEPOINT b; INSERT INTO t VALUES (7) RETURNING a; ROLLBACK TO a;
            INSERT INTO t VALUES (8) RETURNING a; ROLLBACK TRANSACTION TO SAVEPOINT a;
            INSERT INTO t VALUES (9) RETURNING a; RELEASE SAVEPOINT a
            """, ["9", "3"], "9"
        ),
        // One that began within another is gone when that one is gone back to, and the outer one of its name counts again.
        (
            """
            SAVEPOINT a; INSERT INTO t VALUES (1) RETURNING a; SAVEPOINT b; SAVEPOINT a; ROLLBACK TO b; ROLLBACK TO a;
            INSERT INTO t VALUES (2) RETURNING a; RELEASE a
            """, ["2", "2"], "2"
        ),
        // Of two with the same name, the inner one is released, and the outer one undoes all.
        (
            """
            SAVEPOINT a; INSERT INTO t VALUES (4) RETURNING a; SAVEPOINT a; INSERT INTO t VALUES (5) RETURNING a;
            RELEASE a; ROLLBACK TO a; RELEASE a; INSERT INTO t VALUES (6) RETURNING a
            """, ["6", "3"], "6"
        ),
    ])
    func rowsOfSavepoints(script: String, shown: [String], stored: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "CREATE TABLE t (a)", "--key-file", "key")
        let form = ["--format", "csv", "--no-header", "--key-file", "key"]
        let outcome = try sandbox.run([Tool.sealdb, "exec", "db", script] + form)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.lines == shown)
        let rows = try sandbox.run([Tool.sealdb, "query", "db", "SELECT a FROM t"] + form)
        #expect(rows.lines == [stored], "\(rows.error)")
    }

    /// SQLite's messages quote a literal, up to all that follows if it does not end.
    @Test func errorsQuoteNoLiterals() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        for sql in [
            "'hush' 'hush hush'", "'hush hush", "x'hush'", "1 \"hush hush\"", "1 4111hush", "[hush hush", "'a' x'6875'",
        ] {
            let input = "INSERT INTO people (name) VALUES (\(sql));\n"
            let outcome = try sandbox.fail(65, "exec", "db", "-", "--key-file", "key", input: input)
            #expect(!outcome.error.contains("hush") && !outcome.error.contains("6875"), "\(outcome.error)")
            #expect(outcome.error.contains("Statement 1, line 1, column "), "\(outcome.error)")
        }
        let outcome = try sandbox.fail(65, "exec", "db", "-", "--key-file", "key", input: "INSRT INTO people")
        #expect(outcome.error.contains("near \"INSRT\": syntax error"), "\(outcome.error)")
    }

    /// What may be one part old and one part new is not run: changed before its first byte was read, in its middle, and before
    /// its end was seen.
    @Test(arguments: [0, 1, 4])
    func aFileThatIsChangedWhileItIsRead(readCount: Int) throws {
        let sandbox = try Sandbox()
        let text = String(repeating: "DELETE FROM people;\n", count: 100)
        try sandbox.write("in.sql", text)
        let path = sandbox.path("in.sql")
        let file = try InputFile(path: path)
        var buffer = [UInt8](repeating: 0, count: text.utf8.count / 4)
        for _ in 0..<readCount { #expect(try file.read(into: &buffer) == buffer.count) }
        // As long as before: only the time tells of it, and the clock of a file system may stand still for milliseconds.
        try sandbox.overwrite("in.sql", at: 0, with: Array("delete".utf8))
        #expect(utimes(path, [timeval(tv_sec: 1, tv_usec: 0), timeval(tv_sec: 1, tv_usec: 0)]) == 0)
        let failure = #expect(throws: Failure.self) { try file.contents(upTo: .max) }
        #expect(failure?.status == .inputOutput, "\(failure?.message ?? "")")
        #expect(failure?.message == "\(path) was changed while it was read. Nothing was done.")
    }

    /// It is not read to its end, which it may not have.
    @Test func aFileLargerThanItsLimit() throws {
        let sandbox = try Sandbox()
        try sandbox.write("in.sql", "SELECT 1;")
        let path = sandbox.path("in.sql")
        #expect(try InputFile(path: path).contents(upTo: 9).count == 9)
        let failure = #expect(throws: Failure.self) { try InputFile(path: path).contents(upTo: 8) }
        #expect(failure?.status == .data)
        #expect(failure?.message == "\(path) has more than 8 bytes, the most that can be read. Nothing was done.")
    }

    @Test func sqlFromFilesAndStandardInput() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("in.sql", "\u{feff}CREATE TABLE t (a);\r\nINSERT INTO t VALUES ('é;');\n-- done\n")
        #expect(try sandbox.succeed("exec", "db", "--file", "in.sql", "--key-file", "key").output == "1\n")
        let more = "INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (2)"
        #expect(try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: more).output == "2\n")
        try sandbox.write("one.sql", "DELETE FROM t WHERE a = ?")
        #expect(try sandbox.succeed("exec", "db", "--file", "one.sql", "2", "--key-file", "key").output == "1\n")
        let query = "SELECT a FROM t WHERE a <> ? ORDER BY a"
        let rows = try sandbox.run(
            [Tool.sealdb, "query", "db", "-", "x", "--format", "csv", "--key-file", "key"],
            input: query
        )
        #expect(rows.output == "a\n1\né;\n", "\(rows.error)")
        // The place of an error, in characters.
        try sandbox.write("bad.sql", "INSERT INTO t VALUES (1);\n\n  INSERT INTO t\n  VALUES ('é', nowhere);\n")
        let bad = try sandbox.fail(65, "exec", "db", "--file", "bad.sql", "--key-file", "key")
        #expect(bad.error.contains("Statement 2, line 4, column 16: "), "\(bad.error)")
        let constraint = "CREATE TABLE u (a UNIQUE);\n INSERT INTO u VALUES (1), (1)"
        let second = try sandbox.run([Tool.sealdb, "exec", "db", "-", "--key-file", "key"], input: constraint)
        #expect(second.status == 65)
        #expect(second.error.contains("Statement 2, line 2, column 2: UNIQUE"), "\(second.error)")
        #expect(try sandbox.succeed("tables", "db", "--key-file", "key").output == "people\nt\n")
        // Nothing of it was executed.
        try sandbox.fail(66, "exec", "db", "--file", "absent.sql", "--key-file", "key")
        try sandbox.write("latin.sql", Data([0x53, 0xff]))
        try sandbox.fail(65, "exec", "db", "--file", "latin.sql", "--key-file", "key")
        try sandbox.write("nul.sql", Data("DELETE FROM t;\0DELETE FROM people".utf8))
        try sandbox.fail(65, "exec", "db", "--file", "nul.sql", "--key-file", "key")
        try sandbox.fail(64, "exec", "db", "--key-file", "key")
        try sandbox.write("key.sql", "PRAGMA key = 'secret'")
        let refused = try sandbox.fail(64, "exec", "db", "--file", "key.sql", "--key-file", "key")
        #expect(!refused.error.contains("secret"))
    }

    @Test func severalStatementsAreOneTransaction() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let sql = "CREATE TABLE t (a); DELETE FROM people; INSERT INTO absent VALUES (1)"
        try sandbox.fail(65, "exec", "db", sql, "--key-file", "key")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        try sandbox.fail(65, "query", "db", "SELECT * FROM t", "--key-file", "key")
    }

    @Test func triggersAreOneStatement() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let sql = """
            CREATE TABLE log (id);
            CREATE TRIGGER t AFTER DELETE ON people BEGIN INSERT INTO log VALUES (old.id); DELETE FROM log WHERE id = 2; END;
            DELETE FROM people WHERE id <= 3;
            """
        #expect(try sandbox.succeed("exec", "db", sql, "--key-file", "key").output == "3\n")
        let log = try sandbox.succeed("query", "db", "SELECT id FROM log", "--format", "csv", "--key-file", "key")
        #expect(log.output == "id\n1\n3\n")
    }

    @Test func ownTransactions() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.succeed("exec", "db", "BEGIN; UPDATE people SET name = 'x'; COMMIT", "--key-file", "key")
        let open = try sandbox.fail(65, "exec", "db", "BEGIN; DELETE FROM people", "--key-file", "key")
        #expect(open.error.contains("rolled back"))
        #expect(open.error.contains("what stands before it is stored"))
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        try sandbox.succeed("exec", "db", "VACUUM", "--key-file", "key")
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = wal", "--key-file", "key")
        try sandbox.succeed("exec", "db", "PRAGMA user_version = 12", "--key-file", "key")
        let version = try sandbox.succeed("query", "db", "PRAGMA user_version", "--key-file", "key")
        #expect(version.lines.last == "          12")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test func rejectedSQL() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        for sql in [
            "INSER INTO people VALUES (1)", "INSERT INTO absent VALUES (1)", "INSERT INTO people (id) VALUES (1)",
            "INSERT INTO people (id) VALUES ('not a number')",
        ] {
            try sandbox.fail(65, "exec", "db", sql, "--key-file", "key")
        }
        try sandbox.fail(64, "exec", "db", "", "--key-file", "key")
        try sandbox.fail(64, "exec", "db", "DELETE FROM people WHERE id = ?", "--key-file", "key")
        try sandbox.fail(64, "exec", "db", "DELETE FROM people; SELECT ?", "1", "--key-file", "key")
        #expect(try sandbox.contents("db") == before)
    }

    @Test func neverCreatesAStore() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.fail(66, "exec", "absent", "CREATE TABLE t (a)", "--key-file", "key")
        #expect(try sandbox.names() == ["key"])
    }

    @Test func plaintextDatabase() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        let before = try sandbox.contents("plain")
        try sandbox.fail(65, "exec", "plain", "INSERT INTO t VALUES (1)", "--key-file", "key")
        #expect(try sandbox.contents("plain") == before)
    }

    @Test func lockedStore() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let other = try sandbox.connection()
        try other.executeUpdate("BEGIN IMMEDIATE", values: nil)
        try sandbox.fail(75, "exec", "db", "DELETE FROM people", "--key-file", "key", "--lock-wait", "0")
        other.close()
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test func fullDisk() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let outcome = try sandbox.run([
            "prlimit", "--fsize=200000", Tool.sealdb, "exec", "db", "UPDATE people SET bio = hex(zeroblob(10000))",
            "--key-file", "key",
        ])
        #expect(outcome.status == 74, "\(outcome.error)")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    /// With a rollback journal COMMIT waits for those who read.
    private func commitBesideReader(lockWait: String, whenItWaits: (ChildProcess) -> Void) throws -> (Int32, String) {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let reader = try sandbox.connection()
        let rows = try reader.executeQuery("SELECT id FROM people", values: nil)
        #expect(try rows.nextWithError())
        let child = try ChildProcess(
            [Tool.sealdb, "exec", "db", "DELETE FROM people", "--key-file", "key", "--lock-wait", lockWait],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("output"), error: sandbox.path("errors"))
        )
        // Not closed before the reader is: that would end the locks that this process has on the file.
        let file = open(sandbox.path("db"), O_RDWR | O_CLOEXEC)
        var lock = flock()
        // SQLite's pending byte, which whoever waits to commit keeps, and readers share for a moment.
        // https://www.sqlite.org/lockingv3.html
        repeat {
            lock = flock(l_type: Int16(F_RDLCK), l_whence: Int16(SEEK_SET), l_start: 0x4000_0000, l_len: 1, l_pid: 0)
            #expect(fcntl(file, F_GETLK, &lock) == 0)
        } while lock.l_type == F_UNLCK && !child.hasEnded
        whenItWaits(child)
        let status = child.wait()
        rows.close()
        reader.close()
        #expect(close(file) == 0)
        #expect(try sandbox.contents("output").isEmpty)
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        return (status, try String(decoding: sandbox.contents("errors"), as: UTF8.self))
    }

    @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
    func aSignalWhileCommitWaits(signal: Int32, status: Int32) throws {
        let outcome = try commitBesideReader(lockWait: "80000") { _ = kill($0.identifier, signal) }
        #expect(outcome == (status, "sealdb: Interrupted. Nothing was stored.\n"))
    }

    @Test func commitWaitsNoLongerThanAsked() throws {
        let (status, error) = try commitBesideReader(lockWait: "0.3") { _ in }
        #expect(status == 75)
        #expect(error.hasPrefix("sealdb: Others kept COMMIT waiting for 0.3 s. Nothing was stored."), "\(error)")
    }

    /// SQLite stores a statement that is closed after its first row.
    @Test func rowsThatCannotBeShownAreTold() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let sql = "PRAGMA foreign_keys = ON; INSERT INTO people(name) VALUES ('x') RETURNING id, id"
        let outcome = try sandbox.fail(65, "exec", "db", sql, "--format", "insert", "--into", "t", "--key-file", "key")
        #expect(
            outcome.error.contains("The statement was executed, and what it changed is stored."),
            "\(outcome.error)"
        )
        #expect(try sandbox.census(keyFile: "key").output.hasPrefix("51,"))
    }
}
