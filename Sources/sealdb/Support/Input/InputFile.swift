import CSealedDBSystem
import Foundation

/// A file or standard input. It is read once from start to end; a regular file can be read again.
final class InputFile {
    /// The name by which the user gave it.
    let name: String
    let isRegular: Bool
    /// Size in bytes; 0 if it is not known.
    let size: Int64
    private(set) var position: Int64 = 0
    /// Whether this is standard input, which whoever started the program has opened.
    let isStandardInput: Bool
    private let descriptor: Int32
    private let lastChange: timespec

    /// Whether a path is one of the names of standard input.
    static func isStandardInput(_ path: String) -> Bool {
        ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains { path.isSame(as: $0) }
    }

    /// - Parameter path: path of the file, or "-" for standard input.
    convenience init(path: String) throws(Failure) {
        let isInput = InputFile.isStandardInput(path)
        try self.init(
            opened: isInput ? dup(STDIN_FILENO) : sealeddb_open(path, O_RDONLY, 0),
            name: isInput ? "standard input" : path,
            isInput: isInput
        )
    }

    /// - Parameter descriptor: an open descriptor. It is duplicated, and stays the caller's to close.
    convenience init(descriptor: Int32, name: String) throws(Failure) {
        try self.init(opened: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), name: name, isInput: false)
    }

    private init(opened: Int32, name: String, isInput: Bool) throws(Failure) {
        var status = stat()
        let number = opened < 0 || fstat(opened, &status) != 0 ? errno : 0
        self.name = name
        isStandardInput = isInput
        descriptor = opened
        // Standard input never counts as regular, because a part of it may have been read already.
        isRegular = status.st_mode & S_IFMT == S_IFREG && !isInput
        size = isRegular ? Int64(status.st_size) : 0
        lastChange = status.st_mtim
        // If an initializer of a class throws after all properties are set, deinit runs and closes the descriptor.
        guard number == 0 else {
            throw Failure(
                opened < 0 ? .noInput : .inputOutput,
                "Cannot read \(name): \(String(cString: strerror(number)))."
            )
        }
        if status.st_mode & S_IFMT == S_IFDIR {
            throw Failure(.noInput, "Cannot read \(name): it is a directory.")
        }
    }

    deinit {
        // The result does not matter: nothing was written through this descriptor.
        if descriptor >= 0 { close(descriptor) }
    }

    /// Fills the buffer with the bytes of a single read.
    /// - Returns: the number of bytes; 0 at the end.
    func read(into buffer: inout [UInt8]) throws(Failure) -> Int {
        while true {
            try waitForInput()
            let count = buffer.withUnsafeMutableBytes { Foundation.read(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                position += Int64(count)
                return count
            }
            guard errno == EINTR else {
                throw Failure(.inputOutput, "Cannot read \(name): \(String(cString: strerror(errno))).")
            }
        }
    }

    /// Waits for input that is not a regular file, and throws if a signal came. A read alone would go on after a signal
    /// that ``SignalWatch`` only notes.
    private func waitForInput() throws(Failure) {
        guard !isRegular else { return }
        var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while true {
            // A signal may come right before the wait, so the wait is short.
            let count = poll(&state, 1, 1000)
            // If the wait fails, the read that follows reports it.
            let isOver = count > 0 || count < 0 && errno != EINTR
            if SignalWatch.wasInterrupted {
                throw Failure(.interrupted, "Interrupted while \(name) was read. Nothing was changed.")
            }
            if isOver { return }
        }
    }

    /// Whether a regular file has not changed since it was opened. Always true for other input, where this cannot be
    /// found out.
    func isUnchanged() throws(Failure) -> Bool {
        guard isRegular else { return true }
        let status = try status()
        return Int64(status.st_size) == size && status.st_mtim.tv_sec == lastChange.tv_sec
            && status.st_mtim.tv_nsec == lastChange.tv_nsec
    }

    func rewind() throws(Failure) {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else {
            throw Failure(.inputOutput, "Cannot read \(name) again: \(String(cString: strerror(errno))).")
        }
        position = 0
    }
}

extension InputFile {
    func status() throws(Failure) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw Failure(.inputOutput, "Cannot examine \(name): \(String(cString: strerror(errno))).")
        }
        return status
    }

    /// Everything that has not been read yet.
    /// - Parameter limit: bytes. Input can go on without an end, and would take all memory.
    /// - Throws: ``Failure``, also if the file was changed meanwhile: it may be one part old and one part new.
    func contents(upTo limit: Int) throws(Failure) -> [UInt8] {
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = try read(into: &buffer)
            if count == 0 {
                guard try isUnchanged() else {
                    throw Failure(.inputOutput, "\(name) was changed while it was read. Nothing was done.")
                }
                return result
            }
            guard count <= limit - result.count else {
                throw Failure(
                    .data,
                    "\(name) has more than \(limit) bytes, the most that can be read. Nothing was done."
                )
            }
            result += buffer[..<count]
        }
    }
}
