import CSealedDBSystem
import Foundation

/// A file or standard input, read once from the start to the end, or again if it is a regular file.
final class InputFile {
    /// As the user named it.
    let name: String
    let isRegular: Bool
    /// 0 when it is not known.
    let size: Int64
    private(set) var position: Int64 = 0
    /// Whoever started the program has opened it.
    let isStandardInput: Bool
    private let descriptor: Int32
    private let lastChange: timespec

    /// - Parameter path: "-" for standard input.
    convenience init(path: String) throws(Failure) {
        let isInput = path == "-"
        try self.init(
            opened: isInput ? dup(STDIN_FILENO) : sealeddb_open(path, O_RDONLY, 0),
            name: isInput ? "standard input" : path,
            isInput: isInput
        )
    }

    /// - Parameter descriptor: stays the caller's.
    convenience init(descriptor: Int32, name: String) throws(Failure) {
        try self.init(opened: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), name: name, isInput: false)
    }

    private init(opened: Int32, name: String, isInput: Bool) throws(Failure) {
        self.name = name
        isStandardInput = isInput
        descriptor = opened
        guard descriptor >= 0 else {
            throw Failure(.noInput, "Cannot read \(name): \(String(cString: strerror(errno))).")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw Failure(.inputOutput, "Cannot read \(name): \(String(cString: strerror(errno))).")
        }
        if status.st_mode & S_IFMT == S_IFDIR {
            throw Failure(.noInput, "Cannot read \(name): it is a directory.")
        }
        // Of standard input somebody may have read a part.
        isRegular = status.st_mode & S_IFMT == S_IFREG && !isInput
        size = isRegular ? Int64(status.st_size) : 0
        lastChange = status.st_mtim
    }

    deinit {
        // Nothing is written by it.
        if descriptor >= 0 { close(descriptor) }
    }

    /// Fills the buffer as far as one read does.
    /// - Returns: the number of bytes, 0 at the end.
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

    /// A read goes on after a signal that is only noted.
    private func waitForInput() throws(Failure) {
        guard !isRegular else { return }
        var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while true {
            // The signal may have come right before the wait, which is short for that.
            let count = poll(&state, 1, 1000)
            // A wait that fails is told by the read.
            let isOver = count > 0 || count < 0 && errno != EINTR
            if SignalWatch.wasInterrupted {
                throw Failure(.interrupted, "Interrupted while \(name) was read. Nothing was changed.")
            }
            if isOver { return }
        }
    }

    /// Whether a regular file is what it was when it was opened. Of others nothing can be asked.
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

    /// All that is still to be read.
    func contents() throws(Failure) -> [UInt8] {
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = try read(into: &buffer)
            if count == 0 { return result }
            result += buffer[..<count]
        }
    }
}
