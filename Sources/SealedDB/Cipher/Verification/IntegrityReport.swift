import Foundation

/// What a check of a whole store found.
public struct IntegrityReport: Sendable, Codable, Hashable {
    /// Absolute path of the store, with symbolic links followed.
    public let path: String
    /// Size in bytes of the main file together with the pages in its log.
    public let fileSize: Int64
    /// Bytes per page.
    public let pageSize: Int
    /// Number of pages that the database says it has.
    public let pageCount: Int64
    /// Numbers of the pages whose authentication code does not match their contents, or that cannot be read. The first
    /// page is 1.
    public let damagedPages: [Int64]
    /// Other problems, mostly in SQLite's words.
    public let structureProblems: [String]

    /// Whether no problem was found.
    public let isSound: Bool

    /// Whether every page has an authentication code, which shows if the page was changed. False for plaintext and for
    /// formats without page authentication: then ``isSound`` covers only the structure.
    public let isAuthenticated: Bool

    /// Checks the authentication code of every page, the structure, and the size of the file. Writes nothing.
    ///
    /// Pages in a write-ahead log, or in the journal of an unfinished transaction, are checked in place of the file's
    /// own pages, as SQLite would read them. A store that is in use is checked as it is at one moment; in
    /// rollback-journal mode writers wait meanwhile. The codes are computed without SQLCipher. SQLCipher computes those
    /// of the pages in use again while it reads them for the check of the structure.
    /// <https://www.sqlite.org/pragma.html#pragma_quick_check>
    /// - Parameters:
    ///   - path: path of the store.
    ///   - key: its key; `nil` for a plaintext database.
    ///   - cipherSettings: the settings of the store. Default: those of SQLCipher 4.
    ///   - busyTimeout: how long to wait for locks. Default 2 s.
    ///   - isDeep: also compares every index with its table
    ///     (<https://www.sqlite.org/pragma.html#pragma_integrity_check>). This takes several times as long. Default
    ///     false.
    ///   - progress: called while pages are checked. If it throws, the check stops with
    ///     ``DatabaseError/Reason/interrupted``.
    /// - Throws: ``DatabaseError`` if the store cannot be opened: ``DatabaseError/Reason/wrongKey``,
    ///   ``DatabaseError/Reason/damaged`` and others. Damage in a store that can be opened is reported, not thrown.
    public static func verify(
        path: String,
        key: Key?,
        cipherSettings: CipherSettings = .init(),
        busyTimeout: Duration = .seconds(2),
        isDeep: Bool = false,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> IntegrityReport {
        let opening = try StoreOpening.existing(
            path,
            key: key,
            settings: cipherSettings,
            busyTimeout: busyTimeout.seconds
        )
        let resolved = opening.path ?? path
        let sealing = Sealing(key: key, settings: cipherSettings)
        do throws(DatabaseError) {
            return try opening.look { connection throws(DatabaseError) in
                return try check(
                    connection,
                    path: resolved,
                    sealing: sealing,
                    isDeep: isDeep,
                    problems: LogDamage.problems(ofStore: resolved, openIn: connection),
                    report: ProgressReport(totals: PageTotals(of: connection), progress: progress)
                )
            }
        } catch {
            if error.reason == .interrupted {
                throw error.adding(context: "The check did not come to its end, and nothing was changed")
            }
            // To stay fast, opening does not distinguish a damaged first page from a wrong passphrase.
            guard error.reason == .wrongKey else { throw error }
            let diagnosis = try StoreDiagnosis.examine(path: resolved, key: key, cipherSettings: cipherSettings)
            throw diagnosis.finding == .opens ? error : diagnosis.error
        }
    }

    /// The share of a check that it takes to compute the codes, by estimate.
    private static let shareOfCodes = 0.25

    /// - Parameters:
    ///   - connection: a connection of a ``StoreView``, or one to a file without a log.
    ///   - report: the part of an operation that this check is.
    static func check(
        _ connection: Connection,
        path: String,
        sealing: Sealing,
        isDeep: Bool = false,
        problems knownProblems: [String] = [],
        report: ProgressReport? = nil
    ) throws(DatabaseError) -> IntegrityReport {
        let totals = try PageTotals(of: connection)
        let report = report?.of(totals) ?? ProgressReport(totals: totals, progress: nil)
        let fileSize = try connection.mainFileSize()
        var damagedPages: [Int64] = []
        let isAuthenticated = sealing.key != nil && sealing.settings.parameters.usesHMAC
        if let key = sealing.key, isAuthenticated {
            let scan = PageScan(connection: connection, key: key, settings: sealing.settings)
            let part = report.part(to: IntegrityReport.shareOfCodes)
            let tell = { (completed: Int64) throws(DatabaseError) in try part(.verify, completed) }
            damagedPages = try scan.damagedPages(ofFirst: totals.count, progress: tell)
        }
        var problems = knownProblems
        do throws(DatabaseError) {
            let pragma = isDeep ? "integrity_check" : "quick_check"
            // SQLite follows the trees, and then reads the rows of the tables. A deep check looks each row up in its
            // indexes, too.
            let part = report.part(from: isAuthenticated ? IntegrityReport.shareOfCodes : 0)
            problems += try part.whileReading(connection, .structure, timesRead: isDeep ? 4 : 2) {
                () throws(DatabaseError) in
                try StructureCheck(connection: connection).problems(pragma)
            }
        } catch {
            guard error.reason != .interrupted else { throw error }
            let isDamage = [SQLITE_CORRUPT, SQLITE_NOTADB].contains(error.code) || !damagedPages.isEmpty
            guard isDamage else { throw error }
            problems.append(error.message)
        }
        let rest = fileSize % Int64(totals.size)
        if rest > 0 { problems.append("the file ends with \(rest) bytes that are no whole page") }
        let needed = totals.count * Int64(totals.size)
        if needed > fileSize {
            problems.append("the file has \(fileSize) bytes, but its \(totals.count) pages need \(needed)")
        }
        return IntegrityReport(
            path: path,
            fileSize: fileSize,
            pageSize: totals.size,
            pageCount: totals.count,
            damagedPages: damagedPages,
            structureProblems: problems,
            isSound: damagedPages.isEmpty && problems.isEmpty,
            isAuthenticated: isAuthenticated
        )
    }
}
