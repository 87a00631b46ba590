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
    private var header: LogHeader?

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
                    return equalWords > 1 && isVaried(page, (place - 8)..<(place + 8))
                }
            }
        }
    }

    /// Whether there are more than four different bytes in a range.
    private static func isVaried(_ page: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
        // Pages that somebody made have many words alike: no set, which needs memory, is made of each.
        var different: SIMD4<UInt8> = .init(repeating: page[range.lowerBound])
        var count = 1
        for byte in page[range] where !any(different .== byte) {
            guard count < 4 else { return true }
            different[count] = byte
            count += 1
        }
        return false
    }
}

// MARK: Write-ahead log

extension LogOverlay {
    /// The pages of all transactions that are committed in the log of a store in WAL mode, as SQLite would recover
    /// them. <https://www.sqlite.org/walformat.html>
    /// - Returns: `nil` if there is no committed transaction.
    init?(logOf path: String) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-wal"), let header = try LogHeader(of: contents), header.isWhole
        else { return nil }
        let pageSize = header.pageSize
        var sum = LogChecksum(isBigEndian: header.isBigEndian, after: header.checksum)
        var offset = Int64(LogHeader.size)
        var pageCount: Int64 = 0
        var frameCount: Int64 = 0
        var committed: [Int64: Int64] = [:]
        var pending: [Int64: Int64] = [:]
        while let bytes = try contents.bytes(at: offset, count: LogFrameHeader.size + pageSize) {
            let frame = LogFrameHeader(bytes[...])
            sum = sum.adding(frame, bytes[LogFrameHeader.size...])
            guard frame.page > 0, frame.salts == header.salts, frame.checksum == sum.bytes[...] else { break }
            pending[frame.page] = offset + Int64(LogFrameHeader.size)
            offset += Int64(bytes.count)
            guard frame.pageCount > 0 else { continue }
            pageCount = frame.pageCount
            frameCount = (offset - Int64(LogHeader.size)) / Int64(bytes.count)
            committed.merge(pending) { $1 }
            pending = [:]
        }
        guard pageCount > 0 else { return nil }
        self.init(pageSize: pageSize, pageCount: pageCount, offsets: committed, contents: contents)
        (self.frameCount, self.header) = (frameCount, header)
    }

    /// Whether the file is still the log that was read. SQLite writes another salt to its header when it begins anew.
    func isSameLog() throws(DatabaseError) -> Bool { try LogHeader(of: contents) == header }
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
