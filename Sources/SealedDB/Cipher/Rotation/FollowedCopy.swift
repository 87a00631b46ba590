/// A copy of a store in WAL mode that is made page by page, on all processors, while others write.
///
/// Each round copies some of the pages as they are in one snapshot, and compares each with what was read back. A new snapshot
/// begins before the last one ends, and what was changed in between is copied again; see ``LogFollower``. So nobody waits for
/// the copy, and the pages that are left at the end are those that were changed last, however large the store is.
///
/// There is always a snapshot, so the log cannot begin anew by itself. From time to time a turn of the writer lets it, also
/// before the end; see ``relieveLog(_:)``.
final class FollowedCopy: ServiceCopy {
    let needsTurns = false
    let isLost = false
    let share = 0.95
    let file: StoreCopy
    var replacedFile: ReplacedFile?
    private let path: String
    private let pageSize: Int
    private let old: Sealing
    private let new: Sealing
    private let busyTimeout: Double
    /// Keeps other processes from taking the unfinished file for a leftover of a killed process.
    private let usageLock: UsageLock?
    /// `nil` before the first round and after the copy is complete.
    private var reading: Reading?
    /// What is written, and its state after the last write.
    private var target: (file: NewFile, mark: NewFile.Mark)?
    /// The numbers of the pages that are to be copied, perhaps again.
    private var pending = PageSet()
    /// The page from which on the next ones are taken, so that those that are often changed do not keep others waiting.
    private var nextPage: Int64 = 1
    private var pageCount: Int64
    private var completedPages: Int64 = 0
    private var roundsLeft: Int64
    private var untold: Int64 = 0
    private var isSynced = false
    /// Whether a turn of the writer is to move the log into the file, however short the log is.
    private var isLastReliefDue = false
    /// The bytes of the log from which on it is to begin anew.
    private var relievedAt = FollowedCopy.logBytes
    /// The state of the store when the copy was complete; `nil` before that.
    private var completedState: StoreState?
    /// Fewer, so that tests have more rounds.
    var pagesInRound: Int64 = 4096
    /// So many are copied while others wait. It takes some milliseconds.
    private static let mostPagesAtEnd: Int64 = 256
    /// So many may have come before everybody waits.
    private static let mostPagesTooLate: Int64 = 1024

    private static let logBytes: Int64 = 4 << 20
    private static let pagesBetweenReports: Int64 = 64
    /// More in a row are copied on all processors.
    private static let pagesOfWorker = 16

    /// Two connections, whose snapshots take turns.
    private struct Reading {
        var current: Connection
        var other: Connection
        var follower: LogFollower
        /// Copies pages that stand alone.
        let worker: TransferWorker
        var position: LogPosition

        /// - Returns: whether both are closed.
        func close() -> Bool {
            // Both are closed, whatever becomes of the first.
            let isClosed = current.close()
            return other.close() && isClosed
        }
    }

    /// Begins a copy. Nothing is copied yet.
    /// - Throws: as ``LiveCopy``.
    init(
        of source: Connection,
        path: String,
        _ old: Sealing,
        _ new: Sealing,
        busyTimeout: Double
    ) throws(DatabaseError) {
        let totals = try PageTotals(of: source)
        let place = try ReplaceablePlace(path)
        try place.requireSpace(for: totals)
        usageLock = try UsageLock.shared(place.path, timeout: 0)
        (self.path, self.old, self.new, self.busyTimeout) = (place.path, old, new, busyTimeout)
        (pageSize, pageCount) = (totals.size, totals.count)
        // At most as many as three complete copies take. If writers are faster than that, they then have to wait.
        roundsLeft = 3 * totals.count / pagesInRound + 16
        file = try StoreCopy(beside: place.path, ofWAL: true)
    }

    /// Little is left, and nearly all is on the disk; or the copy does not get ahead.
    var isNearlyComplete: Bool {
        isSynced && pending.count <= FollowedCopy.mostPagesAtEnd || roundsLeft <= 0
    }

    var progress: KeyRotation.Progress { progress(.copy) }

    private func progress(_ phase: KeyRotation.Progress.Phase) -> KeyRotation.Progress {
        KeyRotation.Progress(
            phase: phase,
            completedPages: completedPages,
            totalPages: pageCount,
            pageSize: pageSize,
            fractionCompleted: share * Double(completedPages) / Double(max(1, pageCount))
        )
    }

    // MARK: Rounds

    func advance(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        roundsLeft -= 1
        // The confirmation of a key may have taken long since the last one.
        if isSynced { isLastReliefDue = true }
        if reading == nil { try begin() }
        try copyPending(upTo: pagesInRound) { () throws(DatabaseError) in
            try ProgressReport.send(self.progress, to: progress)
        }
        try moveOn()
        guard !isSynced, pending.count <= FollowedCopy.mostPagesAtEnd, let target else { return }
        // What is written later is little, and soon synced. So is what the last checkpoint has to do, for which all wait.
        try target.file.synchronize()
        (isSynced, isLastReliefDue) = (true, true)
    }

    private func begin() throws(DatabaseError) {
        guard let key = old.key else { throw .notOpen }
        let opening = try StoreOpening.existing(path, key: key, settings: old.settings, busyTimeout: busyTimeout)
        let first = try opening.open()
        do throws(DatabaseError) {
            let second = try opening.open()
            do throws(DatabaseError) {
                let written = try file.newFile()
                var follower = LogFollower(path: path, pageSize: pageSize)
                let position = try FollowedCopy.snapshot(first)
                _ = try follower.move(to: position)
                let source = try pages(first, position, follower)
                var transfer = try PageTransfer(source, to: new, .wal)
                transfer.sharesDisk = true
                reading = Reading(
                    current: first,
                    other: second,
                    follower: follower,
                    worker: try TransferWorker(transfer, written, pageCount: FollowedCopy.pagesOfWorker),
                    position: position
                )
                target = (written, try written.mark())
                note(source.totals.count, changed: nil)
            } catch {
                // This and the next were only read from.
                second.close()
                throw error
            }
        } catch {
            first.close()
            throw error
        }
    }

    /// Begins a read transaction, and returns where the log ends.
    private static func snapshot(_ connection: Connection) throws(DatabaseError) -> LogPosition {
        try connection.run("BEGIN")
        _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
        guard let position = try connection.logPosition() else {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                message: "The store is not in WAL mode any more. Nothing was changed. Try again."
            )
        }
        return position
    }

    /// The pages of the store as they are in the snapshot of this connection.
    private func pages(
        _ connection: Connection,
        _ position: LogPosition,
        _ follower: LogFollower
    ) throws(DatabaseError) -> PageSource {
        guard let key = old.key else { throw .notOpen }
        let count = try position.frameCount > 0 ? position.pageCount : PageTotals(of: connection).count
        return try PageSource(
            following: connection,
            key: key,
            settings: old.settings,
            totals: PageTotals(count: count, size: pageSize),
            log: follower.overlay(pageCount: count)
        )
    }

    /// Goes to a new snapshot, and notes what has changed since the last one.
    private func moveOn() throws(DatabaseError) {
        guard let reading else { return }
        do throws(DatabaseError) {
            try moveOn(reading)
        } catch {
            // The last snapshot stays. This one has not been used; if it cannot end, neither can the next begin. It is open
            // even if its first read failed.
            if !reading.other.isAutocommit { try? reading.other.run("ROLLBACK") }
            throw error
        }
    }

    private func moveOn(_ former: Reading) throws(DatabaseError) {
        var reading = former
        let position = try FollowedCopy.snapshot(reading.other)
        let changed = try reading.follower.move(to: position)
        let source = try pages(reading.other, position, reading.follower)
        // A transaction that has only read loses nothing.
        try reading.current.run("ROLLBACK")
        swap(&reading.current, &reading.other)
        reading.position = position
        reading.worker.transfer = PageTransfer(source, continuing: reading.worker.transfer)
        self.reading = reading
        note(source.totals.count, changed: changed)
    }

    private var logSize: Int64 { (reading?.position.frameCount ?? 0) * Int64(pageSize) }

    var needsRelief: Bool {
        (logSize >= relievedAt || isLastReliefDue) && reading?.position.isWholeInFile == false
    }

    /// Moves the whole log into the file, and begins a snapshot that needs nothing of the log. The next writer then begins it
    /// anew, unless others still read from it.
    func relieveLog(_ connection: Connection) throws(DatabaseError) {
        // A checkpoint goes no further than the snapshots that are open.
        try moveOn()
        // If it fails, the log goes on to grow, and this is tried again.
        _ = try? connection.checkpoint(.passive, schema: "main")
        try moveOn()
        relievedAt = FollowedCopy.logBytes + (reading?.position.isWholeInFile == true ? 0 : logSize)
        isLastReliefDue = false
    }

    /// - Parameters:
    ///   - count: the number of pages of the store.
    ///   - changed: `nil` if each page may have changed.
    private func note(_ count: Int64, changed: Set<Int64>?) {
        if let changed {
            for page in changed { pending.insert(page) }
            // Also what the log has nothing of, so that no page stays as it was before the store was shorter.
            if count > pageCount { pending.insert(pageCount + 1...count) }
        } else if count > 0 {
            pending.insert(1...count)
        }
        pending.remove(count + 1...Int64.max)
        pageCount = count
        completedPages = min(max(completedPages, count - pending.count), count)
    }

    /// Copies pending pages as they are in the present snapshot.
    private func copyPending(
        upTo limit: Int64,
        tell: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        guard let worker = reading?.worker, let target else { return }
        guard try target.file.mark() == target.mark else { throw file.unverified("somebody else has written to it") }
        var left = limit
        while left > 0, let run = pending.run(from: nextPage, limit: left) ?? pending.run(from: 1, limit: left) {
            if worker.hasRoom(for: run) {
                try worker.copy(run)
                try note(copied: run, tell)
            } else {
                var next = run.lowerBound
                try worker.transfer.copy(run, into: target.file) { last throws(DatabaseError) in
                    try self.note(copied: next...last, tell)
                    next = last + 1
                }
            }
            left -= Int64(run.count)
            nextPage = run.upperBound + 1
        }
        self.target = (target.file, try target.file.settledMark())
    }

    private func note(
        copied numbers: ClosedRange<Int64>,
        _ tell: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        pending.remove(numbers)
        completedPages = max(completedPages, pageCount - pending.count)
        // Once for some pages, or the last one.
        untold += Int64(numbers.count)
        guard untold >= FollowedCopy.pagesBetweenReports || pending.isEmpty else { return }
        untold = 0
        try tell()
    }

    // MARK: The end

    func isCloseEnough() throws(DatabaseError) -> Bool {
        try moveOn()
        return pending.count <= FollowedCopy.mostPagesTooLate || roundsLeft <= 0
    }

    func complete(
        _ connection: Connection,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        defer { usageLock?.release() }
        if reading == nil { try begin() }
        try moveOn()
        // The callers of the store wait by now, as they do in this phase.
        try copyPending(upTo: .max) { () throws(DatabaseError) in
            try ProgressReport.send(self.progress(.verify), to: progress)
        }
        guard let reading, let target, pending.isEmpty else { throw .notOpen }
        try target.file.truncate(to: pageCount * Int64(pageSize))
        self.target = (target.file, try target.file.settledMark())
        completedState = try state(reading, connection)
    }

    /// The state of the store, if it is the one that is copied, and if nothing is in its log any more. Ends the snapshots.
    private func state(_ reading: Reading, _ connection: Connection) throws(DatabaseError) -> StoreState? {
        // As long as the last snapshot is open, the log stays, and each transaction of another process would be in it. Those
        // that come later are written to the file by the second checkpoint, and change its state. If a checkpoint fails, the
        // log is not in the file, or not empty.
        _ = try? connection.checkpoint(.passive, schema: "main")
        let end = try reading.current.logPosition()
        let copied = try StoreState.settledFile(path)
        let haveMoved = [try reading.current.mainFileHasMoved(), try connection.mainFileHasMoved()]
        self.reading = nil
        guard reading.close() else { throw file.unverified("the connections that read the store could not be closed") }
        guard let end, end.hasSameEnd(as: reading.position), end.isWholeInFile, haveMoved == [false, false], let copied
        else {
            return nil
        }
        // As above.
        _ = try? connection.checkpoint(.truncate, schema: "main")
        guard let state = try StoreState.settled(path), state.hasSameFile(as: copied) else { return nil }
        return state
    }

    func isCurrent() throws(DatabaseError) -> Bool {
        guard let completedState else { return false }
        return try StoreState(of: path) == completedState
    }

    func settle(
        comparingWith store: (connection: Connection, sealing: Sealing),
        _ report: ProgressReport
    ) throws(DatabaseError) -> PageTotals {
        guard let target else { throw .notOpen }
        try file.settle(new, target.file, target.mark, report)
        self.target = nil
        return report.totals
    }

    func discard() {
        // The connections have only read, so closing them loses nothing. What stays open is closed with the process.
        _ = reading?.close()
        reading = nil
        target = nil
        file.discard()
        usageLock?.release()
    }
}
