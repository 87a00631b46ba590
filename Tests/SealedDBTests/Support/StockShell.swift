import Foundation
import Testing

/// SQLCipher's own shell: makes stores that this package did not write, and gives the second opinion on its own.
enum StockShell {
    struct Failure: Error { let message: String }

    /// Runs SQL on a file and returns what was printed, without the `ok` that a key answers.
    @discardableResult
    static func run(_ path: String, _ sql: String) throws -> [String] {
        let streams = path + "." + UUID().uuidString
        defer { for suffix in [".in", ".out", ".err"] { unlink(streams + suffix) } }
        try Data((sql + "\n").utf8).write(to: URL(fileURLWithPath: streams + ".in"))
        for suffix in [".out", ".err"] { try Data().write(to: URL(fileURLWithPath: streams + suffix)) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sqlcipher", "-batch", path]
        process.standardInput = FileHandle(forReadingAtPath: streams + ".in")
        process.standardOutput = FileHandle(forWritingAtPath: streams + ".out")
        process.standardError = FileHandle(forWritingAtPath: streams + ".err")
        try process.run()
        process.waitUntilExit(minutes: 10)
        let errors = try String(contentsOfFile: streams + ".err", encoding: .utf8)
        guard process.terminationStatus == 0, errors.isEmpty else { throw Failure(message: errors) }
        return try String(contentsOfFile: streams + ".out", encoding: .utf8)
            .split(separator: "\n").map(String.init).filter { $0 != "ok" }
    }
}
