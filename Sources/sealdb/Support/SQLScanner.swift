/// Splits SQL text into words, quoted pieces and symbols, without comments. https://www.sqlite.org/lang.html
struct SQLScanner {
    private let bytes: [UInt8]
    /// Where the next token is looked for.
    private(set) var index = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func next() -> SQLScript.Token? {
        skipBlanksAndComments()
        guard index < bytes.count else { return nil }
        let byte = bytes[index]
        switch byte {
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): return quoted(until: byte)
        case UInt8(ascii: "["): return quoted(until: UInt8(ascii: "]"))
        case _ where byte.isWordByte: return word()
        default:
            index += 1
            return .symbol(byte)
        }
    }

    private mutating func word() -> SQLScript.Token {
        let start = index
        while index < bytes.count, bytes[index].isWordByte { index += 1 }
        return .word(String(decoding: bytes[start..<index], as: UTF8.self).uppercased())
    }

    private mutating func quoted(until end: UInt8) -> SQLScript.Token {
        var content: [UInt8] = []
        index += 1
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            if byte != end {
                content.append(byte)
            } else if end != UInt8(ascii: "]"), index < bytes.count, bytes[index] == end {
                content.append(byte)
                index += 1
            } else {
                break
            }
        }
        return .quoted(String(decoding: content, as: UTF8.self).uppercased())
    }

    private mutating func skipBlanksAndComments() {
        while index < bytes.count {
            if bytes[index].isBlank {
                index += 1
            } else if bytes[index...].starts(with: "--".utf8) {
                while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { index += 1 }
            } else if bytes[index...].starts(with: "/*".utf8) {
                index += 2
                while index < bytes.count, !bytes[index...].starts(with: "*/".utf8) { index += 1 }
                index = min(index + 2, bytes.count)
            } else {
                return
            }
        }
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || (0x09...0x0d).contains(self) }

    /// Letters, digits, the underscore, the dollar sign and everything beyond ASCII.
    fileprivate var isWordByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }
}
