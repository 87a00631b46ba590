/// What may be shown of a text that SQLite did not compile.
extension SQLStatementText {
    /// Whether a key may stand in it because somebody misspelt a statement, or left out a semicolon or a quote.
    ///
    /// SQLite's message quotes the text, so then neither is shown. What holds a key is found by the words for it, wherever
    /// they stand: a quote that is left out turns what is in quotes inside out. A name such as `key` alone is no reason,
    /// many tables have such a column. With a literal right behind it, it is one.
    static func mayHoldKey(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
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
            // The name of a column has something between it and a value.
            if hasColumns(verb) { isBehindKey = false }
            switch token.kind {
            case .string, .blob, .quotedName, .illegal:
                // A name in quotes may be meant as a value.
                if mayBeMisspelt(verb) { return true }
                if isName(name) {
                    isBehindKey = isBehindKey || isNameOfKey(name)
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
                // https://www.sqlite.org/pragma.html#pragfunc
                if name.hasPrefix("pragma_"), isNameOfKey(name) { return true }
                let isConstraint =
                    previous.map { tokens.isWord($0, "primary") || tokens.isWord($0, "foreign") } ?? false
                if isNameOfKey(name), !isConstraint { isBehindKey = true }
            default: break
            }
            previous = token
        }
        return isAboutKeys(bytes[(previous?.range.upperBound ?? 0)...])
    }

    /// Whether the name of a key may be one of a column in such a statement.
    private static func hasColumns(_ verb: String) -> Bool {
        ["select", "insert", "update", "delete", "replace", "with", "values", "create", "alter", "drop"].contains(verb)
    }

    /// Whether it may be `ATTACH` or `PRAGMA`, so that every literal may be a key.
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

    /// Whether a text that is not read as SQL has one of the words in it.
    private static func isAboutKeys(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let text = String(decoding: text, as: UTF8.self).lowercased()
        return text.split { !$0.isLetter }.contains { words.contains(String($0)) }
    }
}
