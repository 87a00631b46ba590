import Foundation

/// What a file is, as far as can be told, with and without its key.
public struct StoreInfo: Sendable, Codable, Hashable {
    public enum Kind: String, Sendable, Codable {
        /// No byte yet: a store that nothing was written to.
        case emptyFile
        /// A SQLite database in the clear.
        case plaintext
        /// No header that could be recognised, and a whole number of pages: encrypted, as far as can be told.
        case encrypted
        case directory
        case notADatabase
    }

    /// What only the key (or a plaintext database) tells.
    public struct Details: Sendable, Codable, Hashable {
        /// Bytes per page.
        public let pageSize: Int
        public let pageCount: Int64
        public let freePages: Int64
        /// `wal`, or `delete` for all other modes, of which the file knows nothing.
        public let journalMode: String
        public let userVersion: Int64
        public let applicationID: Int64
        public let tableCount: Int64
        /// As pragmas, such as `PRAGMA kdf_iter = 256000;`.
        public let cipherSettings: [String]
    }

    /// Symbolic links followed.
    public let path: String
    public let kind: Kind
    /// Bytes.
    public let fileSize: Int64
    /// Which of `-wal`, `-shm` and `-journal` stand beside the file.
    public let siblings: [String]
    /// The first 16 bytes of an encrypted store in hex digits; not secret.
    public let salt: String?
    public let details: Details?

    /// Examines a file, and writes nothing, not even beside it.
    /// - Parameter key: `nil` to say only what can be known without it.
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/noSuchFile``, or that of opening with a wrong key.
    ///   ``StoreDiagnosis`` tells more about a file that does not open.
    public static func inspect(
        path: String,
        key: Key?,
        cipherSettings: CipherSettings = .init()
    ) throws(DatabaseError) -> StoreInfo {
        try inspect(path: path, key: key, cipherSettings: cipherSettings, opens: true)
    }

    /// Says only what can be seen from outside, of a plaintext database too.
    public static func outside(path: String) throws(DatabaseError) -> StoreInfo {
        try inspect(path: path, key: nil, cipherSettings: .init(), opens: false)
    }

    private static func inspect(
        path: String,
        key: Key?,
        cipherSettings: CipherSettings,
        opens: Bool
    ) throws(DatabaseError) -> StoreInfo {
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        let status = try FileSystem.status(resolved)
        let siblings = ["-wal", "-shm", "-journal"].filter { FileSystem.exists(resolved + $0) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let kind: Kind = status.st_mode & S_IFMT == S_IFDIR ? .directory : .notADatabase
            return StoreInfo(path: resolved, kind: kind, fileSize: 0, siblings: siblings, salt: nil, details: nil)
        }
        let connection = try Connection(path: resolved, flags: SQLITE_OPEN_READONLY)
        let size = try connection.mainFileSize()
        let start = try connection.fileBytes(count: 100)
        connection.close()
        let kind = kind(start: start, size: size)
        var details: Details?
        if opens, kind == .plaintext || key != nil, kind != .emptyFile {
            let flags = SQLITE_OPEN_READONLY
            let opening = StoreOpening(path: resolved, key: key, settings: cipherSettings, flags: flags)
            details = try self.details(opening)
        }
        // With a plaintext header the salt stands elsewhere.
        let hasSalt = kind == .encrypted && !StoreHeader.hasMagic(start)
        let salt = hasSalt ? Hexadecimal.string(start.prefix(Key.saltByteCount)) : nil
        return StoreInfo(
            path: resolved,
            kind: kind,
            fileSize: size,
            siblings: siblings,
            salt: salt,
            details: details
        )
    }

    private static func kind(start: [UInt8], size: Int64) -> Kind {
        if size == 0 { return .emptyFile }
        if StoreHeader.isPlaintext(start) { return .plaintext }
        return size >= StoreHeader.smallestPage && size % StoreHeader.smallestPage == 0 ? .encrypted : .notADatabase
    }

    private static func details(_ opening: StoreOpening) throws(DatabaseError) -> Details {
        try opening.look { connection throws(DatabaseError) in try details(connection, opening) }
    }

    private static func details(_ connection: Connection, _ opening: StoreOpening) throws(DatabaseError) -> Details {
        let settings = opening.key == nil ? [] : try connection.texts("PRAGMA cipher_settings")
        let sealing = Sealing(key: opening.key, settings: opening.settings)
        return Details(
            pageSize: Int(try connection.integer("PRAGMA page_size") ?? 0),
            pageCount: try connection.integer("PRAGMA page_count") ?? 0,
            freePages: try connection.integer("PRAGMA freelist_count") ?? 0,
            journalMode: try connection.storedJournalMode(sealing),
            userVersion: try connection.integer("PRAGMA user_version") ?? 0,
            applicationID: try connection.integer("PRAGMA application_id") ?? 0,
            tableCount: try connection.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table'") ?? 0,
            cipherSettings: settings
        )
    }
}
