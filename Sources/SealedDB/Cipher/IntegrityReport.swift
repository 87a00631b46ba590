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
    /// - Parameters:
    ///   - isDeep: also compares every index with its table (<https://www.sqlite.org/pragma.html#pragma_integrity_check>),
    ///     and computes the authentication codes a second time, without SQLCipher. Some times as slow.
    ///   - progress: called while pages are read one by one, which SQLCipher's own check does not tell; throwing stops
    ///     the check.
    /// - Throws: ``DatabaseError`` if the store cannot be opened: ``DatabaseError/Reason/wrongKey``,
    ///   ``DatabaseError/Reason/damaged`` and others. Damage to an open store is reported, not thrown.
    public static func verify(
        path: String,
        key: Key?,
        cipherSettings: CipherSettings = .init(),
        busyTimeout: Double = 2,
        isDeep: Bool = false,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> IntegrityReport {
        let opening = try StoreOpening.existing(path, key: key, settings: cipherSettings, busyTimeout: busyTimeout)
        let resolved = opening.path ?? path
        let connection: Connection
        do throws(DatabaseError) {
            connection = try opening.open()
        } catch {
            // Opening does not spend seconds on telling a damaged first page from a wrong passphrase.
            guard error.reason == .wrongKey else { throw error }
            let diagnosis = try StoreDiagnosis.examine(path: resolved, key: key, cipherSettings: cipherSettings)
            throw diagnosis.finding == .opens ? error : diagnosis.error
        }
        defer { connection.close() }
        let sealing = Sealing(key: key, settings: cipherSettings)
        return try check(connection, path: resolved, sealing: sealing, isDeep: isDeep, progress: progress)
    }

    static func check(
        _ connection: Connection,
        path: String,
        sealing: Sealing,
        isDeep: Bool = false,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> IntegrityReport {
        // What is still in the log would be missed, or look damaged. Best effort: others may be reading.
        _ = try? connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
        let totals = try PageTotals(of: connection)
        let fileSize = try connection.mainFileSize()
        var findings = Findings()
        if let key = sealing.key, sealing.settings.parameters.usesHMAC {
            let isBlind = try isBlind(forFileSize: fileSize, cipherVersion: connection.text("PRAGMA cipher_version"))
            if !isBlind { findings.add(rows: try connection.texts("PRAGMA cipher_integrity_check")) }
            if isBlind || isDeep {
                let scan = PageScan(connection: connection, key: key, settings: sealing.settings)
                findings.pages.formUnion(try scan.damagedPages(progress: progress))
            }
        }
        do throws(DatabaseError) {
            let pragma = isDeep ? "integrity_check" : "quick_check"
            findings.problems += try StructureCheck(connection: connection).problems(pragma)
        } catch {
            let isDamage = [SQLITE_CORRUPT, SQLITE_NOTADB].contains(error.code) || !findings.pages.isEmpty
            guard isDamage else { throw error }
            findings.problems.append(error.message)
        }
        // cipher_integrity_check does not notice missing pages.
        if totals.count * Int64(totals.size) > fileSize {
            let needed = totals.count * Int64(totals.size)
            findings.problems.append("the file has \(fileSize) bytes, but its \(totals.count) pages need \(needed)")
        }
        return IntegrityReport(
            path: path,
            fileSize: fileSize,
            pageSize: totals.size,
            pageCount: totals.count,
            damagedPages: findings.pages.sorted(),
            structureProblems: findings.problems,
            isSound: findings.pages.isEmpty && findings.problems.isEmpty
        )
    }

    /// Before 4.17, `cipher_integrity_check` computes where a page begins with 32 bits, and calls every page beyond
    /// 4 GiB damaged.
    static func isBlind(forFileSize fileSize: Int64, cipherVersion: String?) -> Bool {
        guard fileSize > 1 << 32 else { return false }
        // "4.6.1 community"
        let numbers = (cipherVersion ?? "").split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        return numbers.count < 2 || numbers[0] < 4 || (numbers[0] == 4 && numbers[1] < 17)
    }

    /// What ``check(_:path:sealing:isDeep:progress:)`` has met.
    struct Findings {
        var pages: Set<Int64> = []
        var problems: [String] = []

        /// Rows of `cipher_integrity_check`, such as "HMAC verification failed for page 3".
        mutating func add(rows: [String]) {
            for row in rows {
                let words = row.split(separator: " ")
                let isAboutContents = row.hasPrefix("HMAC") || row.hasPrefix("error reading")
                if isAboutContents, let position = words.lastIndex(of: "page"), position + 1 < words.count,
                    let page = Int64(words[position + 1])
                {
                    pages.insert(page)
                } else {
                    problems.append(row)
                }
            }
        }
    }
}
