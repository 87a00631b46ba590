import Foundation
internal import SQLiteEngine

/// Adds whole transactions to the write-ahead log of a store without its key, beside connections that read it.
///
/// A connection without a key cannot read a page, and SQLite says so. But it opens the log before that, and what it does with
/// it needs no key: it locks it, it recovers its index, and moves frames into the file as they are. What is added here is
/// written, synced and told by SQLite's own files, locks and index, in the order in which a writer of SQLite does it. So
/// readers cannot tell it from one. <https://www.sqlite.org/walformat.html>
///
/// Not for several threads at once.
final class KeylessLog {
    let path: String
    let pageSize: Int
    private let connection: Connection
    /// The log and its index, as their names led to them when they were opened.
    private var parts: [(name: String, status: stat)] = []

    /// Frames to be added, which make one transaction.
    struct Addition {
        /// The pages of the frames, in their order.
        let pages: [UInt32]
        /// The pages of the store after it.
        let pageCount: Int64
        let salts: [UInt8]
        /// That of the last frame.
        let checksum: [UInt8]
    }

    /// Opens the log of a store that is in WAL mode.
    /// - Parameters:
    ///   - path: that of the store, with symbolic links followed.
    ///   - newHeader: what a log begins with that is empty or missing: SQLite opens none without a key that is empty.
    ///   - lock: is held as long as the log is open.
    init(
        path: String,
        pageSize: Int,
        busyTimeout: Double,
        newHeader: [UInt8],
        lock: UsageLock?
    ) throws(DatabaseError) {
        (self.path, self.pageSize) = (path, pageSize)
        connection = try Connection(path: path, flags: SQLITE_OPEN_READWRITE)
        if let lock { connection.usageLocks[ExactText("main")] = lock }
        do throws(DatabaseError) {
            try connection.setCheckpointsOnClose(false)
            connection.setBusyTimeout(seconds: busyTimeout)
            try connection.run("PRAGMA page_size = \(pageSize)")
            guard let handle = connection.handle else { throw .notOpen }
            // Whoever closes the store last has it for himself for a moment.
            try patiently { sealeddb_open_log_index(handle) }
            try whileLocked(handle) { () throws(DatabaseError) in try begin(newHeader) }
            try openIndex()
            _ = try size()  // It throws if SQLite has opened none.
            for name in [path + "-wal", path + "-shm"] { parts.append((name, try FileSystem.status(name))) }
        } catch {
            // It does nothing but close a descriptor, which cannot fail in a way that matters.
            if let handle = connection.handle { _ = sealeddb_close_log_index(handle) }
            close()
            throw error.adding(context: "The log of \(path) was not opened, and is as it was")
        }
    }

    deinit {
        close()
    }

    /// - Returns: false if it could not be closed.
    @discardableResult
    func close() -> Bool { connection.close() }

    /// Begins a log that is missing or empty.
    private func begin(_ header: [UInt8]) throws(DatabaseError) {
        let name = path + "-wal"
        if let status = try FileSystem.statusIfPresent(name) {
            guard status.st_size == 0 else { return }
        } else {
            try FileSystem.createExclusively(name)
            do throws(DatabaseError) {
                try FileSystem.copyAttributes(from: path, to: name)
            } catch {
                // It is empty, and counts as none.
                unlink(name)
                throw error
            }
        }
        try OwnFile(name).write(header, at: 0)
    }

    /// Has SQLite read the store's first page, which makes the index of the log if there is none.
    private func openIndex() throws(DatabaseError) {
        do throws(DatabaseError) {
            try connection.run("SELECT count(*) FROM main.sqlite_schema")
        } catch {
            // Without a key no page is one of a database: so far it comes.
            guard error.code != SQLITE_NOTADB else { return }
            throw error
        }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .unverified,
            message: "\(path) is not encrypted, as what was put there was. Nothing was changed."
        )
    }

    // MARK: Reading

    /// The first bytes of the store's file.
    func fileHeader() throws(DatabaseError) -> [UInt8] { try connection.mainFileHeader() }

    func fileSize() throws(DatabaseError) -> Int64 { try connection.mainFileSize() }

    /// Reads pages of the file, without the log.
    /// - Returns: how many bytes were read.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Int {
        var done = 0
        while done < buffer.count {
            let part = buffer[done..<min(buffer.count, done + KeylessLog.bytesAtOnce)]
            let got = try connection.readFile(at: offset + Int64(done), into: .init(rebasing: part))
            done += got
            if got < part.count { break }
        }
        return done
    }

    /// SQLite's files take no more than 128 KiB in a call.
    private static let bytesAtOnce = 1 << 16

    /// Whether the path leads to another file than before, or to none.
    func fileHasMoved() throws(DatabaseError) -> Bool { try connection.mainFileHasMoved() }

    /// Whether those who open the store now have another log, or another index of it.
    func isUnseenByOthers() throws(DatabaseError) -> Bool {
        for part in parts {
            guard try FileSystem.statusIfPresent(part.name)?.isSameFile(as: part.status) == true else { return true }
        }
        return false
    }

    /// Where the log ends.
    func position() throws(DatabaseError) -> LogPosition {
        try openIndex()
        guard let handle = connection.handle else { throw .notOpen }
        return try present(handle)
    }

    private func present(_ handle: OpaquePointer) throws(DatabaseError) -> LogPosition {
        guard let found = try connection.waitForLogPosition(handle) else {
            throw DatabaseError(extendedCode: SQLITE_PROTOCOL, message: "The log of \(path) has no index.")
        }
        return LogPosition(found)
    }

    // MARK: Writing

    /// Calls `body` while nobody else writes to the log.
    /// - Parameter body: gets where the log ends.
    func whileNobodyWrites<T>(
        _ body: (LogPosition) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        // An index that somebody left without a word is made again by this.
        try openIndex()
        guard let handle = connection.handle else { throw .notOpen }
        return try whileLocked(handle) { () throws(DatabaseError) in try body(present(handle)) }
    }

    private func whileLocked<T>(
        _ handle: OpaquePointer,
        _ body: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        // The result goes to `patiently`, which looks at it.
        try patiently { sealeddb_lock_log(handle, 1) }
        // To give a lock back that is held does not fail; if it did, closing the connection would give it back.
        defer { _ = sealeddb_lock_log(handle, 0) }
        return try body()
    }

    /// Calls again what needs a lock that others have.
    private func patiently(_ call: () -> Int32) throws(DatabaseError) {
        var patience = Patience(seconds: KeylessLog.lockWait)
        while true {
            let code = call()
            guard code & 0xff == SQLITE_BUSY else { return try connection.check(code) }
            guard patience.wait() else {
                throw DatabaseError(extendedCode: code, reason: .busy, message: "Somebody writes to \(path).")
            }
        }
    }

    /// Others have such locks for a moment only.
    private static let lockWait = 2.0

    /// The bytes of the log's file.
    func size() throws(DatabaseError) -> Int64 {
        guard let handle = connection.handle else { throw .notOpen }
        var size: sqlite3_int64 = 0
        let code = sealeddb_log_size(handle, &size)
        guard code != SQLITE_NOTFOUND else {
            throw DatabaseError(extendedCode: SQLITE_IOERR, message: "SQLite has found no log beside \(path).")
        }
        try connection.check(code)
        return size
    }

    /// Writes bytes to the log, where nobody reads them yet. For ``whileNobodyWrites(_:)``.
    func write(_ bytes: [UInt8], at offset: Int64) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        var done = 0
        while done < bytes.count {
            let count = min(KeylessLog.bytesAtOnce, bytes.count - done)
            let code = bytes.withUnsafeBytes {
                sealeddb_write_log(handle, $0.baseAddress! + done, Int32(count), offset + Int64(done))
            }
            try connection.check(code)
            done += count
        }
    }

    /// Cuts off what nobody reads. For ``whileNobodyWrites(_:)``.
    func truncate(to size: Int64) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try connection.check(sealeddb_truncate_log(handle, size))
    }

    func synchronize() throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try connection.check(sealeddb_sync_log(handle))
    }

    /// Has all connections see frames that were written and synced. For ``whileNobodyWrites(_:)``.
    /// - Parameter first: how many frames come before.
    /// - Returns: where the log ends then.
    func publish(_ addition: Addition, after first: Int64) throws(DatabaseError) -> LogPosition {
        guard let handle = connection.handle else { throw .notOpen }
        var content = sealeddb_log_addition()
        content.first = UInt32(first)
        content.count = UInt32(addition.pages.count)
        content.page_count = UInt32(addition.pageCount)
        content.page_size = UInt32(pageSize)
        content.checksum.0 = addition.checksum.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        content.checksum.1 = addition.checksum.dropFirst(4).reduce(0) { $0 << 8 | UInt32($1) }
        withUnsafeMutableBytes(of: &content.salts) { $0.copyBytes(from: addition.salts) }
        let code = addition.pages.withUnsafeBufferPointer { sealeddb_publish_frames(handle, &content, $0.baseAddress) }
        try connection.check(code)
        return try present(handle)
    }

    /// Moves the log into the file, and empties it.
    /// - Returns: false if somebody still reads from it. Then a part of it may be in the file.
    func empty() throws(DatabaseError) -> Bool {
        do throws(DatabaseError) {
            let counts = try connection.checkpoint(.truncate, schema: "main")
            return counts.logFrameCount <= counts.checkpointCount
        } catch {
            guard error.code == SQLITE_BUSY else { throw error }
            return false
        }
    }

    /// Moves as much of the log into the file as is possible without waiting.
    func moveIntoFile() throws(DatabaseError) { _ = try connection.checkpoint(.passive, schema: "main") }
}
