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
        let size = try contents.size()
        let limit = (try store.mainFileSize() + size) / Int64(pageSize) + 1
        let frames = SalvagedFrames(contents: contents, size: size, cipher: cipher, limit: limit)
        guard let start = try frames.start() else { return nil }
        var chain = SalvagedChain(frames, from: start)
        var checkpoint = SalvagedCheckpoint(store: store, cipher: cipher)
        // Where the bytes of each page stand, and those of the last commit.
        var (committed, pending): ([Int64: Int64], [Int64: Int64]) = ([:], [:])
        var (pageCount, lastCommit): (Int64, Int64) = (0, 0)
        log: for offset in frames.offsets {
            guard let frame = try frames.frame(at: offset) else {
                chain.skip()
                continue
            }
            let (sums, place) = (chain.sums, offset + Int64(LogFrameHeader.size))
            switch try chain.read(frame, next: offset + frames.frameSize) {
            case .end: break log
            case .ofOlderLog: continue
            case .ofLog(let page, let commits, let isAuthentic):
                if isAuthentic {
                    pending[page] = place
                    try checkpoint.note(frame.page, page, at: place)
                } else {
                    try checkpoint.noteDamage(frame, of: start.salts, behind: sums, at: place)
                }
                guard commits > 0 else { continue }
                (pageCount, lastCommit) = (commits, place)
                committed.merge(pending) { $1 }
                pending = [:]
            }
        }
        guard pageCount > 0 else { return nil }
        // Where a part of the log cannot be read, nothing tells.
        let lost = try readable { () throws(DatabaseError) in
            try LogDamage.lostFrames(inFileOfStore: path, openIn: store)
        }
        for (number, place) in lost ?? [:] { checkpoint.noteEnd(of: number, place) }
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
