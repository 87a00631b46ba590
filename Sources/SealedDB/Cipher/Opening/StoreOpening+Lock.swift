import Foundation

extension StoreOpening {
    /// Opens a connection, with a ``UsageLock`` that shows it to anyone who wants to replace the file. The connection
    /// is to the file that has the path's name when this returns.
    ///
    /// Databases in memory, plaintext databases, which the library never replaces in place, and files of a foreign VFS
    /// get no lock. An attached store, and one that is keyed by SQL text, is not covered by this lock; ``FileUsers``
    /// finds it.
    func lockedConnection() throws(DatabaseError) -> Connection {
        let isLocked = takesLock && key != nil && isFile && vfs.map { $0.hasPrefix("unix") } ?? true
        while true {
            // The lock comes before the file is opened: otherwise whoever replaces the file would find it open here for
            // a moment. A new file cannot be locked before it exists.
            var lock: UsageLock?
            if isLocked, let path, let file = FileSystem.resolve(path) {
                lock = try UsageLock.shared(file, timeout: busyTimeout, isForReadingAlone: isForReadingAlone(file))
            }
            let connection = try Connection(path: path ?? ":memory:", flags: flags, vfs: vfs, gate: gate)
            guard isLocked, let file = connection.mainFilePath else { return connection }
            do throws(DatabaseError) {
                if lock?.isOf(file) != true {
                    let isForReadingAlone = connection.isReadOnly
                    lock = try UsageLock.shared(file, timeout: busyTimeout, isForReadingAlone: isForReadingAlone)
                }
                guard let lock else { return connection }
                connection.usageLocks[ExactText("main")] = lock
                guard try connection.mainFileHasMoved() else { return connection }
            } catch {
                connection.close()
                throw error
            }
            connection.close()
        }
    }

    /// Whether the connection can only read the file. SQLite falls back to reading if it may not open the file for
    /// writing.
    private func isForReadingAlone(_ file: String) -> Bool {
        flags & SQLITE_OPEN_READONLY != 0 || access(file, W_OK) != 0
    }
}
