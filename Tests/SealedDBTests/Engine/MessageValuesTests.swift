import Foundation
import Testing

@testable import SealedDB

/// What SQLite says of a failure, without the values that it quotes.
@Suite(.hangLimit)
struct MessageValuesTests {
    /// `nil` if the values cannot be found, so that nothing of the message may be shown.
    private func shown(_ message: String, _ sql: String, _ expanded: String) -> String? {
        Array(sql.utf8).withUnsafeBufferPointer { sql in
            Array(expanded.utf8).withUnsafeBufferPointer { expanded in
                MessageValues(expanded: expanded, sql: sql)?.removed(from: Array(message.utf8))
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
        func result(_ count: Int) -> String? {
            shown("bad abcd", one, "SELECT f('\(String(repeating: "abcd ", count: count))')")
        }
        #expect(result(1000) == "bad …")
        #expect(result((1 << 16) / 5 + 1) == nil)
    }
}
