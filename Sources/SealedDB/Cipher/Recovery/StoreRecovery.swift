import Foundation

/// Saves what can still be read of a damaged store into a new store. The damaged one is only read.
///
/// Every page is read for itself, without SQLCipher, and used only if it is as it was written under the key. Rows of
/// tables come back with their row ids; indexes, views and triggers are made anew. Rows to which nothing leads any more,
/// and rows that violate a constraint of their table, go to a table `lost_and_found`, as `.recover` of SQLite's shell has
/// it (<https://www.sqlite.org/recovery.html>): with the page `pgno`, the number of values `nfield`, the row id `id`, and
/// the values `c0`, `c1` and so on. Among them may be rows that were deleted, or older versions of others.
///
/// Restore a backup instead if there is one. Use this if there is none, or for what was written after it.
///
/// ```swift
/// let recovery = StoreRecovery(path: "app.db", key: key, to: "recovered.db")
/// let report = try recovery.run()
/// print(report.tables, report.problems)
/// ```
public struct StoreRecovery: Sendable {
    public let path: String
    public let recoveredPath: String
    private let key: Key
    private let newKey: Key?
    private let settings: CipherSettings

    /// What was saved, and what was not.
    public struct Report: Sendable, Codable, Hashable {
        /// A table of the new store.
        public struct Table: Sendable, Codable, Hashable {
            public let name: String
            /// The number of rows that were saved.
            public let rowCount: Int
            /// Pages of the table that could not be read, with all that stood below them. The rows of lower pages may be
            /// in `lost_and_found`.
            public let lostPages: [Int64]
            /// The number of rows that were found, but not whole.
            public let brokenRowCount: Int
        }

        /// The path of the damaged store.
        public let path: String
        public let recoveredPath: String
        /// The number of pages of the damaged store.
        public let pageCount: Int64
        /// The pages that were not as they were written.
        public let damagedPages: [Int64]
        public let tables: [Table]
        /// The number of rows in the table `lost_and_found`. The table is missing if there are none.
        public let lostAndFoundCount: Int
        /// What else could not be saved, in words.
        public let problems: [String]

        /// Whether everything was found.
        public var isComplete: Bool {
            damagedPages.isEmpty && problems.isEmpty && lostAndFoundCount == 0
                && tables.allSatisfy { $0.lostPages.isEmpty && $0.brokenRowCount == 0 }
        }
    }

    /// - Parameters:
    ///   - newKey: the key of the new store; `nil` for that of the old one.
    ///   - cipherSettings: those of both stores.
    public init(
        path: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        to recoveredPath: String,
        newKey: Key? = nil
    ) {
        self.path = path
        self.recoveredPath = recoveredPath
        self.key = key
        self.newKey = newKey
        settings = cipherSettings
    }

    /// Makes the new store.
    /// - Parameter progress: is called from time to time: in the phase ``KeyRotation/Progress/Phase-swift.enum/verify``
    ///   while pages are looked at, in ``KeyRotation/Progress/Phase-swift.enum/copy`` while rows are saved. If it throws,
    ///   no new store is left.
    /// - Throws: ``DatabaseError``: ``DatabaseError/Reason/wrongKey`` if no page was written with the key,
    ///   ``DatabaseError/Reason/alreadyExists`` if the new file exists, ``DatabaseError/Reason/busy`` if somebody has the
    ///   store open or writes to it. The damaged store is unchanged in any case.
    @discardableResult
    public func run(progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        try Engine.requireCodec()
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        guard try FileSystem.status(resolved).st_mode & S_IFMT == S_IFREG else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(path) is not a regular file. Nothing was recovered."
            )
        }
        let sealing = Sealing(key: newKey ?? key, settings: settings)
        if let key = sealing.key { try settings.validate(for: key) }
        let new = NewStore(path: recoveredPath, sealing: sealing, confirmsKey: newKey != nil)
        try new.requireAbsent()
        guard !LockHolders.hasLocks(on: resolved + "-shm") else { throw StoreOpening.isBusy(path) }
        let marks = StoreView.marks(of: resolved)
        let connection = try Connection(path: resolved, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        var problems: [String] = []
        let cipher = try PageScan(connection: connection, key: key, settings: settings).pageCipher()
        let overlay = try overlay(of: resolved, cipher, connection, &problems)
        let pages = try SalvagedPages(connection, cipher, overlay: overlay)
        let report = ProgressReport(totals: PageTotals(count: pages.count, size: pages.pageSize), progress: progress)
        let hasOwn = try pages.survey { completed throws(DatabaseError) in try report(.verify, completed) }
        guard hasOwn else {
            let diagnosis = try StoreDiagnosis.examine(path: resolved, key: key, cipherSettings: settings)
            throw diagnosis.error
        }
        StoreCopy.removeLeftovers(of: recoveredPath)
        let copy = try StoreCopy(beside: recoveredPath, takesAttributes: false)
        let salvage = Salvage(pages: pages, problems: problems)
        do throws(DatabaseError) {
            try copy.fill(sealing, report) { target throws(DatabaseError) in
                try salvage.run(into: target) { completed throws(DatabaseError) in try report(.copy, completed) }
            }
            // What is wrong with a virtual table is no reason to lose the rest, so it is looked at afterwards.
            try copy.amend(sealing) { target throws(DatabaseError) in try salvage.registerVirtualTables(in: target) }
            salvage.add(problems: try copy.structureProblems(sealing))
            if newKey != nil { try sealing.confirm(for: copy.path) }
            guard marks == StoreView.marks(of: resolved) else { throw StoreOpening.isBusy(path) }
        } catch {
            copy.discard()
            throw error.adding(context: "Nothing was recovered, and \(path) is unchanged")
        }
        try copy.moveIn()
        try copy.synchronizeNew()
        return Report(
            path: resolved,
            recoveredPath: recoveredPath,
            pageCount: pages.count,
            damagedPages: pages.damaged,
            tables: salvage.tables,
            lostAndFoundCount: salvage.lostCount,
            problems: salvage.problems
        )
    }

    /// The pages of the log, or of the journal of an unfinished transaction, as SQLite would use them; of a damaged one
    /// those that are whole.
    private func overlay(
        of path: String,
        _ cipher: PageCipher,
        _ store: Connection,
        _ problems: inout [String]
    ) throws(DatabaseError) -> LogOverlay? {
        let usesHMAC = cipher.parameters.usesHMAC
        do throws(DatabaseError) {
            try JournalDamage.requireNone(ofStore: path, cipher: usesHMAC ? cipher : nil, store: store)
            if let journal = try LogOverlay(journalOf: path) { return journal }
        } catch {
            problems.append("The journal is damaged, and what a transaction left may be mixed: \(error.message)")
            return try LogOverlay(salvagedJournalOf: path, cipher: cipher)
        }
        let lost = try LogDamage.lostTransactions(ofStore: path, openIn: store)
        guard lost > 0 else { return try LogOverlay(logOf: path) }
        problems.append("The log is damaged before the last \(lost) transactions: a part of them may be missing.")
        guard usesHMAC else { return try LogOverlay(logOf: path) }
        return try LogOverlay(salvagedLogOf: path, cipher: cipher)
    }
}
