import Foundation
import Synchronization

/// A process that is run to its end, without the interposer.
enum Command {
    struct Result: Sendable {
        /// The exit code, or the negative number of the signal.
        let status: Int32
        let output: String
        let error: String
    }

    /// The program is looked for on the PATH.
    static func run(_ arguments: [String], directory: String = "/") throws -> Result {
        var template = Array("/tmp/sealeddb-faults-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw HarnessError("There is no temporary directory.") }
        let files = String(decoding: template.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: files) }
        let identifier = try spawn(
            ["env", "-C", directory] + arguments,
            output: files + "/output",
            error: files + "/error"
        )
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0 && errno == EINTR {}
        return Result(
            status: Wait.status(status),
            output: String(decoding: (try? Files.read(files + "/output")) ?? [], as: UTF8.self),
            error: String(decoding: (try? Files.read(files + "/error")) ?? [], as: UTF8.self)
        )
    }

    /// Descriptors of one process must not reach another that is started at the same time.
    static let spawning = Mutex(())

    static func spawn(
        _ arguments: [String],
        output: String? = nil,
        error: String? = nil,
        descriptors: [(from: Int32, to: Int32)] = [],
        environment: [String: String] = [:]
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        if let output { posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600) }
        if let error { posix_spawn_file_actions_addopen(&actions, 2, error, O_WRONLY | O_CREAT | O_TRUNC, 0o600) }
        for (from, to) in descriptors { posix_spawn_file_actions_adddup2(&actions, from, to) }
        // This process ignores it, to be told of a broken pipe by an error; that would be inherited.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        var variables = ProcessInfo.processInfo.environment
        for (name, value) in environment { variables[name] = value }
        var argumentPointers = arguments.map { strdup($0) } + [nil]
        var variablePointers = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for pointer in argumentPointers + variablePointers { free(pointer) } }
        var identifier: pid_t = 0
        let code = posix_spawnp(&identifier, arguments[0], &actions, &attributes, &argumentPointers, &variablePointers)
        guard code == 0 else { throw HarnessError("\(arguments[0]): \(String(cString: strerror(code)))") }
        return identifier
    }
}

enum Wait {
    /// The exit code, or the negative number of the signal, from what `waitpid` tells.
    static func status(_ status: Int32) -> Int32 {
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : -signal
    }
}
