/// Encodes and decodes secrets as hex digits without copying them elsewhere.
enum Hexadecimal {
    static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    static func encode(_ bytes: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer) {
        for (position, byte) in bytes.enumerated() {
            target[position * 2] = digit(byte >> 4)
            target[position * 2 + 1] = digit(byte & 15)
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    static func decode(_ digits: UnsafeRawBufferPointer) throws(DatabaseError) -> SecretBytes {
        try SecretBytes(capacity: digits.count / 2) { target throws(DatabaseError) in
            for position in target.indices {
                guard let high = value(of: digits[position * 2]), let low = value(of: digits[position * 2 + 1]) else {
                    throw .malformedKey("The key holds a character that is not a hex digit.")
                }
                target[position] = high << 4 | low
            }
            return target.count
        }
    }

    /// The bytes as lower-case hex digits. Only for bytes that are not secret, such as salts.
    static func string(_ bytes: some Sequence<UInt8>) -> String {
        var digits: [UInt8] = []
        digits.reserveCapacity(bytes.underestimatedCount * 2)
        for byte in bytes {
            digits.append(digit(byte >> 4))
            digits.append(digit(byte & 15))
        }
        return String(decoding: digits, as: UTF8.self)
    }
}
