internal import CSealedDBSystem
import Foundation

/// Reads a regular file. It refuses anything else: it does not wait for a pipe, and does not follow a symbolic link.
///
/// Do not use it for the main file of a database: closing a second descriptor would drop the locks that this process
/// has on the file.
/// <https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>
final class FileReader {
    private let descriptor: Int32
    private let path: String

    /// Opens the file. Returns `nil` if it does not exist.
    /// - Throws: ``DatabaseError/Reason/notRegularFile``, or an error if the file cannot be opened.
    init?(_ path: String) throws(DatabaseError) {
        self.path = path
        descriptor = sealeddb_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT || number == ENOTDIR { return nil }
            throw .system("Cannot open \(path)", reason: number == EACCES ? .notPermitted : .ioError, number: number)
        }
        var status = stat()
        // If an initializer of a class throws after all properties are set, deinit runs and closes the descriptor.
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(path) is not a regular file. Nothing was changed."
            )
        }
    }

    deinit {
        // The descriptor is only read from, so closing it loses nothing.
        if descriptor >= 0 { close(descriptor) }
    }

    func size() throws(DatabaseError) -> Int64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        return Int64(status.st_size)
    }

    /// Whether it is the file with this status.
    func isSameFile(as other: stat) throws(DatabaseError) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        return status.isSameFile(as: other)
    }

    /// Reads exactly `count` bytes. Returns `nil` if the file has fewer.
    func bytes(at offset: Int64, count: Int) throws(DatabaseError) -> [UInt8]? {
        var number: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            while done < count {
                let got = pread(descriptor, buffer.baseAddress! + done, count - done, off_t(offset) + done)
                if got < 0, errno == EINTR { continue }
                if got < 0 { number = errno }
                guard got > 0 else { return }
                done += got
            }
        }
        guard number == 0 else {
            throw .system("Cannot read \(path)", reason: .ioError, number: number, extendedCode: SQLITE_IOERR_READ)
        }
        return bytes.count == count ? bytes : nil
    }
}
