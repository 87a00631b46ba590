internal import SQLiteEngine

/// A copy of all pages from one connection to another. https://www.sqlite.org/c3ref/backup_finish.html
final class Backup: ConnectionHandle {
    /// Keeps the target until SQLite has let go of it, which may be on another thread and later.
    private final class Running {
        let pointer: OpaquePointer
        let target: Connection

        init(pointer: OpaquePointer, target: Connection) {
            self.pointer = pointer
            self.target = target
        }
    }

    private var running: Running?
    private var pointer: OpaquePointer? { running?.pointer }

    /// Copies everything, in steps of so many pages or, for a negative number, in one. If that fails, or `afterStep`
    /// throws, the target is as it was before.
    static func copy(
        from source: Connection,
        to target: Connection,
        pagesPerStep: Int32,
        afterStep: (Backup) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let backup = try Backup(from: source, to: target)
        // Whichever is closed first ends it. Both are used by the thread that copies.
        target.register(backup)
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

    /// Begins a copy that ends with the source at the latest. The target must not be closed before that.
    init(from source: Connection, to target: Connection) throws(DatabaseError) {
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
        running = Running(pointer: pointer, target: target)
        source.register(self)
    }

    func takePointer() -> OpaquePointer? {
        defer { running = nil }
        return running.map { OpaquePointer(Unmanaged.passRetained($0).toOpaque()) }
    }

    static func end(_ pointer: OpaquePointer) -> Int32 {
        let running = Unmanaged<Running>.fromOpaque(UnsafeRawPointer(pointer)).takeRetainedValue()
        // The result repeats the last step's, which was reported then.
        sqlite3_backup_finish(running.pointer)
        return SQLITE_OK
    }

    /// Copies some pages; false when all are there. Waits for locks as long as the busy timeouts of the connections allow.
    func step(pages: Int32) throws(DatabaseError) -> Bool {
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

    /// False once it has ended, such as by the end of one of its connections.
    var isOpen: Bool { pointer != nil }
    var completedPages: Int64 { totalPages - remainingPages }
    var remainingPages: Int64 { pointer.map { Int64(sqlite3_backup_remaining($0)) } ?? 0 }
    var totalPages: Int64 { pointer.map { Int64(sqlite3_backup_pagecount($0)) } ?? 0 }
}
