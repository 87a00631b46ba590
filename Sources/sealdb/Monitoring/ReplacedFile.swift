import CSealedDBSystem
import Foundation
import SealedDB

/// Writes small files whose readers see either the former contents or the new ones, also after a power failure.
enum ReplacedFile {
    static func write(_ contents: Data, to path: String, mode: mode_t) throws(Failure) {
        let temporary: String
        do throws(DatabaseError) {
            temporary = try TemporaryFile.path(beside: path)
        } catch {
            throw Failure(.cannotCreate, error.message)
        }
        let descriptor = sealeddb_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw failure(path, .cannotCreate) }
        do throws(Failure) {
            try fill(descriptor, contents, path, mode)
            guard rename(temporary, path) == 0 else { throw failure(path, .cannotCreate) }
        } catch {
            // One that cannot be removed is a leftover, and harms nobody.
            unlink(temporary)
            throw error
        }
        try synchronizeDirectory(of: path)
    }

    /// Writes, syncs and closes.
    private static func fill(_ descriptor: Int32, _ contents: Data, _ path: String, _ mode: mode_t) throws(Failure) {
        var isWritten = fchmod(descriptor, mode) == 0
        var rest = Array(contents)[...]
        while isWritten, !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            isWritten = count > 0
            rest = rest.dropFirst(max(0, count))
        }
        isWritten = isWritten && fsync(descriptor) == 0
        let number = errno
        // A file system may tell only now that it could not write.
        let isClosed = close(descriptor) == 0
        if !isWritten { errno = number }
        guard isWritten, isClosed else { throw failure(path, .inputOutput) }
    }

    private static func failure(_ path: String, _ status: ExitStatus) -> Failure {
        Failure(status, "Cannot write \(path): \(String(cString: strerror(errno))).")
    }
}
