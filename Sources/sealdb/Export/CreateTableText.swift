import SealedDB

/// A token of SQL with its text.
struct SQLPart {
    let kind: SQLToken.Kind
    /// As it stands there.
    let text: String

    /// A name without its quotes.
    var name: String {
        guard kind == .quotedName, let quote = text.utf8.first else { return text }
        let content = String(text.withoutLast(bytes: 1).utf8.dropFirst(1)) ?? ""
        guard quote != UInt8(ascii: "[") else { return content }
        var bytes: [UInt8] = []
        var isSecond = false
        for byte in content.utf8 {
            isSecond = byte == quote && !isSecond
            if !isSecond || byte != quote { bytes.append(byte) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func isWord(_ word: String) -> Bool { kind == .word && text.foldedForSQL.isSame(as: word) }
    func isSymbol(_ symbol: String) -> Bool { kind == .symbol && text.isSame(as: symbol) }

    static func all(of sql: String) -> [SQLPart] {
        Array(sql.utf8).withUnsafeBufferPointer { bytes in
            var reader = SQLTokenizer(bytes)
            var parts: [SQLPart] = []
            while let token = reader.next() {
                parts.append(SQLPart(kind: token.kind, text: String(decoding: bytes[token.range], as: UTF8.self)))
            }
            return parts
        }
    }

    /// As SQL again, with one blank between two.
    static func text(of parts: some Sequence<SQLPart>) -> String { parts.map(\.text).joined(separator: " ") }
}

/// What the statement that made a table says and no pragma tells. SQLite has accepted it, so it is well formed.
/// https://www.sqlite.org/lang_createtable.html
struct CreateTableText {
    struct Deferral {
        var isDeferrable = false
        var isInitiallyDeferred = false
    }

    /// The conditions of CHECK, without their parentheses.
    private(set) var checks: [[SQLPart]] = []
    /// By the name of the column.
    private(set) var collations: [ExactText: String] = [:]
    private(set) var expressions: [ExactText: [SQLPart]] = [:]
    /// In the order of the statement.
    private(set) var deferrals: [Deferral] = []
    private(set) var hasConflictClause = false

    init(_ sql: String) {
        let parts = SQLPart.all(of: sql)
        guard let start = parts.firstIndex(where: { $0.isSymbol("(") }) else { return }
        let body = CreateTableText.inside(parts[start...])
        for item in CreateTableText.items(body) { read(item) }
    }

    /// What is between a parenthesis, with which this begins, and its counterpart.
    private static func inside(_ parts: ArraySlice<SQLPart>) -> ArraySlice<SQLPart> {
        var depth = 0
        for index in parts.indices {
            if parts[index].isSymbol("(") { depth += 1 }
            if parts[index].isSymbol(")") { depth -= 1 }
            if depth == 0 { return parts[(parts.startIndex + 1)..<max(index, parts.startIndex + 1)] }
        }
        return parts.dropFirst()
    }

    private static func items(_ body: ArraySlice<SQLPart>) -> [ArraySlice<SQLPart>] {
        var (items, depth, start): ([ArraySlice<SQLPart>], Int, Int) = ([], 0, body.startIndex)
        for index in body.indices {
            if body[index].isSymbol("(") { depth += 1 }
            if body[index].isSymbol(")") { depth -= 1 }
            if depth == 0, body[index].isSymbol(",") {
                items.append(body[start..<index])
                start = index + 1
            }
        }
        return items + [body[start...]]
    }

    private static let tableConstraints = ["constraint", "primary", "unique", "check", "foreign"]

    private mutating func read(_ item: ArraySlice<SQLPart>) {
        guard let first = item.first else { return }
        let isColumn = !CreateTableText.tableConstraints.contains { first.isWord($0) }
        let column = isColumn ? ExactText(name: first.kind == .string ? first.unquotedString : first.name) : nil
        var index = isColumn ? item.startIndex + 1 : item.startIndex
        while index < item.endIndex {
            let part = item[index]
            if part.isSymbol("(") {
                index += CreateTableText.inside(item[index...]).count + 2
                continue
            }
            let next = index + 1 < item.endIndex ? item[index + 1] : nil
            if part.isWord("check"), next?.isSymbol("(") == true {
                checks.append(Array(CreateTableText.inside(item[(index + 1)...])))
            } else if part.isWord("as"), next?.isSymbol("(") == true, let column {
                expressions[column] = Array(CreateTableText.inside(item[(index + 1)...]))
            } else if part.isWord("collate"), let next, let column {
                collations[column] = next.name.foldedForSQL
            } else if part.isWord("references") {
                deferrals.append(Deferral())
            } else if part.isWord("deferrable"), !deferrals.isEmpty {
                deferrals[deferrals.count - 1].isDeferrable =
                    !(index > item.startIndex && item[index - 1].isWord("not"))
            } else if part.isWord("initially"), next?.isWord("deferred") == true, let last = deferrals.last,
                last.isDeferrable
            {
                deferrals[deferrals.count - 1].isInitiallyDeferred = true
            } else if part.isWord("on"), next?.isWord("conflict") == true {
                hasConflictClause = true
            }
            index += 1
        }
    }
}

extension SQLPart {
    /// SQLite takes a string for a name where only a name can be.
    var unquotedString: String {
        SQLPart(kind: .quotedName, text: text).name
    }
}
