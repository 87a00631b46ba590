import Testing

@testable import SealedDB

/// The tokenizer against SQLite's own, which shows itself in where statements end, in what a syntax error names, and in
/// what the authorizer is asked.
@Suite(.hangLimit)
struct SQLTokenizerTests {
    private static let fragments: [String] = [
        " ", "  ", "\t", "\n", "\u{b}", " \u{b}", "\u{c}", "\r\n", "\u{FEFF}", "\u{FEFF}\u{FEFF}", "-- c\n", "--", "-",
        "/* c */", "/*", "/**/",
        "/*/", "*/", "/***/", "/", ";", ";", ";;", "'a'", "'it''s'", "'", "\"b\"", "\"", "`c`", "`", "[a]", "[", "]",
        "x'ab'", "X'AB'",
        "x'a'", "x'zz'", "x'ab", "x", "X", "0", "1", "12", "1.5", ".5", "1.", "1e5", "1e+5", "1e", "1e+", "0x1F", "0x",
        "1_000", "1__0",
        "0x_1", "1a", "1e5x", "1.5.5", "?", "?1", "?1KEY", "?KEY", "$a", "$a::b", "$a::b(x y)", "$a(x)", "$a(;)", "$",
        "$(", ":a", "::", ":",
        "@a", "#a", "#1", "$a:", "a$b", "_", "é", "aé", "\u{FEFF}a", "a\u{FEFF}", "\u{FEC0}", "\u{FEC0}a", "key", "KEY",
        "keyé", "a", "b", "c",
        ",", "(", ")", "+",
        "*", "%", "=", "==", "<", "<=", "<>", "<<", ">", ">=", ">>", "!", "!=", "|", "||", "&", "~", ".", "->", "->>",
        "\\", "^", "{", "}",
        "\u{1}", "\u{7f}", "SELECT", "select", "FROM", "AS", "ATTACH", "attach", "DATABASE", "PRAGMA", "BEGIN",
        "COMMIT", "END", "ROLLBACK",
        "EXPLAIN", "QUERY", "PLAN", "CREATE", "TEMP", "TRIGGER", "TABLE", "AFTER", "INSERT", "ON", "VALUES", "CASE",
        "WHEN", "THEN", "SAVEPOINT",
        "RELEASE", "TO", "TRANSACTION", "DETACH", "VACUUM", "INTO",
    ]

    /// Statements that compile, to which noise is added.
    private static let statements: [[String]] = [
        ["SELECT", "1"], ["SELECT", "'a;b'", ",", "\"b\"", "FROM", "a"], ["SELECT", "[b]", ",", "`c`", "FROM", "a"],
        ["SELECT", "?1", "+", "$a::b(;)"],
        ["ATTACH", "'x'", "AS", "'y'"], ["ATTACH", "DATABASE", "?1", "AS", "?2", "KEY", "?3"],
        ["ATTACH", "a", "AS", "b", "KEY", "''"],
        ["ATTACH", "$a(KEY)", "AS", "[key]"], ["PRAGMA", "user_version"],
        ["PRAGMA", "main", ".", "\"key\"", "=", "'x'"],
        ["PRAGMA", "rekey", "(", "1", ")"], ["BEGIN"], ["BEGIN", "IMMEDIATE", "TRANSACTION"], ["COMMIT"],
        ["END", "TRANSACTION"], ["ROLLBACK"],
        ["ROLLBACK", "TO", "a"], ["SAVEPOINT", "a"], ["RELEASE", "a"], ["EXPLAIN", "COMMIT"],
        ["EXPLAIN", "QUERY", "PLAN", "SELECT", "1"],
        ["DETACH", "b"], ["VACUUM"], ["CREATE", "TABLE", "t", "(", "a", "DEFAULT", "x'ab'", ")"],
        ["DROP", "TABLE", "a"],
        ["INSERT", "INTO", "a", "VALUES", "(", "1.5e5", ",", "0x1F", ")"],
        ["UPDATE", "a", "SET", "b", "=", "CASE", "WHEN", "1", "THEN", "2", "END"],
        [
            "CREATE", "TEMP", "TRIGGER", "t", "AFTER", "INSERT", "ON", "a", "BEGIN", "UPDATE", "a", "SET", "b", "=",
            "CASE", "WHEN", "1", "THEN", "2",
            "END", ";", "DELETE", "FROM", "a", ";", "END",
        ],
        ["CREATE", "TRIGGER", "begin", "AFTER", "INSERT", "ON", "a", "BEGIN", "SELECT", "1", ";", "END"],
        ["DELETE", "FROM", "a", "RETURNING", "b"],
    ]

    private static let blanks = [
        " ", "\n", "\t", "\u{FEFF}", "/* ; */", "-- ; \n", " \u{b}", "/*/ */", "\u{FEFF}\r", "/**/",
    ]

    private func text(_ generator: inout SeededGenerator) -> String {
        var text = ""
        if Bool.random(using: &generator) {
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                for part in SQLTokenizerTests.statements.randomElement(using: &generator)! {
                    let isPlain = Int.random(in: 0..<3, using: &generator) > 0
                    text += (isPlain ? " " : SQLTokenizerTests.blanks.randomElement(using: &generator)!) + part
                }
                if Int.random(in: 0..<8, using: &generator) > 0 { text += ";" }
                if Int.random(in: 0..<8, using: &generator) == 0 {
                    text += SQLTokenizerTests.fragments.randomElement(using: &generator)!
                }
            }
        } else {
            let starts = [
                "", "", "SELECT ", "CREATE TABLE t(a ", "SELECT 1,", "ATTACH ", "PRAGMA ", "EXPLAIN ", "VALUES(",
                "SELECT a.", "ATTACH a AS b ",
            ]
            text = starts.randomElement(using: &generator)!
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                text += SQLTokenizerTests.fragments.randomElement(using: &generator)!
            }
        }
        return text
    }

    /// Each is one token, of which nothing is left for a word or a statement of its own.
    @Test(arguments: [
        ("$a::b(x;y)", true), ("$a(x)", true), ("$a::b", true), (":a", true), ("@a", true), ("#a", true), ("?", true),
        ("?12", true), ("$", false), (":", false), ("@", false), ("$(", false),
    ])
    func parameters(text: String, isParameter: Bool) {
        Array((text + " key").utf8).withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            let token = tokens.next()
            #expect(token?.kind == (isParameter ? .variable : .illegal))
            if isParameter { #expect(token?.range == 0..<text.utf8.count) }
        }
    }

    /// With all of its digits.
    @Test(arguments: [
        ("1e5", true), ("1e10", true), ("1E+100", true), ("1.5e-12", true), (".5e123", true), ("1e", false),
        ("1e10x", false),
    ])
    func numbers(text: String, isNumber: Bool) {
        Array((text + " key").utf8).withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            let token = tokens.next()
            #expect(token?.kind == (isNumber ? .number : .illegal))
            #expect(token?.range == 0..<text.utf8.count)
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func agreesWithSQLite(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let engine = RawEngine()
        var (ends, errors, found) = (0, 0, 0)
        for number in 0..<15_000 {
            let sql = text(&generator)
            Array(sql.utf8).withUnsafeBufferPointer { bytes in
                let answer = engine.prepare(bytes)
                let statement = SQLStatementText(bytes)
                let comment: Comment = "seed \(seed), \(number): \(sql.debugDescription), \(answer)"
                if answer.code == RawEngine.ok || answer.code == RawEngine.denied {
                    #expect(
                        (statement.verb != nil) == (answer.hasStatement || answer.code == RawEngine.denied),
                        comment
                    )
                }
                if answer.code == RawEngine.ok, answer.hasStatement {
                    // SQLite also takes what follows, if that is nothing.
                    var between = SQLTokenizer(bytes, from: min(answer.tail, statement.range.upperBound))
                    let first = between.next()
                    #expect(
                        answer.tail == statement.range.upperBound
                            || first.map { $0.range.lowerBound >= max(answer.tail, statement.range.upperBound) }
                                ?? true,
                        comment
                    )
                    // With no more than the statement, the answer is the same.
                    let alone = engine.prepare(UnsafeBufferPointer(rebasing: bytes[statement.range]))
                    #expect(
                        alone.code == RawEngine.ok && alone.hasStatement && alone.actions == answer.actions,
                        comment
                    )
                    ends += 1
                }
                if answer.actions.contains(RawEngine.attach) { #expect(statement.verb == "attach", comment) }
                if answer.actions.contains(RawEngine.pragma) { #expect(statement.verb == "pragma", comment) }
                if answer.code == RawEngine.ok, statement.verb == "attach" {
                    #expect(answer.actions.contains(RawEngine.attach), comment)
                }
                if answer.actions.contains(RawEngine.transaction) {
                    #expect(["begin", "commit", "end", "rollback"].contains(statement.verb), comment)
                    found += 1
                }
                if let named = SQLTokenizerTests.token(namedBy: answer), answer.offset >= 0 {
                    var tokens = SQLTokenizer(bytes)
                    var texts: [Int: [UInt8]] = [:]
                    while let token = tokens.next() { texts[token.range.lowerBound] = Array(bytes[token.range]) }
                    let text = texts[answer.offset] ?? []
                    // SQLite's versions differ in what they take as a part of a number that is none.
                    let isNumber = named.first.map { ".0123456789".utf8.contains($0) } ?? false
                    let isPart = !text.isEmpty && (named.starts(with: text) || text.starts(with: named))
                    #expect(text == named || (isNumber && isPart), comment)
                    errors += 1
                }
            }
        }
        // It has compared something.
        #expect(ends > 2000 && errors > 2000 && found > 100, "\(ends) \(errors) \(found)")
    }

    /// `near "x": syntax error` and `unrecognized token: "x"`.
    private static func token(namedBy answer: RawEngine.Answer) -> [UInt8]? {
        guard answer.code == RawEngine.error else { return nil }
        let message = answer.message
        let (start, end) = ("near \"", "\": syntax error")
        if message.hasPrefix(start), message.hasSuffix(end) {
            return Array(message.utf8.dropFirst(start.utf8.count).dropLast(end.utf8.count))
        }
        let other = "unrecognized token: \""
        return message.hasPrefix(other) ? Array(message.utf8.dropFirst(other.utf8.count).dropLast()) : nil
    }

    /// Every ATTACH that SQLite compiles, whatever stands between its words: KEY is found if it is there.
    @Test
    func noKeyIsMissed() {
        var generator = SeededGenerator(seed: 7)
        let engine = RawEngine()
        let values = [
            "'x'", "x", "?", "?1", "$a", "$a::b(KEY)", ":a", "@a", "\"key\"", "[key]", "`key`", "x'6b6579'", "1", "1.5",
            ".5", "0x1", "''", "('a'||'b')",
        ]
        var count = 0
        for number in 0..<20_000 {
            func value() -> String { values.randomElement(using: &generator)! }
            func gap() -> String {
                Int.random(in: 0..<2, using: &generator) == 0
                    ? "" : SQLTokenizerTests.blanks.randomElement(using: &generator)!
            }
            let hasKey = Bool.random(using: &generator)
            let name = value()
            // The word would become a part of these.
            let isOpen = ["x", "$a", ":a", "@a"].contains(name)
            var sql =
                gap() + ["ATTACH", "attach", "AtTaCh"].randomElement(using: &generator)! + gap() + value() + gap()
            sql += "AS" + gap() + name + (isOpen ? " " : "") + gap()
            if hasKey { sql += ["KEY", "key", "kEy"].randomElement(using: &generator)! + gap() + value() }
            Array(sql.utf8).withUnsafeBufferPointer { bytes in
                let answer = engine.prepare(bytes)
                guard answer.code == RawEngine.ok, answer.actions.contains(RawEngine.attach) else { return }
                let comment: Comment = "\(number): \(sql.debugDescription)"
                let statement = SQLStatementText(bytes)
                #expect(statement.holdsKey == hasKey, comment)
                #expect(!hasKey || statement.isSecret, comment)
                count += 1
            }
        }
        #expect(count > 2000)
    }
}
