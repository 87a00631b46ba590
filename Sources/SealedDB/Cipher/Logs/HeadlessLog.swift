/// What the frames of a log have whose header is damaged. It is given each frame, one after the other, as with some size of pages.
struct HeadlessLog {
    /// How many transactions are committed in it.
    private(set) var commitCount = 0
    /// The pages of all its frames.
    private(set) var pages: [UnusedPage] = []
    /// Number of pages of the database after the last commit.
    private var pageCount: Int64 = 0
    /// Where the bytes of each page stand in the log: those of committed transactions, and those of one that is not ended.
    private var (committed, pending): ([Int64: Int64], [Int64: Int64]) = ([:], [:])
    private var salts: ArraySlice<UInt8>?
    /// Whether the frame before is of this log and whole.
    private var followsLog = true
    private var hasEnded = false

    mutating func append(_ frame: LogChain.Frame) {
        // Zeros continue a header of zeros.
        guard frame.header.page > 0, frame.followsPrevious, !hasEnded else {
            followsLog = false
            return pending = [:]
        }
        // One that continues the log is of it, whatever its salts.
        hasEnded = !followsLog && frame.header.salts != salts ?? frame.header.salts
        guard !hasEnded else { return }
        (salts, followsLog) = (frame.header.copy.salts, true)
        pending[frame.header.page] = frame.offset
        pages.append(UnusedPage(number: frame.header.page, offset: frame.offset))
        guard frame.header.pageCount > 0 else { return }
        commitCount += 1
        pageCount = frame.header.pageCount
        committed.merge(pending) { $1 }
        pending = [:]
    }

    /// Where the newest version of each page of the database stands in the log.
    var newest: [Int64: Int64] { committed.filter { $0.key <= pageCount } }
}
