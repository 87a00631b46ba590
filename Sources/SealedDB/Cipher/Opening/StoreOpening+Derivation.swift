/// Passphrases are derived here and never reach SQLCipher, which would derive them anew for every connection.
extension StoreOpening {
    /// Calls `body` with the key specification for the connection: a raw key together with its salt.
    ///
    /// Because the salt is given, SQLCipher cannot use another salt than the one that the key was derived with. It is
    /// the salt of the file or, for a new store, a random one.
    func withKeySpec<T>(
        of key: Key,
        for connection: Connection,
        _ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        var salt = try salt(in: connection)
        if key.form != .rawWithSalt, let dataKey = key.slotKeys.dataKey(salt: salt) {
            return try dataKey.withKeySpec(salt: salt, body)
        }
        guard let derivedKeys = key.derivedKeys else { return try key.withKeySpec(body) }
        if salt.isEmpty, isFile, let path { salt = try derivedKeys.saltOfNewStore(path) }
        // Without a salt there is nothing to derive a key for: the database exists only as long as this connection, or
        // the file is too short to be a store. A random key does.
        guard salt.count == Key.saltByteCount else { return try Key.random().withKeySpec(body) }
        connection.derivationSalt = salt
        return try key.derived(salt: salt, by: settings.parameters.keyDerivation).withKeySpec(salt: salt, body)
    }

    /// Calls `body` with the key specification for a rekey. A rekey keeps the salt of the store.
    func withRekeySpec<T>(
        of key: Key,
        for connection: Connection,
        _ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        try key.derived(salt: salt(in: connection), by: settings.parameters.keyDerivation).withKeySpec(body)
    }

    private func salt(in connection: Connection) throws(DatabaseError) -> [UInt8] {
        // With a plaintext header the file holds no salt: it is in the settings or in the key.
        if let salt = settings.salt { return salt }
        if settings.plaintextHeaderSize > 0, let key, let salt = try key.embeddedSalt() { return salt }
        return try connection.mainFileHeader()
    }

    /// Whether the key was derived with a salt that the file does not have any more, because somebody else created or
    /// replaced the store meanwhile. False if that cannot be found out; the caller then keeps its error.
    func isOvertaken(_ connection: Connection, by error: DatabaseError) -> Bool {
        guard error.code == SQLITE_NOTADB, key?.form == .passphrase, isFile, settings.salt == nil,
            let header = try? connection.mainFileHeader(), header.count == Key.saltByteCount,  // False, as above.
            header != StoreHeader.plaintextMagic, let salt = connection.derivationSalt
        else { return false }
        return salt != header
    }
}

extension CipherParameters {
    /// How a passphrase is turned into a key.
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
