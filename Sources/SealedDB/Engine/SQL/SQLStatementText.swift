/// What the tokens of one statement show before SQLite compiles it: where it ends, and whether it passes a key to the
/// engine.
///
/// A SQLite without a codec accepts `ATTACH … KEY …` and `PRAGMA key` silently, and writes plaintext. SQLite's
/// authorizer does not see `KEY`. For everything else that a statement does, SQLite itself is asked: see
/// ``StatementGuard``.
package struct SQLStatementText {
    /// The bytes of the statement, with the blanks and comments before it and the semicolon after it, but without empty
    /// statements.
    package private(set) var range: Range<Int>
    /// The first word after `EXPLAIN`, in lower case; "" if the statement does not begin with a word, `nil` if there is
    /// no statement.
    package private(set) var verb: String?
    package private(set) var isExplained = false
    /// Whether the statement is `ATTACH … KEY …`, or a pragma that sets a key.
    package private(set) var holdsKey = false
    /// Whether SQLite attaches a file to run the statement: `ATTACH`, `VACUUM … INTO …`.
    package private(set) var attachesFile = false
    /// Whether the statement is `VACUUM … INTO …` for a database other than main.
    package private(set) var copiesAttached = false
    /// Whether errors and logs must not show the statement, because it contains a key or may be meant to.
    package private(set) var isSecret = false
    /// The name of the pragma in lower case; `nil` for all other statements.
    package private(set) var pragma: String?
    /// Whether anything follows the name of the pragma.
    package private(set) var pragmaHasValue = false

    /// Reads the next statement of a text.
    /// - Parameter bytes: the text. It is only used during this call.
    package init(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int = 0) {
        range = start..<start
        var start = start
        var tokens = SQLTokenizer(bytes, from: start)
        if let first = SQLStatementText.first(&tokens, &start, &isExplained) {
            let verb = first.kind == .word ? tokens.name(first) : ""
            self.verb = verb
            switch verb {
            case "attach": readAttach(&tokens)
            case "pragma": readPragma(&tokens)
            case "vacuum": readVacuum(&tokens)
            case "create": readCreate(&tokens)
            default:
                let mayBe = !SQLStatementText.verbs.contains(verb)
                if mayBe, verb.hasBytes(of: "key") { isSecret = true }
                while let token = tokens.next(), token.kind != .semicolon {
                    // This may be a misspelt ATTACH or PRAGMA, which SQLite rejects at its first word.
                    if mayBe, token.kind == .word, tokens.name(token).hasBytes(of: "key") { isSecret = true }
                }
            }
        }
        range = start..<tokens.position
    }

    /// Whether a text, which is one statement, must not be shown. Reads no more of the text than this takes.
    static func isSecret(_ sql: String) -> Bool {
        var sql = sql
        return sql.withUTF8 { bytes in
            var tokens = SQLTokenizer(bytes)
            var (start, isExplained) = (0, false)
            guard let first = first(&tokens, &start, &isExplained) else { return false }
            let verb = first.kind == .word ? tokens.name(first) : ""
            return ["attach", "pragma"].contains(verb) && SQLStatementText(bytes).isSecret
        }
    }

    /// Returns ``verb`` of the first statement of a text.
    static func verb(of sql: String) -> String? {
        var sql = sql
        return sql.withUTF8 { SQLStatementText($0).verb }
    }

    package static let keyPragmas: Set = ["key", "hexkey", "textkey", "rekey", "hexrekey", "textrekey"]

    /// https://www.sqlite.org/lang.html
    static let verbs: Set = [
        "alter", "analyze", "begin", "commit", "delete", "detach", "drop", "end", "insert", "reindex", "release",
        "replace",
        "rollback", "savepoint", "select", "update", "vacuum", "values", "with",
    ]

    /// Returns the first token after empty statements and `EXPLAIN`. SQLCipher takes a key even if the pragma is only
    /// explained.
    private static func first(
        _ tokens: inout SQLTokenizer,
        _ start: inout Int,
        _ isExplained: inout Bool
    ) -> SQLToken? {
        while let token = tokens.next() {
            if token.kind == .semicolon {
                start = tokens.position
                continue
            }
            guard tokens.isWord(token, "explain") else { return token }
            isExplained = true
            var ahead = tokens
            if let query = ahead.next(), ahead.isWord(query, "query"), let plan = ahead.next(),
                ahead.isWord(plan, "plan")
            {
                tokens = ahead
            }
        }
        return nil
    }

    // MARK: Kinds of statements, each read up to its semicolon

    /// Reads `ATTACH [DATABASE] file AS name`. If the file and the name are not one token each, the statement may be
    /// meant to contain a key.
    private mutating func readAttach(_ tokens: inout SQLTokenizer) {
        attachesFile = true
        var count = 0
        var hasName = false
        while let token = tokens.next(), token.kind != .semicolon {
            if count == 0, tokens.isWord(token, "database") { continue }
            count += 1
            if count == 2 { hasName = tokens.isWord(token, "as") }
            if tokens.isWord(token, "key") { holdsKey = true }
        }
        isSecret = holdsKey || count != 3 || !hasName
    }

    /// Reads `VACUUM [schema] [INTO file]`.
    private mutating func readVacuum(_ tokens: inout SQLTokenizer) {
        var isFirst = true
        var isOfMain = true
        while let token = tokens.next(), token.kind != .semicolon {
            if tokens.isWord(token, "into") {
                attachesFile = true
                copiesAttached = !isOfMain
            } else if isFirst {
                isOfMain = tokens.name(token) == "main"
            }
            isFirst = false
        }
    }

    /// Reads `PRAGMA [schema.]name …`. A key is not shown, whichever part is the name, and however it is misspelt.
    private mutating func readPragma(_ tokens: inout SQLTokenizer) {
        var names: [String] = []
        var isName = true
        var count = 0
        while let token = tokens.next(), token.kind != .semicolon {
            count += 1
            if isName, [.word, .quotedName, .string].contains(token.kind) {
                names.append(tokens.name(token))
                isName = false
            } else {
                isName = count == 2 && tokens.name(token) == "."
            }
        }
        let isQualified = names.count == 2
        pragma = names.last
        pragmaHasValue = count > (isQualified ? 3 : 1)
        holdsKey = names.contains { SQLStatementText.keyPragmas.contains($0) }
        isSecret = holdsKey || names.contains { $0.hasBytes(of: "key") && !$0.begins(with: "foreign_key") }
    }

    /// Reads a `CREATE` statement. The body of a trigger contains statements, and ends with `END` after a semicolon.
    private mutating func readCreate(_ tokens: inout SQLTokenizer) {
        var token = tokens.next()
        if let word = token, tokens.isWord(word, "temp") || tokens.isWord(word, "temporary") { token = tokens.next() }
        var mayHaveBody = token.map { tokens.isWord($0, "trigger") } ?? false
        var isInBody = false
        var isBehindSemicolon = false
        while let current = token {
            if current.kind == .semicolon {
                guard isInBody else { return }
                isBehindSemicolon = true
            } else {
                if isInBody {
                    if isBehindSemicolon, tokens.isWord(current, "end") { isInBody = false }
                } else if mayHaveBody, tokens.isWord(current, "begin") {
                    (isInBody, mayHaveBody) = (true, false)
                }
                isBehindSemicolon = false
            }
            token = tokens.next()
        }
    }
}
