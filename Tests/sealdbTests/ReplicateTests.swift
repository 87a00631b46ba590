import Foundation
import SealedDB
import Testing

/// `replicate`, `snapshots` and `restore --from`.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ReplicateTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
    }

    private func exec(_ sql: String) throws {
        try sandbox.succeed("exec", "db", sql, "--key-file", "key")
    }

    @discardableResult
    private func ship(_ more: String...) throws -> Outcome {
        let arguments = ["replicate", "db", "--to", "repo", "--key-file", "key", "--once"]
        let outcome = try sandbox.run([Tool.sealdb] + arguments + more)
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome
    }

    /// Starts a shipper that goes on.
    private func begin() throws -> ChildProcess {
        try ChildProcess(
            [Tool.sealdb, "replicate", "db", "--to", "repo", "--key-file", "key", "--interval", "0.1"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("out"), error: sandbox.path("err"))
        )
    }

    /// What a process has printed; empty before it has made the file.
    private func text(_ name: String) throws -> String {
        sandbox.exists(name) ? String(decoding: try sandbox.contents(name), as: UTF8.self) : ""
    }

    @Test func onceAndBack() throws {
        let first = try ship()
        #expect(first.lines.count == 2)
        #expect(first.lines[0].hasPrefix("db: generation 1 begun (first), snapshot, "))
        #expect(first.lines[1] == "db: shipped 0 commits to generation 1")
        // Kept open, so that the log stays.
        let user = try sandbox.connection()
        _ = try user.executeQuery("SELECT count(*) FROM people").scalar(Int.self)
        try exec("DELETE FROM people WHERE id > 40")
        try ship()
        try exec("DELETE FROM people WHERE id > 30")
        let last = try ship("--json")
        #expect(last.output.contains(#""status":"done""#) && last.output.contains(#""commitCount":1"#))
        user.close()
        let restored = try sandbox.succeed("restore", "--from", "repo", "new")
        #expect(restored.output.hasPrefix("new: restored "))
        #expect(try sandbox.census(keyFile: "key", store: "new").output == "30,465,30\n")
        try sandbox.succeed("verify", "new", "--key-file", "key", "--deep")
        try sandbox.succeed("restore", "--from", "repo", "old", "--generation", "1")
        #expect(try sandbox.census(keyFile: "key", store: "old").output == Sandbox.wholeStore)
    }

    @Test func aMoment() throws {
        let user = try sandbox.connection()
        _ = try user.executeQuery("SELECT count(*) FROM people").scalar(Int.self)
        // A log that a later call can go on with.
        try exec("UPDATE people SET name = 'x' WHERE id = 50")
        try ship()
        try exec("DELETE FROM people WHERE id > 40")
        let middle = try ship("--json").output
        let match = try #require(middle.firstMatch(of: /"shippedAt":([0-9]+)/))
        let milliseconds = try #require(Double(match.output.1))
        try exec("DELETE FROM people")
        try ship()
        user.close()
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        let time = formatter.string(from: Date(timeIntervalSince1970: milliseconds / 1000))
        let outcome = try sandbox.succeed("restore", "--from", "repo", "new", "--at", time, "--json")
        #expect(outcome.output.contains(#""generation":1"#), "\(outcome.output)")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == "40,820,40\n")
        try sandbox.fail(66, "restore", "--from", "repo", "early", "--at", "2001-01-01T00:00:00Z")
        #expect(!sandbox.exists("early"))
    }

    @Test func snapshots() throws {
        try ship()
        let plain = try sandbox.succeed("snapshots", "repo")
        #expect(plain.lines[0].hasPrefix("generation 1 of "))
        #expect(plain.lines[0].hasSuffix("/db: the first one"))
        let verified = try sandbox.succeed("snapshots", "repo", "--verify", "--key-file", "key")
        #expect(verified.output.contains("is sound under its key"))
        let json = try sandbox.succeed("snapshots", "repo", "--json")
        #expect(json.output.contains(#""problems":[]"#) && json.output.contains(#""begunBecause":"first""#))
        try sandbox.makeKey("other")
        #expect(try sandbox.sealdb("snapshots", "repo", "--verify", "--key-file", "other").status == 77)
        #expect(try sandbox.names() == ["db", "db-shm", "db-wal", "key", "other", "repo"])
    }

    @Test func damageIsTold() throws {
        try ship()
        let chunk = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: sandbox.path("repo/chunks"))
                .first { $0.count > 60 }
        )
        try sandbox.overwrite("repo/chunks/\(chunk)", at: 5000, with: [1, 2, 3])
        let outcome = try sandbox.sealdb("snapshots", "repo", "--verify")
        #expect(outcome.status == 65 && outcome.output.contains("does not have the digest"), "\(outcome.output)")
        try sandbox.succeed("snapshots", "repo")
        try sandbox.fail(65, "restore", "--from", "repo", "new")
        #expect(!sandbox.exists("new"))
        try sandbox.overwrite("repo/generations/00000001/snapshot-000000000000", at: 40, with: [0x3f])
        let output = try sandbox.sealdb("snapshots", "repo").output
        #expect(output.contains("generation 1: its beginning is not kept"), "\(output)")
        #expect(!output.contains("1970"), "\(output)")
    }

    @Test func restoreByTheRulesOfBackups() throws {
        try ship()
        try exec("DELETE FROM people WHERE id > 10")
        try sandbox.fail(73, "restore", "--from", "repo", "db")
        let user = try sandbox.connection()
        _ = try user.executeQuery("SELECT count(*) FROM people").scalar(Int.self)
        try sandbox.fail(75, "restore", "--from", "repo", "db", "--replace")
        user.close()
        let outcome = try sandbox.succeed("restore", "--from", "repo", "db", "--replace")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        let kept = try #require(try sandbox.names().first { $0.hasPrefix("db.replaced-") && !$0.hasSuffix("-wal") })
        #expect(outcome.output.contains(kept))
        #expect(try sandbox.census(keyFile: "key", store: kept).output == "10,55,10\n")
        // Another file has taken its place.
        #expect(try ship().output.contains("generation 2 begun (replaced)"))
    }

    /// What certainly is no store stays where it is.
    @Test func restoreOverSomethingElse() throws {
        try ship()
        try sandbox.write("text", String(repeating: "notes\n", count: 512))
        try sandbox.write("part", String(repeating: "\u{1}", count: 1000))
        for name in ["text", "part"] {
            let before = try sandbox.contents(name)
            try sandbox.fail(65, "restore", "--from", "repo", name, "--replace")
            #expect(try sandbox.contents(name) == before)
        }
        try sandbox.fail(73, "restore", "--from", "repo", "repo/repository", "--replace")
        try sandbox.fail(73, "restore", "--from", "repo", "repo/chunks/new")
        try sandbox.succeed("snapshots", "repo", "--verify")
    }

    /// All is shipped, and only what is old stays.
    @Test func snapshotsThatCannotBeRemoved() throws {
        try ship()
        try exec("DELETE FROM people WHERE id > 20")
        try sandbox.overwrite("repo/generations/00000001/snapshot-000000000000", at: 30, with: [1, 2, 3])
        let arguments = ["replicate", "db", "--to", "repo", "--key-file", "key", "--once", "--keep-last", "1"]
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == 65 && outcome.error.contains("All is shipped, but"), "\(outcome.error)")
        #expect(outcome.output.contains("shipped 0 commits to generation 2"), "\(outcome.output)")
        try sandbox.succeed("restore", "--from", "repo", "new")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == "20,210,20\n")
        // One that runs on goes on.
        try exec("DELETE FROM people WHERE id > 10")
        let child = try ChildProcess(
            [Tool.sealdb] + arguments.filter { $0 != "--once" } + ["--interval", "0.1"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("out"), error: sandbox.path("err"))
        )
        func error() throws -> String { String(decoding: try sandbox.contents("err"), as: UTF8.self) }
        while !child.hasEnded, try !error().contains("All is shipped, but") { sched_yield() }
        try exec("DELETE FROM people WHERE id > 5")
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 0)
        let text = try error()
        #expect(!text.contains("nothing was shipped"), "\(text)")
        try sandbox.succeed("restore", "--from", "repo", "newest")
        #expect(try sandbox.census(keyFile: "key", store: "newest").output == "5,15,5\n")
    }

    @Test func refusals() throws {
        try sandbox.makeKey("other")
        try sandbox.fail(77, "replicate", "db", "--to", "repo", "--key-file", "other", "--once")
        try sandbox.fail(66, "replicate", "absent", "--to", "repo", "--key-file", "key", "--once")
        try sandbox.fail(73, "replicate", "db", "--to", "no/repo", "--key-file", "key", "--once")
        try sandbox.fail(64, "replicate", "db", "--to", "repo", "--once")
        try sandbox.fail(64, "replicate", "db", "--to", "repo", "--key-file", "key", "--once", "--interval", "3")
        try sandbox.fail(66, "snapshots", "absent")
        try sandbox.fail(66, "restore", "--from", "absent", "new")
        try ship()
        try sandbox.fail(64, "restore", "--from", "repo", "new", "--key-file", "key")
        try sandbox.fail(64, "restore", "--from", "repo", "db", "new")
        try sandbox.fail(64, "restore", "--from", "repo", "new", "--at", "yesterday")
        try sandbox.fail(64, "restore", "db", "new", "--key-file", "key", "--at", "2026-01-01T00:00:00Z")
        try sandbox.fail(64, "restore", "db", "--key-file", "key")
        try sandbox.succeed("create", "second", "--key-file", "key")
        try sandbox.succeed("exec", "second", "PRAGMA journal_mode = WAL", "--key-file", "key")
        try sandbox.fail(73, "replicate", "second", "--to", "repo", "--key-file", "key", "--once")
        try exec("PRAGMA journal_mode = DELETE")
        try sandbox.fail(78, "replicate", "db", "--to", "repo", "--key-file", "key", "--once")
        #expect(!sandbox.exists("new"))
    }

    @Test func oldSnapshotsAreRemoved() throws {
        for number in 1...4 {
            try exec("INSERT INTO people (name, bio) VALUES ('\(number)', hex(randomblob(9000)))")
            try ship("--keep-last", "2")
        }
        let outcome = try sandbox.succeed("snapshots", "repo", "--verify", "--key-file", "key")
        #expect(outcome.output.ranges(of: "generation ").count == 2)
        try sandbox.succeed("restore", "--from", "repo", "new", "--generation", "3")
        #expect(try sandbox.census(keyFile: "key", store: "new").output.hasPrefix("53,"))
        try sandbox.fail(66, "restore", "--from", "repo", "newer", "--generation", "2")
    }

    /// It runs until it is told to end, and ships what is there.
    @Test(arguments: [SIGTERM, SIGINT])
    func untilASignal(_ signal: Int32) throws {
        let child = try begin()
        // The first line is written when the snapshot is there.
        while !child.hasEnded,
            try
                !(sandbox.exists("out")
                && String(decoding: sandbox.contents("out"), as: UTF8.self)
                    .contains("begun"))
        {
            sched_yield()
        }
        let second = try sandbox.sealdb("replicate", "db", "--to", "repo", "--key-file", "key", "--once")
        #expect(second.status == 75, "\(second.error)")
        #expect(try sandbox.sealdb("rotate", "db", "--key-file", "key", "--new-key-file", "key").status != 0)
        try exec("DELETE FROM people WHERE id > 20")
        kill(child.identifier, signal)
        #expect(child.wait() == 0)
        #expect(
            try String(decoding: sandbox.contents("out"), as: UTF8.self).contains("shipped 1 commit to generation 1")
        )
        #expect(try sandbox.contents("err").isEmpty)
        try sandbox.succeed("restore", "--from", "repo", "new")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == "20,210,20\n")
    }

    /// Whoever has the store open goes on with a log that nobody else has. That is shipped, and told.
    @Test func aLogThatIsRemoved() throws {
        let child = try begin()
        while !child.hasEnded, try !text("out").contains("begun") { sched_yield() }
        for name in ["db-wal", "db-shm"] { #expect(unlink(sandbox.path(name)) == 0) }
        while !child.hasEnded, try !text("err").contains("The log of") { sched_yield() }
        try exec("DELETE FROM people WHERE id > 20")
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 0)
        #expect(try text("err").split(separator: "\n").count == 1)
        #expect(try text("out").contains("generation 2 begun (log-replaced)"))
        try sandbox.succeed("restore", "--from", "repo", "new")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == "20,210,20\n")
    }

    /// What cannot be told does not end the work.
    @Test func nobodyListens() throws {
        let child = try ChildProcess(
            [Tool.sealdb, "replicate", "db", "--to", "repo", "--key-file", "key", "--interval", "0.1"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: "/dev/full", error: sandbox.path("err"))
        )
        func error() throws -> String { String(decoding: try sandbox.contents("err"), as: UTF8.self) }
        while !child.hasEnded, try !error().contains("shipping goes on") { sched_yield() }
        try exec("DELETE FROM people WHERE id > 20")
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 74)
        try sandbox.succeed("restore", "--from", "repo", "new")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == "20,210,20\n")
    }

    /// A limit does not keep it from ending: what is left goes as fast as it will.
    @Test func aSlowRepository() throws {
        try exec("CREATE TABLE large AS SELECT hex(zeroblob(400000)) AS x")
        let child = try ChildProcess(
            [Tool.sealdb, "replicate", "db", "--to", "repo", "--key-file", "key", "--bandwidth-limit", "1"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("out"), error: sandbox.path("err"))
        )
        while !child.hasEnded, !sandbox.exists("repo/chunks") { sched_yield() }
        // It would go on for a quarter of an hour.
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 0)
        #expect(try sandbox.contents("err").isEmpty)
        try sandbox.succeed("restore", "--from", "repo", "new", "--bandwidth-limit", "100000")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == Sandbox.wholeStore)
    }

    /// A repository that is away for a while is told, and goes on.
    @Test func aRepositoryThatIsAway() throws {
        let child = try begin()
        while !child.hasEnded, try !text("out").contains("begun") { sched_yield() }
        #expect(rename(sandbox.path("repo"), sandbox.path("away")) == 0)
        try exec("DELETE FROM people WHERE id > 20")
        while !child.hasEnded, try !text("err").contains("nothing was shipped") { sched_yield() }
        #expect(rename(sandbox.path("away"), sandbox.path("repo")) == 0)
        while !child.hasEnded, try !text("err").contains("shipped again") { sched_yield() }
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 0)
        try sandbox.succeed("restore", "--from", "repo", "new")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == "20,210,20\n")
    }

    /// Slots travel along, and one that was removed does not come back.
    @Test func keySlots() throws {
        try sandbox.makeKey("safe")
        try sandbox.succeed("create", "s", "--slots", "--key-file", "key", "--recovery-key-file", "safe")
        try sandbox.succeed("exec", "s", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)", "--key-file", "key")
        try sandbox.makeKey("guest")
        try sandbox.succeed("slots", "add", "s", "guest", "--key-file", "key", "--new-key-file", "guest")
        let ship = ["replicate", "s", "--to", "repo", "--once", "--key-file", "key"]
        #expect(try sandbox.run([Tool.sealdb] + ship).status == 0)
        try sandbox.succeed("slots", "remove", "s", "guest", "--key-file", "key", "--yes")
        // It has the name of what is to be shipped, and other bytes: that is damage, and no other shipper.
        let digest = try sandbox.run(["/usr/bin/sha256sum", "s.slots"]).output.prefix(64)
        try sandbox.write("repo/slots/\(digest)", "damage")
        let healed = try sandbox.run([Tool.sealdb] + ship)
        #expect(healed.status == 0 && healed.error.contains("\(digest) was damaged"), "\(healed.error)")
        let outcome = try sandbox.succeed("restore", "--from", "repo", "new")
        #expect(outcome.output.contains("with its key slots"))
        #expect(try ["new", "new.slots", "new.slots.2"].allSatisfy { try sandbox.names().contains($0) })
        for key in ["key", "safe"] { try sandbox.succeed("verify", "new", "--key-file", key) }
        try sandbox.fail(77, "verify", "new", "--key-file", "guest")
        try sandbox.succeed("snapshots", "repo", "--verify", "--key-file", "safe")
        // The slots of a store that is gone may have stayed.
        for name in ["new", "new-wal", "new-shm"] { unlink(sandbox.path(name)) }
        try sandbox.succeed("restore", "--from", "repo", "new")
        try sandbox.succeed("restore", "--from", "repo", "new", "--replace")
        try sandbox.succeed("verify", "new", "--key-file", "key")
        try sandbox.write("other.slots", "something else")
        #expect(try sandbox.sealdb("restore", "--from", "repo", "other").status == 73)
        #expect(!sandbox.exists("other"))
    }
}
