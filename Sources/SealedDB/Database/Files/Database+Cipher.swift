public import Foundation

/// SQLCipher itself: what it is, how it works on this connection, and what it tells. FMDB's names, and some beside them.
///
/// All of it is `nil` or false in the plain build, on a closed database, and where the engine is too old to know it.
extension Database {
    /// Version and edition, such as `4.6.1 community`. https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_version
    public var cipherVersion: String? { cipherText("cipher_version") }

    /// Library that encrypts, such as `openssl`; `nil` without a key.
    public var cipherProvider: String? { cipherText("cipher_provider") }

    /// Version of ``cipherProvider``; `nil` without a key.
    public var cipherProviderVersion: String? { cipherText("cipher_provider_version") }

    /// `1` if the provider runs in FIPS mode, else `0`; `nil` without a key.
    /// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_fips_status
    public var cipherFipsStatus: String? { cipherText("cipher_fips_status") }

    /// `1` if the connection has a working cipher, else `0`; `nil` before SQLCipher 4.12, which does not know it.
    public var cipherStatus: String? { cipherText("cipher_status") }

    /// The settings that the codec works with, every one of them said; `nil` without a key.
    public var effectiveCipherSettings: CipherSettings? {
        // FMDB's names say what is there, and nothing of why something is not: `nil` is the answer to an error.
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
        (try? connection?.text("PRAGMA \(pragma)")) ?? nil  // `nil` where it cannot be asked.
    }

    // MARK: Log

    /// How much SQLCipher logs now, in the whole process; `nil` before SQLCipher 4.6.
    public var cipherLogLevel: CipherLogLevel? {
        let name = cipherText("cipher_log_level")
        return CipherLogLevel.allCases.first { $0.pragmaValue == name }
    }

    /// Has SQLCipher log to standard error, for the whole process; it is silent by default.
    ///
    /// Not to a file or to `Logger`: what SQLCipher writes to anything but standard error stays in a buffer that cannot
    /// be flushed, until 4 KiB are together. ``CipherLogLevel/debug`` and ``CipherLogLevel/trace`` are refused, because
    /// the values of pragmas are logged there. https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_log
    /// - Returns: false if refused or not possible; see ``lastError()``.
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

    /// Silences SQLCipher's log, for the whole process.
    @discardableResult
    public func disableCipherLogging() -> Bool {
        succeeds { () throws(DatabaseError) in try setCipherLog(.none, target: "off") }
    }

    private func setCipherLog(_ level: CipherLogLevel, target: String) throws(DatabaseError) {
        try Engine.requireCodec()
        let connection = try openConnection()
        let isSet = try connection.unguarded { () throws(DatabaseError) in
            guard try connection.text("PRAGMA cipher_log = '\(target)'") == "0" else { return false }
            try connection.run("PRAGMA cipher_log_level = \(level.pragmaValue)")
            return try connection.text("PRAGMA cipher_log_level") == level.pragmaValue
        }
        guard isSet else { throw .unsupportedByEngine("a log that can be set") }
    }

    // MARK: Others

    /// Gives the license code of a commercial edition of SQLCipher. https://www.zetetic.net/sqlcipher/sqlcipher-api/
    /// - Returns: false for the community edition, which takes none, and if it was not accepted; see ``lastError()``.
    @discardableResult
    public func applyLicense(_ license: String) -> Bool {
        succeeds { () throws(DatabaseError) in
            try Engine.requireCodec()
            let connection = try openConnection()
            guard let version = cipherVersion, !version.contains("community") else {
                throw .unsupportedByEngine("a license: it is the community edition, which needs none")
            }
            let quoted = license.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
            do throws(DatabaseError) {
                try connection.unguarded { () throws(DatabaseError) in
                    try connection.run("PRAGMA cipher_license = '\(quoted)'")
                }
            } catch {
                // Without the text, which holds the license.
                throw DatabaseError(extendedCode: error.extendedCode, message: "The license was not accepted.")
            }
        }
    }

    /// Mixes bytes into the random generator that makes salts and IVs, which is the kernel's by default and needs none.
    /// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_add_random
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/misuse`` for no bytes, or a database without a key.
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
