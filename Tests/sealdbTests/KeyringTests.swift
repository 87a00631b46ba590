import Foundation
import Testing

/// Ring files, which the plain build writes as well.
@Suite(.hangLimit)
struct KeyringTests {
    private func list(_ sandbox: Sandbox) throws -> [String] { try sandbox.succeed("keyring", "list", "ring").lines }

    @Test func createAddActivateRemoveList() throws {
        let sandbox = try Sandbox()
        let created = try sandbox.succeed("keyring", "create", "ring", "2026")
        #expect(try sandbox.mode("ring") == 0o600)
        let text = String(decoding: try sandbox.contents("ring"), as: UTF8.self)
        let match = try #require(text.wholeMatch(of: /sealdb-keyring 1\nactive 2026\n2026 key ([0-9a-f]{64})\n/))
        #expect(!created.output.contains(match.1))
        #expect(try list(sandbox) == ["2026 (active)"])
        try sandbox.succeed("keyring", "add", "ring", "2027")
        #expect(try list(sandbox) == ["2026 (active)", "2027"])
        try sandbox.succeed("keyring", "activate", "ring", "2027")
        #expect(try list(sandbox) == ["2026", "2027 (active)"])
        try sandbox.succeed("keyring", "add", "ring", "2028", "--activate")
        try sandbox.succeed("keyring", "remove", "ring", "2026", "--yes", "--keep", "0")
        #expect(try sandbox.succeed("keyring", "list", "ring", "--json").output.contains(#""active":"2028""#))
        #expect(try list(sandbox) == ["2027", "2028 (active)"])
        #expect(try sandbox.names() == ["ring"])
    }

    @Test func entriesThatRefer() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.write("words", "correct horse\n")
        try sandbox.succeed("keyring", "create", "ring", "file", "--key-file", "key")
        try sandbox.succeed("keyring", "add", "ring", "words", "--passphrase-file", sandbox.path("words"))
        try sandbox.succeed("keyring", "add", "ring", "service", "--key-credential", "db")
        try sandbox.succeed("keyring", "add", "ring", "talk", "--passphrase-credential", "pw")
        let digits = String(repeating: "0A", count: 32)
        try sandbox.succeed("keyring", "add", "ring", "inline", "--key-fd", "0", input: digits + "\n")
        #expect(
            String(decoding: try sandbox.contents("ring"), as: UTF8.self) == """
                sealdb-keyring 1
                active file
                file key-file \(sandbox.path("key"))
                words passphrase-file \(sandbox.path("words"))
                service key-credential db
                talk passphrase-credential pw
                inline key \(digits.lowercased())

                """
        )
    }

    @Test func refusals() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("keyring", "create", "ring", "a")
        let before = try sandbox.contents("ring")
        try sandbox.fail(73, "keyring", "create", "ring", "a")
        try sandbox.fail(65, "keyring", "create", "other", "a b")
        try sandbox.fail(66, "keyring", "create", "other", "a", "--key-file", "absent")
        try sandbox.fail(65, "keyring", "create", "other", "a", "--key-fd", "0", input: "short")
        let two = try sandbox.fail(64, "keyring", "create", "other", "a", "--key-file", "k", "--key-fd", "3")
        #expect(two.error.contains("--key-file and --key-fd exclude each other"))
        #expect(try sandbox.fail(65, "keyring", "add", "ring", "a").error.contains("has a key a already"))
        #expect(try sandbox.fail(65, "keyring", "activate", "ring", "b").error.contains("has no key b, but a"))
        #expect(try sandbox.fail(65, "keyring", "remove", "ring", "a").error.contains("activate another first"))
        try sandbox.fail(66, "keyring", "list", "absent")
        #expect(try sandbox.contents("ring") == before)
        #expect(try sandbox.names() == ["ring"])
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: sandbox.path("ring"))
        for arguments in [
            ["list", "ring"], ["add", "ring", "b"], ["activate", "ring", "a"], ["remove", "ring", "a"],
            ["reinstate", "ring", "a"], ["audit", "ring", "db"],
        ] {
            #expect(try sandbox.run([Tool.sealdb, "keyring"] + arguments).status == 78)
        }
    }

    @Test func malformedRingShowsNoKey() throws {
        let sandbox = try Sandbox()
        let digits = String(repeating: "0a", count: 32)
        try sandbox.write("ring", "sealdb-keyring 1\nactive a\na key \(digits)0\n")
        let outcome = try sandbox.fail(65, "keyring", "list", "ring")
        #expect(outcome.error.contains("line 3") && !outcome.error.contains("0a0a"))
    }

    /// Killed at each call that writes, renames or syncs, the ring is the old one or the new one.
    @Test(arguments: ["write", "fsync", "rename", "fchmod"])
    func killedUpdateLeavesAWholeRing(call: String) throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("keyring", "create", "ring", "a")
        var kills = 0
        for number in 1...80 {
            let outcome = try sandbox.run([
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                "inject=\(call):signal=KILL:when=\(number)", Tool.sealdb, "keyring", "add", "ring", "k\(number)",
            ])
            let ids = try list(sandbox)
            #expect(ids.contains("a (active)"))
            if outcome.status == 0 {
                #expect(ids.contains("k\(number)"))
                break
            }
            kills += 1
        }
        #expect((1..<80).contains(kills))
        // What a killed one left behind is removed.
        try sandbox.succeed("keyring", "add", "ring", "last")
        #expect(try sandbox.names() == ["ring"])
    }
}

/// Stores under the keys of a ring.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct KeyRingStoreTests {
    @Test func everyCommandTakesARing() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.write("rows.csv", "a\n1\n")
        #expect(
            try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a); INSERT INTO t VALUES (7);").status == 0
        )
        try sandbox.succeed("create", "db", "--key-ring", "ring")
        try sandbox.succeed("encrypt", "plain", "copy", "--key-ring", "ring")
        // The stores now have a key that is not the active one.
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        for arguments in [
            ["import", "db", "people", "rows.csv"], ["query", "db", "SELECT * FROM people"],
            ["exec", "db", "INSERT INTO people VALUES (2)"], ["verify", "db"], ["info", "db"], ["verify", "copy"],
            ["rotate", "db", "--dry-run"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-ring", "ring"])
            #expect(outcome.status == 0, "\(arguments): \(outcome.error)")
        }
        let environment = try sandbox.run([Tool.sealdb, "verify", "db"], environment: ["SEALDB_KEY_RING": "ring"])
        #expect(environment.status == 0, "\(environment.error)")
    }

    @Test func rotationToTheActiveKey() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("create", "db", "--key-ring", "ring")
        #expect(try sandbox.succeed("info", "db", "--key-ring", "ring").output.contains("a, active\n"))
        let done = try sandbox.succeed("rotate", "db", "--key-ring", "ring")
        #expect(done.output == "db: has the active key a already; nothing was changed\n")
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        #expect(try sandbox.succeed("info", "db", "--key-ring", "ring").output.contains("a, not the active one"))
        let due = try sandbox.succeed("info", "db", "--key-ring", "ring", "--json").output
        #expect(due.contains(#""keyID":"a""#) && due.contains(#""needsRotation":true"#), "\(due)")
        #expect(try sandbox.succeed("rotate", "db", "--key-ring", "ring").output.contains("key changed"))
        let json = try sandbox.succeed("rotate", "db", "--key-ring", "ring", "--json").output
        #expect(json.contains(#""status":"unchanged""#), "\(json)")
        try sandbox.succeed("keyring", "remove", "ring", "a", "db")
        try sandbox.succeed("verify", "db", "--key-ring", "ring")
    }

    /// A rotation that was killed may have left the new file under its name, but not for good: the old one may come back. The
    /// directory is synced before the key goes, and before a rotation says that there is nothing to do.
    @Test func whatIsBelievedIsMadeDurableFirst() throws {
        let sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.path("stores"), withIntermediateDirectories: false)
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("create", "stores/db", "--key-ring", "ring")
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        try sandbox.succeed("rotate", "stores/db", "--key-ring", "ring")
        func calls(_ arguments: String...) throws -> [Substring] {
            let strace = ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", "trace=fsync,rename,renameat,renameat2"]
            #expect(try sandbox.run(strace + [Tool.sealdb] + arguments).status == 0)
            return String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n")
        }
        let sync = /fsync\([0-9]+<[^>]*\/stores>\)/
        let rotation = try calls("rotate", "stores/db", "--key-ring", "ring")
        #expect(rotation.contains { $0.contains(sync) }, "\(rotation)")
        let removal = try calls("keyring", "remove", "ring", "a", "stores/db")
        let synced = try #require(removal.firstIndex { $0.contains(sync) }, "\(removal)")
        let replaced = try #require(removal.firstIndex { $0.contains("rename") }, "\(removal)")
        #expect(synced < replaced)
    }

    /// A key goes only when no store that is named needs it, and first to the retired ones.
    @Test func keysThatAreStillNeeded() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("create", "db", "--key-ring", "ring")
        try sandbox.write("backup", try sandbox.contents("db"))
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        let before = try sandbox.run([Tool.sealdb, "keyring", "audit", "ring", "db", "backup"])
        #expect(before.status == 1 && before.lines.first == "db: a, not the active one: sealdb rotate", "\(before)")
        try sandbox.succeed("rotate", "db", "--key-ring", "ring")
        #expect(try sandbox.succeed("keyring", "audit", "ring", "db").output == "db: b, active\n")
        let ring = try sandbox.contents("ring")
        #expect(try sandbox.fail(75, "keyring", "remove", "ring", "a", "db", "backup").error.contains("backup has it"))
        #expect(try sandbox.fail(75, "keyring", "remove", "ring", "a", "db", "absent").error.contains("absent: "))
        #expect(try sandbox.fail(64, "keyring", "remove", "ring", "a").error.contains("--yes"))
        // What opens with every key proves nothing of one.
        try sandbox.write("empty", "")
        try FileManager.default.createDirectory(atPath: sandbox.path("directory"), withIntermediateDirectories: false)
        #expect(try sandbox.run(["sqlite3", "plain", "CREATE TABLE t (a)"]).status == 0)
        for name in ["empty", "directory", "plain", "/dev/null"] {
            #expect(try sandbox.sealdb("keyring", "audit", "ring", name).status != 0, "\(name)")
            try sandbox.fail(75, "keyring", "remove", "ring", "a", "db", name, "--keep", "0")
        }
        let audit = try sandbox.run([Tool.sealdb, "keyring", "audit", "ring", "db", "backup", "--json"])
        #expect(audit.status == 1 && audit.lines.count == 3, "\(audit)")
        #expect(audit.lines[1].contains(#""exitCode":1"#) && audit.lines[2].contains(#""exitCode":1"#), "\(audit)")
        try sandbox.fail(64, "keyring", "remove", "ring", "a", "--keep", "-1")
        #expect(try sandbox.contents("ring") == ring)
        // Retired: it opens nothing, is told, and can come back.
        #expect(
            try sandbox.succeed("keyring", "remove", "ring", "a", "db").output.contains("a retired, and kept until")
        )
        let listed = try sandbox.succeed("keyring", "list", "ring").lines
        #expect(listed.count == 2 && listed[1].hasPrefix("a (retired, kept until "), "\(listed)")
        #expect(
            try sandbox.fail(77, "query", "backup", "SELECT 1", "--key-ring", "ring").error.contains("retired keys: a")
        )
        let retired = try sandbox.run([Tool.sealdb, "keyring", "audit", "ring", "backup", "--json"])
        #expect(retired.status == 1 && retired.output.contains(#""isRetired":true"#), "\(retired)")
        #expect(try sandbox.fail(65, "keyring", "add", "ring", "a").error.contains("reinstate"))
        #expect(try sandbox.fail(75, "keyring", "remove", "ring", "a", "--yes").error.contains("--keep 0"))
        #expect(
            try sandbox.fail(75, "keyring", "remove", "ring", "a", "backup", "--keep", "0").error.contains("has it")
        )
        try sandbox.succeed("keyring", "reinstate", "ring", "a")
        try sandbox.succeed("query", "backup", "SELECT 1", "--key-ring", "ring")
        try sandbox.fail(65, "keyring", "reinstate", "ring", "a")
        // Past its day the same command removes it for good.
        try sandbox.succeed("keyring", "remove", "ring", "a", "--yes")
        let text = String(decoding: try sandbox.contents("ring"), as: UTF8.self)
        try sandbox.write("ring", text.replacing(/retired: a \d+-\d+-\d+/, with: "retired: a 2020-02-29"))
        #expect(try sandbox.succeed("keyring", "remove", "ring", "a", "db").output == "ring: a removed for good\n")
        #expect(try sandbox.contents("ring").starts(with: "sealdb-keyring 1\n".utf8))
        try sandbox.fail(77, "keyring", "audit", "ring", "backup")
    }

    /// Who changes the ring waits until the stores were looked at.
    @Test func aRingThatOthersChangeMeanwhile() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        try sandbox.succeed("create", "db", "--key-ring", "ring")
        let outcome = try sandbox.run([
            "bash", "-c",
            """
            mkfifo list
            '\(Tool.sealdb)' keyring remove ring a --keep 0 --from-file list & removal=$!
            exec 3>list
            '\(Tool.sealdb)' keyring activate ring a && '\(Tool.sealdb)' create late --key-ring ring
            echo db >&3; exec 3>&-
            wait $removal; echo $?
            '\(Tool.sealdb)' query late 'SELECT 7' --key-ring ring --no-header
            """,
        ])
        #expect(outcome.lines.suffix(2) == ["65", "7"], "\(outcome.output)\(outcome.error)")
    }

    @Test func rotationIntoAndOutOfARing() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-ring", "ring")
        try sandbox.fail(77, "verify", "db", "--key-file", "key")
        try sandbox.fail(64, "rotate", "db", "--key-ring", "ring", "--new-key-ring", "ring")
        try sandbox.succeed("rotate", "db", "--key-ring", "ring", "--new-key-file", "key")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        let wrong = try sandbox.fail(77, "verify", "db", "--key-ring", "ring")
        #expect(wrong.error.contains("No key of the ring opens db; tried were a"))
    }

    @Test func damagedStoreIsToldFromAWrongKey() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("keyring", "add", "ring", "b", "--key-file", "key")
        try sandbox.overwrite("db", at: 100, with: [1, 2, 3, 4])
        let outcome = try sandbox.fail(65, "verify", "db", "--key-ring", "ring")
        #expect(outcome.error.contains("the key is right"))
    }

    @Test func ringThatRefersToPassphrases() throws {
        let sandbox = try Sandbox()
        try sandbox.write("words", "correct horse\n")
        try sandbox.succeed("keyring", "create", "ring", "words", "--passphrase-file", "words")
        try sandbox.succeed("create", "db", "--key-ring", "ring")
        try sandbox.succeed("verify", "db", "--passphrase-file", "words")
        unlink(sandbox.path("words"))
        let outcome = try sandbox.fail(66, "verify", "db", "--key-ring", "ring")
        #expect(outcome.error.contains("words: Cannot read the passphrase file"))
    }
}
