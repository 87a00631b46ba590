/// A rollback journal that may be hot: SQLite would write its pages back into the store at the next opening.
/// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
struct RollbackJournal {
    private let contents: FileReader
    private let header: [UInt8]

    private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    /// `nil` if there is none beside the store, or one that is empty or was invalidated.
    /// - Throws: if there is one that cannot be read: it is not to be taken for none.
    init?(ofStore path: String) throws(DatabaseError) {
        guard let contents = try FileReader(path + "-journal"), let header = try contents.bytes(at: 0, count: 28),
            header.starts(with: RollbackJournal.magic)
        else { return nil }
        self.contents = contents
        self.header = header
    }

    private func number(_ offset: Int) -> Int64 {
        header[offset..<offset + 4].reduce(0) { $0 << 8 | Int64($1) }
    }

    /// Pages that the store had before the transaction.
    var originalPageCount: Int64 { number(16) }

    /// Its first pages, as they were in the store. What cannot be read is left out, as what is not there: a store is
    /// known by the pages that are.
    func pages(atMost limit: Int) -> [(number: Int64, bytes: [UInt8])] {
        let (sectorSize, pageSize) = (number(20), Int(number(24)))
        guard (512...65536).contains(pageSize) else { return [] }
        var result: [(Int64, [UInt8])] = []
        var offset = sectorSize
        // A number, the page, a checksum.
        while result.count < limit, let record = try? contents.bytes(at: offset, count: pageSize + 8) {  // See above.
            result.append((record[..<4].reduce(0) { $0 << 8 | Int64($1) }, Array(record[4..<4 + pageSize])))
            offset += Int64(record.count)
        }
        return result
    }
}
