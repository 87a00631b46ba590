import Foundation
internal import SQLiteEngine

/// Where the write-ahead log of a store ends at one moment, as its index has it.
/// <https://www.sqlite.org/walformat.html#the_wal_index_header>
struct LogPosition {
    /// Grows with each transaction, and begins anew with the index.
    let changeCount: UInt32
    /// How many frames of the log belong to committed transactions.
    let frameCount: Int64
    /// The pages of the store after the last of these; 0 if there is none.
    let pageCount: Int64
    /// Those that each frame of the log has. They change when the log begins anew.
    let salts: [UInt8]
    /// That of the last of the frames, as it stands in the log.
    let checksum: [UInt8]
    /// Whether checksums add big-endian words.
    let isBigEndian: Bool
    /// So many frames have been written to the database file, where it has no newer ones.
    let movedCount: Int64
    /// So many may have been: SQLite notes this before it writes the first of them.
    let attemptedCount: Int64

    /// Whether the database file holds what all of these frames hold.
    var isWholeInFile: Bool { movedCount == frameCount }

    /// Whether nothing was committed between the two, while a transaction was open that needs the log up to the first.
    func hasSameEnd(as other: LogPosition) -> Bool {
        frameCount == other.frameCount && salts == other.salts && checksum == other.checksum
    }

    /// Whether SQLite has not written to the database file between the two, while a transaction was open that began before the first.
    ///
    /// It writes there only to move frames of the log. It does not if all were there at the first: those that are added later have
    /// to wait for the transaction. Otherwise it counts what it is about to move, and afterwards what it has moved; both counts
    /// only grow while the log is the same.
    /// <https://www.sqlite.org/walformat.html#the_wal_index_file_format>
    func hasSameFile(as later: LogPosition) -> Bool {
        if isWholeInFile { return true }
        return salts == later.salts && movedCount == attemptedCount && later.movedCount == movedCount
            && later.attemptedCount == attemptedCount
    }
}

extension Connection {
    /// The end of the log now. It may lie after this connection's snapshot. The connection must be in a read transaction.
    /// - Returns: `nil` if the store is not in WAL mode.
    func logPosition() throws(DatabaseError) -> LogPosition? {
        guard let handle else { throw .notOpen }
        // Without a log, to ask for its index would make one, and nobody would remove it.
        guard try text("PRAGMA main.journal_mode") == "wal" else { return nil }
        guard let found = try waitForLogPosition(handle) else { return nil }
        return LogPosition(found)
    }

    /// What the index says; `nil` without one. A store without a log gets an index by this, which is not removed.
    func waitForLogPosition(_ handle: OpaquePointer) throws(DatabaseError) -> sealeddb_log_position? {
        var found = sealeddb_log_position()
        // A process that writes the index may be stopped in the middle of it. SQLite, too, waits for it, and so long.
        var pauses = 2000
        while true {
            let code = sealeddb_read_log_position(handle, &found)
            guard code == SQLITE_PROTOCOL, pauses > 0 else {
                try check(code)
                break
            }
            pauses -= 1
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            // A signal may end the pause early.
            nanosleep(&pause, nil)
        }
        return found.has_index != 0 ? found : nil
    }
}

extension LogPosition {
    init(_ found: sealeddb_log_position) {
        let words = [found.checksum.0, found.checksum.1]
        self.init(
            changeCount: found.change_count,
            frameCount: Int64(found.frame_count),
            pageCount: Int64(found.page_count),
            salts: withUnsafeBytes(of: found.salts) { Array($0) },
            checksum: words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } },
            isBigEndian: found.is_big_endian != 0,
            movedCount: Int64(found.backfilled_count),
            attemptedCount: Int64(found.attempted_count)
        )
    }
}
