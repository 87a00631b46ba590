import Foundation

/// What a file is, as far as that can be found out with or without its key.
public struct StoreInfo: Sendable, Codable, Hashable {
    /// What kind of file it is, told from its first bytes and its size.
    public enum Kind: String, Sendable, Codable {
        /// The file has no bytes: nothing was written to the store yet.
        case emptyFile
        /// A plaintext SQLite database.
        case plaintext
        /// The file has no plaintext header, and a whole number of pages: it seems to be encrypted.
        case encrypted
        /// The path is that of a directory.
        case directory
        /// Neither an SQLite database nor a file that can be an encrypted store.
        case notADatabase
    }

    /// What can be read only with the key, or in a plaintext database.
    public struct Details: Sendable, Codable, Hashable {
        /// Bytes per page.
        public let pageSize: Int
        /// The number of pages.
        public let pageCount: Int64
        /// The number of pages that hold nothing; `VACUUM` gives them back.
        public let freePages: Int64
        /// `wal`, or `delete` for all other modes, which SQLite does not store in the file.
        public let journalMode: String
        /// What `PRAGMA user_version` has, which is yours to use.
        public let userVersion: Int64
        /// What `PRAGMA application_id` has, by which programs know their files.
        public let applicationID: Int64
        /// The number of tables, with those that SQLite keeps for itself.
        public let tableCount: Int64
        /// The settings as pragmas, such as `PRAGMA kdf_iter = 256000;`.
        public let cipherSettings: [String]
    }

    /// Absolute path, with symbolic links followed.
    public let path: String
    /// What kind of file it is.
    public let kind: Kind
    /// Size of the main file in bytes.
    public let fileSize: Int64
    /// Those of `-wal`, `-shm` and `-journal` that exist beside the file.
    public let siblings: [String]
    /// The first 16 bytes of an encrypted store in hex digits. They are not secret. `nil` with a plaintext header.
    public let salt: String?
    /// What only the key opens; `nil` if the store is encrypted and no key was given, and if the file is no database.
    public let details: Details?

    /// Examines a file. Writes nothing, not even beside the file.
    /// - Parameters:
    ///   - path: path of the file.
    ///   - key: `nil` to report only what can be found out without a key.
    ///   - cipherSettings: the settings of the store. Default: those of SQLCipher 4.
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/noSuchFile``, or the error of opening with a wrong key.
    ///   ``StoreDiagnosis`` tells more about a file that does not open.
    public static func inspect(
        path: String,
        key: Key?,
        cipherSettings: CipherSettings = .init()
    ) throws(DatabaseError) -> StoreInfo {
        try inspect(path: path, key: key, cipherSettings: cipherSettings, opens: true)
    }

    /// Reports only what can be found out without opening the file as a database, even if it is plaintext.
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/noSuchFile``, or an I/O error.
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
        let siblings = ["-wal", "-shm", "-journal"].filter { FileSystem.mayExist(resolved + $0) }
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
        // With a plaintext header the salt is not in the file.
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
        if StoreHeader.isEmpty(fileSize: size) { return .emptyFile }
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
