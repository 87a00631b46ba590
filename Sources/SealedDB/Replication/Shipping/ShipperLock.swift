internal import CSealedDBSystem
import Foundation

/// Keeps a second process from shipping a store. Each shipper lets the store's log begin anew at a moment of its own, and its
/// read transaction would keep the log of the others from that for ever.
///
/// It is a byte of the lock file of ``UsageLock``, behind those that users of the store lock. The shipper's connections hold
/// that lock, so that the file stays as long as this one.
final class ShipperLock {
    private var descriptor: Int32

    /// Behind those of ``UsageLock``.
    private static let byte: Int64 = 2

    /// - Parameters:
    ///   - store: the path of a store that this process has open with a ``UsageLock``, with symbolic links followed.
    ///   - timeout: how long to wait for another shipper.
    /// - Throws: ``DatabaseError/Reason/busy`` if there is another one.
    init(_ store: String, timeout: Double) throws(DatabaseError) {
        let path = UsageLock.path(ofStore: store)
        descriptor = sealeddb_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0)
        guard descriptor >= 0 else { throw .system("Cannot open \(path)", reason: .cannotCreate) }
        var patience = Patience(seconds: timeout)
        while sealeddb_lock(descriptor, Int32(F_WRLCK), ShipperLock.byte, 1) != 0 {
            let number = errno
            guard number == EAGAIN || number == EACCES else {
                throw .system("Cannot lock \(path)", reason: .ioError, number: number)
            }
            guard !patience.wait() else { continue }
            let names = LockHolders.ofDescriptions(path)
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: """
                    \(store) is being shipped already. Nothing was shipped by this process. One store has one shipper, \
                    whatever it ships to. These have the store open: \(names.isEmpty ? "unknown" : names.joined(separator: ", ")).
                    """
            )
        }
    }

    deinit {
        release()
    }

    func release() {
        guard descriptor >= 0 else { return }
        sealeddb_unlock_and_close(descriptor)
        descriptor = -1
    }
}
