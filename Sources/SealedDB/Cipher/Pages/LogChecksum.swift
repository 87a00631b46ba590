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

    private func word(_ buffer: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        let word = buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// The checksum as it stands in the log. It is big-endian, whatever the byte order of the words that are added.
    var bytes: [UInt8] {
        [first, second].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    }
}
