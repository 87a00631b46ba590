import Foundation

/// A copy that SQLite makes, of a store with a rollback journal; for those with a log, see ``FollowedCopy``.
///
/// Each call of ``advance(_:)`` copies some pages. What the source's own connection writes in between goes into the copy
/// too, even to pages that are already copied. A write by another connection restarts the copy.
/// <https://www.sqlite.org/c3ref/backup_finish.html>
///
/// A free page need not be authentic (see ``FreePages``), and SQLCipher calls it damaged. With some versions the source's
/// connection would then be of no use (see ``PageWatch``), and that is the one of the queue. So it is never asked for such
/// a page: where one lies ahead, this copy ends, and the rotation makes another once it is alone.
///
/// Only the user of the source's connection may call its methods, except ``discard()``, which any thread may call.
final class LiveCopy: ServiceCopy {
    static let pagesPerStep: Int32 = 64

    let needsTurns = true
    let share = 0.6
    let file: StoreCopy
    var replacedFile: ReplacedFile?
    private let sealing: Sealing
    /// That of the store; `nil` if its pages have no codes.
    private let cipher: PageCipher?
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
    /// Whether one of the next pages is not authentic, so that the copy cannot go on.
    private var isBlocked = false
    /// The state of the store when the copy was complete; `nil` before that.
    private var completedState: StoreState?

    /// Begins a copy. Nothing is copied yet.
    /// - Throws: the ``DatabaseError`` that a rotation would throw before it writes, except that it does not find other
    ///   processes that have the store open. ``LockHolders/requireNoOthers(of:)`` does that.
    init(
        of source: Connection,
        path: String,
        _ old: Sealing,
        _ sealing: Sealing
    ) throws(DatabaseError) {
        guard let key = old.key else { throw .notOpen }
        let totals = try PageTotals(of: source)
        let place = try ReplaceablePlace(path)
        try place.requireSpace(for: totals)
        usageLock = try UsageLock.shared(place.path, timeout: 0)
        self.path = place.path
        self.source = source
        self.sealing = sealing
        isWAL = try source.text("PRAGMA journal_mode") == "wal"
        try UncountedPages.requireNone(of: source, path: place.path, old)
        pageSize = totals.size
        let scan = PageScan(connection: source, key: key, settings: old.settings)
        cipher = old.settings.parameters.usesHMAC ? try scan.pageCipher() : nil
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

    /// Little is left, or the copy does not get ahead, or cannot.
    var isNearlyComplete: Bool {
        isBlocked || backup.remainingPages <= Int64(4 * LiveCopy.pagesPerStep) || restartCount > 3 || stepsLeft <= 0
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
        let goesOn = try step(pages: LiveCopy.pagesPerStep)
        if goesOn, isBlocked || backup.completedPages >= before { return }
        restartCount += 1
        guard !goesOn else { return }
        source.end(backup)
        backup = try LiveCopy.begin(from: source, to: target)
    }

    /// Copies the next pages, unless one of them is not authentic.
    /// - Returns: whether the copy is not at its end.
    private func step(pages: Int32) throws(DatabaseError) -> Bool {
        // Nobody else writes between the look and the copy.
        try source.snapshot { () throws(DatabaseError) in
            isBlocked = false
            // If somebody else has written before, SQLite begins anew now, and the next pages are others.
            guard try backup.step(pages: 0) else { return false }
            isBlocked = try isBlocked(inNext: min(Int64(pages), backup.remainingPages))
            return isBlocked ? true : try backup.step(pages: pages)
        }
    }

    /// Whether one of the pages that are copied next is not authentic, as it stands in the file.
    private func isBlocked(inNext count: Int64) throws(DatabaseError) -> Bool {
        guard let cipher else { return false }
        let lockPage = PageScan.lockPage(pageSize: pageSize)
        let buffer = PageBuffer(pageSize: pageSize, pageCount: Int(LiveCopy.pagesPerStep))
        var number = backup.completedPages + 1
        let end = number + count
        while number < end {
            let pages = buffer.pages(Int(min(end - number, Int64(LiveCopy.pagesPerStep))))
            // What the file does not have is in the log.
            let found = try source.readFile(at: (number - 1) * Int64(pageSize), into: pages) / pageSize
            for index in 0..<found where number + Int64(index) != lockPage {
                let page = UnsafeRawBufferPointer(buffer.page(index))
                if try !cipher.isAuthentic(page, number: number + Int64(index)) { return true }
            }
            number += Int64(LiveCopy.pagesPerStep)
        }
        return false
    }

    /// Copies the rest. If it cannot go on it removes the copy instead, which then is not current.
    func complete(
        _ connection: Connection,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        defer { usageLock?.release() }
        // If the checkpoint fails, the log is not empty, and `StoreState.settled` returns `nil`.
        if isWAL { _ = try? source.checkpoint(.truncate, schema: "main") }
        let state = try StoreState.settled(path)
        while try step(pages: 1024), !isBlocked {}
        source.end(backup)
        guard !isBlocked else {
            // Another copy needs the space. What is in this one does not count.
            target.close()
            return file.discard()
        }
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
