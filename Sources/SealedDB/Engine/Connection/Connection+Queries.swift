internal import SQLiteEngine

extension Connection {
    /// Runs one statement to its end, ignoring rows.
    func run(_ sql: String) throws(DatabaseError) {
        let statement = try prepare(sql)
        defer { statement.close() }
        while try statement.step() {}
    }

    /// Runs `body`, so that all it reads is of one moment: that of the transaction that is open, if any.
    func snapshot<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        try trusted { () throws(DatabaseError) in
            // While its row is not all read, SQLite keeps what it reads as it is. Unlike a transaction it ends whatever else
            // fails: what is written later would be lost in one. https://www.sqlite.org/lang_transaction.html
            let reader = try prepare("SELECT count(*) FROM main.sqlite_schema")
            defer { reader.close() }
            _ = try reader.step()
            return try body()
        }
    }

    /// Runs `body` with a flag of the connection as given, and sets it back to what its user has set.
    /// https://www.sqlite.org/pragma.html
    func with<T>(_ pragma: String, _ isOn: Bool, _ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        guard try (integer("PRAGMA \(pragma)") == 1) != isOn else { return try body() }
        try run("PRAGMA \(pragma) = \(isOn)")
        let result = Result { () throws(DatabaseError) in try body() }
        do throws(DatabaseError) {
            try run("PRAGMA \(pragma) = \(!isOn)")
        } catch {
            // An interrupt stops this, too, as long as anything is under way.
            endUses()
            endBlobs()
            try run("PRAGMA \(pragma) = \(!isOn)")
        }
        return try result.get()
    }

    /// Ends a transaction of the library's own, whatever keeps it from that. An interrupt stops every statement as long as
    /// one runs or a blob is open, so that these are ended, which would fail as well.
    /// https://www.sqlite.org/c3ref/interrupt.html
    /// - Returns: whether there is none any more.
    func rollBack() -> Bool {
        guard !isAutocommit else { return true }
        // A block does not keep the library from it.
        let scope = supervision?.scope
        supervision?.scope = .block
        defer { if let scope { supervision?.scope = scope } }
        // Whether it succeeded is seen by what is left, each time.
        try? run("ROLLBACK")
        guard !isAutocommit else { return true }
        endUses()
        endBlobs()
        // As above.
        try? run("ROLLBACK")
        // Not while the statement runs that called a function.
        if !isAutocommit, depth > 0 { owesRollback = true }
        return isAutocommit
    }

    /// Has pages read anew that are in the cache. What cannot be freed stays there.
    func forgetPages() {
        // It cannot fail.
        if let handle { sqlite3_db_release_memory(handle) }
    }

    /// The first column of the first row as text; `nil` for no row or NULL.
    func text(_ sql: String) throws(DatabaseError) -> String? {
        let statement = try prepare(sql)
        defer { statement.close() }
        guard try statement.step() else { return nil }
        let text = statement.text(at: 0)
        try complete(statement)
        return text
    }

    /// The first column of the first row as an integer; `nil` for no row or NULL.
    func integer(_ sql: String) throws(DatabaseError) -> Int64? {
        let statement = try prepare(sql)
        defer { statement.close() }
        guard try statement.step() else { return nil }
        let value = statement.type(at: 0) == .null ? nil : statement.int64(at: 0)
        try complete(statement)
        return value
    }

    /// What a statement writes may be refused with its end.
    private func complete(_ statement: Statement) throws(DatabaseError) {
        if !statement.isReadOnly { while try statement.step() {} }
    }

    /// A column of all rows as text, by default the first.
    func texts(_ sql: String, column: Int32 = 0) throws(DatabaseError) -> [String] {
        let statement = try prepare(sql)
        defer { statement.close() }
        var result: [String] = []
        while try statement.step() { result.append(statement.text(at: column) ?? "") }
        return result
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
        // It only remembers the time, and cannot fail.
        sqlite3_busy_timeout(handle, milliseconds.isNaN ? 0 : Int32(clamping: Int64(min(max(milliseconds, 0), 1e12))))
    }

    var lastInsertRowID: Int64 { handle.map { sqlite3_last_insert_rowid($0) } ?? 0 }

    var changes: Int32 { handle.map { sqlite3_changes($0) } ?? 0 }

    /// Moves the log into the database file. Without a log both counts are -1.
    /// https://www.sqlite.org/c3ref/wal_checkpoint_v2.html
    func checkpoint(
        _ mode: CheckpointMode,
        schema: String?
    ) throws(DatabaseError) -> (logFrameCount: Int32, checkpointCount: Int32) {
        guard let handle else { throw .notOpen }
        var counts: (Int32, Int32) = (-1, -1)
        try check(watchingPages { sqlite3_wal_checkpoint_v2(handle, schema, mode.rawValue, &counts.0, &counts.1) })
        return counts
    }

    /// Keeps SQLite from making checkpoints by itself, and notes the length of the log instead.
    /// https://www.sqlite.org/c3ref/wal_hook.html
    func countWALFrames() {
        guard let handle else { return }
        sqlite3_wal_hook(
            handle,
            { connection, _, _, frames in
                Unmanaged<Connection>.fromOpaque(connection!).takeUnretainedValue().walFrameCount = frames
                return SQLITE_OK
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    /// Sets a limit unless `value` is negative, and returns the former one; -1 for a limit that does not exist.
    /// https://www.sqlite.org/c3ref/limit.html
    func limit(_ category: Int32, value: Int32) throws(DatabaseError) -> Int32 {
        guard let handle else { throw .notOpen }
        return sqlite3_limit(handle, category, value)
    }

    func interrupt() {
        if let handle { sqlite3_interrupt(handle) }
    }

    /// Gives a database without pages its first one.
    func writeFirstPage() throws(DatabaseError) {
        try run("BEGIN IMMEDIATE")
        // Writing the cookie, even unchanged, makes SQLite write page 1.
        let version = try integer("PRAGMA user_version") ?? 0
        try run("PRAGMA user_version = \(version)")
        try run("COMMIT")
    }

    /// Whether the path now names another file than the one that this connection has open.
    func mainFileHasMoved() throws(DatabaseError) -> Bool {
        guard let handle else { throw .notOpen }
        var moved: Int32 = 0
        let code = sealeddb_main_file_has_moved(handle, &moved)
        if code == SQLITE_NOTFOUND { return false }
        try check(code)
        return moved != 0 || hasOtherDevice
    }
}
