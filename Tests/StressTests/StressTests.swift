import Foundation
import SealedDB
import Testing

/// A short run of what `scripts/stress` does for as long as one likes.
@Suite(.hangLimit(minutes: 50), .enabled(if: EngineInfo.current().isEncrypting, "the plain build takes no key"))
struct StressTests {
    @Test func storesHoldWhatWasAcknowledged() throws {
        let directory = NSTemporaryDirectory() + "/sealeddb-stress-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let stress = URL(fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            .deletingLastPathComponent().appendingPathComponent("Stress")
        let process = Process()
        let pipe = Pipe()
        process.executableURL = stress
        process.arguments = ["--seconds", "120", "--steps", "40", "--rounds", "6", "--quick", "--directory", directory]
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        // Three minutes where nothing else runs; its rounds take as long as the machine lets them.
        let limit = ChildLimit(of: process.processIdentifier, named: "Stress", minutes: 40)
        defer { limit.end() }
        let output = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(output)")
        let summary = try #require(output.split(separator: "\n").last.map(String.init), "\(output)")
        print(summary)
        #expect(summary.contains(" 0 lost"))
        #expect(summary.contains(" 0 kinds never ran"), "\(output)")
    }
}
