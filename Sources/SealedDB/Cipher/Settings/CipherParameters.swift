/// ``CipherSettings`` with a value for every setting, as SQLCipher's codec uses them.
struct CipherParameters: Hashable, Sendable {
    var pageSize: Int
    var kdfIterations: Int
    var kdfAlgorithm: CipherSettings.Algorithm
    var hmacAlgorithm: CipherSettings.Algorithm
    var usesHMAC: Bool
    var plaintextHeaderSize = 0

    /// Bytes at the end of each page that hold no data: the IV and the authentication code, in whole AES blocks.
    var reservedBytes: Int {
        let used = 16 + (usesHMAC ? hmacAlgorithm.bits / 8 : 0)
        return (used + 15) / 16 * 16
    }

    /// The pragmas, in the order in which they are set, with the value that each reads back.
    var pragmas: [(name: String, value: String)] {
        [
            ("kdf_iter", String(kdfIterations)),
            ("cipher_kdf_algorithm", "PBKDF2_HMAC_\(kdfAlgorithm.rawValue)"),
            ("cipher_hmac_algorithm", "HMAC_\(hmacAlgorithm.rawValue)"),
            ("cipher_use_hmac", usesHMAC ? "1" : "0"),
            ("cipher_page_size", String(pageSize)),
            ("cipher_plaintext_header_size", String(plaintextHeaderSize)),
        ]
    }

    /// Settings that have these parameters. Uses the compatibility version whose defaults are the same, if there is
    /// one.
    func settings(salt: [UInt8]? = nil) -> CipherSettings {
        let presets = [CipherSettings.sqlCipher4, .sqlCipher3, .sqlCipher2, .sqlCipher1]
        var rest = self
        rest.plaintextHeaderSize = 0
        guard var result = presets.first(where: { $0.parameters == rest }) else {
            return CipherSettings(
                pageSize: pageSize,
                kdfIterations: kdfIterations,
                kdfAlgorithm: kdfAlgorithm,
                hmacAlgorithm: hmacAlgorithm,
                usesHMAC: usesHMAC,
                plaintextHeaderSize: plaintextHeaderSize,
                salt: salt
            )
        }
        result.plaintextHeaderSize = plaintextHeaderSize
        result.salt = salt
        return result
    }
}

extension CipherSettings.Algorithm {
    var bits: Int {
        switch self {
        case .sha1: 160
        case .sha256: 256
        case .sha512: 512
        }
    }
}

extension Connection {
    /// The parameters that the codec of this schema reports; `nil` if it has no codec.
    func cipherParameters(schema: String = "main") throws(DatabaseError) -> CipherParameters? {
        CipherParameters(pragmas: try texts("PRAGMA \(schema.quotedIdentifier).cipher_settings"))
    }

    /// Throws if the database is encrypted, before it is written in plaintext. The library does not know a key that was
    /// set by SQL.
    func requirePlaintext() throws(DatabaseError) {
        guard Engine.isEncrypting, try trusted({ () throws(DatabaseError) in try cipherParameters() }) != nil else {
            return
        }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .keyRequired,
            message: """
                The database got its key by SQL, so the copy would have none, and be plaintext. Nothing was written. Give the key \
                in the Configuration, or give the copy one.
                """
        )
    }

    /// The default parameters of new codecs in this process; `nil` without SQLCipher.
    func defaultCipherParameters() throws(DatabaseError) -> CipherParameters? {
        let rows = try texts("PRAGMA cipher_default_settings")
        return CipherParameters(
            pragmas: rows.map { row in
                row.replacing("cipher_default_kdf_iter", with: "kdf_iter").replacing("cipher_default_", with: "cipher_")
            }
        )
    }
}

extension CipherParameters {
    /// From the rows of `cipher_settings`; `nil` if one is missing.
    fileprivate init?(pragmas: [String]) {
        var values: [String: String] = [:]
        for row in pragmas {
            // "PRAGMA kdf_iter = 256000;"
            let words = row.split { " =;".contains($0) }
            if words.count == 3 { values[String(words[1])] = String(words[2]) }
        }
        guard let pageSize = values["cipher_page_size"].flatMap({ Int($0) }),
            let iterations = values["kdf_iter"].flatMap({ Int($0) }),
            let kdf = values["cipher_kdf_algorithm"].flatMap({ CipherSettings.Algorithm(suffixOf: $0) }),
            let hmac = values["cipher_hmac_algorithm"].flatMap({ CipherSettings.Algorithm(suffixOf: $0) }),
            let usesHMAC = values["cipher_use_hmac"],
            let header = values["cipher_plaintext_header_size"].flatMap({ Int($0) })
        else { return nil }
        self.init(
            pageSize: pageSize,
            kdfIterations: iterations,
            kdfAlgorithm: kdf,
            hmacAlgorithm: hmac,
            usesHMAC: usesHMAC != "0",
            plaintextHeaderSize: header
        )
    }

    /// The beginning of an error message. `nil` means that the defaults could not be read.
    static func areChanged(_ defaults: CipherParameters?) -> String {
        let found = defaults.map { "\($0.settings())" } ?? "unknown"
        return "Other code in this process has changed SQLCipher's default settings (\(found))"
    }
}

extension CipherSettings.Algorithm {
    /// Reads the last word of a label such as `HMAC_SHA512` or `PBKDF2_HMAC_SHA512`.
    fileprivate init?(suffixOf label: String) {
        self.init(rawValue: label.split(separator: "_").last.map(String.init) ?? "")
    }
}

extension String {
    /// The string as a quoted SQL identifier.
    var quotedIdentifier: String { quoted(by: "\"") }
}
