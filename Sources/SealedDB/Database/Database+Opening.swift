import Foundation

extension Database {
    /// Opens for reading and writing, and creates the file if it does not exist. If the configuration has a key, the
    /// key is verified.
    ///
    /// Without a key, the file is not read, as in FMDB, so that ``setKey(_:)`` may follow.
    /// - Returns: false on failure; see ``lastError()``. True if the database is already open.
    @discardableResult
    public func open() -> Bool {
        open(withFlags: configuration.flags)
    }

    /// Opens with `SQLITE_OPEN_…` flags. https://www.sqlite.org/c3ref/open.html
    /// - Returns: false on failure; see ``lastError()``. True if the database is already open.
    @discardableResult
    public func open(withFlags flags: Int32) -> Bool {
        open(withFlags: flags, vfs: nil)
    }

    /// Opens with `SQLITE_OPEN_…` flags through a named VFS. The default is SQLite's own for the system.
    ///
    /// Every VFS is guarded: files that are refused beside a store, such as a stranger's journal, are refused there
    /// too. The library registers the guarding VFS, whose names begin with `sealeddb-`. https://www.sqlite.org/vfs.html
    /// - Returns: false on failure; see ``lastError()``. True if the database is already open.
    @discardableResult
    public func open(withFlags flags: Int32, vfs vfsName: String?) -> Bool {
        guard !isOpen else { return true }
        return succeeds { () throws(DatabaseError) in try openConnection(flags: flags, vfs: vfsName) }
    }

    /// Opens like ``open()``, and throws the reason of a failure.
    /// - Throws: ``DatabaseError``, with ``DatabaseError/Reason/wrongKey``, ``DatabaseError/Reason/plaintext``,
    ///   ``DatabaseError/Reason/wrongEngine`` and other reasons. The file is unchanged.
    public func openVerified() throws(DatabaseError) {
        guard !isOpen else { return }
        try recording { () throws(DatabaseError) in try openConnection(flags: configuration.flags, vfs: nil) }
    }

    /// Closes the database. Open result sets and blobs end, and an open transaction is rolled back. Calling it again
    /// has no effect.
    /// - Returns: true on success. False in these cases:
    ///   - SQLite is still using the connection, and closes it when that use ends.
    ///   - The changes of an open result set or blob could not be committed; ``lastError()`` returns the error.
    ///   - The database is calling a function or hook from which this was called; the database stays open, and
    ///     ``lastError()`` returns an error.
    @discardableResult
    public func close() -> Bool {
        // The caller expects a new connection, without the settings of an earlier one.
        keptSettings = nil
        guard let connection else { return true }
        guard succeeds("Database.close", { () throws(DatabaseError) in try requireIdle() }) else { return false }
        closeOpenResultSets()
        self.connection = nil
        let isClosed = connection.close()
        guard let failure = connection.takeUnnoticedFailure() else { return isClosed }
        record(failure)
        return false
    }

    func opening(flags: Int32, vfs: String?, key: Key?) -> StoreOpening {
        var opening = StoreOpening(
            path: filePath,
            key: key,
            settings: configuration.cipherSettings,
            flags: flags,
            vfs: vfs,
            busyTimeout: configuration.busyTimeout.seconds,
            gate: gate,
            allowsCipherStatements: configuration.allowsCipherStatements,
            looksIfUnreadable: configuration.looksIfUnreadable && flags & SQLITE_OPEN_READONLY != 0,
            image: image
        )
        opening.acceptsOlderSlots = configuration.acceptsOlderSlots
        opening.slotPin = configuration.slotPin
        opening.warn = configuration.tell
        return opening
    }

    /// Makes sure that a store that was opened with ``Configuration/looksIfUnreadable`` has not changed since.
    /// - Throws: ``DatabaseError/Reason/busy`` if somebody has written to it: what was read may be of several moments.
    package func requireStill() throws(DatabaseError) {
        try recording { () throws(DatabaseError) in try connection?.requireStill() }
    }

    /// Throws if SQLite is calling something of this connection, because it cannot close the connection then, or if
    /// the connection is being prepared, because the next one would be prepared within that.
    func requireIdle() throws(DatabaseError) {
        guard !isPreparing else {
            let error = DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: """
                    The closure prepare of a Configuration cannot close its database or change its key. Give the key to \
                    the Configuration.
                    """
            )
            // Otherwise a closure that did not notice would leave a database open without its key.
            preparationError = preparationError ?? error
            throw error
        }
        guard let connection, connection.isRunning else { return }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: """
                The database cannot be closed or get another key from within a function, hook or tokenizer that it is \
                calling. Nothing was changed. Do it after the statement.
                """
        )
    }

    /// Closes the connection, and keeps its settings for the next one.
    func closeForReopening() throws(DatabaseError) {
        guard let connection else { return }
        let settings = try ConnectionSettings(of: connection)
        // A failure is in `lastError`. If SQLite goes on using the file, whoever replaces it finds it open.
        close()
        keptSettings = settings
    }

    /// Whether it is open, or is to be opened again with what was set on it.
    var isToBeKept: Bool { isOpen || keptSettings != nil }

    /// Opens the database again, in the same way as the last time.
    func reopen() throws(DatabaseError) {
        guard !isOpen else { return }
        try openConnection(flags: openedFlags ?? configuration.flags, vfs: openedVFS)
    }

    private func openConnection(flags: Int32, vfs: String?) throws(DatabaseError) {
        if isShared, configuration.journalMode == .off { throw .journalMissing }
        if configuration.replication != nil { try requireReplicable(flags: flags, vfs: vfs) }
        let connection = try unlockedConnection(flags: flags, vfs: vfs)
        self.connection = connection
        connection.supervision = supervision
        if supervision.isWatching { connection.setBusyTimeout(seconds: configuration.busyTimeout.seconds) }
        connection.statementGuard.requiresJournal = isShared
        do throws(DatabaseError) {
            try configure(connection)
            try keptSettings?.restore(on: connection)
            keptSettings = nil
            if belongsToPool { connection.countWALFrames() }
            try followForShipping(connection)
        } catch {
            self.connection = nil
            connection.close()
            throw error
        }
        openedFlags = flags
        openedVFS = vfs
    }

    private func unlockedConnection(flags: Int32, vfs: String?) throws(DatabaseError) -> Connection {
        fittingKey = nil
        guard let origin = configuration.keyOrigin else {
            guard !hadKey else { throw .keyMissing }
            return try opening(flags: flags, vfs: vfs, key: nil).open()
        }
        let name = databasePath ?? "the database in memory"
        let (connection, fitting) = try origin.open(name, adopted: adoptedKey) { key throws(DatabaseError) in
            try opening(flags: flags, vfs: vfs, key: key).open()
        }
        fittingKey = fitting
        hadKey = true
        return connection
    }

    private func configure(_ connection: Connection) throws(DatabaseError) {
        connection.setCacheCapacity(configuration.statementCacheCapacity)
        try connection.holdChanges()
        if !configuration.hasDefaultsOfSQLite { try setSwitches(of: connection) }
        let mayBeKeyedLater = try mayBeKeyedLater(connection)
        // Of a new file, all is set that does not write its first page in plaintext.
        var isNew = false
        if mayBeKeyedLater, !configuration.allowsCipherStatements { isNew = try connection.mainFileHeader().isEmpty }
        if isNew || !mayBeKeyedLater { try applySettings(to: connection, writes: !isNew) }
        // This comes last, because the configuration itself may turn the journal off.
        if !configuration.hasDefaultsOfSQLite {
            try connection.set(.isDefensive, configuration.isDefensive && configuration.keyOrigin != nil)
        }
        try additions.install(on: connection, mayBeKeyedLater: mayBeKeyedLater)
        willPrepare?()
        guard let prepare = configuration.prepare else { return }
        (isPreparing, preparationError) = (true, nil)
        // A shutdown stops its statements, as those of blocks.
        let wasStoppable = supervision.isStoppable
        supervision.isStoppable = true
        defer { (isPreparing, supervision.isStoppable) = (false, wasStoppable) }
        do {
            // What it leaves open would be older than the state which the first block is to see.
            try endingTransaction { try prepare(self) }
            if let preparationError { throw preparationError }
        } catch {
            throw .thrown(
                error,
                message: "The configuration's prepare closure failed, so the database was closed.",
                code: SQLITE_ABORT
            )
        }
    }

    private func setSwitches(of connection: Connection) throws(DatabaseError) {
        try connection.set(.enforcesForeignKeys, configuration.enforcesForeignKeys)
        try connection.set(.trustsSchema, configuration.trustsSchema)
        try connection.set(.acceptsDoubleQuotedStrings, configuration.acceptsDoubleQuotedStrings)
        try connection.set(.acceptsDoubleQuotedStringsInSchema, configuration.acceptsDoubleQuotedStrings)
    }

    /// Whether ``setKey(_:)`` may follow: the file is new or encrypted, and was opened without a key. Settings that would
    /// read the file, or make it a plaintext file, are then applied with the key.
    func mayBeKeyedLater(_ connection: Connection) throws(DatabaseError) -> Bool {
        guard configuration.keyOrigin == nil, Engine.isEncrypting, let path = filePath, !path.isEmpty else {
            return false
        }
        return try connection.mainFileHeader() != StoreHeader.plaintextMagic
    }

    private func applySettings(to connection: Connection, writes: Bool) throws(DatabaseError) {
        if let kibibytes = configuration.cacheSize {
            // SQLite counts the KiB in 32 bits.
            try connection.run("PRAGMA cache_size = -\(min(kibibytes.magnitude, UInt(Int32.max)))")
        }
        if let mode = configuration.journalMode, isOfFile, !connection.isReadOnly, writes || mode != .wal {
            let effective = try connection.text("PRAGMA journal_mode = \(mode.rawValue)")
            guard effective == mode.rawValue else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: """
                        The journal mode is \(effective ?? "unknown") and could not be made \(mode.rawValue): another \
                        connection is using the database. It is unchanged; try again.
                        """
                )
            }
        }
        do throws(DatabaseError) {
            let synchronous = (configuration.synchronous ?? .extra).rawValue
            connection.synchronous = synchronous
            try connection.run("PRAGMA synchronous = \(synchronous)")
        } catch {
            // As in FMDB, a file that is not a database is reported by its first use. Nothing is ever written to it.
            guard error.code == SQLITE_NOTADB, configuration.synchronous == nil else { throw error }
        }
    }
}

extension DatabaseError {
    fileprivate static let keyMissing = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            The database was open with a key and has none now, so it is not opened: a file without a key would get its \
            contents in plaintext. Nothing was changed. Make a new Database.
            """
    )

    fileprivate static let journalMissing = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            A queue or pool does not open with the journal mode OFF: \(StatementGuard.cannotUndo) Nothing was opened. Set \
            another one in the Configuration.
            """
    )
}
