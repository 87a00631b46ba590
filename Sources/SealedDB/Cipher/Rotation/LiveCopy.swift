import Foundation

/// A copy that SQLite makes, of a store with a rollback journal; for those with a log, see ``FollowedCopy``.
///
/// Each call of ``advance(_:)`` copies some pages. What the source's own connection writes in between goes into the copy
/// too, even to pages that are already copied. A write by another connection restarts the copy.
/// <https://www.sqlite.org/c3ref/backup_finish.html>
///
/// Only the user of the source's connection may call its methods, except ``discard()``, which any thread may call.
final class LiveCopy: ServiceCopy {
    static let pagesPerStep: Int32 = 64

    let needsTurns = true
    let share = 0.6
    let file: StoreCopy
    private let sealing: Sealing
    private let path: String
    private let source: Connection
    private let target: Connection
    private var backup: Backup
    private let pageSize: Int
    private let isWAL: Bool
    /// Keeps other processes from taking the unfinished file for a leftover of a killed process.
    private let usageLock: UsageLock?
    private var restartCount = 0
    private var stepsLeft: Int64
    /// The state of the store when the copy was complete; `nil` before that.
    private var completedState: StoreState?

    /// Begins a copy. Nothing is copied yet.
    /// - Throws: the ``DatabaseError`` that a rotation would throw before it writes, except that it does not find other
    ///   processes that have the store open. ``LockHolders/requireNoOthers(of:)`` does that.
    init(of source: Connection, path: String, sealing: Sealing) throws(DatabaseError) {
        let totals = try PageTotals(of: source)
        let place = try ReplaceablePlace(path)
        try place.requireSpace(for: totals)
        usageLock = try UsageLock.shared(place.path, timeout: 0)
        self.path = place.path
        self.source = source
        self.sealing = sealing
        isWAL = try source.text("PRAGMA journal_mode") == "wal"
        pageSize = totals.size
        // At most as many steps as two complete copies take. If writers are faster than that, they then have to wait.
        stepsLeft = 2 * totals.count / Int64(LiveCopy.pagesPerStep) + 16
        file = try StoreCopy(beside: place.path, ofWAL: isWAL)
        do throws(DatabaseError) {
            target = try file.openTarget(sealing, pageSize: totals.size)
            do throws(DatabaseError) {
                backup = try LiveCopy.begin(from: source, to: target)
            } catch {
                target.close()
                throw error
            }
        } catch {
            file.discard()
            throw error
        }
    }

    /// Little is left, or the copy does not get ahead.
    var isNearlyComplete: Bool {
        backup.remainingPages <= Int64(4 * LiveCopy.pagesPerStep) || restartCount > 3 || stepsLeft <= 0
    }

    /// The source's connection has been closed.
    var isLost: Bool { !backup.isOpen }

    var progress: KeyRotation.Progress {
        KeyRotation.Progress(
            phase: .copy,
            completedPages: backup.completedPages,
            totalPages: backup.totalPages,
            pageSize: pageSize,
            fractionCompleted: share * Double(backup.completedPages) / Double(max(1, backup.totalPages))
        )
    }

    private static func begin(from source: Connection, to target: Connection) throws(DatabaseError) -> Backup {
        let backup = try Backup(from: source, to: target)
        do throws(DatabaseError) {
            // A step of no pages attaches the backup to the source, and counts the pages.
            _ = try backup.step(pages: 0)
            return backup
        } catch {
            // End the backup before its target closes: otherwise SQLite would use the closed target when the source
            // closes.
            source.end(backup)
            throw error
        }
    }

    /// Copies the next pages.
    ///
    /// If the store becomes shorter than the part that is copied, SQLite ends the backup and forwards no more writes to
    /// it. The copy then begins anew. https://www.sqlite.org/c3ref/backup_finish.html#sqlite3backupstep
    func advance(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        let before = backup.completedPages
        stepsLeft -= 1
        let goesOn = try backup.step(pages: LiveCopy.pagesPerStep)
        if goesOn, backup.completedPages >= before { return }
        restartCount += 1
        guard !goesOn else { return }
        source.end(backup)
        backup = try LiveCopy.begin(from: source, to: target)
    }

    func complete(
        _ connection: Connection,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        defer { usageLock?.release() }
        // If the checkpoint fails, the log is not empty, and `StoreState.settled` returns `nil`.
        if isWAL { _ = try? source.checkpoint(.truncate, schema: "main") }
        let state = try StoreState.settled(path)
        while try backup.step(pages: 1024) {}
        source.end(backup)
        try file.finish(target, setsWAL: isWAL)
        completedState = state
    }

    func isCurrent() throws(DatabaseError) -> Bool {
        guard let completedState else { return false }
        return try StoreState(of: path) == completedState
    }

    func settle(
        comparingWith store: (connection: Connection, sealing: Sealing),
        _ report: ProgressReport
    ) throws(DatabaseError) -> PageTotals {
        try file.settle(sealing, comparingWith: store, report)
    }

    /// Ends the backup and removes the copy. May be called more than once, and on any thread. If the source's
    /// connection is in use by another thread, SQLite lets go of the target, and the target is closed, when that
    /// connection is used next.
    func discard() {
        source.end(backup)
        file.discard()
        usageLock?.release()
    }
}
