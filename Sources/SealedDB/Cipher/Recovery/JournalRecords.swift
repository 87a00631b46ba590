/// The records of a rollback journal, found by the codes of their pages and without trust in the headers.
/// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
struct JournalRecords {
    let contents: FileReader
    let cipher: PageCipher
    /// Whether a place that the disk cannot read counts as a damaged one.
    var skipsUnreadable = false

    private var pageSize: Int { cipher.parameters.pageSize }
    private var recordSize: Int64 { Int64(pageSize) + 8 }

    private func bytes(at offset: Int64, count: Int) throws(DatabaseError) -> [UInt8]? {
        guard skipsUnreadable else { return try contents.bytes(at: offset, count: count) }
        return try readable { () throws(DatabaseError) in try contents.bytes(at: offset, count: count) }
    }

    /// The offset of the first record of each page of the transaction. Such a record has a valid authentication code,
    /// and its checksum starts from the same nonce as the other records of its part of the journal. Records of an
    /// earlier transaction may follow.
    func originals(sectorSize: Int64?) throws(DatabaseError) -> [Int64: Int64] {
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
        guard let bytes = try bytes(at: start, count: 28), start == 0 || !RollbackJournal.isEndMark(bytes)
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
        // All of its records are damaged, and its header tells where the next part begins.
        guard let header, let count = header.recordCount, count > 0 else { return nil }
        let end = min(firstRecord + count * recordSize, try contents.size())
        return Part(ends: [end], pageCount: header.originalPageCount)
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
        // A record that was synced before others has only its checksum damaged.
        func isCounted(_ place: Int64) throws(DatabaseError) -> Bool {
            let next = place + recordSize
            guard next < declaredEnd else { return false }
            return try record(at: next)?.nonce == nonce
        }
        var place = firstRecord
        var endOfRun: Int64?
        while endOfRun == nil || place < declaredEnd {
            let record = try record(at: place)
            let isOfPart = record?.nonce == nonce ? true : try isCounted(place)
            if let record, isOfPart {
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
    func record(at offset: Int64) throws(DatabaseError) -> (number: Int64, nonce: UInt32)? {
        guard let bytes = try bytes(at: offset, count: Int(recordSize)) else { return nil }
        let number = BigEndian.number(bytes[..<4])
        guard number > 0, try cipher.isAuthentic(bytes[4..<(4 + pageSize)], number: number) else { return nil }
        let sum = UInt32(truncatingIfNeeded: BigEndian.number(bytes[(4 + pageSize)...]))
        return (number, sum &- RollbackJournal.checksum(ofPage: bytes[4..<(4 + pageSize)]))
    }
}
