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
    /// page is 1. Free pages are none of them.
    public let damagedPages: [Int64]
    /// Numbers of the free pages that hold something else than was written to them, or than zeros if nothing was. A power
    /// failure may leave such pages, and so may a disk that fails. Nothing is lost with them: no contents are read from a free
    /// page, and SQLite writes it anew when it takes it. ``isSound`` does not count them. A rotation leaves none; `VACUUM`
    /// may fail at one. Empty if the store is not sound: its list of free pages proves nothing then, and ``damagedPages``
    /// has them.
    public let damagedFreePages: [Int64]
    /// Other problems, mostly in SQLite's words.
    public let structureProblems: [String]
    /// Whether pages behind the end of the store were written with its key, which ``structureProblems`` tells, too. Either a
    /// commit that makes the store smaller was cut off before the file was, as by a power failure, and nothing is missing: `VACUUM`
    /// removes them. Or the disk has lost a write of the first page, and they hold what was stored last. ``isSound`` is false,
    /// because only the user can tell.
    public let hasUncountedPages: Bool

    /// Tables that a deep check could not compare with their indexes, because their schema names a collation, function or
    /// tokenizer that only the program has that wrote them, and full text of FTS4 without contents. They were checked as without
    /// `isDeep`.
    public let tablesNotCompared: [String]

    /// Whether no problem was found.
    public let isSound: Bool

    /// Whether SQLite checked the structure. False for ``verifyPages(path:key:cipherSettings:busyTimeout:progress:)``.
    public let isStructureChecked: Bool

    /// Whether every page has an authentication code, which shows if the page was changed. False for plaintext and for
    /// formats without page authentication: then ``isSound`` covers only the structure.
    public let isAuthenticated: Bool

    /// What to do about ``hasUncountedPages``.
    package static let remedyForUncountedPages = UncountedPages.remedy

    /// For a file that was just written: there, free pages count, too.
    var pagesNotAsWritten: [Int64] { damagedPages + damagedFreePages }

    /// Checks the authentication code of every page, the structure, and the size of the file. Writes nothing.
    ///
    /// Pages in a write-ahead log, or in the journal of an unfinished transaction, are checked in place of the file's
    /// own pages, as SQLite would read them. A store that is in use is checked as it is at one moment; in
    /// rollback-journal mode writers wait meanwhile. The codes are computed without SQLCipher, on all processors. SQLite
    /// then checks the structure, on one, of pages that are authenticated once more as it reads them. If some are
    /// damaged, or have no codes, it checks what SQLCipher reads.
    /// <https://www.sqlite.org/pragma.html#pragma_quick_check>
    ///
    /// Free pages that SQLite never wrote have zeros and no code. They are no damage, although SQLCipher's
    /// `cipher_integrity_check` lists them. Nor are those that are not as they were written (``damagedFreePages``).
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
        try verify(
            path,
            Sealing(key: key, settings: cipherSettings),
            busyTimeout: busyTimeout,
            isDeep ? .deep : .quick,
            progress: progress
        )
    }

    /// Checks the authentication code of every page, and the size of the file, and not what SQLite makes of the pages: a
    /// part of ``verify(path:key:cipherSettings:busyTimeout:isDeep:progress:)`` that takes a fraction of its time.
    ///
    /// It finds every page that was changed without the key, by a failing disk or by somebody. It does not find what was
    /// wrong when it was written: by a defect, by memory that fails, or by a file that was used in a way in which SQLite
    /// must not be used. Nor does it notice that a page was put back as it once was, beside others that were not. If the
    /// store has free pages without a code of their own, the structure is checked all the same: only that tells that no
    /// table has them.
    /// - Parameters:
    ///   - path: path of the store.
    ///   - key: its key.
    ///   - cipherSettings: the settings of the store. Default: those of SQLCipher 4.
    ///   - busyTimeout: how long to wait for locks. Default 2 s.
    ///   - progress: called while pages are checked. If it throws, the check stops with
    ///     ``DatabaseError/Reason/interrupted``.
    /// - Throws: ``DatabaseError`` if the store cannot be opened, as in
    ///   ``verify(path:key:cipherSettings:busyTimeout:isDeep:progress:)``. ``DatabaseError/Reason/unsupported`` if its pages
    ///   have no codes.
    public static func verifyPages(
        path: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        busyTimeout: Duration = .seconds(2),
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> IntegrityReport {
        guard cipherSettings.parameters.usesHMAC else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .unsupported,
                message: """
                    The pages of \(path) have no authentication codes by these settings, so that only the structure can be \
                    checked. Nothing was checked.
                    """
            )
        }
        return try verify(
            path,
            Sealing(key: key, settings: cipherSettings),
            busyTimeout: busyTimeout,
            nil,
            progress: progress
        )
    }

    private static func verify(
        _ path: String,
        _ sealing: Sealing,
        busyTimeout: Duration,
        _ structure: StructureCheck.Depth?,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> IntegrityReport {
        let opening = try StoreOpening.existing(
            path,
            key: sealing.key,
            settings: sealing.settings,
            busyTimeout: busyTimeout.seconds
        )
        let resolved = opening.path ?? path
        do throws(DatabaseError) {
            return try opening.look { connection throws(DatabaseError) in
                return try check(
                    connection,
                    path: resolved,
                    sealing: sealing,
                    structure: structure,
                    problems: LogDamage.problems(ofStore: resolved),
                    report: ProgressReport(totals: PageTotals(of: connection), progress: progress)
                )
            }
        } catch {
            if error.reason == .interrupted {
                throw error.adding(context: "The check did not come to its end, and nothing was changed")
            }
            // To stay fast, opening does not distinguish a damaged first page from a wrong passphrase.
            guard error.reason == .wrongKey else { throw error }
            let diagnosis = try StoreDiagnosis.examine(
                path: resolved,
                key: sealing.key,
                cipherSettings: sealing.settings
            )
            throw diagnosis.finding == .opens ? error : diagnosis.error
        }
    }

    /// The share of a check that it takes to compute the codes, by estimate.
    private static let shareOfCodes = 0.4

    /// - Parameters:
    ///   - connection: a connection of a ``StoreView``, or one to a file without a log.
    ///   - structure: how SQLite checks the structure; `nil` for not at all.
    ///   - report: the part of an operation that this check is.
    ///   - leavesPagesToSQLCipher: whether SQLCipher reads for the check of the structure in any case.
    static func check(
        _ connection: Connection,
        path: String,
        sealing: Sealing,
        structure: StructureCheck.Depth? = .quick,
        problems knownProblems: [String] = [],
        report: ProgressReport? = nil,
        leavesPagesToSQLCipher: Bool = false
    ) throws(DatabaseError) -> IntegrityReport {
        let totals = try PageTotals(of: connection)
        let report = report?.of(totals) ?? ProgressReport(totals: totals, progress: nil)
        let fileSize = try connection.mainFileSize()
        let needed = totals.count * Int64(totals.size)
        var (damagedPages, damagedFreePages): ([Int64], [Int64]) = ([], [])
        var pages: AuthenticPages?
        var structure = structure
        let isAuthenticated = sealing.key != nil && sealing.settings.parameters.usesHMAC
        if let key = sealing.key, isAuthenticated {
            let scan = PageScan(connection: connection, key: key, settings: sealing.settings)
            let cipher = try scan.pageCipher()
            let servesPages =
                structure != nil && needed <= fileSize && totals.size == cipher.parameters.pageSize
                && !leavesPagesToSQLCipher
            let marks = servesPages ? try PageMarks(pageCount: totals.count) : nil
            let part = report.part(to: structure != nil ? shareOfCodes : 1)
            let tell = { (completed: Int64) throws(DatabaseError) in try part(.verify, completed) }
            var dependsOnList = false
            let last = totals.count
            let noted = { (number: Int64, isBlank: Bool) in
                dependsOnList = true
                if !isBlank { damagedFreePages.append(number) }
            }
            damagedPages = try scan.damagedPages(ofFirst: last, cipher, marks: marks, free: noted, progress: tell)
            // An older list of free pages is authentic, too. Whether these pages are free, only the structure tells.
            if dependsOnList { structure = structure ?? .quick }
            if servesPages, damagedPages.isEmpty {
                pages = try AuthenticPages(scan, cipher, marks: marks, pageCount: totals.count)
            }
        }
        var problems = knownProblems
        var tablesNotCompared: [String] = []
        do throws(DatabaseError) {
            if let structure {
                let part = report.part(from: isAuthenticated ? shareOfCodes : 0)
                var findings = try pages.flatMap { (pages) throws(DatabaseError) in
                    try StructureCheck.findings(structure, in: pages, instead: connection, part)
                }
                if let page = pages?.damagedPage { damagedPages.append(page) }
                if findings == nil {
                    findings = try StructureCheck(connection: connection).findings(structure, part)
                }
                problems += findings?.problems ?? []
                tablesNotCompared = findings?.tablesNotCompared ?? []
            }
        } catch {
            guard error.reason != .interrupted else { throw error }
            let isDamage = error.isOfDamage || !damagedPages.isEmpty
            guard isDamage else { throw error }
            problems.append(error.message)
        }
        let rest = fileSize % Int64(totals.size)
        let uncounted = try UncountedPages.problem(of: connection, path: path, sealing) { () throws(DatabaseError) in
            try report.part(from: 1)(.verify, totals.count)
        }
        if let uncounted { problems.append(uncounted) }
        if rest > 0 { problems.append("the file ends with \(rest) bytes that are no whole page") }
        if needed > fileSize {
            problems.append("the file has \(fileSize) bytes, but its \(totals.count) pages need \(needed)")
        }
        if !problems.isEmpty || !damagedPages.isEmpty {
            damagedPages = Set(damagedPages + damagedFreePages).sorted()
            damagedFreePages = []
        }
        return IntegrityReport(
            path: path,
            fileSize: fileSize,
            pageSize: totals.size,
            pageCount: totals.count,
            damagedPages: damagedPages,
            damagedFreePages: damagedFreePages,
            structureProblems: problems,
            hasUncountedPages: uncounted != nil,
            tablesNotCompared: tablesNotCompared,
            isSound: damagedPages.isEmpty && problems.isEmpty,
            isStructureChecked: structure != nil,
            isAuthenticated: isAuthenticated
        )
    }
}
