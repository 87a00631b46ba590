import Foundation
import Testing

/// A process of its own for what belongs to a whole process: the executable that is built beside the tests.
enum Probe {
    struct Outcome {
        let status: Int32
        let lines: [String]
        let errors: [String]
    }

    /// A built executable, which lies beside that of the tests.
    static func url(_ name: String) throws -> URL {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name)
    }

    static func run(_ name: String, _ arguments: String...) throws -> Outcome {
        let directory = try TemporaryDirectory()
        let streams = [directory.file("out"), directory.file("err")]
        for stream in streams { try Data().write(to: URL(fileURLWithPath: stream)) }
        let process = Process()
        process.executableURL = try url(name)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(forWritingAtPath: streams[0])
        process.standardError = FileHandle(forWritingAtPath: streams[1])
        try process.run()
        process.waitUntilExit(minutes: 10)
        let texts = try streams.map { stream in
            try String(contentsOfFile: stream, encoding: .utf8).split(separator: "\n").map(String.init)
        }
        return Outcome(status: process.terminationStatus, lines: texts[0], errors: texts[1])
    }
}
