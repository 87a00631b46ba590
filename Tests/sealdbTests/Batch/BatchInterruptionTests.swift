import Foundation
import Testing

/// Batches that end before their time, and those that go on with them.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct BatchInterruptionTests {
    private let sandbox: Sandbox
    private let keys = ["--key-file", "key", "--new-key-file", "new"]
    private let journal = "sealdb-rotate.journal"

    init() throws {
        sandbox = try Sandbox()
    }

    private func rotate(_ arguments: [String], strace: [String] = []) throws -> Outcome {
        let traced = strace.isEmpty ? [] : ["strace", "-f", "-qq", "-o", "/dev/null"] + strace
        return try sandbox.run(traced + [Tool.sealdb, "rotate"] + arguments + keys)
    }

    private func status() throws -> [String: Any] {
        let outcome = try sandbox.sealdb("status", journal, "--json")
        return try #require(try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any])
    }

    /// Runs the command again, and expects all to be done and nothing to be left beside the stores.
    private func finish(_ stores: [String], _ more: [String] = []) throws {
        let outcome = try rotate(stores + more)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try sandbox.names() == ["key", "new"] + stores + [journal])
        for store in stores { #expect(try sandbox.keys(opening: store) == ["new"]) }
        #expect(try status()["done"] as? Int == stores.count)
        #expect(try sandbox.sealdb("status", journal).status == 0)
    }

    /// Killed four times at random, and run again each time. `scripts/rotate-fleet` does it with 200 stores.
    @Test(arguments: ["delete", "wal"])
    func killedAndResumed(journalMode: String) throws {
        let stores = try sandbox.makeFleet(12, journalMode: journalMode)
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<4 {
            let call = ["pwrite64", "fsync", "rename", "unlink"].randomElement(using: &generator)!
            let count = Int.random(in: 1...(call == "pwrite64" ? 16 : 8), using: &generator)
            let outcome = try rotate(
                stores + ["--jobs", "2"],
                strace: ["-e", "trace=\(call)", "-e", "inject=\(call):signal=KILL:when=\(count)"]
            )
            // When few are left, there may be fewer calls.
            guard outcome.status != 0 else { break }
            #expect([137, -9].contains(outcome.status), "\(call) \(count): \(outcome.status) \(outcome.error)")
            for store in stores {
                #expect(try sandbox.keys(opening: store).count == 1, "\(store) after a kill at \(call) \(count)")
            }
            let names = Set(try sandbox.names())
            #expect(names.isSuperset(of: stores))
            if names.contains(journal) {
                let state = try sandbox.sealdb("status", journal)
                #expect([2, 65].contains(state.status), "\(state.error)")
            }
        }
        try finish(stores, ["--jobs", "2"])
    }

    @Test(arguments: [("INT", 130), ("TERM", 143), ("HUP", 129)] as [(String, Int32)])
    func signalsStopIt(signal: String, status: Int32) throws {
        let stores = try sandbox.makeFleet(4)
        // While the copy of the second store is written. Of each store, the copy is written at once, and then the start of
        // the old file.
        let outcome = try rotate(
            stores,
            strace: ["-e", "trace=pwrite64", "-e", "inject=pwrite64:signal=\(signal):when=3"]
        )
        #expect(outcome.status == status, "\(outcome.status) \(outcome.error)")
        #expect(outcome.lines.last == "4 stores: 1 changed, 0 had the new key already, 0 failed, 3 left")
        #expect(try sandbox.names() == ["key", "new"] + stores + [journal])
        #expect(try stores.map { try sandbox.keys(opening: $0) } == [["new"], ["key"], ["key"], ["key"]])
        let state = try self.status()
        #expect(state["interrupted"] as? [String] == [sandbox.path("s02")])
        #expect(state["lastExitCode"] as? Int == Int(status) && state["notBegun"] as? Int == 2)
        try finish(stores, ["--resume-only"])
    }

    /// What nohup asked for is respected.
    @Test func ignoredHangUp() throws {
        let stores = try sandbox.makeFleet(1)
        let outcome = try sandbox.run(
            ["bash", "-c", "trap '' HUP; exec \"$@\"", "-", "strace", "-f", "-qq", "-o", "/dev/null"]
                + ["-e", "trace=pwrite64", "-e", "inject=pwrite64:signal=HUP:when=1", Tool.sealdb, "rotate"]
                + stores + keys
        )
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    /// The second signal does not wait for the safe point, and leaves a copy behind, but the store whole.
    @Test func secondSignalEndsItAtOnce() throws {
        let stores = try sandbox.makeFleet(2)
        // Only a page of the copy seems to be written, so that the rest is written next.
        let outcome = try rotate(
            stores,
            strace: ["-e", "trace=pwrite64", "-e", "inject=pwrite64:retval=4096:signal=TERM:when=1..2"]
        )
        #expect(outcome.status == 143)
        #expect(try sandbox.names().contains { $0.hasPrefix(".s01.sealdb-") })
        #expect(try sandbox.keys(opening: "s01") == ["key"])
        #expect(try status()["lastExitCode"] == nil)
        try finish(stores)
    }

    /// At this rate a copy takes minutes, so it is not done when the signal comes.
    @Test func rateLimitHoldsAndEndsWithASignal() throws {
        let stores = try sandbox.makeFleet(2)
        let terminal = try Terminal(
            [Tool.sealdb, "rotate"] + stores + keys + ["--max-rate", "0.001", "--progress", "json"],
            directory: sandbox.directory
        )
        try terminal.expect("\"phase\":\"copy\"")
        terminal.type("\u{3}")
        #expect(terminal.wait() == 130)
        #expect(!terminal.transcript.contains("\"phase\":\"verify\""))
        #expect(try stores.map { try sandbox.keys(opening: $0) } == [["key"], ["key"]])
        try finish(stores)
    }

    @Test func deadlineStopsIt() throws {
        let stores = try sandbox.makeFleet(2)
        let hurry = stores + ["--deadline", "0.2s", "--max-rate", "0.001"]
        let dryRun = try rotate(hurry + ["--dry-run"])
        #expect(dryRun.status == 75, "\(dryRun.error)")
        let outcome = try rotate(hurry)
        #expect(outcome.status == 75, "\(outcome.error)")
        #expect(try stores.map { try sandbox.keys(opening: $0) } == [["key"], ["key"]])
        let single = try rotate(["s01", "--deadline", "0.2s", "--max-rate", "0.001"])
        #expect(single.status == 75 && single.error.contains("deadline"), "\(single.error)")
        for text in ["25:00", "5:00", "x", "-1s", "0s", ""] {
            #expect(try rotate(stores + ["--deadline=\(text)"]).status == 64)
        }
        try finish(stores, ["--deadline", "1h"])
    }

    // MARK: The journal

    @Test func resumeOnlyNeedsAnUnfinishedBatch() throws {
        let stores = try sandbox.makeFleet(2)
        for more in [["--dry-run"], []] {
            #expect(try rotate(stores + ["--resume-only"] + more).status == 66)
            #expect(try sandbox.names() == ["key", "new"] + stores)
        }
        #expect(try sandbox.keys(opening: "s01") == ["key"])
        try finish(stores)
        #expect(try rotate(stores + ["--resume-only"]).status == 66)
    }

    @Test func unfinishedBatchKeepsItsJournal() throws {
        let stores = try sandbox.makeFleet(3)
        try sandbox.write("s02", "no store")
        #expect(try rotate(["s01", "s02"]).status == 65)
        let before = try sandbox.contents(journal)
        for more in [["--dry-run"], []] {
            let other = try rotate(["s01", "s03"] + more)
            #expect(other.status == 73 && other.error.contains("--journal"), "\(other.error)")
        }
        #expect(try sandbox.contents(journal) == before)
        #expect(try rotate(["s01", "s03", "--journal", "mine"]).status == 0)
        #expect(try sandbox.keys(opening: "s03") == ["new"])
        #expect(try sandbox.sealdb("status", "mine").status == 0)
        #expect(try rotate(["s03", "--journal", "one", "--continue-on-error"]).status == 0)
        #expect(stores.count == 3)
    }

    /// The stores that are done have a key that is given no more, perhaps in no file: the others must not get a third one.
    @Test func anotherNewKeyIsRefused() throws {
        let stores = try sandbox.makeFleet(3)
        let whole = try sandbox.contents(stores[1])
        try sandbox.write(stores[1], Data(count: 8192))
        #expect(try rotate(stores).status != 0)
        try sandbox.write(stores[1], whole)
        let new = try sandbox.contents("new")
        try FileManager.default.removeItem(atPath: sandbox.path("new"))
        try sandbox.makeKey("new")
        for more in [["--dry-run"], []] {
            let outcome = try rotate(stores + more)
            #expect(outcome.status == 77 && outcome.error.contains("neither the new one"), "\(outcome.error)")
            #expect(outcome.error.contains("Nothing was changed"))
        }
        #expect(try sandbox.contents(stores[1]) == whole)
        try sandbox.write("new", new)
        try finish(stores)
    }

    /// The stores know better than the journal.
    @Test func journalIsNotBelieved() throws {
        let stores = try sandbox.makeFleet(3)
        try sandbox.write("s03", "no store")
        #expect(try rotate(stores).status == 65)
        // Of a store that the journal calls done comes an old copy from a backup, and the one that failed is mended.
        for store in ["s01", "s03"] {
            try FileManager.default.removeItem(atPath: sandbox.path(store))
        }
        try sandbox.succeed("rotate", "s02", "--key-file", "new", "--new-key-file", "key")
        for store in ["s01", "s03"] {
            try FileManager.default.copyItem(atPath: sandbox.path("s02"), toPath: sandbox.path(store))
        }
        try finish(stores)
    }

    @Test func tornLineIsPassedOver() throws {
        let stores = try sandbox.makeFleet(2)
        try sandbox.write("s02", "no store")
        #expect(try rotate(stores).status == 65)
        try FileManager.default.removeItem(atPath: sandbox.path("s02"))
        try sandbox.succeed("rotate", "s01", "--key-file", "new", "--new-key-file", "key")
        try FileManager.default.copyItem(atPath: sandbox.path("s01"), toPath: sandbox.path("s02"))
        var contents = try sandbox.contents(journal)
        let torn = Data("{\"event\":\"done\",\"path\":\"/s".utf8)
        contents += torn
        try sandbox.write(journal, contents)
        #expect(try sandbox.sealdb("status", journal).status == 2)
        try finish(stores)
        // What comes after it is on lines of its own.
        let lines = try sandbox.contents(journal).split(separator: UInt8(ascii: "\n"))
        #expect(lines.filter { (try? JSONSerialization.jsonObject(with: $0)) == nil } == [torn])
    }

    @Test func foreignFilesAreNoJournals() throws {
        let stores = try sandbox.makeFleet(2)
        try sandbox.write("notes", "buy milk\n")
        for arguments in [["rotate"] + stores + keys + ["--journal", "notes"], ["status", "notes"]] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status == 65, "\(outcome.error)")
        }
        #expect(try sandbox.contents("notes") == Data("buy milk\n".utf8))
        try sandbox.fail(66, "status", "absent")
        #expect(try rotate(stores + ["--journal", "absent/journal"]).status == 73)
        #expect(try rotate(stores + ["--journal", "absent/journal", "-n"]).status == 73)
        #expect(try sandbox.keys(opening: "s01") == ["key"])
    }

    @Test func oneRunAtATime() throws {
        let stores = try sandbox.makeFleet(2)
        try sandbox.write(journal, "")
        let descriptor = open(sandbox.path(journal), O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(flockOfDescription(descriptor, F_WRLCK))
        for more in [["--dry-run"], []] {
            let outcome = try rotate(stores + more)
            #expect(outcome.status == 75 && outcome.error.contains("Another run"), "\(outcome.error)")
        }
        #expect(flockOfDescription(descriptor, F_UNLCK))
        try finish(stores)
    }

    /// F_OFD_SETLK, as the library locks.
    private func flockOfDescription(_ descriptor: Int32, _ type: Int32) -> Bool {
        var lock = flock()
        lock.l_type = Int16(type)
        lock.l_whence = Int16(SEEK_SET)
        return fcntl(descriptor, 37, &lock) == 0
    }

    /// A disk that is full for the journal: what is done is said to be, and nothing more is begun.
    @Test func journalCannotBeWritten() throws {
        let stores = try sandbox.makeFleet(3)
        let outcome = try rotate(
            stores,
            strace: ["-P", sandbox.path(journal), "-e", "trace=write", "-e", "inject=write:error=ENOSPC:when=2+"]
        )
        #expect(outcome.status == 74, "\(outcome.error)")
        #expect(outcome.error.contains("s01: It has the new key, but"))
        #expect(try stores.map { try sandbox.keys(opening: $0) } == [["new"], ["key"], ["key"]])
        try finish(stores)
    }

    @Test func statusTellsWhereToGoOn() throws {
        let stores = try sandbox.makeFleet(3)
        try sandbox.write("s02", "no store")
        #expect(try rotate(stores).status == 65)
        let outcome = try sandbox.sealdb("status", journal)
        #expect(outcome.status == 2)
        #expect(outcome.output.contains("last run:    ended with exit code 65\n"))
        #expect(outcome.output.contains("\(sandbox.path("s02")): exit code 65: "))
        #expect(outcome.lines.last == "To go on, run the same command again, in \(sandbox.directory)")
        try FileManager.default.removeItem(atPath: sandbox.path("s02"))
        try FileManager.default.copyItem(atPath: sandbox.path("s03"), toPath: sandbox.path("s02"))
        try finish(stores)
    }
}
