import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct BatchProgressTests {
    private let sandbox: Sandbox
    private let stores: [String]

    init() throws {
        sandbox = try Sandbox()
        stores = try sandbox.makeFleet(3)
    }

    private func arguments(_ more: [String]) -> [String] {
        [Tool.sealdb, "rotate"] + stores + ["--key-file", "key", "--new-key-file", "new"] + more
    }

    private func transcript(_ environment: [String: String?], _ more: [String] = []) throws -> String {
        let terminal = try Terminal(arguments(more), directory: sandbox.directory, environment: environment)
        #expect(terminal.wait() == 0)
        return terminal.transcript
    }

    @Test(arguments: ["auto", "always"])
    func redrawnLinesOnATerminal(mode: String) throws {
        let text = try transcript(["TERM": "xterm", "NO_COLOR": "1"], ["--jobs", "2", "--progress", mode])
        #expect(text.contains("copy ") && text.contains("0 of 3 stores") && text.contains("total "))
        #expect(text.contains("\u{1b}[") && text.firstMatch(of: /\u{1b}\[[0-9;]*m/) == nil)
        // Results stand on lines of their own.
        for store in stores {
            let line = "\(store): key changed"
            #expect(text.contains("\u{1b}[J\(line)") || text.contains("\n\(line)"))
        }
    }

    @Test(arguments: [["TERM": "dumb"], ["TERM": "xterm", "NEVER": "1"]] as [[String: String]])
    func quiet(environment: [String: String]) throws {
        let text = try transcript(
            environment.mapValues { $0 },
            environment["NEVER"] == nil ? [] : ["--progress", "never"]
        )
        #expect(!text.contains("copy ") && !text.contains("\u{1b}"))
    }

    @Test func noneWithoutATerminal() throws {
        #expect(try sandbox.run(arguments([])).error.isEmpty)
    }

    @Test func linesOnRequest() throws {
        let outcome = try sandbox.run(arguments(["--progress", "always"]))
        #expect(outcome.status == 0)
        for store in stores {
            for phase in ["copy", "verify"] {
                #expect(outcome.error.split(separator: "\n").contains { $0.hasPrefix(store) && $0.contains(phase) })
            }
        }
        #expect(!outcome.error.contains("\u{1b}"))
    }

    /// The columns stay in place: of a long name, the end is what tells stores apart.
    @Test func longNamesInLines() throws {
        let names = ["a-name-of-24-characters-", "a-name-of-25-characters--"]
        #expect(names.map(\.count) == [24, 25])
        for (store, name) in zip(stores, names) {
            try FileManager.default.moveItem(atPath: sandbox.path(store), toPath: sandbox.path(name))
        }
        let outcome = try sandbox.run(
            [Tool.sealdb, "rotate"] + names
                + ["--key-file", "key", "--new-key-file", "new", "--progress", "always"]
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = outcome.error.split(separator: "\n")
        for shown in [names[0], "…" + names[1].suffix(23)] {
            #expect(lines.contains { $0.hasPrefix(shown + "  copy      ") }, "\(outcome.error)")
        }
    }

    @Test func jsonLines() throws {
        let outcome = try sandbox.run(arguments(["--progress", "json", "--jobs", "2"]))
        #expect(outcome.status == 0)
        let size = try sandbox.contents("s01").count
        let records = try outcome.error.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        let own = records.filter { $0["kind"] as? String == "progress" && $0["path"] as? String == sandbox.path("s02") }
        #expect(own.allSatisfy { $0["totalBytes"] as? Int == size })
        let complete = own.filter { $0["completedBytes"] as? Int == size }
        #expect(complete.map { $0["phase"] as? String } == ["copy", "verify", "sync", "swap"])
        let totals = records.filter { $0["kind"] as? String == "total" }
        #expect(totals.last?["completedStores"] as? Int == 3 && totals.last?["totalStores"] as? Int == 3)
        #expect(totals.last?["completedBytes"] as? Int == 3 * size && totals.last?["totalBytes"] as? Int == 3 * size)
        #expect(records.allSatisfy { ["progress", "total"].contains($0["kind"] as? String) })
    }

    /// The beginning and the end of each phase, and one step a second; the speed is that of the phase so far.
    @Test func notEveryStepIsTold() throws {
        // Some 20 steps, and half a second by the rate.
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        try sandbox.succeed(
            "exec",
            "s01",
            "\(rows) INSERT INTO people (bio) SELECT zeroblob(4000) FROM n",
            "--key-file",
            "key"
        )
        let start = ContinuousClock.now
        let outcome = try sandbox.run(arguments(["--progress", "json", "--max-rate", "40"]))
        let seconds = Int((ContinuousClock.now - start) / .seconds(1))
        #expect(outcome.status == 0, "\(outcome.error)")
        let records = try outcome.error.split(separator: "\n").compactMap { line -> [String: Any]? in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return object?["path"] as? String == sandbox.path("s01") ? object : nil
        }
        let phases = records.map { $0["phase"] as? String ?? "" }
        for phase in ["copy", "verify"] {
            #expect((2...2 + seconds).contains(phases.count { $0 == phase }), "\(phase), \(seconds): \(phases)")
        }
        let copied = try #require(records.last { $0["phase"] as? String == "copy" })
        let rate = try #require(copied["bytesPerSecond"] as? Int, "\(copied)")
        #expect(rate > 0 && rate < 60_000_000)
    }

    @Test func jsonLinesOfOneStore() throws {
        let outcome = try sandbox.sealdb(
            "rotate",
            "s01",
            "--key-file",
            "key",
            "--new-key-file",
            "new",
            "--progress",
            "json"
        )
        let first = try #require(outcome.error.split(separator: "\n").first)
        let record = try #require(try JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any])
        #expect(record["kind"] as? String == "progress" && record["phase"] as? String == "copy")
    }
}
