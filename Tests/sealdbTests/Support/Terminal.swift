import Foundation

/// A pseudo-terminal with a process on it.
final class Terminal {
    private let master: Int32
    private let child: ChildProcess
    /// All that the process wrote.
    private(set) var transcript = ""

    init(_ arguments: [String], directory: String, environment: [String: String?] = [:]) throws {
        var master: Int32 = -1
        var slave: Int32 = -1
        var name = [CChar](repeating: 0, count: 128)
        guard openpty(&master, &slave, &name, nil, nil) == 0 else {
            throw ChildProcess.Failure(message: "no pseudo-terminal: \(String(cString: strerror(errno)))")
        }
        _ = fcntl(master, F_SETFD, FD_CLOEXEC)
        // The end of the output is seen only when nobody has the slave side open any more.
        _ = fcntl(slave, F_SETFD, FD_CLOEXEC)
        defer { close(slave) }
        self.master = master
        child = try ChildProcess(
            arguments,
            directory: directory,
            environment: environment,
            streams: .terminal(String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        )
    }

    private var isWaitedFor = false

    /// A process that nobody waits for stays, and Swift Testing, which waits for whatever child ends, would see no other.
    deinit {
        if !isWaitedFor {
            send(SIGKILL)
            _ = child.wait()
        }
        close(master)
    }

    /// What was read and not yet expected.
    private var unread = ""

    /// Reads until the text has appeared after the one that was expected before.
    func expect(_ text: String) throws {
        while true {
            if let found = unread.range(of: text) { return unread.removeSubrange(..<found.upperBound) }
            guard readSome() else { throw ChildProcess.Failure(message: "no '\(text)' in: \(transcript)") }
        }
    }

    func type(_ text: String) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { write(master, $0.baseAddress, $0.count) }
    }

    func send(_ signal: Int32) { kill(child.identifier, signal) }

    /// Whether what is typed is shown.
    var isEchoing: Bool {
        var attributes = termios()
        return tcgetattr(master, &attributes) == 0 && attributes.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Whether the terminal itself makes lines of what is typed, and no editor does.
    var isCooked: Bool {
        var attributes = termios()
        return tcgetattr(master, &attributes) == 0 && attributes.c_lflag & tcflag_t(ICANON) != 0
    }

    /// Whether the process has not ended.
    var isRunning: Bool { kill(child.identifier, 0) == 0 }

    /// Reads to the end and returns the exit code.
    func wait() -> Int32 {
        while readSome() {}
        isWaitedFor = true
        return child.wait()
    }

    /// False when the process has ended, or has been silent for far too long.
    private func readSome() -> Bool {
        var descriptor = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
        guard poll(&descriptor, 1, 60_000) > 0 else {
            kill(child.identifier, SIGKILL)
            return false
        }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(master, &buffer, buffer.count)
        guard count > 0 else { return false }
        let text = String(decoding: buffer[..<count], as: UTF8.self)
        transcript += text
        unread += text
        return true
    }
}
