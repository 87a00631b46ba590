import Foundation

/// Puts a verified copy of a backup in a store's place.
///
/// The old store is kept whole, with its log and journal, under another name beside the new one. Deleting it is up to
/// the caller. A store that somebody has open is not touched.
public struct StoreRestore: Sendable {
    /// Path of the backup, which stays as it is.
    public let backupPath: String
    /// Path of the store; a symbolic link is followed and kept.
    public let path: String
    private let key: Key
    private let settings: CipherSettings
    private let replaces: Bool
    private let ignoresUnseenUsers: Bool
    /// Whether the file of the backup must end with its last page: what came by a pipe never was in use, so nothing else explains
    /// what lies behind.
    package var endsWithPages = false

    /// What a finished restore did.
    public struct Report: Sendable, Codable, Hashable {
        /// Absolute path of the store, with symbolic links followed.
        public let path: String
        /// The number of pages of the restored store.
        public let pageCount: Int64
        /// Bytes per page.
        public let pageSize: Int
        /// Path of the store that was there before; `nil` if there was none.
        public let replacedPath: String?
    }

    /// Describes a restore; nothing is read or written before ``run(progress:)``.
    /// - Parameters:
    ///   - backupPath: path of the backup, which stays as it is.
    ///   - key: the key of the backup. The restored store has it too.
    ///   - cipherSettings: the settings of the backup.
    ///   - path: path of the store.
    ///   - replaces: whether a store that exists is replaced. If false, the restore fails with
    ///     ``DatabaseError/Reason/alreadyExists``, also if the store appears while the restore runs.
    ///   - ignoresUnseenUsers: as in ``KeyRotation``.
    public init(
        backupPath: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        to path: String,
        replaces: Bool = true,
        ignoresUnseenUsers: Bool = false
    ) {
        self.replaces = replaces
        self.ignoresUnseenUsers = ignoresUnseenUsers
        self.backupPath = backupPath
        self.path = path
        self.key = key
        self.settings = cipherSettings
    }

    /// The share of a restore that it takes to check the backup, by estimate.
    private static let shareOfCheck = 0.4

    /// Verifies the backup as ``IntegrityReport/verify(path:key:cipherSettings:busyTimeout:isDeep:progress:)`` does,
    /// copies it, verifies the copy, and swaps.
    ///
    /// The journal mode is part of the file, so the store gets that of the backup.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, the store is as it was.
    ///   ``DatabaseError/Reason/busy`` if somebody has the store open, including this process.
    @discardableResult
    public func run(progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        let opening = try StoreOpening.existing(backupPath, key: key, settings: settings).forLooking
        let source = try opening.open()
        defer { source.close() }
        let slots = try SlotCopy(opening, key, source)
        let sealing = Sealing(key: slots?.key ?? key, settings: settings)
        guard let resolvedBackup = FileSystem.resolve(backupPath) else {
            throw .system("Cannot open \(backupPath)", reason: .noSuchFile)
        }
        let report = ProgressReport(totals: try PageTotals(of: source), progress: progress)
        let soundness = try IntegrityReport.check(
            source,
            path: resolvedBackup,
            sealing: sealing,
            problems: LogDamage.problems(ofStore: resolvedBackup),
            report: report.part(to: StoreRestore.shareOfCheck)
        )
        guard soundness.isSound else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The backup \(backupPath) is damaged (`sealdb verify` lists what is wrong). Nothing was restored, \
                    and \(path) is unchanged.
                    """
            )
        }
        let behind = try source.mainFileSize() - report.totals.count * Int64(report.totals.size)
        guard !endsWithPages || behind == 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    \(backupPath) has \(behind.counted("byte")) behind the last page of the backup, which is sound: something \
                    else was sent with it. Nothing was restored, and \(path) is unchanged.
                    """
            )
        }
        let target = FileSystem.resolve(path)
        guard target?.isSame(as: resolvedBackup) != true else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .alreadyExists,
                message: "\(path) is the backup itself. Nothing was changed."
            )
        }
        if let target, try FileSystem.status(target).st_mode & S_IFMT != S_IFREG {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(target) is not a regular file. Nothing was restored, and it is unchanged."
            )
        }
        if replaces, let target { try StoreName.requireNoPart(target) }
        let context = "Nothing was restored, and \(path) is unchanged"
        let progress = progress.map { progress in
            { (state: KeyRotation.Progress) in try progress(state.inPart(from: StoreRestore.shareOfCheck)) }
        }
        guard replaces, let target else {
            var store = NewStore(path: path, sealing: sealing, storeKey: key, slots: slots)
            if let slots {
                // That key has no source of its own.
                try key.confirm()
                store.leavesSlots = try slots.isServed(by: SlotFiles(of: path))
                if store.leavesSlots {
                    store.slots = nil
                    try slots.requireSame(key, opens: path)
                }
            }
            // Also for a symbolic link that leads nowhere, which is not followed.
            try store.requireAbsent()
            let pages = try PageSource(reading: source, key: key, settings: settings)
            let report = try store.make(from: source, method: .transfer(pages), context: context, progress: progress)
            return Report(path: report.path, pageCount: report.pageCount, pageSize: report.pageSize, replacedPath: nil)
        }
        let lock: StoreLock
        let usageLock: UsageLock
        let copy: StoreCopy
        let totals: PageTotals
        let replacedPath = "\(target).replaced-\(try FileSystem.randomName())"
        do throws(DatabaseError) {
            usageLock = try UsageLock.exclusive(target, timeout: 0)
            lock = try StoreLock(target)
            try lock.requireStore(mayBeCutOff: true)
            try FileUsers.requireNobodyElse(target, ignoresUnseen: ignoresUnseenUsers)
            StoreCopy.removeLeftovers(of: target)
            (copy, totals) = try verifiedCopy(beside: target, from: source, sealing, progress: progress)
        } catch {
            throw error.adding(context: context)
        }
        let replacedSlots: ReplacedSlots
        do throws(DatabaseError) {
            replacedSlots = try ReplacedSlots(of: target, keptFor: replacedPath, by: slots, key)
        } catch {
            copy.discard()
            throw error.adding(context: context)
        }
        do throws(DatabaseError) {
            try FileUsers.requireNobodyElse(target, ignoresUnseen: ignoresUnseenUsers)
        } catch {
            replacedSlots.undo()
            copy.discard()
            throw error.adding(context: context)
        }
        do throws(DatabaseError) {
            try copy.swapIn(keepingOldUnder: replacedPath)
        } catch {
            replacedSlots.undo()
            throw error
        }
        try copy.synchronizeSwap()
        try replacedSlots.finish()
        try FileUsers.requireNobodyCame(to: replacedPath, "The store now has the new contents and key")
        lock.release()
        usageLock.release()
        return Report(path: target, pageCount: totals.count, pageSize: totals.size, replacedPath: replacedPath)
    }

    private func verifiedCopy(
        beside target: String,
        from source: Connection,
        _ sealing: Sealing,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> (StoreCopy, PageTotals) {
        let copy = try StoreCopy(beside: target)
        do throws(DatabaseError) {
            let totals = try copy.fill(
                from: source,
                sealing: sealing,
                method: .transfer(PageSource(reading: source, key: key, settings: settings)),
                setsWAL: false,
                progress: progress
            )
            try sealing.confirm(for: copy)
            // The data key of slots has no source of its own.
            if sealing.key != key { _ = try key.confirmed(keptBy: copy.keyHold) }
            try source.requireStill()
            return (copy, totals)
        } catch {
            copy.discard()
            throw error
        }
    }
}
