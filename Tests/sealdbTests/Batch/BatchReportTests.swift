import Foundation
import Testing

@testable import sealdb

/// What a batch reports as a whole.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct BatchReportTests {
    private let sandbox: Sandbox
    private let stores: [String]
    private let keys = ["--key-file", "key", "--new-key-file", "new"]

    init() throws {
        sandbox = try Sandbox()
        stores = try sandbox.makeFleet(3)
    }

    private func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    private func rotate(_ arguments: [String]) throws -> Outcome {
        try sandbox.run([Tool.sealdb, "rotate"] + arguments + keys)
    }

    /// Quiet is quiet of what went well. How many have their new key counts those that had it before.
    @Test func quietUnlessSomethingFails() throws {
        try sandbox.succeed("rotate", "s02", "--key-file", "key", "--new-key-file", "new")
        try sandbox.write("s03", "no store")
        let outcome = try rotate(stores + ["--continue-on-error", "-q"])
        #expect(outcome.status == 2)
        #expect(outcome.lines == ["3 stores: 1 changed, 1 had the new key already, 1 failed, 0 left"])
        #expect(outcome.error.contains("sealdb: 2 of 3 stores have their new key. To go on"), "\(outcome.error)")
        let well = try rotate(["s01", "s02", "--journal", "other", "-q"])
        #expect(well.status == 0 && well.output.isEmpty && well.error.isEmpty, "\(well)")
        let verify = ["verify", "s01", "s03", "--key-file", "new", "--continue-on-error", "-q"]
        let verified = try sandbox.run([Tool.sealdb] + verify)
        #expect(verified.status == 2)
        #expect(verified.lines == ["2 stores: 1 sound, 0 unchanged, 1 failed, 0 left"], "\(verified.output)")
    }

    /// Of a store that needs no work, the bytes are none that are to be done.
    @Test func theTotalIsThatOfTheWork() throws {
        try sandbox.succeed("rotate", "s02", "--key-file", "key", "--new-key-file", "new")
        let sizes = try stores.map { try sandbox.contents($0).count }
        let work = sizes[0] + sizes[2]
        let outcome = try rotate(stores + ["--progress", "json", "--json"])
        #expect(outcome.status == 0, "\(outcome.error)")
        let totals = try objects(outcome.error).filter { $0["kind"] as? String == "total" }
        let last = try #require(totals.last)
        #expect(last["completedStores"] as? Int == 3, "\(last)")
        #expect(last["completedBytes"] as? Int == work && last["totalBytes"] as? Int == work, "\(last)")
        // A store in work counts as far as it is done.
        let early = totals.filter { $0["completedStores"] as? Int == 0 }.compactMap { $0["completedBytes"] as? Int }
        #expect(early.contains { $0 > 0 } && early.allSatisfy { $0 <= sizes[0] }, "\(early)")
        let summary = try #require(try objects(outcome.output).last)
        #expect(summary["kind"] as? String == "summary" && summary["exitCode"] as? Int == 0)
        #expect(summary["done"] as? Int == 2 && summary["unchanged"] as? Int == 1)
        #expect(try #require(summary["seconds"] as? Double) > 0)
        let verify = [Tool.sealdb, "verify", "--json", "--key-file", "new"] + stores
        let verified = try #require(try objects(try sandbox.run(verify).output).last)
        #expect(try #require(verified["seconds"] as? Double) > 0)
    }

    /// The time of a plan is that of all stores, one after the other, or what the speed limit makes of it.
    @Test func theTimeOfAPlan() throws {
        let plans = try objects(try rotate(stores + ["-n", "--json"]).output)
        let times = plans.dropLast().compactMap { $0["estimatedSeconds"] as? Double }
        let seconds = try #require(plans.last?["seconds"] as? Double)
        #expect(times.count == 3 && abs(times.reduce(0, +) - seconds) < 0.001 * seconds, "\(times), \(seconds)")
        let bytes = try stores.reduce(into: Int64(0)) { $0 += Int64(try sandbox.contents($1).count) }
        // A thousand bytes a second.
        let slow = try rotate(stores + ["-n", "--max-rate", "0.001"])
        let time = DurationText.clock(Double(bytes) / 1000)
        #expect(
            slow.lines.last == "3 stores: 3 to change, 0 have the new key, 0 cannot be changed; "
                + "\(ByteText.size(bytes)), about \(time); nothing was written"
        )
    }
}
