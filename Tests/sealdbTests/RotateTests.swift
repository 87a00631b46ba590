import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct RotateTests {
    private func makeStoreAndNewKey(journalMode: String = "delete") throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: journalMode)
        try sandbox.makeKey("new")
        return sandbox
    }

    @Test(arguments: ["delete", "wal"])
    func changesTheKey(journalMode: String) throws {
        let sandbox = try makeStoreAndNewKey(journalMode: journalMode)
        let outcome = try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "new")
        #expect(outcome.output.hasPrefix("db: key changed, ") && outcome.lines.count == 1)
        #expect(outcome.error.isEmpty)
        #expect(try sandbox.names() == ["db", "key", "new"])
        #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
        #expect(try sandbox.census(keyFile: "key").status == 77)
        try sandbox.succeed("verify", "db", "--key-file", "new")
        #expect(try sandbox.mode("db") == 0o600)
        let info = try sandbox.succeed("info", "db", "--key-file", "new").lines.map { $0.split(separator: " ") }
        #expect(info.contains { $0.first == "journal" && $0.last == Substring(journalMode) }, "\(info)")
        // And back.
        try sandbox.succeed("rotate", "db", "--key-file", "new", "--new-key-file", "key")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test func json() throws {
        let sandbox = try makeStoreAndNewKey()
        func object(_ outcome: Outcome) throws -> [String: Any] {
            try #require(try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any])
        }
        let pages = try sandbox.contents("db").count / 4096
        let plan = try object(
            try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "new", "--dry-run", "--json")
        )
        #expect(plan["status"] as? String == "planned")
        #expect(plan["pageCount"] as? Int == pages)
        let result = try object(
            try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "new", "--json")
        )
        #expect(result["status"] as? String == "done")
        #expect(result["pageCount"] as? Int == pages)
    }

    @Test(arguments: ["delete", "wal"])
    func dryRunChangesNothing(journalMode: String) throws {
        let sandbox = try makeStoreAndNewKey(journalMode: journalMode)
        let before = try sandbox.contents("db")
        let outcome = try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "new", "--dry-run")
        #expect(outcome.output.contains("nothing was written"))
        #expect(try sandbox.contents("db") == before)
        #expect(try sandbox.names() == ["db", "key", "new"])
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        try sandbox.makeKey("other")
        try sandbox.fail(77, "rotate", "db", "--key-file", "other", "--new-key-file", "new", "--dry-run")
        #expect(try sandbox.contents("db") == before)
    }

    /// The same command once more, such as after an interruption whose outcome nobody saw.
    @Test func storeThatHasItsNewKey() throws {
        let sandbox = try makeStoreAndNewKey()
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "new")
        let before = try sandbox.contents("db")
        for more in [[], ["--dry-run"]] {
            let outcome = try sandbox.run(
                [Tool.sealdb, "rotate", "db", "--key-file", "key", "--new-key-file", "new"] + more
            )
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.output == "db: has the new key already; nothing was changed\n")
        }
        #expect(try sandbox.contents("db") == before)
        try sandbox.makeKey("other")
        try sandbox.fail(77, "rotate", "db", "--key-file", "key", "--new-key-file", "other")
    }

    @Test func betweenPassphraseAndRawKey() throws {
        let sandbox = try makeStoreAndNewKey()
        try sandbox.write("passphrase", "correct horse\n")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-passphrase-file", "passphrase")
        try sandbox.fail(77, "query", "db", "SELECT 1", "--key-file", "key")
        try sandbox.succeed("query", "db", "SELECT 1", "--passphrase-file", "passphrase")
        let outcome = try sandbox.run(
            [
                "sh", "-c", "exec \"$0\" rotate db --passphrase-fd 0 --new-passphrase-fd 4 4<new-words", Tool.sealdb,
            ],
            input: "correct horse\n"
        )
        #expect(outcome.status != 0)
        try sandbox.write("new-words", "battery staple\n")
        let second = try sandbox.run(
            [
                "sh", "-c", "exec \"$0\" rotate db --passphrase-fd 0 --new-passphrase-fd 4 4<new-words", Tool.sealdb,
            ],
            input: "correct horse\n"
        )
        #expect(second.status == 0, "\(second.error)")
        try sandbox.succeed("verify", "db", "--passphrase-file", "new-words")
    }

    @Test func keepsModeAndFollowsALink() throws {
        let sandbox = try makeStoreAndNewKey()
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: sandbox.path("db"))
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("link"), withDestinationPath: "db")
        try sandbox.succeed("rotate", "link", "--key-file", "key", "--new-key-file", "new")
        #expect(try sandbox.mode("db") == 0o640)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: sandbox.path("link")) == "db")
        #expect(try sandbox.census(keyFile: "new", store: "link").output == Sandbox.wholeStore)
        #expect(try sandbox.names() == ["db", "key", "link", "new"])
    }

    @Test func progressAsLines() throws {
        let sandbox = try makeStoreAndNewKey()
        let outcome = try sandbox.succeed(
            "rotate",
            "db",
            "--key-file",
            "key",
            "--new-key-file",
            "new",
            "--progress",
            "always"
        )
        for phase in ["copy", "verify"] {
            #expect(outcome.error.split(separator: "\n").contains { $0.hasPrefix(phase) }, "\(outcome.error)")
        }
        #expect(!outcome.error.contains("\r") && !outcome.error.contains("\u{1b}"))
        #expect(outcome.lines.count == 1)
    }

    @Test func progressOnATerminal() throws {
        let sandbox = try makeStoreAndNewKey()
        func transcript(_ environment: [String: String?], _ more: String...) throws -> String {
            let (old, new) = sandbox.exists("flag") ? ("new", "key") : ("key", "new")
            if old == "key" {
                try sandbox.write("flag", "")
            } else {
                try FileManager.default.removeItem(atPath: sandbox.path("flag"))
            }
            let terminal = try Terminal(
                [Tool.sealdb, "rotate", "db", "--key-file", old, "--new-key-file", new] + more,
                directory: sandbox.directory,
                environment: environment
            )
            #expect(terminal.wait() == 0)
            return terminal.transcript
        }
        let redrawn = try transcript(["TERM": "xterm", "NO_COLOR": "1"])
        #expect(redrawn.contains("\rcopy ") && !redrawn.contains("\u{1b}"))
        let dumb = try transcript(["TERM": "dumb"])
        #expect(!dumb.contains("copy "))
        let never = try transcript(["TERM": "xterm"], "--progress", "never")
        #expect(!never.contains("copy "))
    }
}
