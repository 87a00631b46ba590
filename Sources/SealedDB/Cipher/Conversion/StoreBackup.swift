/// Makes an encrypted copy of a store while others use it, under a new name.
///
/// The copy shows the store at one moment. In WAL mode others are not affected; in the other journal modes writers wait
/// until the copy is done. It is an ordinary store with the same settings, under the store's key or a key of its own.
///
/// Each page is authenticated, encrypted anew, written, read back, and compared with the page of the store, on all
/// processors. SQLCipher opens the copy and reads a sample of its pages. The copy has a salt of its own, also under the
/// store's key. Under the same raw key pages keep their ciphertext, and get new codes: who has both files sees which pages
/// of them are equal, as one sees it of two copies of the store that were made by other means.
public struct StoreBackup: Sendable {
    /// Path of the store.
    public let path: String
    /// Path of the new file. It must not exist.
    public let backupPath: String
    private let key: Key
    private let backupKey: Key?
    private let settings: CipherSettings
    private let busyTimeout: Double

    /// Describes a backup; nothing is read or written before ``run(progress:)``.
    /// - Parameters:
    ///   - path: path of the store.
    ///   - key: its key.
    ///   - cipherSettings: the settings of the store, which the copy gets too. Default: those of SQLCipher 4.
    ///   - backupPath: path of the copy. It must not exist.
    ///   - backupKey: the key of the copy. `nil`, the default, means the store's key: the copy of a store with slots then
    ///     has the same slots. Under a key of its own it has none.
    ///   - busyTimeout: how long to wait for a writer.
    public init(
        path: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        to backupPath: String,
        backupKey: Key? = nil,
        busyTimeout: Duration = .seconds(2)
    ) {
        self.path = path
        self.key = key
        self.settings = cipherSettings
        self.backupPath = backupPath
        self.backupKey = backupKey
        self.busyTimeout = busyTimeout.seconds
    }

    /// Makes the copy, compares it page by page, and syncs it.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``; no new file is left then. ``DatabaseError/Reason/alreadyExists`` if `backupPath`
    ///   exists.
    @discardableResult
    public func run(
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        try runWithDoubt(progress: progress).report
    }

    /// Like ``run(progress:)``.
    /// - Returns: also why the store, and so the backup, may lack what was stored last; `nil` if nothing shows that. Nothing older
    ///   should be removed then in favour of the backup.
    package func runWithDoubt(
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> (report: KeyRotation.Report, doubt: String?) {
        try settings.validate(for: backupKey ?? key)
        var backup = NewStore(
            path: backupPath,
            sealing: Sealing(key: backupKey ?? key, settings: settings),
            confirmsKey: backupKey != nil && backupKey != key,
            storeKey: backupKey == nil ? key : nil
        )
        let mayHaveSlots = backupKey == nil && SlotFiles(of: path).mayExist
        if !mayHaveSlots { try backup.requireAbsent() }
        let opening = try StoreOpening.existing(path, key: key, settings: settings, busyTimeout: busyTimeout)
        try LogDamage.requireNone(ofStore: opening.path ?? path)
        let source = try opening.open()
        defer { source.close() }
        // The transaction keeps others from changing what is copied.
        try source.run("BEGIN")
        _ = try source.integer("SELECT count(*) FROM sqlite_schema")
        let doubt = try doubt(of: source, opening)
        // Read after what they belong to, so that they are not older.
        if backupKey == nil, let slots = try SlotCopy(opening, key, source) {
            backup = NewStore(
                path: backupPath,
                sealing: Sealing(key: slots.key, settings: settings),
                confirmsKey: false,
                storeKey: key,
                slots: slots
            )
        }
        if mayHaveSlots { try backup.requireAbsent() }
        let report = try backup.make(
            from: source,
            method: .transfer(PageSource(reading: source, key: key, settings: settings)),
            context: "No backup was made, and \(path) is unchanged",
            progress: progress
        )
        return (report, doubt)
    }

    /// What ``runWithDoubt(progress:)`` would tell. Nothing is copied.
    package func doubt() throws(DatabaseError) -> String? {
        let opening = try StoreOpening.existing(path, key: key, settings: settings, busyTimeout: busyTimeout)
        let source = try opening.open()
        // It has only read.
        defer { source.close() }
        return try doubt(of: source, opening)
    }

    private func doubt(of source: Connection, _ opening: StoreOpening) throws(DatabaseError) -> String? {
        let own = Sealing(key: key, settings: settings)
        return try UncountedPages.problem(of: source, path: opening.path ?? path, own).map {
            "The store may lack what was stored last: \($0)"
        }
    }
}
