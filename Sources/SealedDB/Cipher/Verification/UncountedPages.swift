/// Pages behind the end of a store that were written with its key.
///
/// With a rollback journal, SQLite cuts the file off after the commit that makes the store smaller, so a process that is killed
/// between the two leaves them: they hold what was deleted. But they also show a first page of an earlier state, as after a write
/// that the disk has lost: then they hold what was stored since. The pages themselves do not tell the one from the other.
/// With a log that changes the number of pages, the file may be longer for a while, and nothing is concluded.
/// <https://www.sqlite.org/atomiccommit.html#_deleting_the_rollback_journal>
enum UncountedPages {
    /// What there is, in words; `nil` if there is nothing, or if nothing can be concluded.
    /// - Parameter check: called from time to time. If it throws, the search ends.
    static func problem(
        of connection: Connection,
        path: String,
        _ sealing: Sealing,
        check: () throws(DatabaseError) -> Void = {}
    ) throws(DatabaseError) -> String? {
        guard let key = sealing.key, sealing.settings.parameters.usesHMAC else { return nil }
        // While it lasts nobody shortens or extends the file, but for what then stands in a log. A journal beside it is that of a
        // transaction that is over, or that has not written to the file yet: a hot one was rolled back, or is in the view.
        return try connection.snapshot { () throws(DatabaseError) in
            let totals = try PageTotals(of: connection)
            let fileCount = try connection.mainFileSize() / Int64(totals.size)
            guard fileCount > totals.count, try !mayLogChangeCount(connection, path) else { return nil }
            let cipher = try PageScan(connection: connection, key: key, settings: sealing.settings).pageCipher()
            guard try hasPage(of: cipher, in: (totals.count + 1)...fileCount, connection, check) else { return nil }
            return
                "its first page counts \(totals.count.counted("page")), but the file has \(fileCount), of which some behind that "
                + "were written with this key: a commit that makes the store smaller was cut off before the file was, or the first "
                + "page is an older one"
        }
    }

    /// What to do about it.
    static let remedy = """
        If all is there that you expect, run VACUUM, which removes those pages. If not, the disk has lost a write of the first \
        page: keep a copy of the file, and restore a backup, or let `sealdb recover` save into a new store what they hold.
        """

    /// Refuses a store that has such pages. Call it before a copy without them takes the store's place.
    static func requireNone(of connection: Connection, path: String, _ sealing: Sealing) throws(DatabaseError) {
        guard let problem = try problem(of: connection, path: path, sealing) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: "\(path) may lack what was stored last: \(problem). Nothing was changed. \(remedy)"
        )
    }

    private static func hasPage(
        of cipher: PageCipher,
        in numbers: ClosedRange<Int64>,
        _ connection: Connection,
        _ check: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> Bool {
        let size = cipher.parameters.pageSize
        for number in numbers {
            let page = try connection.fileBytes(at: (number - 1) * Int64(size), count: size)
            if try cipher.isAuthentic(page, number: number) { return true }
            if number.isMultiple(of: 256) { try check() }
        }
        return false
    }

    /// Whether a log that is not in the file may say that the store has another number of pages. The first page holds that number. A
    /// log that is in the file as a whole has also cut it off. <https://www.sqlite.org/fileformat.html#in_header_database_size>
    private static func mayLogChangeCount(_ connection: Connection, _ path: String) throws(DatabaseError) -> Bool {
        // The file of a view has the size that its log says, which is that of the file unless the log changes it.
        guard connection.view == nil, try connection.text("PRAGMA journal_mode") == "wal" else { return false }
        let log: LogOverlay?
        // In exclusive mode, a connection keeps the index in its memory.
        if try connection.text("PRAGMA locking_mode") == "normal", try connection.sharesLogIndex() {
            if try connection.hasWholeLogInFile() { return false }
            log = try LogOverlay(logOf: path)
            // One that ends before its index says so is damaged.
            guard try log?.frameCount ?? 0 >= connection.logFrameCount() else { return true }
        } else {
            log = try LogOverlay(logOf: path)
        }
        return log?.hasFirstPage ?? false
    }
}
