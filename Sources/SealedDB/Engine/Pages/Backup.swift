internal import CSealedDBSystem
internal import SQLiteEngine

/// Copies all pages from one connection to another. https://www.sqlite.org/c3ref/backup_finish.html
final class Backup: ConnectionHandle {
    private weak var source: Connection?
    /// Retains the target until SQLite has released it, which may happen later, on another thread.
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

    typealias Step = (_ completedPages: Int64, _ totalPages: Int64) throws(DatabaseError) -> Void

    /// Copies everything, in steps of `pagesPerStep` pages, or in one step if that is negative. If it fails or throws,
    /// the target is as it was before, except in the cases that ``Connection/stateAfterMoment(_:)`` describes.
    /// - Parameters:
    ///   - beforeEnd: called before the last page is copied, while the source has exactly the content that is copied.
    ///     The last page commits the target's transaction.
    ///   - betweenSteps: called after each step but the last.
    /// - Returns: the result of `beforeEnd`.
    static func copy<T>(
        from source: Connection,
        to target: Connection,
        pagesPerStep: Int32,
        beforeEnd: (Backup) throws(DatabaseError) -> T,
        betweenSteps: Step
    ) throws(DatabaseError) -> T {
        let backup = try Backup(from: source, to: target)
        // The connection that closes first ends the backup. The copying thread uses both.
        target.register(backup)
        return try target.whileReplaced { () throws(DatabaseError) in
            defer {
                target.end(backup)
                source.end(backup)
            }
            // Finds out the number of pages.
            _ = try backup.step(pages: 0)
            while true {
                if let result = try backup.advance(pagesPerStep, source, beforeEnd) { return result }
                try betweenSteps(backup.completedPages, backup.totalPages)
            }
        }
    }

    /// Copies in the same way, for a target that is compared later. `afterStep` is also called after the last step.
    static func copy(
        from source: Connection,
        to target: Connection,
        pagesPerStep: Int32,
        afterStep: Step
    ) throws(DatabaseError) {
        let pages = try copy(
            from: source,
            to: target,
            pagesPerStep: pagesPerStep,
            beforeEnd: { $0.totalPages },
            betweenSteps: afterStep
        )
        try afterStep(pages, pages)
    }

    /// Copies one step, during which nobody changes the source.
    /// - Returns: the result of `beforeEnd` if this was the last step; otherwise `nil`.
    private func advance<T>(
        _ pages: Int32,
        _ source: Connection,
        _ beforeEnd: (Backup) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T? {
        var last: T?
        do throws(DatabaseError) {
            try source.snapshot { () throws(DatabaseError) in
                // Counts the pages again, because the source may have shrunk.
                let left = (try source.integer("PRAGMA main.page_count") ?? 0) - completedPages
                if left > 1 {
                    let count = min(left - 1, pages < 0 ? .max : Int64(pages))
                    guard try copy(Int32(clamping: count)), remainingPages <= 1 else { return }
                }
                let result = try beforeEnd(self)
                if try !copy(1) { last = result }
            }
        } catch {
            // Once the last page is copied, the copy is complete, even if the reading transaction of the source fails
            // to end.
            guard last != nil else { throw error }
        }
        return last
    }

    /// Begins a copy. It ends with the source at the latest, and the target must not be closed before that.
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
        self.source = source
        source.register(self)
    }

    func takePointer() -> OpaquePointer? {
        defer { running = nil }
        return running.map { OpaquePointer(Unmanaged.passRetained($0).toOpaque()) }
    }

    static func end(_ pointer: OpaquePointer) -> Int32 {
        let running = Unmanaged<Running>.fromOpaque(UnsafeRawPointer(pointer)).takeRetainedValue()
        // The result repeats that of the last step, which was checked. https://www.sqlite.org/c3ref/backup_finish.html
        _ = PageWatch.during(running.target.handle) { sqlite3_backup_finish(running.pointer) }
        return SQLITE_OK
    }

    /// Copies this many pages, or all if the number is negative. Returns false when all are copied. Waits for locks as
    /// long as the busy timeouts of the connections allow.
    ///
    /// The last page is copied alone, after all other pages were read without damage, because it commits the target's
    /// transaction. If it is damaged, writing any page of an encrypted file fails, and the transaction is rolled back.
    func step(pages: Int32) throws(DatabaseError) -> Bool {
        let remaining = remainingPages
        guard remaining > 1, pages < 0 || Int64(pages) >= remaining else { return try copy(pages) }
        guard try copy(Int32(clamping: remaining - 1)) else { return false }
        // If more than one page remains, SQLite has started over, because somebody else has written in between.
        return remainingPages == 1 ? try copy(1) : pages < 0 ? try step(pages: pages) : true
    }

    private func copy(_ pages: Int32) throws(DatabaseError) -> Bool {
        guard let pointer, let source else {
            throw DatabaseError(
                extendedCode: SQLITE_ABORT,
                message: "A database was closed while it was copied. The destination is as it was before."
            )
        }
        // From here on, a damaged page makes writing fail. The function has no result.
        sealeddb_stop_writing_after_failure(1)
        // This function has no result either.
        defer { sealeddb_stop_writing_after_failure(0) }
        let code = source.watchingPages { sqlite3_backup_step(pointer, pages) }
        if let failure = source.takeReadFailure() {
            // Before SQLite overwrites a page, it reads the old one for the journal. The failure may be in either page.
            throw failure.adding(
                context: "In the source, or in what the destination held (then remove that file, and copy to a new one)"
            )
        }
        guard code == SQLITE_OK || code == SQLITE_DONE else {
            var text = String(cString: sqlite3_errstr(code))
            if code & 0xff == SQLITE_BUSY {
                let waiter = source.busyWait?.hasGivenUp == true ? source : running?.target
                text = waiter?.busyMessage(text) ?? text
            }
            throw DatabaseError(extendedCode: code, message: "Copying stopped: \(text).")
        }
        return code == SQLITE_OK
    }

    /// Whether the backup is still open. Closing one of its connections ends it.
    var isOpen: Bool { pointer != nil }
    var completedPages: Int64 { totalPages - remainingPages }
    var remainingPages: Int64 { pointer.map { Int64(sqlite3_backup_remaining($0)) } ?? 0 }
    var totalPages: Int64 { pointer.map { Int64(sqlite3_backup_pagecount($0)) } ?? 0 }
}
