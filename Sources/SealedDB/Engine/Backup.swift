internal import SQLiteEngine

/// A copy of all pages from one connection to another. https://www.sqlite.org/c3ref/backup_finish.html
final class Backup: ConnectionHandle {
    private var pointer: OpaquePointer?
    private let source: Connection
    private let target: Connection

    /// Copies everything, in steps of so many pages or, for a negative number, in one. If that fails, or `afterStep`
    /// throws, the target is as it was before.
    static func copy(
        from source: Connection,
        to target: Connection,
        pagesPerStep: Int32,
        afterStep: (Backup) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let backup = try Backup(from: source, to: target)
        defer {
            target.end(backup)
            source.end(backup)
        }
        var isUnfinished = true
        while isUnfinished {
            isUnfinished = try backup.step(pages: pagesPerStep)
            try afterStep(backup)
        }
    }

    private init(from source: Connection, to target: Connection) throws(DatabaseError) {
        guard let from = source.handle, let to = target.handle else { throw .notOpen }
        try source.requireNoHook()
        try target.requireNoHook()
        guard sqlite3_txn_state(from, "main") != SQLITE_TXN_WRITE else {
            throw DatabaseError(
                extendedCode: SQLITE_LOCKED,
                reason: .misuse,
                message: "The source is in a transaction that has written. Commit or roll back first."
            )
        }
        guard let pointer = sqlite3_backup_init(to, "main", from, "main") else { throw target.error() }
        self.pointer = pointer
        self.source = source
        self.target = target
        // Whichever is closed first ends it. Both are used by the thread that copies.
        source.register(self)
        target.register(self)
    }

    func takePointer() -> OpaquePointer? {
        defer { pointer = nil }
        return pointer
    }

    static func end(_ pointer: OpaquePointer) { sqlite3_backup_finish(pointer) }

    /// Copies some pages; false when all are there. Waits for locks as long as the busy timeouts of the connections allow.
    private func step(pages: Int32) throws(DatabaseError) -> Bool {
        guard let pointer else {
            throw DatabaseError(
                extendedCode: SQLITE_ABORT,
                message: "A database was closed while it was copied. The destination is as it was before."
            )
        }
        let code = sqlite3_backup_step(pointer, pages)
        guard code == SQLITE_OK || code == SQLITE_DONE else {
            let text = String(cString: sqlite3_errstr(code))
            throw DatabaseError(extendedCode: code, message: "Copying stopped: \(text).")
        }
        return code == SQLITE_OK
    }

    var completedPages: Int64 { totalPages - remainingPages }
    var remainingPages: Int64 { pointer.map { Int64(sqlite3_backup_remaining($0)) } ?? 0 }
    var totalPages: Int64 { pointer.map { Int64(sqlite3_backup_pagecount($0)) } ?? 0 }
}
