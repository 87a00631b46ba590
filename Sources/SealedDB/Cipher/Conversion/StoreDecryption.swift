/// Makes a new **plaintext** SQLite database from an encrypted store, which stays as it is.
///
/// Use it to leave SQLCipher, or for tools that cannot decrypt. Whoever can read the new file can read everything. The
/// file has mode 0600, and deleting it later does not wipe it from the disk. The contents are kept as in
/// ``StoreEncryption``.
public struct StoreDecryption: Sendable {
    /// Path of the encrypted store.
    public let path: String
    /// Path of the new plaintext database. It must not exist.
    public let plaintextPath: String
    private let key: Key
    private let settings: CipherSettings

    /// Describes a decryption; nothing is read or written before ``run(progress:)``. The settings are those of the
    /// store, and by default SQLCipher 4's.
    public init(path: String, key: Key, cipherSettings: CipherSettings = .init(), plaintextPath: String) {
        self.path = path
        self.plaintextPath = plaintextPath
        self.key = key
        self.settings = cipherSettings
    }

    /// Decrypts a snapshot of the store. Others may go on using the store.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``; no new file is left then. ``DatabaseError/Reason/alreadyExists`` if `plaintextPath`
    ///   exists.
    @discardableResult
    public func run(
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        let database = NewStore(path: plaintextPath, sealing: Sealing(), decrypts: true)
        try database.requireAbsent()
        var opening = try StoreOpening.existing(path, key: key, settings: settings)
        // The copy is put in place only if nobody wrote meanwhile.
        opening.looksIfUnreadable = true
        try opening.requireAuthenticPages()
        try LogDamage.requireNone(ofStore: opening.path ?? path)
        let source = try opening.open()
        defer { source.close() }
        return try database.make(
            from: source,
            method: .rows(of: Sealing(key: key, settings: settings)),
            context: "Nothing was decrypted, and \(path) is unchanged",
            progress: progress
        )
    }
}
