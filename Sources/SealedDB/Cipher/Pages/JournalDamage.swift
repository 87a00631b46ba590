/// Finds a hot rollback journal that was changed, so that SQLite would put back only a part of its pages. The header of
/// a journal has no checksum, so SQLite does not notice a change in it.
///
/// Pages that were written with the key are recognised by their authentication codes, wherever they stand in the
/// journal. A page is lost if its original stands in the journal, the store has another version of it, and SQLite would
/// not put the original back. If the journal was not synced yet, the store still has the original pages: SQLite writes
/// to the store only after the sync. <https://www.sqlite.org/fileformat.html#the_rollback_journal>
///
/// What cannot be told from a journal that SQLite has ended or not begun is not found: one that is empty, missing, or cut off
/// at the header of a part, or where the header and the first records of a part, or the first 28 bytes of all, are gone; and
/// one where the first byte of a later part's header became zero, with which SQLite ends journals that are kept.
struct JournalDamage {
    private let path: String
    private let contents: FileReader
    private let cipher: PageCipher
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
            return try JournalDamage(path: path, contents: contents, cipher: cipher, store: store).error()
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
        let originals = try originals(sectorSize: journal?.sectorSize)
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
                if let record = try record(at: place), record.nonce == nonce {
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

    // MARK: Records, found without trusting the headers

    /// The offset of the first record of each page of the transaction. Such a record has a valid authentication code,
    /// and its checksum starts from the same nonce as the other records of its part of the journal. Records of an
    /// earlier transaction may follow.
    private func originals(sectorSize: Int64?) throws(DatabaseError) -> [Int64: Int64] {
        if let sectorSize {
            let found = try originals(inPartsOf: sectorSize)
            if !found.isEmpty { return found }
        }
        for sectorSize in (5...16).map({ Int64(1) << $0 }) where try record(at: sectorSize) != nil {
            return try originals(inPartsOf: sectorSize)
        }
        return [:]
    }

    private func originals(inPartsOf sectorSize: Int64) throws(DatabaseError) -> [Int64: Int64] {
        var result: [Int64: Int64] = [:]
        var pageCount: Int64?
        // Whether a header without a number of records was met. SQLite writes one only where it does not sync, and then no other
        // header, so that what follows is of an earlier transaction. Otherwise the number was changed.
        var isDoubtful = false
        var ends: [Int64] = [0]
        while !ends.isEmpty {
            var found: Part?
            for end in ends where found == nil {
                let start = (end + sectorSize - 1) / sectorSize * sectorSize
                found = try part(at: start, sectorSize, behind: result)
            }
            guard let part = found else { break }
            // A part that repeats a page, or tells another size of the store, is of an earlier transaction. Any other counts as one
            // of this transaction.
            let isNew = part.originals.keys.allSatisfy { result[$0] == nil }
            guard !isDoubtful || isNew && (part.pageCount ?? pageCount) == pageCount else { break }
            result.merge(part.originals) { first, _ in first }
            pageCount = pageCount ?? part.pageCount
            isDoubtful = isDoubtful || part.isUncounted
            ends = part.ends
        }
        return result
    }

    /// A part of the journal, which is synced by itself.
    private struct Part {
        var originals: [Int64: Int64] = [:]
        /// Where its records may end; empty if no part can follow.
        var ends: [Int64] = []
        /// How many pages the store had before the transaction, as its header says.
        var pageCount: Int64?
        /// Whether its header says that the records go on to the end of the file, as SQLite writes where it does not sync.
        var isUncounted = false
    }

    /// - Parameter known: the records of the parts before.
    /// - Returns: `nil` if what stands there is none, or of an earlier transaction.
    private func part(
        at start: Int64,
        _ sectorSize: Int64,
        behind known: [Int64: Int64]
    ) throws(DatabaseError) -> Part? {
        guard let bytes = try contents.bytes(at: start, count: 28), start == 0 || !RollbackJournal.isEndMark(bytes)
        else {
            return nil
        }
        let header = RollbackJournal.Header(bytes)
        let unsynced = RollbackJournal.nonceOfUnsynced(bytes)
        let firstRecord = start + sectorSize
        var nonces = [unsynced ?? header?.nonce]
        // Behind a header that is not synced, records of another nonce are older.
        if unsynced == nil, header?.recordCount != 0 { nonces.append(try record(at: firstRecord)?.nonce) }
        // SQLite begins no part before it has synced the one before.
        let isLast = unsynced != nil || header?.recordCount == 0
        for case let nonce? in nonces {
            var part = try records(at: firstRecord, nonce, count: header?.recordCount ?? 0, isLast: isLast)
            guard !part.originals.isEmpty else { continue }
            // Records of an earlier transaction may stand one sector further by chance. No page is in a journal twice.
            let isCertain = start == 0 || unsynced != nil || RollbackJournal.mayBeHeader(bytes)
            guard isCertain || part.originals.keys.allSatisfy({ known[$0] == nil }) else { return nil }
            part.pageCount = header?.originalPageCount
            part.isUncounted = header.map { $0.recordCount == nil } ?? false
            return part
        }
        return nil
    }

    /// Reads the records of a part: as many as its header says, and those that follow these without a gap.
    private func records(
        at firstRecord: Int64,
        _ nonce: UInt32,
        count: Int64,
        isLast: Bool
    ) throws(DatabaseError) -> Part {
        let declaredEnd = min(firstRecord + count * recordSize, try contents.size())
        var part = Part()
        var place = firstRecord
        var endOfRun: Int64?
        while endOfRun == nil || place < declaredEnd {
            if let record = try record(at: place), record.nonce == nonce {
                if part.originals[record.number] == nil { part.originals[record.number] = place + 4 }
            } else if endOfRun == nil {
                endOfRun = place
            }
            place += recordSize
        }
        if !isLast { part.ends = count > 0 ? [endOfRun ?? place, declaredEnd] : [endOfRun ?? place] }
        return part
    }

    /// The record at this offset; `nil` if it was not written with the key.
    private func record(at offset: Int64) throws(DatabaseError) -> (number: Int64, nonce: UInt32)? {
        guard let bytes = try contents.bytes(at: offset, count: Int(recordSize)) else { return nil }
        let number = LogOverlay.number(bytes[..<4])
        guard number > 0, try cipher.isAuthentic(bytes[4..<(4 + pageSize)], number: number) else { return nil }
        let sum = UInt32(truncatingIfNeeded: LogOverlay.number(bytes[(4 + pageSize)...]))
        return (number, sum &- RollbackJournal.checksum(ofPage: bytes[4..<(4 + pageSize)]))
    }
}
