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
        first = UInt32(BigEndian.number(sum.prefix(4)))
        second = UInt32(BigEndian.number(sum.suffix(4)))
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

    /// Whether one of the two words is that of the other checksum. If a checksum is damaged in one place, the other word is left.
    /// Other bytes share a word by chance, but those that differ in the high bits of one word alone do so often: a sum of 32 bits
    /// loses what is carried out of it.
    func sharesWord(with other: LogChecksum) -> Bool { first == other.first || second == other.second }

    /// The eight bytes that lead from this checksum to a later one.
    func step(to later: LogChecksum) -> [UInt8] {
        let added = later.first &- first &- second
        return [added, later.second &- second &- later.first].flatMap { word in
            BigEndian.bytes(isBigEndian ? word : word.byteSwapped)
        }
    }

    private func word(_ buffer: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        let word = buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// The checksum as it stands in the log. It is big-endian, whatever the byte order of the words that are added.
    var bytes: [UInt8] {
        [first, second].flatMap(BigEndian.bytes)
    }
}
