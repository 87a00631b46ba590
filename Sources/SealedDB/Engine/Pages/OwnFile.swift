internal import CSealedDBSystem
import Foundation

/// A small file that this library keeps beside a store, and writes in place. It is no database: no locks of SQLite depend on
/// its descriptors.
final class OwnFile {
    let path: String
    private var descriptor: Int32

    /// Opens the file.
    /// - Parameter creates: whether an empty one is made if it is missing, for its owner alone.
    init(_ path: String, creates: Bool = false) throws(DatabaseError) {
        self.path = path
        descriptor = sealeddb_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | (creates ? O_CREAT : 0), 0o600)
        guard descriptor >= 0 else { throw .system("Cannot open \(path)", reason: creates ? .cannotCreate : .ioError) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(path) is not a regular file. Nothing was changed."
            )
        }
        guard status.st_nlink <= 1 else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .hardLinked,
                message: """
                    \(path) has \(status.st_nlink) hard links, and what is written to it would be in all of them. Nothing was \
                    changed. Remove the others, or make copies of them.
                    """
            )
        }
    }

    deinit {
        // What was written counts only after `synchronize`.
        if descriptor >= 0 { sealeddb_unlock_and_close(descriptor) }
    }

    /// Locks the file for as long as this object lives.
    /// - Returns: false if another process, or another object of this one, has it locked.
    func lock() throws(DatabaseError) -> Bool {
        guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 1) != 0 else { return true }
        guard errno == EAGAIN || errno == EACCES else { throw .system("Cannot lock \(path)", reason: .ioError) }
        return false
    }

    /// Whether the path still leads to this file.
    func isNamed() throws(DatabaseError) -> Bool {
        var own = stat()
        guard fstat(descriptor, &own) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        return try FileSystem.statusIfPresent(path)?.isSameFile(as: own) ?? false
    }

    /// Reads bytes, fewer at the end of the file.
    func bytes(at offset: Int, count: Int) throws(DatabaseError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress! + done, count - done, off_t(offset + done))
            }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw .system("Cannot read \(path)", reason: .ioError) }
            if got == 0 { break }
            done += got
        }
        return Array(bytes.prefix(done))
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(DatabaseError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress! + done, bytes.count - done, off_t(offset + done))
            }
            if count < 0, errno == EINTR { continue }
            // If nothing is written and there is no error, nothing would be at the next attempt either.
            let number = count < 0 ? errno : EIO
            guard count > 0 else { throw .system("Cannot write \(path)", reason: .ioError, number: number) }
            done += count
        }
    }

    func synchronize() throws(DatabaseError) {
        guard fsync(descriptor) == 0 else { throw .system("Cannot sync \(path) to disk", reason: .ioError) }
    }
}
