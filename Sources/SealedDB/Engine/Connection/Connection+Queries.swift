internal import SQLiteEngine

extension Connection {
    /// Runs one statement to its end and ignores its rows.
    func run(_ sql: String) throws(DatabaseError) {
        let statement = try prepare(sql)
        defer { statement.close() }
        while try statement.step() {}
    }

    /// Runs `body` so that everything it reads comes from one moment: that of the open transaction, if there is one.
    func snapshot<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        try trusted { () throws(DatabaseError) in
            // As long as this statement has not returned all its rows, SQLite keeps a read transaction open. It ends
            // whatever else fails. An explicit transaction that stayed open could lose later writes.
            // https://www.sqlite.org/lang_transaction.html
            let reader = try prepare("SELECT count(*) FROM main.sqlite_schema")
            defer { reader.close() }
            _ = try reader.step()
            return try body()
        }
    }

    /// Whether a transaction has begun to read or write "main". https://www.sqlite.org/c3ref/txn_state.html
    var hasTransaction: Bool { handle.map { sqlite3_txn_state($0, "main") != SQLITE_TXN_NONE } ?? false }

    /// Runs `body` with a boolean pragma set as given, and then restores its former value.
    /// https://www.sqlite.org/pragma.html
    func with<T>(_ pragma: String, _ isOn: Bool, _ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        guard try (integer("PRAGMA \(pragma)") == 1) != isOn else { return try body() }
        try run("PRAGMA \(pragma) = \(isOn)")
        let result = Result { () throws(DatabaseError) in try body() }
        do throws(DatabaseError) {
            try run("PRAGMA \(pragma) = \(!isOn)")
        } catch {
            // An interrupt stops this pragma too, as long as any statement runs or a blob is open.
            endUses()
            endBlobs()
            try run("PRAGMA \(pragma) = \(!isOn)")
        }
        return try result.get()
    }

    /// Rolls back a transaction of the library's own, even if something stands in the way. An interrupt stops every
    /// statement as long as one runs or a blob is open. So these are ended; they would fail anyway.
    /// https://www.sqlite.org/c3ref/interrupt.html
    /// - Returns: whether no transaction is open any more.
    func rollBack() -> Bool {
        guard !isAutocommit else { return true }
        // The rules for a caller's block must not stop the library's own rollback.
        let scope = supervision?.scope
        supervision?.scope = .block
        defer { if let scope { supervision?.scope = scope } }
        // Whether the transaction is gone is checked after each attempt.
        try? run("ROLLBACK")
        guard !isAutocommit else { return true }
        endUses()
        endBlobs()
        // The result shows in the check below.
        try? run("ROLLBACK")
        // A rollback is not possible while the statement that called a function runs.
        if !isAutocommit, depth > 0 { owesRollback = true }
        return isAutocommit
    }

    /// Frees pages in the cache, so that they are read again. Pages in use stay.
    func forgetPages() {
        // This cannot fail.
        if let handle { sqlite3_db_release_memory(handle) }
    }

    /// Returns the first column of the first row as text; `nil` for no row or NULL.
    func text(_ sql: String) throws(DatabaseError) -> String? {
        let statement = try prepare(sql)
        defer { statement.close() }
        guard try statement.step() else { return nil }
        let text = statement.text(at: 0)
        try complete(statement)
        return text
    }

    /// Returns the first column of the first row as an integer; `nil` for no row or NULL.
    func integer(_ sql: String) throws(DatabaseError) -> Int64? {
        let statement = try prepare(sql)
        defer { statement.close() }
        guard try statement.step() else { return nil }
        let value = statement.type(at: 0) == .null ? nil : statement.int64(at: 0)
        try complete(statement)
        return value
    }

    /// Runs a writing statement to its end, because SQLite may refuse its changes only there.
    private func complete(_ statement: Statement) throws(DatabaseError) {
        if !statement.isReadOnly { while try statement.step() {} }
    }

    /// Returns one column of all rows as text, by default the first.
    func texts(_ sql: String, column: Int32 = 0) throws(DatabaseError) -> [String] {
        let statement = try prepare(sql)
        defer { statement.close() }
        var result: [String] = []
        while try statement.step() { result.append(statement.text(at: column) ?? "") }
        return result
    }

    /// The schemas of attached files, with the paths of the files. Leaves out `main`, `temp` and databases without a
    /// file.
    ///
    /// The pragma is a statement here, and nowhere in the library a table: `pragma_database_list` is what the store has of
    /// that name, if it has anything.
    func attachedFiles() throws(DatabaseError) -> [(schema: String, path: String)] {
        let statement = try trusted { () throws(DatabaseError) in try prepare("PRAGMA database_list") }
        defer { statement.close() }
        var files: [(String, String)] = []
        while try statement.step() {
            guard let schema = statement.text(at: 1), let path = statement.text(at: 2), !path.isEmpty,
                !["main", "temp"].contains(schema)
            else { continue }
            files.append((schema, path))
        }
        return files
    }

    /// Whether a deferred foreign key is violated now, so that COMMIT would fail.
    /// https://www.sqlite.org/c3ref/c_dbstatus_options.html
    var hasViolatedForeignKeys: Bool {
        guard let handle else { return false }
        var current: Int32 = 0
        var highest: Int32 = 0
        return sqlite3_db_status(handle, SQLITE_DBSTATUS_DEFERRED_FKS, &current, &highest, 0) == SQLITE_OK
            && current != 0
    }

    /// False while a transaction is open. https://www.sqlite.org/c3ref/get_autocommit.html
    var isAutocommit: Bool { handle.map { sqlite3_get_autocommit($0) != 0 } ?? true }

    /// Whether a transaction is open, be it that of a statement or blob that has not ended and will commit by itself.
    var mayHaveUncommitted: Bool {
        handle.map { sqlite3_get_autocommit($0) == 0 || sqlite3_txn_state($0, nil) == SQLITE_TXN_WRITE } ?? false
    }

    /// https://www.sqlite.org/c3ref/busy_timeout.html
    func setBusyTimeout(seconds: Double) {
        guard let handle else { return }
        if let supervision, supervision.isWatching {
            let wait = BusyWait(timeout: max(0, seconds), supervision: supervision)
            wait.install(on: handle)
            busyWait = wait
            return
        }
        let milliseconds = (seconds * 1000).rounded()
        // This only stores the time, and cannot fail.
        sqlite3_busy_timeout(handle, milliseconds.isNaN ? 0 : Int32(clamping: Int64(min(max(milliseconds, 0), 1e12))))
    }

    /// Finalises kept statements, and gives the pages of the cache back that are in the file or the log.
    /// https://www.sqlite.org/c3ref/db_release_memory.html
    func releaseMemory() {
        guard let handle else { return }
        clearCache()
        // There is nothing to do about what it keeps.
        sqlite3_db_release_memory(handle)
    }

    var lastInsertRowID: Int64 { handle.map { sqlite3_last_insert_rowid($0) } ?? 0 }

    var changes: Int32 { handle.map { sqlite3_changes($0) } ?? 0 }

    /// Refuses a name that SQLite would read as another one, because for it a name ends at a NUL byte.
    static func requireWholeName(_ name: String) throws(DatabaseError) {
        guard name.utf8.contains(0) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .misuse,
            message: "A name holds a NUL byte, at which SQLite would cut it off. Nothing was done."
        )
    }

    /// Moves the log into the database file. Both counts are -1 if there is no log.
    /// https://www.sqlite.org/c3ref/wal_checkpoint_v2.html
    func checkpoint(
        _ mode: CheckpointMode,
        schema: String?
    ) throws(DatabaseError) -> (logFrameCount: Int32, checkpointCount: Int32) {
        guard let handle else { throw .notOpen }
        if let schema { try Connection.requireWholeName(schema) }
        var counts: (Int32, Int32) = (-1, -1)
        try check(watchingPages { sqlite3_wal_checkpoint_v2(handle, schema, mode.rawValue, &counts.0, &counts.1) })
        return counts
    }

    /// The number of frames at which SQLite makes a checkpoint by default.
    /// https://www.sqlite.org/pragma.html#pragma_wal_autocheckpoint
    static let checkpointThreshold: Int32 = 1000

    /// Turns automatic checkpoints of the main file off, and records the length of its log after each commit instead.
    /// https://www.sqlite.org/c3ref/wal_hook.html
    func countWALFrames() {
        guard let handle else { return }
        statementGuard.movesLog = true
        sqlite3_wal_hook(
            handle,
            { connection, handle, schema, frames in
                let connection = Unmanaged<Connection>.fromOpaque(connection!).takeUnretainedValue()
                guard let schema, String(cString: schema) == "main" else {
                    // Nobody else moves the log of an attached file.
                    if frames >= Connection.checkpointThreshold {
                        // Why it fails makes no difference: a later commit moves what cannot be moved now.
                        sqlite3_wal_checkpoint_v2(handle, schema, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
                    }
                    return SQLITE_OK
                }
                connection.walFrameCount = frames
                // SQLite has let go of the lock before it calls this.
                if let supervision = connection.supervision { supervision.writeLine?.letGo(supervision) }
                return SQLITE_OK
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    /// Sets a limit unless `value` is negative. Returns the former limit, or -1 for an unknown one.
    /// https://www.sqlite.org/c3ref/limit.html
    func limit(_ category: Int32, value: Int32) throws(DatabaseError) -> Int32 {
        guard let handle else { throw .notOpen }
        return sqlite3_limit(handle, category, category == SQLITE_LIMIT_WORKER_THREADS ? min(value, 0) : value)
    }

    /// Lets SQLite sort on no threads of its own. They would call the caller's collations, which belong to one thread,
    /// and several calls at once would pass for a hook that never ends. ``StatementGuard`` ignores the pragma that
    /// would set this.
    func keepToOneThread() {
        // The result is the former limit.
        if let handle { _ = sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0) }
    }

    func interrupt() {
        if let handle { sqlite3_interrupt(handle) }
    }

    /// Writes the first page of a database that has no pages.
    func writeFirstPage() throws(DatabaseError) {
        try run("BEGIN IMMEDIATE")
        // Writing the user version, even unchanged, makes SQLite write page 1.
        let version = try integer("PRAGMA user_version") ?? 0
        try run("PRAGMA user_version = \(version)")
        try run("COMMIT")
    }

    /// Whether the path now names a file other than the one that this connection has open.
    ///
    /// SQLite is asked until it has once found its file there. From then on the file is known by its device and inode, which
    /// no other file can get while this one is open; so a turn of a queue takes one call of the system. The row of the
    /// benchmarks is `point.queue`.
    func mainFileHasMoved() throws(DatabaseError) -> Bool {
        guard let handle else { throw .notOpen }
        let before = mainFileStatus
        if let mainFile { return before.map { !$0.isSameFile(as: mainFile) } ?? true }
        var moved: Int32 = 0
        let code = sealeddb_main_file_has_moved(handle, &moved)
        if code == SQLITE_NOTFOUND { return false }
        try check(code)
        guard moved == 0, !hasOtherDevice else { return true }
        // Only if the name was that of one file all the while, it was SQLite's.
        if let before, let after = mainFileStatus, before.isSameFile(as: after) { mainFile = before }
        return false
    }
}
