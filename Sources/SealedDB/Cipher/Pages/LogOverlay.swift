import Foundation

/// The pages in a log or journal beside a store that replace pages of the file. They are encrypted like those.
struct LogOverlay: PageOverlay {
    let pageSize: Int
    let pageCount: Int64
    /// How many pages the log or journal itself holds.
    var ownPageCount: Int { pageNumbers.count }
    /// The offset of each page's bytes in the log, by page number.
    private var offsets: [Int64: Int64]
    private let contents: FileReader
    /// Pages of a damaged log of which a newer version is damaged.
    var outdatedPages: [Int64] = []
    /// A journal whose pages are put back first; empty if there is none.
    private var journal: [LogOverlay] = []
    /// How many frames of a log belong to committed transactions.
    private(set) var frameCount: Int64 = 0
    /// The first bytes of a log.
    private var header: [UInt8] = []

    /// - Parameter offsets: where the bytes of each page stand in `contents`.
    init(pageSize: Int, pageCount: Int64, offsets: [Int64: Int64], contents: FileReader) {
        (self.pageSize, self.pageCount, self.offsets, self.contents) = (pageSize, pageCount, offsets, contents)
    }

    func bytes(ofPage number: Int64, from start: Int, count: Int) throws(DatabaseError) -> [UInt8]? {
        guard let offset = offsets[number] else {
            return try journal.first?.bytes(ofPage: number, from: start, count: count)
        }
        guard let bytes = try contents.bytes(at: offset + Int64(start), count: count) else {
            throw DatabaseError(
                extendedCode: SQLITE_IOERR_SHORT_READ,
                message: "The log was cut off while it was read. Nothing was changed. Try again."
            )
        }
        return bytes
    }

    /// Whether it has the page that says how many there are.
    var hasFirstPage: Bool { offsets[1] != nil || journal.first?.hasFirstPage == true }

    var pageNumbers: Set<Int64> { Set(offsets.keys).union(journal.first?.pageNumbers ?? []) }

    /// The pages of this log, and those of a journal that it does not have. SQLite puts the journal's pages back first.
    func over(_ journal: LogOverlay?) -> LogOverlay {
        var both = self
        both.journal = journal.map { [$0] } ?? []
        return both
    }

    /// The same log or journal without some pages.
    func without(_ pages: Set<Int64>) -> LogOverlay {
        var rest = self
        rest.offsets = offsets.filter { !pages.contains($0.key) }
        return rest
    }

    /// Whether two versions of a page have bytes in common that only one encryption can have given: each has an IV of its own.
    /// - Parameter start: where the bytes begin that are encrypted.
    static func shareCiphertext(_ page: [UInt8], _ other: [UInt8], from start: Int) -> Bool {
        var equalWords = 0
        return page.withUnsafeBytes { page in
            other.withUnsafeBytes { other in
                stride(from: start, through: min(page.count, other.count) - 8, by: 8).contains { place in
                    let word = page.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    let isEqual = word == other.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    equalWords = isEqual ? equalWords + 1 : 0
                    // What was lost on the disk is alike, too.
                    return equalWords > 1 && Set(page[(place - 8)..<(place + 8)]).count > 4
                }
            }
        }
    }

    /// Whether the header of a frame may be one that an older log has left. SQLite counts the first salt up when a log begins anew.
    static func mayBeOlder(_ header: [UInt8], thanLogOf salts: ArraySlice<UInt8>) -> Bool {
        let age = (number(salts.prefix(4)) - number(header[8..<12])) & 0xffff_ffff
        return number(header[..<4]) > 0 && (1..<65536).contains(age)
    }

    static func number(_ bytes: ArraySlice<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }
}

// MARK: Write-ahead log

extension LogOverlay {
    /// The pages of all transactions that are committed in the log of a store in WAL mode, as SQLite would recover
    /// them. <https://www.sqlite.org/walformat.html>
    /// - Returns: `nil` if there is no committed transaction.
    init?(logOf path: String) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-wal"), let header = try contents.bytes(at: 0, count: 32) else {
            return nil
        }
        let magic = LogOverlay.number(header[..<4])
        let pageSize = Int(LogOverlay.number(header[8..<12]))
        guard magic == 0x377f_0682 || magic == 0x377f_0683, LogOverlay.number(header[4..<8]) == 3_007_000,
            (512...65536).contains(pageSize), pageSize & (pageSize - 1) == 0
        else { return nil }
        var sum = LogChecksum(isBigEndian: magic & 1 == 1)
        sum.add(header[..<24])
        guard sum.bytes[...] == header[24..<32] else { return nil }
        var offset: Int64 = 32
        var pageCount: Int64 = 0
        var frameCount: Int64 = 0
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
            if count > 0 { frameCount = (offset - 32) / Int64(frame.count) }
        }
        guard pageCount > 0 else { return nil }
        self.init(pageSize: pageSize, pageCount: pageCount, offsets: committed, contents: contents)
        (self.frameCount, self.header) = (frameCount, header)
    }

    /// Whether the file is still the log that was read. SQLite writes another salt to its header when it begins anew.
    func isSameLog() throws(DatabaseError) -> Bool { try contents.bytes(at: 0, count: header.count) == header }
}

// MARK: Rollback journal

extension LogOverlay {
    /// The pages that SQLite would put back, from the journal of an unfinished transaction.
    /// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
    /// - Returns: `nil` if the journal is not hot. The caller must first make sure that nobody is still writing.
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
