import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct EncryptTests {
    private func makePlain(_ sandbox: Sandbox, sql: String? = nil) throws {
        let sql = sql ?? "PRAGMA user_version = 7; CREATE TABLE t (a); INSERT INTO t VALUES ('known plaintext'), (2);"
        #expect(try sandbox.run(["sqlite3", "plain"], input: sql).status == 0)
    }

    @Test func copiesIntoANewStore() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try makePlain(sandbox)
        let before = try sandbox.contents("plain")
        try sandbox.succeed("encrypt", "plain", "db", "--key-file", "key")
        #expect(try sandbox.contents("plain") == before)
        #expect(try sandbox.names() == ["db", "key", "plain"])
        #expect(try sandbox.mode("db") == 0o600)
        #expect(try sandbox.contents("db").range(of: Data("known plaintext".utf8)) == nil)
        let rows = try sandbox.succeed("query", "db", "SELECT a FROM t", "--key-file", "key", "--format", "csv")
        #expect(rows.output == "a\nknown plaintext\n2\n")
        #expect(
            try sandbox.succeed("query", "db", "PRAGMA user_version", "--key-file", "key", "--format", "csv").lines.last
                == "7"
        )
        try sandbox.succeed("verify", "db", "--key-file", "key")
    }

    /// The file stays as it is, so that a transaction that was cut off is for another program to undo.
    @Test func aTransactionThatWasCutOff() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try makePlain(sandbox)
        let cut = """
            PRAGMA cache_size = 1; BEGIN; UPDATE t SET a = 'changed'; CREATE TABLE u AS SELECT zeroblob(100000);
            .shell kill -9 $PPID

            """
        _ = try sandbox.run(["sqlite3", "plain"], input: cut)
        let before = try (sandbox.contents("plain"), sandbox.contents("plain-journal"))
        let result = try sandbox.sealdb("encrypt", "plain", "db", "--key-file", "key")
        #expect(result.status == 74 && result.error.contains("has to be undone before anybody can read"), "\(result)")
        #expect(try before == (sandbox.contents("plain"), sandbox.contents("plain-journal")))
        // As the message says.
        #expect(try sandbox.run(["sqlite3", "plain", "SELECT count(*) FROM t"]).output == "2\n")
        try sandbox.succeed("encrypt", "plain", "db", "--key-file", "key")
        let rows = try sandbox.succeed("query", "db", "SELECT a FROM t", "--key-file", "key", "--format", "csv")
        #expect(rows.output == "a\nknown plaintext\n2\n")
    }

    @Test func takesRowsThatAreStillInTheWriteAheadLog() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        // The connection that holds the log is killed, so that nothing moves it into the file.
        let sql = "PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (5);\n.shell kill -9 $PPID\n"
        _ = try sandbox.run(["sqlite3", "plain"], input: sql)
        #expect(sandbox.exists("plain-wal"))
        try sandbox.succeed("encrypt", "plain", "db", "--key-file", "key")
        #expect(try sandbox.succeed("query", "db", "SELECT a FROM t", "--key-file", "key").lines.last == "5")
    }

    @Test func neverOverwrites() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try makePlain(sandbox)
        try sandbox.write("db", "precious")
        try sandbox.fail(73, "encrypt", "plain", "db", "--key-file", "key")
        #expect(try sandbox.contents("db") == Data("precious".utf8))
        try sandbox.fail(73, "encrypt", "plain", "no/such/directory/db", "--key-file", "key")
    }

    @Test func sourceThatIsMissingOrNotPlaintext() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.fail(66, "encrypt", "absent", "new", "--key-file", "key")
        try sandbox.fail(65, "encrypt", "db", "new", "--key-file", "key")
        try sandbox.write("garbage", String(repeating: "no database ", count: 1000))
        try sandbox.fail(65, "encrypt", "garbage", "new", "--key-file", "key")
        #expect(try sandbox.names() == ["db", "garbage", "key"])
    }

    @Test func damagedSource() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try makePlain(sandbox, sql: "CREATE TABLE t (a); INSERT INTO t VALUES (hex(zeroblob(20000)));")
        try sandbox.overwrite("plain", at: 4096, with: [UInt8](repeating: 0x55, count: 4096))
        try sandbox.fail(65, "encrypt", "plain", "db", "--key-file", "key")
        #expect(try sandbox.names() == ["key", "plain"])
    }

    @Test func lockedSource() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try makePlain(sandbox)
        // The shell holds the lock while it runs sealdb.
        let outcome = try sandbox.run(
            ["sqlite3", "plain"],
            input: "BEGIN EXCLUSIVE;\n.shell '\(Tool.sealdb)' encrypt plain db --key-file key; echo status $?\n"
        )
        #expect(outcome.lines.last == "status 75", "\(outcome.error)")
        #expect(try sandbox.names() == ["key", "plain"].sorted())
    }

    /// As long as there are too few descriptors, every command says so; none crashes.
    @Test func fewDescriptors() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try makePlain(sandbox, sql: "CREATE TABLE t (a); INSERT INTO t VALUES (hex(zeroblob(100000)));")
        try sandbox.succeed("encrypt", "plain", "whole", "--key-file", "key")
        let commands = [
            "encrypt plain new", "decrypt whole new --allow-plaintext", "migrate work --new-page-size 8192",
        ]
        for command in commands {
            var statuses: [Int32] = []
            for most in 4...16 {
                let script = """
                    rm -f new work*; cp whole work; ulimit -n \(most); exec \(Tool.sealdb) \(command) --key-file key
                    """
                let outcome = try sandbox.run(["sh", "-c", script])
                #expect(outcome.status >= 0, "\(command), \(most) descriptors: \(outcome.error)")
                #expect(outcome.status == 0 || !outcome.error.isEmpty && !sandbox.exists("new"))
                statuses.append(outcome.status)
                if outcome.status != 0 { try sandbox.succeed("verify", "work", "--key-file", "key") }
            }
            #expect(statuses.first != 0 && statuses.last == 0, "\(command): \(statuses)")
        }
    }

    /// Where a user may only read the index of a log that nobody has in use, SQLite makes another one in its memory.
    @Test func readsALogWhoseIndexMayOnlyBeRead() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let sql = "PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (5);\n.shell kill -9 $PPID\n"
        _ = try sandbox.run(["sqlite3", "plain"], input: sql)
        #expect(sandbox.exists("plain-wal"))
        try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: sandbox.path("plain-shm"))
        // Who is root may write to every file, but for this.
        let user = geteuid() == 0 ? ["setpriv", "--bounding-set=-dac_override"] : []
        let outcome = try sandbox.run(user + [Tool.sealdb, "encrypt", "plain", "db", "--key-file", "key"])
        #expect(outcome.status == 0, "\(outcome.error)")
        let rows = try sandbox.succeed("query", "db", "SELECT a FROM t", "--key-file", "key", "--format", "csv")
        #expect(rows.output == "a\n5\n")
    }

    @Test(arguments: [100, 5000, 65536])
    func leavesNothingWhenTheDiskIsFull(size: Int) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try makePlain(sandbox, sql: "CREATE TABLE t (a); INSERT INTO t VALUES (hex(zeroblob(100000)));")
        let outcome = try sandbox.run(
            ["prlimit", "--fsize=\(size)", Tool.sealdb, "encrypt", "plain", "db", "--key-file", "key"]
        )
        #expect(outcome.status == 74, "\(outcome.error)")
        #expect(try sandbox.names() == ["key", "plain"])
        // What was written to the file that is gone is of no concern.
        #expect(outcome.error.contains("No store was made, and plain is unchanged: disk I/O error"), "\(outcome.error)")
    }

    /// The text of a schema in a form in which SQLite does not write it is kept, there and back.
    @Test(arguments: ["UTF-8", "UTF-16le"])
    func schemasOfOtherPrograms(encoding: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let script = """
            .dbconfig defensive off
            PRAGMA encoding = '\(encoding)'; CREATE TABLE t (a, b UNIQUE); CREATE INDEX i ON t (a); CREATE TABLE u (a);
            CREATE TABLE v (a INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE w (a); CREATE VIEW x AS SELECT a FROM t;
            INSERT INTO t VALUES (1, 'é'), (2, x'00'); INSERT INTO u VALUES (3); INSERT INTO v VALUES (7); DELETE FROM v;
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'create  table if not exists t(a, b unique) ; ' WHERE name = 't';
            UPDATE sqlite_schema SET tbl_name = 'T', sql = 'create index if not exists "i" on T(a); -- é' WHERE name = 'i';
            UPDATE sqlite_schema SET name = 'U', sql = 'CREATE TABLE u(a); DROP TABLE t' WHERE name = 'u';
            UPDATE sqlite_schema SET sql = 'CREATE TABLE w(a)' || char(0) || 'x' WHERE name = 'w';
            UPDATE sqlite_schema SET sql = 'create view x as select a from t;' WHERE name = 'x';
            UPDATE sqlite_schema SET sql = 'create table sqlite_sequence(name, seq)' WHERE name = 'sqlite_sequence';
            """
        try makePlain(sandbox, sql: script)
        try sandbox.succeed("encrypt", "plain", "db", "--key-file", "key")
        try sandbox.succeed("verify", "db", "--key-file", "key", "--deep")
        try sandbox.succeed("decrypt", "db", "again", "--key-file", "key", "--allow-plaintext")
        let shown = """
            SELECT type, name, tbl_name, hex(sql) FROM sqlite_schema ORDER BY type, name; SELECT * FROM t; SELECT * FROM u;
            SELECT * FROM x; SELECT * FROM sqlite_sequence; PRAGMA integrity_check;
            """
        let results = try ["plain", "again"].map { try sandbox.run(["sqlite3", $0, shown]) }
        #expect(results[0].output == results[1].output && results[1].lines.last == "ok", "\(results)")
        let more = "INSERT INTO t VALUES (9, 9); INSERT INTO v VALUES (NULL)"
        try sandbox.succeed("exec", "db", more, "--key-file", "key")
        let row = try sandbox.succeed("query", "db", "SELECT * FROM v", "--key-file", "key", "--format", "csv")
        #expect(row.output == "a\n8\n")
    }

    /// This one makes a table that is not in the file.
    @Test func aSchemaThatMakesSomethingElse() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let script = """
            .dbconfig defensive off
            CREATE TABLE t (a); INSERT INTO t VALUES (1); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TEMP TABLE t(a)' WHERE name = 't';
            """
        try makePlain(sandbox, sql: script)
        let outcome = try sandbox.sealdb("encrypt", "plain", "db", "--key-file", "key")
        #expect(outcome.status == 65 && outcome.error.contains("The table t cannot be made"), "\(outcome)")
        #expect(try sandbox.names() == ["key", "plain"])
    }
}
