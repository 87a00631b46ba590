/// Passphrases are derived here and never reach SQLCipher, which would derive them anew for every connection.
extension StoreOpening {
    /// Calls `body` with what the connection is to be keyed with.
    ///
    /// The salt is in it, so that SQLCipher cannot take another one than the key was derived with: that of the file, and
    /// for a new store a random one.
    func withKeySpec<T>(
        of key: Key,
        for connection: Connection,
        _ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        guard let derivedKeys = key.derivedKeys else { return try key.withKeySpec(body) }
        var salt = try connection.mainFileHeader()
        if salt.isEmpty, isFile, let path { salt = try derivedKeys.saltOfNewStore(path) }
        // Nothing to derive for: it lives as long as this connection, or is too short to be a store.
        guard salt.count == Key.saltByteCount else { return try Key.random().withKeySpec(body) }
        return try key.derived(salt: salt, by: settings.keyDerivation).withKeySpec(salt: salt, body)
    }

    /// Calls `body` with what the store is to be rekeyed with, which keeps its salt.
    func withRekeySpec<T>(
        of key: Key,
        for connection: Connection,
        _ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        try key.derived(salt: connection.mainFileHeader(), by: settings.keyDerivation).withKeySpec(body)
    }

    /// Whether the key was derived over a salt that the file does not have (any more), because somebody else created or
    /// replaced the store meanwhile.
    func isOvertaken(_ connection: Connection, by error: DatabaseError) -> Bool {
        guard error.code == SQLITE_NOTADB, key?.form == .passphrase, isFile,
            let header = try? connection.mainFileHeader(), header.count == Key.saltByteCount,
            header != StoreHeader.plaintextMagic, let salt = try? connection.text("PRAGMA cipher_salt")
        else { return false }
        return salt != Hexadecimal.string(header)
    }
}

extension CipherSettings {
    /// How a passphrase becomes a key under these settings.
    var keyDerivation: KeyDerivation {
        var derivation = KeyDerivation.ofFormat(4)
        if let kdfIterations { derivation.iterations = kdfIterations }
        switch kdfAlgorithm {
        case .sha1: derivation.algorithm = .sha1
        case .sha256: derivation.algorithm = .sha256
        case .sha512: derivation.algorithm = .sha512
        case nil: break
        }
        return derivation
    }
}
