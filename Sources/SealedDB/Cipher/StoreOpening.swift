/// What it takes to open a connection to a store.
struct StoreOpening {
    /// `nil` in memory, empty for a temporary file.
    var path: String?
    var key: Key?
    var settings = CipherSettings()
    var flags: Int32 = SQLITE_OPEN_READWRITE
    var vfs: String?
    var busyTimeout: Double = 2
    var threading = Connection.Threading.serialized

    /// Opens; with a key: keys, applies the settings, and proves by a read that the key is right.
    ///
    /// A new store gets its first page here, so that the header can be checked before there is data in it.
    func open() throws(DatabaseError) -> Connection {
        if key != nil {
            try Engine.requireCodec()
            try settings.validate()
        }
        let connection = try Connection(path: path ?? ":memory:", flags: flags, vfs: vfs, threading: threading)
        connection.enter()
        do throws(DatabaseError) {
            connection.setBusyTimeout(seconds: busyTimeout)
            if let key { try unlock(connection, with: key) }
        } catch {
            let isOvertaken = isOvertaken(connection, by: error)
            connection.close()
            if isOvertaken { return try open() }
            throw error
        }
        connection.leave()
        return connection
    }

    var isFile: Bool { path.map { !$0.isEmpty && $0 != ":memory:" } ?? false }
    private var name: String { path ?? "The database in memory" }

    private func unlock(_ connection: Connection, with key: Key) throws(DatabaseError) {
        let header = try connection.mainFileHeader()
        guard header != StoreHeader.plaintextMagic else {
            throw DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .plaintext,
                message: """
                    \(name) is a plaintext SQLite database, but a key was given. It was not changed. Open it without \
                    a key, or encrypt it into a new store first.
                    """
            )
        }
        try applyKey(key, to: connection)
        try connection.run("PRAGMA temp_store = MEMORY")
        do throws(DatabaseError) {
            _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
        } catch {
            throw try StoreHeader.diagnose(error, header: header, connection: connection, name: name)
        }
        if header.isEmpty, isFile, flags & SQLITE_OPEN_READONLY == 0 { try createFirstPage(connection) }
        if let path { key.derivedKeys?.storeExists(path) }
    }

    func applyKey(_ key: Key, to connection: Connection) throws(DatabaseError) {
        let code = try withKeySpec(of: key, for: connection) { spec in connection.key(spec) }
        guard code == SQLITE_OK else {
            throw DatabaseError(
                extendedCode: code,
                message: "SQLCipher did not take the key for \(name). Nothing was read or written."
            )
        }
        // Undoes process-wide cipher_default_* that others may have set, and pins the format of the file.
        try connection.run("PRAGMA cipher_compatibility = 4")
        for (pragma, value) in settings.pragmas {
            try connection.run("PRAGMA \(pragma) = \(value)")
            let effective = try connection.text("PRAGMA \(pragma)")
            guard effective == value else {
                throw .unusableSettings("\(pragma) = \(value) was not accepted (it is \(effective ?? "unset")).")
            }
        }
        guard try connection.text("PRAGMA cipher_provider") != nil else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .wrongEngine,
                message: "\(name) was keyed, but no cipher is active. It was closed before anything was written."
            )
        }
    }

    private func createFirstPage(_ connection: Connection) throws(DatabaseError) {
        try connection.run("BEGIN IMMEDIATE")
        // Writing the cookie, even unchanged, makes SQLite write page 1.
        let version = try connection.integer("PRAGMA user_version") ?? 0
        try connection.run("PRAGMA user_version = \(version)")
        try connection.run("COMMIT")
        // In WAL mode, set by whoever created the file first, page 1 is still in the log.
        let header = try connection.mainFileHeader()
        guard header != StoreHeader.plaintextMagic else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .wrongEngine,
                message: "\(name) was created in plaintext although a key was given. It holds no data; delete it."
            )
        }
    }
}
