import Foundation

/// Copy, verify, swap: copies a store with another key or other settings, verifies the copy, and puts it in the store's
/// place.
struct StoreReplacement {
    let path: String
    let old: Sealing
    let new: Sealing
    let busyTimeout: Double
    /// If not `nil`, the old file is kept beside the new one, under the store's name followed by this suffix.
    var oldFileSuffix: String?
    var ignoresUnseenUsers = false
    let words: Words
    /// Called when the copy is verified and nobody else has the store open. If it throws, the store stays as it is. Without
    /// it, the store must have no key slots, which would not have the new key.
    var beforeSwap: (() throws(DatabaseError) -> Void)?

    /// The words that error messages use for the operation.
    struct Words {
        /// Such as "The rotation".
        let name: String
        /// What is true of the store until the swap, such as "unchanged under the old key".
        let before: String
        /// What is true of the store after the swap, such as "has the new key".
        let after: String
    }

    func plan() throws(DatabaseError) -> KeyRotation.Plan {
        do throws(DatabaseError) {
            if new.key != old.key { try new.key?.confirm() }
            return try RotationSource.plan(
                path: path,
                sealing: old,
                busyTimeout: busyTimeout,
                byPages: new.hasLayout(of: old),
                oldFileSuffix: oldFileSuffix,
                ignoresUnseenUsers: ignoresUnseenUsers
            )
        } catch {
            throw error.adding(context: "\(words.name) did not begin, and the store is unchanged")
        }
    }

    /// - Parameter prepared: a copy that was made while the store was in use. If the store has changed since the copy
    ///   was complete, a new copy is made.
    func run(
        with prepared: (any ServiceCopy)? = nil,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> KeyRotation.Report {
        let start = DispatchTime.now().uptimeNanoseconds
        if !new.hasLayout(of: old) { try requireAuthenticPages() }
        let source = try lockedSource(isPrepared: prepared != nil)
        defer { source.connection.close() }
        let plan = source.plan
        let isWAL = plan.journalMode == "wal" || StoreCopy.hasLeftoverOfWAL(plan.path)
        let totals: PageTotals
        let copy: StoreCopy
        do throws(DatabaseError) {
            (copy, totals) = try verifiedCopy(of: source, prepared, setsWAL: isWAL, progress: progress)
            try source.place.removeUnfinishedLink()
            try copy.swapIn(keepingOldAs: source.place.oldFile)
        } catch {
            let error = error.adding(context: "\(words.name) failed, and the store is \(words.before)")
            throw isWAL ? source.returnedToWAL(error) : error
        }
        try copy.synchronizeSwap()
        if let kept = source.place.oldFile {
            try FileUsers.requireNobodyCame(to: kept, "The store \(words.after)")
        } else {
            try source.spoil("The store \(words.after)")
            prepared?.replacedFile = source.keepFile()
        }
        try confirm(plan)
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        return KeyRotation.Report(path: plan.path, pageCount: totals.count, pageSize: totals.size, seconds: seconds)
    }

    private func requireAuthenticPages() throws(DatabaseError) {
        do throws(DatabaseError) {
            try StoreOpening.existing(path, key: old.key, settings: old.settings, busyTimeout: busyTimeout)
                .requireAuthenticPages()
        } catch {
            throw error.adding(context: "\(words.name) did not begin, and the store is unchanged")
        }
    }

    /// Locks the store, and makes and verifies the copy that is to replace it. If this fails, the store is unchanged,
    /// except that the caller has to put WAL mode back.
    private func verifiedCopy(
        of source: RotationSource,
        _ prepared: (any ServiceCopy)?,
        setsWAL: Bool,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> (StoreCopy, PageTotals) {
        // This must be asked first, because the following steps write to the store.
        let isPrepared = try prepared?.isCurrent() ?? false
        var copy =
            if let prepared, isPrepared { prepared.file } else {
                try StoreCopy(beside: source.plan.path, ofWAL: setsWAL)
            }
        do throws(DatabaseError) {
            copy.removeOtherLeftovers()
            if setsWAL { try source.leaveWAL() }
            try source.holdExclusively()
            var totals: PageTotals?
            if let prepared, isPrepared { totals = try settled(prepared, source, progress) }
            if isPrepared, totals == nil {
                copy.discard()
                copy = try StoreCopy(beside: source.plan.path, ofWAL: setsWAL)
            }
            if totals == nil {
                totals = try copy.fill(
                    from: source.connection,
                    sealing: new,
                    method: try method(source),
                    setsWAL: setsWAL,
                    progress: progress
                )
            }
            // After the swap the new key is the only one. If the copy was made while the store was in use, others are
            // waiting now, so commands and closures are not asked for the key again; they were asked before.
            if new.key != old.key { try new.confirm(for: copy, isBrief: prepared != nil) }
            try source.requireNoJournal()
            guard let totals else { throw KeyRotation.replaced }
            // This comes last. Whoever opens the file later is left with the old file, which `RotationSource.spoil`
            // makes useless.
            try source.requireNobodyElse()
            if let beforeSwap { try beforeSwap() } else { try requireNoSlots(source.plan.path) }
            return (copy, totals)
        } catch {
            copy.discard()
            throw error
        }
    }

    private func requireNoSlots(_ path: String) throws(DatabaseError) {
        try SlotFiles.requireNone(
            path,
            "got them meanwhile, so that the new key would be in none",
            remedy: "Try again."
        )
    }

    private func method(_ source: RotationSource) throws(DatabaseError) -> StoreCopy.Method {
        guard let key = old.key, new.hasLayout(of: old) else { return .rows(of: old) }
        let pages = try PageSource(still: source.connection, key: key, settings: old.settings)
        // A store without pages gets its first one by SQLite.
        return pages.totals.count > 0 ? .transfer(pages) : .pages
    }

    /// Verifies a copy that was made while the store was in use.
    /// - Returns: `nil` if the copy does not hold what the store holds.
    private func settled(
        _ copy: any ServiceCopy,
        _ source: RotationSource,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> PageTotals? {
        let report = ProgressReport(totals: try PageTotals(of: source.connection), progress: progress)
            .part(from: copy.share)
        do throws(DatabaseError) {
            return try copy.settle(comparingWith: (source.connection, old), report)
        } catch {
            guard error.reason == .unverified else { throw error }
            return nil
        }
    }

    private func lockedSource(isPrepared: Bool = false) throws(DatabaseError) -> RotationSource {
        do throws(DatabaseError) {
            return try RotationSource(
                path: path,
                sealing: old,
                busyTimeout: busyTimeout,
                oldFileSuffix: oldFileSuffix,
                isPrepared: isPrepared,
                ignoresUnseenUsers: ignoresUnseenUsers
            )
        } catch {
            throw error.adding(context: "\(words.name) did not begin, and the store is unchanged")
        }
    }

    private func confirm(_ plan: KeyRotation.Plan) throws(DatabaseError) {
        do throws(DatabaseError) {
            let opening = StoreOpening(
                path: plan.path,
                key: new.key,
                settings: new.settings,
                busyTimeout: 10,
                takesLock: false
            )
            try opening.open().close()
        } catch {
            guard error.reason != .busy else { return }
            throw error.adding(
                context: "The store \(words.after), which was verified before the swap, but could not be reopened"
            )
        }
    }
}
