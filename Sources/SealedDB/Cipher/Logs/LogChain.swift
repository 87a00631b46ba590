/// Reads all frames of a log, and tells which of them continue the checksum of the one before.
struct LogChain {
    let contents: FileReader
    let header: LogHeader
    /// Bytes per page.
    let pageSize: Int
    let isBigEndian: Bool

    struct Frame {
        /// Where its page begins in the file.
        let offset: Int64
        let header: LogFrameHeader
        let page: ArraySlice<UInt8>
        /// Whether its checksum continues that of the previous frame or, for the first frame, that of the header, or of the one that
        /// stood there and was lost.
        let followsPrevious: Bool
        /// Whether its page is the one that was written with it, and at most a part of its checksum was changed. A crash can leave
        /// the header of a frame without its page.
        let hasOwnPage: Bool
        /// The checksum that it should continue.
        let previousSum: LogChecksum

        /// What its header was by its checksum, if only its numbers are damaged.
        var provenByItself: ProvenFrame {
            ProvenFrame(
                between: previousSum,
                page,
                LogChecksum(isBigEndian: previousSum.isBigEndian, after: header.checksum)
            )
        }

        /// What its header was by the frame behind it, if that one is whole.
        func proven(by next: Frame) -> ProvenFrame {
            ProvenFrame(between: previousSum, page, next: next.header, next.page)
        }
    }

    func forEachFrame(_ body: (Frame) throws(DatabaseError) -> Void) throws(DatabaseError) {
        // If the header was changed, either its checksum or the bytes before that were changed: try both sums.
        var sums = [
            LogChecksum(isBigEndian: isBigEndian, after: header.checksum),
            header.computedChecksum(isBigEndian: isBigEndian),
        ]
        var offset = Int64(LogHeader.size)
        while let bytes = try contents.bytes(at: offset, count: LogFrameHeader.size + pageSize) {
            let (header, page) = (LogFrameHeader(bytes[...]), bytes[LogFrameHeader.size...])
            let computed = sums.map { $0.adding(header, page) }
            let followsPrevious =
                computed.contains { $0.bytes[...] == header.checksum }
                || offset == LogHeader.size && self.header.isLostHeader(of: header, page, isBigEndian: isBigEndian)
            try body(
                Frame(
                    offset: offset + Int64(LogFrameHeader.size),
                    header: header,
                    page: page,
                    followsPrevious: followsPrevious,
                    hasOwnPage: followsPrevious
                        || computed.contains {
                            $0.sharesWord(with: LogChecksum(isBigEndian: isBigEndian, after: header.checksum))
                        },
                    previousSum: sums[0]
                )
            )
            // The checksum of this one may be what is damaged.
            sums = [LogChecksum(isBigEndian: isBigEndian, after: header.checksum)]
            if !followsPrevious { sums.append(computed[0]) }
            offset += Int64(bytes.count)
        }
    }
}
