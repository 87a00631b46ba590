public import Foundation

extension Database {
    /// Gives the database its key, as FMDB does: after ``open()``, before anything else.
    ///
    /// The connection is opened anew with the key, which is proved right. If that fails the database is **closed**, so
    /// that nothing can be written in plaintext by a caller who does not look at the result. `x'…'` with 64 or 96 hex
    /// digits is a raw key, as in FMDB; prefer a ``Configuration`` with a ``Key``.
    /// - Returns: false for a wrong or malformed key; see ``lastError()``.
    @discardableResult
    public func setKey(_ key: String) -> Bool {
        succeeds { () throws(DatabaseError) in try apply(keyText(key)) }
    }

    /// As ``setKey(_:)``, with the bytes of the passphrase.
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
        do throws(DatabaseError) {
            guard !isInTransaction else {
                throw DatabaseError(
                    extendedCode: SQLITE_MISUSE,
                    reason: .misuse,
                    message: "A key is set right after opening, not within a transaction. It was rolled back."
                )
            }
            let key = try key.get()
            close()
            configuration.key = key
            adoptedKey = nil
            try reopen()
        } catch {
            close()
            configuration.key = nil
            adoptedKey = nil
            throw error.adding(context: "The database was closed, so that nothing is written in plaintext")
        }
    }

    // MARK: Key rings

    /// The id of the ring's key that opened the database; `nil` without a ``Configuration/keyRing``, before the first
    /// opening, or if a rotation gave the store a key that is not in the ring.
    public var keyID: String? {
        requireTurn("Database.keyID")
        return fittingKey?.id
    }

    /// Whether the database opened with another key than the active one of its ring: rotate it to
    /// ``KeyRing/activeKey()``. False without a ring.
    public var needsRotation: Bool {
        requireTurn("Database.needsRotation")
        return fittingKey?.needsRotation ?? false
    }

    // MARK: Changing the key

    /// Changes the key in place, as FMDB does, by SQLCipher's rekey; the result is what a fresh connection finds.
    ///
    /// For those who have no disk space for a copy: ``rotateKey(to:progress:)`` is as fast and safer. Open result sets
    /// end. An open transaction is an error.
    /// - Returns: false on failure; see ``lastError()``, which says which key the store has.
    @discardableResult
    public func rekey(_ key: String) -> Bool {
        succeeds { () throws(DatabaseError) in try rekey(inPlace: keyText(key).get()) }
    }

    /// As ``rekey(_:)``, with the bytes of the passphrase.
    @discardableResult
    public func rekey(with keyData: Data) -> Bool {
        succeeds { () throws(DatabaseError) in try rekey(inPlace: keyBytes(keyData).get()) }
    }

    private func rekey(inPlace newKey: Key) throws(DatabaseError) {
        let (_, oldKey) = try changeableKey()
        let opening = opening(flags: SQLITE_OPEN_READWRITE, vfs: openedVFS, key: oldKey)
        try changeKey(to: newKey) { () throws(DatabaseError) in
            try InPlaceRekey(opening: opening, newKey: newKey).run()
        }
    }

    /// Changes the key by copy, verify, swap: see ``KeyRotation``. The database stays open, with the new key.
    ///
    /// The new key is confirmed before it is the only one (see ``Key/confirm()``); one that was made in memory is yours to
    /// keep. Open result sets end. An open transaction is an error.
    /// - Parameter progress: called after each step; throwing stops the rotation and leaves the store as it was.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, the store is unchanged and open with the old key.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        try rotateKey(to: newKey, with: nil, progress: progress)
    }

    /// As above, with a copy that was made meanwhile; it is completed now, or discarded.
    func rotateKey(
        to newKey: Key,
        with copy: LiveCopy?,
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
            try copy?.complete()
            return try changeKey(to: newKey) { () throws(DatabaseError) in
                try rotation.run(with: copy, progress: progress)
            }
        }
    }

    /// Begins to copy the store under a new key, for ``rotateKey(to:with:progress:)``.
    func liveCopy(for newKey: Key) throws(DatabaseError) -> LiveCopy {
        try recording { () throws(DatabaseError) in
            let path = try pathToRotate(for: newKey)
            let sealing = Sealing(key: newKey, settings: configuration.cipherSettings)
            do throws(DatabaseError) {
                return try LiveCopy(of: openConnection(), path: path, sealing: sealing)
            } catch {
                throw error.adding(context: "The rotation did not begin, and the store is unchanged")
            }
        }
    }

    /// Where the store is whose key can be changed to this one.
    func pathToRotate(for newKey: Key) throws(DatabaseError) -> String {
        try recording { () throws(DatabaseError) in
            let (path, oldKey) = try changeableKey()
            guard oldKey != newKey else { throw KeyRotation.sameKey }
            return path
        }
    }

    private func changeableKey() throws(DatabaseError) -> (path: String, key: Key) {
        _ = try openConnection()
        try requireIdle()
        guard let key = fittingKey?.key, let path = databasePath, !path.isEmpty, path != ":memory:" else {
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
        try openConnection().requireNothingTemporary()
        return (path, key)
    }

    /// Closes, changes, and opens with the key that the store then has.
    private func changeKey<T>(
        to newKey: Key,
        _ change: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        try closeForReopening()
        let result: T
        do throws(DatabaseError) {
            result = try change()
        } catch {
            do throws(DatabaseError) {
                try reopen()
            } catch {
                // The swap may have happened although a later step failed.
                // The error that is thrown is the one that there was first.
                let before = (configuration.keyOrigin, adoptedKey)
                adopt(newKey)
                // As above.
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

    /// A key that was given stays that; one from a source or ring does again as soon as it fits.
    private func adopt(_ newKey: Key) {
        if configuration.key != nil { configuration.key = newKey } else { adoptedKey = newKey }
    }
}
