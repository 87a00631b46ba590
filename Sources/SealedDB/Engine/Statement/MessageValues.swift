internal import CSealedDBSystem
import Foundation
internal import SQLiteEngine

extension PreparedStatement {
    /// Returns SQLite's message about a failure of the statement, without the values bound to it, and without others that
    /// it has met in rows.
    ///
    /// SQLite and its functions quote what they cannot process: a path in JSON, the query of a full-text search, the
    /// name of a file. If a value cannot be separated from the message, the result code's own text replaces the
    /// message.
    func withoutValues(_ message: [UInt8], _ code: Int32) -> String {
        let text = String(decoding: message, as: UTF8.self)
        let plain = String(cString: sqlite3_errstr(code))
        guard text != plain, !MessageValues.isWithoutValues(text, code) else { return text }
        // Who wrote the schema, or a function, chose the words of these.
        let isChosen = code == MessageValues.raisedByTrigger || MessageWords.isOfFunction(text)
        if parameterCount == 0, isChosen, !isSecret { return text }
        // Any other message, and a value bound to a statement that contains a key, may hold the key.
        guard !isSecret || (parameterCount == 0 && MessageWords.isOfAttachedFile(text)), let pointer,
            let sql = sqlite3_sql(pointer),
            let expanded = sqlite3_expanded_sql(pointer)
        else {
            return plain
        }
        let count = strlen(expanded)
        defer {
            sealeddb_wipe(expanded, count)
            sqlite3_free(expanded)
        }
        let values = MessageValues(
            expanded: UnsafeBufferPointer(
                start: UnsafeRawPointer(expanded).assumingMemoryBound(to: UInt8.self),
                count: count
            ),
            sql: UnsafeBufferPointer(
                start: UnsafeRawPointer(sql).assumingMemoryBound(to: UInt8.self),
                count: strlen(sql)
            ),
            length: message.count
        )
        return values?.removed(from: message, isChosen: isChosen) ?? plain
    }
}

/// The values of a statement, found in its expanded text, in which SQLite has replaced the parameters by values.
/// https://www.sqlite.org/c3ref/expanded_sql.html
///
/// A message may contain a value as a whole or in part, in another case, or within a longer word. So values are split
/// into words. Only ASCII letters are compared without regard to case, as in SQL.
struct MessageValues {
    private let expanded: UnsafeBufferPointer<UInt8>
    /// The positions of the values, without the quotes of texts.
    private var values: [Range<Int>] = []
    /// The words of the values that do not stand in the text of the statement, each once.
    private let parts: [Slice<UnsafeBufferPointer<UInt8>>]
    /// The words of the statement, folded.
    private let ownWords: Set<[UInt8]>

    /// For a longer text, the search would take too long.
    private static let longestText = 1 << 16
    /// So it would for more bytes of the text times bytes of the message: each word of one is sought in each of the other.
    /// Values may be somebody else's, and no limit of time ends this.
    private static let mostComparisons = 1 << 21
    /// A shorter part of a word reveals nothing.
    private static let shortestPart = 4

    /// Finds the values. The bytes must stay valid as long as this value is used.
    /// - Parameter length: that of the message, in bytes
    /// - Returns: `nil` if the values cannot be found, if one is a blob, which may have been read as any text, or if the
    ///   texts are too long.
    init?(expanded: UnsafeBufferPointer<UInt8>, sql: UnsafeBufferPointer<UInt8>, length: Int) {
        self.expanded = expanded
        guard expanded.count <= MessageValues.longestText,
            length <= MessageValues.mostComparisons / max(expanded.count, 1)
        else { return nil }
        var tokens = SQLTokenizer(sql)
        // The ends, in each text, of the part that has been compared so far.
        var (position, place) = (0, 0)
        while let token = tokens.next() {
            guard token.kind == .variable else { continue }
            guard let start = MessageValues.end(of: sql[position..<token.range.lowerBound], in: expanded[place...]),
                let value = MessageValues.value(in: expanded, at: start)
            else { return nil }
            values.append(value.content)
            (position, place) = (token.range.upperBound, value.end)
        }
        guard MessageValues.end(of: sql[position...], in: expanded[place...]) == expanded.count else { return nil }
        let ownWords = Set(MessageValues.words(of: sql[...]).map { sql[$0].map(\.folded) })
        self.ownWords = ownWords
        var known = ownWords
        parts = values.flatMap { MessageValues.words(of: expanded[$0]) }.map { expanded[$0] }
            .filter { known.insert($0.map(\.folded)).inserted }
    }

    /// Returns the position after `start` in a text that begins with it; `nil` for any other text.
    private static func end(of start: Slice<UnsafeBufferPointer<UInt8>>, in text: Slice<UnsafeBufferPointer<UInt8>>)
        -> Int?
    {
        text.starts(with: start) ? text.startIndex + start.count : nil
    }

    /// Returns the literal that SQLite has put there, and where it ends; `nil` for a blob, and for an unknown form.
    private static func value(
        in text: UnsafeBufferPointer<UInt8>,
        at start: Int
    ) -> (content: Range<Int>, end: Int)? {
        var tokens = SQLTokenizer(text, from: start)
        guard start < text.count, text[start] == UInt8(ascii: "'") else {
            // NULL, zeroblob(1), -12, 1.0e+300, Inf
            let end = text[start...].firstIndex { !($0.isWordByte || "+-.()".utf8.contains($0)) } ?? text.count
            let literal = text[start..<end]
            for known in ["NULL", "zeroblob("] where literal.starts(with: known.utf8) {
                let end = known == "NULL" ? start + 3 : literal.firstIndex(of: UInt8(ascii: ")"))
                return end.map { (content: start..<start, end: $0 + 1) }
            }
            return number(in: literal).map { (content: $0, end: $0.upperBound) }
        }
        guard let token = tokens.next(), token.kind == .string else { return nil }
        return (start + 1..<token.range.upperBound - 1, token.range.upperBound)
    }

    private static func number(in text: Slice<UnsafeBufferPointer<UInt8>>) -> Range<Int>? {
        var end = text.startIndex
        func skip(_ condition: (UInt8) -> Bool) {
            while end < text.endIndex, condition(text[end]) { end += 1 }
        }
        func isNext(_ byte: UInt8) -> Bool { end < text.endIndex && text[end] == byte }
        if isNext(UInt8(ascii: "-")) { end += 1 }
        if text[end...].starts(with: "Inf".utf8) { return text.startIndex..<end + 3 }
        let digits = end
        skip(\.isDigit)
        guard end > digits else { return nil }
        if isNext(UInt8(ascii: ".")) {
            end += 1
            skip(\.isDigit)
            if isNext(UInt8(ascii: "e")) {
                end += 1
                skip { $0.isDigit || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }
            }
        }
        return text.startIndex..<end
    }

    // MARK: Messages

    /// Whether a message names at most columns, tables and constraints, but no values.
    static func isWithoutValues(_ message: String, _ code: Int32) -> Bool {
        constraints.contains(code) || constantMessages.contains(message)
    }

    /// Constraint failures with such messages. Those of a trigger or a virtual table may contain anything.
    /// https://www.sqlite.org/rescode.html
    private static let constraints: Set<Int32> = [
        SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_FOREIGNKEY,
        // CHECK, NOTNULL, ROWID, DATATYPE
        SQLITE_CONSTRAINT | 1 << 8, SQLITE_CONSTRAINT | 5 << 8, SQLITE_CONSTRAINT | 10 << 8,
        SQLITE_CONSTRAINT | 12 << 8,
    ]
    static let raisedByTrigger = SQLITE_CONSTRAINT | 7 << 8
    private static let constantMessages: Set = [
        "malformed JSON", "JSON cannot hold BLOB values", "integer overflow", "LIKE or GLOB pattern too complex",
        "ESCAPE expression must be a single character",
    ]

    /// Returns the message with "…" in place of each value or part of a value. A word that neither SQLite's messages nor
    /// the statement have may come from a row.
    /// - Parameter isChosen: whether the message is one of a trigger or function, which may have any words.
    func removed(from message: [UInt8], isChosen: Bool) -> String {
        message.withUnsafeBufferPointer { message in
            var isHidden = [Bool](repeating: false, count: message.count)
            for value in values { hide(value, in: message, &isHidden) }
            for word in MessageValues.words(of: message[...])
            where isHidden[word].contains(true) || isOfValue(message[word])
                || !isChosen && !MessageWords.isUsual(message[word]) && !isOwn(message[word])
            {
                for index in word { isHidden[index] = true }
            }
            return String(decoding: shown(message, isHidden), as: UTF8.self)
        }
    }

    /// Hides a value together with its punctuation, both with and without its quotes doubled.
    private func hide(_ value: Range<Int>, in message: UnsafeBufferPointer<UInt8>, _ isHidden: inout [Bool]) {
        guard value.count >= 3, value.count <= 2 * message.count, !isOwn(expanded[value]) else { return }
        let content = Array(expanded[value])
        for form in [content, MessageValues.unquoted(content)] where form.count <= message.count {
            for start in 0...message.count - form.count {
                let place = start..<start + form.count
                guard message[place].isSame(as: form[...]) else { continue }
                guard form.count >= MessageValues.shortestPart || isWhole(place, in: message) else { continue }
                for index in place { isHidden[index] = true }
            }
        }
    }

    private static func unquoted(_ content: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var isFirst = false
        for byte in content {
            // A doubled quote stands for one quote.
            isFirst = byte == UInt8(ascii: "'") && !isFirst
            if byte != UInt8(ascii: "'") || isFirst { result.append(byte) }
        }
        return result
    }

    /// Whether no word extends beyond the place.
    private func isWhole(_ place: Range<Int>, in text: UnsafeBufferPointer<UInt8>) -> Bool {
        let (first, last) = (place.lowerBound, place.upperBound - 1)
        return !(first > 0 && text[first - 1].isWordByte && text[first].isWordByte)
            && !(last + 1 < text.count && text[last + 1].isWordByte && text[last].isWordByte)
    }

    /// Whether a word of the message comes from a value.
    private func isOfValue(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        !isOwn(word)
            && parts.contains { part in
                let (shorter, longer) = part.count < word.count ? (part, word) : (word, part)
                return shorter.count < MessageValues.shortestPart ? part.isSame(as: word) : longer.holds(shorter)
            }
    }

    /// Whether a word also stands in the text of the statement, which is shown anyway.
    private func isOwn(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        ownWords.contains(word.map(\.folded))
    }

    private static func words(of text: Slice<UnsafeBufferPointer<UInt8>>) -> [Range<Int>] {
        var words: [Range<Int>] = []
        var start: Int?
        for index in text.startIndex..<text.endIndex {
            if text[index].isWordByte {
                start = start ?? index
            } else if let begin = start {
                words.append(begin..<index)
                start = nil
            }
        }
        if let start { words.append(start..<text.endIndex) }
        return words
    }

    /// Returns the bytes to show. Punctuation between two hidden pieces is hidden with them.
    private func shown(_ message: UnsafeBufferPointer<UInt8>, _ isHidden: [Bool]) -> [UInt8] {
        var result: [UInt8] = []
        var gap: [UInt8] = []
        var isBehindHidden = false
        for (byte, isHidden) in zip(message, isHidden) {
            if isHidden {
                if !isBehindHidden { result += gap + Array("…".utf8) }
                gap = []
                isBehindHidden = true
            } else {
                gap.append(byte)
                if byte.isWordByte {
                    result += gap
                    gap = []
                    isBehindHidden = false
                }
            }
        }
        return result + gap
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (0x30...0x39).contains(self) }

    /// Whether the byte may be part of a word: letters, digits, `_`, and everything beyond ASCII.
    fileprivate var isWordByte: Bool {
        isDigit || (0x61...0x7a).contains(self | 0x20) || self == UInt8(ascii: "_") || self >= 0x80
    }

    var folded: UInt8 { (0x41...0x5a).contains(self) ? self | 0x20 : self }
}

extension Collection<UInt8> {
    /// Whether both are equal, ignoring the case of ASCII letters.
    fileprivate func isSame(as other: some Collection<UInt8>) -> Bool {
        count == other.count && zip(self, other).allSatisfy { $0.folded == $1.folded }
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    fileprivate func holds(_ part: Self) -> Bool {
        guard part.count <= count else { return false }
        return (startIndex...endIndex - part.count).contains { self[$0..<$0 + part.count].isSame(as: part) }
    }
}
