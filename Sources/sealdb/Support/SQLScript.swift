/// As much understanding of SQL text as the commands need: where statements end and what kind they are. SQLite itself
/// decides about everything else.
struct SQLScript {
    enum Token: Equatable {
        /// A keyword or bare name, in capitals.
        case word(String)
        /// A quoted name or a string, without its quotes, in capitals.
        case quoted(String)
        case symbol(UInt8)
    }

    struct Statement {
        let text: String
        let tokens: [Token]

        /// The first word, in capitals.
        var verb: String {
            if case .word(let verb) = tokens.first { verb } else { "" }
        }

        /// Whether SQLite counts the rows that the statement changes, provided that it writes.
        var countsChanges: Bool { ["INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"].contains(verb) }
    }

    /// Empty statements are left out.
    private(set) var statements: [Statement] = []

    init(_ sql: String) {
        let bytes = Array(sql.utf8)
        var tokens: [Token] = []
        var start = 0
        var scanner = SQLScanner(bytes)
        func endStatement(at end: Int) {
            guard !tokens.isEmpty else { return }
            statements.append(Statement(text: String(decoding: bytes[start..<end], as: UTF8.self), tokens: tokens))
        }
        while let token = scanner.next() {
            if token == .symbol(UInt8(ascii: ";")), !SQLScript.isInsideTrigger(tokens) {
                endStatement(at: scanner.index)
                tokens = []
                start = scanner.index
            } else {
                tokens.append(token)
            }
        }
        endStatement(at: bytes.count)
    }

    /// A trigger's body holds statements of its own and ends with END after a semicolon.
    private static func isInsideTrigger(_ tokens: [Token]) -> Bool {
        var start = tokens[...].prefix(3)
        guard start.popFirst() == .word("CREATE") else { return false }
        if start.first == .word("TEMP") || start.first == .word("TEMPORARY") { start.removeFirst() }
        guard start.first == .word("TRIGGER") else { return false }
        return tokens.suffix(2) != [.symbol(UInt8(ascii: ";")), .word("END")]
    }

    /// Whether the script begins or ends transactions itself, or holds what does not run within one.
    var managesTransactions: Bool {
        statements.contains { SQLScript.verbsOutsideTransactions.contains($0.verb) }
    }

    private static let verbsOutsideTransactions: Set<String> = [
        "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "VACUUM", "PRAGMA", "ATTACH", "DETACH",
    ]

    /// Refuses what would take a secret from the command line, or break the store: SQLCipher obeys a setting that
    /// comes too late, and nothing opens the file afterwards.
    func refuseKeyStatements() throws(Failure) {
        for statement in statements {
            var rest = statement.tokens.drop { token in
                guard case .word(let word) = token else { return false }
                return ["EXPLAIN", "QUERY", "PLAN"].contains(word)
            }
            switch rest.popFirst() {
            case .word("ATTACH") where rest.contains(.word("KEY")):
                throw Failure(
                    .usage,
                    "ATTACH with KEY is refused: no key belongs on the command line. Without KEY, the attached "
                        + "database is opened with the store's own key."
                )
            case .word("PRAGMA"):
                try SQLScript.refuseKeyPragma(rest)
            default: break
            }
        }
    }

    private static func refuseKeyPragma(_ tokens: ArraySlice<Token>) throws(Failure) {
        // PRAGMA [schema.]name [= value | (value)]
        var rest = tokens
        if rest.dropFirst().first == .symbol(UInt8(ascii: ".")) { rest = rest.dropFirst(2) }
        let name: String
        switch rest.popFirst() {
        case .word(let text), .quoted(let text): name = text
        default: return
        }
        if keyPragmas.contains(name) {
            throw Failure(
                .usage,
                "PRAGMA \(name.lowercased()) is refused: no key belongs on the command line. "
                    + "To change a store's key: sealdb rotate"
            )
        }
        if name.hasPrefix("CIPHER_") && !rest.isEmpty || settingPragmas.contains(name) && !rest.isEmpty {
            throw Failure(
                .usage,
                "PRAGMA \(name.lowercased()) with a value is refused: changed on an open store, it can leave a file "
                    + "that nothing opens, or write plaintext to temporary files."
            )
        }
    }

    private static let keyPragmas: Set<String> = ["KEY", "REKEY", "HEXKEY", "HEXREKEY", "TEXTKEY", "TEXTREKEY"]
    private static let settingPragmas: Set<String> = [
        "CIPHER", "KDF_ITER", "FAST_KDF_ITER", "REKEY_CIPHER", "REKEY_KDF_ITER", "PAGE_SIZE", "TEMP_STORE",
        "TEMP_STORE_DIRECTORY",
    ]
}
