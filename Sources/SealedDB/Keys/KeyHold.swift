internal import CSealedDBSystem
import Foundation
internal import SQLiteEngine

/// Keeps the key rings of confirmed keys as they are, until the data under these keys has its name.
///
/// Who removes a key from a ring looks first, with the ring locked, whether a store needs it. A rotation that had confirmed
/// its key before, and replaced its store after that look, would have the key that is then removed.
final class KeyHold {
    /// Of ring files, each with a shared lock.
    private var descriptors: [Int32] = []

    deinit { release() }

    /// Locks a ring file for others that change it.
    /// - Parameter timeout: how long to wait for who changes it now, in seconds.
    func add(ring path: String, timeout: Double) throws(DatabaseError) {
        let deadline = DispatchTime.now() + timeout
        while true {
            let locked = try SecretFile.reading(path, what: "key ring") { descriptor throws(DatabaseError) in
                guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else {
                    guard errno == EWOULDBLOCK || errno == EINTR else {
                        throw .system("Cannot lock the key ring \(path)", reason: .ioError)
                    }
                    return nil as Int32?
                }
                guard try SecretFile.isCurrent(descriptor, path: path) else { return nil }
                // The lock belongs to both descriptors, of which the first one is closed now.
                let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
                guard own >= 0 else { throw .system("Cannot lock the key ring \(path)", reason: .ioError) }
                return own
            }
            if let locked { return descriptors.append(locked) }
            guard DispatchTime.now() < deadline else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Somebody changes the key ring \(path). Try again when that has ended."
                )
            }
            // A signal that cuts this short does no harm.
            usleep(5000)
        }
    }

    func release() {
        // The descriptors are only read from, so closing them loses nothing.
        for descriptor in descriptors { close(descriptor) }
        descriptors = []
    }
}
