import Foundation

/// Makes a new encrypted store from a plaintext SQLite database.
///
/// Schema, rows, row ids, the counters of AUTOINCREMENT, `user_version` and `application_id` are copied row by row, and
/// a hash of all of them is compared. The store appears under its name only after it is verified. The plaintext file is
/// neither changed nor deleted.
public struct StoreEncryption: Sendable {
    /// Path of the plaintext database, which stays as it is.
    public let plaintextPath: String
    /// Path of the new encrypted store. It must not exist.
    public let path: String
    private let key: Key
    private let settings: CipherSettings

    /// Describes an encryption; nothing is read or written before ``run(progress:)``.
    /// - Parameters:
    ///   - plaintextPath: path of the plaintext database, which stays as it is.
    ///   - path: path of the new store. It must not exist.
    ///   - key: the key of the new store.
    ///   - cipherSettings: the settings of the new store. They also set its page size, whatever the plaintext file has.
    public init(plaintextPath: String, path: String, key: Key, cipherSettings: CipherSettings = .init()) {
        self.plaintextPath = plaintextPath
        self.path = path
        self.key = key
        self.settings = cipherSettings
    }

    /// Encrypts.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``; no new file is left then. ``DatabaseError/Reason/alreadyExists`` if `path` exists,
    ///   ``DatabaseError/Reason/notADatabase`` if the source is not plaintext SQLite.
    @discardableResult
    public func run(
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        try Engine.requireCodec()
        try settings.validate(for: key)
        let store = NewStore(path: path, sealing: Sealing(key: key, settings: settings))
        try store.requireAbsent()
        guard let resolved = FileSystem.resolve(plaintextPath) else {
            throw .system("Cannot open \(plaintextPath)", reason: .noSuchFile)
        }
        guard try FileSystem.status(resolved).st_mode & S_IFMT == S_IFREG else {
            // SQLite would wait until somebody writes to a pipe.
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(plaintextPath) is not a regular file. Nothing was changed."
            )
        }
        try StoreName.requireOneName(resolved)
        try LogDamage.requireNone(ofStore: resolved)
        let source = try Connection(path: plaintextPath, flags: SQLITE_OPEN_READONLY)
        defer { source.close() }
        source.setBusyTimeout(seconds: 2)
        guard try StoreHeader.isPlaintext(source.fileBytes(count: 100)) else {
            throw DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .notADatabase,
                message: "\(plaintextPath) is not a plaintext SQLite database. Nothing was changed."
            )
        }
        return try store.make(
            from: source,
            method: .rows(of: Sealing()),
            setsWAL: false,
            context: "No store was made, and \(plaintextPath) is unchanged",
            progress: progress
        )
    }
}
