/// What a damaged log or journal still has. Its pages are known by their own codes, so that neither its checksums nor the
/// pages before them are needed. What the disk cannot read is left out.
extension LogOverlay {
    /// The pages of the transactions that are committed in a log, without those that were changed.
    ///
    /// Behind the end of the log may stand frames of a transaction that a power failure has cut off, with the same salts and
    /// right codes. They do not continue the checksum of the last frame. Each frame has the one up to itself, so that it does not
    /// matter what is damaged before. Where a header is damaged, the frame behind it tells what it was. Where a page is, nothing tells
    /// whether the next ones are of this log: they are taken.
    ///
    /// A page of which the file has a newer version than the log is left to the file.
    /// - Parameter store: a connection to the store, opened without a key.
    /// - Returns: `nil` if no transaction is left.
    init?(salvagedLogOf path: String, cipher: PageCipher, store: Connection) throws(DatabaseError) {
        let pageSize = cipher.parameters.pageSize
        guard let contents = try FileReader(path + "-wal") else { return nil }
        let frames = SalvagedFrames(contents: contents, size: try contents.size(), cipher: cipher)
        guard let start = try frames.start() else { return nil }
        var (offset, pageCount, lastCommit) = (SalvagedFrames.begin, 0 as Int64, 0 as Int64)
        var (committed, pending): ([Int64: Int64], [Int64: Int64]) = ([:], [:])
        var checkpoint = SalvagedCheckpoint(store: store, cipher: cipher)
        // Up to the frame before, and whether that frame is known to be whole, so that this is what it should be.
        var (sum, isProven) = (start.sum, start.sum != nil)
        // The same, if the checksum of the frame before is what is damaged.
        var otherSum: LogChecksum?
        log: while offset + frames.frameSize <= frames.size {
            defer { offset += frames.frameSize }
            guard let frame = try frames.frame(at: offset) else {
                (sum, isProven) = (nil, false)
                continue
            }
            let (header, place) = (frame.header, offset + Int64(LogFrameHeader.size))
            let computed = frame.page.flatMap { page in sum?.adding(header, page[...]) }
            let stored = LogChecksum(isBigEndian: start.isBigEndian, after: header.checksum)
            var (number, commits, isAuthentic) = (header.page, header.pageCount, frame.isAuthentic)
            let next = offset + frames.frameSize
            let (known, sums) = (sum, [sum, otherSum].compactMap { $0 })
            (sum, otherSum) = (stored, isAuthentic ? computed : nil)
            // Those of an older log continue each other's checksums, too.
            let isOfLog = isProven || header.salts == start.salts
            if isOfLog, computed?.bytes == stored.bytes {
                isProven = true
            } else if isOfLog, let known,
                let proven = try frames.proven(frame, behind: known, stored, next: next, start.salts)
            {
                // Its header alone is damaged.
                (number, commits, isAuthentic) = (proven.page, proven.pageCount, true)
                (sum, isProven) = (proven.sum, true)
            } else if !isAuthentic {
                isProven = false
                // Its header may be damaged, too.
                if header.salts != start.salts { commits = 0 }
            } else if isProven, let computed {
                // Its checksum is damaged, and that of the next one, too; or the log has ended before.
                switch try frames.continues(computed, at: next, start.salts) {
                case true?: sum = computed
                case false?: break log
                case nil: isProven = false
                }
            } else if header.salts != start.salts {
                // A frame of an older log, unless those that follow it are of this one.
                guard try frames.frame(at: next)?.header.salts == start.salts,
                    try frames.continues(stored, at: next, start.salts) == true
                else {
                    sum = nil
                    continue
                }
            }
            if isAuthentic {
                pending[number] = place
                try checkpoint.note(frame.page, number, at: place)
            } else {
                try checkpoint.noteDamage(frame, of: start.salts, behind: sums, at: place)
            }
            if commits > 0 {
                (pageCount, lastCommit) = (commits, place)
                committed.merge(pending) { $1 }
                pending = [:]
            }
        }
        guard pageCount > 0 else { return nil }
        try checkpoint.settle(committed.keys)
        committed = committed.filter { !checkpoint.isNewer(than: $1, of: $0) }
        // The newest page count may have stood in what is damaged. The file ends with the database behind a checkpoint.
        if checkpoint.end > lastCommit {
            pageCount = max(pageCount, try store.mainFileSize() / Int64(pageSize))
        }
        self.init(pageSize: pageSize, pageCount: pageCount, offsets: committed, contents: contents)
        outdatedPages = checkpoint.outdated(committed, pageCount: pageCount, end: lastCommit)
    }

    /// The pages that a journal would put back, without those that were changed. Records of earlier transactions, which may stand
    /// behind those of the last one, are left out.
    /// - Parameters:
    ///   - store: a connection to the store, opened without a key.
    ///   - isHot: whether it is known that the transaction was cut off. Otherwise only the header tells.
    /// - Returns: `nil` if it need not be put back.
    init?(
        salvagedJournalOf path: String,
        cipher: PageCipher,
        store: Connection,
        isHot: Bool
    ) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-journal") else { return nil }
        var journal = try readable { () throws(DatabaseError) in try RollbackJournal(ofStore: path) }
        if journal?.pageSize != cipher.parameters.pageSize { journal = nil }
        guard isHot || journal != nil else { return nil }
        let records = JournalRecords(contents: contents, cipher: cipher, skipsUnreadable: true)
        let originals = try records.originals(sectorSize: journal?.sectorSize)
        let pageSize = cipher.parameters.pageSize
        // SQLite journals the first page when it is to be changed, which may be as late as at the commit.
        let first = try readable { () throws(DatabaseError) in
            guard let offset = originals[1] else { return try store.fileBytes(count: pageSize) }
            return try contents.bytes(at: offset, count: pageSize)
        }
        var pageCount = journal?.originalPageCount
        if pageCount == nil, let first, try cipher.isAuthentic(first, number: 1) {
            pageCount = try cipher.declaredPageCount(first)
        }
        if pageCount == nil { pageCount = try store.mainFileSize() / Int64(pageSize) }
        self.init(pageSize: pageSize, pageCount: pageCount ?? 0, offsets: originals, contents: contents)
    }

    /// The salts of the first page in the log and in the journal beside a store, which nothing proves yet.
    static func salts(beside path: String, pageSize: Int) throws(DatabaseError) -> [[UInt8]] {
        var result: [[UInt8]] = []
        func add(_ bytes: ArraySlice<UInt8>) {
            guard BigEndian.number(bytes.prefix(4)) == 1 else { return }
            let salt = Array(bytes.suffix(Key.saltByteCount))
            // A damaged log could give any number of them, and each may cost a derivation.
            if result.count < 4, !result.contains(salt) { result.append(salt) }
        }
        // Records of a journal whose header is lost most likely begin behind a sector of 512 bytes.
        let journal = try readable { () throws(DatabaseError) in try RollbackJournal(ofStore: path) }
        let sectorSize = journal?.sectorSize ?? 512
        for (suffix, start, gap, end) in [("-wal", 32 as Int64, 24, 0), ("-journal", sectorSize, 4, 4)] {
            guard let contents = try FileReader(path + suffix) else { continue }
            let size = try contents.size()
            for offset in stride(from: start, to: size, by: gap + pageSize + end) {
                let record = try readable { () throws(DatabaseError) in
                    try contents.bytes(at: offset, count: gap + Key.saltByteCount)
                }
                if let record { add(record[...]) }
            }
        }
        return result
    }
}
