import Foundation
import Synchronization

/// Moves the log of WAL mode into the database file, for the one connection of a pool that does so, and bounds its size.
///
/// SQLite would let each connection do it whenever it has committed; two that do so at once can damage the file in
/// versions before 3.51.3. https://www.sqlite.org/wal.html#walresetbug
///
/// As a rule it moves what it can without waiting for anybody (PASSIVE). But the log begins anew only when no reader needs
/// it, and readers that overlap always do. So beyond the configuration's limit it asks for a moment without any, in which
/// the log is emptied.
// @unchecked: what changes is atomic, or set once before the first use.
final class LogKeeper: @unchecked Sendable {
    /// The number of frames at which the log is moved.
    static let threshold = Connection.checkpointThreshold
    /// Seconds that it waits for a moment without readers.
    static let patience = 5.0

    private let maximumSize: Int
    private let instruments: Instruments
    /// Empties the log, on another thread.
    var empty: (@Sendable (_ done: @escaping @Sendable (_ isEmpty: Bool) -> Void) -> Void)?
    private let isEmptying = Atomic(false)
    /// The size that is worth another attempt.
    private let nextSize: Atomic<Int>

    init(maximumSize: Int, instruments: Instruments) {
        self.maximumSize = maximumSize
        self.instruments = instruments
        nextSize = Atomic(maximumSize)
    }

    /// Empties the log, for whoever has the store alone in this process; false if others still need it.
    static func emptyLog(of database: Database) -> Bool {
        guard let connection = database.connection else { return false }
        // A block may have set another one than the configuration's.
        let timeout = connection.busyWait?.timeout ?? database.configuration.busyTimeout
        // Readers of other processes are not waited for while everybody here waits.
        connection.setBusyTimeout(seconds: 0)
        defer { connection.setBusyTimeout(seconds: timeout) }
        // Why it failed makes no difference: the log is as it was, and it is tried again when that has grown.
        return (try? connection.checkpoint(.truncate, schema: "main")) != nil
    }

    /// Whether there is something to do, after a commit of this connection.
    func isDue(_ database: Database) -> Bool {
        guard let connection = database.connection, !database.isInTransaction else { return false }
        return connection.walFrameCount >= LogKeeper.threshold
    }

    /// For whoever has the writer's place, after a commit of this connection.
    func checkpoint(_ database: Database) {
        guard isDue(database), let connection = database.connection else { return }
        connection.walFrameCount = 0
        // Nothing is lost by one that fails: the log has it all, and a later commit makes another one.
        _ = try? connection.checkpoint(.passive, schema: "main")
        let path = connection.mainFilePath.map { $0 + "-wal" }
        // The file stays as large as it ever was, until it is emptied. One whose size is not known is looked at next time.
        guard let size = path.flatMap({ try? Int(FileSystem.status($0).st_size) }) else { return }
        instruments.logged(bytes: size)
        guard size >= nextSize.load(ordering: .relaxed), !isEmptying.exchange(true, ordering: .relaxed) else { return }
        let logger = database.configuration.logger
        empty? { [self] isEmpty in
            nextSize.store(isEmpty ? maximumSize : size + maximumSize / 4, ordering: .relaxed)
            isEmptying.store(false, ordering: .relaxed)
            guard !isEmpty else { return }
            logger?.warning(
                "the log is beyond its limit and could not be emptied, as by readers that go on",
                metadata: ["bytes": "\(size)", "limit": "\(maximumSize)"]
            )
        }
    }
}
