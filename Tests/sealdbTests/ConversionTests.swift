import Foundation
import Testing

/// decrypt, migrate, and what they say.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ConversionTests {
    private let sandbox: Sandbox
    private static let passphrase = "It's a secret"

    init() throws {
        sandbox = try Sandbox()
        try sandbox.write("pass", Self.passphrase + "\n")
    }

    /// A store that the stock shell made in another format.
    private func makeOld(_ pragmas: String, key: String = "'It''s a secret'") throws {
        let sql = """
            PRAGMA key = \(key); \(pragmas)
            CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, bio TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
            INSERT INTO people SELECT i, 'Person ' || i, 'known plaintext ' || hex(zeroblob(200)) FROM n;
            PRAGMA user_version = 12;
            """
        let outcome = try sandbox.run(["sqlcipher", "old"], input: sql)
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
    }

    private func census(_ options: String..., key: [String] = ["--passphrase-file", "pass"]) throws -> String {
        let sql = "SELECT count(*), sum(id), sum(bio LIKE 'known plaintext %') FROM people"
        let outcome = try sandbox.run([Tool.sealdb, "query", "old", sql, "--format", "csv"] + key + options)
        return outcome.lines.dropFirst().joined() + "\n"
    }

    @Test(arguments: ["1", "2", "3"])
    func olderFormats(version: String) throws {
        try makeOld("PRAGMA cipher_compatibility = \(version);")
        let before = try sandbox.contents("old")
        let isAuthenticated = version != "1"
        let refused = try sandbox.fail(
            isAuthenticated ? 78 : 77,
            "query",
            "old",
            "SELECT 1",
            "--passphrase-file",
            "pass"
        )
        #expect(!isAuthenticated || refused.error.contains("SQLCipher \(version)"))
        #expect(refused.error.contains(isAuthenticated ? "sealdb migrate" : "were not tried"))
        #expect(try census("--compatibility", version) == Sandbox.wholeStore)
        let asked = isAuthenticated ? [] : ["--allow-unauthenticated"]
        if !isAuthenticated {
            for command in ["info", "migrate"] {
                let outcome = try sandbox.fail(77, command, "old", "--passphrase-file", "pass")
                #expect(outcome.error.contains("without page authentication"), "\(outcome.error)")
            }
        }
        func succeed(_ arguments: String...) throws -> String {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--passphrase-file", "pass"] + asked)
            #expect(outcome.status == 0, "\(outcome.error)")
            return outcome.output
        }
        let info = try succeed("info", "old")
        #expect(info.contains("SQLCipher \(version)") && info.contains("tables:"))
        #expect(info.contains("is not authenticated") != isAuthenticated)
        let plan = try succeed("migrate", "old", "--dry-run")
        #expect(plan.contains("from SQLCipher \(version) to SQLCipher 4"))
        #expect(try sandbox.contents("old") == before)
        #expect(try sandbox.names() == ["old", "pass"])
        for command in ["backup", "rotate", "decrypt"] {
            let more =
                command == "backup"
                ? ["copy"]
                : command == "decrypt" ? ["plain", "--allow-plaintext"] : ["--new-passphrase-file", "pass2"]
            let store = command == "rotate" ? "copy" : "old"
            try sandbox.write("pass2", "Another secret")
            let outcome = try sandbox.run(
                [Tool.sealdb, command, store] + more + ["--passphrase-file", "pass", "--compatibility", version]
            )
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.output.contains("not authenticated") != isAuthenticated, "\(outcome.output)")
        }
        try sandbox.removeAll(but: ["old", "pass"])
        let migrated = try succeed("migrate", "old")
        #expect(migrated.contains("not authenticated") != isAuthenticated, "\(migrated)")
        #expect(try census() == Sandbox.wholeStore)
        let again = try sandbox.succeed("migrate", "old", "--passphrase-file", "pass").output
        #expect(again.contains("nothing was changed"))
        let stock = try sandbox.run(
            ["sqlcipher", "old"],
            input: "PRAGMA key = 'It''s a secret'; SELECT count(*) FROM people; PRAGMA user_version;"
        )
        #expect(stock.lines == ["ok", "50", "12"])
        #expect(try sandbox.names() == ["old", "pass"])
    }

    @Test func otherSettingsThereAndBack() throws {
        try makeOld("PRAGMA cipher_page_size = 8192; PRAGMA cipher_hmac_algorithm = HMAC_SHA256;")
        try sandbox.succeed("migrate", "old", "--passphrase-file", "pass")
        let options = ["--page-size", "16384", "--kdf-iterations", "4000"]
        let new = options.map { $0.replacingOccurrences(of: "--", with: "--new-") }
        #expect(try sandbox.run([Tool.sealdb, "migrate", "old", "--passphrase-file", "pass"] + new).status == 0)
        try sandbox.fail(77, "query", "old", "SELECT 1", "--passphrase-file", "pass")
        #expect(try census("--page-size", "16384", "--kdf-iterations", "4000") == Sandbox.wholeStore)
        let info = try sandbox.succeed("info", "old", "--passphrase-file", "pass").output
        #expect(info.contains("cipher_page_size = 16384"))
    }

    @Test func migrateRefusals() throws {
        try makeOld("PRAGMA cipher_compatibility = 3;")
        try sandbox.write("wrong", "wrong\n")
        try sandbox.write("text", String(repeating: "just text ", count: 1000))
        let before = try sandbox.contents("old")
        try sandbox.fail(77, "migrate", "old", "--passphrase-file", "wrong")
        try sandbox.fail(65, "migrate", "text", "--passphrase-file", "pass")
        try sandbox.fail(66, "migrate", "absent", "--passphrase-file", "pass")
        try sandbox.fail(78, "migrate", "old", "--passphrase-file", "pass", "--new-page-size", "512")
        try sandbox.fail(64, "migrate", "old", "--passphrase-file", "pass", "--compatibility", "5")
        try sandbox.fail(64, "migrate", "old", "--passphrase-file", "pass", "--salt", "xyz")
        #expect(try sandbox.contents("old") == before)
        #expect(try sandbox.names() == ["old", "pass", "text", "wrong"])
    }

    /// What a store is said to have already, it has: settings that are given prove nothing.
    @Test func aStoreThatIsAsItIsToBeIsOpened() throws {
        try sandbox.makeStore()
        try sandbox.makeKey("other")
        try sandbox.fail(77, "migrate", "db", "--compatibility", "4", "--key-file", "other")
        let outcome = try sandbox.succeed("migrate", "db", "--compatibility", "4", "--key-file", "key")
        #expect(outcome.output.hasPrefix("db: has these settings already"), "\(outcome.output)")
    }

    @Test func decryptWantsToBeMeant() throws {
        try sandbox.makeStore()
        let refused = try sandbox.fail(64, "decrypt", "db", "plain", "--key-file", "key")
        #expect(refused.error.contains("--allow-plaintext"))
        #expect(!sandbox.exists("plain"))
        let done = try sandbox.succeed("decrypt", "db", "plain", "--key-file", "key", "--allow-plaintext")
        #expect(done.output.contains("plaintext"))
        #expect(try sandbox.mode("plain") == 0o600)
        let sql = "SELECT count(*), sum(id), sum(bio LIKE 'known plaintext %') FROM people;"
        #expect(try sandbox.run(["sqlite3", "-separator", ",", "plain"], input: sql).output == Sandbox.wholeStore)
        try sandbox.fail(73, "decrypt", "db", "plain", "--key-file", "key", "--allow-plaintext")
        // Nobody is asked for what cannot be done.
        try sandbox.fail(73, "decrypt", "db", "plain", "--key-file", "key")
        try sandbox.makeKey("other")
        try sandbox.fail(77, "decrypt", "db", "fresh", "--key-file", "other", "--allow-plaintext")
        #expect(!sandbox.exists("fresh"))
    }

    @Test(arguments: [("yes\n", true), ("y\n", false), ("\n", false)])
    func decryptAsksOnATerminal(answer: String, isDone: Bool) throws {
        try sandbox.makeStore()
        let terminal = try Terminal(
            [Tool.sealdb, "decrypt", "db", "plain", "--key-file", "key"],
            directory: sandbox.directory
        )
        try terminal.expect("[yes/no]")
        terminal.type(answer)
        #expect(terminal.wait() == (isDone ? 0 : 64))
        #expect(sandbox.exists("plain") == isDone)
    }

    /// Killed at every call that changes a directory or makes it last, a migration leaves the store whole, in the old
    /// format or the new.
    @Test func migrationKilled() throws {
        let digits = String(repeating: "5a", count: 32)
        try sandbox.write("raw", digits)
        let key = ["--key-file", "raw"]
        try makeOld("PRAGMA cipher_compatibility = 2;", key: "\"x'\(digits)'\"")
        let original = try sandbox.contents("old")
        func migrate(_ strace: [String]) throws -> Outcome {
            try sandbox.run(
                ["strace", "-f", "-qq"] + strace
                    + [Tool.sealdb, "migrate", "old", "--compatibility", "2"] + key
            )
        }
        #expect(try migrate(["-o", "trace"]).status == 0)
        let calls: Set = ["rename", "unlink", "fsync", "fdatasync", "ftruncate", "openat", "pwrite64"]
        var counts: [String: Int] = [:]
        var points: [(call: String, count: Int)] = []
        for line in String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n") {
            guard let match = line.firstMatch(of: /^\d+ +(\w+)\(/) else { continue }
            let call = String(match.1)
            counts[call, default: 0] += 1
            guard calls.contains(call) else { continue }
            // Of what happens often a sample.
            let isRare = call != "openat" && call != "pwrite64"
            if isRare || counts[call, default: 0].isMultiple(of: 9) { points.append((call, counts[call, default: 0])) }
        }
        try sandbox.removeAll(but: ["pass", "raw"])
        var formats = ["old": 0, "new": 0]
        for point in points {
            try sandbox.write("old", original)
            let outcome = try migrate(["-o", "/dev/null", "-e", "inject=\(point.call):signal=KILL:when=\(point.count)"])
            let isOld = try census("--compatibility", "2", key: key) == Sandbox.wholeStore
            let isNew = try census(key: key) == Sandbox.wholeStore
            #expect(isOld != isNew, "\(point): old \(isOld), new \(isNew), \(outcome.error)")
            formats[isNew ? "new" : "old", default: 0] += 1
            try sandbox.removeAll(but: ["pass", "raw"])
        }
        #expect(formats["old", default: 0] > 5 && formats["new", default: 0] > 0, "\(formats)")
    }
}
