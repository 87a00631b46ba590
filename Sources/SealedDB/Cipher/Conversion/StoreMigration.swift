/// Gives a store other cipher settings and, if wanted, another key, by copy, verify, swap. Use it for stores of
/// SQLCipher 1, 2 and 3, and to change any setting of a store of SQLCipher 4.
///
/// The contents are kept as in ``StoreEncryption``, and so is the journal mode. Locks and safety are those of
/// ``KeyRotation``. SQLCipher's own `cipher_migrate` is not used: some of its failures leave a connection unusable, and
/// it knows only the default settings of each version.
public struct StoreMigration: Sendable {
    /// Path of the store; a symbolic link is followed and kept.
    public let path: String
    private let key: Key
    private let newKey: Key
    private let oldSettings: CipherSettings?
    private let newSettings: CipherSettings
    private let busyTimeout: Double
    private let allowsUnauthenticated: Bool
    private let ignoresUnseenUsers: Bool

    /// Describes a migration. Nothing is read or written before ``plan()`` or ``run(progress:)`` is called.
    /// - Parameters:
    ///   - path: path of the store.
    ///   - key: the key that the store has.
    ///   - oldSettings: the settings that the store has. `nil`, the default, finds them out as ``StoreDiagnosis`` does.
    ///     Settings with a plaintext header must be given, with the salt.
    ///   - allowsUnauthenticated: whether settings without page authentication, such as those of SQLCipher 1, are tried
    ///     when the settings are found out. Default false: somebody without the key may have changed such a store, and
    ///     the new store would authenticate the changes.
    ///   - newSettings: the settings that the store gets. Default: those of SQLCipher 4.
    ///   - newKey: the key that the store gets. `nil`, the default, keeps the key.
    ///   - busyTimeout: how long to wait for others to release the store.
    ///   - ignoresUnseenUsers: as in ``KeyRotation``.
    public init(
        path: String,
        key: Key,
        from oldSettings: CipherSettings? = nil,
        allowsUnauthenticated: Bool = false,
        to newSettings: CipherSettings = .init(),
        newKey: Key? = nil,
        busyTimeout: Duration = .zero,
        ignoresUnseenUsers: Bool = false
    ) {
        self.path = path
        self.key = key
        self.newKey = newKey ?? key
        self.oldSettings = oldSettings
        self.allowsUnauthenticated = allowsUnauthenticated
        self.newSettings = newSettings
        self.busyTimeout = busyTimeout.seconds
        self.ignoresUnseenUsers = ignoresUnseenUsers
    }

    /// Opens the store, and checks locks, free space and permissions. Writes nothing.
    /// - Throws: the ``DatabaseError`` that ``run(progress:)`` would throw before it writes.
    public func plan() throws(DatabaseError) -> KeyRotation.Plan {
        try replacement().plan()
    }

    /// Migrates the store.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store is unchanged.
    ///   ``DatabaseError/Reason/unusableSettings`` if the store already has this key and these settings.
    @discardableResult
    public func run(
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        try replacement().run(progress: progress)
    }

    private func replacement() throws(DatabaseError) -> StoreReplacement {
        try newSettings.validate(for: newKey)
        try SlotFiles.requireNone(
            path,
            "a migration would leave them with a data key that opens nothing",
            remedy: "Back it up under a key of its own, which has no slots, and migrate the backup."
        )
        let old: CipherSettings
        if let oldSettings { old = oldSettings } else { old = try foundSettings() }
        guard !old.isSame(as: newSettings) || newKey != key else {
            throw .unusableSettings("\(path) has these settings already (\(newSettings)). It was not changed.")
        }
        return StoreReplacement(
            path: path,
            old: Sealing(key: key, settings: old),
            new: Sealing(key: newKey, settings: newSettings),
            busyTimeout: busyTimeout,
            ignoresUnseenUsers: ignoresUnseenUsers,
            words: .init(name: "The migration", before: "unchanged", after: "has the new settings")
        )
    }

    private func foundSettings() throws(DatabaseError) -> CipherSettings {
        try StoreDiagnosis.examine(path: path, key: key, allowsUnauthenticated: allowsUnauthenticated)
            .settingsOfSoundStore()
    }
}
