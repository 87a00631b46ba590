internal import CSealedDBSystem
import Foundation

/// A file that this process has created, and writes and reads back without SQLite. Any thread may use it.
///
/// As long as it is open, no connection of this process may have a lock on the file that it needs afterwards: closing
/// the descriptor drops the locks of the process.
/// <https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>
final class NewFile: Sendable {
    let path: String
    private let descriptor: Int32
    private let canAwait: Bool
    private let zeros = Guarded(false)

    /// Whether it got pages of zeros in the place of pages that were not authentic.
    var holdsBlank: Bool {
        get { zeros.withLock { $0 } }
        set { zeros.withLock { $0 = newValue } }
    }

    /// - Returns: `nil` if the file that was created does not have its name any more.
    init?(_ identity: FileIdentity, path: String) throws(DatabaseError) {
        guard let descriptor = try identity.open() else { return nil }
        (self.path, self.descriptor) = (path, descriptor)
        // Not every system can do this. An empty file has no write whose error would be taken from the sync.
        var status = stat()
        canAwait =
            fstat(descriptor, &status) == 0 && status.st_size == 0 && sealeddb_await_writing(descriptor, 0, 1) == 0
    }

    deinit {
        // What was written counts only after `synchronize`. A child of this process that has not called exec yet has the file open,
        // too, and would keep the lock.
        sealeddb_unlock_and_close(descriptor)
    }

    /// Keeps other processes that make the same file away until it is closed.
    /// - Returns: false if one of them is at work.
    func lock() throws(DatabaseError) -> Bool {
        guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 1) != 0 else { return true }
        let number = errno
        guard number == EAGAIN || number == EACCES else {
            throw .system("Cannot lock \(path)", reason: .ioError, number: number)
        }
        return false
    }

    /// Writes all of the bytes, which are only read during the call.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(DatabaseError) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset) + done)
            if count < 0, errno == EINTR { continue }
            // If nothing is written and there is no error, nothing would be at the next attempt either.
            let number = count < 0 ? errno : EIO
            guard count > 0 else { throw .system("Cannot write \(path)", reason: .ioError, number: number) }
            done += count
        }
    }

    /// Fills the buffer.
    /// - Returns: false if the file ends before.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(DatabaseError) -> Bool {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = pread(descriptor, rest.baseAddress, rest.count, off_t(offset) + done)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .system("Cannot read \(path)", reason: .ioError) }
            if count == 0 { return false }
            done += count
        }
        return true
    }

    /// Cuts the file off.
    func truncate(to size: Int64) throws(DatabaseError) {
        while ftruncate(descriptor, off_t(size)) != 0 {
            guard errno == EINTR else { throw .system("Cannot cut off \(path)", reason: .ioError) }
        }
    }

    /// What changes when somebody writes to a file.
    struct Mark: Equatable {
        let size: Int64
        let seconds: Int
        let nanoseconds: Int
    }

    /// The mark after a write of this process, such that a later write by anybody changes it.
    func settledMark() throws(DatabaseError) -> Mark {
        let mark = try mark()
        // If the clock was put back, the mark still tells writes by their size, and those after that time.
        _ = FileSystem.waitForClock(toPass: timespec(tv_sec: mark.seconds, tv_nsec: mark.nanoseconds))
        return mark
    }

    func size() throws(DatabaseError) -> Int64 { try mark().size }

    /// Whether this file is at a path.
    func isAt(_ path: String) throws(DatabaseError) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(self.path)", reason: .ioError) }
        return try FileSystem.statusIfPresent(path)?.isSameFile(as: status) ?? false
    }

    func mark() throws(DatabaseError) -> Mark {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        let time = status.st_mtim
        return Mark(size: Int64(status.st_size), seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }

    /// Has the system begin to write these bytes to the disk, so that ``synchronize()`` has less to wait for. Nothing is
    /// stored for certain by that.
    /// - Returns: whether it has.
    @discardableResult
    func beginWriting(_ range: Range<Int64>) throws(DatabaseError) -> Bool {
        let result = sealeddb_begin_writing(descriptor, range.lowerBound, range.upperBound - range.lowerBound)
        let number = errno
        guard result != 0 else { return true }
        // Where this is not possible or not allowed, all is left to the sync. Everything else may be a disk that fails,
        // which the system need not tell twice.
        guard [ENOSYS, EPERM, EINVAL, ESPIPE, EOPNOTSUPP].contains(number) else {
            throw .system("Cannot write \(path) to disk", reason: .ioError, number: number)
        }
        return false
    }

    /// Waits for what ``beginWriting(_:)`` has begun, so that the disk has not too much to do at once. Nothing is stored for
    /// certain by that either. Where the system cannot do it, this does nothing.
    func awaitWriting(_ range: Range<Int64>) throws(DatabaseError) {
        guard canAwait else { return }
        let count = range.upperBound - range.lowerBound
        // Whatever the error is, it is that of a write that failed, and the sync would not tell it again.
        guard sealeddb_await_writing(descriptor, range.lowerBound, count) == 0 else {
            throw .system("Cannot write \(path) to disk", reason: .ioError)
        }
    }

    /// Syncs what was written. A failed fsync is never repeated: the kernel may have dropped the pages.
    func synchronize() throws(DatabaseError) {
        guard fsync(descriptor) == 0 else { throw .system("Cannot sync \(path) to disk", reason: .ioError) }
    }
}
