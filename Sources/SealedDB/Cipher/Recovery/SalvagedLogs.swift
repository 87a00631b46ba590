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
            let computed = frame.page.flatMap { page in sum?.adding(frame.header, page) }
            let stored = LogChecksum(isBigEndian: start.isBigEndian, after: frame.sum)
            var (number, commits, isAuthentic) = (frame.number, frame.pageCount, frame.isAuthentic)
            let next = offset + frames.frameSize
            let (known, sums) = (sum, [sum, otherSum].compactMap { $0 })
            (sum, otherSum) = (stored, isAuthentic ? computed : nil)
            // Those of an older log continue each other's checksums, too.
            let isOfLog = isProven || frame.salts == start.salts
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
                if frame.salts != start.salts { commits = 0 }
            } else if isProven, let computed {
                // Its checksum is damaged, and that of the next one, too; or the log has ended before.
                switch try frames.continues(computed, at: next, start.salts) {
                case true?: sum = computed
                case false?: break log
                case nil: isProven = false
                }
            } else if frame.salts != start.salts {
                // A frame of an older log, unless those that follow it are of this one.
                guard try frames.frame(at: next)?.salts == start.salts,
                    try frames.continues(stored, at: next, start.salts) == true
                else {
                    sum = nil
                    continue
                }
            }
            if isAuthentic {
                pending[number] = offset + 24
                try checkpoint.note(frame.page, number, at: offset + 24)
            } else {
                try checkpoint.noteDamage(frame, of: start.salts, behind: sums, at: offset + 24)
            }
            if commits > 0 {
                (pageCount, lastCommit) = (commits, offset)
                committed.merge(pending) { $1 }
                pending = [:]
            }
        }
        guard pageCount > 0 else { return nil }
        try checkpoint.settle(committed.keys)
        committed = committed.filter { !checkpoint.isNewer(than: $1, of: $0) }
        // The newest page count may have stood in what is damaged. The file ends with the database behind a checkpoint.
        if checkpoint.end > lastCommit + 24 {
            pageCount = max(pageCount, try store.mainFileSize() / Int64(pageSize))
        }
        self.init(pageSize: pageSize, pageCount: pageCount, offsets: committed, contents: contents)
        outdatedPages = checkpoint.outdated(committed, pageCount: pageCount, end: lastCommit + 24)
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

/// What a checkpoint has written from a damaged log into the file. Each page that is written has an IV of its own, so one that has
/// bytes of a frame, even if the rest of that is damaged, comes from it and from no other.
private struct SalvagedCheckpoint {
    let store: Connection
    let cipher: PageCipher
    /// Where the newest page stands that is in the file, too; 0 if none is.
    private(set) var end: Int64 = 0
    /// The same of each page.
    private var ends: [Int64: Int64] = [:]
    /// Where the newest damaged version of each page stands.
    private var damaged: [Int64: Int64] = [:]
    /// Damaged frames that do not tell their page, and where they stand.
    private var unknown: [(page: [UInt8], isDestroyed: Bool, offset: Int64)] = []
    private static let limitOfUnknown = 64

    init(store: Connection, cipher: PageCipher) {
        (self.store, self.cipher) = (store, cipher)
    }

    mutating func note(_ page: [UInt8]?, _ number: Int64, at offset: Int64) throws(DatabaseError) {
        if let page, try stored(number) == page { noteEnd(of: number, offset) }
    }

    /// - Parameters:
    ///   - salts: those of the log. A frame that has others does not tell its page.
    ///   - sums: the checksums that the frame may continue.
    mutating func noteDamage(
        _ frame: SalvagedFrames.Frame,
        of salts: ArraySlice<UInt8>,
        behind sums: [LogChecksum],
        at offset: Int64
    ) throws(DatabaseError) {
        if frame.salts == salts {
            let number = frame.number
            damaged[number] = offset
            if let page = frame.page, try isInFile(page, number) { noteEnd(of: number, offset) }
            // The frame was written with the page that its checksum tells, whatever is there now.
            if let stored = try authentic(number),
                sums.contains(where: { $0.adding(frame.header, stored).bytes[...] == frame.sum })
            {
                noteEnd(of: number, offset)
            }
        } else if let page = frame.page {
            unknown.append((page, !LogOverlay.mayBeOlder(frame.header, thanLogOf: salts), offset))
            // A log of which little is left may have any number of them, and each is compared with all pages.
            if unknown.count > SalvagedCheckpoint.limitOfUnknown { unknown.removeFirst() }
        }
    }

    /// Looks for the frames that do not tell their page among these pages.
    mutating func settle(_ pages: some Sequence<Int64>) throws(DatabaseError) {
        guard !unknown.isEmpty else { return }
        for number in pages {
            for (page, isDestroyed, offset) in unknown where try isInFile(page, number, isDestroyed: isDestroyed) {
                noteEnd(of: number, offset)
            }
        }
    }

    private mutating func noteEnd(of number: Int64, _ offset: Int64) {
        ends[number] = max(ends[number] ?? 0, offset)
        end = max(end, offset)
    }

    /// Whether the page of the file is whole, and this one is the same but for what was lost.
    /// - Parameter isDestroyed: whether that may be anything.
    private func isInFile(_ page: [UInt8], _ number: Int64, isDestroyed: Bool = false) throws(DatabaseError) -> Bool {
        guard let stored = try authentic(number) else { return false }
        // Where a power failure has left a part of an older page, the rest is of a newer one, and not lost.
        let places = zip(stride(from: 0, to: page.count, by: 8), stride(from: 8, through: page.count, by: 8))
        let isRestLost =
            isDestroyed || places.allSatisfy { page[$0..<$1] == stored[$0..<$1] || Set(page[$0..<$1]).count == 1 }
        // All versions of the first page begin with the same bytes.
        return isRestLost && LogOverlay.shareCiphertext(page, stored, from: cipher.clearBytes(ofPage: number))
    }

    private func authentic(_ number: Int64) throws(DatabaseError) -> [UInt8]? {
        guard let page = try stored(number), try cipher.isAuthentic(page, number: number) else { return nil }
        return page
    }

    private func stored(_ number: Int64) throws(DatabaseError) -> [UInt8]? {
        let size = cipher.parameters.pageSize
        guard number > 0 else { return nil }
        let page = try readable { () throws(DatabaseError) in
            try store.fileBytes(at: (number - 1) * Int64(size), count: size)
        }
        return page?.count == size ? page : nil
    }

    /// Whether the file has a newer version of a page than this one.
    func isNewer(than offset: Int64, of number: Int64) -> Bool { ends[number] ?? 0 > offset }

    /// The pages whose newest version, as far as frames tell their pages, is neither among these places of the log nor in the file.
    /// - Parameter end: where the last frame of a transaction that is committed stands.
    func outdated(_ pages: [Int64: Int64], pageCount: Int64, end: Int64) -> [Int64] {
        damaged.filter { number, offset in
            number > 0 && number <= pageCount && offset <= end
                && offset > max(pages[number] ?? 0, ends[number] ?? 0)
        }.keys.sorted()
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

    /// What the header of the log says: the salts that tell its frames from those of an older one, and the checksum that the first
    /// frame continues. Without a header these are the salts of the first frame that is whole.
    func start() throws(DatabaseError) -> LogStart? {
        if let header = try bytes(0, 32), let start = start(header) { return start }
        var salts: ArraySlice<UInt8>?
        var (previous, lastSalts): (ArraySlice<UInt8>?, ArraySlice<UInt8>?)
        for offset in stride(from: SalvagedFrames.begin, through: size - frameSize, by: Int64.Stride(frameSize)) {
            guard let frame = try frame(at: offset), let page = frame.page, frame.isAuthentic else {
                previous = nil
                continue
            }
            salts = salts ?? frame.salts
            let isCertain = frame.salts == lastSalts
            lastSalts = frame.salts
            for isBigEndian in [false, true] {
                guard let previous else { break }
                let sum = LogChecksum(isBigEndian: isBigEndian, after: previous).adding(frame.header, page)
                // Those of one of them may be damaged.
                if isCertain, sum.bytes[...] == frame.sum {
                    return LogStart(salts: frame.salts, sum: nil, isBigEndian: isBigEndian)
                }
            }
            previous = frame.sum
        }
        // No two neighbours are whole, so that no checksum is needed.
        return salts.map { LogStart(salts: $0, sum: nil, isBigEndian: false) }
    }

    struct LogStart {
        let salts: ArraySlice<UInt8>
        let sum: LogChecksum?
        let isBigEndian: Bool
    }

    private func start(_ header: [UInt8]) -> LogStart? {
        let magic = LogOverlay.number(header[..<4])
        guard magic == 0x377f_0682 || magic == 0x377f_0683 else { return nil }
        var sum = LogChecksum(isBigEndian: magic == 0x377f_0683)
        sum.add(header[..<24])
        guard sum.bytes[...] == header[24..<32] else { return nil }
        return LogStart(salts: header[16..<24], sum: sum, isBigEndian: sum.isBigEndian)
    }

    /// What the header of a frame must have been, by its own checksum or by the frame behind it; `nil` if the page is not authentic
    /// with that. Frames of a transaction that was cut off, which stand behind the end of the log, do not continue its checksum and
    /// give other numbers.
    func proven(
        _ frame: Frame,
        behind sum: LogChecksum,
        _ own: LogChecksum,
        next offset: Int64,
        _ salts: ArraySlice<UInt8>
    ) throws(DatabaseError) -> ProvenFrame? {
        guard let page = frame.page else { return nil }
        let proven = ProvenFrame(between: sum, page[...], own)
        if frame.isAuthentic, proven.page == frame.number { return proven }
        guard let next = try self.frame(at: offset), next.salts == salts, let nextPage = next.page else { return nil }
        let found = ProvenFrame(between: sum, page[...], next: (next.header + nextPage)[...])
        guard found.page > 0, found.pageCount == 0 || found.page <= found.pageCount else { return nil }
        return try cipher.isAuthentic(page, number: found.page) ? found : nil
    }

    /// Whether the frame at an offset, or the first one behind it whose own checksum is whole, continues a checksum.
    /// - Returns: `nil` if that cannot be told, because the page of a frame with these salts is damaged.
    func continues(
        _ sum: LogChecksum,
        at offset: Int64,
        _ salts: ArraySlice<UInt8>
    ) throws(DatabaseError) -> Bool? {
        var sum = sum
        for next in 0..<8 as Range<Int64> {
            guard let frame = try frame(at: offset + next * frameSize) else { return false }
            guard let page = frame.page, frame.isAuthentic else { return frame.salts == salts ? nil : false }
            sum = sum.adding(frame.header, page)
            if sum.bytes[...] == frame.sum { return true }
        }
        return false
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
