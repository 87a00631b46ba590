import Foundation
import Synchronization

/// Makes the checkpoints of a pool, which move the write-ahead log into the database file, and bounds the size of the
/// log.
///
/// By default, each SQLite connection may make a checkpoint after its commits. In versions before 3.51.3, two
/// checkpoints at the same time can damage the file. So the pool turns SQLite's automatic checkpoints off, and makes
/// its own only while it holds the writer's place. https://www.sqlite.org/wal.html#walresetbug
///
/// Usually a checkpoint moves what it can without waiting for anybody (PASSIVE). But the log only begins anew when no
/// reader needs it, and readers that overlap always do. So if the log exceeds the configuration's limit, the pool waits
/// for a moment without readers, and empties the log then.
// @unchecked: what changes is atomic, or set once before the first use.
final class LogKeeper: @unchecked Sendable {
    /// The number of frames in the log from which a checkpoint is due.
    static let threshold = Connection.checkpointThreshold
    /// How many seconds to wait for a moment without readers.
    static let patience = 5.0

    private let maximumSize: Int
    private let instruments: Instruments
    /// Empties the log on another thread, and then calls `done`.
    var empty: (@Sendable (_ done: @escaping @Sendable (_ isEmpty: Bool) -> Void) -> Void)?
    private let isEmptying = Atomic(false)
    /// The size of the log in bytes from which emptying it is tried next.
    private let nextSize: Atomic<Int>

    init(maximumSize: Int, instruments: Instruments) {
        self.maximumSize = maximumSize
        self.instruments = instruments
        nextSize = Atomic(maximumSize)
    }

    /// Empties the log. The caller must be the only user of the store in this process. Returns false if the log could
    /// not be emptied, for example because another process still needs it.
    static func emptyLog(of database: Database) -> Bool {
        guard let connection = database.connection else { return false }
        // A block may have set another timeout than the configuration's.
        let timeout = connection.busyWait?.timeout ?? database.configuration.busyTimeout.seconds
        // Do not wait for readers of other processes, because everybody in this process waits meanwhile.
        connection.setBusyTimeout(seconds: 0)
        defer { connection.setBusyTimeout(seconds: timeout) }
        // The reason for a failure does not matter: the log is unchanged, and emptying it is tried again when it has
        // grown.
        return (try? connection.checkpoint(.truncate, schema: "main")) != nil
    }

    /// Whether a checkpoint should be made after the last commit of this connection.
    func isDue(_ database: Database) -> Bool {
        guard let connection = database.connection, !database.isInTransaction else { return false }
        return connection.walFrameCount >= LogKeeper.threshold
    }

    /// Makes a checkpoint if one is due after a commit of this connection. The caller must hold the writer's place.
    func checkpoint(_ database: Database) {
        guard isDue(database), let connection = database.connection else { return }
        connection.walFrameCount = 0
        // A failed checkpoint loses nothing: the log still has everything, and a later commit makes another one.
        _ = try? connection.checkpoint(.passive, schema: "main")
        let path = connection.mainFilePath.map { $0 + "-wal" }
        // The log file never shrinks until it is emptied. If its size cannot be determined now, it is checked next
        // time.
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
