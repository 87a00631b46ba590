import Foundation

/// How a file is encrypted; without a key it is not.
struct Sealing {
    var key: Key?
    var settings = CipherSettings()

    /// Whether pages can be taken over as they are, under another key. The space that a page reserves must be the same,
    /// and so must be what is kept there.
    func hasLayout(of other: Sealing) -> Bool {
        let own = settings.parameters
        let others = other.settings.parameters
        return (key == nil) == (other.key == nil) && own.pageSize == others.pageSize
            && own.usesHMAC == others.usesHMAC && own.hmacAlgorithm == others.hmacAlgorithm
    }
}

extension Sealing {
    /// What must be true of the key before the file is all there is of some data: it is confirmed, and opens the file as it
    /// was read again. Which writes nothing: what was verified stays what it was.
    /// - Parameter path: of the file, which nobody has open.
    func confirm(for path: String, isBrief: Bool = false) throws(DatabaseError) {
        guard let again = try key?.confirmed(isBrief: isBrief) else { return }
        let opening = StoreOpening(
            path: path,
            key: again,
            settings: settings,
            createsFirstPage: false,
            takesLock: false
        )
        let connection = try opening.forLooking.open()
        defer { connection.close() }
        _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
        for suffix in ["-journal", "-wal"] where FileSystem.mayExist(path + suffix) {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .unverified,
                message: "Somebody has put \(path + suffix) beside the new file, which would be changed by it."
            )
        }
    }
}

/// How large a database is.
struct PageTotals {
    let count: Int64
    /// Bytes per page.
    let size: Int
}

extension PageTotals {
    init(of connection: Connection) throws(DatabaseError) {
        count = try connection.integer("PRAGMA page_count") ?? 0
        size = Int(try connection.integer("PRAGMA page_size") ?? 0)
        // SQLCipher answers this pragma itself, and with no text, but no error either, where memory runs out.
        guard size > 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_NOMEM,
                message: "SQLCipher does not tell the size of a page: memory ran out. Try again."
            )
        }
    }
}
