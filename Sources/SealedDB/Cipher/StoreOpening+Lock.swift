extension StoreOpening {
    /// A connection to the file that the path names, known to whoever wants to replace that file.
    ///
    /// Left out are databases in memory, plaintext ones, which nothing replaces, and those of a foreign VFS. A store that
    /// is attached, or keyed by SQL text, is not known either.
    func lockedConnection() throws(DatabaseError) -> Connection {
        while true {
            let connection = try Connection(path: path ?? ":memory:", flags: flags, vfs: vfs, threading: threading)
            guard takesLock, key != nil, vfs.map({ $0.hasPrefix("unix") }) ?? true, let file = connection.mainFilePath
            else { return connection }
            do throws(DatabaseError) {
                // Without a lock to be had, others may replace it at any time, and SQLite notices.
                guard let lock = try UsageLock.shared(file, timeout: busyTimeout) else { return connection }
                connection.usageLocks["main"] = lock
                guard try connection.mainFileHasMoved() else { return connection }
            } catch {
                connection.close()
                throw error
            }
            connection.close()
        }
    }
}
