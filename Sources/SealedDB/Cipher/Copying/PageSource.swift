/// The pages of a store at one moment, as they are encrypted: ``StoredPages``, and what they are encrypted with.
struct PageSource: Sendable {
    // Only the file is read through its connection, with calls that SQLite allows on any thread.
    nonisolated(unsafe) let scan: PageScan
    let pages: StoredPages

    var totals: PageTotals { pages.totals }
    var sealing: Sealing { Sealing(key: scan.key, settings: scan.settings) }

    private init(_ scan: PageScan, _ pages: StoredPages) throws(DatabaseError) {
        (self.scan, self.pages) = (scan, pages)
        guard pages.totals.size == scan.settings.parameters.pageSize else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: "The store has pages of \(pages.totals.size) bytes, which does not fit its settings."
            )
        }
    }

    /// A store that nobody may write to and that has no log.
    init(still connection: Connection, key: Key, settings: CipherSettings) throws(DatabaseError) {
        let scan = PageScan(connection: connection, key: key, settings: settings)
        try self.init(scan, StoredPages(connection, PageTotals(of: connection), nil))
    }

    /// A store as ``StoredPages/init(reading:)`` reads it.
    init(reading connection: Connection, key: Key, settings: CipherSettings) throws(DatabaseError) {
        let scan = PageScan(connection: connection, key: key, settings: settings)
        try self.init(scan, StoredPages(reading: connection))
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
        let scan = PageScan(connection: connection, key: key, settings: settings)
        try self.init(scan, StoredPages(connection, totals, log))
    }

    /// Like ``StoredPages/read(_:into:)``.
    func read(
        _ numbers: ClosedRange<Int64>,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        try pages.read(numbers, into: buffer)
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
