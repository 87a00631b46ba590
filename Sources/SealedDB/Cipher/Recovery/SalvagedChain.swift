/// Tells what each frame of a damaged log is, by the checksums before and behind it. It is given the frames one after the other.
struct SalvagedChain {
    private let frames: SalvagedFrames
    private let start: SalvagedFrames.LogStart
    /// The checksum up to the frame before, as it stands there.
    private var sum: LogChecksum?
    /// As it should be, where that one may be damaged.
    private var otherSum: LogChecksum?
    /// Whether the frame before is known to be whole and of this log.
    private var isProven: Bool

    init(_ frames: SalvagedFrames, from start: SalvagedFrames.LogStart) {
        (self.frames, self.start, sum, isProven) = (frames, start, start.sum, start.sum != nil)
    }

    enum Reading {
        /// What the frame was, whatever its header is now.
        case ofLog(page: Int64, pageCount: Int64, isAuthentic: Bool)
        /// One that stands behind the log.
        case ofOlderLog
        /// One of a transaction that was cut off. Nothing behind it counts.
        case end
    }

    /// The checksums that the next frame may continue.
    var sums: [LogChecksum] { [sum, otherSum].compactMap { $0 } }

    /// Takes note of a frame whose header cannot be read.
    mutating func skip() { (sum, otherSum, isProven) = (nil, nil, false) }

    /// - Parameter next: where the frame behind it begins.
    mutating func read(_ frame: SalvagedFrames.Frame, next: Int64) throws(DatabaseError) -> Reading {
        let header = frame.header
        let computed = frame.page.flatMap { page in sum?.adding(header, page[...]) }
        let stored = LogChecksum(isBigEndian: start.isBigEndian, after: header.checksum)
        let known = sum
        (sum, otherSum) = (stored, frame.isAuthentic ? computed : nil)
        // Those of an older log continue each other's checksums, too.
        let isOfLog = isProven || header.salts == start.salts
        if isOfLog, computed?.bytes == stored.bytes {
            isProven = true
        } else if isOfLog, let known,
            let proven = try frames.proven(frame, behind: known, stored, next: next, start.salts)
        {
            // Its header alone is damaged.
            (sum, isProven) = (proven.sum, true)
            return .ofLog(page: proven.page, pageCount: proven.pageCount, isAuthentic: true)
        } else if !frame.isAuthentic {
            isProven = false
            // Its header may be damaged, too.
            if header.salts != start.salts { return .ofLog(page: header.page, pageCount: 0, isAuthentic: false) }
        } else if isOfLog, let known, try frames.isRestored(frame, behind: known, stored) {
            // What the page's code does not cover is damaged.
            isProven = true
        } else if isProven, let computed {
            // Its checksum is damaged, and that of the next one, too; or the log has ended before.
            if computed.sharesWord(with: stored) {
                sum = computed
                return .ofLog(page: header.page, pageCount: header.pageCount, isAuthentic: true)
            }
            switch try frames.continues(computed, at: next, start.salts) {
            case true?: sum = computed
            case false?: return .end
            case nil: isProven = false
            }
        } else if header.salts != start.salts {
            // A frame of an older log, unless those that follow it are of this one.
            guard try frames.frame(at: next)?.header.salts == start.salts,
                try frames.continues(stored, at: next, start.salts) == true
            else {
                sum = nil
                return .ofOlderLog
            }
        }
        return .ofLog(page: header.page, pageCount: header.pageCount, isAuthentic: frame.isAuthentic)
    }
}
