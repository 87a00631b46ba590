/// Bytes in Base64. <https://www.rfc-editor.org/rfc/rfc4648#section-4>
enum Base64 {
    /// - Returns: `nil` if the text is not in the form in which ``ByteBuffer`` writes it.
    static func bytes(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(text.count / 4 * 3)
        for start in stride(from: 0, to: text.count, by: 4) {
            let isLast = start + 4 == text.count
            let padding =
                isLast && text[start + 3] == pad ? (text[start + 2] == pad ? 2 : 1) : 0
            var group: UInt32 = 0
            for index in 0..<4 {
                guard index < 4 - padding else {
                    group <<= 6
                    continue
                }
                guard let value = value(text[start + index]) else { return nil }
                group = group << 6 | UInt32(value)
            }
            for index in 0..<3 - padding { result.append(UInt8(truncatingIfNeeded: group >> UInt32(16 - 8 * index))) }
            // Bits that say nothing are zero, or this is not what was written.
            if padding > 0, group & (padding == 1 ? 0xff : 0xffff) != 0 { return nil }
        }
        return result
    }

    private static let pad = UInt8(ascii: "=")

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
