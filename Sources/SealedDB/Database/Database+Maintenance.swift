extension Database {
    /// Whether the database is open and can be read: its key is right, and its path still names the same file.
    public var goodConnection: Bool {
        guard let connection else { return false }
        // An error means that the connection is not good.
        guard let moved = try? connection.mainFileHasMoved(), !moved else { return false }
        return (try? connection.integer("SELECT count(*) FROM sqlite_schema")) != nil  // An error means no here too.
    }

    /// SQLite's `sqlite3 *`, for calls that this library does not offer; `nil` if the database is closed. The library
    /// does not check what you do with it. Do not use it after ``close()``.
    public var sqliteHandle: UnsafeMutableRawPointer? { connection?.handle.map { UnsafeMutableRawPointer($0) } }

    // MARK: Checkpoints

    /// Moves the write-ahead log into the database file, for all attached databases. Does nothing if there is no log.
    /// https://www.sqlite.org/wal.html#ckpt
    /// - Throws: ``DatabaseError``, with the reason ``DatabaseError/Reason/busy`` if others kept the checkpoint from
    ///   completing.
    public func checkpoint(_ checkpointMode: CheckpointMode) throws(DatabaseError) {
        try checkpoint(checkpointMode, name: nil)
    }

    /// Like ``checkpoint(_:)``, for one attached database.
    public func checkpoint(_ checkpointMode: CheckpointMode, name: String?) throws(DatabaseError) {
        try checkpoint(checkpointMode, name: name, logFrameCount: nil, checkpointCount: nil)
    }

    /// Like ``checkpoint(_:)``, for one attached database, or for all if `name` is `nil`. Stores the number of frames
    /// in the log in `logFrameCount`, and how many of them have been moved in `checkpointCount`. Both are -1 if there
    /// is no log.
    public func checkpoint(
        _ checkpointMode: CheckpointMode,
        name: String?,
        logFrameCount: UnsafeMutablePointer<Int32>?,
        checkpointCount: UnsafeMutablePointer<Int32>?
    ) throws(DatabaseError) {
        let counts = try recording { () throws(DatabaseError) in
            try openConnection().checkpoint(checkpointMode, schema: name)
        }
        logFrameCount?.pointee = counts.logFrameCount
        checkpointCount?.pointee = counts.checkpointCount
    }

    // MARK: Limits

    /// Sets one of SQLite's limits for this connection. A negative value changes nothing.
    /// ``SQLITE_LIMIT_WORKER_THREADS`` stays 0, because closures such as those of collations belong to one thread.
    /// https://www.sqlite.org/c3ref/limit.html
    /// - Parameters:
    ///   - type: one of the constants `SQLITE_LIMIT_…`.
    ///   - newLimit: the limit; SQLite makes it smaller if it is above what SQLite was compiled for.
    /// - Returns: the former value; -1 for an unknown limit or a closed database.
    @discardableResult
    public func limit(for type: Int32, value newLimit: Int32) -> Int32 {
        let former = unlessFailed { () throws(DatabaseError) in
            try recording { () throws(DatabaseError) in try openConnection().limit(type, value: newLimit) }
        }
        return former ?? -1
    }
}
