import Foundation

/// The store that is to be copied: opened, examined, and kept from others until its connection closes.
///
/// Programs with this library are kept away by its ``UsageLock``, others by SQLite's locks.
struct RotationSource {
    let connection: Connection
    let plan: KeyRotation.Plan
    /// The name under which the old file is to be kept.
    let oldFile: String?

    init(
        path: String,
        sealing: Sealing,
        busyTimeout: Double,
        oldFileSuffix: String? = nil
    ) throws(DatabaseError) {
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        let status = try FileSystem.status(resolved)
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(resolved) is not a regular file."
            )
        }
        let oldFile = oldFileSuffix.map { resolved + $0 }
        self.oldFile = oldFile
        let hasUnfinishedLink = oldFile.map { RotationSource.isLink($0, to: status) } ?? false
        if let oldFile, !hasUnfinishedLink, FileSystem.exists(oldFile) {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: "\(oldFile) exists, so the old file cannot be kept under that name."
            )
        }
        guard status.st_nlink == (hasUnfinishedLink ? 2 : 1) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .hardLinked,
                message: """
                    \(resolved) has \(status.st_nlink) hard links; the others would keep the old contents under the \
                    old key. Remove them first.
                    """
            )
        }
        let opening = StoreOpening(
            path: resolved,
            key: sealing.key,
            settings: sealing.settings,
            busyTimeout: busyTimeout,
            createsFirstPage: false,
            takesLock: false
        )
        let lock = try UsageLock.exclusive(resolved, timeout: busyTimeout)
        connection = try RotationSource.naming(resolved) { () throws(DatabaseError) in try opening.open() }
        connection.usageLocks["main"] = lock
        do throws(DatabaseError) {
            // The lock is obtainable, hot journals are rolled back, and nobody swapped the file before it was taken.
            try RotationSource.naming(resolved) { [connection] () throws(DatabaseError) in
                try connection.run("BEGIN EXCLUSIVE")
            }
            try connection.run("ROLLBACK")
            guard try !connection.mainFileHasMoved() else { throw KeyRotation.replaced }
            let pageSize = Int(try connection.integer("PRAGMA page_size") ?? 0)
            let pageCount = try connection.integer("PRAGMA page_count") ?? 0
            let needed = pageCount * Int64(pageSize) / 10 * 11
            plan = KeyRotation.Plan(
                path: resolved,
                fileSize: try connection.mainFileSize(),
                pageCount: pageCount,
                pageSize: pageSize,
                journalMode: try connection.text("PRAGMA journal_mode") ?? "",
                freeSpace: try FileSystem.freeSpace(at: FileSystem.directory(of: resolved)),
                neededSpace: needed
            )
            guard access(FileSystem.directory(of: resolved), W_OK) == 0 else {
                throw .system("The copy needs a place beside \(resolved)", reason: .cannotCreate)
            }
            guard plan.freeSpace >= needed else {
                throw DatabaseError(
                    extendedCode: SQLITE_FULL,
                    reason: .noSpace,
                    message: "The copy needs \(needed) bytes, and \(plan.freeSpace) are free."
                )
            }
        } catch {
            connection.close()
            throw error
        }
    }

    /// A rotation that was killed right before the swap had given the file its second name already.
    private static func isLink(_ path: String, to store: stat) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_ino == store.st_ino && status.st_dev == store.st_dev
    }

    func removeUnfinishedLink() throws(DatabaseError) {
        guard let oldFile else { return }
        let status = try FileSystem.status(plan.path)
        guard RotationSource.isLink(oldFile, to: status) else { return }
        guard unlink(oldFile) == 0 else { throw .system("Cannot remove \(oldFile)", reason: .ioError) }
    }

    /// Reads the first pages into memory. Each page is read, written, and read for the check of its code and of the
    /// structure, at about the same cost.
    func estimatedSeconds(_ sealing: Sealing) throws(DatabaseError) -> Double {
        let memory = try StoreOpening(key: sealing.key, settings: sealing.settings).open()
        defer { memory.close() }
        let enough = DatabaseError(extendedCode: SQLITE_INTERRUPT, message: "That is enough.")
        var seconds = 0.0
        let start = DispatchTime.now().uptimeNanoseconds
        do throws(DatabaseError) {
            try Backup.copy(from: connection, to: memory, pagesPerStep: 1024) { backup throws(DatabaseError) in
                let perPage = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9 / Double(backup.completedPages)
                seconds = perPage * Double(backup.totalPages) * 4
                throw enough
            }
        } catch {
            guard error == enough else { throw error }
        }
        return seconds
    }

    /// WAL to rollback journal: needs the file to itself, so it also finds idle connections.
    func leaveWAL() throws(DatabaseError) {
        try RotationSource.naming(plan.path) { () throws(DatabaseError) in
            guard try connection.text("PRAGMA journal_mode = DELETE") == "delete" else {
                throw DatabaseError(extendedCode: SQLITE_BUSY, message: "Another connection has the store open.")
            }
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
