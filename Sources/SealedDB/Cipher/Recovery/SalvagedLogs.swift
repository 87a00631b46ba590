/// What a damaged log or journal still has. Its pages are known by their own codes, so that neither its checksums nor the
/// pages before them are needed. What the disk cannot read is left out.
extension LogOverlay {
    /// The pages of the transactions that are committed in a log, without those that were changed.
    ///
    /// Behind the end of the log may stand frames of a transaction that a power failure has cut off, with the same salts and
    /// right codes. They do not continue the checksum of the last frame. Each frame has the one up to itself, so that it does not
    /// matter what is damaged before. Where a header is damaged, the frame behind it tells what it was.
    /// - Returns: `nil` if no transaction is left.
    init?(salvagedLogOf path: String, cipher: PageCipher) throws(DatabaseError) {
        let pageSize = cipher.parameters.pageSize
        guard let contents = try FileReader(path + "-wal") else { return nil }
        let frames = SalvagedFrames(contents: contents, size: try contents.size(), cipher: cipher)
        guard let start = try frames.start() else { return nil }
        var (offset, sum) = (SalvagedFrames.begin, start.sum)
        var pageCount: Int64 = 0
        var (committed, pending): ([Int64: Int64], [Int64: Int64]) = ([:], [:])
        while offset + frames.frameSize <= frames.size {
            defer { offset += frames.frameSize }
            guard let frame = try frames.frame(at: offset) else {
                sum = nil
                continue
            }
            let computed = frame.page.flatMap { page in sum?.adding(frame.header, page) }
            let isOfLog = frame.salts == start.salts
            var (number, count, isAuthentic) = (frame.number, frame.pageCount, frame.isAuthentic)
            var nextSum = LogChecksum(isBigEndian: start.isBigEndian, after: frame.sum)
            if let known = sum, let page = frame.page, !isOfLog || computed?.bytes[...] != frame.sum {
                let next = offset + frames.frameSize
                if let proven = try frames.proven(page, behind: known, next: next, salts: start.salts) {
                    // Its header alone is damaged.
                    (number, count, isAuthentic, nextSum) = (proven.page, proven.pageCount, true, proven.sum)
                } else if !isOfLog || isAuthentic {
                    // This was the end.
                    break
                }
            } else if !isOfLog {
                break
            }
            sum = nextSum
            if isAuthentic { pending[number] = offset + 24 }
            if count > 0 {
                pageCount = count
                committed.merge(pending) { $1 }
                pending = [:]
            }
        }
        guard pageCount > 0 else { return nil }
        self.init(pageSize: pageSize, pageCount: pageCount, offsets: committed, contents: contents)
    }

    /// The pages that a journal would put back, without those that were changed.
    /// - Returns: `nil` if not even its header can be read.
    init?(salvagedJournalOf path: String, cipher: PageCipher) throws(DatabaseError) {
        let found = try readable { () throws(DatabaseError) in try RollbackJournal(ofStore: path) }
        guard let journal = found, journal.pageSize == cipher.parameters.pageSize else {
            return nil
        }
        var offsets: [Int64: Int64] = [:]
        let recordSize = journal.pageSize + 8
        var offset = journal.sectorSize
        let size = try journal.contents.size()
        func read(_ offset: Int64, _ count: Int) throws(DatabaseError) -> [UInt8]? {
            try readable { () throws(DatabaseError) in try journal.contents.bytes(at: offset, count: count) }
        }
        while offset + Int64(recordSize) <= size {
            if let record = try read(offset, recordSize) {
                let number = LogOverlay.number(record[..<4])
                if offsets[number] == nil, try cipher.isAuthentic(record[4..<(4 + journal.pageSize)], number: number) {
                    offsets[number] = offset + 4
                }
            }
            offset += Int64(recordSize)
            // Each part of a journal begins with a header at the start of a sector.
            let next = (offset + journal.sectorSize - 1) / journal.sectorSize * journal.sectorSize
            if let start = try read(next, 8), RollbackJournal.mayBeHeader(start) { offset = next + journal.sectorSize }
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

/// Reads the frames of a log one by one. <https://www.sqlite.org/fileformat.html#wal_file_format>
private struct SalvagedFrames {
    let contents: FileReader
    let size: Int64
    let cipher: PageCipher

    static let begin: Int64 = 32
    var frameSize: Int64 { Int64(24 + cipher.parameters.pageSize) }

    struct Frame {
        let header: [UInt8]
        /// `nil` if it cannot be read.
        let page: [UInt8]?
        let isAuthentic: Bool

        var number: Int64 { LogOverlay.number(header[..<4]) }
        /// That of the database after the transaction that ends here; 0 if none does.
        var pageCount: Int64 { LogOverlay.number(header[4..<8]) }
        var salts: ArraySlice<UInt8> { header[8..<16] }
        var sum: ArraySlice<UInt8> { header[16..<24] }
    }

    private func bytes(_ offset: Int64, _ count: Int) throws(DatabaseError) -> [UInt8]? {
        try readable { () throws(DatabaseError) in try contents.bytes(at: offset, count: count) }
    }

    /// - Returns: `nil` if its header cannot be read.
    func frame(at offset: Int64) throws(DatabaseError) -> Frame? {
        guard let header = try bytes(offset, 24) else { return nil }
        let page = try bytes(offset + 24, cipher.parameters.pageSize)
        var isAuthentic = false
        if let page { isAuthentic = try cipher.isAuthentic(page, number: LogOverlay.number(header[..<4])) }
        return Frame(header: header, page: page, isAuthentic: isAuthentic)
    }

    /// The salts that tell the frames of this log from those of an older one, and the checksum that the first frame continues, if it is
    /// known: from the header, or else from the first frame that is whole.
    func start() throws(DatabaseError) -> (salts: ArraySlice<UInt8>, sum: LogChecksum?, isBigEndian: Bool)? {
        let header = try bytes(0, 32)
        let isBigEndian = header.map { $0[3] & 1 == 1 } ?? false
        if let header {
            var sum = LogChecksum(isBigEndian: isBigEndian)
            sum.add(header[..<24])
            if sum.bytes[...] == header[24..<32] { return (header[16..<24], sum, isBigEndian) }
        }
        for offset in stride(from: SalvagedFrames.begin, through: size - frameSize, by: Int64.Stride(frameSize)) {
            if let frame = try frame(at: offset), frame.isAuthentic { return (frame.salts, nil, isBigEndian) }
        }
        return nil
    }

    /// What the header of a frame must have been, by the frame behind it; `nil` if the page is not authentic with that. Frames of a
    /// transaction that was cut off, which stand behind the end of the log, do not continue its checksum and give other numbers.
    func proven(
        _ page: [UInt8],
        behind sum: LogChecksum,
        next offset: Int64,
        salts: ArraySlice<UInt8>
    ) throws(DatabaseError) -> ProvenFrame? {
        guard let next = try frame(at: offset), next.salts == salts, let nextPage = next.page else { return nil }
        let proven = ProvenFrame(between: sum, page[...], next: (next.header + nextPage)[...])
        guard proven.page > 0, proven.pageCount == 0 || proven.page <= proven.pageCount else { return nil }
        return try cipher.isAuthentic(page, number: proven.page) ? proven : nil
    }
}

extension LogChecksum {
    /// The checksum up to the end of a frame.
    fileprivate func adding(_ header: [UInt8], _ page: [UInt8]) -> LogChecksum {
        var sum = self
        sum.add(header[..<8])
        sum.add(page[...])
        return sum
    }
}
