public import Foundation

/// SQLCipher's version, its settings on this connection, and its log. Most names are FMDB's.
///
/// All values are `nil` or false in the plain build, for a closed database, and if the engine is too old to support
/// them.
extension Database {
    /// The version and edition, such as `4.6.1 community`.
    /// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_version
    public var cipherVersion: String? { cipherText("cipher_version") }

    /// The cryptographic library, such as `openssl`; `nil` without a key.
    public var cipherProvider: String? { cipherText("cipher_provider") }

    /// The version of ``cipherProvider``; `nil` without a key.
    public var cipherProviderVersion: String? { cipherText("cipher_provider_version") }

    /// `1` if the provider runs in FIPS mode, otherwise `0`; `nil` without a key.
    /// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_fips_status
    public var cipherFipsStatus: String? { cipherText("cipher_fips_status") }

    /// `1` if the connection has a working cipher, otherwise `0`; `nil` before SQLCipher 4.12, which does not support
    /// this.
    public var cipherStatus: String? { cipherText("cipher_status") }

    /// The cipher settings in use, with every setting filled in; `nil` without a key.
    public var effectiveCipherSettings: CipherSettings? {
        // These FMDB names return only values, and no reason why one is missing. So an error gives `nil`.
        guard let parameters = (try? connection?.cipherParameters()) ?? nil else { return nil }
        return CipherSettings(
            pageSize: parameters.pageSize,
            kdfIterations: parameters.kdfIterations,
            kdfAlgorithm: parameters.kdfAlgorithm,
            hmacAlgorithm: parameters.hmacAlgorithm,
            usesHMAC: parameters.usesHMAC,
            plaintextHeaderSize: parameters.plaintextHeaderSize,
            salt: configuration.cipherSettings.salt
        )
    }

    private func cipherText(_ pragma: String) -> String? {
        (try? connection?.text("PRAGMA \(pragma)")) ?? nil  // `nil` if the query fails.
    }

    // MARK: Log

    /// SQLCipher's present log level, for the whole process; `nil` before SQLCipher 4.6.
    public var cipherLogLevel: CipherLogLevel? {
        let name = cipherText("cipher_log_level")
        return CipherLogLevel.allCases.first { $0.pragmaValue == name }
    }

    /// Makes SQLCipher log to standard error, for the whole process. By default, its log is off.
    ///
    /// The log cannot go to a file or a `Logger`: what SQLCipher writes anywhere but to standard error stays in a
    /// buffer of 4 KiB that cannot be flushed. ``CipherLogLevel/debug`` and ``CipherLogLevel/trace`` are refused,
    /// because SQLCipher logs the values of pragmas at these levels.
    /// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_log
    /// - Returns: false if the level is refused or cannot be set; see ``lastError()``.
    @discardableResult
    public func enableCipherLogging(_ level: CipherLogLevel) -> Bool {
        succeeds { () throws(DatabaseError) in
            guard level != .debug, level != .trace else {
                throw DatabaseError(
                    extendedCode: SQLITE_MISUSE,
                    reason: .unsupported,
                    message: "SQLCipher logs values of pragmas at this level. The log level is unchanged; use .info."
                )
            }
            try setCipherLog(level, target: "stderr")
        }
    }

    /// Turns SQLCipher's log off, for the whole process.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func disableCipherLogging() -> Bool {
        succeeds { () throws(DatabaseError) in try setCipherLog(.none, target: "off") }
    }

    private func setCipherLog(_ level: CipherLogLevel, target: String) throws(DatabaseError) {
        try Engine.requireCodec()
        let connection = try openConnection()
        let isSet = try connection.unguarded { () throws(DatabaseError) in
            guard try connection.text("PRAGMA cipher_log = \(target.quoted(by: "'"))") == "0" else { return false }
            try connection.run("PRAGMA cipher_log_level = \(level.pragmaValue)")
            return try connection.text("PRAGMA cipher_log_level") == level.pragmaValue
        }
        guard isSet else { throw .unsupportedByEngine("a log that can be set") }
    }

    // MARK: License and random bytes

    /// Passes the license code of a commercial edition to SQLCipher. https://www.zetetic.net/sqlcipher/sqlcipher-api/
    /// - Returns: false for the community edition, which takes no license, and if the license was not accepted; see
    ///   ``lastError()``.
    @discardableResult
    public func applyLicense(_ license: String) -> Bool {
        succeeds { () throws(DatabaseError) in
            try Engine.requireCodec()
            let connection = try openConnection()
            guard let version = cipherVersion, !version.contains("community") else {
                throw .unsupportedByEngine("a license: it is the community edition, which needs none")
            }
            do throws(DatabaseError) {
                try connection.unguarded { () throws(DatabaseError) in
                    try connection.run("PRAGMA cipher_license = \(license.quoted(by: "'"))")
                }
            } catch {
                // The error must not show the statement, which contains the license.
                throw DatabaseError(extendedCode: error.extendedCode, message: "The license was not accepted.")
            }
        }
    }

    /// Adds bytes to the random generator that creates salts and IVs. By default this is the kernel's generator, which
    /// needs none. https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_add_random
    /// - Throws: ``DatabaseError``, with ``DatabaseError/Reason/misuse`` if there are no bytes or the database has no
    ///   key.
    public func addRandom(_ bytes: Data) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try Engine.requireCodec()
            let connection = try openConnection()
            let digits = Hexadecimal.string(bytes)
            let result = try connection.unguarded { () throws(DatabaseError) in
                try connection.text("PRAGMA cipher_add_random = \"x'\(digits)'\"")
            }
            guard result == "0", !bytes.isEmpty else {
                throw DatabaseError(
                    extendedCode: SQLITE_MISUSE,
                    reason: .misuse,
                    message: "SQLCipher took no random bytes: there were none, or the database has no key."
                )
            }
        }
    }
}

extension DatabaseError {
    static func unsupportedByEngine(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .unsupported,
            message: "This SQLCipher does not know \(what). Nothing was changed."
        )
    }
}
