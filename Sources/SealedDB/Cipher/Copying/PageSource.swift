/// The pages of a store at one moment, as they are encrypted.
///
/// They are those of its main file, but for those that have a frame in the write-ahead log. A connection keeps them so:
///
/// - In the rollback-journal modes its lock keeps writers from the main file.
/// - In WAL mode its read transaction keeps others from beginning the log anew, and from moving later frames into the main
///   file. If the whole log was in the main file already, the log may begin anew; all its frames are later ones.
/// - A connection that looks at a store has a VFS that replaces the pages itself.
struct PageSource: Sendable {
    // Only the file is read through its connection, with calls that SQLite allows on any thread.
    nonisolated(unsafe) let scan: PageScan
    let totals: PageTotals
    /// Only read, by one thread at a time.
    private nonisolated(unsafe) let log: LogOverlay?

    var sealing: Sealing { Sealing(key: scan.key, settings: scan.settings) }

    private init(_ scan: PageScan, _ totals: PageTotals, _ log: LogOverlay?) throws(DatabaseError) {
        (self.scan, self.totals, self.log) = (scan, totals, log)
        guard totals.size == scan.settings.parameters.pageSize else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: "The store has pages of \(totals.size) bytes, which does not fit its settings."
            )
        }
    }

    /// A store that nobody may write to and that has no log.
    init(still connection: Connection, key: Key, settings: CipherSettings) throws(DatabaseError) {
        let scan = PageScan(connection: connection, key: key, settings: settings)
        try self.init(scan, PageTotals(of: connection), nil)
    }

    /// A store as it stands now, or as a transaction a little later leaves it. The connection must be in a read
    /// transaction, which must not end as long as the source is used, and its locking mode must be the normal one.
    init(reading connection: Connection, key: Key, settings: CipherSettings) throws(DatabaseError) {
        let log = try connection.view == nil ? PageSource.log(connection) : nil
        let scan = PageScan(connection: connection, key: key, settings: settings)
        guard let log else {
            try self.init(scan, PageTotals(of: connection), nil)
            return
        }
        try self.init(scan, PageTotals(count: log.pageCount, size: log.pageSize), log)
    }

    /// A store as it was at a look of a ``LogFollower``. The connection must be in the read transaction of that look, which
    /// must not end as long as the source is used.
    /// - Parameter log: what the follower has for this look.
    init(
        following connection: Connection,
        key: Key,
        settings: CipherSettings,
        totals: PageTotals,
        log: LogOverlay?
    ) throws(DatabaseError) {
        try self.init(PageScan(connection: connection, key: key, settings: settings), totals, log)
    }

    /// The pages that replace those of the main file; `nil` if the main file alone is complete.
    private static func log(_ connection: Connection) throws(DatabaseError) -> LogOverlay? {
        // As long as there is a log, SQLite uses it, and makes an index of it for all connections.
        guard let path = connection.mainFilePath, FileSystem.mayExist(path + "-wal") else { return nil }
        guard FileSystem.mayExist(path + "-shm") else { throw damagedLog }
        for _ in 0..<5 {
            let frameCount = try connection.logFrameCount()
            guard try !connection.hasWholeLogInFile() else { return nil }
            // The log may begin anew at this moment. Then it has another header, and frames of another number.
            if let log = try LogOverlay(logOf: path), log.frameCount >= frameCount, try log.isSameLog() { return log }
        }
        throw damagedLog
    }

    private static let damagedLog = DatabaseError(
        extendedCode: SQLITE_CORRUPT,
        reason: .damaged,
        message: """
            The write-ahead log of the store does not hold what its index says. Nothing was copied. Look at the store with \
            `sealdb verify`.
            """
    )

    /// Fills the buffer, which is only used during the call, with these pages. Only one thread at a time may call it.
    func read(
        _ numbers: ClosedRange<Int64>,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        do throws(DatabaseError) {
            try fill(buffer, numbers)
        } catch {
            guard numbers.count > 1 else { throw error }
            // Read the pages one by one, to name the one that cannot be read.
            for (index, number) in numbers.enumerated() {
                let page = buffer[(index * totals.size)..<((index + 1) * totals.size)]
                try fill(UnsafeMutableRawBufferPointer(rebasing: page), number...number)
            }
        }
    }

    private func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        _ numbers: ClosedRange<Int64>
    ) throws(DatabaseError) {
        var count = try scan.read(numbers, into: buffer)
        if let log {
            for (index, number) in numbers.enumerated() {
                let start = index * totals.size
                guard let bytes = try log.bytes(ofPage: number, from: 0, count: totals.size) else {
                    guard start + totals.size <= count else { break }
                    continue
                }
                buffer[start..<(start + totals.size)].copyBytes(from: bytes)
                // This page is whole, and so are those before it.
                count = max(count, start + totals.size)
            }
        }
        guard count < buffer.count else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                The store ends in page \(numbers.lowerBound + Int64(count / totals.size)), and should have \
                \(totals.count) pages. Restore a backup.
                """
        )
    }

    /// Makes sure that pages without contents are free; see ``FreePages``.
    /// - Parameter cipher: that of the store. Only one thread may use it meanwhile.
    func requireFree(_ pages: PageSet, _ cipher: PageCipher) throws(DatabaseError) {
        guard !pages.isEmpty else { return }
        let free = FreePages(pageCount: totals.count, cipher: cipher) { (number, page) throws(DatabaseError) in
            try read(number...number, into: page)
            return true
        }
        var next: Int64 = 1
        while let run = pages.run(from: next, limit: .max) {
            for number in run where try !free.contains(number) { throw PageTransfer.damaged(number) }
            next = run.upperBound + 1
        }
    }
}
