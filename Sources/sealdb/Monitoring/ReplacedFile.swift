import CSealedDBSystem
import Foundation
import SealedDB

/// Writes small files whose readers see either the former contents or the new ones, also after a power failure.
enum ReplacedFile {
    /// What the new file takes the place of.
    enum Former {
        case whatever
        case nothing
        case file(stat)
    }

    /// - Throws: ``Failure``, also if there is something else in its place than `former` says. Then it is not changed.
    static func write(
        _ contents: Data,
        to path: String,
        mode: mode_t,
        replacing former: Former = .whatever
    ) throws(Failure) {
        for attempt in 0... {
            // Another run may take the new file for a leftover, right before it has its name.
            if try writeOnce(contents, path, mode, former, isLast: attempt == 4) { break }
        }
        try synchronizeDirectory(of: path)
    }

    /// - Returns: whether the file is in place.
    private static func writeOnce(
        _ contents: Data,
        _ path: String,
        _ mode: mode_t,
        _ former: Former,
        isLast: Bool
    ) throws(Failure) -> Bool {
        try Store.requireNoPart(path)
        TemporaryFile.removeLeftovers(of: path)
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
            if try place(temporary, path, former) { return true }
            let number = errno
            var status = stat()
            let isGone = number == ENOENT && lstat(temporary, &status) != 0 && errno == ENOENT
            guard isGone, !isLast else {
                errno = number
                throw failure(path, .cannotCreate)
            }
            return false
        } catch {
            // One that cannot be removed is a leftover, and harms nobody.
            unlink(temporary)
            throw error
        }
    }

    /// Gives the new file its name.
    /// - Returns: false, with `errno` set, if that failed.
    private static func place(_ temporary: String, _ path: String, _ former: Former) throws(Failure) -> Bool {
        switch former {
        case .whatever: break
        case .nothing:
            if sealeddb_rename_exclusively(temporary, path) == 0 { return true }
            guard errno != EEXIST else { throw changed(path) }
            return false
        case .file(let old):
            var status = stat()
            guard lstat(path, &status) == 0, status.st_ino == old.st_ino, status.st_dev == old.st_dev,
                status.st_size == old.st_size, status.st_mtim.tv_sec == old.st_mtim.tv_sec,
                status.st_mtim.tv_nsec == old.st_mtim.tv_nsec
            else { throw changed(path) }
        }
        return rename(temporary, path) == 0
    }

    private static func changed(_ path: String) -> Failure {
        Failure(.cannotCreate, "\(path) is another file than a moment before. It was not changed. Try again.")
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
