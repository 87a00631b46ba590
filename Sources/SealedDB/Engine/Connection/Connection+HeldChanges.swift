internal import SQLiteEngine

/// Keeps what a transaction has changed in memory where it may still be undone in part.
///
/// SQLite writes a transaction that is larger than the page cache to the log bit by bit ("spilling"). Where a part of it is
/// undone later, by ROLLBACK TO or with a statement that fails, frames of the log can stay without a checksum (seen with
/// 3.40.1 and 3.46.1; the code is there since 3.11). COMMIT succeeds, and all connections see the rows. But whoever
/// reads that log after a crash finds its end at that frame: this transaction is lost, and so are all that came later.
///
/// So nothing is spilled within a statement or a savepoint. Between the statements of a transaction nothing can be undone
/// in part, and changes are written there.
/// <https://www.sqlite.org/pragma.html#pragma_cache_spill>, <https://www.sqlite.org/c3ref/db_cacheflush.html>
struct HeldChanges {
    /// Whether the connection holds them.
    fileprivate(set) var areHeld = false
    /// Whether the transaction may have a savepoint. SQLite does not tell, and an inner one's end is not looked for.
    fileprivate var mayHaveSavepoint = false
    /// Statements that have written.
    fileprivate var statementCount: UInt32 = 0
    /// Of the cache, in bytes; `nil` until it is asked for.
    var cacheSize: Int64?

    /// How much there may be, beside what the cache may hold anyway. For each time it is written, what the cache held is
    /// read again.
    static let maximumSize: Int64 = 16 << 20

    /// Why a pragma is refused; `nil` if it is not. A number would be the size from which on SQLite spills.
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
    /// From now on, also for files that are attached later.
    func holdChanges() throws(DatabaseError) {
        try holdChanges(of: "main")
        statementGuard.heldChanges.areHeld = true
    }

    private func holdChanges(of schema: String) throws(DatabaseError) {
        // No cache has as many pages.
        try run("PRAGMA \(schema.quotedIdentifier).cache_spill = \(Int32.max)")
    }

    /// After files were attached.
    func holdChangesOfAttachedFiles() throws(DatabaseError) {
        guard statementGuard.heldChanges.areHeld else { return }
        try trusted { () throws(DatabaseError) in
            try unguarded { () throws(DatabaseError) in
                for schema in try texts("SELECT name FROM pragma_database_list WHERE file <> ''") {
                    try holdChanges(of: schema)
                    // Within a transaction SQLite refuses it, and syncs as it does by default.
                    if schema != "main", let synchronous, isAutocommit {
                        try run("PRAGMA \(schema.quotedIdentifier).synchronous = \(synchronous)")
                    }
                }
            }
        }
    }

    /// After a statement that may have begun or ended a transaction or savepoint.
    func noteBoundary(isSavepoint: Bool) {
        statementGuard.heldChanges.mayHaveSavepoint = isSavepoint && !isAutocommit
    }

    /// After a statement that writes.
    @inline(__always)
    func hasWritten() throws(DatabaseError) {
        statementGuard.heldChanges.statementCount &+= 1
        // What is asked for costs as much as inserting a small row.
        if statementGuard.heldChanges.statementCount & 15 == 0 { try writeHeldChanges() }
    }

    /// When a statement that writes has returned its first row: all that it writes is there, but until it ends can still be
    /// undone with it.
    func willHaveWritten() {
        statementGuard.heldChanges.statementCount &+= 1
        if statementGuard.heldChanges.statementCount & 15 == 0 { asksForHeldChanges = true }
    }

    /// Writes what the open transaction has changed, if it is much and no part of it can be undone.
    @inline(never)
    func writeHeldChanges() throws(DatabaseError) {
        asksForHeldChanges = owesRollback
        let held = statementGuard.heldChanges
        // Also the transaction that an open blob has for itself.
        guard held.areHeld, !held.mayHaveSavepoint, depth == 0, let handle,
            sqlite3_txn_state(handle, nil) == SQLITE_TXN_WRITE
        else { return }
        var used: Int32 = 0
        var highest: Int32 = 0
        let code = sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_USED, &used, &highest, 0)
        // Beyond 2 GiB the number wraps around.
        guard code == SQLITE_OK, try Int64(UInt32(bitPattern: used)) > cacheSize() + HeldChanges.maximumSize,
            !hasUnfinishedWriter(handle)
        else { return }
        let result = watchingPages { sqlite3_db_cacheflush(handle) }
        // Busy: a page is in use, and stays for the next time.
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
        // Else those pages would still count as held. The result is always OK.
        sqlite3_db_release_memory(handle)
    }

    private func cacheSize() throws(DatabaseError) -> Int64 {
        if let size = statementGuard.heldChanges.cacheSize { return size }
        let size = try trusted { () throws(DatabaseError) -> Int64 in
            // Negative for KiB. https://www.sqlite.org/pragma.html#pragma_cache_size
            let value = try integer("PRAGMA cache_size") ?? 0
            return value < 0 ? -value * 1024 : value * (try integer("PRAGMA page_size") ?? 4096)
        }
        statementGuard.heldChanges.cacheSize = size
        return size
    }

    /// Whether a statement that writes has not ended: what it wrote can still be undone with it. What was written to an open
    /// blob cannot; it is what SQLite has without a text.
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
