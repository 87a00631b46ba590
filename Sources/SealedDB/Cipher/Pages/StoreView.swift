import Foundation

/// A look at a store that writes nothing, not even beside it: neither lock nor index nor journal.
///
/// SQLite reads the file through a VFS of this class, as one that cannot change, with what stands in the log or hot
/// journal put in its place. What is read is the store as it stands when the look begins:
///
/// - A file on a medium that is mounted without the right to write changes by nobody.
/// - In rollback-journal mode SQLite's shared lock on the file keeps writers from it.
/// - In WAL mode with users, a read transaction of an ordinary connection keeps them from overwriting what is read.
/// - In WAL mode without users, ``isStill()`` tells afterwards whether some came.
final class StoreView {
    private let path: String
    private let isOnReadOnlyMedium: Bool
    /// Keeps the log as it is.
    private let reader: Connection?
    /// What ``isStill()`` compares.
    private var marks: [Mark] = []
    private var file: FileView?

    /// Opens the file without a key; what is read from it is what it was at this moment, as long as the connection is open.
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

    /// In WAL mode, while others have the store open: one that keeps them from overwriting log and file.
    private static func reader(_ path: String, _ opening: StoreOpening) throws(DatabaseError) -> Connection? {
        guard FileSystem.exists(path + "-shm"), FileSystem.exists(path + "-wal"),
            LockHolders.hasLocks(on: path + "-shm")
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
        // The journal of somebody who is at work is not hot: the file is as it was before.
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
        // Anybody can write a number there, and every page would be looked for.
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

    /// What of a file changes when it is written to.
    struct Mark: Equatable {
        private let device: dev_t
        private let inode: ino_t
        private let size: off_t
        private let seconds: Int
        private let nanoseconds: Int

        init(_ path: String) {
            var status = stat()
            // One that is not there has all zeros.
            if stat(path, &status) != 0 { status = stat() }
            device = status.st_dev
            inode = status.st_ino
            size = status.st_size
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    /// Of the file and its log.
    static func marks(of path: String) -> [Mark] { [Mark(path), Mark(path + "-wal")] }

    /// Whether the store is as it was when the look began. Where it could not have been written to that is not asked.
    func isStill() -> Bool { reader != nil || isOnReadOnlyMedium || marks == StoreView.marks(of: path) }
}

extension Connection {
    /// For what was read through a ``StoreView``, once, before it is put in place.
    /// - Throws: ``DatabaseError/Reason/busy`` if somebody wrote to the file meanwhile.
    func requireStill() throws(DatabaseError) {
        guard let view = view as? StoreView, !view.isStill() else { return }
        throw DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: "Somebody wrote to the file that is copied while it was read. Try again."
        )
    }
}
