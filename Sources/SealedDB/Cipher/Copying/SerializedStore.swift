import Foundation

/// Databases as bytes.
///
/// An encrypted image is made by way of a file, because SQLite's own serialization decrypts. Serialization has no errors:
/// it takes a page that it cannot read for one of zeros. So what is serialized is a copy in memory, which was compared.
struct SerializedStore {
    private let base: String

    /// - Parameter store: `nil` for a database in memory.
    init(beside store: String?) {
        base = store ?? NSTemporaryDirectory() + "memory"
    }

    /// In plaintext, whatever encrypts the database.
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

    /// In memory, which SQLCipher does not encrypt, but with pages laid out alike.
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
        // An image without a page would not show which key it has.
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
