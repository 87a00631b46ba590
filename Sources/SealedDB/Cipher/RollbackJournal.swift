import Foundation

/// A rollback journal that may be hot: SQLite would write its pages back into the store at the next opening.
/// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
struct RollbackJournal {
    private let contents: FileHandle
    private let header: [UInt8]

    private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    /// `nil` if there is none beside the store, or one that is empty or was invalidated.
    /// - Throws: if there is one that cannot be read: it is not to be taken for none.
    init?(ofStore path: String) throws(DatabaseError) {
        guard let contents = FileHandle(forReadingAtPath: path + "-journal") else {
            let number = errno
            guard number != ENOENT, number != ENOTDIR else { return nil }
            throw .system("Cannot open the journal \(path)-journal", reason: .ioError, number: number)
        }
        do {
            header = try contents.read(upToCount: 28).map(Array.init) ?? []
        } catch {
            throw .system("Cannot read the journal \(path)-journal", reason: .ioError)
        }
        guard header.starts(with: RollbackJournal.magic) else { return nil }
        self.contents = contents
    }

    private func number(_ offset: Int) -> UInt64? {
        guard header.count >= offset + 4 else { return nil }
        return header[offset..<offset + 4].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Its first pages, as they were in the store. What cannot be read is left out, as what is not there: a store is
    /// known by the pages that are.
    func pages(atMost limit: Int) -> [(number: Int64, bytes: [UInt8])] {
        guard let sectorSize = number(20), let pageSize = number(24).map(Int.init), pageSize <= 65536,
            (try? contents.seek(toOffset: sectorSize)) != nil  // See above.
        else { return [] }
        var result: [(Int64, [UInt8])] = []
        // A number, the page, a checksum.
        while result.count < limit, let record = try? contents.read(upToCount: pageSize + 8).map(Array.init),
            record.count == pageSize + 8
        {
            result.append((record[..<4].reduce(0) { $0 << 8 | Int64($1) }, Array(record[4..<4 + pageSize])))
        }
        return result
    }
}
