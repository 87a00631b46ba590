/// Finds committed transactions in a write-ahead log that SQLite would drop without an error, because bytes before them
/// were changed.
///
/// For SQLite a log ends at the first frame with a wrong checksum, and a log whose header has a wrong checksum has no
/// frames. A power failure can leave both too, but then no transaction after that point was acknowledged.
/// <https://www.sqlite.org/walformat.html>
///
/// What a checkpoint has written to the file was committed, and in the log on the disk before. So a page of the file that stands
/// behind the log's end, too, proves damage: SQLite would put older pages of the log in the place of newer ones of the file.
/// Encrypted pages are told apart by their bytes, because each one that is written has an IV of its own.
struct LogDamage {
    private let path: String
    private let contents: FileReader
    private let header: LogHeader
    private let connection: Connection?
    /// Whether the store is being opened. Reading all of a large one would take long.
    private let isOpening: Bool
    private static let mostPagesAtOpening: Int64 = 1 << 16

    /// How many committed transactions SQLite would drop. Also 0 while somebody uses the store: that connection knows
    /// the transactions from the index of the log.
    /// - Parameter connection: a connection that has the store open for reading; `nil` if there is none.
    static func lostTransactions(
        ofStore path: String,
        openIn connection: Connection? = nil
    ) throws(DatabaseError) -> Int {
        try loss(ofStore: path, openIn: connection).count
    }

    /// What SQLite would drop, and whether the file has some of it.
    private typealias Loss = (count: Int, isInFile: Bool)

    private static func loss(ofStore path: String, openIn connection: Connection?) throws(DatabaseError) -> Loss {
        try seenTwice { () throws(DatabaseError) in
            // Who cannot be found out about is no reason to believe the log whole.
            guard !LockHolders.hasLocks(on: path + "-shm", ifUnknown: false),
                let damage = try LogDamage(path, connection)
            else { return (0, false) }
            return try damage.unchangedLoss()
        }
    }

    /// What is lost, or nothing if somebody has begun the log anew meanwhile.
    private func unchangedLoss() throws(DatabaseError) -> Loss {
        var loss: Loss
        let tail = header.isWhole ? try tail() : nil
        if let tail, !tail.isOfNewerLog {
            loss = (tail.lostCount, tail.isOlderThanFile)
            if !loss.isInFile {
                loss.isInFile = try !inFile(tail, isOneEnough: true).isEmpty
            }
        } else {
            loss = try transactionsBehindHeader(ofLogWith: tail?.newerSalts)
        }
        if loss.isInFile { loss.count = max(loss.count, 1) }
        return try LogDamage.currentHeader(path) == header ? loss : (0, false)
    }

    /// Whoever begins to use the log meanwhile writes frames behind others that were read as they were before. So what is wrong has
    /// to be wrong again. `look` finds nothing as long as the log is in use.
    private static func seenTwice(_ look: () throws(DatabaseError) -> Loss) throws(DatabaseError) -> Loss {
        let first = try look()
        guard first.count > 0 else { return first }
        let second = try look()
        return (min(first.count, second.count), first.isInFile && second.isInFile)
    }

    /// - Returns: `nil` if there is no log.
    private init?(_ path: String, _ connection: Connection?, isOpening: Bool = false) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-wal"), let header = try LogHeader(of: contents) else { return nil }
        (self.path, self.contents, self.header, self.connection) = (path, contents, header, connection)
        self.isOpening = isOpening
    }

    /// Whether headers of frames behind the end of the log were lost, of which nothing tells whether they belonged to transactions that
    /// were committed: a power failure leaves such frames, too.
    static func hasLostFrames(ofStore path: String, openIn connection: Connection) throws(DatabaseError) -> Bool {
        guard let damage = try LogDamage(path, connection), damage.header.isWhole else { return false }
        let tail = try damage.tail()
        return !tail.lostFrames.isEmpty || tail.hasFramesBehindOthers
    }

    /// What a report on the store says about the log; empty if nothing is lost.
    static func problems(ofStore path: String) throws(DatabaseError) -> [String] {
        // The connection that looks at a store reads the log's pages in the place of the file's.
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let count = try lostTransactions(ofStore: path, openIn: connection)
        return count > 0 ? ["log: \(whatStands(count)) behind damaged bytes"] : []
    }

    private static func whatStands(_ count: Int) -> String {
        "\(count.counted("committed transaction")) \(count == 1 ? "stands" : "stand")"
    }

    /// Refuses a damaged log. Call it before a store takes another one's place, or before it is copied.
    static func requireNone(ofStore path: String) throws(DatabaseError) {
        let (count, isInFile) = try loss(ofStore: path, openIn: nil)
        guard !isInFile else { throw olderThanFile(path) }
        guard count == 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The log \(path)-wal is damaged: \(whatStands(count)) behind bytes that were changed, and \
                    SQLite would drop them. Nothing was changed. Keep a copy of the store with its log. `sealdb recover` \
                    saves into a new store what they hold. To go on without them, open the store once to write, as by \
                    `sealdb exec`.
                    """
            )
        }
    }

    /// Refuses a log from which SQLite would put older pages in the place of newer ones of the file. Call it before SQLite may read
    /// the log.
    /// - Parameter store: as in ``requireOwnPages(ofStore:onlyReads:cipher:store:)``.
    /// - Returns: how many committed transactions SQLite drops.
    static func requireNoneInFile(ofStore path: String, store: Connection) throws(DatabaseError) -> Int {
        let loss = try seenTwice { () throws(DatabaseError) in
            guard let damage = try LogDamage(path, store, isOpening: true) else { return (0, false) }
            let loss = try damage.unchangedLoss()
            guard loss.count > 0,
                try !StoreOpening.isLogInUse(ofStore: path, log: StoreOpening.file("-wal", beside: path))
            else { return (0, false) }
            return loss
        }
        if loss.isInFile { throw olderThanFile(path) }
        return loss.count
    }

    /// Says that a store is used without some of its transactions.
    static func warning(ofLost count: Int, ofStore path: String, isReadOnly: Bool) -> String {
        """
        The log \(path)-wal is damaged: \(whatStands(count)) behind bytes that were changed, and SQLite leaves out what \
        stands there\(isReadOnly ? "." : ", and drops it when the store is written or closed.") To save it, copy the store with its log \
        before somebody writes. `sealdb recover` makes a new store of such a copy.
        """
    }

    private static func olderThanFile(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                The log \(path)-wal is damaged: the file has pages of it that stand behind bytes that were changed. SQLite would put \
                older pages in their place, and undo a part of what was committed. Nothing was read or written. Keep a copy of the \
                store with its log. `sealdb recover` saves into a new store what they hold.
                """
        )
    }

    /// Refuses a log whose pages are not this store's. Call it before SQLite may write the log into the store. SQLite
    /// writes every page with a valid checksum, even if it belongs to another store or to another state of this one,
    /// for example after a backup was copied over a store whose log was not removed.
    /// - Parameters:
    ///   - onlyReads: whether SQLite only reads the log, and tells of pages that were changed. A log of which no page is this store's
    ///     is refused all the same: its first page could pass for the store's, with another salt.
    ///   - store: a connection to the store, opened without a key. Nobody else may use the log.
    static func requireOwnPages(
        ofStore path: String,
        onlyReads: Bool,
        cipher: @autoclosure () throws(DatabaseError) -> PageCipher?,
        store: Connection
    ) throws(DatabaseError) {
        guard let header = try currentHeader(path), let log = try LogOverlay(logOf: path), let cipher = try cipher(),
            // With another key no page would be authentic.
            try cipher.isAuthentic(store.fileBytes(count: cipher.parameters.pageSize), number: 1)
        else { return }
        var count = 0
        do throws(DatabaseError) {
            // SQLite does not write pages that the store no longer has.
            for number in log.pageNumbers where number <= log.pageCount {
                let page = try log.bytes(ofPage: number, from: 0, count: log.pageSize)
                if let page, try cipher.isAuthentic(page, number: number) { continue }
                count += 1
            }
        } catch {
            guard try currentHeader(path) == header else { return }
            throw error
        }
        guard count > (onlyReads ? log.ownPageCount - 1 : 0), try currentHeader(path) == header else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(count) of the \(log.ownPageCount) pages in the log \(path)-wal are not as this store's key and salt make them: \
                they were changed, or the log belongs to another store or to another state of this one. SQLite would write \
                them into the store. Nothing was read or written. Keep a copy of both. \
                \(count == log.ownPageCount ? "If the key was changed in place, the log has the new one: try that. " : "")\
                If the store is a backup that was put there, it is whole without that log: move the log away.
                """
        )
    }

    // MARK: Header

    /// The header that the log has now. A process that this one cannot see, such as one in another container, may
    /// restart the log while it is read. The header then has other salts.
    private static func currentHeader(_ path: String) throws(DatabaseError) -> LogHeader? {
        try FileReader(path + "-wal").flatMap { contents throws(DatabaseError) in try LogHeader(of: contents) }
    }

    // MARK: Frames

    /// What stands behind the end of the log.
    private func tail() throws(DatabaseError) -> LogTail {
        let tail = try tail(besideFramesWith: [])
        let others = tail.strangersSalts
        return others.isEmpty ? tail : try self.tail(besideFramesWith: others)
    }

    private func tail(besideFramesWith others: Set<[UInt8]>) throws(DatabaseError) -> LogTail {
        var tail = LogTail(
            ofLogWith: header.salts,
            limit: try largestPageCount(pageSize: header.pageSize),
            saltsOfOthers: others
        )
        try chain(pageSize: header.pageSize, isBigEndian: header.isBigEndian).forEachFrame { tail.append($0) }
        return tail
    }

    private func chain(pageSize: Int, isBigEndian: Bool) -> LogChain {
        LogChain(contents: contents, header: header, pageSize: pageSize, isBigEndian: isBigEndian)
    }

    /// More pages than in the file and in the log the database never had since the log began.
    private func largestPageCount(pageSize: Int) throws(DatabaseError) -> Int64 {
        let fileSize = try FileSystem.statusIfPresent(path)?.st_size ?? 0
        return (Int64(fileSize) + (try contents.size())) / Int64(pageSize) + 1
    }

    /// The pages behind the end of the log of which the file has a part, as only a checkpoint can have written it.
    private func inFile(_ tail: LogTail, isOneEnough: Bool = false) throws(DatabaseError) -> Set<Int64> {
        let pages = try inFile(tail.pages, pageSize: header.pageSize, isOneEnough: isOneEnough)
        return isOneEnough && !pages.isEmpty ? pages : try pages.union(lostFramesInFile(tail, isOneEnough).keys)
    }

    /// The file may be cut off.
    private func inFile(
        _ pages: [UnusedPage],
        pageSize: Int,
        isOneEnough: Bool = false
    ) throws(DatabaseError) -> Set<Int64> {
        guard !pages.isEmpty, let store = try StoredPages(self, pageSize: pageSize) else { return [] }
        var result: Set<Int64> = []
        for page in pages where page.number > 0 && !(isOneEnough && !result.isEmpty) {
            guard let bytes = try contents.bytes(at: page.offset, count: pageSize),
                let stored = try store.bytes(ofPage: page.number)
            else { continue }
            if page.isFrame(of: stored) ?? store.sharesCiphertext(bytes, stored, number: page.number) {
                result.insert(page.number)
            }
        }
        return result
    }

    /// The pages that a checkpoint has written to the file from frames whose headers were lost. SQLite would put older ones in their
    /// place, or leave the rest of their transaction out. Nothing tells their numbers, so that they are looked for among all pages.
    ///
    /// Where a frame of this log should end it, the disk may have kept a block of an older log's frame: its header, and the beginning of
    /// its page. The rest of the page is then of this log, and is looked for among the pages that SQLite would replace by older ones.
    /// - Returns: where their frames stand in the log, by the numbers of the pages.
    private func lostFramesInFile(
        _ tail: LogTail,
        _ isOneEnough: Bool = false
    ) throws(DatabaseError) -> [Int64: Int64] {
        let (lost, gaps, atEnd) = (tail.lostFrames.map(LostPage.init), tail.gaps, tail.frameAtEnd.map(LostPage.init))
        var keepsOlderFrame = tail.isFrameAtEndContinued
        guard !lost.isEmpty || !gaps.isEmpty || atEnd != nil,
            let store = try StoredPages(self, pageSize: header.pageSize)
        else { return [:] }
        if let atEnd, !keepsOlderFrame, let number = tail.frameAtEnd?.header.page {
            keepsOlderFrame =
                try store.bytes(ofPage: number).map { store.hasStart(of: atEnd.bytes, $0, number) } ?? false
        }
        let pageCount = Int64(try FileSystem.statusIfPresent(path)?.st_size ?? 0) / Int64(header.pageSize)
        let isLarge = isOpening && pageCount > LogDamage.mostPagesAtOpening
        let looksAtUsed = isLarge || lost.isEmpty && gaps.isEmpty
        let all = AnySequence(stride(from: 1, through: pageCount, by: 1))
        var result: [Int64: Int64] = [:]
        for number in looksAtUsed ? AnySequence(tail.usedNumbers.sorted()) : all {
            guard let stored = try store.bytes(ofPage: number), stored.count == header.pageSize else { continue }
            func note(_ offset: Int64) { result[number] = max(result[number] ?? 0, offset) }
            for page in lost
            where page.ownNumber != number && store.sharesCiphertext(page.bytes, stored, number: number) {
                note(page.offset)
            }
            for gap in gaps where tail.isLost(gap, of: stored, number: number) { note(gap.offset) }
            if let atEnd, keepsOlderFrame, tail.usedNumbers.contains(number),
                !store.hasStart(of: atEnd.bytes, stored, number), store.hasEnd(of: atEnd.bytes, stored)
            {
                note(atEnd.offset)
            }
            if isOneEnough, !result.isEmpty { break }
        }
        return result
    }

    /// The page of a frame, and where it begins in the log.
    private struct LostPage {
        let offset: Int64
        let bytes: [UInt8]
        /// What its header says, unless that was lost. A log with other salts has left it, and the file has its page by that number.
        let ownNumber: Int64?

        init(_ frame: LogChain.Frame) {
            (offset, bytes) = (frame.offset, Array(frame.page))
            ownNumber = frame.header.hasLostSalts ? nil : frame.header.page
        }
    }

    /// Where the log has frames of which the file has the pages, by their numbers, although their headers were lost.
    static func lostFrames(
        inFileOfStore path: String,
        openIn connection: Connection
    ) throws(DatabaseError) -> [Int64: Int64] {
        guard let damage = try LogDamage(path, connection), damage.header.isWhole else { return [:] }
        return try damage.lostFramesInFile(damage.tail())
    }

    /// The encrypted pages of the store's file.
    private struct StoredPages {
        private let read: StoredBytes
        private let pageSize: Int
        private let start: [UInt8]

        /// - Returns: `nil` if the file cannot be read here, or is not encrypted: then a page may also be as it was before.
        init?(_ damage: LogDamage, pageSize: Int) throws(DatabaseError) {
            guard let read = try damage.storedBytes(), let start = try read(0, 100), start.count == 100,
                !StoreHeader.isPlaintext(start)
            else { return nil }
            (self.read, self.pageSize, self.start) = (read, pageSize, start)
        }

        /// - Parameter number: 1 or more.
        func bytes(ofPage number: Int64) throws(DatabaseError) -> [UInt8]? {
            try read((number - 1) * Int64(pageSize), pageSize)
        }

        func sharesCiphertext(_ page: [UInt8], _ stored: [UInt8], number: Int64) -> Bool {
            page == stored || LogOverlay.shareCiphertext(page, stored, from: clearCount(ofPage: number))
        }

        /// Whether a page begins with the same ciphertext.
        func hasStart(of page: [UInt8], _ stored: [UInt8], _ number: Int64) -> Bool {
            let start = clearCount(ofPage: number)
            return page.dropFirst(start).prefix(16) == stored.dropFirst(start).prefix(16)
        }

        /// Whether a page ends with the same ciphertext.
        func hasEnd(of page: [UInt8], _ stored: [UInt8]) -> Bool {
            LogOverlay.shareCiphertext(page, stored, from: page.count - 16)
        }

        /// The first page begins with what all its versions have.
        private func clearCount(ofPage number: Int64) -> Int {
            guard number == 1 else { return 0 }
            return StoreHeader.hasMagic(start) ? StoreHeader.mostBytesInClear : Key.saltByteCount
        }
    }

    /// The pages of which the file has a version that stands behind the end of the log.
    static func newerPages(
        inFileOfStore path: String,
        openIn connection: Connection
    ) throws(DatabaseError) -> Set<Int64> {
        guard let damage = try LogDamage(path, connection), damage.header.isWhole else { return [] }
        return try damage.inFile(damage.tail())
    }

    /// Counts the commits in the frames after a header that is damaged or not theirs. The header's values are unknown, so
    /// all page sizes and byte orders are tried. A power failure can tear the header only when SQLite restarts the log, and then all
    /// earlier frames are already in the file. So are those that an older log has left behind the frames of this one.
    /// - Parameter salts: those of the frames, if they are known.
    /// - Returns: their number, and whether the file has some of their pages, but not all newest ones.
    private func transactionsBehindHeader(ofLogWith salts: ArraySlice<UInt8>?) throws(DatabaseError) -> Loss {
        for pageSize in LogHeader.pageSizes {
            for isBigEndian in [false, true] {
                var log = HeadlessLog(salts: salts, limit: try largestPageCount(pageSize: pageSize))
                try chain(pageSize: pageSize, isBigEndian: isBigEndian).forEachFrame { log.append($0) }
                if log.commitCount > 0, try !areInFile(log.newest, pageSize: pageSize) {
                    let isInFile = try !inFile(log.pages, pageSize: pageSize, isOneEnough: true).isEmpty
                    return (log.commitCount, isInFile)
                }
            }
        }
        return (0, false)
    }

    /// Whether the store's file already holds these pages.
    /// - Parameter pages: the offset of each page's bytes in the log, by page number.
    private func areInFile(_ pages: [Int64: Int64], pageSize: Int) throws(DatabaseError) -> Bool {
        guard let store = try storedBytes() else { return false }
        for (number, offset) in pages {
            let stored = try store((number - 1) * Int64(pageSize), pageSize)
            guard try contents.bytes(at: offset, count: pageSize) == stored else { return false }
        }
        return true
    }

    private typealias StoredBytes = (_ offset: Int64, _ count: Int) throws(DatabaseError) -> [UInt8]?

    /// Reads the store's file; `nil` if it cannot be read here. Opening the file a second time would drop the locks of this process.
    /// A connection of this process that has it open does not use the log yet.
    private func storedBytes() throws(DatabaseError) -> StoredBytes? {
        if let connection {
            return { offset, count throws(DatabaseError) in try connection.fileBytes(at: offset, count: count) }
        }
        guard try !FileSystem.isOpenInThisProcess(path), let file = try FileReader(path) else { return nil }
        return { offset, count throws(DatabaseError) in try file.bytes(at: offset, count: count) }
    }
}
