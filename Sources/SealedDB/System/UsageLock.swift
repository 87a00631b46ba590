internal import CSealedDBSystem
import Foundation

/// Separates those who use a store from those who put another file in its place.
///
/// SQLite's own locks do not: an idle connection in rollback-journal mode has none. So every connection to an encrypted
/// file takes a shared lock on a file beside it, and replacing the store requires that lock exclusively. The lock
/// belongs to the open file description: connections of one process do not affect each other, and the lock ends with
/// the connection. <https://man7.org/linux/man-pages/man2/fcntl_locking.2.html>
///
/// The lock file is empty and has the owner and mode of the store. The last user removes it. Until then, everybody who
/// may read the store may open it. A file of that name that is not empty belongs to somebody else, and is left alone.
///
/// Processes that do not take this lock, or have the store under another name in another directory, are found by
/// ``FileUsers``.
final class UsageLock {
    enum Mode {
        case shared, exclusive

        var type: Int32 { Int32(self == .shared ? F_RDLCK : F_WRLCK) }
        /// Every user locks the first byte. Only replacing the store locks the second byte too: while the last user
        /// removes the lock file, it holds the first byte exclusively for a moment.
        var byteCount: Int64 { self == .shared ? 1 : 2 }
    }

    private let path: String
    private var descriptor: Int32

    private init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        release()
    }

    /// Whether this is the lock of the store with this path.
    func isOf(_ store: String) -> Bool { path == UsageLock.path(ofStore: store) }

    static func path(ofStore path: String) -> String { path + "-sealdb-lock" }

    // MARK: Taking

    /// Takes the shared lock that a connection holds while it is open.
    /// - Parameters:
    ///   - store: the path of an existing file, with symbolic links followed.
    ///   - isForReadingAlone: whether the connection cannot write anything, so that nothing is lost if the store is
    ///     replaced. Such a connection does without a lock where it may not create one; ``FileUsers`` finds it when the
    ///     store is replaced.
    /// - Returns: the lock; `nil` only for such a connection.
    /// - Throws: ``DatabaseError/Reason/busy`` if somebody is replacing the store for longer than the timeout;
    ///   ``DatabaseError/Reason/cannotCreate`` if the lock file cannot be created or opened.
    static func shared(
        _ store: String,
        timeout: Double,
        isForReadingAlone: Bool = false
    ) throws(DatabaseError) -> UsageLock? {
        do throws(Unavailable) {
            return try take(.shared, store, timeout: timeout)
        } catch {
            if case .failed(let number) = error {
                if isForReadingAlone, [EACCES, EPERM, EROFS].contains(number) { return nil }
                throw unavailable(store, number)
                    .adding(
                        context: """
                            \(store) was not opened: those who use it share a lock, so that nobody takes the file from \
                            under them. Who may write to the store must be able to open that file and to write in its \
                            directory
                            """
                    )
            }
            let holders = LockHolders.ofDescriptions(path(ofStore: store))
            let names = holders.isEmpty ? "another process" : holders.joined(separator: ", ")
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: "\(store) is being given a new key or format by \(names). It was not opened. Try again later."
            )
        }
    }

    /// Takes the exclusive lock that replacing the store requires.
    /// - Throws: ``DatabaseError/Reason/busy``, with the names of the processes that have the store open, after the
    ///   timeout; ``DatabaseError/Reason/cannotCreate`` if the lock file cannot be created or opened.
    static func exclusive(_ store: String, timeout: Double) throws(DatabaseError) -> UsageLock {
        do throws(Unavailable) {
            return try take(.exclusive, store, timeout: timeout)
        } catch {
            switch error {
            case .busy:
                throw .storeInUse(store, by: LockHolders.ofDescriptions(path(ofStore: store)))
            case .failed(let number): throw unavailable(store, number)
            }
        }
    }

    /// Throws early if another file has the lock file's name, as ``exclusive(_:timeout:)`` would. Creates nothing.
    static func requirePlace(_ store: String) throws(DatabaseError) {
        var status = stat()
        guard lstat(path(ofStore: store), &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size == 0 else { throw unavailable(store, EEXIST) }
    }

    private static func unavailable(_ store: String, _ number: Int32) -> DatabaseError {
        guard number == EEXIST else {
            return .system("Cannot lock \(path(ofStore: store))", reason: .cannotCreate, number: number)
        }
        return DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .cannotCreate,
            message:
                "\(path(ofStore: store)) is no lock file of SealedDB, because it is not an empty file. Move it away."
        )
    }

    private enum Unavailable: Error, Equatable {
        case busy
        case failed(Int32)
    }

    private static func take(_ mode: Mode, _ store: String, timeout: Double) throws(Unavailable) -> UsageLock {
        let path = path(ofStore: store)
        var patience = Patience(seconds: timeout)
        while true {
            let lock = UsageLock(path: path, descriptor: try open(path, store, mode))
            if sealeddb_lock(lock.descriptor, mode.type, 0, mode.byteCount) == 0 {
                do throws(Unavailable) {
                    if try lock.isNamed() { return lock }
                } catch {
                    lock.abandon()
                    throw error
                }
                // The last user removed the lock file between the open and the lock.
                lock.abandon()
                continue
            }
            let number = errno
            let isRefused = number == EAGAIN || number == EACCES
            guard isRefused else {
                lock.abandon()
                throw .failed(number)
            }
            let isLeaving = lock.isBeingRemoved(for: mode)
            lock.abandon()
            if isLeaving {
                sched_yield()
            } else {
                guard patience.wait() else { throw .busy }
            }
        }
    }

    /// Opens the lock file, or creates it with the owner and mode of the store.
    private static func open(_ path: String, _ store: String, _ mode: Mode) throws(Unavailable) -> Int32 {
        let flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        while true {
            var descriptor = sealeddb_open(path, O_RDWR | flags, 0)
            // A shared lock only needs read permission.
            if descriptor < 0, mode == .shared, [EACCES, EROFS].contains(errno) {
                descriptor = sealeddb_open(path, O_RDONLY | flags, 0)
            }
            if descriptor >= 0 {
                do throws(Unavailable) {
                    if try isLockFile(descriptor) { return descriptor }
                } catch {
                    close(descriptor)  // Nothing was written to it.
                    throw error
                }
                close(descriptor)  // Nothing was written to it.
                throw .failed(EEXIST)
            }
            guard errno == ENOENT else { throw .failed(errno) }
            var status = stat()
            guard stat(store, &status) == 0 else { throw .failed(errno) }
            // The owner must be able to lock the file exclusively, whatever the mode of the store is.
            let permissions = status.st_mode & 0o666 | 0o600
            descriptor = sealeddb_open(path, O_RDWR | O_CREAT | O_EXCL | flags, permissions)
            if descriptor >= 0 {
                // The umask may have removed permissions. SQLite does the same with its log. If this fails, users
                // without them get an error.
                fchmod(descriptor, permissions)
                // The store's group must be able to open the lock file. If this fails, users who cannot open it get an
                // error that names it.
                _ = fchown(descriptor, geteuid() == 0 ? status.st_uid : uid_t.max, status.st_gid)
                return descriptor
            }
            guard errno == EEXIST else { throw .failed(errno) }
        }
    }

    private static func isLockFile(_ descriptor: Int32) throws(Unavailable) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .failed(errno) }
        return status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    /// Whether the path still names the locked file.
    private func isNamed() throws(Unavailable) -> Bool {
        var own = stat()
        var named = stat()
        guard fstat(descriptor, &own) == 0 else { throw .failed(errno) }
        guard lstat(path, &named) == 0 else {
            guard errno == ENOENT else { throw .failed(errno) }
            return false
        }
        return own.isSameFile(as: named)
    }

    private func isBeingRemoved(for mode: Mode) -> Bool {
        var type = mode.type
        var count = mode.byteCount
        guard sealeddb_excluding_lock(descriptor, &type, 0, &count) == 0 else { return false }
        return type == F_UNLCK || (type == F_WRLCK && count == 1)
    }

    // MARK: Giving back

    /// Gives the lock back. Calling it again has no effect.
    func release() {
        guard descriptor >= 0 else { return }
        if !removeIfLast() {
            // Two who leave at the same time refuse each other the exclusive lock. Without its own, the later one gets it. To
            // give a lock back cannot fail.
            _ = sealeddb_lock(descriptor, Int32(F_UNLCK), 0, 0)
            _ = removeIfLast()  // Somebody else has the lock now, and removes the file.
        }
        abandon()
    }

    /// - Returns: false if somebody else has the lock.
    private func removeIfLast() -> Bool {
        // Only the last user gets the exclusive lock, and nobody else can take a lock before the file is removed.
        guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 1) == 0 else { return false }
        // A file that stays is empty, and the next user removes it.
        if (try? isNamed()) == true { unlink(path) }
        return true
    }

    private func abandon() {
        sealeddb_unlock_and_close(descriptor)
        descriptor = -1
    }
}

/// Pauses between attempts, longer each time, until a time limit is reached.
struct Patience {
    private let deadline: UInt64
    private var pause: UInt64 = 1_000_000

    init(seconds: Double) {
        deadline = DispatchTime.now().uptimeNanoseconds + UInt64(nanosecondsOf: seconds)
    }

    /// Pauses. Returns false once the time limit is reached.
    mutating func wait() -> Bool {
        let now = DispatchTime.now().uptimeNanoseconds
        guard now < deadline else { return false }
        var duration = timespec(tv_sec: 0, tv_nsec: Int(min(pause, deadline - now)))
        // A signal may shorten the pause; the next attempt then comes sooner.
        _ = nanosleep(&duration, nil)
        pause = min(pause * 2, 100_000_000)
        return true
    }
}

extension UInt64 {
    /// Converts a time limit from a caller. The maximum is about thirty years; a negative number or NaN gives zero.
    init(nanosecondsOf seconds: Double) {
        self = seconds > 0 ? UInt64(Swift.min(seconds, 1e9) * 1e9) : 0
    }
}
