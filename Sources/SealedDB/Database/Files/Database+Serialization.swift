public import Foundation

/// Databases as bytes, to be sent or kept elsewhere.
extension Database {
    /// All of it as the bytes of a file: encrypted under the same key and settings if it has a key, else in plaintext.
    ///
    /// An encrypted image is made from a temporary encrypted copy beside the store (for a database in memory, in the
    /// temporary directory), which is verified, and removed. The image is that of one moment, and not in WAL mode, which
    /// a database in memory cannot have.
    /// - Throws: ``DatabaseError``; also within a transaction.
    public func serialized() throws(DatabaseError) -> Data {
        try recording { () throws(DatabaseError) in
            let connection = try openConnection()
            try requireNoTransaction()
            try requireAuthenticPages()
            guard configuration.keyOrigin != nil else {
                return try Self.withoutWAL(SerializedStore.plaintextImage(of: connection))
            }
            guard let key = fittingKey?.key else { throw .notOpen }
            let sealing = Sealing(key: key, settings: configuration.cipherSettings)
            let isFile = databasePath.map { !$0.isEmpty && $0 != ":memory:" } ?? false
            let base = isFile ? databasePath.flatMap { FileSystem.resolve($0) } : nil
            return try SerializedStore(beside: base).image(of: connection, sealing: sealing)
        }
    }

    /// All of it in **plaintext**, whether it has a key or not: whoever gets the bytes can read everything.
    ///
    /// Takes the memory of two copies for a moment.
    /// - Throws: ``DatabaseError``: ``DatabaseError/Reason/damaged`` if a page is; also within a transaction.
    public func plaintextSerialized() throws(DatabaseError) -> Data {
        try recording { () throws(DatabaseError) in
            try requireNoTransaction()
            try requireAuthenticPages()
            return try Self.withoutWAL(SerializedStore.plaintextImage(of: openConnection()))
        }
    }

    func requireAuthenticPages() throws(DatabaseError) {
        try opening(flags: SQLITE_OPEN_READONLY, vfs: openedVFS, key: fittingKey?.key).requireAuthenticPages()
    }

    /// An open database in memory that begins with these bytes; later changes are in memory alone. With a key in the
    /// configuration the bytes are those of an encrypted store, and the key is proved right. In memory, pages lie
    /// encrypted too.
    /// - Throws: ``DatabaseError`` as ``openVerified()``.
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

    /// The two bytes that say how the file is written. https://www.sqlite.org/fileformat.html#file_format_version_numbers
    private static func withoutWAL(_ image: Data) -> Data {
        guard image.count >= 100 else { return image }
        var image = image
        image[18] = 1
        image[19] = 1
        return image
    }
}
