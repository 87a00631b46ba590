/// How a store is encrypted. The defaults are SQLCipher 4's, and the stock `sqlcipher` shell opens such a store with
/// the key alone; any other setting must be given again at every opening.
///
/// They are applied between the key and the first read, the only moment at which they work, and read back, because
/// SQLCipher ignores what it does not like. <https://www.zetetic.net/sqlcipher/sqlcipher-api/>
public struct CipherSettings: Sendable, Hashable {
    /// Hash of the page authentication and of the key derivation.
    public enum Algorithm: String, Sendable {
        case sha1 = "SHA1"
        case sha256 = "SHA256"
        case sha512 = "SHA512"
    }

    /// Bytes per page: a power of two from 512 to 65536. `nil` means SQLCipher's 4096.
    public var pageSize: Int?
    /// Rounds of PBKDF2 for a passphrase. `nil` means SQLCipher's 256,000.
    public var kdfIterations: Int?
    /// `nil` means SQLCipher's SHA-512.
    public var kdfAlgorithm: Algorithm?
    /// `nil` means SQLCipher's SHA-512.
    public var hmacAlgorithm: Algorithm?

    public init(
        pageSize: Int? = nil,
        kdfIterations: Int? = nil,
        kdfAlgorithm: Algorithm? = nil,
        hmacAlgorithm: Algorithm? = nil
    ) {
        self.pageSize = pageSize
        self.kdfIterations = kdfIterations
        self.kdfAlgorithm = kdfAlgorithm
        self.hmacAlgorithm = hmacAlgorithm
    }

    func validate() throws(DatabaseError) {
        if let pageSize, !(512...65536).contains(pageSize) || pageSize.nonzeroBitCount != 1 {
            throw .unusableSettings("A page has 512 to 65536 bytes, a power of two; \(pageSize) was given.")
        }
        if let kdfIterations, kdfIterations < 1 || kdfIterations > Int(Int32.max) {
            throw .unusableSettings("The key derivation takes at least one iteration; \(kdfIterations) were given.")
        }
    }

    /// The pragmas with the value that each must read back.
    var pragmas: [(name: String, value: String)] {
        var result: [(String, String)] = []
        if let pageSize { result.append(("cipher_page_size", String(pageSize))) }
        if let kdfIterations { result.append(("kdf_iter", String(kdfIterations))) }
        if let kdfAlgorithm { result.append(("cipher_kdf_algorithm", "PBKDF2_HMAC_\(kdfAlgorithm.rawValue)")) }
        if let hmacAlgorithm { result.append(("cipher_hmac_algorithm", "HMAC_\(hmacAlgorithm.rawValue)")) }
        return result
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
