import Foundation

/// Serializes databases into bytes.
///
/// SQLite's own serialization returns plaintext, so an encrypted image is made through a file. SQLite's serialization
/// also reports no errors: a page that it cannot read becomes zeros. So a plaintext image is made from a copy in memory
/// that was compared with the database.
struct SerializedStore {
    private let base: String

    /// - Parameter store: the path of the store; `nil` for a database in memory.
    init(beside store: String?) {
        base = store ?? NSTemporaryDirectory() + "memory"
    }

    /// The database as plaintext, even if it is encrypted.
    static func plaintextImage(of connection: Connection) throws(DatabaseError) -> Data {
        try connection.snapshot { () throws(DatabaseError) in
            let totals = try PageTotals(of: connection)
            guard totals.count > 0 else { return Data() }
            let copy = try emptyCopy(of: connection, pageSize: totals.size)
            defer { copy.close() }
            copy.acceptUnknownCollations()
            try Backup.copy(from: connection, to: copy, pagesPerStep: -1) { _, _ in }
            guard try ContentDigest.of(copy) == ContentDigest.of(connection) else {
                throw DatabaseError(
                    extendedCode: SQLITE_CORRUPT,
                    reason: .unverified,
                    message: "The copy to be serialized is not what the database holds. The database is unchanged."
                )
            }
            return try copy.plaintextImage()
        }
    }

    /// An empty database in memory with the same page layout. SQLCipher does not encrypt pages in memory.
    private static func emptyCopy(of connection: Connection, pageSize: Int) throws(DatabaseError) -> Connection {
        guard var parameters = try connection.cipherParameters() else {
            let copy = try StoreOpening().open()
            try copy.run("PRAGMA page_size = \(pageSize)")
            return copy
        }
        parameters.plaintextHeaderSize = 0
        return try StoreOpening(key: .random(), settings: parameters.settings()).open()
    }

    func image(of connection: Connection, sealing: Sealing) throws(DatabaseError) -> Data {
        // A database without pages would give an empty image, which does not show its key.
        if try PageTotals(of: connection).count == 0 { try connection.writeFirstPage() }
        let copy = try StoreCopy(beside: base, takesAttributes: false)
        defer { copy.discard() }
        _ = try copy.fill(from: connection, sealing: sealing, method: .pages, setsWAL: false, progress: nil)
        let opening = StoreOpening(path: copy.path, key: sealing.key, settings: sealing.settings, takesLock: false)
        let file = try opening.open()
        defer { file.close() }
        guard try file.text("PRAGMA journal_mode = DELETE") == "delete", file.close() else {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                message: "The copy could not be finished, and was removed. The database is unchanged."
            )
        }
        do {
            return try Data(contentsOf: URL(fileURLWithPath: copy.path))
        } catch {
            throw DatabaseError(
                extendedCode: SQLITE_IOERR,
                reason: .ioError,
                message: "The copy could not be read, and was removed. The database is unchanged."
            )
        }
    }
}
