import SealedDB

/// What the Tab key does to a line.
struct Completion {
    /// The number of characters before the cursor that are replaced.
    var deletedCount = 0
    var inserted = ""
    /// What there is to choose from, to be shown; empty if there is no choice.
    var choices = ""

    /// - Parameters:
    ///   - line: the line up to the cursor.
    ///   - before: the lines before it that belong to the same statement.
    ///   - names: the names of the store's tables, columns and so on; asked for only where they may stand.
    init(of line: String, after before: String = "", names: () -> [String]) {
        if Completion.isWithinText(before + line), !line.begins(with: ".") {
            inserted = "\t"
            return
        }
        let word = Completion.word(at: line)
        let isColumn = line.hasSuffix(".\(word)") && !line.begins(with: ".")
        let isCommand = line.begins(with: ".") && line.isSame(as: word)
        let candidates: [String]
        if isCommand {
            candidates = DotCommand.all.map { "." + $0.name }
        } else if word.isEmpty {
            return
        } else if line.begins(with: ".") || isColumn {
            candidates = names()
        } else {
            candidates = names() + Completion.keywords(like: word)
        }
        let matches = Completion.matches(candidates, word)
        guard let first = matches.first else { return }
        // Only a whole name can be quoted.
        let start = matches.dropFirst().reduce(first) { Completion.commonStart($0, $1) }.unicodeScalars
        let common = String(isCommand ? start[...] : start.prefix(while: Completion.isPartOfName))
        if matches.count == 1 {
            replace(word, by: (Completion.isPlain(first) || isCommand ? first : first.quoted(by: "\"")) + " ")
        } else if common.unicodeScalars.count > word.unicodeScalars.count {
            replace(word, by: common)
        } else {
            choices = Completion.columns(matches)
        }
    }

    /// Whether a text ends within a literal or comment.
    private static func isWithinText(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            var end = 0
            while let token = tokens.next() {
                if token.kind == .illegal, "'\"`[".utf8.contains(bytes[token.range.lowerBound]) { return true }
                end = token.range.upperBound
            }
            let rest = bytes[end...]
            return rest.contains { $0 > 0x20 }
                && (rest.last != 0x0a || !ShellInput.endsOutsideComment(String(decoding: rest, as: UTF8.self)))
        }
    }

    private mutating func replace(_ word: String, by text: String) {
        deletedCount = word.unicodeScalars.count
        inserted = text
    }

    /// The name or command that ends where the cursor stands.
    private static func word(at line: String) -> String {
        let start = line.unicodeScalars.lastIndex { !isPartOfName($0) && $0 != "." }
        var word = line.unicodeScalars[(start.map { line.unicodeScalars.index(after: $0) } ?? line.startIndex)...]
        // A column may stand behind its table.
        if start != nil || !line.begins(with: "."), let dot = word.lastIndex(of: ".") {
            word = word[word.index(after: dot)...]
        }
        return String(word)
    }

    private static func isPartOfName(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value >= 0x80 || scalar == "_" || ("0"..."9").contains(scalar) || ("a"..."z").contains(scalar)
            || ("A"..."Z").contains(scalar)
    }

    private static func isPlain(_ name: String) -> Bool {
        name.unicodeScalars.allSatisfy(isPartOfName)
            && !(name.unicodeScalars.first.map { ("0"..."9").contains($0) } ?? true)
    }

    /// SQLite's keywords, in the case in which the word is typed.
    private static func keywords(like word: String) -> [String] {
        let isLower = word.utf8.contains { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
        return SQLKeywords.all.map { isLower ? $0.lowercased() : $0 }
    }

    /// Those that begin with the word, without regard to the case of ASCII letters, each once and in order. A name that
    /// would control the terminal is left out.
    private static func matches(_ candidates: [String], _ word: String) -> [String] {
        let start = word.foldedForSQL
        var seen: Set<ExactText> = []
        return candidates.filter { candidate in
            candidate.foldedForSQL.begins(with: start)
                && TerminalText.escaped(candidate).isSame(as: candidate) && seen.insert(ExactText(candidate)).inserted
        }.sorted()
    }

    private static func commonStart(_ one: String, _ other: String) -> String {
        var result = String.UnicodeScalarView()
        for (own, its) in zip(one.unicodeScalars, other.unicodeScalars) {
            guard own == its else { break }
            result.append(own)
        }
        return String(result)
    }

    /// The words in columns of equal width, as many as 80 characters hold.
    private static func columns(_ words: [String]) -> String {
        let width = (words.map { TerminalText.width(of: $0) }.max() ?? 0) + 2
        let count = max(1, 80 / width)
        var result = ""
        for (index, word) in words.enumerated() {
            let isLast = index % count == count - 1 || index == words.count - 1
            result += word
            result += isLast ? "\n" : String(repeating: " ", count: width - TerminalText.width(of: word))
        }
        return result
    }
}
