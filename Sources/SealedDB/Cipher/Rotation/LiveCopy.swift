import Foundation

/// A copy of a store, under a new key, that is made while the store is in use.
///
/// It grows by some pages at a time. What the source's connection writes in between reaches the copy too, also to pages
/// that are there already. A write by another connection makes it begin anew.
/// <https://www.sqlite.org/c3ref/backup_finish.html>
///
/// For whoever has the source's connection; but ``discard()`` may come from any thread.
final class LiveCopy {
    static let pagesPerStep: Int32 = 64

    let file: StoreCopy
    private let path: String
    private let source: Connection
    private let target: Connection
    private var backup: Backup
    private let pageSize: Int
    private let isWAL: Bool
    /// Keeps away those who would take the unfinished file for one that a killed process left.
    private let usageLock: UsageLock?
    private var restartCount = 0
    private var stepsLeft: Int64
    /// The store's when the copy was complete.
    private var completedState: StoreState?

    /// Begins; nothing is copied yet.
    /// - Throws: the ``DatabaseError`` that a rotation would throw before it writes; but whether another process has the
    ///   store open is left to ``LockHolders/requireNoOthers(of:)``.
    init(of source: Connection, path: String, sealing: Sealing) throws(DatabaseError) {
        let totals = try PageTotals(of: source)
        let place = try ReplaceablePlace(path)
        try place.requireSpace(for: totals)
        usageLock = try UsageLock.shared(place.path, timeout: 0)
        self.path = place.path
        self.source = source
        isWAL = try source.text("PRAGMA journal_mode") == "wal"
        pageSize = totals.size
        // No longer than it takes to copy everything twice: who writes faster than that has to wait.
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

    /// Whether the rest is so little, or comes so slowly, that it is time to keep others waiting for it.
    var isNearlyComplete: Bool {
        backup.remainingPages <= Int64(4 * LiveCopy.pagesPerStep) || restartCount > 3 || stepsLeft <= 0
    }

    /// Whether the source's connection was closed meanwhile.
    var isLost: Bool { !backup.isOpen }

    var progress: KeyRotation.Progress {
        KeyRotation.Progress(
            phase: .copy,
            completedPages: backup.completedPages,
            totalPages: backup.totalPages,
            pageSize: pageSize
        )
    }

    private static func begin(from source: Connection, to target: Connection) throws(DatabaseError) -> Backup {
        let backup = try Backup(from: source, to: target)
        do throws(DatabaseError) {
            // Attaches it to the source, and counts the pages.
            _ = try backup.step(pages: 0)
            return backup
        } catch {
            // Before its target: SQLite would use that when the source closes.
            source.end(backup)
            throw error
        }
    }

    /// Copies some pages.
    ///
    /// A store that has become shorter than what is copied ends the copy, from when on SQLite forwards nothing to it. So
    /// the copy begins anew. https://www.sqlite.org/c3ref/backup_finish.html#sqlite3backupstep
    func advance() throws(DatabaseError) {
        let before = backup.completedPages
        stepsLeft -= 1
        let goesOn = try backup.step(pages: LiveCopy.pagesPerStep)
        if goesOn, backup.completedPages >= before { return }
        restartCount += 1
        guard !goesOn else { return }
        source.end(backup)
        backup = try LiveCopy.begin(from: source, to: target)
    }

    /// Copies the rest, and closes the copy. Nobody of this process may write to the store any more.
    func complete() throws(DatabaseError) {
        defer { usageLock?.release() }
        // What cannot be moved into the file now shows in the state.
        if isWAL { _ = try? source.checkpoint(.truncate, schema: "main") }
        let state = try StoreState.settled(path)
        while try backup.step(pages: 1024) {}
        source.end(backup)
        try file.finish(target, setsWAL: isWAL)
        completedState = state
    }

    /// Whether the copy has all that the store has, for whoever has the store alone.
    func isCurrent() throws(DatabaseError) -> Bool {
        guard let completedState else { return false }
        return try StoreState(of: path) == completedState
    }

    /// Idempotent. On another thread than that of the source's user SQLite lets go of the target, which is then closed,
    /// at the source's next turn.
    func discard() {
        source.end(backup)
        file.discard()
        usageLock?.release()
    }
}
