/// How a store is kept and opened, in words that mean the same to every subject.
struct StoreOptions: Sendable, Hashable {
    enum Secret: Sendable, Hashable {
        /// 32 bytes without derivation: what an encrypted store has here unless the case is about keys.
        case raw
        /// A second raw key, to rotate to.
        case otherRaw
        case passphrase
        /// What SQLCipher derives from the passphrase, with the store's salt.
        case derived(hexadecimal: String)
        /// A file in the clear, in the encrypted build too.
        case none
    }

    var secret = Secret.raw
    /// 0 for 4096.
    var pageSize = 0
    /// `SHA1`, `SHA256`; `nil` for SQLCipher's SHA-512.
    var hmac: String?
    var omitsHMAC = false
    var locksMemory = false
    var journalMode = "wal"
    var synchronous = "full"
    /// KiB.
    var cacheSize = 32 * 1024

    static let passphrase = "correct horse battery staple"
    static let rawKey = String(repeating: "5ea1edDB", count: 8)
    static let otherRawKey = String(repeating: "5ea1edBD", count: 8)

    /// The key as SQLCipher takes it; `nil` in the plain build, and for a file in the clear.
    var keyText: String? {
        #if SQLCipher
            switch secret {
            case .raw: return "x'\(Self.rawKey)'"
            case .otherRaw: return "x'\(Self.otherRawKey)'"
            case .passphrase: return Self.passphrase
            case .derived(let hexadecimal): return "x'\(hexadecimal)'"
            case .none: return nil
            }
        #else
            return nil
        #endif
    }
}
