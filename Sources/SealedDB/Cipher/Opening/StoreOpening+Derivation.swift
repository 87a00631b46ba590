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
        var salt = try salt(in: connection)
        if salt.isEmpty, isFile, let path { salt = try derivedKeys.saltOfNewStore(path) }
        // Nothing to derive for: it lives as long as this connection, or is too short to be a store.
        guard salt.count == Key.saltByteCount else { return try Key.random().withKeySpec(body) }
        return try key.derived(salt: salt, by: settings.parameters.keyDerivation).withKeySpec(salt: salt, body)
    }

    /// Calls `body` with what the store is to be rekeyed with, which keeps its salt.
    func withRekeySpec<T>(
        of key: Key,
        for connection: Connection,
        _ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        try key.derived(salt: salt(in: connection), by: settings.parameters.keyDerivation).withKeySpec(body)
    }

    private func salt(in connection: Connection) throws(DatabaseError) -> [UInt8] {
        // A plaintext header takes its place in the file.
        if let salt = settings.salt { return salt }
        if settings.plaintextHeaderSize > 0, let key, let salt = try key.embeddedSalt() { return salt }
        return try connection.mainFileHeader()
    }

    /// Whether the key was derived over a salt that the file does not have (any more), because somebody else created or
    /// replaced the store meanwhile. False where that cannot be known: the error that there is stays.
    func isOvertaken(_ connection: Connection, by error: DatabaseError) -> Bool {
        guard error.code == SQLITE_NOTADB, key?.form == .passphrase, isFile, settings.salt == nil,
            let header = try? connection.mainFileHeader(), header.count == Key.saltByteCount,  // See above.
            header != StoreHeader.plaintextMagic, let salt = try? connection.text("PRAGMA cipher_salt")
        else { return false }
        return salt != Hexadecimal.string(header)
    }
}

extension CipherParameters {
    /// How a passphrase becomes a key.
    var keyDerivation: KeyDerivation {
        KeyDerivation(algorithm: kdfAlgorithm.ofDerivation, iterations: kdfIterations)
    }
}

extension CipherSettings.Algorithm {
    var ofDerivation: KeyDerivation.Algorithm {
        switch self {
        case .sha1: .sha1
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }
}
