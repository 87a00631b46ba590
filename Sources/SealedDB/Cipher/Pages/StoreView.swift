import Foundation

/// A view of a store that writes nothing, not even beside it: no lock file, no index and no journal.
///
/// SQLite reads the file as an immutable one, through a VFS in which the pages of the log or hot journal replace those
/// of the file. What is read is the store as it was when the view was opened. These keep it so:
///
/// - A file on a medium that is mounted read-only does not change.
/// - In rollback-journal mode SQLite's shared lock on the file keeps writers out.
/// - In WAL mode with users, the read transaction of an ordinary connection keeps them from overwriting what is read.
/// - In WAL mode without users, ``isStill()`` finds out afterwards whether somebody has written.
final class StoreView {
    private let path: String
    private let isOnReadOnlyMedium: Bool
    /// A connection whose read transaction keeps others from overwriting the log; `nil` if none is needed.
    private let reader: Connection?
    /// The state of the files when the view was opened. ``isStill()`` compares it with their state then.
    private var marks: [Mark] = []
    private var file: FileView?

    /// Opens the file without a key. As long as the connection is open, it reads the store as it was at this moment.
    static func connection(for opening: StoreOpening) throws(DatabaseError) -> Connection {
        guard let path = opening.path, let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(opening.path ?? "")", reason: .noSuchFile)
        }
        let view = try StoreView(resolved, opening)
        let readsLog = try view.reader.map { reader throws(DatabaseError) in try !reader.hasWholeLogInFile() } ?? true
        let timeout = view.isOnReadOnlyMedium ? nil : opening.busyTimeout
        let file = try FileView(path: resolved, lockTimeout: timeout) {
            [unowned view] hasWriter throws(DatabaseError) in
            view.marks = StoreView.marks(of: resolved)
            return try StoreView.overlay(resolved, hasWriter: hasWriter, readsLog: readsLog)
        }
        view.file = file
        let connection = try file.open(opening.gate)
        connection.view = view
        return connection
    }

    private init(_ path: String, _ opening: StoreOpening) throws(DatabaseError) {
        self.path = path
        isOnReadOnlyMedium = FileSystem.isOnReadOnlyMedium(path)
        reader = isOnReadOnlyMedium ? nil : try StoreView.reader(path, opening)
    }

    deinit {
        reader?.close()
    }

    /// If others use the store in WAL mode: a connection with a read transaction, which keeps them from overwriting the
    /// log and the file. Otherwise `nil`.
    private static func reader(_ path: String, _ opening: StoreOpening) throws(DatabaseError) -> Connection? {
        guard FileSystem.mayExist(path + "-shm"), FileSystem.mayExist(path + "-wal"),
            LockHolders.hasLocks(on: path + "-shm", ifUnknown: true)
        else { return nil }
        var ordinary = opening
        ordinary.looks = false
        let reader = try ordinary.open()
        do throws(DatabaseError) {
            try reader.run("BEGIN")
            _ = try reader.integer("SELECT count(*) FROM sqlite_schema")
            return reader
        } catch {
            reader.close()
            throw error
        }
    }

    private static func overlay(
        _ path: String,
        hasWriter: Bool,
        readsLog: Bool
    ) throws(DatabaseError) -> LogOverlay? {
        // While another process is in a transaction, its journal is not hot: the file is as it was before the
        // transaction.
        let journal = hasWriter ? nil : try LogOverlay(journalOf: path)
        let log = readsLog ? try LogOverlay(logOf: path) : nil
        guard journal == nil || log == nil else {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: """
                    \(path) has both a log and a journal of a transaction that was cut off. Nothing was changed. Open it \
                    once to write, by which SQLite puts it in order.
                    """
            )
        }
        guard let overlay = journal ?? log else { return nil }
        // Anybody could write a huge page count there, and then every one of these pages would be looked for.
        let size = Int64(try FileSystem.status(path).st_size)
        guard overlay.pageCount <= size / Int64(overlay.pageSize) + Int64(overlay.ownPageCount) + 1 else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The log or journal beside \(path) is damaged: it says that the store has \(overlay.pageCount) pages, \
                    more than there are in both. Nothing was changed. Restore the store from a backup.
                    """
            )
        }
        return overlay
    }

    // MARK: Changes

    /// The attributes of a file that change when it is written to.
    struct Mark: Equatable {
        private let device: dev_t
        private let inode: ino_t
        private let size: off_t
        private let seconds: Int
        private let nanoseconds: Int

        init(_ path: String) {
            var status = stat()
            // A file that does not exist or cannot be examined has zeros everywhere.
            if stat(path, &status) != 0 { status = stat() }
            device = status.st_dev
            inode = status.st_ino
            size = status.st_size
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    /// The marks of the store's file and of its log.
    static func marks(of path: String) -> [Mark] { [Mark(path), Mark(path + "-wal")] }

    /// Whether the store is as it was when the view was opened. True without a comparison if nobody could have written.
    func isStill() -> Bool { reader != nil || isOnReadOnlyMedium || marks == StoreView.marks(of: path) }
}

extension Connection {
    /// Makes sure that nobody has written to the file that was read through a ``StoreView``. Call it once, after
    /// reading and before the copy is put in place.
    /// - Throws: ``DatabaseError/Reason/busy`` if somebody has written to the file.
    func requireStill() throws(DatabaseError) {
        guard let view = view as? StoreView, !view.isStill() else { return }
        throw DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                Somebody wrote to the store while it was read without a lock. What was read may be of several moments. Try \
                again.
                """
        )
    }
}
