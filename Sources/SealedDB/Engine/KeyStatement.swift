/// Finds SQL that hands a key to the engine. A SQLite without a codec takes `ATTACH … KEY …` and `PRAGMA key` without a
/// word, and writes plaintext.
struct KeyStatement {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Whether one of the text's statements is `ATTACH … KEY …`, or a pragma that sets a key.
    static func occurs(in sql: UnsafeBufferPointer<UInt8>) -> Bool {
        guard mentionsKey(sql) else { return false }
        var scanner = KeyStatement(sql)
        while let holdsKey = scanner.nextStatementHoldsKey() { if holdsKey { return true } }
        return false
    }

    /// Whether the first of the text's statements is one.
    static func comesFirst(in sql: UnsafeBufferPointer<UInt8>) -> Bool {
        var scanner = KeyStatement(sql)
        return scanner.nextStatementHoldsKey() ?? false
    }

    /// Goes behind the next statement; `nil` if there is none.
    private mutating func nextStatementHoldsKey() -> Bool? {
        while let first = nextToken() {
            switch first {
            // SQLCipher takes the key even where the pragma is only explained.
            case ";", "explain", "query", "plan": continue
            case "attach": return skipStatement(lookingFor: "key")
            case "pragma":
                var name = nextToken(unquoting: true)
                if skipDot() { name = nextToken(unquoting: true) }
                if let name, KeyStatement.pragmas.contains(name) { return true }
                if name != ";" { _ = skipStatement() }
                return false
            default:
                _ = skipStatement()
                return false
            }
        }
        return nil
    }

    static func occurs(in sql: String) -> Bool {
        Array(sql.utf8).withUnsafeBufferPointer { occurs(in: $0) }
    }

    /// Whether the pragma of this name sets a key.
    static func isKeyPragma(_ name: String) -> Bool { pragmas.contains(name.lowercased()) }
    /// Tells of most statements by their first letter that they do not.
    static func mayControlTransaction(_ first: UInt8?) -> Bool {
        first.map { !"dipsuvw".utf8.contains($0 | 0x20) } ?? false
    }

    /// Whether the statement begins or ends a transaction. Savepoints do not.
    static func controlsTransaction(_ sql: UnsafeBufferPointer<UInt8>) -> Bool {
        guard mayControlTransaction(sql.first) else { return false }
        var scanner = KeyStatement(sql)
        while let token = scanner.nextToken() {
            switch token {
            case ";": continue
            case "begin", "commit", "end": return true
            case "rollback":
                let next = scanner.nextToken()
                return next != "to" && (next != "transaction" || scanner.nextToken() != "to")
            default: return false
            }
        }
        return false
    }

    /// The first word of the text in lower case, behind blanks, comments, semicolons and `EXPLAIN`.
    static func firstWord(of sql: String) -> String? {
        Array(sql.utf8).withUnsafeBufferPointer { bytes in
            var scanner = KeyStatement(bytes)
            while let token = scanner.nextToken() {
                if ![";", "explain", "query", "plan"].contains(token) { return token }
            }
            return nil
        }
    }

    private static let pragmas: Set = ["key", "hexkey", "textkey", "rekey", "hexrekey", "textrekey"]

    /// Most statements do not, and are then not looked at word by word.
    private static func mentionsKey(_ sql: UnsafeBufferPointer<UInt8>) -> Bool {
        guard sql.count > 3 else { return false }
        return (0..<sql.count - 2).contains { position in
            sql[position] | 0x20 == UInt8(ascii: "k") && sql[position + 1] | 0x20 == UInt8(ascii: "e")
                && sql[position + 2] | 0x20 == UInt8(ascii: "y")
        }
    }

    /// Goes behind the next semicolon; tells whether the word came before it.
    private mutating func skipStatement(lookingFor word: String? = nil) -> Bool {
        var isFound = false
        while let token = nextToken(), token != ";" { if token == word { isFound = true } }
        return isFound
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
