import Foundation

/// What is stored under a key. Its bytes follow from a number, so that the model of a large store is small; each piece of
/// 64 names the value, its own place in it, and a word that must never be seen in a file.
struct Value: Codable, Hashable, Sendable {
    let tag: UInt64
    let length: Int
    let isBlob: Bool

    /// What no file may show.
    static let canary = "CANARY-OF-THE-STRESS"
    private static let blockLength = 64

    var bytes: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(length + Value.blockLength)
        var block = Block(tag: tag)
        while result.count < length {
            result += block.bytes
            block.advance()
        }
        result.removeLast(result.count - length)
        return result
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Where the bytes begin to differ; `nil` if they are these.
    func firstDifference(from other: UnsafeRawBufferPointer) -> Int? {
        let common = min(length, other.count)
        var block = Block(tag: tag)
        var position = 0
        while position < common {
            let count = min(Value.blockLength, common - position)
            if memcmp(other.baseAddress! + position, block.bytes, count) != 0 {
                return (0..<count).first { other[position + $0] != block.bytes[$0] }.map { position + $0 }
            }
            position += count
            block.advance()
        }
        return length == other.count ? nil : common
    }

    private struct Block {
        private(set) var bytes: [UInt8]
        private var index: UInt64 = 0
        private let indexPosition: Int

        init(tag: UInt64) {
            let name = Value.canary + Value.hexadecimal(tag, 16)
            indexPosition = name.utf8.count
            bytes = Array(name.utf8)
            bytes += [UInt8](repeating: UInt8(ascii: "0"), count: 8)
            bytes += [UInt8](repeating: UInt8(ascii: "a") + UInt8(tag % 26), count: Value.blockLength - bytes.count)
        }

        /// The digits of the next block's place.
        mutating func advance() {
            index += 1
            for (offset, digit) in Value.hexadecimal(index, 8).utf8.enumerated() {
                bytes[indexPosition + offset] = digit
            }
        }
    }

    private static func hexadecimal(_ number: UInt64, _ digits: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: digits - text.count) + text
    }
}

extension Value: CustomStringConvertible {
    var description: String { "\(isBlob ? "blob" : "text") \(String(tag, radix: 16)) of \(length)" }
}
