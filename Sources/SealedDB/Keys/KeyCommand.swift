internal import CSealedDBSystem
import Foundation

/// Runs a program that prints a key, or one that turns a key into something else or back. The key goes through a pipe
/// directly from and into memory that is wiped.
struct KeyCommand {
    let arguments: [String]
    let timeout: Double
    /// What messages call it.
    private let kind: String

    init(_ arguments: [String], timeout: Double, kind: String = "key command") {
        self.arguments = arguments
        self.timeout = timeout
        self.kind = kind
    }

    private var name: String { "The \(kind) \(arguments.first ?? "")" }

    /// What the program prints, at most ``KeyFile/sizeLimit`` bytes.
    /// - Parameter input: what it reads from its standard input, at most as many bytes; nothing by default.
    func output(input: SecretBytes? = nil) throws(DatabaseError) -> SecretBytes {
        try validate()
        let deadline = KeyCommand.now + timeout
        let (process, output) = try start(input)
        // The result does not matter: nothing was written through this descriptor.
        defer { close(output) }
        let contents: SecretBytes
        let status: Int32
        do throws(DatabaseError) {
            contents = try read(output, until: deadline)
            status = try wait(for: process, until: deadline)
        } catch {
            end(process)
            throw error
        }
        guard status == 0 else {
            let signal = status & 0x7f
            let end = signal == 0 ? "ended with exit status \(status >> 8 & 0xff)" : "was ended by signal \(signal)"
            throw .keySourceFailed("\(name) \(end). What it printed is not used.")
        }
        return contents
    }

    /// Throws if the program, an argument or the timeout cannot be used.
    func validate() throws(DatabaseError) {
        guard let program = arguments.first, program.begins(with: "/") else {
            throw .malformedKey("A \(kind) begins with the absolute path of a program; no PATH is searched.")
        }
        guard !arguments.contains(where: { $0.utf8.contains(0) }) else {
            throw .malformedKey("\(name) has an argument with a NUL byte, at which the system would cut it off.")
        }
        guard timeout > 0, timeout <= 86_400 else {
            throw .malformedKey("The timeout of a \(kind) is more than 0 and at most 86400 seconds.")
        }
    }

    /// The environment variables that a command gets besides `PATH`. It can get others from `/usr/bin/env`.
    private static let environmentNames = ["HOME", "USER", "LOGNAME", "LANG"]

    private func start(_ input: SecretBytes?) throws(DatabaseError) -> (process: pid_t, output: Int32) {
        guard let input else { return try start(readingFrom: -1) }
        let pipe = try input.withBytes { bytes throws(DatabaseError) in
            let pipe = sealeddb_filled_pipe(bytes.baseAddress, bytes.count)
            guard pipe >= 0 else { throw .system("\(name) cannot be given its input", reason: .keySourceFailed) }
            return pipe
        }
        // The result does not matter: it is only read from, and the program has its own descriptor.
        defer { close(pipe) }
        return try start(readingFrom: pipe)
    }

    private func start(readingFrom input: Int32) throws(DatabaseError) -> (process: pid_t, output: Int32) {
        var variables = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        for name in KeyCommand.environmentNames {
            // A value that is not UTF-8 is left out: repaired, it could name something else.
            if let value = getenv(name).flatMap({ String(validatingCString: $0) }) {
                variables.append("\(name)=\(value)")
            }
        }
        let argumentPointers = arguments.map { strdup($0) } + [nil]
        let variablePointers = variables.map { strdup($0) } + [nil]
        defer { for pointer in argumentPointers + variablePointers { free(pointer) } }
        var process: pid_t = 0
        var output: Int32 = -1
        let number = sealeddb_spawn(argumentPointers, variablePointers, input, &process, &output)
        guard number == 0 else {
            let isMissing = [ENOENT, ENOTDIR, EACCES].contains(number)
            throw .system(
                "\(name) could not be started",
                reason: isMissing ? .noSuchFile : .keySourceFailed,
                number: number
            )
        }
        return (process, output)
    }

    private func read(_ output: Int32, until deadline: Double) throws(DatabaseError) -> SecretBytes {
        try SecretBytes(capacity: KeyFile.sizeLimit + 1) { target throws(DatabaseError) in
            var count = 0
            while count < target.count {
                var descriptor = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
                let ready = poll(&descriptor, 1, try milliseconds(until: deadline))
                if ready == 0 || ready < 0 && errno == EINTR { continue }
                let got = ready < 0 ? -1 : Glibc.read(output, target.baseAddress! + count, target.count - count)
                if got < 0, errno == EINTR { continue }
                guard got >= 0 else { throw .system("\(name) cannot be read from", reason: .keySourceFailed) }
                if got == 0 { return count }
                count += got
            }
            throw .keySourceFailed("\(name) printed more than \(KeyFile.sizeLimit) bytes, and was killed.")
        }
    }

    /// Waits for the process and returns its status. The process has closed its output, so this should not take long.
    private func wait(for process: pid_t, until deadline: Double) throws(DatabaseError) -> Int32 {
        var status: Int32 = 0
        while true {
            let ended = waitpid(process, &status, WNOHANG)
            if ended == process { return status }
            guard ended == 0 || errno == EINTR else {
                throw .system(
                    "The exit status of \(name) cannot be known: this process leaves its children to the system",
                    reason: .keySourceFailed
                )
            }
            // A pause. A signal may end it early.
            poll(nil, 0, min(5, try milliseconds(until: deadline)))
        }
    }

    private func end(_ process: pid_t) {
        // The number is certain to be that of its process group only as long as this process has not waited for it.
        var information = siginfo_t()
        guard waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT) == 0 else { return }
        // If it ended meanwhile, there is nothing to kill.
        kill(-process, SIGKILL)
        while waitpid(process, nil, 0) < 0, errno == EINTR {}
    }

    private func milliseconds(until deadline: Double) throws(DatabaseError) -> Int32 {
        let left = deadline - KeyCommand.now
        guard left > 0 else {
            throw .keySourceFailed("\(name) was not done within \(timeout) seconds, and was killed with its children.")
        }
        return Int32((left * 1000).rounded(.up))
    }

    private static var now: Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }
}
