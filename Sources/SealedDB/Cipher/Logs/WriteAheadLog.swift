/// The log of a store in WAL mode, read without SQLite. <https://www.sqlite.org/fileformat.html#the_write_ahead_log>
struct WriteAheadLog {
    private let contents: FileReader
    private let pageSize: Int

    /// `nil` if there is no log beside the store, or one that is empty or cannot be read. A diagnosis uses what it
    /// finds in the log, and concludes nothing from what it does not find.
    init?(ofStore path: String) {
        guard let contents = try? FileReader(path + "-wal"),  // See above.
            let header = try? LogHeader(of: contents),  // As above.
            header.bytes.starts(with: [0x37, 0x7f, 0x06]), (512...65536).contains(header.pageSize)
        else { return nil }
        self.contents = contents
        pageSize = header.pageSize
    }

    /// Whether one of the frames satisfies the predicate, which gets the page number, and a closure that reads the
    /// page.
    func contains(
        _ isWanted: (_ number: Int64, _ page: () -> [UInt8]) throws(DatabaseError) -> Bool
    ) throws(DatabaseError) -> Bool {
        var offset = Int64(LogHeader.size)
        while let header = bytes(at: offset, count: LogFrameHeader.size) {
            let start = offset + Int64(LogFrameHeader.size)
            if try isWanted(LogFrameHeader(header[...]).page, { bytes(at: start, count: pageSize) ?? [] }) {
                return true
            }
            offset = start + Int64(pageSize)
        }
        return false
    }

    private func bytes(at offset: Int64, count: Int) -> [UInt8]? {
        // Bytes that cannot be read count as missing: see above.
        try? contents.bytes(at: offset, count: count)
    }
}
