import Foundation

/// A program that runs with a time limit, and can be ended sooner, with all that it started.
struct Child {
    enum End: Equatable {
        case status(Int32)
        case crash
        case timeLimit
        /// Ended for what it had written.
        case cut
    }

    let end: End
    let output: String

    /// - Parameter isEnough: asked for each line; true ends the program.
    static func run(
        _ arguments: [String],
        in directory: String,
        environment: [String: String],
        limit: Double,
        isEnough: (Substring) -> Bool = { _ in false }
    ) throws -> Child {
        let process = Process()
        // In a session of its own, so that all of it can be ended.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setsid")
        process.arguments = ["--wait"] + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: directory)
        // Many mistakes end the process, and a picture of that takes longer than the test.
        let base = ["SWIFT_BACKTRACE": "enable=no"].merging(ProcessInfo.processInfo.environment) { $1 }
        process.environment = base.merging(environment) { $1 }
        let pipe = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        try pipe.fileHandleForWriting.close()
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        let deadline = Date(timeIntervalSinceNow: limit)
        var bytes: [UInt8] = []
        var lineStart = 0
        var end: End?
        var buffer = [UInt8](repeating: 0, count: 65536)
        reading: while end == nil {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let left = deadline.timeIntervalSinceNow
            guard left > 0 else {
                end = .timeLimit
                break
            }
            guard poll(&waiting, 1, Int32(min(left, 1) * 1000) + 1) > 0 else {
                // What it started may keep the pipe.
                if !process.isRunning { break }
                continue
            }
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
            while let newline = bytes[lineStart...].firstIndex(of: 0x0a) {
                let line = uncoloured(bytes[lineStart..<newline])
                lineStart = newline + 1
                if isEnough(line[...]) {
                    end = .cut
                    break reading
                }
            }
        }
        if end == nil {
            // It may close its output before it ends. Foundation's own waiting has no limit, so it is asked time and again.
            while process.isRunning, deadline.timeIntervalSinceNow > 0 { usleep(2000) }
            if process.isRunning { end = .timeLimit }
        }
        endSession(of: process)
        process.waitUntilExit()
        let output = uncoloured(bytes[...])
        if let end { return Child(end: end, output: output) }
        // setsid tells a signal as a status over 128.
        let isCrash = process.terminationReason == .uncaughtSignal || process.terminationStatus > 128
        return Child(end: isCrash ? .crash : .status(process.terminationStatus), output: output)
    }

    /// Swift Testing colours its lines wherever it writes them to.
    private static func uncoloured(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self).replacing(/\u{1b}\[[0-9;]*m/, with: "")
    }

    /// Ends all processes that descend from it, or are in a session that one of them began.
    private static func endSession(of process: Process) {
        guard process.isRunning else { return }
        for descendant in descendants(of: process.processIdentifier) { kill(descendant, SIGKILL) }
    }

    private static func descendants(of root: pid_t) -> [pid_t] {
        var children: [pid_t: [pid_t]] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let process = pid_t(name),
                let status = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                let fields = status[(status.lastIndex(of: ")") ?? status.startIndex)...].split(separator: " ")
                    .dropFirst(2).first,
                let parent = pid_t(fields)
            else { continue }
            children[parent, default: []].append(process)
        }
        var found: [pid_t] = []
        var next = [root]
        while let process = next.popLast() {
            found.append(process)
            next += children[process] ?? []
        }
        return found
    }
}
