/// Finds SQL that hands a key to the engine. A SQLite without a codec takes `ATTACH … KEY …` and `PRAGMA key` without a
/// word, and writes plaintext.
struct KeyStatement {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Whether the first statement of the text is `ATTACH … KEY …`, or a pragma that sets a key.
    static func isFirst(in sql: UnsafeBufferPointer<UInt8>) -> Bool {
        var scanner = KeyStatement(sql)
        var word = scanner.nextToken()
        // SQLCipher takes the key even where the pragma is only explained.
        while word == "explain" || word == "query" || word == "plan" || word == ";" { word = scanner.nextToken() }
        switch word {
        case "attach":
            while let token = scanner.nextToken(), token != ";" { if token == "key" { return true } }
            return false
        case "pragma":
            var name = scanner.nextToken(unquoting: true)
            if scanner.skipDot() { name = scanner.nextToken(unquoting: true) }
            return ["key", "hexkey", "textkey", "rekey", "hexrekey", "textrekey"].contains(name)
        default:
            return false
        }
    }

    private mutating func skipBlanks() {
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: " "), 0x09...0x0d: position += 1
            case UInt8(ascii: "-") where follows("-"):
                while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
            case UInt8(ascii: "/") where follows("*"):
                position += 2
                while position < bytes.count, !(bytes[position] == UInt8(ascii: "*") && follows("/")) { position += 1 }
                position = min(position + 2, bytes.count)
            default: return
            }
        }
    }

    private func follows(_ character: Unicode.Scalar) -> Bool {
        position + 1 < bytes.count && bytes[position + 1] == UInt8(ascii: character)
    }

    private mutating func skipDot() -> Bool {
        skipBlanks()
        guard position < bytes.count, bytes[position] == UInt8(ascii: ".") else { return false }
        position += 1
        return true
    }

    /// A word in lower case, one other character, or "" for a quoted text that is not asked for; `nil` at the end.
    private mutating func nextToken(unquoting: Bool = false) -> String? {
        skipBlanks()
        guard position < bytes.count else { return nil }
        let start = position
        if isWord(bytes[start]) {
            while position < bytes.count, isWord(bytes[position]) { position += 1 }
            return text(start..<position)
        }
        position += 1
        let closing: Unicode.Scalar
        switch bytes[start] {
        case UInt8(ascii: "'"): closing = "'"
        case UInt8(ascii: "\""): closing = "\""
        case UInt8(ascii: "`"): closing = "`"
        case UInt8(ascii: "["): closing = "]"
        default: return text(start..<position)
        }
        while position < bytes.count, bytes[position] != UInt8(ascii: closing) { position += 1 }
        defer { position = min(position + 1, bytes.count) }
        return unquoting ? text(start + 1..<position) : ""
    }

    private func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self).lowercased()
    }

    private func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
            true
        default: false
        }
    }
}
