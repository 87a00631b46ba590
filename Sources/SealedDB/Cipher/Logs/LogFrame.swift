/// The header of a frame in a write-ahead log. The page follows it. <https://www.sqlite.org/fileformat.html#wal_file_format>
struct LogFrameHeader {
    static let size = 24

    private let bytes: ArraySlice<UInt8>

    /// - Parameter frame: what begins with the header.
    init(_ frame: ArraySlice<UInt8>) { bytes = frame.prefix(LogFrameHeader.size) }

    /// The number of the page.
    var page: Int64 { BigEndian.number(bytes.prefix(4)) }
    /// Number of pages of the database after the transaction that this frame commits; 0 if it commits none.
    var pageCount: Int64 { BigEndian.number(bytes.dropFirst(4).prefix(4)) }
    /// Those of its log.
    var salts: ArraySlice<UInt8> { bytes.dropFirst(8).prefix(8) }
    /// The checksum of all frames up to the end of this one, as it stands there.
    var checksum: ArraySlice<UInt8> { bytes.dropFirst(16) }
    /// The same without the page, which a slice keeps in memory.
    var copy: LogFrameHeader { LogFrameHeader(Array(bytes)[...]) }
    /// What its own checksum covers.
    var numbers: ArraySlice<UInt8> { bytes.prefix(8) }

    /// Whether they are what a sector becomes that was lost: zeros, or bytes of which all bits are set.
    var hasLostSalts: Bool { LogFrameHeader.isLost(salts) }
    /// The same of the checksum.
    var hasLostChecksum: Bool { LogFrameHeader.isLost(checksum) }

    private static func isLost(_ bytes: ArraySlice<UInt8>) -> Bool { Set(bytes).count == 1 }

    /// Whether some database can have a page of this number. Of a sector that was lost, all bits may be set.
    var hasPossiblePage: Bool { page > 0 && page <= LogFrameHeader.largestPage }
    /// SQLITE_MAX_PAGE_COUNT. <https://www.sqlite.org/limits.html#max_page_count>
    private static let largestPage: Int64 = 0xffff_fffe

    /// Whether it may be one that an older log has left. SQLite counts the first salt up when a log begins anew.
    func mayBeOlder(thanLogOf salts: ArraySlice<UInt8>) -> Bool {
        hasPossiblePage && !hasLostSalts && LogFrameHeader.mayFollow(self.salts, salts)
    }

    /// Whether it may be of a log that has begun anew since, and whose own header was lost. SQLite syncs a new header before the
    /// first frame, so that the one that stands there is older by few beginnings. Others have drawn their salts at random.
    func mayBeNewer(thanLogOf salts: ArraySlice<UInt8>) -> Bool {
        hasPossiblePage && !hasLostSalts && (1...16).contains(LogFrameHeader.age(salts, self.salts))
    }

    /// Whether SQLite may have counted up from the salts of one log to those of the other.
    static func mayFollow(_ older: ArraySlice<UInt8>, _ newer: ArraySlice<UInt8>) -> Bool {
        (1..<65536).contains(age(older, newer))
    }

    /// How often a log has begun anew since, if SQLite has counted up.
    private static func age(_ older: ArraySlice<UInt8>, _ newer: ArraySlice<UInt8>) -> Int64 {
        (BigEndian.number(newer.prefix(4)) - BigEndian.number(older.prefix(4))) & 0xffff_ffff
    }
}

extension LogChecksum {
    /// The checksum up to the end of a frame.
    func adding(_ header: LogFrameHeader, _ page: ArraySlice<UInt8>) -> LogChecksum {
        var sum = self
        sum.add(header.numbers)
        sum.add(page)
        return sum
    }
}

/// What a frame's header must have been, whatever it is now.
struct ProvenFrame {
    let page: Int64
    /// As in the header: 0 if it commits no transaction.
    let pageCount: Int64
    /// The checksum up to the end of the frame.
    let sum: LogChecksum

    /// The checksum before a frame and the frame behind it tell both numbers, because that one's checksum covers them, too. They are
    /// right if the frame's page, and all of the frame behind, are as they were written; otherwise they are any.
    /// - Parameters:
    ///   - page: the bytes of the page in the frame.
    ///   - next: the header of the frame behind it.
    ///   - nextPage: the bytes of its page.
    init(
        between previous: LogChecksum,
        _ page: ArraySlice<UInt8>,
        next: LogFrameHeader,
        _ nextPage: ArraySlice<UInt8>
    ) {
        var sum = LogChecksum(isBigEndian: previous.isBigEndian, after: next.checksum)
        sum.remove(nextPage)
        sum.remove(next.numbers)
        self.init(between: previous, page, sum)
    }

    /// - Parameter sum: the checksum up to the end of the frame, if it is as it was written.
    init(between previous: LogChecksum, _ page: ArraySlice<UInt8>, _ sum: LogChecksum) {
        self.sum = sum
        var sum = sum
        sum.remove(page)
        let header = previous.step(to: sum)
        self.page = BigEndian.number(header[..<4])
        pageCount = BigEndian.number(header[4...])
    }

    /// Whether a frame may have had these numbers. What stands behind the end of a log, and does not continue it, gives numbers that
    /// no frame has, and so does a damaged checksum: SQLite writes no page behind the end of the database with a commit.
    /// - Parameter limit: more pages than the database can have.
    func isPossible(upTo limit: Int64) -> Bool {
        guard page > 0, page <= limit else { return false }
        return pageCount == 0 || page <= pageCount && pageCount <= limit
    }
}
