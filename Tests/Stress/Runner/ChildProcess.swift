import Foundation

/// Processes of this program, whose lines are read until all have ended.
final class ChildProcess {
    private let processes: [Process]
    private let output = Pipe()
    private var rest: [UInt8] = []

    /// - Parameters:
    ///   - arguments: of each process.
    ///   - environment: added for the first one.
    init(_ arguments: [[String]], environment: [String: String] = [:]) throws {
        processes = arguments.map { arguments in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/\(getpid())/exe").resolvingSymlinksInPath()
            process.arguments = arguments
            process.standardInput = FileHandle.nullDevice
            return process
        }
        processes[0].environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        for process in processes {
            process.standardOutput = output.fileHandleForWriting
            try process.run()
        }
        // The end of the children is the end of the pipe.
        try output.fileHandleForWriting.close()
    }

    /// The next line; `nil` at the end.
    /// - Throws: ``Violation`` if nothing happens for two minutes, and nobody works, or for an hour. On a busy machine a
    ///   large store takes its time.
    func nextLine() throws -> String? {
        let descriptor = output.fileHandleForReading.fileDescriptor
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                defer { rest.removeFirst(end + 1) }
                return String(decoding: rest[..<end], as: UTF8.self)
            }
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            var work = processorSeconds
            var minutes = 0
            while poll(&state, 1, 120_000) == 0 {
                minutes += 2
                let before = work
                work = processorSeconds
                guard work - before < 1 || minutes >= 60 else { continue }
                // They say where they are, if they still can.
                for process in processes { Foundation.kill(process.processIdentifier, SIGABRT) }
                // Whether it is the end or not.
                _ = poll(&state, 1, 30_000)
                killAll()
                throw Violation("Nothing was acknowledged for \(minutes) minutes: something hangs.")
            }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return nil }
            rest += buffer[..<count]
        }
    }

    private var processorSeconds: Double {
        processes.reduce(0) { $0 + ProcessTree(of: $1.processIdentifier).processorSeconds }
    }

    /// Kills the first process, with the commands that it runs.
    func kill() { ProcessTree(of: processes[0].processIdentifier).kill() }

    /// Stops all.
    func stopAll() {
        for process in processes { ProcessTree(of: process.processIdentifier).stop() }
    }

    /// Kills all.
    func killAll() {
        for process in processes { ProcessTree(of: process.processIdentifier).kill() }
    }

    /// - Returns: of each 0, an exit status, or the negative number of a signal.
    func wait() -> [Int32] {
        processes.map { process in
            process.waitUntilExit()
            return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
        }
    }
}
