import Foundation

/// A rollback journal that may be hot: SQLite would write its pages back into the store when it is opened next.
/// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
struct RollbackJournal {
    let contents: FileReader
    private let path: String
    private let header: Header
    /// Bytes per page.
    var pageSize: Int { header.pageSize }
    /// Number of pages that the store had before the transaction.
    var originalPageCount: Int64 { header.originalPageCount }
    var sectorSize: Int64 { header.sectorSize }

    /// Whether there is a journal that SQLite would look at. It overwrites the start of one that it keeps with zeros when the
    /// transaction has ended, or cuts it off to nothing.
    static func isBegun(_ path: String) throws(DatabaseError) -> Bool {
        try FileReader(path)?.bytes(at: 0, count: 1)?.first ?? 0 != 0
    }

    /// Whether at least six of the first eight bytes are those of a journal header.
    static func mayBeHeader(_ bytes: [UInt8]) -> Bool { zip(bytes, magic).filter { $0 == $1 }.count >= 6 }

    /// Whether SQLite has ended the journal here, by one zero over the header of an earlier transaction.
    static func isEndMark(_ bytes: [UInt8]) -> Bool { bytes[0] == 0 && bytes[1..<8] == magic[1...] }

    /// The number that checksums begin with, in a header that is not synced: SQLite writes the magic and the number of records
    /// when the records are. `nil` if it is no such header.
    static func nonceOfUnsynced(_ bytes: [UInt8]) -> UInt32? {
        guard bytes[..<12].allSatisfy({ $0 == 0 }), bytes[20..<28].contains(where: { $0 != 0 }) else { return nil }
        return UInt32(truncatingIfNeeded: BigEndian.number(bytes[12..<16]))
    }

    private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    /// The header of the journal, or of a part of it that was synced separately.
    struct Header {
        /// Number of records that follow; `nil` if the records go on to the end of the file.
        let recordCount: Int64?
        let nonce: UInt32
        let originalPageCount: Int64
        fileprivate let sectorSize: Int64
        fileprivate let pageSize: Int

        init?(_ bytes: [UInt8]) {
            func number(_ offset: Int) -> Int64 { BigEndian.number(bytes[offset..<offset + 4]) }
            guard bytes.starts(with: RollbackJournal.magic) else { return nil }
            recordCount = number(8) == 0xffff_ffff ? nil : number(8)
            nonce = UInt32(truncatingIfNeeded: number(12))
            originalPageCount = number(16)
            sectorSize = number(20)
            pageSize = Int(number(24))
        }

        /// Whether SQLite accepts these sizes.
        fileprivate var isSane: Bool {
            (32...65536).contains(sectorSize) && sectorSize & (sectorSize - 1) == 0
                && (512...65536).contains(pageSize) && pageSize & (pageSize - 1) == 0
        }
    }

    /// `nil` if there is no journal beside the store, or one without a valid header: empty, or invalidated by SQLite.
    /// - Throws: ``DatabaseError`` if there is a journal that cannot be read: it must not count as none.
    init?(ofStore path: String) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-journal"), let bytes = try contents.bytes(at: 0, count: 28),
            let header = Header(bytes), header.isSane
        else { return nil }
        self.contents = contents
        self.header = header
        self.path = path + "-journal"
    }

    /// The first pages in the journal, as they were in the store. Pages that cannot be read are left out, because the
    /// readable ones are enough to recognise a store.
    func pages(atMost limit: Int) -> [(number: Int64, bytes: [UInt8])] {
        var result: [(Int64, [UInt8])] = []
        var offset = header.sectorSize
        // A record is a page number, the page, and a checksum.
        while result.count < limit, let record = try? contents.bytes(at: offset, count: pageSize + 8) {  // See above.
            result.append((BigEndian.number(record[..<4]), Array(record[4..<4 + pageSize])))
            offset += Int64(record.count)
        }
        return result
    }

    /// Calls `body` with the number of each page that SQLite would put back, and with the offset of its bytes.
    func forEachRecord(_ body: (_ number: Int64, _ offset: Int64) -> Void) throws(DatabaseError) {
        var start: Int64 = 0
        let lockPage = PageScan.lockPage(pageSize: pageSize)
        while let bytes = try contents.bytes(at: start, count: 28), let part = Header(bytes) {
            var offset = start + header.sectorSize
            var left = part.recordCount ?? .max
            while left > 0, let record = try contents.bytes(at: offset, count: pageSize + 8) {
                let number = BigEndian.number(record[..<4])
                // The first invalid record ends the journal.
                guard number > 0, number != lockPage, checksum(of: record, part.nonce) else { return }
                if number <= originalPageCount { body(number, offset + 4) }
                offset += Int64(record.count)
                left -= 1
            }
            // SQLite does not skip an incomplete part, and no part follows one without a record count.
            guard left == 0, offset > start else { return }
            start = (offset + header.sectorSize - 1) / header.sectorSize * header.sectorSize
        }
    }

    private func checksum(of record: [UInt8], _ nonce: UInt32) -> Bool {
        let sum = nonce &+ RollbackJournal.checksum(ofPage: record[4..<(4 + pageSize)])
        return Int64(sum) == BigEndian.number(record[(4 + pageSize)...])
    }

    /// Calls `body` for each part of the journal that was synced, with the offset of its first record, the number of
    /// its records, and its nonce.
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

    /// The sum of every 200th byte of the page, from its end. The full checksum of a record adds the nonce of the
    /// header.
    static func checksum(ofPage page: ArraySlice<UInt8>) -> UInt32 {
        stride(from: page.count - 200, to: 0, by: -200).reduce(0) { $0 &+ UInt32(page[page.startIndex + $1]) }
    }

    /// Whether the journal belongs to a transaction over several files that was committed: it names a super-journal,
    /// and that file is gone. https://www.sqlite.org/atomiccommit.html#_multi_file_commit
    func hasLostSuperJournal() throws(DatabaseError) -> Bool {
        try superJournal().map { !FileSystem.mayExist(bytes: $0) } ?? false
    }

    /// Makes sure that the file that the journal names as its super-journal can be one, because SQLite would delete
    /// that file.
    func requireSafeSuperJournal() throws(DatabaseError) {
        guard let bytes = try superJournal() else { return }
        let name = String(decoding: bytes, as: UTF8.self)
        guard !JournalName.isOfSuperJournal(name), FileSystem.mayExist(bytes: bytes) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .unsafeJournal,
            message: """
                \(path) names \(name) as the journal of a transaction over several files, which it is not, and which \
                SQLite would delete. Nothing was read or written. See who made \(path), and move it away.
                """
        )
    }

    /// The path of the super-journal, if the journal names one. It need not be UTF-8.
    private func superJournal() throws(DatabaseError) -> [UInt8]? {
        let size = try contents.size()
        guard size >= 16, let end = try contents.bytes(at: size - 16, count: 16),
            end[8...].elementsEqual(RollbackJournal.magic)
        else { return nil }
        let count = BigEndian.number(end[..<4])
        // SQLite reads no name that is longer than the paths that it opens.
        guard count > 0, count <= 512, size - 16 >= count,
            let bytes = try contents.bytes(at: size - 16 - count, count: Int(count))
        else { return nil }
        // SQLite adds characters of C, which have a sign on some processors.
        let sum = bytes.reduce(0 as UInt32) { $0 &+ UInt32(bitPattern: Int32(CChar(truncatingIfNeeded: $1))) }
        guard Int64(sum) == BigEndian.number(end[4..<8]), bytes[0] != 0 else { return nil }
        return Array(bytes.prefix { $0 != 0 })
    }
}
