/// The beginning of a write-ahead log. <https://www.sqlite.org/fileformat.html#wal_file_format>
struct LogHeader: Equatable {
    static let size = 32
    private static let magics: Set<Int64> = [0x377f_0682, 0x377f_0683]
    /// Bytes per page that a log can have.
    static let pageSizes = (9...16).map { 1 << $0 }

    /// The only one that there is.
    static let knownVersion: Int64 = 3_007_000

    let bytes: [UInt8]

    /// That of a new log.
    static func bytes(pageSize: Int, salts: [UInt8]) -> [UInt8] {
        let start = start(isBigEndian: false) + [UInt32(pageSize), 0].flatMap(BigEndian.bytes) + salts
        var sum = LogChecksum(isBigEndian: false)
        sum.add(start[...])
        return start + sum.bytes
    }

    /// - Parameter bytes: 32 of them, whatever they are.
    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// - Returns: `nil` if the log has no header yet.
    init?(of contents: FileReader) throws(DatabaseError) {
        guard let bytes = try contents.bytes(at: 0, count: LogHeader.size) else { return nil }
        self.init(bytes)
    }

    private var magic: Int64 { BigEndian.number(bytes[..<4]) }
    /// The byte order of the words that the checksums add up.
    var isBigEndian: Bool { magic & 1 == 1 }
    var version: Int64 { BigEndian.number(bytes[4..<8]) }
    var pageSize: Int { Int(BigEndian.number(bytes[8..<12])) }
    /// Eight bytes that each frame of this log repeats. Those of the log before, in the same file, are others.
    var salts: ArraySlice<UInt8> { bytes[16..<24] }
    /// As it stands there.
    var checksum: ArraySlice<UInt8> { bytes[24..<32] }

    /// What the checksum should be.
    func computedChecksum(isBigEndian: Bool) -> LogChecksum {
        var sum = LogChecksum(isBigEndian: isBigEndian)
        sum.add(bytes[..<24])
        return sum
    }

    /// Whether a frame is the first one of a log whose header was lost: this one is damaged, or of an older log in the same file. Of
    /// the lost one, all but the number of the log is known, which the frame's checksum tells.
    func isLostHeader(of frame: LogFrameHeader, _ page: ArraySlice<UInt8>, isBigEndian: Bool) -> Bool {
        if isWhole {
            guard isBigEndian == self.isBigEndian, page.count == pageSize, LogFrameHeader.mayFollow(salts, frame.salts)
            else {
                return false
            }
        }
        guard frame.page > 0 else { return false }
        var sum = LogChecksum(isBigEndian: isBigEndian, after: frame.checksum)
        for bytes in [page, frame.numbers, frame.salts] { sum.remove(bytes) }
        var start = LogChecksum(isBigEndian: isBigEndian)
        start.add(LogHeader.start(isBigEndian: isBigEndian)[...])
        return start.step(to: sum)[..<4] == BigEndian.bytes(UInt32(page.count))[...]
    }

    /// The magic and the version.
    private static func start(isBigEndian: Bool) -> [UInt8] {
        [0x377f_0682 | (isBigEndian ? 1 : 0), UInt32(knownVersion)].flatMap(BigEndian.bytes)
    }

    /// Whether SQLite would take it for the header of a log.
    var isWhole: Bool {
        let isLog = LogHeader.magics.contains(magic) && version == LogHeader.knownVersion
        guard isLog, LogHeader.pageSizes.contains(pageSize) else { return false }
        return computedChecksum(isBigEndian: isBigEndian).bytes[...] == checksum
    }
}
