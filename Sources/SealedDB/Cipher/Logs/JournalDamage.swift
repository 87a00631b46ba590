/// Finds a hot rollback journal that was changed, so that SQLite would put back only a part of its pages. The header of
/// a journal has no checksum, so SQLite does not notice a change in it.
///
/// Pages that were written with the key are recognised by their authentication codes, wherever they stand in the
/// journal. A page is lost if its original stands in the journal, the store has another version of it, and SQLite would
/// not put the original back. If the journal was not synced yet, the store still has the original pages: SQLite writes
/// to the store only after the sync. <https://www.sqlite.org/fileformat.html#the_rollback_journal>
///
/// What cannot be told from a journal that SQLite has ended or not begun is not found: one that is empty, missing, or cut off
/// at the header of a part or in its first record, or where the header and the first records of a part, or the first 28 bytes of all, are gone; and
/// one where the first byte of a later part's header became zero, with which SQLite ends journals that are kept.
struct JournalDamage {
    private let path: String
    private let contents: FileReader
    private let cipher: PageCipher
    private let records: JournalRecords
    /// A connection to the store, opened without a key.
    private let store: Connection

    private var pageSize: Int { cipher.parameters.pageSize }
    private var recordSize: Int64 { Int64(pageSize) + 8 }

    /// Refuses a damaged journal. Call it before SQLite may read the journal.
    /// - Throws: ``DatabaseError/Reason/damaged``; ``DatabaseError/Reason/wrongKey`` if the journal was written under
    ///   another key.
    static func requireNone(
        ofStore path: String,
        cipher: @autoclosure () throws(DatabaseError) -> PageCipher?,
        store: Connection
    ) throws(DatabaseError) {
        // The cipher's key is derived before the lock below makes others wait.
        guard FileSystem.mayExist(path + "-journal"), let cipher = try cipher() else { return }
        // While another process is in a transaction, its journal is not hot and would not be put back.
        let error = try store.whileNobodyWrites { () throws(DatabaseError) -> DatabaseError? in
            // SQLite overwrites the start of a journal with zeros at the end of the transaction. It takes a journal whose first
            // byte alone is zero for one of these.
            guard let contents = try FileReader(path + "-journal"), let start = try contents.bytes(at: 0, count: 28),
                start.contains(where: { $0 != 0 })
            else { return nil }
            let records = JournalRecords(contents: contents, cipher: cipher)
            return try JournalDamage(path: path, contents: contents, cipher: cipher, records: records, store: store)
                .error()
        }
        if let error { throw error }
    }

    private func error() throws(DatabaseError) -> DatabaseError? {
        guard let problem = try problem() else { return nil }
        guard !problem.isEmpty else { return foreign }
        return DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                The journal \(path)-journal of a transaction that was cut off is damaged: \(problem). SQLite would undo only a \
                part of that transaction. Nothing was read or written. Keep a copy of the store with its journal, and \
                restore a backup. To have what SQLite makes of it, open it once with SQLCipher's own shell.
                """
        )
    }

    private var foreign: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .wrongKey,
            message: """
                No page in the journal \(path)-journal was written under this key, and the store's first page was: the key was \
                being changed in place when that was cut off, and the journal brings the old one back; or the journal belongs \
                to another store. Nothing was read or written. Open it with the old key; or, if the store is a backup that \
                was put there, move the journal away.
                """
        )
    }

    /// What is wrong, in words; empty if the journal was written under another key; `nil` if nothing is wrong.
    private func problem() throws(DatabaseError) -> String? {
        let journal = try RollbackJournal(ofStore: path)
        // If the transaction over several files was committed, SQLite puts nothing back.
        guard try journal?.hasLostSuperJournal() != true else { return nil }
        let originals = try records.originals(sectorSize: journal?.sectorSize)
        // With another key every page would look changed.
        let hasOwnFirstPage = try cipher.isAuthentic(store.fileBytes(count: pageSize), number: 1)
        guard hasOwnFirstPage || !originals.isEmpty else { return nil }
        var restored: [Int64: Int64] = [:]
        if let journal, journal.pageSize == pageSize {
            try journal.forEachRecord { number, offset in
                if restored[number] == nil { restored[number] = offset }
            }
        }
        var changed: [Int64] = []
        for (number, offset) in restored {
            if let page = try page(at: offset), try cipher.isAuthentic(page, number: number) { continue }
            changed.append(number)
        }
        if originals.isEmpty, !changed.isEmpty, changed.count == restored.count { return "" }
        if let first = changed.min() { return "page \(first) in it is not as it was written" }
        if let journal, journal.pageSize == pageSize, let broken = try brokenRecord(journal, originals) {
            return "the record at byte \(broken) is not as it was written"
        }
        let pageCount = try originalPageCount(originals)
        // The journal of a store that had no pages holds no original pages.
        if let journal, journal.originalPageCount > 0 || !originals.isEmpty, let pageCount,
            journal.originalPageCount < pageCount
        {
            return "it says that the store had \(journal.originalPageCount) pages, which had \(pageCount)"
        }
        for (number, offset) in originals where restored[number] == nil && number <= pageCount ?? .max {
            guard try isInStore(number, offset) else { return "page \(number) in it would not be put back" }
        }
        return nil
    }

    /// The offset of the first incomplete record in a synced part of the journal. `nil` if there is none, or if the
    /// store still has all original pages: then the power failed during the sync, before the store was written to.
    private func brokenRecord(_ journal: RollbackJournal, _ originals: [Int64: Int64]) throws(DatabaseError) -> Int64? {
        var broken: Int64?
        var others = originals
        try journal.forEachSyncedPart { offset, count, nonce throws(DatabaseError) in
            var place = offset
            while place < offset + count * recordSize {
                guard try contents.bytes(at: place, count: Int(recordSize)) != nil else {
                    broken = broken ?? place
                    return
                }
                if let record = try records.record(at: place), record.nonce == nonce {
                    if others[record.number] == nil { others[record.number] = place + 4 }
                } else {
                    broken = broken ?? place
                }
                place += recordSize
            }
        }
        guard broken != nil else { return nil }
        for (number, place) in others where try !isInStore(number, place) { return broken }
        return nil
    }

    /// Whether the page in the store has the same contents as the one in the journal. The encrypted bytes may differ,
    /// because SQLCipher uses a new IV each time it writes a page.
    private func isInStore(_ number: Int64, _ offset: Int64) throws(DatabaseError) -> Bool {
        let stored = try store.fileBytes(at: (number - 1) * Int64(pageSize), count: pageSize)
        let clear = cipher.clearBytes(ofPage: number)
        guard let original = try page(at: offset), try cipher.isAuthentic(stored, number: number),
            original[..<clear] == stored[..<clear],
            let contents = try cipher.contents(original[...], number: number)
        else { return false }
        return try contents == cipher.contents(stored[...], number: number)
    }

    private func page(at offset: Int64) throws(DatabaseError) -> [UInt8]? {
        try contents.bytes(at: offset, count: pageSize)
    }

    /// The number of pages that the store had before the transaction, from the original first page; `nil` if that page
    /// does not say.
    private func originalPageCount(_ originals: [Int64: Int64]) throws(DatabaseError) -> Int64? {
        let first =
            if let offset = originals[1] { try page(at: offset) } else { try store.fileBytes(count: pageSize) }
        guard let first, try cipher.isAuthentic(first, number: 1) else { return nil }
        return try cipher.declaredPageCount(first)
    }
}
