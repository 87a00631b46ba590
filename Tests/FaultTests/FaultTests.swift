import Foundation
import HangClock
import SealedDB
import Testing

/// The short form of the fault harness: a sample of what `scripts/faults` does. RELIABILITY.md tells what that is.
@Suite(.hangLimit(minutes: 60), .enabled(if: EngineInfo.current().isEncrypting, "the plain build takes no key"))
struct FaultTests {
    /// The last line of the harness, which holds all figures.
    private struct Summary {
        let line: String

        func count(_ what: String) throws -> Int {
            let pattern = try Regex("([0-9]+) \(what)", as: (Substring, Substring).self)
            let match = try #require(line.firstMatch(of: pattern), "\(line)")
            return try #require(Int(match.output.1))
        }
    }

    @Test func nothingIsLost() throws {
        // The harness runs the programs that lie beside it. SEALEDDB_PROGRAMS names a directory with optimised ones.
        let beside = URL(fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            .deletingLastPathComponent()
        let optimised = ProcessInfo.processInfo.environment["SEALEDDB_PROGRAMS"].map { URL(fileURLWithPath: $0) }
        let harness = (optimised ?? beside).appendingPathComponent("FaultHarness")
        let process = Process()
        let pipe = Pipe()
        process.executableURL = harness
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        var limit = ChildLimit(of: process.processIdentifier, named: "the harness", minutes: 45)
        defer { limit.end() }
        // Each kind of trial ends with a line, and has the time of the limit. On a busy machine all of them take longer.
        var printed = Data()
        while case let piece = pipe.fileHandleForReading.availableData, !piece.isEmpty {
            printed += piece
            hang_clock_restart()
            limit.end()
            limit = ChildLimit(of: process.processIdentifier, named: "the harness", minutes: 45)
        }
        let output = String(decoding: printed, as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(output)")
        let summary = Summary(line: try #require(output.split(separator: "\n").last.map(String.init), "\(output)"))
        print(summary.line)
        #expect(try summary.count("lost") == 0, "\(output)")
        #expect(try summary.count("kills") >= 1000)
        #expect(try summary.count("faults,") >= 3000)
        #expect(try summary.count("power losses") >= 5000)
        #expect(try summary.count("failed allocations") >= 1000)
        #expect(try summary.count("environments") >= 200)
        #expect(try summary.count("mutants caught") >= 18)
    }
}
