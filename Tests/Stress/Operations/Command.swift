import Foundation

/// A command that failed, by its exit code.
struct CommandFailure: Error, CustomStringConvertible {
    static let busy: Int32 = 75
    static let wrongKey: Int32 = 77

    let status: Int32
    let text: String

    var description: String { "exit \(status): \(text)" }
}

/// Runs `sealdb` and other programs.
enum Command {
    struct Outcome {
        let status: Int32
        let text: String
    }

    /// `sealdb` beside this program.
    static var sealdb: String {
        URL(fileURLWithPath: "/proc/\(getpid())/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appendingPathComponent("sealdb").path
    }

    /// - Returns: what it printed.
    /// - Throws: ``CommandFailure``.
    @discardableResult
    static func run(_ arguments: [String], input: String = "") throws -> String {
        let outcome = try outcome(of: arguments, input: input)
        guard outcome.status == 0 else { throw CommandFailure(status: outcome.status, text: outcome.text) }
        return outcome.text
    }

    static func outcome(of arguments: [String], input: String = "") throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        // A command that hangs is a failure, too.
        process.arguments = ["timeout", "100"] + arguments
        let (standardInput, output) = (Pipe(), Pipe())
        process.standardInput = standardInput
        process.standardOutput = output
        process.standardError = output
        try process.run()
        try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        return Outcome(status: process.terminationStatus, text: text)
    }

    /// Runs SQLCipher's shell on a store.
    static func shell(_ path: String, key: String, _ sql: String) throws -> String {
        let script = ".timeout 10000\n.output /dev/null\nPRAGMA key = \"\(key)\";\n.output stdout\n\(sql)\n"
        return try run(["sqlcipher", "-batch", "-bail", path], input: script)
    }
}
