import Foundation
import Testing

/// A rotation killed at a sample of its system calls; scripts/kill-sweep takes all of them. After each kill the store
/// opens with exactly one of the two keys, is sound and holds every row.
@Suite(.enabled(if: isEncrypting, "the plain build takes no key"))
struct RotationKillTests {
    private static let decisiveCalls: Set<String> = [
        "rename", "renameat", "renameat2", "unlink", "unlinkat", "link", "linkat", "fsync", "fdatasync", "ftruncate",
    ]

    /// One system call of a run: its name, and how many of that name its thread had made by then. That is how strace
    /// counts.
    private struct KillPoint {
        let call: String
        let count: Int
    }

    private func killPoints(in trace: String) -> [KillPoint] {
        var counts: [String: Int] = [:]
        return trace.split(separator: "\n").compactMap { line in
            guard let match = line.firstMatch(of: /^(\d+) +(\w+)\(/) else { return nil }
            let call = String(match.2)
            counts["\(match.1) \(call)", default: 0] += 1
            return KillPoint(call: call, count: counts["\(match.1) \(call)", default: 0])
        }
    }

    @Test(arguments: ["delete", "wal"])
    func killedAtSystemCalls(journalMode: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: journalMode)
        try sandbox.makeKey("new")
        let original = try sandbox.contents("db")

        func rotate(_ strace: [String]) throws -> Outcome {
            try sandbox.run(
                ["strace", "-f", "-qq"] + strace
                    + [Tool.sealdb, "rotate", "db", "--key-file", "key", "--new-key-file", "new"]
            )
        }

        #expect(try rotate(["-o", "trace"]).status == 0)
        let points = killPoints(in: String(decoding: try sandbox.contents("trace"), as: UTF8.self))
        try #require(points.count > 100)

        // A sample of everything, and all that changes directories or makes them last.
        let sample = points.indices.filter { index in
            index.isMultiple(of: max(1, points.count / 25)) || Self.decisiveCalls.contains(points[index].call)
        }
        var survivors = ["key": 0, "new": 0]
        var kills = 0
        for point in sample.map({ points[$0] }) {
            for name in try sandbox.names() where name != "key" && name != "new" {
                try FileManager.default.removeItem(atPath: sandbox.path(name))
            }
            try sandbox.write("db", original)
            let outcome = try rotate(["-o", "/dev/null", "-e", "inject=\(point.call):signal=KILL:when=\(point.count)"])
            if outcome.status != 0 { kills += 1 }
            let keys = try ["key", "new"].filter { key in
                let verified = try sandbox.sealdb("verify", "db", "--key-file", key)
                guard verified.status == 0 else {
                    #expect(verified.status == 77, "\(point), \(key): \(verified.output)\(verified.error)")
                    return false
                }
                let census = try sandbox.census(keyFile: key)
                #expect(census.output == Sandbox.wholeStore, "\(point), \(key): \(census.error)")
                return true
            }
            #expect(keys.count == 1, "after a kill at \(point) the store opens with \(keys)")
            for key in keys { survivors[key, default: 0] += 1 }
            if outcome.status == 0 { #expect(keys == ["new"]) }
        }
        // Otherwise the sample missed the swap, and proves little.
        #expect(kills > 30)
        #expect(survivors["key", default: 0] > 0 && survivors["new", default: 0] > 0, "\(survivors)")
    }
}
