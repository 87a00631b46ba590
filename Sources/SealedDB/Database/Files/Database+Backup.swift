/// How far a backup has come.
public struct BackupProgress: Sendable, Hashable {
    /// Pages copied. Begins anew if another connection or process writes to the source meanwhile.
    public let completedPages: Int64
    /// Pages in all, as far as is known.
    public let totalPages: Int64
}

extension Database {
    /// Copies the whole database into another one, while this one stays in use.
    ///
    /// The destination is replaced in one transaction: whatever happens, it has either all of the copy or what it had
    /// before, unless it keeps its journal in memory. It keeps its own key and cipher settings. What this connection writes meanwhile, in `progress`, is copied
    /// too. Waits for locks as long as the busy timeouts allow. In the end the rows and indexes of both are compared, which
    /// takes about as long as the copy, and during which nobody can write to the source unless it is in WAL mode.
    /// - Parameters:
    ///   - destination: open, with the same page size if encrypted, and without an open transaction or result set. Both
    ///     are encrypted, or neither is.
    ///   - pagesPerStep: pages between two calls of `progress`, when locks are released; 0 or less for all in one step.
    ///   - progress: called after each step; throwing cancels. It cannot use the destination before the last one.
    /// - Throws: ``DatabaseError``, after which the destination is as it was before, unless the message says otherwise:
    ///   ``DatabaseError/Reason/unverified`` if it has a copy that is not to be used, ``DatabaseError/Reason/unsupported``
    ///   between encrypted and plaintext, between encodings of text, and for a destination without a journal,
    ///   ``DatabaseError/Reason/unusableSettings`` for different page sizes, and
    ///   ``DatabaseError/Reason/busy``. What `progress` throws comes out as from a function.
    /// https://www.sqlite.org/backup.html
    public func backup(
        to destination: Database,
        pagesPerStep: Int = 256,
        progress: ((BackupProgress) throws -> Void)? = nil
    ) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let (source, target) = (try openConnection(), try destination.openConnection())
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

    // MARK: A database in memory, and a file

    /// Replaces the contents of this database, which is in memory, by those of a file: FMDB's form of ``load(fromFile:)``.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func read(fromFile path: String) -> Bool {
        unlessFailed { () throws(DatabaseError) in try load(fromFile: path) } != nil
    }

    /// Replaces the contents of this database, which is in memory, by those of a file.
    ///
    /// If this database has a key, the file is a store with that key (or another of its key ring) and the cipher settings
    /// of the configuration; without a key it is plaintext. In memory nothing is encrypted.
    /// - Throws: ``DatabaseError``, after which the contents are as they were, unless the message says otherwise: as
    ///   ``openVerified()``, and `SQLITE_MISUSE` if this database is not in memory.
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
                // A copy that is not to be used is a change, too.
                if error.reason == .unverified { additions.hooks.changes.everythingChanged() }
                throw error
            }
            additions.hooks.changes.everythingChanged()
        }
    }

    /// Writes this database, which is in memory, to a file: FMDB's form of ``save(toFile:)``.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func write(toFile path: String) -> Bool {
        unlessFailed { () throws(DatabaseError) in try save(toFile: path) } != nil
    }

    /// Writes this database, which is in memory, to a file, which it replaces as a whole or not at all.
    ///
    /// If this database has a key, the file is encrypted with it and the cipher settings of the configuration; without a
    /// key it is plaintext. A file that exists is only replaced if it is empty, or opens as this one would be written: an
    /// encrypted store is never replaced by plaintext, nor one with another key. Connections that others have to the old
    /// file are found by their locks, as for ``KeyRotation``. A new file is readable by its owner alone.
    /// - Throws: ``DatabaseError``, after which an old file is as it was, unless the message says otherwise.
    public func save(toFile path: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try memoryImage(key: fittingKey?.key).save(path)
        }
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
            busyTimeout: configuration.busyTimeout,
            ignoresUnseenUsers: configuration.ignoresUnseenUsers
        )
    }
}
