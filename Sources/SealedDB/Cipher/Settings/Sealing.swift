import Foundation

/// How a file is encrypted: key and settings. Without a key it is plaintext.
struct Sealing {
    var key: Key?
    var settings = CipherSettings()

    /// Whether pages of `other` can be copied as they are, and encrypted under this key: both have a key or neither has
    /// one, and page size, reserved bytes and authentication are the same.
    func hasLayout(of other: Sealing) -> Bool {
        let own = settings.parameters
        let others = other.settings.parameters
        return (key == nil) == (other.key == nil) && own.pageSize == others.pageSize
            && own.usesHMAC == others.usesHMAC && own.hmacAlgorithm == others.hmacAlgorithm
    }
}

extension Sealing {
    /// Confirms the key before the file becomes the only copy of some data: reads the key again from where it came
    /// from, and opens the file with what was read. Writes nothing, so the verified file stays as it is. A key ring cannot be
    /// changed from then on, until the copy has its name or is discarded.
    /// - Parameters:
    ///   - copy: the file. Nobody may have it open.
    ///   - isBrief: as in ``Key/confirmed(isBrief:keptBy:)``.
    func confirm(for copy: StoreCopy, isBrief: Bool = false) throws(DatabaseError) {
        guard let again = try key?.confirmed(isBrief: isBrief, keptBy: copy.keyHold) else { return }
        let path = copy.path
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

/// The size of a database in pages.
struct PageTotals {
    var count: Int64
    /// Bytes per page.
    let size: Int
}

extension PageTotals {
    init(of connection: Connection) throws(DatabaseError) {
        count = try connection.integer("PRAGMA page_count") ?? 0
        size = Int(try connection.integer("PRAGMA page_size") ?? 0)
        // SQLCipher answers this pragma itself. When memory runs out, it returns no text and no error.
        guard size > 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_NOMEM,
                message: "SQLCipher does not tell the size of a page: memory ran out. Try again."
            )
        }
    }
}
