import Foundation
import Testing

/// `sealdb slots`, and what the other commands do with stores that have slots.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct SlotsTests {
    private let sandbox: Sandbox
    private let key = ["--key-file", "key"]

    init() throws {
        sandbox = try Sandbox()
        for name in ["key", "other", "safe"] { try sandbox.makeKey(name) }
        try sandbox.succeed("create", "db", "--slots", "--key-file", "key", "--recovery-key-file", "safe")
        try sandbox.succeed("exec", "db", "CREATE TABLE t (a); INSERT INTO t VALUES (7)", "--key-file", "key")
    }

    private func reads(_ options: String..., location: SourceLocation = #_sourceLocation) throws {
        let outcome = try sandbox.run([Tool.sealdb, "query", "db", "SELECT a FROM t", "--format", "csv"] + options)
        #expect(outcome.lines.last == "7", "\(outcome.error)", sourceLocation: location)
    }

    private func report(_ arguments: String...) throws -> [String: Any] {
        let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--json"])
        let line = try #require(outcome.lines.last, "\(outcome.error)")
        return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    private func labels() throws -> [String] {
        let slots = try report("slots", "list", "db")["slots"] as? [[String: Any]]
        return slots?.compactMap { $0["label"] as? String } ?? []
    }

    @Test func aStoreWithSlots() throws {
        #expect(
            try sandbox.names().filter { $0.hasPrefix("db") && !$0.hasSuffix("lock") } == [
                "db", "db.slots", "db.slots.2",
            ]
        )
        #expect(try sandbox.mode("db.slots") == 0o600)
        try reads("--key-file", "key")
        try reads("--key-file", "safe")
        try sandbox.fail(77, "query", "db", "SELECT 1", "--key-file", "other")
        let listed = try report("slots", "list", "db", "--key-file", "safe")
        #expect(listed["isVerified"] as? Bool == true && listed["generation"] as? Int == 1)
        #expect(try labels() == ["main", "recovery"])
        #expect(try sandbox.succeed("slots", "list", "db").output.contains("verified:"))
        #expect(try sandbox.succeed("slots", "test", "db", "--key-file", "safe").output.contains("slot recovery"))
        try sandbox.fail(64, "create", "x", "--slots", "--key-file", "key")
        try sandbox.fail(64, "create", "x", "--key-file", "key", "--no-recovery")
        try sandbox.fail(73, "create", "db", "--slots", "--key-file", "key", "--no-recovery")
        try sandbox.succeed("create", "x", "--no-slots", "--key-file", "key")
        #expect(!sandbox.exists("x.slots"))
    }

    @Test func changes() throws {
        let new = ["--key-file", "key", "--new-key-file", "other"]
        for labels in [[], ["second", "--label", "third"]] {
            #expect(try sandbox.run([Tool.sealdb, "slots", "add", "db"] + labels + new).status == 64)
        }
        #expect(try sandbox.run([Tool.sealdb, "slots", "add", "db", "--label", "second"] + new).status == 0)
        try reads("--key-file", "other")
        try sandbox.fail(73, "slots", "add", "db", "second", "--key-file", "key", "--new-key-file", "other")
        try sandbox.fail(64, "slots", "remove", "db", "main", "--key-file", "other")
        try sandbox.fail(64, "slots", "remove", "db", "main", "--key-file", "key", "--yes")
        let removed = try sandbox.succeed("slots", "remove", "db", "main", "--key-file", "other", "--yes")
        #expect(removed.output.contains("slots reencrypt"))
        try sandbox.fail(77, "query", "db", "SELECT 1", "--key-file", "key")
        try sandbox.succeed("slots", "rename", "db", "second", "ops", "--key-file", "other")
        try sandbox.fail(66, "slots", "rename", "db", "second", "x", "--key-file", "other")
        try sandbox.succeed("slots", "remove", "db", "recovery", "--key-file", "other", "--yes")
        try sandbox.fail(64, "slots", "remove", "db", "ops", "--key-file", "other", "--yes")
        #expect(try labels() == ["ops"])
        #expect(
            try sandbox.succeed("verify", "db", "--key-file", "other").output.contains("no key slot is for recovery")
        )
    }

    @Test func programs() throws {
        try sandbox.succeed(
            "slots",
            "add",
            "db",
            "program",
            "--key-file",
            "key",
            "--new-wrap-command",
            "/usr/bin/tr 0-9a-f g-v",
            "--new-unwrap-command",
            "/usr/bin/tr g-v 0-9a-f"
        )
        try reads("--unwrap-command", "/usr/bin/tr g-v 0-9a-f")
        try sandbox.fail(69, "query", "db", "SELECT 1", "--unwrap-command", "/bin/false")
        let untried = try report(
            "slots",
            "add",
            "db",
            "two",
            "--key-file",
            "key",
            "--new-wrap-command",
            "/usr/bin/tr 0-9a-f A-P"
        )
        #expect(untried["untried"] as? [String] == ["two"])
        for options in [
            ["--new-wrap-command", "tr a b"], ["--new-unwrap-command", "/bin/cat"],
            ["--new-wrap-command", "/bin/cat", "--new-key-file", "other"], [],
        ] {
            let outcome = try sandbox.run([Tool.sealdb, "slots", "add", "db", "x"] + key + options)
            #expect(outcome.status == 64, "\(options)")
        }
        try sandbox.fail(69, "slots", "add", "db", "x", "--key-file", "key", "--new-wrap-command", "/bin/cat")
    }

    @Test func existingStoresGetSlots() throws {
        try sandbox.succeed("create", "old", "--key-file", "other")
        try sandbox.fail(64, "slots", "init", "old", "--key-file", "other")
        try sandbox.fail(66, "slots", "list", "old")
        let made = try sandbox.succeed("slots", "init", "old", "--key-file", "other", "--no-recovery", "--label", "ops")
        #expect(made.output.contains("data key") && made.output.contains("No slot is for recovery"))
        try sandbox.fail(73, "slots", "init", "old", "--key-file", "other", "--no-recovery")
        let start = try sandbox.contents("old").prefix(16)
        try sandbox.succeed("slots", "reencrypt", "old", "--key-file", "other")
        #expect(try sandbox.contents("old").prefix(16) != start)
        try sandbox.succeed("create", "new", "--key-file", "other")
        let before = try sandbox.contents("new").prefix(16)
        try sandbox.succeed(
            "slots",
            "init",
            "new",
            "--key-file",
            "other",
            "--recovery-key-file",
            "safe",
            "--fresh-data-key"
        )
        #expect(try sandbox.contents("new").prefix(16) != before)
        for key in ["other", "safe"] { try sandbox.succeed("query", "new", "SELECT 1", "--key-file", key) }
    }

    @Test func rotations() throws {
        let start = try sandbox.contents("db").prefix(16)
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "other", "--dry-run")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "other")
        #expect(try sandbox.contents("db").prefix(16) == start)
        try reads("--key-file", "other")
        try sandbox.fail(77, "query", "db", "SELECT 1", "--key-file", "key")
        let again = try report("rotate", "db", "--key-file", "key", "--new-key-file", "other")
        #expect(again["status"] as? String == "unchanged")
        for number in 0..<3 {
            try sandbox.succeed("create", "s\(number)", "--slots", "--key-file", "key", "--no-recovery")
        }
        try sandbox.succeed(
            "rotate",
            "s0",
            "s1",
            "s2",
            "--key-file",
            "key",
            "--new-key-file",
            "other",
            "--jobs",
            "2"
        )
        for number in 0..<3 { try sandbox.succeed("verify", "s\(number)", "--key-file", "other") }
        try sandbox.fail(64, "slots", "reencrypt", "db", "--key-file", "other")
        try sandbox.succeed("slots", "reencrypt", "db", "--key-file", "other", "--keep", "recovery=key-file:safe")
        try reads("--key-file", "safe")
    }

    @Test func copies() throws {
        try sandbox.succeed("backup", "db", "copy", "--key-file", "safe")
        #expect(try sandbox.contents("copy.slots") == sandbox.contents("db.slots"))
        try sandbox.fail(64, "backup", "db", "-", "--key-file", "safe")
        let text = try sandbox.succeed("slots", "export", "db", "--key-file", "key").output
        try sandbox.write("text", text)
        #expect(try report("slots", "export", "db", "--key-file", "key")["slots"] as? String == text)
        for name in ["db.slots", "db.slots.2"] { try FileManager.default.removeItem(atPath: sandbox.path(name)) }
        try sandbox.fail(77, "query", "db", "SELECT 1", "--key-file", "key")
        try sandbox.succeed("slots", "import", "db", "text", "--key-file", "safe")
        try reads("--key-file", "key")
        let old = try sandbox.contents("db.slots")
        try sandbox.succeed("slots", "remove", "db", "main", "--key-file", "safe", "--yes")
        for name in ["db.slots", "db.slots.2"] { try sandbox.write(name, old) }
        try sandbox.fail(78, "query", "db", "SELECT 1", "--key-file", "key")
        try sandbox.succeed("slots", "test", "db", "--key-file", "key", "--accept-older-slots")
        try reads("--key-file", "key")
        try FileManager.default.removeItem(atPath: sandbox.path("db.slots.2"))
        let info = try report("info", "db")
        #expect(info["slotCount"] as? Int == 2 && (info["slotProblems"] as? [String])?.count == 1)
        #expect(try sandbox.succeed("verify", "db", "--key-file", "key").output.contains("missing"))
        try sandbox.succeed("slots", "test", "db", "--key-file", "key")
        #expect(sandbox.exists("db.slots.2"))
        try sandbox.succeed("backup", "db", "--into", ".", "--key-file", "key", "--keep-last", "1")
        for name in ["db", "db.slots", "db.slots.2"] { try FileManager.default.removeItem(atPath: sandbox.path(name)) }
        try sandbox.succeed("restore", "copy", "db", "--key-file", "key")
        try reads("--key-file", "safe")
    }

    /// The first file is durable before the second is touched, and the second before success is reported.
    @Test func theFirstFileIsDurableFirst() throws {
        let calls = "rename,renameat,renameat2,fsync,fdatasync"
        let strace = ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", "trace=\(calls)"]
        let outcome = try sandbox.run(
            strace + [Tool.sealdb, "slots", "rename", "db", "main", "ops", "--key-file", "key"]
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        let directory = URL(fileURLWithPath: sandbox.directory).resolvingSymlinksInPath().path
        var steps: [String] = []
        for line in String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n") {
            if line.contains("sync("), line.contains("<\(directory)>") { steps.append("directory") }
            if line.contains("sync("), line.contains(".db.slots.sealdb-") { steps.append("first") }
            if line.contains("sync("), line.contains(".db.slots.2.sealdb-") { steps.append("second") }
            if line.contains(" rename"), line.contains("/db.slots\"") { steps.append("first named") }
            if line.contains(" rename"), line.contains("/db.slots.2\"") { steps.append("second named") }
        }
        let start = try #require(steps.firstIndex(of: "first"), "\(steps)")
        #expect(
            steps[start...].prefix(6) == ["first", "first named", "directory", "second", "second named", "directory"],
            "\(steps)"
        )
    }

    // MARK: Processes

    private func start(_ arguments: [String], _ name: String) throws -> ChildProcess {
        try ChildProcess(
            [Tool.sealdb] + arguments + ["--lock-wait", "60"],
            directory: sandbox.directory,
            environment: [:],
            streams: .files(input: "/dev/null", output: sandbox.path(name + ".out"), error: sandbox.path(name + ".err"))
        )
    }

    private func opens(with key: String) throws -> Bool {
        let outcome = try sandbox.run([Tool.sealdb, "query", "db", "SELECT a FROM t", "--key-file", key])
        #expect([0, 77].contains(outcome.status), "\(key): \(outcome.error)")
        return outcome.status == 0 && outcome.lines.last == "7"
    }

    /// Processes that change the slots at once, one of which is killed at any moment: what the others report is so.
    @Test func processesAtOnce() throws {
        var current = "key"
        for round in 0..<4 {
            let (one, two, next) = ("one\(round)", "two\(round)", "next\(round)")
            for name in [one, two, next] { try sandbox.makeKey(name) }
            let rotation = try start(["rotate", "db", "--key-file", current, "--new-key-file", next], "rotation")
            let adding = try start(["slots", "add", "db", one, "--key-file", "safe", "--new-key-file", one], "one")
            let killed = try start(["slots", "add", "db", two, "--key-file", "safe", "--new-key-file", two], "two")
            // Which of its steps this meets is chance; the fault harness kills at each of them.
            if round > 0 { kill(killed.identifier, SIGKILL) }
            let statuses = [rotation.wait(), adding.wait(), killed.wait()]
            #expect(statuses[0] == 0 && statuses[1] == 0, "\(statuses)")
            try sandbox.succeed("slots", "test", "db", "--key-file", "safe")
            #expect(try sandbox.contents("db.slots") == sandbox.contents("db.slots.2"))
            #expect(try opens(with: next) && opens(with: one) && opens(with: "safe") && !opens(with: current))
            let isListed = try labels().contains(two)
            #expect(try opens(with: two) == isListed && (statuses[2] != 0 || isListed))
            current = next
        }
        #expect(try sandbox.names().filter { $0.contains(".sealdb-") }.isEmpty)
    }
}
