/// What the frames of a log have whose header is damaged, or that of an older log. It is given each frame, one after the other, as
/// with some size of pages.
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
    /// Those of its frames, if the header is known to be of an older log, until the first of them has come.
    private var awaitedSalts: ArraySlice<UInt8>?
    /// Whether the frame before is of this log and whole.
    private var followsLog = true
    private var hasEnded = false
    /// The two frames before, and where the page of the last one begins.
    private var (previous, beforePrevious): (LogFrameHeader?, LogFrameHeader?)
    private var previousOffset: Int64 = 0
    private let limit: Int64

    /// - Parameters:
    ///   - salts: those of its frames, if they are known.
    ///   - limit: more pages than the file and the log have.
    init(salts: ArraySlice<UInt8>? = nil, limit: Int64) { (awaitedSalts, self.limit) = (salts, limit) }

    mutating func append(_ frame: LogChain.Frame) {
        defer { (previous, beforePrevious, previousOffset) = (frame.header.copy, previous, frame.offset) }
        // Zeros continue a header of zeros.
        guard frame.header.page > 0, frame.followsPrevious, !hasEnded,
            frame.header.salts == awaitedSalts ?? frame.header.salts
        else {
            followsLog = false
            return pending = [:]
        }
        awaitedSalts = nil
        // One that continues the log is of it, whatever its salts.
        hasEnded = !followsLog && frame.header.salts != salts ?? frame.header.salts || isFirstOfOlderLog(frame)
        guard !hasEnded else { return }
        // A frame that nothing proves is whole if this one continues it.
        if !followsLog, let previous, previous.page > 0, previous.salts == frame.header.salts {
            add(previous, previousOffset)
        }
        (salts, followsLog) = (frame.header.copy.salts, true)
        add(frame.header, frame.offset)
    }

    private mutating func add(_ header: LogFrameHeader, _ offset: Int64) {
        pending[header.page] = offset
        pages.append(UnusedPage(number: header.page, offset: offset))
        guard header.pageCount > 0 else { return }
        commitCount += 1
        pageCount = header.pageCount
        committed.merge(pending) { $1 }
        pending = [:]
    }

    /// Whether the first frame that continues another one is of an older log: a frame of a newer one stands before both. SQLite had
    /// written all of the older log to the file before it began that. A header that was lost may have any salts, and its page tells.
    private func isFirstOfOlderLog(_ frame: LogChain.Frame) -> Bool {
        guard salts == nil, let previous, let beforePrevious, (1...limit).contains(beforePrevious.page) else {
            return false
        }
        return previous.salts == frame.header.salts && previous.mayBeOlder(thanLogOf: beforePrevious.salts)
    }

    /// Where the newest version of each page of the database stands in the log.
    var newest: [Int64: Int64] { committed.filter { $0.key <= pageCount } }
}
