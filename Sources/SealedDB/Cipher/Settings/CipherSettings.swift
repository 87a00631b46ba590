/// How a store is encrypted. The defaults are those of SQLCipher 4: the stock `sqlcipher` shell opens such a store with
/// the key alone. All other settings must be given again at every opening.
///
/// The settings are applied after the key and before the first read, because SQLCipher accepts them only then. They are
/// read back afterwards, because SQLCipher ignores values that it does not accept. The settings of an open store cannot
/// be changed; ``StoreMigration`` makes a copy with other settings. <https://www.zetetic.net/sqlcipher/sqlcipher-api/>
public struct CipherSettings: Sendable, Hashable, Codable {
    /// The hash algorithm of the page authentication, or of the key derivation.
    public enum Algorithm: String, Sendable, Codable, CaseIterable {
        /// SHA-1, of SQLCipher 1 to 3.
        case sha1 = "SHA1"
        /// SHA-256.
        case sha256 = "SHA256"
        /// SHA-512, the default of SQLCipher 4.
        case sha512 = "SHA512"
    }

    /// A major version of SQLCipher, for its default settings.
    /// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_compatibility>
    public enum Compatibility: Int, Sendable, Codable, CaseIterable {
        /// Pages of 1024 bytes without authentication, 4,000 rounds of PBKDF2 with SHA-1.
        case sqlCipher1 = 1
        /// Pages of 1024 bytes, SHA-1, 4,000 rounds.
        case sqlCipher2 = 2
        /// Pages of 1024 bytes, SHA-1, 64,000 rounds.
        case sqlCipher3 = 3
        /// Pages of 4096 bytes, SHA-512, 256,000 rounds.
        case sqlCipher4 = 4
    }

    /// The version of SQLCipher that supplies every setting that is `nil`. Default ``Compatibility/sqlCipher4``.
    public var compatibility: Compatibility
    /// Bytes per page: a power of two from 1024 to 65536. SQLite also has pages of 512 bytes, but with these SQLCipher
    /// writes heap memory into the file. <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_page_size>
    public var pageSize: Int?
    /// Number of PBKDF2 iterations for a passphrase, at least 1.
    /// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#kdf_iter>
    public var kdfIterations: Int?
    /// Hash algorithm of the key derivation. <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_kdf_algorithm>
    public var kdfAlgorithm: Algorithm?
    /// Hash algorithm of the page authentication.
    /// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_hmac_algorithm>
    public var hmacAlgorithm: Algorithm?
    /// Whether pages are authenticated. Without authentication a changed page goes unnoticed: use false only to read
    /// old files. <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_use_hmac>
    public var usesHMAC: Bool?
    /// Bytes at the beginning of the file that are not encrypted: 0, 16, 32, 48 or 64. Default 0.
    ///
    /// This is for systems that have to recognise a SQLite file. The file then has no room for the salt: it must be
    /// given as ``salt`` or be part of the key, and whoever loses the salt loses the store. Nothing authenticates these
    /// bytes, so anybody who can write to the file can change them. Opening refuses a header that such a store cannot
    /// have; other values in it, such as `user_version`, are believed.
    /// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_plaintext_header_size>
    public var plaintextHeaderSize: Int
    /// The salt of a store with a plaintext header, 16 bytes. It is not secret. `nil` for every other store.
    /// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_salt>
    public var salt: [UInt8]?

    /// Makes settings; what is `nil` or left out is as SQLCipher 4 has it. Values that SQLCipher does not accept are
    /// refused when a store is opened with them.
    public init(
        compatibility: Compatibility = .sqlCipher4,
        pageSize: Int? = nil,
        kdfIterations: Int? = nil,
        kdfAlgorithm: Algorithm? = nil,
        hmacAlgorithm: Algorithm? = nil,
        usesHMAC: Bool? = nil,
        plaintextHeaderSize: Int = 0,
        salt: [UInt8]? = nil
    ) {
        self.compatibility = compatibility
        self.pageSize = pageSize
        self.kdfIterations = kdfIterations
        self.kdfAlgorithm = kdfAlgorithm
        self.hmacAlgorithm = hmacAlgorithm
        self.usesHMAC = usesHMAC
        self.plaintextHeaderSize = plaintextHeaderSize
        self.salt = salt
    }

    /// The settings of files that SQLCipher 1 wrote (2008 to 2012).
    public static let sqlCipher1 = CipherSettings(compatibility: .sqlCipher1)
    /// The settings of files that SQLCipher 2 wrote (2012 to 2013).
    public static let sqlCipher2 = CipherSettings(compatibility: .sqlCipher2)
    /// The settings of files that SQLCipher 3 wrote (2013 to 2018).
    public static let sqlCipher3 = CipherSettings(compatibility: .sqlCipher3)
    /// The settings of files that SQLCipher 4 writes. This is the default.
    public static let sqlCipher4 = CipherSettings(compatibility: .sqlCipher4)

    /// Whether both have the same effect, even if one states a default and the other leaves it `nil`. For example, a
    /// page size of 4096 is the default of SQLCipher 4.
    public func isSame(as other: CipherSettings) -> Bool {
        parameters == other.parameters && salt == other.salt
    }

    func validate() throws(DatabaseError) {
        if let pageSize, !(1024...65536).contains(pageSize) || pageSize.nonzeroBitCount != 1 {
            throw .unusableSettings("A page has 1024 to 65536 bytes, a power of two; \(pageSize) was given.")
        }
        if let kdfIterations, kdfIterations < 1 || kdfIterations > Int(Int32.max) {
            throw .unusableSettings("The key derivation takes at least one iteration; \(kdfIterations) were given.")
        }
        guard [0, 16, 32, 48, 64].contains(plaintextHeaderSize) else {
            throw .unusableSettings(
                "A plaintext header has 0, 16, 32, 48 or 64 bytes; \(plaintextHeaderSize) were given."
            )
        }
        if let salt, salt.count != Key.saltByteCount {
            throw .unusableSettings("A salt has 16 bytes; \(salt.count) were given.")
        }
        if salt != nil, plaintextHeaderSize == 0 {
            throw .unusableSettings("A salt was given, but without a plaintext header it stands in the file.")
        }
        // Without authentication nothing would prove that the bytes after the header are encrypted.
        if plaintextHeaderSize > 0, !parameters.usesHMAC {
            throw .unusableSettings("A plaintext header needs pages that are authenticated (usesHMAC).")
        }
    }

    /// Also validates what depends on the key.
    func validate(for key: Key) throws(DatabaseError) {
        try validate()
        guard plaintextHeaderSize > 0 else { return }
        let saltCount = (salt == nil ? 0 : 1) + (key.form == .rawWithSalt ? 1 : 0)
        guard saltCount == 1 else {
            throw .unusableSettings(
                saltCount == 0
                    ? "A store with a plaintext header does not hold its salt: give it in the settings or in the key."
                    : "The salt is given twice, in the settings and in the key."
            )
        }
    }

    var parameters: CipherParameters {
        let isOld = compatibility != .sqlCipher4
        let iterations: Int
        switch compatibility {
        case .sqlCipher1, .sqlCipher2: iterations = 4000
        case .sqlCipher3: iterations = 64_000
        case .sqlCipher4: iterations = 256_000
        }
        return CipherParameters(
            pageSize: pageSize ?? (isOld ? 1024 : 4096),
            kdfIterations: kdfIterations ?? iterations,
            kdfAlgorithm: kdfAlgorithm ?? (isOld ? .sha1 : .sha512),
            hmacAlgorithm: hmacAlgorithm ?? (isOld ? .sha1 : .sha512),
            usesHMAC: usesHMAC ?? (compatibility != .sqlCipher1),
            plaintextHeaderSize: plaintextHeaderSize
        )
    }

    /// Whether the setting has to be set after `cipher_compatibility`. Always true for the size of the plaintext
    /// header, because `cipher_compatibility` does not set it, so that it would have the default of the process.
    func differsFromCompatibility(_ pragma: String) -> Bool {
        let defaults = CipherSettings(compatibility: compatibility).parameters
        return pragma == "cipher_plaintext_header_size"
            || zip(parameters.pragmas, defaults.pragmas).contains { $0.name == pragma && $0 != $1 }
    }

    /// Whether each page has an authentication code, so that a change to it is noticed. SQLCipher 1 has no such codes.
    /// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_use_hmac
    public var isAuthenticated: Bool { parameters.usesHMAC }

    /// Whether SQLCipher 4 opens such a store with the key and no settings.
    var isDefault: Bool { parameters == CipherSettings.sqlCipher4.parameters }
}

extension CipherSettings: CustomStringConvertible {
    /// The settings by SQLCipher's names: `SQLCipher 4`, or `SQLCipher 4 with cipher_page_size = 8192`.
    public var description: String {
        let name = "SQLCipher \(compatibility.rawValue)"
        let defaults = CipherSettings(compatibility: compatibility).parameters.pragmas
        let differences = zip(parameters.pragmas, defaults).filter { $0 != $1 }.map { "\($0.0.name) = \($0.0.value)" }
        return differences.isEmpty ? name : "\(name) with \(differences.joined(separator: ", "))"
    }
}

extension DatabaseError {
    static func unusableSettings(_ message: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .unusableSettings,
            message: message + " Nothing was read or written."
        )
    }
}
