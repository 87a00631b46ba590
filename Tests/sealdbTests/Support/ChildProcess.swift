import Foundation
import Testing

/// What a process left behind.
struct Outcome {
    /// The exit code, or the negative number of the signal that ended the process.
    let status: Int32
    let outputData: Data
    let error: String

    var output: String { String(decoding: outputData, as: UTF8.self) }
    var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// A child process. Its output goes to files, because a pipe's end could be inherited by a child of another test that
/// runs at the same time, and reading it would then wait for that one.
struct ChildProcess {
    let identifier: pid_t
    private let name: String

    /// POSIX_SPAWN_SETSID, which is hidden from Swift.
    private static let startsSession: Int16 = 0x80

    struct Failure: Error { let message: String }

    /// What standard input, output and error are in the child.
    enum Streams {
        case files(input: String, output: String, error: String)
        /// A terminal that controls the child, by the path of its slave side.
        case terminal(String)
    }

    /// - Parameter environment: what differs from this process's own; nil removes.
    init(
        _ arguments: [String],
        directory: String,
        environment: [String: String?] = [:],
        streams: Streams
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The threads that tests run on block signals, and a child would inherit that.
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        // A session of its own, without a terminal: otherwise it would ask on the one that the tests are run on.
        let flags = Int16(POSIX_SPAWN_SETSIGMASK) | ChildProcess.startsSession
        switch streams {
        case .files(let input, let output, let error):
            posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
            posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            posix_spawn_file_actions_addopen(&actions, 2, error, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        case .terminal(let path):
            // The first terminal that a session leader opens becomes its controlling one.
            posix_spawn_file_actions_addopen(&actions, 0, path, O_RDWR, 0)
            posix_spawn_file_actions_adddup2(&actions, 0, 1)
            posix_spawn_file_actions_adddup2(&actions, 0, 2)
        }
        posix_spawnattr_setflags(&attributes, flags)
        var variables = ProcessInfo.processInfo.environment
        for (name, value) in environment { variables[name] = value }
        // env changes the directory, because the spawn action that would is not visible to Swift.
        var argumentPointers = (["env", "-C", directory] + arguments).map { strdup($0) } + [nil]
        var variablePointers = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for pointer in argumentPointers + variablePointers { free(pointer) } }
        var identifier: pid_t = 0
        let code = posix_spawnp(
            &identifier,
            "env",
            &actions,
            &attributes,
            &argumentPointers,
            &variablePointers
        )
        guard code == 0 else { throw Failure(message: "env: \(String(cString: strerror(code)))") }
        self.identifier = identifier
        name = arguments.joined(separator: " ")
    }

    /// Whether it only waits for ``wait()``.
    var hasEnded: Bool {
        var information = siginfo_t()
        return waitid(P_PID, id_t(identifier), &information, WEXITED | WNOHANG | WNOWAIT) == 0
            && information.si_signo == SIGCHLD
    }

    /// Waits for the end; a child that does not end is killed, which is a failure of the test.
    func wait() -> Int32 {
        let limit = ChildLimit(of: identifier, named: name)
        // The number stays the child's until the limit is off.
        var information = siginfo_t()
        while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
        limit.end()
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0 && errno == EINTR {}
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : -signal
    }
}

enum Tool {
    /// That of `SEALEDDB_PROGRAMS`, if that names a directory: scripts/test has one that is optimised. Thousands of them
    /// are started, and without that, each takes four times as long.
    static let sealdb =
        ProcessInfo.processInfo.environment["SEALEDDB_PROGRAMS"].map { $0 + "/sealdb" } ?? path("sealdb")

    /// A built executable, which lies beside the test executable whatever the build directory is called.
    static func path(_ name: String) -> String {
        let tests = try! FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name).path
    }
}
