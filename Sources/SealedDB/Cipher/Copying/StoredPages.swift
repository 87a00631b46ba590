/// The pages of a database at one moment, as they stand in its files.
///
/// They are those of its main file, but for those that have a frame in the write-ahead log. A connection keeps them so:
///
/// - In the rollback-journal modes its lock keeps writers from the main file.
/// - In WAL mode its read transaction keeps others from beginning the log anew, and from moving later frames into the main
///   file. If the whole log was in the main file already, the log may begin anew; all its frames are later ones.
/// - A connection that looks at a store has a VFS that replaces the pages itself.
struct StoredPages: Sendable {
    // Only the file is read through it, with calls that SQLite allows on any thread.
    private nonisolated(unsafe) let connection: Connection
    let totals: PageTotals
    /// Only read, by one thread at a time.
    private nonisolated(unsafe) let log: LogOverlay?

    /// - Parameter log: the pages that replace those of the file.
    init(_ connection: Connection, _ totals: PageTotals, _ log: LogOverlay?) {
        (self.connection, self.totals, self.log) = (connection, totals, log)
    }

    /// A database as it stands now, or as a transaction a little later leaves it. The connection must be in a read
    /// transaction, which must not end as long as the pages are used, and its locking mode must be the normal one.
    init(reading connection: Connection) throws(DatabaseError) {
        guard try StoredPages.canRead(connection) else { throw StoredPages.needsIndex(connection.mainFilePath ?? "") }
        if let log = try connection.view == nil ? StoredPages.log(connection) : nil {
            self.init(connection, PageTotals(count: log.pageCount, size: log.pageSize), log)
        } else {
            self.init(connection, try PageTotals(of: connection), nil)
        }
    }

    /// Whether ``init(reading:)`` can read the database. If not, only SQLite can, over this connection, because nobody else
    /// knows which frames of the log it reads.
    static func canRead(_ connection: Connection) throws(DatabaseError) -> Bool {
        guard connection.view == nil, let path = connection.mainFilePath else { return true }
        for suffix in ["-wal", "-shm"] where try FileSystem.statusIfPresent(path + suffix) == nil { return true }
        return try connection.sharesLogIndex()
    }

    /// The pages that replace those of the main file; `nil` if the main file alone is complete.
    private static func log(_ connection: Connection) throws(DatabaseError) -> LogOverlay? {
        // As long as there is a log, SQLite uses it, and makes an index of it for all connections.
        guard let path = connection.mainFilePath, let file = try FileSystem.statusIfPresent(path + "-wal") else {
            return nil
        }
        guard try FileSystem.statusIfPresent(path + "-shm") != nil else {
            // Where the store has no log, SQLite takes no notice of an empty file with its name.
            guard file.st_size == 0 else { throw damagedLog }
            return nil
        }
        for _ in 0..<5 {
            let frameCount = try connection.logFrameCount()
            guard try !connection.hasWholeLogInFile() else { return nil }
            // The log may begin anew at this moment. Then it has another header, and frames of another number.
            if let log = try LogOverlay(logOf: path), log.frameCount >= frameCount, try log.isSameLog() { return log }
        }
        throw damagedLog
    }

    private static func needsIndex(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .notPermitted,
            message: """
                Nobody keeps the index of the log of \(path) up to date, and it may not be written to: which part of the log \
                counts cannot be shared with others. Nothing was copied. Open the store once where it may be written to. `sealdb verify` \
                and `sealdb restore` read it as it is.
                """
        )
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
        var count = try connection.readPages(numbers, into: buffer, of: "the store")
        if let log {
            let lockPage = PageScan.lockPage(pageSize: totals.size)
            for (index, number) in numbers.enumerated() {
                let place = (index * totals.size)..<((index + 1) * totals.size)
                if let bytes = try log.bytes(ofPage: number, from: 0, count: totals.size) {
                    buffer[place].copyBytes(from: bytes)
                } else if number == lockPage, place.upperBound > count {
                    // Nothing is ever written to it, so that a file that ends before it has it when later pages come.
                    buffer[place].copyBytes(from: [UInt8](repeating: 0, count: totals.size))
                } else {
                    guard place.upperBound <= count else { break }
                    continue
                }
                // This page is whole, and so are those before it.
                count = max(count, place.upperBound)
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
}
