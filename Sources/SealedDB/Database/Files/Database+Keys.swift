public import Foundation

extension Database {
    /// Gives the database its key, as FMDB does. Call it after ``open()``, before anything else.
    ///
    /// The connection is opened again with the key, and the key is verified. If that fails, the database is **closed**,
    /// so that a caller who ignores the result cannot write anything in plaintext. `x'…'` with 64 or 96 hexadecimal
    /// digits is a raw key, as in FMDB. A ``Configuration`` with a ``Key`` is the better choice.
    /// - Returns: false for a wrong or malformed key; see ``lastError()``.
    @discardableResult
    public func setKey(_ key: String) -> Bool {
        succeeds { () throws(DatabaseError) in try apply(keyText(key)) }
    }

    /// Like ``setKey(_:)``, with the passphrase as bytes.
    @discardableResult
    public func setKeyWith(_ keyData: Data) -> Bool {
        succeeds { () throws(DatabaseError) in try apply(keyBytes(keyData)) }
    }

    private func keyText(_ text: String) -> Result<Key, DatabaseError> {
        var text = text
        return text.withUTF8 { bytes in
            Result { () throws(DatabaseError) in try Key.interpreting(UnsafeRawBufferPointer(bytes)) }
        }
    }

    private func keyBytes(_ data: Data) -> Result<Key, DatabaseError> {
        data.withUnsafeBytes { bytes in
            Result { () throws(DatabaseError) in try Key.interpreting(bytes) }
        }
    }

    private func apply(_ key: Result<Key, DatabaseError>) throws(DatabaseError) {
        _ = try openConnection()
        try requireIdle()
        let before = (configuration.keyOrigin, adoptedKey)
        do throws(DatabaseError) {
            guard !isInTransaction else {
                throw DatabaseError(
                    extendedCode: SQLITE_MISUSE,
                    reason: .misuse,
                    message: "A key is set right after opening, not within a transaction. It was rolled back."
                )
            }
            let key = try key.get()
            try endPendingStatements()
            // What could fail was asked for in the line before.
            close()
            configuration.key = key
            adoptedKey = nil
            try reopen()
        } catch {
            // The caller gets an error in any case.
            close()
            // If there was a key, the next opening must not do without one.
            (configuration.keyOrigin, adoptedKey) = before
            throw error.adding(context: "The database was closed, so that nothing is written in plaintext")
        }
    }

    // MARK: Key rings

    /// The id of the key in the ring that opened the database. `nil` without a ``Configuration/keyRing``, before the
    /// first opening, or if a rotation gave the store a key that is not in the ring.
    public var keyID: String? {
        requireTurn("Database.keyID")
        return fittingKey?.id
    }

    /// Whether the database was opened with a key other than the active one of its ring. If so, rotate it to
    /// ``KeyRing/activeKey()``. False without a ring.
    public var needsRotation: Bool {
        requireTurn("Database.needsRotation")
        return fittingKey?.needsRotation ?? false
    }

    // MARK: Changing the key

    /// Changes the key in place, as FMDB does, with SQLCipher's rekey. The result is what a new connection finds.
    ///
    /// Use it only if there is no disk space for a copy: ``rotateKey(to:progress:)`` is as fast and safer. Open result
    /// sets end. An open transaction is an error.
    /// - Returns: false on failure; see ``lastError()``, which says which key the store has.
    @discardableResult
    public func rekey(_ key: String) -> Bool {
        succeeds { () throws(DatabaseError) in
            try requireOwnKey()
            try rekey(inPlace: keyText(key).get())
        }
    }

    /// Like ``rekey(_:)``, with the passphrase as bytes.
    @discardableResult
    public func rekey(with keyData: Data) -> Bool {
        succeeds { () throws(DatabaseError) in
            try requireOwnKey()
            try rekey(inPlace: keyBytes(keyData).get())
        }
    }

    private func rekey(inPlace newKey: Key) throws(DatabaseError) {
        let (_, oldKey) = try changeableKey()
        try endShipping()
        defer { goOnShipping() }
        let opening = opening(flags: SQLITE_OPEN_READWRITE, vfs: openedVFS, key: oldKey)
        try changeKey(to: newKey) { () throws(DatabaseError) in
            try InPlaceRekey(opening: opening, newKey: newKey).run()
        }
    }

    /// Changes the key: copies the store, verifies the copy, and puts it in place of the store. See ``KeyRotation``.
    /// The database stays open, with the new key.
    ///
    /// The new key is confirmed before it becomes the only one (see ``Key/confirm()``). A key that was made in memory
    /// is yours to keep. Open result sets end. An open transaction is an error.
    /// - Parameters:
    ///   - newKey: the key that the store gets.
    ///   - progress: called after each step. Throwing stops the rotation and leaves the store as it was.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store is unchanged and open with the old
    ///   key.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        try recording { () throws(DatabaseError) in
            try requireOwnKey()
            return try rotateKey(to: newKey, with: nil, progress: progress)
        }
    }

    /// Throws if a pool gives this connection its key, because the pool's other connections would keep the old one.
    private func requireOwnKey() throws(DatabaseError) {
        try requireIdle()
        guard belongsToPool else { return }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: """
                All connections of a pool have one key, so a block cannot change that of its own. Nothing was changed. \
                Call rotateKey(to:) of the pool, outside its blocks.
                """
        )
    }

    /// Changes the key, and can use a copy that was made beforehand. The copy is completed now, or discarded.
    func rotateKey(
        to newKey: Key,
        with copy: (any ServiceCopy)?,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> KeyRotation.Report {
        try recording { () throws(DatabaseError) in
            let (path, oldKey) = try changeableKey()
            let rotation = KeyRotation(
                path: path,
                from: oldKey,
                to: newKey,
                cipherSettings: configuration.cipherSettings,
                busyTimeout: configuration.busyTimeout,
                ignoresUnseenUsers: configuration.ignoresUnseenUsers
            )
            // Who has the slot of a store replaced goes on using it, and so does the shipper.
            if !KeySlots.exist(beside: path) { try endShipping() }
            defer { goOnShipping() }
            do throws(DatabaseError) {
                try copy?.complete(openConnection(), progress)
            } catch {
                throw error.adding(context: KeyRotation.changedNothing)
            }
            return try changeKey(to: newKey) { () throws(DatabaseError) in
                try rotation.run(with: copy, progress: progress)
            }
        }
    }

    /// Begins to copy the store under a new key, for ``rotateKey(to:with:progress:)``.
    func liveCopy(for newKey: Key) throws(DatabaseError) -> any ServiceCopy {
        try recording { () throws(DatabaseError) in
            let path = try pathToRotate(for: newKey)
            let sealing = Sealing(key: newKey, settings: configuration.cipherSettings)
            let connection = try openConnection()
            do throws(DatabaseError) {
                let former = Sealing(key: fittingKey?.key, settings: configuration.cipherSettings)
                guard try canFollow(connection) else {
                    return try LiveCopy(of: connection, path: path, former, sealing)
                }
                return try FollowedCopy(
                    of: connection,
                    path: path,
                    former,
                    sealing,
                    busyTimeout: configuration.busyTimeout.seconds
                )
            } catch {
                throw error.adding(context: "The rotation did not begin, and the store is unchanged")
            }
        }
    }

    /// Whether other connections can read the store's log meanwhile, by SQLite's own VFS.
    private func canFollow(_ connection: Connection) throws(DatabaseError) -> Bool {
        guard openedVFS == nil, try connection.text("PRAGMA main.journal_mode") == "wal" else { return false }
        return try connection.text("PRAGMA main.locking_mode") == "normal"
    }

    /// Returns the path of the store. Throws if its key cannot be changed to this one.
    func pathToRotate(for newKey: Key) throws(DatabaseError) -> String {
        try recording { () throws(DatabaseError) in
            let (path, oldKey) = try changeableKey()
            guard oldKey != newKey else { throw KeyRotation.sameKey }
            return path
        }
    }

    private static let changedNothing = "The key was not changed, and the store is as it was"

    private func changeableKey() throws(DatabaseError) -> (path: String, key: Key) {
        _ = try openConnection()
        try requireIdle()
        guard let key = fittingKey?.key, let path = filePath, isOfFile else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "Only an encrypted file has a key to change. To encrypt a plaintext file use StoreEncryption."
            )
        }
        guard !isInTransaction else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "The key cannot change within a transaction. Commit or roll back first. Nothing was changed."
            )
        }
        do throws(DatabaseError) {
            try openConnection().requireNothingTemporary()
        } catch {
            throw error.adding(context: Database.changedNothing)
        }
        return (path, key)
    }

    /// Ends result sets and blobs. Throws if SQLite could not commit what one of them has written: the connection, which
    /// would tell of it, is closed next.
    private func endPendingStatements() throws(DatabaseError) {
        let connection = try openConnection()
        connection.endUses()
        connection.endBlobs()
        guard let failure = connection.takeUnnoticedFailure() else { return }
        throw failure.adding(
            context: "The changes of an open result set or blob were not stored, and the key was not changed"
        )
    }

    /// Closes the database, makes the change, and opens the database with the key that the store then has.
    private func changeKey<T>(
        to newKey: Key,
        _ change: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        try endPendingStatements()
        do throws(DatabaseError) {
            try closeForReopening()
        } catch {
            throw error.adding(context: Database.changedNothing)
        }
        let result: T
        do throws(DatabaseError) {
            result = try change()
        } catch {
            do throws(DatabaseError) {
                try reopen()
            } catch {
                // The store may have been replaced although a later step failed, so the new key is tried. The first
                // error is the one that is thrown.
                let before = (configuration.keyOrigin, adoptedKey)
                adopt(newKey)
                // If this fails too, the first error is thrown, and the configuration stays as it was.
                if (try? reopen()) == nil { (configuration.keyOrigin, adoptedKey) = before }
            }
            throw error
        }
        adopt(newKey)
        do throws(DatabaseError) {
            try reopen()
        } catch {
            throw error.adding(context: "The store has the new key, but could not be reopened")
        }
        return result
    }

    /// Stores the new key. A key that the configuration contains is replaced. A key from a source or ring stays, and is
    /// used again as soon as it fits.
    private func adopt(_ newKey: Key) {
        if configuration.key != nil { configuration.key = newKey } else { adoptedKey = newKey }
    }
}
