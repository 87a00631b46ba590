import Foundation

/// The store that is to be copied: opened, examined, and kept from others until its connection closes.
///
/// Programs with this library are kept away by its ``UsageLock``, others by SQLite's locks.
struct RotationSource {
    let connection: Connection
    let plan: KeyRotation.Plan
    let place: ReplaceablePlace
    /// The file that is open, also when it has lost its name.
    private let file: stat
    private let ignoresUnseenUsers: Bool

    /// - Parameter isPrepared: whether there is a copy already, so that nobody may get in between until the swap. SQLite
    ///   then keeps its exclusive lock from the first read on.
    /// - Parameter ignoresUnseenUsers: as in ``KeyRotation``.
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
        connection.usageLocks["main"] = lock
        do throws(DatabaseError) {
            // The lock is obtainable, hot journals are rolled back, and nobody swapped the file before it was taken.
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
        } catch {
            connection.close()
            throw error
        }
    }

    /// Reads the first pages into memory. Each page is read, written, and read for the check of its code and of the
    /// structure, at about the same cost.
    static func estimatedSeconds(_ connection: Connection, _ sealing: Sealing) throws(DatabaseError) -> Double {
        let memory = try StoreOpening(key: sealing.key, settings: sealing.settings).open()
        defer { memory.close() }
        let enough = DatabaseError(extendedCode: SQLITE_INTERRUPT, message: "That is enough.")
        var seconds = 0.0
        let start = DispatchTime.now().uptimeNanoseconds
        do throws(DatabaseError) {
            try Backup.copy(from: connection, to: memory, pagesPerStep: 1024) {
                completed,
                total throws(DatabaseError) in
                guard completed > 0 else { throw enough }
                let perPage = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9 / Double(completed)
                seconds = perPage * Double(total) * 4
                throw enough
            }
        } catch {
            guard error == enough else { throw error }
        }
        return seconds
    }

    /// Refuses a store that anybody else has open, with locks or without. Asked again right before the swap: until then
    /// others may come, whom SQLite's exclusive lock keeps from writing.
    func requireNobodyElse() throws(DatabaseError) {
        try place.requireOneName()
        try FileUsers.requireNobodyElse(plan.path, ignoresUnseen: ignoresUnseenUsers)
    }

    /// WAL to rollback journal: needs the file to itself, so it also finds idle connections.
    func leaveWAL() throws(DatabaseError) {
        try RotationSource.naming(plan.path) { () throws(DatabaseError) in
            guard try connection.text("PRAGMA journal_mode = DELETE") == "delete" else {
                throw DatabaseError(extendedCode: SQLITE_BUSY, message: "Another connection has the store open.")
            }
        }
    }

    /// Undoes ``leaveWAL()`` after an error, and says so in it where that fails.
    func returnedToWAL(_ error: DatabaseError) -> DatabaseError {
        do throws(DatabaseError) {
            try connection.run("PRAGMA locking_mode = NORMAL")
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

    /// Whoever is in the way of SQLite's locks and does not know of ours, such as the stock shell, is named in the error.
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

    /// Takes the exclusive lock and keeps it, without a transaction, in which a backup could not read.
    ///
    /// No journal is opened for it: one would be deleted by name when this connection closes, and by then the name
    /// may be that of the new store's journal.
    func holdExclusively() throws(DatabaseError) {
        try connection.run("PRAGMA locking_mode = EXCLUSIVE")
        try connection.run("BEGIN EXCLUSIVE")
        try connection.run("COMMIT")
        guard try connection.text("PRAGMA journal_mode") != "wal" else { throw KeyRotation.replaced }
        guard try !connection.mainFileHasMoved() else { throw KeyRotation.replaced }
    }

    /// Makes the file useless that has lost its name to another one, before its lock ends: who opened it in the last moment,
    /// knows none of our locks, and waits for SQLite's, would write to it and be told that it is stored.
    ///
    /// For whoever knows that the new file has the name after a power failure too. A file that has got another name meanwhile
    /// is somebody's copy, and stays as it is.
    /// - Parameter state: of the store now, as a sentence.
    func spoil(_ state: String) throws(DatabaseError) {
        // Where it cannot be known whether it has a name, nothing is overwritten.
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
        // One that cannot be written to is not written to by others either, or the disk is gone.
        _ = try? connection.overwriteMainFile(byteCount: plan.pageSize)  // See above.
    }

    /// A journal of the old file would be taken for one of the new. Under the exclusive lock none is hot.
    func requireNoJournal() throws(DatabaseError) {
        for suffix in ["-journal", "-wal", "-shm"] {
            let sibling = plan.path + suffix
            guard unlink(sibling) == 0 || errno == ENOENT else {
                throw .system("Cannot remove \(sibling)", reason: .ioError)
            }
        }
        // Or a power failure could bring one back beside the new file.
        try FileSystem.synchronizeDirectory(of: plan.path)
    }
}
