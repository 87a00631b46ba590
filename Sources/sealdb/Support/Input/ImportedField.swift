/// What a field of CSV or TSV is, as it is written: a number in the form in which a result has it, a blob, or a text.
enum ImportedField {
    case integer(Int64)
    case real(Double)
    /// `X'…'` in hex digits.
    case blob
    case text

    var isValue: Bool {
        if case .text = self { false } else { true }
    }

    init(_ bytes: UnsafeRawBufferPointer) {
        self = .text
        guard ImportedField.mayBeValue(bytes) else { return }
        switch NumberForm(bytes) {
        case .integer(let value): self = .integer(value)
        case .real(let value): self = .real(value)
        case .text:
            if let value = ImportedField.real(bytes) {
                self = .real(value)
            } else if ImportedField.isBlob(bytes) {
                self = .blob
            }
        }
    }

    /// A quick look that most texts do not pass.
    @inline(__always)
    static func mayBeValue(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let first = bytes.first else { return false }
        return (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) || first == UInt8(ascii: "-")
            || first == UInt8(ascii: "I") || first == UInt8(ascii: "X")
    }

    /// A number in the very form in which a result has one that takes an exponent or many digits, or an infinite one.
    private static func real(_ bytes: UnsafeRawBufferPointer) -> Double? {
        guard (3...25).contains(bytes.count) else { return nil }
        let isExact = bytes.contains { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "e") }
        let text = String(decoding: bytes, as: UTF8.self)
        if isExact {
            guard let value = Double(text), value.isFinite, value.description == text else { return nil }
            return value
        }
        return text == "Inf" ? .infinity : text == "-Inf" ? -.infinity : nil
    }

    static func isBlob(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= 3 && bytes.count % 2 == 1 && bytes[0] == UInt8(ascii: "X") && bytes[1] == UInt8(ascii: "'")
            && bytes[bytes.count - 1] == UInt8(ascii: "'")
            && bytes[2..<bytes.count - 1].allSatisfy { hexValue($0) != nil }
    }

    private static func hexValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    /// Adds the bytes of a field that is a ``blob``.
    static func addBlob(_ bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
        for index in stride(from: 2, to: bytes.count - 1, by: 2) {
            // A blob has nothing but hex digits.
            buffer.add((hexValue(bytes[index]) ?? 0) << 4 | (hexValue(bytes[index + 1]) ?? 0))
        }
    }
}
