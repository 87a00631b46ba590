import Foundation
import SealedDB
import Testing

/// `follow`: a copy that follows a repository.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct FollowTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
        try ship()
    }

    private func exec(_ sql: String) throws {
        try sandbox.succeed("exec", "db", sql, "--key-file", "key")
    }

    private func ship() throws {
        try sandbox.succeed("replicate", "db", "--to", "repo", "--key-file", "key", "--once")
    }

    private func text(_ name: String) throws -> String {
        sandbox.exists(name) ? String(decoding: try sandbox.contents(name), as: UTF8.self) : ""
    }

    private func begin(_ interval: String = "0.1") throws -> ChildProcess {
        try ChildProcess(
            [Tool.sealdb, "follow", "repo", "copy", "--interval", interval],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("out"), error: sandbox.path("err"))
        )
    }

    /// What the copy holds, read with the key.
    private func census() throws -> String { try sandbox.census(keyFile: "key", store: "copy").output }

    @Test func once() throws {
        let first = try sandbox.succeed("follow", "repo", "copy", "--once")
        #expect(first.lines.count == 2)
        #expect(first.lines[0].hasPrefix("copy: generation 1 (made), as of "), "\(first.output)")
        #expect(first.lines[1].hasPrefix("copy: applied 0 commits of generation 1, as of "))
        #expect(try census() == Sandbox.wholeStore)
        // Kept open, so that the log stays.
        let user = try sandbox.connection()
        _ = try user.executeQuery("SELECT count(*) FROM people").scalar(Int.self)
        try exec("UPDATE people SET name = 'x' WHERE id = 50")
        try ship()
        try exec("DELETE FROM people WHERE id > 40")
        try exec("DELETE FROM people WHERE id > 30")
        try ship()
        user.close()
        let second = try sandbox.succeed("follow", "repo", "copy", "--once", "--json")
        for part in [#""status":"done""#, #""bytesBehind":0"#, #""secondsBehind":0"#, #""restoredTo":"20"#] {
            #expect(second.output.contains(part), "\(second.output)")
        }
        #expect(try census() == "30,465,30\n")
        #expect(try sandbox.succeed("follow", "repo", "copy", "--once", "--quiet").output.isEmpty)
        try sandbox.succeed("verify", "copy", "--key-file", "key", "--deep")
        #expect(try sandbox.names().contains(".copy.sealdb-follow"))
        #expect(try !sandbox.names().contains { $0.hasPrefix(".copy.sealdb-next") })
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func untilASignal(_ signal: Int32) throws {
        let shipper = try ChildProcess(
            [Tool.sealdb, "replicate", "db", "--to", "repo", "--key-file", "key", "--interval", "0.1"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("shipped"), error: sandbox.path("err-shipped"))
        )
        let child = try begin()
        while !child.hasEnded, try !text("out").contains("made") { sched_yield() }
        #expect(try sandbox.sealdb("follow", "repo", "copy", "--once").status == 75)
        try exec("DELETE FROM people WHERE id > 20")
        while !child.hasEnded, !shipper.hasEnded, try census() != "20,210,20\n" { sched_yield() }
        kill(child.identifier, signal)
        #expect(child.wait() == 0)
        kill(shipper.identifier, SIGTERM)
        #expect(shipper.wait() == 0)
        #expect(try text("out").contains("of generation "))
        #expect(try text("err").isEmpty)
        #expect(try census() == "20,210,20\n")
    }

    /// A follower that is killed at any moment leaves a copy that opens, and the next one goes on.
    @Test func killedAgainAndAgain() throws {
        let user = try sandbox.connection()
        _ = try user.executeQuery("SELECT count(*) FROM people").scalar(Int.self)
        var last = 50
        for round in 0..<6 {
            let child = try begin()
            var report = ""
            for _ in 0...round {
                last -= 1
                try exec("DELETE FROM people WHERE id > \(last); UPDATE people SET name = 'n\(round)'")
                try ship()
                if sandbox.exists("copy") { report = try census() }
            }
            kill(child.identifier, SIGKILL)
            #expect(child.wait() != 0)
            // In the first round it may have been killed before there was a copy.
            if sandbox.exists("copy") { report = try census() }
            #expect(report.isEmpty || report.split(separator: ",").count == 3, "\(report)")
        }
        user.close()
        try sandbox.succeed("follow", "repo", "copy", "--once")
        #expect(try census() == sandbox.census(keyFile: "key", store: "db").output)
        try sandbox.succeed("verify", "copy", "--key-file", "key", "--deep")
    }

    /// What cannot be told does not end the work. What somebody has done to the copy is told at the latest in the end.
    @Test func nobodyListens() throws {
        let child = try ChildProcess(
            [Tool.sealdb, "follow", "repo", "copy", "--interval", "0.1"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: "/dev/full", error: sandbox.path("err"))
        )
        while !child.hasEnded, try !text("err").contains("following goes on") { sched_yield() }
        try exec("DELETE FROM people WHERE id > 20")
        try ship()
        while !child.hasEnded, try census() != "20,210,20\n" { sched_yield() }
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 74)
        #expect(try census() == "20,210,20\n")
    }

    @Test func aRepositoryThatIsAway() throws {
        let child = try begin()
        while !child.hasEnded, try !text("out").contains("made") { sched_yield() }
        #expect(rename(sandbox.path("repo"), sandbox.path("away")) == 0)
        while !child.hasEnded, try !text("err").contains("does not follow") { sched_yield() }
        #expect(try census() == Sandbox.wholeStore)
        #expect(rename(sandbox.path("away"), sandbox.path("repo")) == 0)
        while !child.hasEnded, try !text("err").contains("follows again") { sched_yield() }
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 0)
    }

    /// A rotated store takes the place of the copy when nobody reads that.
    @Test func aRotation() throws {
        try sandbox.succeed("follow", "repo", "copy", "--once")
        try sandbox.makeKey("next")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "next")
        try sandbox.succeed("replicate", "db", "--to", "repo", "--key-file", "next", "--once")
        let reader = try sandbox.connection("copy")
        _ = try reader.executeQuery("SELECT count(*) FROM people").scalar(Int.self)
        try sandbox.fail(75, "follow", "repo", "copy", "--once")
        #expect(try census() == Sandbox.wholeStore)
        reader.close()
        try sandbox.succeed("follow", "repo", "copy", "--once")
        #expect(try sandbox.census(keyFile: "next", store: "copy").output == Sandbox.wholeStore)
    }

    @Test func whatIsRefused() throws {
        try sandbox.fail(66, "follow", "absent", "copy", "--once")
        try sandbox.fail(73, "follow", "repo", "db", "--once")
        try sandbox.fail(64, "follow", "repo", "copy", "--once", "--interval", "3")
        try sandbox.fail(64, "follow", "repo", "copy", "--interval", "0")
        try sandbox.fail(64, "follow", "repo", "copy", "--key-file", "key")
        try sandbox.succeed("follow", "repo", "copy", "--once")
        try sandbox.succeed("exec", "copy", "DELETE FROM people WHERE id = 1", "--key-file", "key")
        try ship()
        let outcome = try sandbox.sealdb("follow", "repo", "copy", "--once")
        #expect(outcome.status == 70 && outcome.error.contains("Somebody else has written"), "\(outcome.error)")
        #expect(try census().hasPrefix("49,"))
    }

    /// Slots travel along, and one that was removed does not come back.
    @Test func keySlots() throws {
        try sandbox.makeKey("safe")
        try sandbox.succeed("create", "s", "--slots", "--key-file", "key", "--recovery-key-file", "safe")
        try sandbox.succeed("exec", "s", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)", "--key-file", "key")
        try sandbox.makeKey("guest")
        try sandbox.succeed("slots", "add", "s", "guest", "--key-file", "key", "--new-key-file", "guest")
        try sandbox.succeed("replicate", "s", "--to", "slots", "--once", "--key-file", "key")
        try sandbox.succeed("follow", "slots", "copy", "--once")
        for key in ["key", "safe", "guest"] { try sandbox.succeed("verify", "copy", "--key-file", key) }
        try sandbox.succeed("slots", "remove", "s", "guest", "--key-file", "key", "--yes")
        try sandbox.succeed("replicate", "s", "--to", "slots", "--once", "--key-file", "key")
        try sandbox.succeed("follow", "slots", "copy", "--once")
        for key in ["key", "safe"] { try sandbox.succeed("verify", "copy", "--key-file", key) }
        try sandbox.fail(77, "verify", "copy", "--key-file", "guest")
        #expect(try sandbox.contents("copy.slots") == sandbox.contents("s.slots"))
        #expect(try sandbox.contents("copy.slots.2") == sandbox.contents("s.slots"))
    }
}
