import Foundation

/// Opens the connections of a pool, several at a time but for the first: it creates the file, sets its journal mode and
/// derives the key, which the others then share.
final class Opening: Sendable {
    private let flags: Int32
    private let vfs: String?
    private let isFirstDone = Guarded(false)
    private let firstLock = NSLock()

    init(flags: Int32, vfs: String?) {
        self.flags = flags
        self.vfs = vfs
    }

    /// Opens it if it is closed, and leaves checkpoints to the pool.
    func open(_ database: Database) throws(DatabaseError) {
        guard !database.isOpen else { return }
        if isFirstDone.withLock({ $0 }) { return try openNow(database) }
        firstLock.lock()
        defer { firstLock.unlock() }
        try openNow(database)
        isFirstDone.withLock { $0 = true }
    }

    private func openNow(_ database: Database) throws(DatabaseError) {
        guard database.open(withFlags: flags, vfs: vfs) else { throw database.recordedError ?? .notOpen }
        database.connection?.countWALFrames()
    }
}
