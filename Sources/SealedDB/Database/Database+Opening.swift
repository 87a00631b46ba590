import Foundation

extension Database {
    /// Opens to read and write, creating the file; with a key in the configuration the key is proved right.
    ///
    /// Without a key the file is not read, as in FMDB, so that ``setKey(_:)`` may follow.
    /// - Returns: false on failure; see ``lastError()``. True if it is open already.
    @discardableResult
    public func open() -> Bool {
        open(withFlags: configuration.flags)
    }

    /// Opens with `SQLITE_OPEN_…` flags. https://www.sqlite.org/c3ref/open.html
    @discardableResult
    public func open(withFlags flags: Int32) -> Bool {
        open(withFlags: flags, vfs: nil)
    }

    /// Opens with `SQLITE_OPEN_…` flags through a named VFS, by default SQLite's own for the system.
    ///
    /// Each is guarded: what is refused beside a store, such as a stranger's journal, is refused there, too. The library
    /// registers those that guard, whose names begin with `sealeddb-`. https://www.sqlite.org/vfs.html
    @discardableResult
    public func open(withFlags flags: Int32, vfs vfsName: String?) -> Bool {
        guard !isOpen else { return true }
        return succeeds { () throws(DatabaseError) in try openConnection(flags: flags, vfs: vfsName) }
    }

    /// Opens as ``open()``, and throws the reason of a failure.
    /// - Throws: ``DatabaseError``, with the reasons ``DatabaseError/Reason/wrongKey``,
    ///   ``DatabaseError/Reason/plaintext``, ``DatabaseError/Reason/wrongEngine`` and others. The file is unchanged.
    public func openVerified() throws(DatabaseError) {
        guard !isOpen else { return }
        try recording { () throws(DatabaseError) in try openConnection(flags: configuration.flags, vfs: nil) }
    }

    /// Closes; idempotent. Open result sets and blobs end, an open transaction is rolled back.
    /// - Returns: false if SQLite was still using the connection, which is then closed when that ends. Also false, with
    ///   an error in ``lastError()``, if the changes of a result set or blob that was open could not be committed, and
    ///   with the database left open, from within a function or hook that it is calling.
    @discardableResult
    public func close() -> Bool {
        // The caller wants a new one.
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
        StoreOpening(
            path: databasePath,
            key: key,
            settings: configuration.cipherSettings,
            flags: flags,
            vfs: vfs,
            busyTimeout: configuration.busyTimeout,
            gate: gate,
            allowsCipherStatements: configuration.allowsCipherStatements,
            image: image
        )
    }

    /// SQLite cannot close a connection from within something that it calls.
    func requireIdle() throws(DatabaseError) {
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

    /// Closes, and remembers what was set on the connection for the one that follows.
    func closeForReopening() throws(DatabaseError) {
        guard let connection else { return }
        let settings = try ConnectionSettings(of: connection)
        close()
        keptSettings = settings
    }

    /// Opens again as the last time.
    func reopen() throws(DatabaseError) {
        guard !isOpen else { return }
        try openConnection(flags: openedFlags ?? configuration.flags, vfs: openedVFS)
    }

    private func openConnection(flags: Int32, vfs: String?) throws(DatabaseError) {
        if isShared, configuration.journalMode == .off { throw .journalMissing }
        let connection = try unlockedConnection(flags: flags, vfs: vfs)
        self.connection = connection
        connection.supervision = supervision
        if supervision.isWatching { connection.setBusyTimeout(seconds: configuration.busyTimeout) }
        connection.statementGuard.requiresJournal = isShared
        do throws(DatabaseError) {
            try configure(connection, flags: flags)
            try keptSettings?.restore(on: connection)
            keptSettings = nil
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
            return try opening(flags: flags, vfs: vfs, key: nil).open()
        }
        let name = databasePath ?? "the database in memory"
        let (connection, fitting) = try origin.open(name, adopted: adoptedKey) { key throws(DatabaseError) in
            try opening(flags: flags, vfs: vfs, key: key).open()
        }
        fittingKey = fitting
        return connection
    }

    private func configure(_ connection: Connection, flags: Int32) throws(DatabaseError) {
        connection.setCacheCapacity(configuration.statementCacheCapacity)
        try connection.holdChanges()
        let mayBeKeyedLater = try mayBeKeyedLater(connection)
        if !mayBeKeyedLater { try applySettings(to: connection, flags: flags) }
        try additions.install(on: connection, mayBeKeyedLater: mayBeKeyedLater)
        guard let prepare = configuration.prepare else { return }
        do {
            try prepare(self)
        } catch {
            throw .thrown(
                error,
                message: "The configuration's prepare closure failed, so the database was closed.",
                code: SQLITE_ABORT
            )
        }
    }

    /// A new or encrypted file, opened without a key: ``setKey(_:)`` may follow, and the settings come with it. They
    /// would read the file, or make it a plaintext one.
    private func mayBeKeyedLater(_ connection: Connection) throws(DatabaseError) -> Bool {
        guard configuration.keyOrigin == nil, Engine.isEncrypting, let path = databasePath, !path.isEmpty else {
            return false
        }
        return try connection.mainFileHeader() != StoreHeader.plaintextMagic
    }

    private func applySettings(to connection: Connection, flags: Int32) throws(DatabaseError) {
        if let kibibytes = configuration.cacheSize { try connection.run("PRAGMA cache_size = \(-abs(kibibytes))") }
        if let mode = configuration.journalMode, isOfFile, !connection.isReadOnly {
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
            // As in FMDB, what is no database is met by its first use, and nothing is ever written to it.
            guard error.code == SQLITE_NOTADB, configuration.synchronous == nil else { throw error }
        }
    }
}

extension DatabaseError {
    fileprivate static let journalMissing = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            A queue or pool does not open with the journal mode OFF: \(StatementGuard.cannotUndo) Nothing was opened. Set \
            another one in the Configuration.
            """
    )
}
