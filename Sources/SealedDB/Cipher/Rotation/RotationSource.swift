import Foundation

/// The store to be copied: open, checked, and closed to others until its connection closes.
///
/// A ``UsageLock`` keeps out programs that use this library; SQLite's locks keep out all others.
struct RotationSource {
    let connection: Connection
    let plan: KeyRotation.Plan
    let place: ReplaceablePlace
    /// The status of the open file. It stays the same file even after another file has taken its name.
    private let file: stat
    private let ignoresUnseenUsers: Bool

    /// - Parameters:
    ///   - isPrepared: whether there is a copy already, so that nobody may write between here and the swap. SQLite then
    ///     keeps its exclusive lock from the first read on.
    ///   - ignoresUnseenUsers: as in ``KeyRotation``.
    init(
        path: String,
        sealing: Sealing,
        busyTimeout: Double,
        oldFileSuffix: String? = nil,
        isPrepared: Bool = false,
        ignoresUnseenUsers: Bool = false
    ) throws(DatabaseError) {
        self.ignoresUnseenUsers = ignoresUnseenUsers
        place = try ReplaceablePlace(path, oldFileSuffix: oldFileSuffix)
        let resolved = place.path
        let opening = StoreOpening(
            path: resolved,
            key: sealing.key,
            settings: sealing.settings,
            busyTimeout: busyTimeout,
            createsFirstPage: false,
            takesLock: false,
            locksExclusively: isPrepared
        )
        let lock = try UsageLock.exclusive(resolved, timeout: busyTimeout)
        do throws(DatabaseError) {
            try LogDamage.requireNone(ofStore: resolved)
        } catch {
            lock.release()
            throw error
        }
        connection = try RotationSource.naming(resolved) { () throws(DatabaseError) in try opening.open() }
        connection.usageLocks[ExactText("main")] = lock
        do throws(DatabaseError) {
            // If this succeeds, SQLite's lock can be had, hot journals are rolled back, and the file was not replaced
            // before.
            try RotationSource.naming(resolved) { [connection] () throws(DatabaseError) in
                try connection.run("BEGIN EXCLUSIVE")
            }
            try connection.run("ROLLBACK")
            file = try FileSystem.status(resolved)
            guard try !connection.mainFileHasMoved() else { throw KeyRotation.replaced }
            let totals = try PageTotals(of: connection)
            plan = KeyRotation.Plan(
                path: resolved,
                fileSize: try connection.mainFileSize(),
                pageCount: totals.count,
                pageSize: totals.size,
                journalMode: try connection.text("PRAGMA journal_mode") ?? "",
                freeSpace: try place.freeSpace(),
                neededSpace: place.neededSpace(for: totals)
            )
            try place.requireSpace(for: totals)
            try requireNobodyElse()
            try UncountedPages.requireNone(of: connection, path: resolved, sealing)
        } catch {
            connection.close()
            throw error
        }
    }

    /// Refuses a store that anybody else has open, whether they hold locks or not. Called again right before the swap:
    /// others may open the file until then, although SQLite's exclusive lock keeps them from writing.
    func requireNobodyElse() throws(DatabaseError) {
        try place.requireOneName()
        try FileUsers.requireNobodyElse(plan.path, ignoresUnseen: ignoresUnseenUsers)
    }

    /// Switches from WAL mode to a rollback journal. This needs sole access to the file, so it also finds idle
    /// connections.
    func leaveWAL() throws(DatabaseError) {
        // SQLite removes the log by its name.
        try requireNotMoved()
        try RotationSource.naming(plan.path) { () throws(DatabaseError) in
            guard try connection.text("PRAGMA journal_mode = DELETE") == "delete" else {
                throw DatabaseError(extendedCode: SQLITE_BUSY, message: "Another connection has the store open.")
            }
        }
    }

    /// Undoes ``leaveWAL()`` after an error. If that fails, the returned error says so.
    func returnedToWAL(_ error: DatabaseError) -> DatabaseError {
        do throws(DatabaseError) {
            try connection.run("PRAGMA locking_mode = NORMAL")
            // The end of this read gives the lock back, and closes a journal that ``requireNoJournal()`` has removed: what is
            // written next needs one that has a name.
            _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
            guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
                throw DatabaseError(extendedCode: SQLITE_BUSY, message: "Another connection has the store open.")
            }
            return error
        } catch let other {
            return error.adding(
                context: """
                    The store is left with a rollback journal; "PRAGMA journal_mode = WAL" brings its write-ahead log back \
                    (\(other.message))
                    """
            )
        }
    }

    /// Runs `body`. If SQLite reports that the file is busy, the error names the processes that hold SQLite's locks:
    /// programs such as the stock shell, which do not know our lock.
    private static func naming<T>(
        _ path: String,
        _ body: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        do throws(DatabaseError) {
            return try body()
        } catch {
            guard error.code == SQLITE_BUSY else { throw error }
            throw .storeInUse(path, by: LockHolders.of(path, isForAlone: true))
        }
    }

    /// Takes SQLite's exclusive lock and keeps it without an open transaction, because a backup cannot read in one.
    ///
    /// No journal is opened for this: a journal would be deleted by its name when this connection closes, and by then
    /// that name may belong to the journal of the new store.
    func holdExclusively() throws(DatabaseError) {
        try connection.run("PRAGMA locking_mode = EXCLUSIVE")
        try connection.run("BEGIN EXCLUSIVE")
        try connection.run("COMMIT")
        guard try connection.text("PRAGMA journal_mode") != "wal" else { throw KeyRotation.replaced }
        try requireNotMoved()
    }

    /// Keeps the old file on the disk after its name has gone to another one and this connection has closed. Call it after
    /// ``spoil(_:)``.
    /// - Returns: `nil` if the file cannot be kept, so that it is freed when it is closed.
    func keepFile() -> ReplacedFile? {
        // Without /proc none is found.
        let descriptors = (try? FileSystem.ownDescriptors(of: file, plan.path)) ?? []  // See above.
        return descriptors.first.flatMap { ReplacedFile($0, of: file) }
    }

    /// Overwrites the start of the old file after another file has taken its name, and before its lock is released. A
    /// program that opened the old file at the last moment, and waits for SQLite's lock without knowing ours, would
    /// otherwise write to the old file and believe that its data is stored.
    ///
    /// Call it only when the rename is durable, so that the new file has the name after a power failure too. If the old
    /// file has another name meanwhile, somebody has kept it as a copy: it is not overwritten, and an error says so.
    /// - Parameter state: the state of the store now, as the beginning of a sentence.
    func spoil(_ state: String) throws(DatabaseError) {
        // If it is unknown whether the file still has a name, nothing is overwritten.
        let descriptors = (try? FileSystem.ownDescriptors(of: file, plan.path)) ?? []  // See above.
        var status = stat()
        guard let descriptor = descriptors.first, fstat(descriptor, &status) == 0 else { return }
        guard status.st_nlink == 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .hardLinked,
                message: """
                    \(state), but the old file has got another name meanwhile, and keeps the old contents under the old key \
                    there. Find it, and remove it if it is no backup.
                    """
            )
        }
        // If this connection cannot write to the file, others cannot either, or the disk is gone.
        _ = try? connection.overwriteMainFile(byteCount: plan.pageSize)  // See above.
    }

    /// Removes the journals of the old file, which SQLite would take for journals of the new one. None of them is hot,
    /// because this connection holds the exclusive lock, and left WAL mode.
    ///
    /// They are removed by their names, which may belong to another store by now: somebody may have moved that here while the
    /// copy was made. So nothing is removed if the file has moved, or if a journal holds what this connection leaves in none.
    func requireNoJournal() throws(DatabaseError) {
        try requireNotMoved()
        for suffix in JournalName.suffixes {
            let sibling = plan.path + suffix
            guard let status = try FileSystem.statusIfPresent(sibling) else { continue }
            guard try isOver(sibling, suffix, status) else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: """
                        \(sibling) came meanwhile, and is not this store's, as if another one had been put in its place. It was \
                        left. See who made it, and try again.
                        """
                )
            }
            guard unlink(sibling) == 0 || errno == ENOENT else {
                throw .system("Cannot remove \(sibling)", reason: .ioError)
            }
        }
        // Without this, a power failure could bring one of them back beside the new file.
        try FileSystem.synchronizeDirectory(of: plan.path)
        try requireNotMoved()
    }

    /// Whether a file beside the store can be what a transaction that is over has left. SQLite has removed the log with
    /// WAL mode, and rolled back every journal whose first byte is not zero.
    /// https://www.sqlite.org/fileformat2.html#the_rollback_journal
    private func isOver(_ sibling: String, _ suffix: String, _ status: stat) throws(DatabaseError) -> Bool {
        switch suffix {
        case "-wal": return status.st_size == 0
        case "-journal": return try !RollbackJournal.isBegun(sibling)
        default: return true
        }
    }

    private func requireNotMoved() throws(DatabaseError) {
        guard try !connection.mainFileHasMoved() else { throw KeyRotation.replaced }
    }
}
