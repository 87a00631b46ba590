/// The calls in C that stand alone, with or without a cast to void.
func droppedResults(inC source: SourceText) -> [DroppedResult] {
    var found: [DroppedResult] = []
    let ownVoids = Set(source.text.matches(of: /\bvoid\s+(\w+)\(/).map { String($0.output.1) })
    let words: Set = [
        "if", "while", "for", "switch", "return", "sizeof", "do", "else", "int", "void", "char", "_Static_assert",
    ]
    var tokens = CTokens(source.text)
    /// For each parenthesis that is open, what is before it.
    var openings: [String?] = []
    /// Whether a statement begins here.
    var isStart = true
    var start = 1
    var previous: CTokens.Token?
    while let token = tokens.next() {
        if isStart { start = token.line }
        switch token.text {
        case "(":
            openings.append(isStart ? nil : previous?.text)
            if let previous, previous.isName, previous.beginsStatement, CallNames.hasResult(inC: previous.text),
                !words.contains(previous.text), !ownVoids.contains(previous.text)
            {
                found.append(.init(text: previous.text + "(…)", line: previous.line, statementLine: start))
            }
            isStart = false
        case ")":
            let opening = openings.popLast() ?? nil
            // A condition, or a cast to void, is before a statement.
            isStart =
                openings.isEmpty
                && (["if", "while", "for", "switch"].contains(opening) || opening == nil && previous?.text == "void")
        case ";": isStart = openings.isEmpty
        case "{", "}": isStart = true
        case ":": isStart = previous?.beginsStatement == true
        case "else", "do": isStart = true
        default:
            previous = token
            previous?.beginsStatement = isStart
            isStart = false
            continue
        }
        previous = token
    }
    return found
}

/// The words and signs of C, without comments, literals and what the preprocessor reads.
private struct CTokens {
    struct Token {
        let text: String
        let line: Int
        var beginsStatement = false

        var isName: Bool { text.first.map { $0.isLetter || $0 == "_" } ?? false }
    }

    private let text: [Character]
    private var index = 0
    private var line = 1
    private var isLineStart = true

    init(_ text: String) { self.text = Array(text) }

    private func hasNext(_ characters: String) -> Bool { text[index...].starts(with: characters) }

    private mutating func advance() {
        if text[index] == "\n" {
            line += 1
            isLineStart = true
        }
        index += 1
    }

    private mutating func skip(through end: String) {
        while index < text.count, !hasNext(end) {
            if text[index] == "\\" { advance() }
            if index < text.count { advance() }
        }
        for _ in end where index < text.count { advance() }
    }

    mutating func next() -> Token? {
        while index < text.count {
            let character = text[index]
            if character == "#", isLineStart {
                skip(through: "\n")
            } else if hasNext("//") {
                skip(through: "\n")
            } else if hasNext("/*") {
                skip(through: "*/")
            } else if character == "\"" || character == "'" {
                isLineStart = false
                advance()
                skip(through: String(character))
            } else if character.isWhitespace {
                advance()
            } else {
                isLineStart = false
                let first = index
                let isName = character.isLetter || character.isNumber || character == "_"
                advance()
                while isName, index < text.count, text[index].isLetter || text[index].isNumber || text[index] == "_" {
                    advance()
                }
                return Token(text: String(text[first..<index]), line: line)
            }
        }
        return nil
    }
}
