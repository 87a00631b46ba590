/// The checksum of a write-ahead log. <https://www.sqlite.org/walformat.html#checksum_algorithm>
struct LogChecksum {
    let isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init(isBigEndian: Bool) {
        self.isBigEndian = isBigEndian
    }

    /// Goes on from the eight bytes of another one.
    init(isBigEndian: Bool, after sum: ArraySlice<UInt8>) {
        self.isBigEndian = isBigEndian
        first = UInt32(LogOverlay.number(sum.prefix(4)))
        second = UInt32(LogOverlay.number(sum.suffix(4)))
    }

    /// A multiple of eight bytes.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { buffer in
            for offset in stride(from: 0, to: buffer.count - 7, by: 8) {
                first &+= word(buffer, offset) &+ second
                second &+= word(buffer, offset + 4) &+ first
            }
        }
    }

    private func word(_ buffer: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        let word = buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// As the log has them, whatever the order of the words that are summed.
    var bytes: [UInt8] {
        [first, second].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    }
}
