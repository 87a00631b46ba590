import Foundation

/// A program under test, stopped where it first touches its working directory, and continued from there as often as
/// wanted, each time in a child of its own. Used by one thread.
final class ForkServer {
    /// What one run of the program left behind.
    struct Run: Sendable {
        /// The exit code, or the negative number of the signal.
        let status: Int32
        /// Whether what was planned came to pass.
        let fired: Bool
        /// File-system calls made.
        let calls: Int
        /// Allocations that SQLite asked for.
        let allocations: Int
        /// MiB that it used at most.
        let memory: Int
        let output: String
        let error: String

        var wasKilled: Bool { status == -SIGKILL }

        /// Whether it crashed within SQLCipher, which does not look at the result of every allocation.
        var crashedInEngine: Bool { [-SIGSEGV, -SIGABRT].contains(status) && crashed(in: "/libsqlcipher.so") }

        /// Whether Dispatch ended it, which looks at its threads once a second, and does so where it cannot open
        /// /proc/PID/stat.
        var crashedInDispatch: Bool { status == -SIGILL && crashed(in: "/libdispatch.so") }

        private func crashed(in library: String) -> Bool {
            let frames = error.split(separator: "\n").filter { $0.hasSuffix("]") && $0.contains("(") }
            let first = frames.first { frame in !["/interposer.so", "/libc.so"].contains(where: frame.contains) }
            return first?.contains(library) == true
        }
    }

    private let process: pid_t
    private let requests: Int32
    private let answers: Int32
    private let files: String
    private var unread: [UInt8] = []

    /// - Parameters:
    ///   - directory: where the program is started; not where it runs.
    ///   - files: a directory for what the program prints.
    init(_ arguments: [String], interposer: String, directory: String, files: String) throws {
        self.files = files
        (process, requests, answers) = try Command.spawning.withLock { _ in
            var request: [Int32] = [0, 0]
            var answer: [Int32] = [0, 0]
            guard pipe(&request) == 0, pipe(&answer) == 0 else { throw HarnessError("There is no pipe.") }
            for descriptor in request + answer { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            let process = try Command.spawn(
                ["env", "-C", directory, "LD_PRELOAD=\(interposer)"] + arguments,
                error: files + "/server",
                descriptors: [(request[0], 198), (answer[1], 199)],
                environment: ["SEALEDDB_FAULTS": "1", "SWIFT_BACKTRACE": "enable=no"]
            )
            close(request[0])
            close(answer[1])
            return (process, request[1], answer[0])
        }
    }

    deinit {
        close(requests)
        close(answers)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    }

    func run(in directory: String, _ plan: String) throws -> Run {
        let line = Array("\(directory)\t\(files)/output\t\(files)/error\t\(plan)\n".utf8)
        guard write(requests, line, line.count) == line.count else { throw broken(plan) }
        let numbers = try readLine(plan).split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 5 else { throw broken(plan) }
        let run = Run(
            status: Wait.status(Int32(truncatingIfNeeded: numbers[0])),
            fired: numbers[1] != 0,
            calls: numbers[2],
            allocations: numbers[3],
            memory: numbers[4],
            output: String(decoding: try Files.read(files + "/output"), as: UTF8.self),
            error: String(decoding: try Files.read(files + "/error"), as: UTF8.self)
        )
        guard run.status != 121 else { throw HarnessError("\(plan): \(run.error)") }
        return run
    }

    private func readLine(_ plan: String) throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread.removeSubrange(...end)
                return line
            }
            var buffer = [UInt8](repeating: 0, count: 256)
            let count = read(answers, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw broken(plan) }
            unread += buffer[..<count]
        }
    }

    private func broken(_ plan: String) -> HarnessError {
        let message = (try? Files.read(files + "/server")).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return HarnessError("The program under test did not get to where it is stopped (\(plan)). \(message)")
    }
}
