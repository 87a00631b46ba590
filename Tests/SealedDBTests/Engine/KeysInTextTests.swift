import Foundation
import Testing

@testable import SealedDB

/// How the text of a statement is read before SQLite reads it.
@Suite(.hangLimit)
struct KeysInTextTests {
    private func mayHoldKey(_ text: String) -> Bool {
        Array(text.utf8).withUnsafeBufferPointer { SQLStatementText.mayHoldKey($0) }
    }

    @Test(arguments: [
        // What follows a missing quote may be the rest of a statement about keys.
        "SELECT 1 /* \"key */ nosuch",
        "SELECT 1 attach database f", "SELECT 1 attach ?1",
        // None of these is the check of one table and nothing else.
        "PRAGMA integrity_check('a') -- key", "PRAGMA quick_check(x'00')", "PRAGMA integrity_check = 'a' )",
    ])
    func aTextThatMayHoldAKey(text: String) {
        #expect(mayHoldKey(text))
    }

    /// A quote in a comment alone says nothing about keys.
    @Test(arguments: ["SELECT 1 /* it's */ nosuch", "SELECT 1 /* \" */ nosuch", "PRAGMA quick_check(\"a\")"])
    func aTextWithoutAKey(text: String) {
        #expect(!mayHoldKey(text))
    }

    /// The body of a trigger is a part of its statement, whichever word says that it is temporary.
    @Test(arguments: ["TEMP", "TEMPORARY", ""]) func theEndOfATrigger(word: String) throws {
        let trigger = "CREATE \(word) TRIGGER a AFTER INSERT ON b BEGIN SELECT 1; SELECT 2; END;"
        Array((trigger + " SELECT 3").utf8).withUnsafeBufferPointer { bytes in
            #expect(SQLStatementText(bytes).range == 0..<trigger.utf8.count)
        }
        let database = Database(path: ":memory:")
        try database.openVerified()
        defer { database.close() }
        #expect(database.executeStatements("CREATE TABLE b (c); \(raw: trigger) INSERT INTO b VALUES (1)"))
        #expect(try database.integers("SELECT c FROM b") == [1])
    }

    @Test func namesInBrackets() throws {
        try Array("[a[[b] \"a\"\"b\"".utf8).withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            let (one, two) = (tokens.next(), tokens.next())
            let (first, second) = (try #require(one), try #require(two))
            // Nothing is doubled in brackets.
            #expect(tokens.name(first) == "a[[b")
            #expect(tokens.name(second) == "a\"b")
        }
    }

    /// A letter of which the first and the last byte are those of a byte order mark.
    @Test func aLetterThatResemblesAByteOrderMark() throws {
        for (text, start) in [("\u{FE3F}a", 0), ("\u{FEFF}a", 3), ("\u{FEC0}a", 0)] {
            try Array(text.utf8).withUnsafeBufferPointer { bytes in
                var tokens = SQLTokenizer(bytes)
                let first = tokens.next()
                let token = try #require(first)
                #expect(token.range == start..<bytes.count)
            }
        }
    }

    /// A later comment does not take back what an earlier one has shown.
    @Test func linesHiddenInTheFirstOfSeveralComments() {
        for (text, expected) in [("-- a\rSELECT 1\n-- b\n", true), ("-- a\r\n-- b\n", false)] {
            Array(text.utf8).withUnsafeBufferPointer { bytes in
                #expect(SQLTokenizer.hidesLines(bytes) == expected)
            }
        }
    }

    /// A literal of which SQLite's message quotes a few bytes is data.
    @Test func literalsInMessages() throws {
        let database = Database(path: ":memory:")
        try database.openVerified()
        defer { database.close() }
        let error = #expect(throws: DatabaseError.self) { try database.executeUpdate("SELECT 1 FROM a b '7' c") }
        #expect(error?.message == "near a literal: syntax error")
        let quoted = #expect(throws: DatabaseError.self) { try database.executeUpdate("SELECT 1 FROM a b 'x' c") }
        #expect(quoted?.message == "near a literal: syntax error")
    }

    /// A part of a value that ends in the middle of a message's word.
    @Test(arguments: [("y#$x", "'#$x'", "y…"), ("x#$y", "'x#$'", "…y")])
    func valuesBesideWords(message: String, literal: String, expected: String) {
        let shown = Array("SELECT f(?)".utf8).withUnsafeBufferPointer { sql in
            Array("SELECT f(\(literal))".utf8).withUnsafeBufferPointer { expanded in
                MessageValues(expanded: expanded, sql: sql, length: message.utf8.count)?
                    .removed(from: Array(message.utf8), isChosen: true)
            }
        }
        #expect(shown == expected)
    }

    @Test(.enabled(if: isEncrypting, "needs a codec")) func resultSetsOfStatementsWithKeys() throws {
        let database = Database(path: nil)
        #expect(database.open())
        let rows = try database.executeQuery("PRAGMA key = 'secret'")
        #expect(rows.query == nil)
        #expect(try database.executeQuery("SELECT 1").query == "SELECT 1")
        rows.close()
    }

    /// In a process of its own, because what functions have said is kept for all of it.
    @Test(.awaitsProcess) func theLastMessagesOfFunctionsAreKept() async {
        await #expect(processExitsWith: .success) {
            for number in 1...9 { MessageWords.noteMessage("message \(number)") }
            let known = (1...9).filter { MessageWords.isOfFunction("message \($0)") }
            exit(known == Array(2...9) ? 0 : 1)
        }
    }

    /// What a function says of a key does not stand in the error of the statement that was to use it.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func whatAFunctionSaysOfAKey() throws {
        let directory = try TemporaryDirectory()
        let database = Database(path: directory.file("db"))
        try database.openVerified()
        defer { database.close() }
        database.makeFunctionNamed("refuse", arguments: 1) { [unowned database] context, _, _ in
            database.resultError("TOPSECRET is refused", context: context)
        }
        let sql = "ATTACH '\(directory.file("other"))' AS o KEY refuse('TOPSECRET')"
        let error = #expect(throws: DatabaseError.self) { try database.executeUpdate(SQL(raw: sql)) }
        #expect(error?.description.contains("TOPSECRET") == false, "\(String(describing: error))")
    }
}
