internal import SQLiteEngine

/// Holds the changes of a transaction in memory as long as they may still be undone in part.
///
/// SQLite writes a transaction that is larger than the page cache to the log piece by piece ("spilling"). If a part of
/// it is undone later, by ROLLBACK TO or by a failing statement, frames without a valid checksum can stay in the log
/// (seen with 3.40.1 and 3.46.1; the code has been there since 3.11). COMMIT succeeds, and all connections see the
/// rows. But recovery after a crash ends the log at the first such frame: this transaction and all later ones are lost.
///
/// So nothing is spilled within a statement or a savepoint. Between the statements of a transaction, nothing can be
/// undone in part, so changes are written there.
/// <https://www.sqlite.org/pragma.html#pragma_cache_spill>, <https://www.sqlite.org/c3ref/db_cacheflush.html>
struct HeldChanges {
    /// Whether the connection holds changes.
    fileprivate(set) var areHeld = false
    /// Whether the transaction may have a savepoint. SQLite does not tell, and the end of an inner savepoint is not
    /// tracked.
    fileprivate var mayHaveSavepoint = false
    /// The number of statements that have written.
    fileprivate var statementCount: UInt32 = 0
    /// The size of the page cache in bytes; `nil` until it is queried.
    var cacheSize: Int64?

    /// How many bytes of changes may be held beyond the size of the cache. Each write of held changes empties the
    /// cache, so its pages must be read again.
    static let maximumSize: Int64 = 16 << 20

    /// Returns why a pragma is refused; `nil` if it is allowed. A number would set the size from which SQLite spills.
    func refusal(ofPragma name: String, value: String?) -> String? {
        guard areHeld, let value, name.lowercased() == "cache_spill",
            !["on", "yes", "true", "off", "no", "false", "0"].contains(value.lowercased())
        else { return nil }
        return """
            PRAGMA cache_spill takes ON or OFF here. With a number SQLite would write a transaction to the log before it \
            can no longer be undone in part, and could then lose it, and all later ones, in a crash.
            """
    }
}

extension Connection {
    /// Starts holding changes, also of files that are attached later.
    func holdChanges() throws(DatabaseError) {
        try holdChanges(of: "main")
        statementGuard.heldChanges.areHeld = true
    }

    private func holdChanges(of schema: String) throws(DatabaseError) {
        // No cache has this many pages.
        try run("PRAGMA \(schema.quotedIdentifier).cache_spill = \(Int32.max)")
    }

    /// Applies the setting to attached files. Call this after attaching.
    func holdChangesOfAttachedFiles() throws(DatabaseError) {
        guard statementGuard.heldChanges.areHeld else { return }
        try trusted { () throws(DatabaseError) in
            try unguarded { () throws(DatabaseError) in
                try holdChanges(of: "main")
                for (schema, _) in try attachedFiles() {
                    try holdChanges(of: schema)
                    // Within a transaction, SQLite refuses this pragma; the file then keeps SQLite's default.
                    if let synchronous, isAutocommit {
                        try run("PRAGMA \(schema.quotedIdentifier).synchronous = \(synchronous)")
                    }
                }
            }
        }
    }

    /// Call this after a statement that may have begun or ended a transaction or savepoint.
    func noteBoundary(isSavepoint: Bool) {
        statementGuard.heldChanges.mayHaveSavepoint = isSavepoint && !isAutocommit
    }

    /// Call this after a statement that has written.
    @inline(__always)
    func hasWritten() throws(DatabaseError) {
        statementGuard.heldChanges.statementCount &+= 1
        // The check costs as much as inserting a small row, so it runs only for every 16th statement.
        if statementGuard.heldChanges.statementCount & 15 == 0 { try writeHeldChanges() }
    }

    /// Call this when a writing statement has returned its first row. By then it has written everything, but until it
    /// ends its changes can still be undone with it.
    func willHaveWritten() {
        statementGuard.heldChanges.statementCount &+= 1
        if statementGuard.heldChanges.statementCount & 15 == 0 { asksForHeldChanges = true }
    }

    /// Refuses what SQLite would report as done, but commit only when another statement or blob has ended, and undo with
    /// it: outside a transaction, it commits when the last one that writes has ended.
    /// https://www.sqlite.org/lang_transaction.html#implicit_versus_explicit_transactions
    /// - Parameter statement: what is about to take a step. If it is not its first one, it is the writer itself.
    func requireNoOpenWriter(_ statement: Statement? = nil) throws(DatabaseError) {
        guard mayHaveOpenWriter, let handle else { return }
        if let pointer = statement?.pointer, sqlite3_stmt_busy(pointer) != 0 { return }
        guard isAutocommit, sqlite3_txn_state(handle, nil) == SQLITE_TXN_WRITE else {
            mayHaveOpenWriter = false
            return
        }
        throw DatabaseError(
            extendedCode: SQLITE_LOCKED,
            message: """
                A result set or blob of this connection that writes is still open, and outside a transaction SQLite commits \
                nothing until it has ended. Nothing was executed. Close it first, or use a transaction for all of it.
                """
        )
    }

    /// Writes what the open transaction has changed, if it is much and no part of it can be undone.
    @inline(never)
    func writeHeldChanges() throws(DatabaseError) {
        asksForHeldChanges = owesRollback
        let held = statementGuard.heldChanges
        // The transaction may also be one that an open blob holds by itself.
        guard held.areHeld, !held.mayHaveSavepoint, depth == 0, let handle,
            sqlite3_txn_state(handle, nil) == SQLITE_TXN_WRITE
        else { return }
        var used: Int32 = 0
        var highest: Int32 = 0
        let code = sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_USED, &used, &highest, 0)
        // SQLite's counter wraps around beyond 2 GiB, so it is read as unsigned.
        guard code == SQLITE_OK, try Int64(UInt32(bitPattern: used)) > cacheSize() + HeldChanges.maximumSize,
            !hasUnfinishedWriter(handle)
        else { return }
        let result = watchingPages { sqlite3_db_cacheflush(handle) }
        // `SQLITE_BUSY` means that a page is in use. It stays in memory until the next time.
        guard result == SQLITE_OK || result == SQLITE_BUSY else {
            noteUnfitness(result)
            throw DatabaseError(
                extendedCode: result,
                message: """
                    What the transaction has changed so far could not be written: \
                    \(String(cString: sqlite3_errstr(result))). The transaction can only be rolled back.
                    """
            )
        }
        // Frees the pages, which would otherwise still count as held. The result is always OK.
        sqlite3_db_release_memory(handle)
    }

    private func cacheSize() throws(DatabaseError) -> Int64 {
        if let size = statementGuard.heldChanges.cacheSize { return size }
        let size = try trusted { () throws(DatabaseError) -> Int64 in
            // A negative value is in KiB. https://www.sqlite.org/pragma.html#pragma_cache_size
            let value = try integer("PRAGMA cache_size") ?? 0
            return value < 0 ? -value * 1024 : value * (try integer("PRAGMA page_size") ?? 4096)
        }
        statementGuard.heldChanges.cacheSize = size
        return size
    }

    /// Whether a writing statement has not ended, so that its changes can still be undone with it. What was written to
    /// an open blob cannot be undone; SQLite's statement for a blob is the only kind without a text.
    private func hasUnfinishedWriter(_ handle: OpaquePointer) -> Bool {
        var statement = sqlite3_next_stmt(handle, nil)
        while let pointer = statement {
            if sqlite3_stmt_busy(pointer) != 0, sqlite3_stmt_readonly(pointer) == 0, sqlite3_sql(pointer) != nil {
                return true
            }
            statement = sqlite3_next_stmt(handle, pointer)
        }
        return false
    }
}
