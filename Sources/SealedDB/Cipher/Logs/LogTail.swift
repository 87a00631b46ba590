/// What stands behind the end of a log whose header is whole: frames that SQLite does not use. It is given each frame of the log,
/// one after the other.
struct LogTail {
    private let salts: ArraySlice<UInt8>
    /// More pages than the database can have had: the file may have become smaller since.
    private var limit: Int64
    /// Salts of frames that another log has left, although SQLite did not count up from its salts to those of this one: it draws new
    /// ones at random where the connection that writes the first frame has not seen the log before.
    private let saltsOfOthers: Set<[UInt8]>
    /// How many frames have salts that neither this log nor an older one has.
    private var strangeSalts: [[UInt8]: Int] = [:]
    private var previous: (frame: LogChain.Frame, standing: FrameStanding)?
    private var transactions = LostTransactions()
    /// The pages of those frames.
    private(set) var pages: [UnusedPage] = []
    /// Those of them whose headers were lost, and with them the numbers of their pages.
    private(set) var lostFrames: [LogChain.Frame] = []
    /// A block of 4 KiB has the headers of no more frames. Each is compared with many pages.
    private static let limitOfLostFrames = 8
    /// The frames that were lost before whole ones.
    private(set) var gaps: [LostFrame] = []
    /// The frame at the end of the log, if its header is one of another log. An older log has left it, or the disk has kept a block of
    /// that one's frame, where a newer frame was.
    private(set) var frameAtEnd: LogChain.Frame?
    /// Whether the frame behind that continues its checksum. What a transaction that was cut off has left, none continues.
    private(set) var isFrameAtEndContinued = false
    /// Whether, behind such a header, a frame of this log stands.
    private(set) var hasFramesBehindOthers = false
    /// The numbers of the pages that SQLite reads.
    private(set) var usedNumbers: Set<Int64> = []

    /// - Parameter saltsOfOthers: the ``strangersSalts`` that an earlier reading has found.
    init(ofLogWith salts: ArraySlice<UInt8>, limit: Int64, saltsOfOthers: Set<[UInt8]> = []) {
        (self.salts, self.limit, self.saltsOfOthers) = (salts, limit, saltsOfOthers)
    }

    /// Salts that several frames have, and those that SQLite has counted up from or to these: damage has not made them of this log's.
    var strangersSalts: Set<[UInt8]> {
        let repeated = strangeSalts.filter { $0.value > 1 }.keys.map { $0[...] }
        // A file has the frames of few logs. More are forged, and would take long to compare.
        guard strangeSalts.count <= 256 else { return [] }
        let all = strangeSalts.keys.filter { salts in
            repeated.contains {
                $0 == salts[...] || LogFrameHeader.mayFollow($0, salts[...]) || LogFrameHeader.mayFollow(salts[...], $0)
            }
        }
        return Set(all)
    }

    /// How many transactions in it were committed.
    var lostCount: Int { transactions.certainCount + newerCommitCount }

    /// The salts of the newest log that began anew behind this one. Its header is on the disk before any frame.
    private(set) var newerSalts: ArraySlice<UInt8>?
    /// How many that has committed.
    private var newerCommitCount = 0
    /// Whether SQLite reads any transaction of this log.
    private var hasTransactions = false

    /// Whether the header is only what an older log has left: the newer log has lost its own.
    var isOfNewerLog: Bool { newerCommitCount > 0 && !hasTransactions }
    /// Whether SQLite would put pages of the older log in the place of newer ones of the file, which had all of it before a newer log
    /// began.
    var isOlderThanFile: Bool { newerCommitCount > 0 && hasTransactions }

    /// What a frame is, as far as it and the one before it tell.
    fileprivate struct FrameStanding {
        /// Whether it has the salts of the log. Frames with others are from before the log began anew.
        let isOfLog: Bool
        /// Whether it is of this log, and as it was written.
        var isWhole: Bool
        /// Whether it is of an older log, and continues this one or other frames of an older log.
        let continuesAsOlder: Bool
        /// Whether it is of a newer log, and continues frames of that.
        let continuesNewer: Bool
        /// Whether its header is neither of this log nor of an older one, as a power failure leaves them.
        let isLost: Bool
    }

    mutating func append(_ frame: LogChain.Frame) {
        let isOfLog = frame.header.salts == salts
        let isStrange = !isOfLog && !frame.header.mayBeOlder(thanLogOf: salts)
        if isStrange, !frame.header.hasLostSalts, frame.header.page > 0, frame.header.page <= limit {
            strangeSalts[Array(frame.header.salts), default: 0] += 1
        }
        var standing = FrameStanding(
            isOfLog: isOfLog,
            isWhole: isOfLog && frame.followsPrevious,
            continuesAsOlder: !isOfLog && frame.followsPrevious && previousIsOfLog,
            continuesNewer: frame.followsPrevious && frame.header.mayBeNewer(thanLogOf: salts)
                && previous?.frame.header.salts ?? frame.header.salts == frame.header.salts,
            isLost: isStrange && !saltsOfOthers.contains(Array(frame.header.salts))
        )
        if standing.isWhole { limit = max(limit, frame.header.page, frame.header.pageCount) }
        if standing.continuesNewer { noteNewer(frame.header) }
        if isOfLog, let (damaged, itsStanding) = previous, !itsStanding.isWhole {
            let proven = damaged.proven(by: frame)
            if !itsStanding.isOfLog { hasFramesBehindOthers = true }
            if isPossible(proven) {
                pages.append(UnusedPage(number: proven.page, offset: damaged.offset))
                // The frame behind it is whole, too, or it would prove nothing.
                if proven.pageCount > 0 {
                    standing.isWhole = true
                    transactions.passCommit()
                }
            } else if gaps.count < LogTail.limitOfLostFrames {
                gaps.append(LostFrame(damaged, before: frame))
            }
        }
        // Where blocks of the disk divide its header, a power failure can leave the numbers of an older frame in it.
        let own = isOfLog && !standing.isWhole ? [frame.provenByItself].first(where: isPossible) : nil
        let isBehindEnd = transactions.hasBegun
        transactions.add(
            page: own?.page ?? frame.header.page,
            commits: commits(frame, standing, own),
            standing,
            behind: previous?.standing
        )
        addPages(of: frame, standing, own)
        if standing.isLost, !isPossible(frame.header), lostFrames.count < LogTail.limitOfLostFrames,
            Set(frame.page).count > 16
        {
            lostFrames.append(frame)
        }
        if let frameAtEnd, let previous, previous.frame.offset == frameAtEnd.offset, frame.followsPrevious {
            isFrameAtEndContinued = frame.header.salts == frameAtEnd.header.salts
        }
        if !isOfLog, !isBehindEnd, isPossible(frame.header) { frameAtEnd = frame }
        if !transactions.hasBegun, frame.header.page > 0 { usedNumbers.insert(frame.header.page) }
        if !transactions.hasBegun, frame.header.pageCount > 0 { (pages, hasTransactions) = ([], true) }
        previous = (frame, standing)
    }

    private mutating func noteNewer(_ header: LogFrameHeader) {
        if header.mayBeNewer(thanLogOf: newerSalts ?? salts) { (newerSalts, newerCommitCount) = (header.copy.salts, 0) }
        if header.salts == newerSalts, header.pageCount > 0 { newerCommitCount += 1 }
    }

    /// Whether a frame with other salts is of this log if it continues the frame before. A power failure can leave the salts of this log
    /// before the checksum and the page of an older frame, which older frames continue.
    private var previousIsOfLog: Bool {
        guard let (frame, standing) = previous else { return true }
        return standing.isOfLog && (standing.isWhole || frame.hasOwnPage) || standing.continuesAsOlder
    }

    /// Whether a frame ends a transaction. Its numbers may be those of an older frame where a sector of the disk ends behind them.
    private func commits(_ frame: LogChain.Frame, _ standing: FrameStanding, _ own: ProvenFrame?) -> Bool {
        if let own { return own.pageCount > 0 }
        let numbersEnd = frame.offset - Int64(LogFrameHeader.size) + 8
        return frame.header.pageCount > 0 && (standing.isWhole || !numbersEnd.isMultiple(of: 512))
    }

    /// - Parameter own: what its own checksum proves that the frame was.
    private mutating func addPages(of frame: LogChain.Frame, _ standing: FrameStanding, _ own: ProvenFrame?) {
        let page = UnusedPage(number: frame.header.page, offset: frame.offset)
        if standing.isWhole || standing.continuesAsOlder || standing.continuesNewer
            || standing.isOfLog && previous?.standing.isLost == true || isOfLog(standing, behindLostChecksum: previous)
        {
            pages.append(page)
        } else if standing.isOfLog {
            // The page is compared as it stands there, and by its checksum, which still tells of it if it is damaged.
            if frame.hasOwnPage || frame.header.hasLostChecksum { pages.append(page) }
            pages.append(UnusedPage(claimedBy: frame))
            if let own { pages.append(UnusedPage(number: own.page, offset: frame.offset)) }
        }
    }

    /// Whether a frame of this log stands behind one whose checksum was lost, so that nothing tells what it continues.
    private func isOfLog(
        _ standing: FrameStanding,
        behindLostChecksum previous: (frame: LogChain.Frame, standing: FrameStanding)?
    ) -> Bool {
        guard standing.isOfLog, let previous, previous.standing.isOfLog else { return false }
        return !previous.standing.isWhole && previous.frame.header.hasLostChecksum
    }

    private func isPossible(_ proven: ProvenFrame) -> Bool { proven.isPossible(upTo: limit) }

    /// Whether a page of the file is that of a frame that was lost before a whole one.
    func isLost(_ gap: LostFrame, of page: [UInt8], number: Int64) -> Bool {
        let proven = gap.proven(page[...])
        return proven.page == number && isPossible(proven)
    }

    /// Whether a header may be one that a log with other salts has left, or a power failure in the midst of it.
    private func isPossible(_ header: LogFrameHeader) -> Bool {
        (1...limit).contains(header.page) && (0...limit).contains(header.pageCount) && !header.hasLostSalts
    }
}

/// A frame of which neither the header nor the page need be left. The checksums of the frames around it tell both.
struct LostFrame {
    /// Where its page begins in the log.
    let offset: Int64
    private let previousSum: LogChecksum
    /// The checksum up to its end.
    private let sum: LogChecksum

    /// - Parameter next: the frame behind it.
    init(_ frame: LogChain.Frame, before next: LogChain.Frame) {
        (offset, previousSum) = (frame.offset, frame.previousSum)
        sum = frame.proven(by: next).sum
    }

    /// What its header was, if this was its page.
    func proven(_ page: ArraySlice<UInt8>) -> ProvenFrame { ProvenFrame(between: previousSum, page, sum) }
}

/// A page of a frame that SQLite does not use.
struct UnusedPage {
    let number: Int64
    /// Where it begins in the log.
    let offset: Int64
    /// The header of its frame and the checksum before that, if the page may be damaged or that of an older log: a crash can leave
    /// the header of a frame without its page.
    private let claim: (header: LogFrameHeader, previousSum: LogChecksum)?

    init(number: Int64, offset: Int64) {
        (self.number, self.offset, claim) = (number, offset, nil)
    }

    init(claimedBy frame: LogChain.Frame) {
        (number, offset) = (frame.header.page, frame.offset)
        claim = (frame.header.copy, frame.previousSum)
    }

    /// Whether the frame was written with this page, as its checksum tells; `nil` if the page in the log is known to be its own.
    func isFrame(of page: [UInt8]) -> Bool? {
        claim.map { header, previousSum in previousSum.adding(header, page[...]).bytes[...] == header.checksum }
    }
}

/// Counts the commits in whole frames behind a damaged one. A frame whose checksum continues that of the previous frame is as it was
/// written. A single commit behind a damaged frame may end that frame's own transaction, which a power failure tore: where commits
/// are synced, it was not acknowledged. If the damaged frame itself commits a transaction, a commit behind it belongs to another one.
/// If its header is damaged, the frame behind it proves that. Where the next header is gone, too, the frame behind that one follows
/// nothing, but has the salts of the log.
///
/// Two power failures can leave two such transactions, of which the second was written over the first. A frame of the first one
/// that stands directly behind one of the second does not follow it, and blocks of both that were never written leave gaps: commits
/// before and behind such a break prove nothing together.
private struct LostTransactions {
    /// Commits before the last break that are certain.
    private var countBeforeBreak = 0
    private var count = 0
    /// Whether the log has ended for SQLite.
    private(set) var hasBegun = false
    /// Whether a commit stands behind the end.
    private var isBehindCommit = false
    /// Whether, behind such a commit, a header is not of this log.
    private var isBehindGap = false
    /// Whether that commit stands behind such a header itself: damage in one place leaves no two gaps around a commit.
    private var isBetweenGaps = false
    /// Whether a header before was lost.
    private var isBehindLoss = false
    /// The pages since the damage or the last commit. Without its commit frame, no transaction has a page twice.
    private var pages: Set<Int64> = []

    var certainCount: Int { countBeforeBreak + (count > 1 || isBehindCommit ? count : 0) }

    /// Takes note that the damaged frame before has ended a transaction.
    mutating func passCommit() { isBehindCommit = true }

    /// - Parameter previous: what the frame before is; `nil` for the first one.
    mutating func add(
        page: Int64,
        commits: Bool,
        _ standing: LogTail.FrameStanding,
        behind previous: LogTail.FrameStanding?
    ) {
        let isBehindOwn = previous?.isOfLog != false
        let isOtherWrite = standing.isOfLog && !standing.isWhole && isBehindOwn
        let isSecondBreak = hasBegun && isOtherWrite
        if isSecondBreak || !standing.isOfLog && isBetweenGaps {
            (countBeforeBreak, count) = (certainCount, 0)
            (isBehindCommit, isBehindGap, isBetweenGaps, isBehindLoss, pages) = (false, false, false, false, [])
        }
        isBehindLoss = isBehindLoss || standing.isLost
        // What a crash has left behind the end of a log may have the pages that stand before it.
        if !hasBegun || standing.isOfLog && commits { pages = [] }
        // Frames that stand between two breaks are of another write than those behind them, or two places are damaged.
        if standing.isLost, previous?.isWhole == true { pages = [] }
        if standing.isOfLog, !commits, !isSecondBreak, !pages.insert(page).inserted, isBehindLoss {
            isBehindCommit = true
        }
        if standing.isWhole {
            if hasBegun, commits { count += 1 }
            return
        }
        hasBegun = true
        if !standing.isOfLog {
            isBehindGap = isBehindCommit
        } else if commits {
            if isBehindGap { count += 1 }
            (isBehindCommit, isBetweenGaps) = (true, !isBehindOwn)
        }
    }
}
