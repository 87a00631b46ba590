/// Transactions that were committed to a log, and that SQLite drops without a word because bytes before them were changed.
///
/// SQLite takes the first frame whose checksum is wrong for the end of the log, and a log whose header has a wrong checksum for
/// one without frames. Both are what a power failure leaves too, but then nothing behind is acknowledged.
/// <https://www.sqlite.org/walformat.html>
struct LogDamage {
    private let path: String
    private let contents: FileReader
    private let header: [UInt8]
    private let connection: Connection?

    /// How many transactions would be dropped; 0 also while somebody uses the store, who has them in the index of the log.
    /// - Parameter connection: one that has the store open, to look at it.
    static func lostTransactions(
        ofStore path: String,
        openIn connection: Connection? = nil
    ) throws(DatabaseError) -> Int {
        guard !LockHolders.hasLocks(on: path + "-shm"), let contents = try FileReader(path + "-wal"),
            let header = try contents.bytes(at: 0, count: 32)
        else { return 0 }
        let damage = LogDamage(path: path, contents: contents, header: header, connection: connection)
        let count = damage.isHeaderWhole ? try damage.transactionsBehindFrames() : try damage.transactionsBehindHeader()
        return try currentHeader(path) == header ? count : 0
    }

    /// For a report.
    static func problems(ofStore path: String, openIn connection: Connection) throws(DatabaseError) -> [String] {
        let count = try lostTransactions(ofStore: path, openIn: connection)
        return count > 0 ? ["log: \(count) committed transactions stand behind damaged bytes"] : []
    }

    /// Before a store takes another's place, or a copy is made of it.
    static func requireNone(ofStore path: String) throws(DatabaseError) {
        let count = try lostTransactions(ofStore: path)
        guard count == 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The log \(path)-wal is damaged: \(count) committed transactions stand behind bytes that were changed, and \
                    SQLite would drop them. Nothing was changed. Keep a copy of the store with its log. To go on without \
                    them, open the store once to write, as by `sealdb exec`.
                    """
            )
        }
    }

    /// Before SQLite may write the log into the store: it does so with whatever pages have right checksums, also with those of
    /// another store or state, as when a backup was copied over a store without its log being removed.
    /// - Parameter store: opened without a key.
    static func requireOwnPages(
        ofStore path: String,
        cipher: @autoclosure () throws(DatabaseError) -> PageCipher?,
        store: Connection
    ) throws(DatabaseError) {
        guard !LockHolders.hasLocks(on: path + "-shm"), let header = try currentHeader(path),
            let log = try LogOverlay(logOf: path), let cipher = try cipher(),
            // With another key, no page would be one's own.
            try cipher.authenticates(store.fileBytes(count: cipher.parameters.pageSize), number: 1)
        else { return }
        var count = 0
        do throws(DatabaseError) {
            // SQLite does not write those that the store has no longer.
            for number in log.pageNumbers where number <= log.pageCount {
                let page = try log.bytes(ofPage: number, from: 0, count: log.pageSize)
                if page.map({ cipher.authenticates($0, number: number) }) != true { count += 1 }
            }
        } catch {
            guard try currentHeader(path) == header else { return }
            throw error
        }
        guard count > 0, try currentHeader(path) == header else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(count) of the \(log.ownPageCount) pages in the log \(path)-wal are not as this store's key and salt make them: \
                they were changed, or the log belongs to another store or to another state of this one. SQLite would write \
                them into the store. Nothing was read or written. Keep a copy of both. If the store is a backup that was \
                put there, it is whole without that log: move the log away.
                """
        )
    }

    // MARK: Header

    /// Who is not seen, such as a process of another container, may begin the log anew while it is read. Then it has another
    /// header, with other salts.
    private static func currentHeader(_ path: String) throws(DatabaseError) -> [UInt8]? {
        try FileReader(path + "-wal")?.bytes(at: 0, count: 32)
    }

    private static func isMagic(_ number: Int64) -> Bool { number == 0x377f_0682 || number == 0x377f_0683 }
    private static let pageSizes = (9...16).map { 1 << $0 }

    private var magic: Int64 { LogOverlay.number(header[..<4]) }
    private var pageSize: Int { Int(LogOverlay.number(header[8..<12])) }

    private var isHeaderWhole: Bool {
        guard LogDamage.isMagic(magic), LogDamage.pageSizes.contains(pageSize) else { return false }
        return headerSum(isBigEndian: magic & 1 == 1)[...] == header[24..<32]
    }

    private func headerSum(isBigEndian: Bool) -> [UInt8] {
        var sum = LogChecksum(isBigEndian: isBigEndian)
        sum.add(header[..<24])
        return sum.bytes
    }

    // MARK: Frames

    private struct Frame {
        let offset: Int64
        let page: Int64
        /// The pages of the database after the transaction that it commits; 0 if it commits none.
        let pageCount: Int64
        let salts: [UInt8]
        /// Whether its checksum follows from the frame before it, or for the first from the header.
        let followsPrevious: Bool
    }

    private func forEachFrame(
        pageSize: Int,
        isBigEndian: Bool,
        _ body: (Frame) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        // Of a header that was changed, the checksum may be what was changed, or all the rest.
        var sums = [Array(header[24..<32]), headerSum(isBigEndian: isBigEndian)]
        var offset: Int64 = 32
        while let bytes = try contents.bytes(at: offset, count: 24 + pageSize) {
            let followsPrevious = sums.contains { previous in
                var sum = LogChecksum(isBigEndian: isBigEndian, after: previous[...])
                sum.add(bytes[..<8])
                sum.add(bytes[24...])
                return sum.bytes[...] == bytes[16..<24]
            }
            try body(
                Frame(
                    offset: offset + 24,
                    page: LogOverlay.number(bytes[..<4]),
                    pageCount: LogOverlay.number(bytes[4..<8]),
                    salts: Array(bytes[8..<16]),
                    followsPrevious: followsPrevious
                )
            )
            sums = [Array(bytes[16..<24])]
            offset += Int64(bytes.count)
        }
    }

    /// A frame that follows the one before it was written as it is. One transaction behind a damaged frame may be that frame's
    /// own, which a power failure tore. It was not acknowledged then, where commits are synced. If the damaged frame is
    /// the end of a transaction, it is another one.
    private func transactionsBehindFrames() throws(DatabaseError) -> Int {
        var count = 0
        var isBroken = false
        var isBehindCommit = false
        try forEachFrame(pageSize: pageSize, isBigEndian: magic & 1 == 1) { frame in
            // Others are of an earlier log.
            let isOfLog = frame.salts[...] == header[16..<24]
            let isWhole = isOfLog && frame.followsPrevious
            if !isWhole {
                isBroken = true
                if isOfLog, frame.pageCount > 0 { isBehindCommit = true }
            } else if isBroken, frame.pageCount > 0 {
                count += 1
            }
        }
        return count > 1 || isBehindCommit ? count : 0
    }

    /// What the header said is not known: not the size of the pages, nor which frames are of this log. A power failure tears it
    /// when a log begins anew, which is when all earlier frames are in the file.
    private func transactionsBehindHeader() throws(DatabaseError) -> Int {
        for pageSize in LogDamage.pageSizes {
            for isBigEndian in [false, true] {
                var count = 0
                var (pending, committed): ([Int64: Int64], [Int64: Int64]) = ([:], [:])
                var pageCount: Int64 = 0
                var salts: [UInt8] = []
                try forEachFrame(pageSize: pageSize, isBigEndian: isBigEndian) { frame in
                    let isFirst = salts.isEmpty
                    let isWhole = frame.followsPrevious && (isFirst || frame.salts == salts)
                    salts = frame.salts
                    guard isWhole else { return pending = [:] }
                    pending[frame.page] = frame.offset
                    guard frame.pageCount > 0 else { return }
                    count += 1
                    pageCount = frame.pageCount
                    committed.merge(pending) { $1 }
                    pending = [:]
                }
                let lasting = committed.filter { $0.key > 0 && $0.key <= pageCount }
                if count > 0, try !areInFile(lasting, pageSize: pageSize) { return count }
            }
        }
        return 0
    }

    /// - Parameter pages: where in the log the bytes of each are.
    private func areInFile(_ pages: [Int64: Int64], pageSize: Int) throws(DatabaseError) -> Bool {
        let file: FileReader?
        if connection == nil {
            // To open it a second time would drop the locks of this process. Whoever has it open does not use the log yet.
            guard try !FileSystem.isOpenInThisProcess(path) else { return false }
            file = try FileReader(path)
        } else {
            file = nil
        }
        for (page, number) in pages {
            let offset = (page - 1) * Int64(pageSize)
            let stored =
                if let connection { try connection.fileBytes(at: offset, count: pageSize) } else {
                    try file?.bytes(at: offset, count: pageSize)
                }
            guard try contents.bytes(at: number, count: pageSize) == stored else { return false }
        }
        return true
    }
}
