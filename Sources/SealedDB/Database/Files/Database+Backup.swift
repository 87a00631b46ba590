/// The progress of a backup.
public struct BackupProgress: Sendable, Hashable {
    /// The number of pages copied. It starts again from 0 if another connection or process writes to the source during
    /// the backup.
    public let completedPages: Int64
    /// The total number of pages, as far as known.
    public let totalPages: Int64
}

extension Database {
    /// Copies the whole database into another one, while this one stays in use.
    ///
    /// The destination is replaced in one transaction: whatever happens, it has either the complete copy or its former
    /// contents, unless it keeps its journal in memory. It keeps its own key and cipher settings. What this connection
    /// writes during the backup, in `progress`, is copied too. The backup waits for locks as long as the busy timeouts
    /// allow. At the end, the rows and indexes of both databases are compared. This takes about as long as the copy,
    /// and in the meantime nobody can write to the source unless it is in WAL mode.
    /// - Parameters:
    ///   - destination: an open database without an open transaction or result set. Either both databases are encrypted
    ///     or neither is. If they are, both must have the same page size. It must have no key slots (see ``KeySlots``): what
    ///     it remembers of them would be replaced by what the source remembers.
    ///   - pagesPerStep: the number of pages between two calls of `progress`, when locks are released; 0 or less to
    ///     copy everything in one step.
    ///   - progress: called after each step. Throwing cancels the backup. It cannot use the destination before its last
    ///     call.
    /// - Throws: ``DatabaseError``. Unless the message says otherwise, the destination is as it was before. Reasons are
    ///   ``DatabaseError/Reason/unverified`` if the destination has a copy that must not be used;
    ///   ``DatabaseError/Reason/unsupported`` between an encrypted and a plaintext database, between different text
    ///   encodings, and for a destination without a journal; ``DatabaseError/Reason/unusableSettings`` for different
    ///   page sizes; and ``DatabaseError/Reason/busy``. If `progress` throws, its error is passed on as that of a
    ///   function is.
    /// https://www.sqlite.org/backup.html
    public func backup(
        to destination: Database,
        pagesPerStep: Int = 256,
        progress: ((BackupProgress) throws -> Void)? = nil
    ) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let (source, target) = (try openConnection(), try destination.openConnection())
            if let path = target.mainFilePath {
                try SlotFiles.requireNone(
                    path,
                    "what it remembers of them would be replaced",
                    remedy: "Make a StoreBackup of the source, or restore one with StoreRestore."
                )
            }
            var cancellation: DatabaseError?
            func report(_ completedPages: Int64, _ totalPages: Int64, _ state: String) throws(DatabaseError) {
                do {
                    try progress?(BackupProgress(completedPages: completedPages, totalPages: totalPages))
                } catch {
                    let error = DatabaseError.thrown(
                        error,
                        message: "The caller cancelled the backup\(state)",
                        code: SQLITE_INTERRUPT,
                        reason: .interrupted
                    )
                    cancellation = error
                    throw error
                }
            }
            let copy = PageCopy(source: source, target: target)
            let copied: PageCopy.Copied
            do throws(DatabaseError) {
                try requireAuthenticPages()
                try copy.requireJournal()
                let pages = pagesPerStep > 0 ? Int32(clamping: pagesPerStep) : -1
                copied = try copy.run(pagesPerStep: pages) { (completed, total) throws(DatabaseError) in
                    try report(completed, total, "; the destination is as it was before.")
                }
            } catch {
                if let cancellation { throw cancellation }
                guard error.reason != .unverified else {
                    destination.additions.hooks.changes.everythingChanged()
                    throw error
                }
                throw error.adding(context: "The backup failed, and \(copy.state(after: error))")
            }
            destination.additions.hooks.changes.everythingChanged()
            do throws(DatabaseError) {
                try copy.verify(copied)
            } catch {
                guard error.reason != .unverified else { throw error }
                throw error.adding(context: "The destination has the copy, which could not be compared with the source")
            }
            try report(copied.pages, copied.pages, " when it was complete; the destination has all of it.")
        }
    }

    // MARK: A database in memory and a file

    /// Replaces the contents of this database, which must be in memory, with those of a file: FMDB's form of
    /// ``load(fromFile:)``.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func read(fromFile path: String) -> Bool {
        unlessFailed { () throws(DatabaseError) in try load(fromFile: path) } != nil
    }

    /// Replaces the contents of this database, which must be in memory, with those of a file.
    ///
    /// If this database has a key, the file must be a store with that key (or another key of its ring) and the cipher
    /// settings of the configuration. Without a key, the file must be plaintext. In memory, nothing is encrypted.
    /// - Throws: the same errors as ``openVerified()``, and `SQLITE_MISUSE` if this database is not in memory. Unless
    ///   the message says otherwise, the contents are then unchanged.
    public func load(fromFile path: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            do throws(DatabaseError) {
                if let origin = configuration.keyOrigin {
                    _ = try origin.open(path, adopted: adoptedKey) { key throws(DatabaseError) in
                        try memoryImage(key: key).load(path)
                    }
                } else {
                    try memoryImage(key: nil).load(path)
                }
            } catch {
                // If a copy that must not be used is in place, the contents have changed too.
                if error.reason == .unverified { additions.hooks.changes.everythingChanged() }
                throw error
            }
            additions.hooks.changes.everythingChanged()
        }
    }

    /// Writes this database, which must be in memory, to a file: FMDB's form of ``save(toFile:)``.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func write(toFile path: String) -> Bool {
        unlessFailed { () throws(DatabaseError) in try save(toFile: path) } != nil
    }

    /// Writes this database, which must be in memory, to a file. The file is replaced completely or not at all.
    ///
    /// If this database has a key, the file is encrypted with that key and the cipher settings of the configuration.
    /// Without a key, it is plaintext. An existing file is only replaced if it is empty, or can be opened with the same
    /// key and settings: an encrypted store is never replaced by plaintext, nor by a store with another key. Other
    /// connections to the old file are found by their locks, as in ``KeyRotation``. Only the owner may read a new file.
    /// - Throws: ``DatabaseError``. Unless the message says otherwise, an existing file is then unchanged.
    public func save(toFile path: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try memoryImage(key: fittingKey?.key).save(path)
        }
    }

    /// Copies the state that the open transaction sees into a new file. If this database has key slots, the copy has the
    /// same, unless it gets a key of its own.
    /// - Parameter newKey: the key of the copy; `nil` for the key of this database.
    @discardableResult
    package func backup(
        toNewFile path: String,
        key newKey: Key?,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> KeyRotation.Report {
        try recording { () throws(DatabaseError) in
            let connection = try openConnection()
            let ownKey = fittingKey?.key
            let slots = try newKey == nil ? copyOfSlots(ownKey, connection) : nil
            let sealing = Sealing(key: newKey ?? slots?.key ?? ownKey, settings: configuration.cipherSettings)
            if let key = sealing.key { try sealing.settings.validate(for: key) }
            let copy = NewStore(
                path: path,
                sealing: sealing,
                confirmsKey: newKey != nil && newKey != ownKey,
                storeKey: newKey == nil ? ownKey : nil,
                slots: slots
            )
            try copy.requireAbsent()
            let context = "No backup was made, and the store is unchanged"
            return try connection.trusted { () throws(DatabaseError) in
                if let ownKey, try connection.hasPagesInFiles() {
                    return try connection.snapshot { () throws(DatabaseError) in
                        let settings = configuration.cipherSettings
                        let pages = try PageSource(reading: connection, key: ownKey, settings: settings)
                        return try copy.make(
                            from: connection,
                            method: pages.totals.count > 0 ? .transfer(pages) : .pages,
                            context: context,
                            progress: progress
                        )
                    }
                }
                try requireAuthenticPages()
                return try copy.make(
                    from: connection,
                    method: ownKey != nil ? .pages : .rows(of: nil),
                    context: context,
                    progress: progress
                )
            }
        }
    }

    private func copyOfSlots(_ key: Key?, _ connection: Connection) throws(DatabaseError) -> SlotCopy? {
        guard let key else { return nil }
        let opening = opening(flags: SQLITE_OPEN_READONLY, vfs: openedVFS, key: key)
        return try connection.trusted { () throws(DatabaseError) in try SlotCopy(opening, key, connection) }
    }

    private func memoryImage(key: Key?) throws(DatabaseError) -> MemoryImage {
        let connection = try openConnection()
        guard databasePath == nil || databasePath == ":memory:" else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "Only a database in memory is loaded from a file or saved to one. Use backup(to:)."
            )
        }
        return MemoryImage(
            memory: connection,
            key: key,
            settings: configuration.cipherSettings,
            busyTimeout: configuration.busyTimeout.seconds,
            ignoresUnseenUsers: configuration.ignoresUnseenUsers
        )
    }
}

extension Connection {
    /// Whether a copy of this database can be made of the pages in its file and its log. Where the log ends for a
    /// transaction that has begun is not known.
    fileprivate func hasPagesInFiles() throws(DatabaseError) -> Bool {
        guard mainFilePath != nil, !hasTransaction else { return false }
        // In this mode SQLite keeps the index of the log to itself.
        return try text("PRAGMA main.locking_mode") == "normal"
    }
}
