import Foundation
import Testing

/// A distinctive text goes into a store by every way there is. Every byte that the process wrote to any file, pipe or
/// terminal meanwhile is looked through for it, as strace saw it: also what was deleted since, or never had a name.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct CanaryTests {
    private let sandbox: Sandbox
    private static let canary = "CANARYbird7319"

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.makeKey("new")
    }

    /// Where the canary was written; the options of strace may also make it kill the process.
    private func leaks(
        _ arguments: [String],
        strace: [String] = [],
        expecting status: Int32? = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> [String] {
        let trace = sandbox.path("trace")
        let outcome = try sandbox.run(
            ["strace", "-f", "-qq", "-xx", "-s", "10000000", "-o", trace]
                + ["-e", "trace=write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,rename,link,unlink"] + strace
                + arguments,
            // Whatever SQLite would put into a temporary file lies where it is looked for.
            environment: ["SQLITE_TMPDIR": sandbox.directory, "TMPDIR": sandbox.directory]
        )
        if let status { #expect(outcome.status == status, "\(outcome.error)", sourceLocation: sourceLocation) }
        let text = try sandbox.contents("trace")
        try #require(text.contains(Data("pwrite64(".utf8)) || text.contains(Data("write(".utf8)))
        let written = Data(Self.canary.utf8.map { "\\x" + String(format: "%02x", $0) }.joined().utf8)
        var result: [String] = []
        if text.range(of: written) != nil { result.append("written by \(arguments.dropFirst().prefix(2))") }
        for name in try sandbox.names() where name != "trace" && name != "plain" {
            if try sandbox.contents(name).range(of: Data(Self.canary.utf8)) != nil { result.append("left in \(name)") }
        }
        try FileManager.default.removeItem(atPath: trace)
        return result
    }

    private func exec(_ sql: String) -> [String] {
        [Tool.sealdb, "exec", "db", sql, "--key-file", "key"]
    }

    /// So much that sorts and temporary tables do not fit into SQLite's caches.
    private static let everything = """
        PRAGMA cache_size = 5;
        CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT, extra BLOB);
        CREATE TABLE log (what TEXT);
        CREATE TRIGGER logging AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (old.body || new.body); END;
        BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, '\(canary)' || i, CAST('\(canary)' || hex(zeroblob(100)) AS BLOB) FROM n;
        SAVEPOINT s;
        UPDATE t SET body = body || '\(canary)';
        ROLLBACK TO s;
        UPDATE t SET extra = CAST('\(canary)' || id AS BLOB) WHERE id % 2;
        COMMIT;
        CREATE INDEX by_body ON t (body, extra);
        CREATE VIRTUAL TABLE words USING fts5(body);
        INSERT INTO words SELECT body || ' ' || id FROM t;
        INSERT INTO words (words) VALUES ('optimize');
        CREATE TEMP TABLE scratch AS SELECT body || hex(zeroblob(800)) AS long, extra FROM t ORDER BY long DESC;
        CREATE INDEX temp.by_long ON scratch (long);
        CREATE TABLE sorted AS SELECT DISTINCT body || extra AS both FROM t GROUP BY extra, body ORDER BY both DESC;
        DELETE FROM t WHERE id % 3 = 0;
        ANALYZE;
        VACUUM;
        """

    @Test(arguments: ["delete", "wal"])
    func nothingIsEverWrittenInTheClear(journalMode: String) throws {
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = \(journalMode)", "--key-file", "key")
        #expect(try leaks(exec(Self.everything)) == [])
        #expect(try leaks(exec("VACUUM INTO 'copy'")) == [])
        #expect(try leaks([Tool.sealdb, "rotate", "db", "--key-file", "key", "--new-key-file", "new"]) == [])
        #expect(try leaks([Tool.sealdb, "verify", "db", "--key-file", "new", "--deep"]) == [])
        #expect(try leaks([Tool.sealdb, "backup", "db", "backup", "--key-file", "new"]) == [])
        #expect(try leaks([Tool.sealdb, "restore", "backup", "db", "--key-file", "new", "--replace"]) == [])
        #expect(try leaks([Tool.sealdb, "migrate", "db", "--key-file", "new", "--new-page-size", "8192"]) == [])
    }

    @Test(arguments: [3, 40, 400])
    func notInACrashEither(count: Int) throws {
        try sandbox.succeed("create", "db", "--key-file", "key")
        let found = try leaks(
            exec(Self.everything),
            strace: ["-e", "inject=pwrite64:signal=KILL:when=\(count)"],
            expecting: -SIGKILL
        )
        #expect(found == [])
        #expect(try leaks([Tool.sealdb, "verify", "db", "--key-file", "key"]) == [])
    }

    @Test func plaintextIsOnlyRead() throws {
        try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a); INSERT INTO t VALUES ('\(Self.canary)');")
        #expect(try leaks([Tool.sealdb, "encrypt", "plain", "db", "--key-file", "key"]) == [])
        try sandbox.write("rows.csv", "a,b\n\(Self.canary),1\n")
        try sandbox.succeed("create", "other", "--key-file", "key")
        let found = try leaks([Tool.sealdb, "import", "other", "t", "rows.csv", "--key-file", "key"])
        #expect(found == ["left in rows.csv"])
    }

    /// The same statements, by a shell that puts temporary files on disk: the search has to find them.
    @Test func theSearchFindsWhatIsInTheClear() throws {
        try sandbox.write("script", Self.everything)
        let plain = try leaks(["sqlite3", "plaintext", ".read script"])
        #expect(plain.contains { $0.hasPrefix("written") } && plain.contains("left in plaintext"))
        try sandbox.write("keyed", "PRAGMA key = 'k'; PRAGMA temp_store = FILE;\n\(Self.everything)")
        let keyed = try leaks(["sqlcipher", "sealed", ".read keyed"])
        // The store itself is encrypted; what was written beside it is not.
        #expect(keyed.contains { $0.hasPrefix("written") } && !keyed.contains("left in sealed"))
    }
}
