/// The log of a store in WAL mode, read without SQLite. <https://www.sqlite.org/fileformat.html#the_write_ahead_log>
struct WriteAheadLog {
    private let contents: FileReader
    private let pageSize: Int

    static let headerSize = 32
    private static let frameHeaderSize = 24

    /// `nil` if there is no log beside the store, or one that is empty or cannot be read. A diagnosis uses what it
    /// finds in the log, and concludes nothing from what it does not find.
    init?(ofStore path: String) {
        guard let contents = try? FileReader(path + "-wal"),  // See above.
            let header = try? contents.bytes(at: 0, count: WriteAheadLog.headerSize),  // As above.
            header.starts(with: [0x37, 0x7f, 0x06])
        else { return nil }
        self.contents = contents
        pageSize = Int(WriteAheadLog.number(header[8..<12]))
        guard (512...65536).contains(pageSize) else { return nil }
    }

    /// Whether one of the frames satisfies the predicate, which gets the page number, and a closure that reads the
    /// page.
    func contains(
        _ isWanted: (_ number: Int64, _ page: () -> [UInt8]) throws(DatabaseError) -> Bool
    ) throws(DatabaseError) -> Bool {
        var offset = Int64(WriteAheadLog.headerSize)
        while let header = bytes(at: offset, count: WriteAheadLog.frameHeaderSize) {
            let start = offset + Int64(WriteAheadLog.frameHeaderSize)
            let number = WriteAheadLog.number(header[..<4])
            if try isWanted(number, { bytes(at: start, count: pageSize) ?? [] }) { return true }
            offset = start + Int64(pageSize)
        }
        return false
    }

    private func bytes(at offset: Int64, count: Int) -> [UInt8]? {
        // Bytes that cannot be read count as missing: see above.
        try? contents.bytes(at: offset, count: count)
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }
}
