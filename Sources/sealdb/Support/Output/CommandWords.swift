/// Splits a command in one argument into its words. No shell is started.
enum CommandWords {
    /// Words are separated by blanks. Within '…' everything is literal. Within "…" and outside of quotes, a backslash
    /// makes the next character literal. Nothing is expanded.
    /// - Returns: `nil` if a quote is not closed, or if the last character is a backslash.
    static func split(_ text: String) -> [String]? {
        var words: [String] = []
        var word: String?
        var quote: Unicode.Scalar?
        var isEscaped = false
        // As a shell reads them: a mark that joins a quote or blank leaves it one.
        for character in text.unicodeScalars {
            if isEscaped {
                word = (word ?? "") + String(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if character == quote {
                quote = nil
            } else if quote == nil, character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if quote == nil, character == " " || character == "\t" || character == "\n" {
                if let finished = word { words.append(finished) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        guard quote == nil, !isEscaped else { return nil }
        return words + (word.map { [$0] } ?? [])
    }
}
