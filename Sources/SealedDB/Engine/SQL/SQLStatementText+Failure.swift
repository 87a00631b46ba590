/// Decides what an error may show of a text that SQLite did not compile.
extension SQLStatementText {
    /// Whether the text may contain a key, because somebody misspelt a statement, or left out a semicolon or a quote.
    ///
    /// SQLite's message quotes the text, so neither is shown then. This looks for words about keys anywhere in the
    /// text, because a missing quote swaps what is inside and outside of quotes. A name such as `key` alone does not
    /// count, because many tables have such a column. A name directly followed by a literal does.
    static func mayHoldKey(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        if isTableCheck(bytes) { return false }
        var tokens = SQLTokenizer(bytes)
        var previous: SQLToken?
        var verb = ""
        var isBehindKey = false
        var isBehindAttach = false
        while let token = tokens.next() {
            let gap = bytes[(previous?.range.upperBound ?? 0)..<token.range.lowerBound]
            if gap.contains(UInt8(ascii: "'")) || gap.contains(UInt8(ascii: "\"")), isAboutKeys(gap) { return true }
            let name = tokens.name(token)
            let isLiteral = [.string, .blob, .quotedName, .illegal, .number].contains(token.kind)
            if isBehindKey, isLiteral || (token.kind == .word && !hasColumns(verb)) { return true }
            if isBehindAttach, isLiteral || token.kind == .variable || name == "database" { return true }
            isBehindAttach = false
            // In such a statement, something stands between the name of a column and a value.
            if hasColumns(verb) { isBehindKey = false }
            switch token.kind {
            case .string, .blob, .quotedName, .illegal:
                // A quoted name may be meant as a value.
                if mayBeMisspelt(verb) { return true }
                if isName(name) {
                    isBehindKey = isNameOfKey(name)
                } else if isAboutKeys(bytes[token.range]) {
                    return true
                }
            case .word:
                if previous == nil {
                    verb = name
                } else if name == "attach" {
                    isBehindAttach = true
                } else if name == "pragma" || name == "vacuum" {
                    return true
                }
                // A pragma about keys may be misspelt, too. https://www.sqlite.org/pragma.html#pragfunc
                if name.hasPrefix("pragma_") { return true }
                let isConstraint =
                    previous.map { tokens.isWord($0, "primary") || tokens.isWord($0, "foreign") } ?? false
                if isNameOfKey(name), !isConstraint { isBehindKey = true }
            default: break
            }
            previous = token
        }
        return isAboutKeys(bytes[(previous?.range.upperBound ?? 0)...])
    }

    /// Whether the text is the check of one table and nothing else, so that what is quoted there is the name of a table.
    private static func isTableCheck(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var tokens = SQLTokenizer(bytes)
        var end = bytes.startIndex
        var found: [SQLToken] = []
        while let token = tokens.next() {
            // Nothing else stands between them, such as a comment.
            guard found.count < 6, bytes[end..<token.range.lowerBound].allSatisfy({ $0 == 0x20 }) else { return false }
            found.append(token)
            end = token.range.upperBound
        }
        guard found.count >= 5, end == bytes.endIndex else { return false }
        let words = found.map { String(decoding: bytes[$0.range], as: UTF8.self).lowercased() }
        return words[0] == "pragma" && ["integrity_check", "quick_check"].contains(words[1]) && words[2] == "("
            && [.string, .quotedName, .word].contains(found[3].kind) && words[4] == ")"
            && words[5...].allSatisfy { $0 == ";" }
    }

    /// Whether the statement may name columns, so that the name of a key may be a column.
    private static func hasColumns(_ verb: String) -> Bool {
        ["select", "insert", "update", "delete", "replace", "with", "values", "create", "alter", "drop"].contains(verb)
    }

    /// Whether the word may be a misspelt `ATTACH` or `PRAGMA`, so that every literal may be a key.
    private static func mayBeMisspelt(_ verb: String) -> Bool {
        verb == "pragma" || (!verbs.contains(verb) && ["a", "p"].contains(verb.prefix(1)))
    }

    private static let words: Set = [
        "key", "hexkey", "textkey", "rekey", "hexrekey", "textrekey", "passphrase", "password", "pragma", "attach",
    ]

    private static func isNameOfKey(_ name: String) -> Bool {
        guard !name.hasPrefix("foreign_key"), name != "pragma", name != "attach" else { return false }
        return name.split(separator: "_").contains { words.contains(String($0)) }
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "_") }
    }

    /// Whether a text that is not read as SQL contains one of the words.
    private static func isAboutKeys(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let text = String(decoding: text, as: UTF8.self).lowercased()
        return text.split { !$0.isLetter }.contains { words.contains(String($0)) }
    }
}
