import Foundation

/// A rollback journal that may be hot: SQLite would write its pages back into the store at the next opening.
/// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
struct RollbackJournal {
    let contents: FileReader
    private let path: String
    private let header: Header
    /// Bytes per page.
    var pageSize: Int { header.pageSize }
    /// Pages that the store had before the transaction.
    var originalPageCount: Int64 { header.originalPageCount }
    var sectorSize: Int64 { header.sectorSize }

    /// Whether it begins as a header does, but for a byte or two.
    static func mayBeHeader(_ bytes: [UInt8]) -> Bool { zip(bytes, magic).filter { $0 == $1 }.count >= 6 }

    private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    /// What is before the records of the journal, and of each part that was synced by itself.
    private struct Header {
        /// Of records that follow; `nil` for as many as the file holds.
        let recordCount: Int64?
        let nonce: UInt32
        let originalPageCount: Int64
        let sectorSize: Int64
        let pageSize: Int

        init?(_ bytes: [UInt8]) {
            func number(_ offset: Int) -> Int64 { RollbackJournal.number(bytes[offset..<offset + 4]) }
            guard bytes.starts(with: RollbackJournal.magic) else { return nil }
            recordCount = number(8) == 0xffff_ffff ? nil : number(8)
            nonce = UInt32(truncatingIfNeeded: number(12))
            originalPageCount = number(16)
            sectorSize = number(20)
            pageSize = Int(number(24))
        }

        /// Whether the sizes are such as SQLite takes.
        var isSane: Bool {
            (32...65536).contains(sectorSize) && sectorSize & (sectorSize - 1) == 0
                && (512...65536).contains(pageSize) && pageSize & (pageSize - 1) == 0
        }
    }

    /// `nil` if there is none beside the store, or one that is empty or was invalidated.
    /// - Throws: if there is one that cannot be read: it is not to be taken for none.
    init?(ofStore path: String) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-journal"), let bytes = try contents.bytes(at: 0, count: 28),
            let header = Header(bytes), header.isSane
        else { return nil }
        self.contents = contents
        self.header = header
        self.path = path + "-journal"
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }

    /// Its first pages, as they were in the store. What cannot be read is left out, as what is not there: a store is
    /// known by the pages that are.
    func pages(atMost limit: Int) -> [(number: Int64, bytes: [UInt8])] {
        var result: [(Int64, [UInt8])] = []
        var offset = header.sectorSize
        // A number, the page, a checksum.
        while result.count < limit, let record = try? contents.bytes(at: offset, count: pageSize + 8) {  // See above.
            result.append((RollbackJournal.number(record[..<4]), Array(record[4..<4 + pageSize])))
            offset += Int64(record.count)
        }
        return result
    }

    /// Calls `body` with the number of each page that SQLite would put back, and where its bytes begin.
    func forEachRecord(_ body: (_ number: Int64, _ offset: Int64) -> Void) throws(DatabaseError) {
        var start: Int64 = 0
        let lockPage = PageScan.lockPage(pageSize: pageSize)
        while let bytes = try contents.bytes(at: start, count: 28), let part = Header(bytes) {
            var offset = start + header.sectorSize
            var left = part.recordCount ?? .max
            while left > 0, let record = try contents.bytes(at: offset, count: pageSize + 8) {
                let number = RollbackJournal.number(record[..<4])
                // Where it is torn, it ends.
                guard number > 0, number != lockPage, checksum(of: record, part.nonce) else { return }
                if number <= originalPageCount { body(number, offset + 4) }
                offset += Int64(record.count)
                left -= 1
            }
            // A part that is missing is not skipped, and one without a count has no other after it.
            guard left == 0, offset > start else { return }
            start = (offset + header.sectorSize - 1) / header.sectorSize * header.sectorSize
        }
    }

    private func checksum(of record: [UInt8], _ nonce: UInt32) -> Bool {
        let sum = nonce &+ RollbackJournal.checksum(ofPage: record[4..<(4 + pageSize)])
        return Int64(sum) == RollbackJournal.number(record[(4 + pageSize)...])
    }

    /// The parts of the journal that were synced, with the number of records in each.
    func forEachSyncedPart(
        _ body: (_ firstRecord: Int64, _ count: Int64, _ nonce: UInt32) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        var start: Int64 = 0
        while let bytes = try contents.bytes(at: start, count: 28), let part = Header(bytes),
            let count = part.recordCount, count > 0
        {
            let offset = start + header.sectorSize
            try body(offset, count, part.nonce)
            let end = offset + count * Int64(pageSize + 8)
            start = (end + header.sectorSize - 1) / header.sectorSize * header.sectorSize
        }
    }

    /// Over each 200th byte of the page, from its end; the header's number is added to it.
    static func checksum(ofPage page: ArraySlice<UInt8>) -> UInt32 {
        stride(from: page.count - 200, to: 0, by: -200).reduce(0) { $0 &+ UInt32(page[page.startIndex + $1]) }
    }

    /// Whether it is part of a transaction over several files that was committed: its name for the journal of them all is
    /// that of a file that is gone. https://www.sqlite.org/atomiccommit.html#_multi_file_commit
    func hasLostSuperJournal() throws(DatabaseError) -> Bool {
        try superJournal().map { !FileSystem.mayExist($0) } ?? false
    }

    /// Makes sure that the file that it names as the journal of several files can be one. SQLite would delete it.
    func requireSafeSuperJournal() throws(DatabaseError) {
        guard let name = try superJournal(), !JournalName.isOfSuperJournal(name), FileSystem.mayExist(name) else {
            return
        }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .unsafeJournal,
            message: """
                \(path) names \(name) as the journal of a transaction over several files, which it is not, and which \
                SQLite would delete. Nothing was read or written. See who made \(path), and move it away.
                """
        )
    }

    /// The path of the journal of several files, if it names one.
    private func superJournal() throws(DatabaseError) -> String? {
        let size = try contents.size()
        guard size >= 16, let end = try contents.bytes(at: size - 16, count: 16),
            end[8...].elementsEqual(RollbackJournal.magic)
        else { return nil }
        let count = RollbackJournal.number(end[..<4])
        guard count > 0, count < 4096, size - 16 >= count,
            let bytes = try contents.bytes(at: size - 16 - count, count: Int(count))
        else { return nil }
        let sum = bytes.reduce(0 as UInt32) { $0 &+ UInt32(bitPattern: Int32(Int8(bitPattern: $1))) }
        guard Int64(sum) == RollbackJournal.number(end[4..<8]), bytes[0] != 0 else { return nil }
        return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}
