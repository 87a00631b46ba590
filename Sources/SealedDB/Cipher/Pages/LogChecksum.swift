/// The checksum of a write-ahead log. <https://www.sqlite.org/walformat.html#checksum_algorithm>
struct LogChecksum {
    let isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init(isBigEndian: Bool) {
        self.isBigEndian = isBigEndian
    }

    /// Continues from a checksum of eight bytes.
    init(isBigEndian: Bool, after sum: ArraySlice<UInt8>) {
        self.isBigEndian = isBigEndian
        first = UInt32(LogOverlay.number(sum.prefix(4)))
        second = UInt32(LogOverlay.number(sum.suffix(4)))
    }

    /// Adds bytes. Their number must be a multiple of eight.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { buffer in
            for offset in stride(from: 0, to: buffer.count - 7, by: 8) {
                first &+= word(buffer, offset) &+ second
                second &+= word(buffer, offset + 4) &+ first
            }
        }
    }

    /// Undoes ``add(_:)`` of the same bytes.
    mutating func remove(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { buffer in
            for offset in stride(from: (buffer.count / 8 - 1) * 8, through: 0, by: -8) {
                second &-= word(buffer, offset + 4) &+ first
                first &-= word(buffer, offset) &+ second
            }
        }
    }

    /// The eight bytes that lead from this checksum to a later one.
    func step(to later: LogChecksum) -> [UInt8] {
        let added = later.first &- first &- second
        return [added, later.second &- second &- later.first].flatMap { word in
            let bigEndian = isBigEndian ? word : word.byteSwapped
            return (0..<4).map { UInt8(truncatingIfNeeded: bigEndian >> (24 - 8 * $0)) }
        }
    }

    private func word(_ buffer: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        let word = buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// The checksum as it stands in the log. It is big-endian, whatever the byte order of the words that are added.
    var bytes: [UInt8] {
        [first, second].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    }
}

/// What a frame's header must have been, whatever it is now.
struct ProvenFrame {
    let page: Int64
    /// As in the header: 0 if it commits no transaction.
    let pageCount: Int64
    /// The checksum up to the end of the frame.
    let sum: LogChecksum

    /// The checksum before a frame and the frame behind it tell both numbers, because that one's checksum covers them, too. They are
    /// right if the frame's page, and all of the frame behind, are as they were written; otherwise they are any.
    /// - Parameters:
    ///   - page: the bytes of the page in the frame.
    ///   - next: the frame behind it, with its header.
    init(between previous: LogChecksum, _ page: ArraySlice<UInt8>, next: ArraySlice<UInt8>) {
        var sum = LogChecksum(isBigEndian: previous.isBigEndian, after: next.dropFirst(16).prefix(8))
        sum.remove(next.dropFirst(24))
        sum.remove(next.prefix(8))
        self.init(between: previous, page, sum)
    }

    /// - Parameter sum: the checksum up to the end of the frame, if it is as it was written.
    init(between previous: LogChecksum, _ page: ArraySlice<UInt8>, _ sum: LogChecksum) {
        self.sum = sum
        var sum = sum
        sum.remove(page)
        let header = previous.step(to: sum)
        self.page = LogOverlay.number(header[..<4])
        pageCount = LogOverlay.number(header[4...])
    }
}
