import Foundation

extension StoreOpening {
    /// A connection to the file that the path names, known to whoever wants to replace that file.
    ///
    /// Left out are databases in memory, plaintext ones, which nothing replaces, and those of a foreign VFS. A store that
    /// is attached, or keyed by SQL text, is not known either, but found by ``FileUsers``.
    func lockedConnection() throws(DatabaseError) -> Connection {
        let isLocked = takesLock && key != nil && isFile && vfs.map { $0.hasPrefix("unix") } ?? true
        while true {
            // Before the file is opened: who replaces it would find it open here, if only for a moment. A new file has no
            // lock before it is there.
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
                connection.usageLocks["main"] = lock
                guard try connection.mainFileHasMoved() else { return connection }
            } catch {
                connection.close()
                throw error
            }
            connection.close()
        }
    }

    /// Whether SQLite opens the file for reading: it does so too where it may not open it to write.
    private func isForReadingAlone(_ file: String) -> Bool {
        flags & SQLITE_OPEN_READONLY != 0 || access(file, W_OK) != 0
    }
}
