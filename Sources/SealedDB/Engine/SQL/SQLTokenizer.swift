/// A token of SQL text: neither blank nor comment.
package struct SQLToken {
    package enum Kind {
        /// A keyword or bare name.
        case word
        /// A name in double quotes, backticks or brackets.
        case quotedName
        case string, blob, number
        /// A parameter.
        case variable
        case semicolon
        /// An operator or other punctuation.
        case symbol
        /// Bytes that SQLite does not recognize, and rejects.
        case illegal
    }

    package let kind: Kind
    /// The position of the token in the text, in bytes.
    package let range: Range<Int>
}

/// Splits SQL text into tokens exactly as SQLite does: blanks, words and parameters are the same bytes. Where versions
/// of SQLite differ, bytes that any version takes for a word are a word.
/// https://www.sqlite.org/lang.html, and the source of its tokenizer, https://www.sqlite.org/src/file/src/tokenize.c
package struct SQLTokenizer {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// Where the next token is searched.
    package private(set) var position: Int
    /// Whether the text ended within a comment that begins with `/*`. SQLite takes that for the end of the comment.
    private(set) var endsInComment = false
    /// Whether a comment that begins with `--` has held further lines with something in them. SQLite ends such a comment at a
    /// line feed, and not at a carriage return alone.
    private var hasHiddenLines = false
    private var isInStatement = false

    /// - Parameter bytes: the text. It must stay valid as long as the tokenizer is used.
    package init(_ bytes: UnsafeBufferPointer<UInt8>, from position: Int = 0) {
        self.bytes = bytes
        self.position = position
    }

    /// Returns the next token; `nil` at the end. For SQLite, a NUL byte is an end too.
    package mutating func next() -> SQLToken? {
        skipBlanks()
        guard let first = byte(position) else { return nil }
        let start = position
        let kind = advance(first)
        isInStatement = kind != .semicolon
        return SQLToken(kind: kind, range: start..<position)
    }

    /// Whether anything but blanks, comments and semicolons follows.
    package mutating func hasStatement() -> Bool {
        while let token = next() { if token.kind != .semicolon { return true } }
        // SQLite stops at a NUL byte, but another reader may go on.
        return position < bytes.count
    }

    /// Whether a text has lines that SQLite takes for part of the comment before them, because they are not separated by line feeds.
    package static func hidesLines(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.contains(carriageReturn) else { return false }
        var tokens = SQLTokenizer(bytes)
        while tokens.next() != nil {}
        return tokens.hasHiddenLines
    }

    private static let carriageReturn = UInt8(ascii: "\r")

    /// Returns the text of a token in lower case, without quotes if it is quoted.
    package func name(_ token: SQLToken) -> String {
        let text = bytes[token.range]
        guard token.kind == .quotedName || token.kind == .string, text.count > 1, let quote = text.first else {
            return String(decoding: text, as: UTF8.self).lowercased()
        }
        var content: [UInt8] = []
        var isSecond = false
        for byte in text.dropFirst().dropLast() {
            // A doubled quote stands for one quote.
            isSecond = byte == quote && quote != UInt8(ascii: "[") && !isSecond
            if !isSecond { content.append(byte) }
        }
        return String(decoding: content, as: UTF8.self).lowercased()
    }

    /// Whether the token is this keyword.
    package func isWord(_ token: SQLToken, _ word: StaticString) -> Bool {
        guard token.kind == .word, token.range.count == word.utf8CodeUnitCount else { return false }
        return word.withUTF8Buffer { word in zip(bytes[token.range], word).allSatisfy { $0 | 0x20 == $1 } }
    }

    // MARK: Blanks

    private mutating func skipBlanks() {
        while let first = byte(position) {
            switch first {
            case 0x09, 0x0a, 0x0c, 0x0d, 0x20:
                // SQLite accepts a vertical tab as a blank only after another blank.
                repeat { position += 1 } while byte(position).map { $0 == 0x20 || (0x09...0x0d).contains($0) } ?? false
            case 0xef where byte(position + 1) == 0xbb && byte(position + 2) == 0xbf: position += 3
            case UInt8(ascii: "-") where byte(position + 1) == UInt8(ascii: "-"):
                let start = position + 2
                position = index(of: UInt8(ascii: "\n"), from: start)
                if !hasHiddenLines { hasHiddenLines = hasFurtherLines(start..<position) }
            case UInt8(ascii: "/") where byte(position + 1) == UInt8(ascii: "*") && byte(position + 2) != nil:
                skipComment()
            default: return
            }
        }
    }

    /// Whether anything but blanks and comments follows the first line; within a statement, whether one may end there. What else
    /// stands there within one belongs to its text, as SQLite has read it.
    private func hasFurtherLines(_ comment: Range<Int>) -> Bool {
        bytes[comment].split(separator: SQLTokenizer.carriageReturn, omittingEmptySubsequences: false).dropFirst()
            .contains { line in
                guard let first = line.firstIndex(where: { !" \t\u{b}\u{c}".utf8.contains($0) }),
                    !line[first...].starts(with: "--".utf8)
                else { return false }
                return !isInStatement || line.contains(UInt8(ascii: ";"))
            }
    }

    private mutating func skipComment() {
        position += 2
        while byte(position) != nil {
            position = index(of: UInt8(ascii: "*"), from: position)
            if byte(position) != nil { position += 1 }
            guard byte(position) != UInt8(ascii: "/") else {
                position += 1
                return
            }
        }
        endsInComment = true
    }

    // MARK: Tokens

    private mutating func advance(_ first: UInt8) -> SQLToken.Kind {
        switch first {
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): return quoted(by: first)
        case UInt8(ascii: "["):
            position = index(of: UInt8(ascii: "]"), from: position + 1)
            return closed(.quotedName)
        case UInt8(ascii: ";"):
            position += 1
            return .semicolon
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
        case UInt8(ascii: ".") where isDigit(position + 1): return number()
        case UInt8(ascii: "?"):
            repeat { position += 1 } while isDigit(position)
            return .variable
        case UInt8(ascii: "$"), UInt8(ascii: "@"), UInt8(ascii: ":"), UInt8(ascii: "#"): return variable()
        case UInt8(ascii: "x"), UInt8(ascii: "X"):
            return byte(position + 1) == UInt8(ascii: "'") ? blob() : word()
        case _ where first.isSQLWordByte: return word()
        default: return symbol(first)
        }
    }

    private mutating func word() -> SQLToken.Kind {
        skipWord()
        return .word
    }

    private mutating func quoted(by quote: UInt8) -> SQLToken.Kind {
        repeat {
            position = index(of: quote, from: position + 1)
            // A doubled quote stands for one quote.
            guard byte(position) != nil, byte(position + 1) == quote else { break }
            position += 1
        } while true
        return closed(quote == UInt8(ascii: "'") ? .string : .quotedName)
    }

    private mutating func blob() -> SQLToken.Kind {
        let start = position + 2
        position = start
        while byte(position)?.isHexDigit == true { position += 1 }
        if byte(position) == UInt8(ascii: "'"), (position - start).isMultiple(of: 2) { return closed(.blob) }
        position = index(of: UInt8(ascii: "'"), from: position)
        _ = closed(.blob)
        return .illegal
    }

    /// Moves behind the closing delimiter, if there is one.
    private mutating func closed(_ kind: SQLToken.Kind) -> SQLToken.Kind {
        guard byte(position) != nil else { return .illegal }
        position += 1
        return kind
    }

    private mutating func number() -> SQLToken.Kind {
        if byte(position) == UInt8(ascii: "0"), byte(position + 1).map({ $0 | 0x20 }) == UInt8(ascii: "x"),
            byte(position + 2)?.isHexDigit == true
        {
            // Bytes that follow are a separate word for SQLite before 3.46, and an error for later versions, except
            // after `_`.
            position += 3
            while byte(position)?.isHexDigit == true { position += 1 }
            return .number
        }
        skipDigits()
        if byte(position) == UInt8(ascii: ".") {
            position += 1
            skipDigits()
        }
        if byte(position).map({ $0 | 0x20 }) == UInt8(ascii: "e") { skipExponent() }
        guard byte(position)?.isSQLWordByte == true else { return .number }
        skipWord()
        return .illegal
    }

    private mutating func skipExponent() {
        let sign = byte(position + 1)
        let isSigned = sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-")
        guard isDigit(position + (isSigned ? 2 : 1)) else { return }
        position += 2
        skipDigits()
    }

    private mutating func skipDigits() {
        while isDigit(position) || byte(position) == UInt8(ascii: "_") { position += 1 }
    }

    /// Reads `:name`, `@name` or `$name`, and the Tcl form `$a::b(any text)`.
    private mutating func variable() -> SQLToken.Kind {
        var count = 0
        position += 1
        while let next = byte(position) {
            if next.isSQLWordByte {
                count += 1
                position += 1
            } else if next == UInt8(ascii: "("), count > 0 {
                repeat { position += 1 } while byte(position).map { !$0.isTclEnd } ?? false
                guard byte(position) == UInt8(ascii: ")") else { return .illegal }
                position += 1
                break
            } else if next == UInt8(ascii: ":"), byte(position + 1) == UInt8(ascii: ":") {
                position += 2
            } else {
                break
            }
        }
        return count > 0 ? .variable : .illegal
    }

    private mutating func symbol(_ first: UInt8) -> SQLToken.Kind {
        let second = byte(position + 1)
        position += 1
        if let second, SQLTokenizer.pairs.contains(UInt16(first) << 8 | UInt16(second)) {
            position += 1
            // `->>`
            if second == UInt8(ascii: ">"), first == UInt8(ascii: "-"), byte(position) == second { position += 1 }
            return .symbol
        }
        return SQLTokenizer.symbols.contains(first) ? .symbol : .illegal
    }

    private static let symbols = Set("()+-*/%=<>|,&~.".utf8)
    private static let pairs = Set(
        ["->", "==", "<=", "<>", "<<", ">=", ">>", "!=", "||"].map { $0.utf8.reduce(0) { $0 << 8 | UInt16($1) } }
    )

    // MARK: Bytes

    /// Returns the byte at an index; `nil` at the end.
    @inline(__always)
    private func byte(_ index: Int) -> UInt8? {
        guard index < bytes.count, bytes[index] != 0 else { return nil }
        return bytes[index]
    }

    /// Returns the index of the next such byte, or the end.
    private func index(of wanted: UInt8, from start: Int) -> Int {
        var index = start
        while let byte = byte(index), byte != wanted { index += 1 }
        return index
    }

    private mutating func skipWord() {
        while byte(position)?.isSQLWordByte == true { position += 1 }
    }

    private func isDigit(_ index: Int) -> Bool { byte(index).map { (0x30...0x39).contains($0) } ?? false }
}

extension UInt8 {
    /// Whether the byte may be part of a word: letters, digits, `_`, `$` and everything beyond ASCII. No name begins
    /// with a digit or `$`.
    fileprivate var isSQLWordByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }

    fileprivate var isHexDigit: Bool {
        (0x30...0x39).contains(self) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20)
    }

    /// Whether the byte ends the text in parentheses of a Tcl variable.
    fileprivate var isTclEnd: Bool { self == UInt8(ascii: ")") || self == 0x20 || (0x09...0x0d).contains(self) }
}
