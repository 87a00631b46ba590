import Foundation

/// What a check of a whole store found.
public struct IntegrityReport: Sendable, Codable, Hashable {
    /// Path of the store, symbolic links followed.
    public let path: String
    /// Bytes of the main file.
    public let fileSize: Int64
    /// Bytes per page.
    public let pageSize: Int
    /// Pages that the database says it has.
    public let pageCount: Int64
    /// Numbers of the pages whose authentication code does not match their contents; the first is 1.
    public let damagedPages: [Int64]
    /// What else is wrong, in SQLite's words.
    public let structureProblems: [String]

    /// Whether nothing is wrong.
    public let isSound: Bool

    /// Checks every page's authentication code, the structure, and the size of the file, on a fresh connection.
    ///
    /// Changes left in a write-ahead log are moved into the file first if nobody else has it open.
    /// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_integrity_check>,
    /// <https://www.sqlite.org/pragma.html#pragma_quick_check>
    /// - Throws: ``DatabaseError`` if the store cannot be opened: ``DatabaseError/Reason/wrongKey``,
    ///   ``DatabaseError/Reason/damaged`` and others. Damage to an open store is reported, not thrown.
    public static func verify(
        path: String,
        key: Key?,
        cipherSettings: CipherSettings = .init(),
        busyTimeout: Double = 2
    ) throws(DatabaseError) -> IntegrityReport {
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        let opening = StoreOpening(path: resolved, key: key, settings: cipherSettings, busyTimeout: busyTimeout)
        let connection: Connection
        do throws(DatabaseError) {
            connection = try opening.open()
        } catch {
            guard error.reason == .wrongKey, let key,
                try hasSoundPage(path: resolved, key: key, settings: cipherSettings)
            else { throw error }
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The key is right, but the first page of \(resolved) is damaged, so nothing else can be read. The \
                    file was not changed. Restore it from a backup.
                    """
            )
        }
        defer { connection.close() }
        return try check(connection, path: resolved, sealing: Sealing(key: key, settings: cipherSettings))
    }

    /// `cipher_integrity_check` works on a connection that cannot read page 1: if any other page authenticates, the
    /// key is right.
    private static func hasSoundPage(
        path: String,
        key: Key,
        settings: CipherSettings
    ) throws(DatabaseError) -> Bool {
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        try StoreOpening(path: path, settings: settings).applyKey(key, to: connection)
        let damaged = try connection.texts("PRAGMA cipher_integrity_check").count
        let pages = try connection.mainFileSize() / Int64(settings.pageSize ?? 4096)
        return pages > 1 && damaged < pages
    }

    static func check(
        _ connection: Connection,
        path: String,
        sealing: Sealing
    ) throws(DatabaseError) -> IntegrityReport {
        // What is still in the log would be missed, or look damaged. Best effort: others may be reading.
        _ = try? connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
        let pageSize = Int(try connection.integer("PRAGMA page_size") ?? 0)
        let pageCount = try connection.integer("PRAGMA page_count") ?? 0
        let fileSize = try connection.mainFileSize()
        var damaged: [Int64] = []
        var problems: [String] = []
        let isBeyondCheck = fileSize > 1 << 32 && Engine.sqliteVersionNumber < 3_053_000
        if sealing.key != nil, sealing.settings.parameters.usesHMAC, !isBeyondCheck {
            for row in try connection.texts("PRAGMA cipher_integrity_check") {
                if let page = row.split(separator: " ").last.flatMap({ Int64($0) }) {
                    damaged.append(page)
                } else {
                    problems.append(row)
                }
            }
        }
        do throws(DatabaseError) {
            // Beyond 4 GiB SQLCipher before 4.17 calls every page damaged; the full check reads them instead.
            let pragma = isBeyondCheck ? "integrity_check" : "quick_check"
            problems += try StructureCheck(connection: connection).problems(pragma)
        } catch {
            let isDamage = [SQLITE_CORRUPT, SQLITE_NOTADB].contains(error.code) || !damaged.isEmpty
            guard isDamage else { throw error }
            problems.append(error.message)
        }
        // cipher_integrity_check does not notice missing pages.
        if pageCount * Int64(pageSize) > fileSize {
            let needed = pageCount * Int64(pageSize)
            problems.append("the file has \(fileSize) bytes, but its \(pageCount) pages need \(needed)")
        }
        return IntegrityReport(
            path: path,
            fileSize: fileSize,
            pageSize: pageSize,
            pageCount: pageCount,
            damagedPages: damaged,
            structureProblems: problems,
            isSound: damaged.isEmpty && problems.isEmpty
        )
    }
}
