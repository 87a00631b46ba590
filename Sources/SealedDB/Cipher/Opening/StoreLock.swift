internal import CSealedDBSystem
import Foundation

/// Keeps SQLite's users out of a file that SQLite itself may not be able to open any more, by its own locking protocol.
///
/// Refused for a file that this process has open: closing the descriptor would drop the locks of those connections.
/// <https://www.sqlite.org/lockingv3.html>
final class StoreLock {
    private var descriptor: Int32

    /// - Throws: ``DatabaseError/Reason/busy`` if a connection of another process holds any lock. In WAL mode, that is
    ///   everyone who has it open.
    init(_ path: String) throws(DatabaseError) {
        guard try !FileSystem.isOpenInThisProcess(path) else { throw StoreLock.isInUse(path) }
        descriptor = sealeddb_open(path, O_RDWR | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { throw .system("Cannot open \(path) to lock it", reason: .notPermitted) }
        guard sealeddb_lock_store(descriptor) == 0 else {
            let number = errno
            // Nothing is written by it, here and in `release`.
            close(descriptor)
            descriptor = -1
            guard number == EAGAIN || number == EACCES else {
                throw .system("Cannot lock \(path)", reason: .ioError, number: number)
            }
            throw StoreLock.isInUse(path)
        }
    }

    private static func isInUse(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: "Another connection has \(path) open. Close it, and try again."
        )
    }

    deinit {
        release()
    }

    func release() {
        guard descriptor >= 0 else { return }
        // To close it is to unlock.
        close(descriptor)
        descriptor = -1
    }
}
