public import Foundation

/// Databases as bytes, to be sent or stored elsewhere.
extension Database {
    /// Returns the whole database as the bytes of a file: encrypted with the same key and settings if it has a key,
    /// otherwise in plaintext.
    ///
    /// An encrypted image is made from a temporary encrypted copy, which is verified and then removed. The copy lies
    /// beside the store, or in the temporary directory for a database in memory. The image shows the database at one
    /// moment. It is not in WAL mode, which a database in memory cannot have.
    /// - Throws: ``DatabaseError``, also within a transaction.
    public func serialized() throws(DatabaseError) -> Data {
        try recording { () throws(DatabaseError) in
            let connection = try openConnection()
            try requireNoTransaction()
            try requireAuthenticPages()
            guard configuration.keyOrigin != nil else {
                try connection.requirePlaintext()
                return try Self.withoutWAL(SerializedStore.plaintextImage(of: connection))
            }
            guard let key = fittingKey?.key else { throw .notOpen }
            let sealing = Sealing(key: key, settings: configuration.cipherSettings)
            let base = isOfFile ? filePath.flatMap { FileSystem.resolve($0) } : nil
            return try SerializedStore(beside: base).image(of: connection, sealing: sealing)
        }
    }

    /// Returns the whole database in **plaintext**, whether or not it has a key: anybody with the bytes can read
    /// everything.
    ///
    /// For a moment, this takes the memory of two copies.
    /// - Throws: ``DatabaseError``, with ``DatabaseError/Reason/damaged`` if a page is damaged; also within a
    ///   transaction.
    public func plaintextSerialized() throws(DatabaseError) -> Data {
        try recording { () throws(DatabaseError) in
            try requireNoTransaction()
            try requireAuthenticPages()
            return try Self.withoutWAL(SerializedStore.plaintextImage(of: openConnection()))
        }
    }

    /// Throws if the log of a store is damaged, and SQLite leaves out what stands behind the damage. Call it before the store is
    /// opened to copy all of it: SQLite has checked the log of one that somebody has open.
    package static func requireWholeLog(ofStore path: String) throws(DatabaseError) {
        if let resolved = FileSystem.resolve(path) { try LogDamage.requireNone(ofStore: resolved) }
    }

    /// How many committed transactions ``requireWholeLog(ofStore:)`` refuses to leave out. Call it before the store is opened,
    /// too.
    package static func hiddenTransactionCount(ofStore path: String) throws(DatabaseError) -> Int {
        guard let resolved = FileSystem.resolve(path) else { return 0 }
        return try LogDamage.lostTransactions(ofStore: resolved)
    }

    func requireAuthenticPages() throws(DatabaseError) {
        try opening(flags: SQLITE_OPEN_READONLY, vfs: openedVFS, key: fittingKey?.key).requireAuthenticPages()
    }

    /// Opens a database in memory that starts with these bytes as its contents. Later changes stay in memory. If the
    /// configuration has a key, the bytes must be those of an encrypted store, and the key is verified. The pages are
    /// then encrypted in memory too.
    /// - Throws: the same errors as ``openVerified()``.
    public class func opening(serialized image: Data, configuration: Configuration = .init()) throws(DatabaseError)
        -> Database
    {
        guard !image.isEmpty || configuration.keyOrigin == nil else {
            throw DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .notADatabase,
                message: "The image is empty, and every image that was made with a key has a page. Nothing was opened."
            )
        }
        let database = Database(path: nil, configuration: configuration)
        database.image = image
        defer { database.image = nil }
        try database.openVerified()
        return database
    }

    private func requireNoTransaction() throws(DatabaseError) {
        guard isInTransaction else { return }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "A database is serialized outside transactions. Commit or roll back first."
        )
    }

    /// Sets the two bytes for the write and read version of the file format to rollback-journal mode.
    /// https://www.sqlite.org/fileformat.html#file_format_version_numbers
    private static func withoutWAL(_ image: Data) -> Data {
        guard image.count >= 100 else { return image }
        var image = image
        image[18] = 1
        image[19] = 1
        return image
    }
}
