import Foundation

/// An encrypted image of a database, made by way of a file: SQLite's own serialization decrypts.
struct SerializedStore {
    private let base: String

    /// - Parameter store: `nil` for a database in memory.
    init(beside store: String?) {
        base = store ?? NSTemporaryDirectory() + "memory"
    }

    func image(of connection: Connection, sealing: Sealing) throws(DatabaseError) -> Data {
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
