/// What a damaged log or journal still has. Its pages are known by their own codes, so that neither its checksums nor the
/// pages before them are needed.
extension LogOverlay {
    /// The pages of the transactions that are committed in a log, without those that were changed.
    /// - Returns: `nil` if no transaction is left.
    init?(salvagedLogOf path: String, cipher: PageCipher) throws(DatabaseError) {
        let pageSize = cipher.parameters.pageSize
        guard let contents = try FileReader(path + "-wal"), let first = try contents.bytes(at: 32, count: 24) else {
            return nil
        }
        var offset: Int64 = 32
        var pageCount: Int64 = 0
        var (committed, pending): ([Int64: Int64], [Int64: Int64]) = ([:], [:])
        // The salts tell the frames of this log from those of an older one, which the file may still have behind them.
        while let frame = try contents.bytes(at: offset, count: 24 + pageSize), frame[8..<16] == first[8..<16] {
            let number = LogOverlay.number(frame[..<4])
            if cipher.authenticates(frame[24...], number: number) { pending[number] = offset + 24 }
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

    /// The pages that a journal would put back, without those that were changed.
    /// - Returns: `nil` if not even its header can be read.
    init?(salvagedJournalOf path: String, cipher: PageCipher) throws(DatabaseError) {
        guard let journal = try RollbackJournal(ofStore: path), journal.pageSize == cipher.parameters.pageSize else {
            return nil
        }
        var offsets: [Int64: Int64] = [:]
        let recordSize = journal.pageSize + 8
        var offset = journal.sectorSize
        while let record = try journal.contents.bytes(at: offset, count: recordSize) {
            let number = LogOverlay.number(record[..<4])
            if cipher.authenticates(record[4..<(4 + journal.pageSize)], number: number), offsets[number] == nil {
                offsets[number] = offset + 4
            }
            offset += Int64(recordSize)
            // Each part of a journal begins with a header at the start of a sector.
            let next = (offset + journal.sectorSize - 1) / journal.sectorSize * journal.sectorSize
            if let start = try journal.contents.bytes(at: next, count: 8), RollbackJournal.mayBeHeader(start) {
                offset = next + journal.sectorSize
            }
        }
        self.init(
            pageSize: journal.pageSize,
            pageCount: journal.originalPageCount,
            offsets: offsets,
            contents: journal.contents
        )
    }

    /// The salts of the first page in the log and in the journal beside a store, which nothing proves yet.
    static func salts(beside path: String, pageSize: Int) throws(DatabaseError) -> [[UInt8]] {
        var result: [[UInt8]] = []
        func add(_ bytes: ArraySlice<UInt8>) {
            guard LogOverlay.number(bytes.prefix(4)) == 1 else { return }
            let salt = Array(bytes.suffix(Key.saltByteCount))
            // A damaged log could give any number of them, and each may cost a derivation.
            if result.count < 4, !result.contains(salt) { result.append(salt) }
        }
        // Records of a journal whose header is lost most likely begin behind a sector of 512 bytes.
        let sectorSize = try RollbackJournal(ofStore: path)?.sectorSize ?? 512
        for (suffix, start, gap, end) in [("-wal", 32 as Int64, 24, 0), ("-journal", sectorSize, 4, 4)] {
            guard let contents = try FileReader(path + suffix) else { continue }
            var offset = start
            while let record = try contents.bytes(at: offset, count: gap + Key.saltByteCount) {
                add(record[...])
                offset += Int64(gap + pageSize + end)
            }
        }
        return result
    }
}
