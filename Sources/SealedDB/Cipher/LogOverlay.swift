import Foundation

/// What stands in a log or journal beside a store and belongs in the place of the file's own pages, encrypted like these.
struct LogOverlay: PageOverlay {
    let pageSize: Int
    let pageCount: Int64
    /// How many pages it holds itself.
    var ownPageCount: Int { offsets.count }
    /// Where the pages' bytes begin in the log.
    private let offsets: [Int64: Int64]
    private let contents: FileReader

    func bytes(ofPage number: Int64, from start: Int, count: Int) throws(DatabaseError) -> [UInt8]? {
        guard let offset = offsets[number] else { return nil }
        guard let bytes = try contents.bytes(at: offset + Int64(start), count: count) else {
            throw DatabaseError(
                extendedCode: SQLITE_IOERR_SHORT_READ,
                message: "The log was cut off while it was read. Nothing was changed. Try again."
            )
        }
        return bytes
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }
}

// MARK: Write-ahead log

extension LogOverlay {
    /// All transactions that were committed to the log of a store in WAL mode, as SQLite would recover them.
    /// <https://www.sqlite.org/walformat.html>
    /// - Returns: `nil` if there are none.
    init?(logOf path: String) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-wal"), let header = try contents.bytes(at: 0, count: 32) else {
            return nil
        }
        let magic = LogOverlay.number(header[..<4])
        let pageSize = Int(LogOverlay.number(header[8..<12]))
        guard magic == 0x377f_0682 || magic == 0x377f_0683, LogOverlay.number(header[4..<8]) == 3_007_000,
            (512...65536).contains(pageSize), pageSize & (pageSize - 1) == 0
        else { return nil }
        var sum = Checksum(isBigEndian: magic & 1 == 1)
        sum.add(header[..<24])
        guard sum.bytes[...] == header[24..<32] else { return nil }
        var offset: Int64 = 32
        var pageCount: Int64 = 0
        var committed: [Int64: Int64] = [:]
        var pending: [Int64: Int64] = [:]
        while let frame = try contents.bytes(at: offset, count: 24 + pageSize) {
            sum.add(frame[..<8])
            sum.add(frame[24...])
            let page = LogOverlay.number(frame[..<4])
            guard page > 0, frame[8..<16] == header[16..<24], sum.bytes[...] == frame[16..<24] else { break }
            pending[page] = offset + 24
            let count = LogOverlay.number(frame[4..<8])
            if count > 0 {
                pageCount = count
                committed.merge(pending) { $1 }
                pending = [:]
            }
            offset += Int64(frame.count)
        }
        guard pageCount > 0 else { return nil }
        self.init(pageSize: pageSize, pageCount: pageCount, offsets: committed, contents: contents)
    }

    /// How many transactions were committed to the log behind a frame that is damaged. SQLite takes that frame for the end
    /// of the log, and drops them without a word.
    ///
    /// A frame that follows the one before it, by salts and checksums, was written as it is. One such transaction may be
    /// what a power failure tore; it was never acknowledged where commits are synced.
    /// - Returns: 0 for none or one; also while somebody uses the store, who has them in the index of the log.
    static func lostTransactions(ofStore path: String) throws(DatabaseError) -> Int {
        guard !LockHolders.hasLocks(on: path + "-shm"), let contents = try FileReader(path + "-wal"),
            let header = try contents.bytes(at: 0, count: 32)
        else { return 0 }
        let magic = LogOverlay.number(header[..<4])
        let pageSize = Int(LogOverlay.number(header[8..<12]))
        guard magic == 0x377f_0682 || magic == 0x377f_0683, (512...65536).contains(pageSize) else { return 0 }
        var count = 0
        var isBroken = false
        var previous = header[24..<32]
        var offset: Int64 = 32
        while let frame = try contents.bytes(at: offset, count: 24 + pageSize) {
            var sum = Checksum(isBigEndian: magic & 1 == 1, after: previous)
            sum.add(frame[..<8])
            sum.add(frame[24...])
            let isWhole = frame[8..<16] == header[16..<24] && sum.bytes[...] == frame[16..<24]
            if !isWhole { isBroken = true }
            if isBroken, isWhole, LogOverlay.number(frame[4..<8]) > 0 { count += 1 }
            previous = frame[16..<24]
            offset += Int64(frame.count)
        }
        return count > 1 ? count : 0
    }

    /// Before a store takes another's place, or a copy is made of it.
    static func requireWholeLog(ofStore path: String) throws(DatabaseError) {
        let count = try lostTransactions(ofStore: path)
        guard count == 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The log \(path)-wal is damaged: \(count) transactions that were committed stand behind a frame that was \
                    changed, and SQLite would drop them. Nothing was changed. Keep a copy of the store with its log. To go on \
                    without them, open the store once to write, as by `sealdb exec`.
                    """
            )
        }
    }

    /// https://www.sqlite.org/walformat.html#checksum_algorithm
    private struct Checksum {
        let isBigEndian: Bool
        private var first: UInt32 = 0
        private var second: UInt32 = 0

        init(isBigEndian: Bool) {
            self.isBigEndian = isBigEndian
        }

        /// Goes on from the eight bytes of another one.
        init(isBigEndian: Bool, after sum: ArraySlice<UInt8>) {
            self.isBigEndian = isBigEndian
            first = UInt32(LogOverlay.number(sum.prefix(4)))
            second = UInt32(LogOverlay.number(sum.suffix(4)))
        }

        /// A multiple of eight bytes.
        mutating func add(_ bytes: ArraySlice<UInt8>) {
            bytes.withUnsafeBytes { buffer in
                for offset in stride(from: 0, to: buffer.count - 7, by: 8) {
                    first &+= word(buffer, offset) &+ second
                    second &+= word(buffer, offset + 4) &+ first
                }
            }
        }

        private func word(_ buffer: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
            let word = buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
        }

        /// As the log has them, whatever the order of the words that are summed.
        var bytes: [UInt8] {
            [first, second].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
        }
    }
}

// MARK: Rollback journal

extension LogOverlay {
    /// The pages that SQLite would put back, of a transaction that was cut off.
    /// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
    /// - Returns: `nil` if the journal is not hot. Whether somebody is still writing is to be asked before.
    init?(journalOf path: String) throws(DatabaseError) {
        guard let journal = try RollbackJournal(ofStore: path), try !journal.hasLostSuperJournal() else { return nil }
        var offsets: [Int64: Int64] = [:]
        try journal.forEachRecord { number, offset in
            if offsets[number] == nil { offsets[number] = offset }
        }
        self.init(
            pageSize: journal.pageSize,
            pageCount: journal.originalPageCount,
            offsets: offsets,
            contents: journal.contents
        )
    }
}
