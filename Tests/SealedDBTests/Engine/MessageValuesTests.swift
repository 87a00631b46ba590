import Foundation
import Testing

@testable import SealedDB

/// What SQLite says of a failure, without the values that it quotes.
@Suite(.hangLimit)
struct MessageValuesTests {
    /// `nil` if the values cannot be found, so that nothing of the message may be shown.
    /// - Parameter isChosen: whether all words may come from a trigger or function, and only those of values are hidden.
    private func shown(_ message: String, _ sql: String, _ expanded: String, isChosen: Bool = true) -> String? {
        Array(sql.utf8).withUnsafeBufferPointer { sql in
            Array(expanded.utf8).withUnsafeBufferPointer { expanded in
                MessageValues(expanded: expanded, sql: sql, length: message.utf8.count)?
                    .removed(from: Array(message.utf8), isChosen: isChosen)
            }
        }
    }

    private let one = "SELECT f(?)"

    @Test(arguments: [
        // Whole, in part, in another case, within a longer word, and with other words between.
        ("bad input: seven rivers", "'seven rivers'", "bad input: …"),
        ("bad input: seven", "'seven rivers'", "bad input: …"),
        ("bad input: SEVEN Rivers!", "'seven rivers'", "bad input: …!"),
        ("near xsevenx: stop", "'seven'", "near …: stop"),
        ("bad seve", "'seven'", "bad …"),
        ("seven is not rivers", "'seven rivers'", "… is not …"),
        // Shorter parts are hidden if they are whole words.
        ("no such column: ab", "'ab cd'", "no such column: …"),
        ("no such column: abx", "'ab cd'", "no such column: abx"),
        ("tab: a+b, ab", "'a+b'", "tab: …, ab"),
        // Punctuation alone, within a value or at its ends.
        ("at $.[x", "'$.[x'", "at …"),
        ("at #$%", "'#$%'", "at …"),
        ("at x#$%", "'x#$'", "at …%"),
        ("at yx#$%", "'x#$'", "at yx#$%"),
        ("at #$xy", "'#$x'", "at #$xy"),
        ("at #$x", "'#$x'", "at …"),
        ("#$x y", "'#$x'", "… y"),
        // Quotes as SQLite doubles them, and as they were.
        ("bad it's", "'it''s'", "bad …"),
        ("bad ''''", "''''''", "bad …"),
        // Numbers, and what is no text.
        ("bad 12345", "12345", "bad …"), ("bad -12.5", "-12.5", "bad …"), ("bad 1.5e+300", "1.5e+300", "bad …"),
        ("bad 1.5e-07", "1.5e-07", "bad …"),
        ("bad word", "NULL", "bad word"), ("bad word", "zeroblob(9)", "bad word"), ("bad word", "-Inf", "bad word"),
        ("bad word", "Inf", "bad word"), ("bad word", "''", "bad word"),
        // What stands in the statement itself is shown anyway.
        ("f is bad", "'f'", "f is bad"), ("no select here", "'select it'", "no select here"),
    ])
    func aMessage(message: String, literal: String, expected: String) {
        #expect(shown(message, one, "SELECT f(\(literal))") == expected, "\(literal)")
    }

    @Test func severalValues() {
        let sql = "INSERT INTO t VALUES (?1, :name, '?', @other)"
        let expanded = "INSERT INTO t VALUES (17, 'forest', '?', NULL)"
        #expect(shown("forest of 17, and 1 or 7", sql, expanded) == "… of …, and 1 or 7")
        #expect(shown("a ? b", sql, expanded) == "a ? b")
    }

    /// A text that is not the statement with literals in the places of its parameters is not understood.
    @Test(arguments: [
        "SELECT f(x'00ff')", "SELECT g('a')", "SELECT f('a') ", "SELECT f('a'", "SELECT f(", "SELECT f()",
        "SELECT f(-)",
        "SELECT f(nothing)", "SELECT f(zeroblob(9", "SELECT f('a", "",
    ])
    func whatIsNotUnderstood(expanded: String) {
        #expect(shown("bad", one, expanded) == nil)
    }

    @Test func longTexts() {
        func result(_ count: Int, _ message: String = "bad abcd") -> String? {
            shown(message, one, "SELECT f('\(String(repeating: "abcd ", count: count))')")
        }
        #expect(result(1000) == "bad …")
        #expect(result((1 << 16) / 5 + 1) == nil)
        // Each byte of one is compared with each of the other: two million are the most.
        let long = "bad " + String(repeating: "word ", count: 1000)
        #expect(result(10, long) == long)
        #expect(result(1000, long) == nil)
    }

    /// A search text of somebody else's, each word of which SQLite repeats: no limit of time would end the search for them.
    @Test func longTextsOfOthers() throws {
        let database = try Database.testing(nil)
        try database.run("CREATE VIRTUAL TABLE f USING fts5(a)")
        let words = "*" + (0..<20_000).map { "w\($0)" }.joined(separator: "-")
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT * FROM f WHERE f MATCH \(words)").all([String: SQLValue].self)
        }
        #expect(error?.message == "SQL logic error")
    }

    // MARK: Values of rows

    /// What is neither in the statement nor one of SQLite's own words.
    @Test(arguments: [
        ("bad JSON path: 'Patient Miller'", "bad JSON path: '…'"),
        ("bad JSON path: '$.x y'", "bad JSON path: '$.…'"),
        ("no such column: mysecretword", "no such column: …"),
        ("malformed MATCH expression: [NEAR(alpha beta)]", "malformed MATCH expression: [NEAR(…)]"),
        ("unable to open database: /tmp/body", "unable to open database: /…/body"),
        ("cannot commit transaction - SQL statements in progress", nil),
    ])
    func wordsOfRows(message: String, expected: String?) {
        let sql = "SELECT json_extract(doc, body) FROM note"
        #expect(shown(message, sql, sql, isChosen: false) == expected ?? message)
    }

    private func note(_ body: String) throws -> Database {
        let database = Database()
        try database.openVerified()
        try database.execute(script: "CREATE TABLE note (id, body); CREATE VIRTUAL TABLE f USING fts5(body)")
        try database.executeUpdate("INSERT INTO note VALUES (1, ?)", values: [body])
        try database.executeUpdate("INSERT INTO f VALUES ('x')", values: nil)
        return database
    }

    @Test(arguments: [
        "SELECT json_extract('{}', body) FROM note", "SELECT json_extract('{}', body) FROM note WHERE id = ?",
        "SELECT json_set('{}', body, 1) FROM note", "CREATE INDEX i ON note (json_extract('{}', body))",
        "INSERT INTO note SELECT 2, json_extract('{}', body) FROM note",
        "SELECT note.id FROM f, note WHERE f MATCH note.body",
        "VACUUM INTO (SELECT '/none/' || body FROM note)", "ATTACH (SELECT '/none/' || body FROM note) AS other",
        "ATTACH '' AS (SELECT body FROM note); ATTACH '' AS (SELECT body FROM note)",
        "DETACH (SELECT body FROM note)", "ATTACH 'x' AS y KEY json_extract('{}', 'secret123')",
    ])
    func noErrorShowsWhatIsStored(sql: String) throws {
        let database = try note("Patient Miller has HIV \" ( secret123")
        let error = try #require(throws: DatabaseError.self) {
            if sql.contains("?") {
                _ = try database.executeQuery(sql, values: [1]).scalar(String.self)
            } else {
                try database.execute(script: sql)
            }
        }
        for word in ["Patient", "Miller", "HIV", "secret123"] {
            #expect(!"\(error)".contains(word) && !database.lastErrorMessage().contains(word), "\(error)")
        }
        #expect(!error.message.isEmpty)
    }

    /// What stands in the statement itself is told.
    @Test func theFileThatCannotBeAttachedIsNamed() throws {
        let database = try note("body")
        let error = #expect(throws: DatabaseError.self) {
            try database.execute(script: "ATTACH '/none/such.db' AS other")
        }
        #expect(error?.message.contains("/none/such.db") == true, "\(error as Any)")
    }

    /// Who wrote these has chosen their words.
    @Test func messagesOfTriggersAndFunctionsAreShown() throws {
        let database = try note("body")
        try database.execute(
            script: "CREATE TRIGGER g BEFORE DELETE ON note BEGIN SELECT RAISE(ABORT, 'customers stay forever'); END"
        )
        let error = #expect(throws: DatabaseError.self) { try database.execute(script: "DELETE FROM note") }
        #expect(error?.message.contains("customers stay forever") == true)
        database.makeFunctionNamed("refuses", arguments: 0) { [unowned database] context, _, _ in
            database.resultError("weather unsuitable", context: context)
        }
        let other = #expect(throws: DatabaseError.self) { try database.execute(script: "SELECT refuses()") }
        #expect(other?.message.contains("weather unsuitable") == true)
    }
}
