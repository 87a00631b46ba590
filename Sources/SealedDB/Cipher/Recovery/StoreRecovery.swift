import Foundation

/// Saves what can still be read of a damaged store into a new store. The damaged one is only read.
///
/// Every page is read for itself, without SQLCipher, and used only if it is as it was written under the key. Rows of
/// tables come back with their row ids; indexes, views and triggers are made anew. Rows to which nothing leads any more,
/// and rows that violate a constraint of their table, go to a table `lost_and_found`, as `.recover` of SQLite's shell has
/// it (<https://www.sqlite.org/recovery.html>): with the page `pgno`, the number of values `nfield`, the row id `id`
/// (NULL for a table WITHOUT ROWID), and the values `c0`, `c1` and so on. Among them may be rows that were deleted, older
/// versions of others, or entries of indexes.
///
/// Restore a backup instead if there is one. Use this if there is none, or for what was written after it.
///
/// ```swift
/// let recovery = StoreRecovery(path: "app.db", key: key, to: "recovered.db")
/// let report = try recovery.run()
/// print(report.tables, report.problems)
/// ```
public struct StoreRecovery: Sendable {
    /// Path of the damaged store, which stays as it is.
    public let path: String
    /// Path of the new store. It must not exist.
    public let recoveredPath: String
    private let key: Key
    private let newKey: Key?
    private let settings: CipherSettings
    private let salt: [UInt8]?

    /// What was saved, and what was not.
    public struct Report: Sendable, Codable, Hashable {
        /// A table of the new store.
        public struct Table: Sendable, Codable, Hashable {
            /// The name of the table.
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
        /// Path of the new store.
        public let recoveredPath: String
        /// The number of pages of the damaged store.
        public let pageCount: Int64
        /// The pages that were not as they were written. One that holds nothing but zeros is not among them, because SQLite may
        /// leave pages unwritten; if a table needs it, it is in ``Table/lostPages``.
        public let damagedPages: [Int64]
        /// What was saved of each table.
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

    /// Describes a recovery; nothing is read or written before ``run(progress:)``.
    /// - Parameters:
    ///   - path: path of the damaged store, which stays as it is.
    ///   - key: its key.
    ///   - cipherSettings: those of both stores.
    ///   - salt: the first 16 bytes of the store, if they are damaged and known from an older copy of the file. By
    ///     default they are taken from the file, or else from its log or journal.
    ///   - recoveredPath: path of the new store. It must not exist.
    ///   - newKey: the key of the new store; `nil` for that of the old one.
    public init(
        path: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        salt: [UInt8]? = nil,
        to recoveredPath: String,
        newKey: Key? = nil
    ) {
        self.path = path
        self.recoveredPath = recoveredPath
        self.key = key
        self.newKey = newKey
        settings = cipherSettings
        self.salt = salt
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
        guard sealing.key?.form != .program else {
            throw .malformedKey(
                "What is recovered has no key slots, so a program that unwraps cannot be its key: give it a new one."
            )
        }
        if let key = sealing.key { try settings.validate(for: key) }
        let new = NewStore(path: recoveredPath, sealing: sealing, confirmsKey: newKey != nil)
        try new.requireAbsent()
        try StoreName.requireOneName(resolved)
        guard !LockHolders.hasLocks(on: resolved + "-shm", ifUnknown: true),
            !LockHolders.hasLocks(on: resolved, ifUnknown: true)
        else {
            throw StoreOpening.isBusy(path)
        }
        let marks = marks(of: resolved)
        let connection = try Connection(path: resolved, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        var problems: [String] = []
        let cipher = try cipher(of: resolved, connection)
        let overlay = try overlay(of: resolved, cipher, connection, &problems)
        let pages = try SalvagedPages(connection, cipher, overlay: overlay)
        let report = ProgressReport(totals: PageTotals(count: pages.count, size: pages.pageSize), progress: progress)
        let hasOwn = try pages.survey { completed throws(DatabaseError) in
            try report.part(to: 0.2)(.verify, completed)
        }
        guard hasOwn else { throw try notOurs(resolved) }
        StoreCopy.removeLeftovers(of: recoveredPath)
        let copy = try StoreCopy(beside: recoveredPath, takesAttributes: false)
        let salvage = try Salvage(pages: pages, problems: problems + pages.problems)
        do throws(DatabaseError) {
            try copy.fill(sealing, report.part(from: 0.7)) { target throws(DatabaseError) in
                let copying = report.part(from: 0.2, to: 0.7)
                try salvage.run(into: target) { completed throws(DatabaseError) in try copying(.copy, completed) }
            }
            // What is wrong with a virtual table is no reason to lose the rest, so it is looked at afterwards.
            try copy.amend(sealing) { target throws(DatabaseError) in try salvage.registerVirtualTables(in: target) }
            salvage.add(problems: try copy.structureProblems(sealing))
            if newKey != nil { try sealing.confirm(for: copy) } else { try key.keepInRing(copy.keyHold) }
            guard marks == self.marks(of: resolved) else { throw StoreOpening.isBusy(path) }
            try SlotFiles(of: recoveredPath).requireNone()
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

    private func marks(of path: String) -> [StoreView.Mark] {
        StoreView.marks(of: path) + [StoreView.Mark(path + "-journal")]
    }

    private func notOurs(_ path: String) throws(DatabaseError) -> DatabaseError {
        let diagnosis = try StoreDiagnosis.examine(path: path, key: key, cipherSettings: settings)
        guard diagnosis.finding == .opens else { return diagnosis.error }
        return DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .wrongKey,
            message: "No page of \(path) was written with this key and these settings. Nothing was recovered."
        )
    }

    /// Reads pages under the key and the salt of the store. If the beginning of the file is damaged, the salt stands in
    /// the log or journal too, where that has page 1.
    private func cipher(of path: String, _ connection: Connection) throws(DatabaseError) -> PageCipher {
        let parameters = settings.parameters
        var salts: [[UInt8]] = []
        let embedded = try self.key.embeddedSalt()
        if let known = salt ?? embedded ?? settings.salt {
            salts = [known]
        } else {
            let ofFile = try connection.mainFileHeader()
            // A file may be empty beside a log that has everything.
            if ofFile.count == Key.saltByteCount { salts = [ofFile] }
            for salt in try LogOverlay.salts(beside: path, pageSize: parameters.pageSize) where !salts.contains(salt) {
                salts.append(salt)
            }
        }
        let slots = SlotFiles(of: path)
        let copies = slots.read()
        let hasSlots = !copies.allSatisfy(\.isMissing)
        // Without slots beside it, what the key may know from another store does not count.
        let isForeign = !hasSlots && salts.contains { self.key.slotKeys.dataKey(salt: $0) != nil }
        let key = isForeign ? self.key.unused : self.key
        if hasSlots {
            // The beginning of the file may be damaged, but the slots have the salts too.
            let listed = copies.compactMap(\.slots).flatMap { $0.table.dataKeys.map(\.salt) }
            let fitting = salts.filter { listed.contains($0) }
            if salt == nil, embedded == nil {
                salts = fitting.isEmpty ? listed.reduce(into: []) { if !$0.contains($1) { $0.append($1) } } : fitting
            }
            for salt in salts where listed.contains(salt) { _ = try slots.open(with: key, salt: salt) }
        }
        guard !salts.isEmpty else {
            for case .unusable(let error) in copies.map(\.content) {
                throw error.adding(context: "Nothing was recovered, because the key slots of \(path) cannot be used")
            }
            throw try notOurs(path)
        }
        guard salts.allSatisfy({ $0.count == Key.saltByteCount }) else {
            throw .unusableSettings("A salt has \(Key.saltByteCount) bytes.")
        }
        var first: PageCipher?
        for salt in salts {
            let secret = try key.encryptionKey(salt: salt, by: parameters.keyDerivation)
            let cipher = try PageCipher(key: secret, salt: salt, parameters: parameters)
            if first == nil { first = cipher }
            guard salts.count > 1, parameters.usesHMAC else { break }
            if try hasPage(of: cipher, connection) { return cipher }
            if let log = try LogOverlay(salvagedLogOf: path, cipher: cipher, store: connection), log.ownPageCount > 0 {
                return cipher
            }
        }
        return first!
    }

    /// Whether any page of the file was written under this key and salt. The code of page 1 does not cover the salt.
    private func hasPage(of cipher: PageCipher, _ connection: Connection) throws(DatabaseError) -> Bool {
        let size = cipher.parameters.pageSize
        for number in stride(from: 1, through: try connection.mainFileSize() / Int64(size), by: 1) {
            let page = try readable { () throws(DatabaseError) in
                try connection.fileBytes(at: (number - 1) * Int64(size), count: size)
            }
            if let page, try cipher.isAuthentic(page, number: number) { return true }
        }
        return false
    }

    /// The pages of the log, or of the journal of an unfinished transaction, as SQLite would use them; of a damaged one
    /// those that are whole.
    private func overlay(
        of path: String,
        _ cipher: PageCipher,
        _ store: Connection,
        _ problems: inout [String]
    ) throws(DatabaseError) -> LogOverlay? {
        let journal = try journalOverlay(of: path, cipher, store, &problems)
        return try logOverlay(of: path, cipher, store, &problems)?.over(journal) ?? journal
    }

    private func journalOverlay(
        of path: String,
        _ cipher: PageCipher,
        _ store: Connection,
        _ problems: inout [String]
    ) throws(DatabaseError) -> LogOverlay? {
        do throws(DatabaseError) {
            try JournalDamage.requireNone(
                ofStore: path,
                cipher: cipher.parameters.usesHMAC ? cipher : nil,
                store: store
            )
            return try LogOverlay(journalOf: path)
        } catch {
            let isHot = error.reason == .damaged
            guard isHot || error.reason == .wrongKey || error.isOfUnreadablePlace else {
                throw error
            }
            problems.append("The journal is damaged, and what a transaction left may be mixed: \(error.message)")
            return try LogOverlay(salvagedJournalOf: path, cipher: cipher, store: store, isHot: isHot)
        }
    }

    private func logOverlay(
        of path: String,
        _ cipher: PageCipher,
        _ store: Connection,
        _ problems: inout [String]
    ) throws(DatabaseError) -> LogOverlay? {
        do throws(DatabaseError) {
            return try wholeLogOverlay(of: path, cipher, store, &problems)
        } catch {
            guard error.isOfUnreadablePlace, cipher.parameters.usesHMAC else { throw error }
            problems.append("A part of the log cannot be read, and what stood there is missing: \(error.message)")
            return try LogOverlay(salvagedLogOf: path, cipher: cipher, store: store)
        }
    }

    private func wholeLogOverlay(
        of path: String,
        _ cipher: PageCipher,
        _ store: Connection,
        _ problems: inout [String]
    ) throws(DatabaseError) -> LogOverlay? {
        let lost = try LogDamage.lostTransactions(ofStore: path, openIn: store)
        guard lost > 0 else {
            if try LogDamage.hasLostFrames(ofStore: path, openIn: store) {
                problems.append(
                    """
                    Behind the end of the log stand frames whose headers were lost: a power failure in the midst of a commit leaves \
                    such frames, or damage. What the last transactions have changed may be missing.
                    """
                )
            }
            return try LogOverlay(logOf: path)
        }
        let last = lost == 1 ? "its last transaction" : "its last \(lost) transactions"
        problems.append("The log is damaged before \(last): a part of that may be missing.")
        // Without codes nothing tells which pages are whole. SQLite's end of the log holds.
        guard cipher.parameters.usesHMAC else {
            return try LogOverlay(logOf: path)?.without(LogDamage.newerPages(inFileOfStore: path, openIn: store))
        }
        let overlay = try LogOverlay(salvagedLogOf: path, cipher: cipher, store: store)
        if let pages = overlay?.outdatedPages, !pages.isEmpty {
            let numbers = pages.map(String.init).joined(separator: ", ")
            problems.append("The newest version of page \(numbers) in the log is damaged. An older one was used.")
        }
        return overlay
    }
}
