extension Database {
    /// Whether the database is open and can be read: its key is right, and the file still stands where it was opened.
    public var goodConnection: Bool {
        guard let connection else { return false }
        // An error is the answer no.
        guard let moved = try? connection.mainFileHasMoved(), !moved else { return false }
        return (try? connection.integer("SELECT count(*) FROM sqlite_schema")) != nil  // As above.
    }

    /// SQLite's `sqlite3 *`, for calls that this library does not have; `nil` when closed. What is done through it is
    /// not checked, and it may not be used after ``close()``.
    public var sqliteHandle: UnsafeMutableRawPointer? { connection?.handle.map { UnsafeMutableRawPointer($0) } }

    // MARK: Checkpoints

    /// Moves the log of WAL mode into the database file, for all attached databases. Without a log it does nothing.
    /// https://www.sqlite.org/wal.html#ckpt
    /// - Throws: ``DatabaseError``; ``DatabaseError/Reason/busy`` if others kept it from finishing.
    public func checkpoint(_ checkpointMode: CheckpointMode) throws(DatabaseError) {
        try checkpoint(checkpointMode, name: nil)
    }

    /// As ``checkpoint(_:)``, for one attached database.
    public func checkpoint(_ checkpointMode: CheckpointMode, name: String?) throws(DatabaseError) {
        try checkpoint(checkpointMode, name: name, logFrameCount: nil, checkpointCount: nil)
    }

    /// As ``checkpoint(_:)``, for one attached database or all, with the frames in the log and those of them that are
    /// moved; both are -1 without a log.
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

    /// Sets one of SQLite's limits for this connection; a negative value only asks.
    /// https://www.sqlite.org/c3ref/limit.html
    /// - Parameter type: one of the constants `SQLITE_LIMIT_…`.
    /// - Returns: the former value; -1 for a limit that does not exist, and for a closed database.
    @discardableResult
    public func limit(for type: Int32, value newLimit: Int32) -> Int32 {
        let former = unlessFailed { () throws(DatabaseError) in
            try recording { () throws(DatabaseError) in try openConnection().limit(type, value: newLimit) }
        }
        return former ?? -1
    }
}
