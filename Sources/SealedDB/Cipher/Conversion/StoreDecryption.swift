/// Makes a new **plaintext** SQLite database from an encrypted store, which stays as it is.
///
/// For leaving, or for tools that know no encryption. Whoever can read the new file can read everything; it is made with
/// mode 0600, and deleting it later does not wipe it from the disk. Contents are kept as in ``StoreEncryption``.
public struct StoreDecryption: Sendable {
    public let path: String
    public let plaintextPath: String
    private let key: Key
    private let settings: CipherSettings

    public init(path: String, key: Key, cipherSettings: CipherSettings = .init(), plaintextPath: String) {
        self.path = path
        self.plaintextPath = plaintextPath
        self.key = key
        self.settings = cipherSettings
    }

    /// Decrypts, from a snapshot of the store: others may go on using it.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``; no new file is left then. ``DatabaseError/Reason/alreadyExists`` if
    ///   `plaintextPath` exists.
    @discardableResult
    public func run(
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        let database = NewStore(path: plaintextPath, sealing: Sealing())
        try database.requireAbsent()
        let opening = try StoreOpening.existing(path, key: key, settings: settings)
        try opening.requireAuthenticPages()
        try LogDamage.requireNone(ofStore: opening.path ?? path)
        let source = try opening.open()
        defer { source.close() }
        return try database.make(
            from: source,
            method: .rows,
            context: "Nothing was decrypted, and \(path) is unchanged",
            progress: progress
        )
    }
}
