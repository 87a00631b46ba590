internal import CSealedDBSystem
import Foundation

/// Keeps all users of SQLite out of a file by SQLite's own locking protocol, even if SQLite itself can no longer open
/// the file. <https://www.sqlite.org/lockingv3.html>
///
/// A file that this process has open cannot be locked: closing the descriptor would drop the locks of the connections
/// to it.
final class StoreLock {
    private var descriptor: Int32
    private let path: String

    /// - Throws: ``DatabaseError/Reason/busy`` if this process has the file open, or if a connection of another process
    ///   holds any lock on it. In WAL mode every connection that has the file open holds one.
    init(_ path: String) throws(DatabaseError) {
        self.path = path
        guard try !FileSystem.isOpenInThisProcess(path) else { throw StoreLock.isInUse(path) }
        descriptor = sealeddb_open(path, O_RDWR | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { throw .system("Cannot open \(path) to lock it", reason: .notPermitted) }
        guard sealeddb_lock_store(descriptor) == 0 else {
            let number = errno
            // The result does not matter: nothing was written through this descriptor.
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

    /// The size of the file, and its first bytes. Another descriptor could not be closed without dropping locks.
    func beginning(_ count: Int) throws(DatabaseError) -> (size: Int64, bytes: [UInt8]) {
        var status = stat()
        var bytes = [UInt8](repeating: 0, count: count)
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine the store", reason: .ioError) }
        var got = pread(descriptor, &bytes, count, 0)
        while got < 0, errno == EINTR { got = pread(descriptor, &bytes, count, 0) }
        guard got >= 0 else { throw .system("Cannot read the store", reason: .ioError) }
        return (Int64(status.st_size), Array(bytes.prefix(got)))
    }

    /// Throws if the file is certainly no store. There may be no key that could tell what it is.
    /// - Parameter mayBeCutOff: whether it may be a store of which the last page is not whole.
    func requireStore(mayBeCutOff: Bool) throws(DatabaseError) {
        let (size, start) = try beginning(Key.saltByteCount)
        let isText = !start.isEmpty && start.allSatisfy { (0x20...0x7e).contains($0) || (9...13).contains($0) }
        // The smallest page has 512 bytes.
        guard isText || (mayBeCutOff ? size > 0 && size < 512 : size % 512 != 0) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .notADatabase,
            message: """
                \(path) is no store: \(isText ? "it begins with text" : "it does not consist of whole pages"). Move it away, \
                and restore to a name that nothing has.
                """
        )
    }

    func release() {
        guard descriptor >= 0 else { return }
        sealeddb_unlock_and_close(descriptor)
        descriptor = -1
    }
}
