/// What may be shown of a text that SQLite did not compile.
extension SQLStatementText {
    /// Whether a key may stand in it because somebody misspelt a statement, or left out a semicolon or a quote.
    ///
    /// SQLite's message quotes the text, so then neither is shown. What holds a key is found by the words for it, wherever
    /// they stand: a quote that is left out turns what is in quotes inside out. A name such as `key` alone is no reason,
    /// many tables have such a column; with a literal behind it, it is one.
    static func mayHoldKey(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var tokens = SQLTokenizer(bytes)
        var previous: SQLToken?
        var isPragma = false
        var isBehindKey = false
        while let token = tokens.next() {
            let gap = bytes[(previous?.range.upperBound ?? 0)..<token.range.lowerBound]
            if gap.contains(UInt8(ascii: "'")) || gap.contains(UInt8(ascii: "\"")), isAboutKeys(gap) { return true }
            switch token.kind {
            case .string, .blob, .quotedName, .illegal:
                // An identifier in quotes is a name, and a value no less.
                if isBehindKey || isPragma { return true }
                if isName(tokens.name(token)) {
                    isBehindKey = isNameOfKey(tokens.name(token))
                } else if isAboutKeys(bytes[token.range]) {
                    return true
                }
            case .word:
                let isFirst = previous == nil
                if tokens.isWord(token, "pragma") || tokens.isWord(token, "attach") {
                    if !isFirst { return true }
                    isPragma = tokens.isWord(token, "pragma")
                } else if isNameOfKey(tokens.name(token)) {
                    let isConstraint =
                        previous.map { tokens.isWord($0, "primary") || tokens.isWord($0, "foreign") } ?? false
                    isBehindKey = isBehindKey || !isConstraint
                }
            default: break
            }
            previous = token
        }
        return isAboutKeys(bytes[(previous?.range.upperBound ?? 0)...])
    }

    private static let words = ["key", "passphrase", "password"]

    private static func isNameOfKey(_ name: String) -> Bool {
        words.contains(where: name.contains) && !name.hasPrefix("foreign_key")
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "_") }
    }

    /// Whether a text that is not read as SQL has one of the words in it.
    private static func isAboutKeys(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let text = String(decoding: text, as: UTF8.self).lowercased()
        return (words + ["pragma", "attach"]).contains(where: text.contains)
    }
}
