import Foundation

/// Opens the connections of a pool. The first connection is opened alone: it creates the file, sets its journal mode
/// and derives the key, which the others then share. The others may be opened at the same time. No opening waits for
/// the `prepare` closure of another one, so that closure may use the pool.
final class Opening: Sendable {
    private let flags: Int32
    private let vfs: String?
    private let isFirstDone = Guarded(false)
    private let first = DispatchSemaphore(value: 1)

    init(flags: Int32, vfs: String?) {
        self.flags = flags
        self.vfs = vfs
    }

    /// Opens the database if it is closed.
    func open(_ database: Database) throws(DatabaseError) {
        guard !database.isOpen else { return }
        guard !isFirstDone.withLock({ $0 }) else { return try openNow(database) }
        first.wait()
        guard !isFirstDone.withLock({ $0 }) else {
            first.signal()
            return try openNow(database)
        }
        var isFirst = true
        database.willPrepare = { [self] in
            isFirstDone.withLock { $0 = true }
            first.signal()
            isFirst = false
        }
        defer {
            database.willPrepare = nil
            if isFirst { first.signal() }
        }
        try openNow(database)
    }

    private func openNow(_ database: Database) throws(DatabaseError) {
        guard database.open(withFlags: flags, vfs: vfs) else { throw database.recordedError ?? .notOpen }
    }
}
