import Foundation

/// Makes a new encrypted store from a plaintext SQLite database, which stays as it is.
///
/// Schema, rows, row ids, `user_version` and `application_id` are kept; the page size becomes 4096. The store appears
/// under its name only once it is verified. The plaintext file is neither changed nor deleted.
public struct StoreEncryption: Sendable {
    public let plaintextPath: String
    public let path: String
    private let key: Key

    public init(plaintextPath: String, path: String, key: Key) {
        self.plaintextPath = plaintextPath
        self.path = path
        self.key = key
    }

    /// Encrypts.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``; no new file is left then. ``DatabaseError/Reason/alreadyExists`` if `path` exists,
    ///   ``DatabaseError/Reason/notADatabase`` if the source is not plaintext SQLite.
    @discardableResult
    public func run(
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> KeyRotation.Report {
        let start = DispatchTime.now().uptimeNanoseconds
        try Engine.requireCodec()
        guard !FileSystem.exists(path) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: "\(path) exists, and is not overwritten. Nothing was changed."
            )
        }
        // VACUUM INTO names the key in a URI, which passes through SQLite's memory. So it gets a key that is used
        // once, and the real one only reaches SQLCipher by sqlite3_key_v2.
        let temporary = try StoreCopy(beside: path, takesAttributes: false)
        defer { temporary.discard() }
        let onceOnly = try Key.random()
        let expected = try vacuum(into: temporary.path, key: onceOnly)
        let source = try StoreOpening(path: temporary.path, key: onceOnly).open()
        defer { source.close() }
        let found = try Contents(of: source)
        guard found == expected else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .unverified,
                message: "The encrypted copy differs from \(plaintextPath), and was discarded."
            )
        }
        let plan = KeyRotation.Plan(
            path: path,
            fileSize: try source.mainFileSize(),
            pageCount: try source.integer("PRAGMA page_count") ?? 0,
            pageSize: Int(try source.integer("PRAGMA page_size") ?? 0),
            journalMode: "delete",
            freeSpace: 0,
            neededSpace: 0
        )
        let copy = try StoreCopy(beside: path, takesAttributes: false)
        do throws(DatabaseError) {
            try copy.fill(from: source, key: key, settings: .init(), setsWAL: false, plan: plan, progress: progress)
        } catch {
            copy.discard()
            throw error.adding(context: "No store was made, and \(plaintextPath) is unchanged")
        }
        try copy.moveIn()
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        return KeyRotation.Report(path: path, pageCount: plan.pageCount, pageSize: plan.pageSize, seconds: seconds)
    }

    /// Schema and row counts, to compare two databases by.
    private struct Contents: Equatable {
        var schema: [String]
        var counts: [String]

        init(of connection: Connection) throws(DatabaseError) {
            schema = try connection.texts(
                "SELECT type || ':' || name || ':' || coalesce(sql, '') FROM sqlite_schema ORDER BY type, name"
            )
            let tables = try connection.texts(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"
            )
            counts = []
            for table in tables where table != "sqlite_sequence" && !table.hasPrefix("sqlite_stat") {
                let quoted = table.replacingOccurrences(of: "\"", with: "\"\"")
                let count = try connection.integer("SELECT count(*) FROM \"\(quoted)\"") ?? 0
                counts.append("\(table):\(count)")
            }
            for pragma in ["user_version", "application_id"] {
                counts.append("\(pragma):\(try connection.integer("PRAGMA \(pragma)") ?? 0)")
            }
        }
    }

    private func vacuum(into target: String, key: Key) throws(DatabaseError) -> Contents {
        let flags = SQLITE_OPEN_READONLY
        guard FileSystem.exists(plaintextPath) else {
            throw .system("Cannot open \(plaintextPath)", reason: .noSuchFile, number: ENOENT)
        }
        let connection = try Connection(path: plaintextPath, flags: flags, allowsURI: true)
        defer { connection.close() }
        connection.setBusyTimeout(seconds: 2)
        guard try connection.mainFileHeader() == StoreHeader.plaintextMagic else {
            throw DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .notADatabase,
                message: "\(plaintextPath) is not a plaintext SQLite database. Nothing was changed."
            )
        }
        try connection.run("BEGIN")
        let contents = try Contents(of: connection)
        try connection.run("COMMIT")
        // The empty file was made to own the name; VACUUM INTO accepts it.
        let allowed = CharacterSet.urlPathAllowed.subtracting(CharacterSet(charactersIn: "?#%"))
        let absolute = target.hasPrefix("/") ? target : FileManager.default.currentDirectoryPath + "/" + target
        let escaped = absolute.addingPercentEncoding(withAllowedCharacters: allowed) ?? absolute
        let statement = try connection.prepare("VACUUM INTO ?")
        defer { statement.close() }
        let uri = try key.withKeySpec { spec in
            "file:\(escaped)?key=" + String(decoding: spec, as: UTF8.self).replacingOccurrences(of: "'", with: "%27")
        }
        try statement.bind(uri, at: 1)
        while try statement.step() {}
        return contents
    }
}
