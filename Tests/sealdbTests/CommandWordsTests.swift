import Testing

@testable import sealdb

@Suite(.hangLimit)
struct CommandWordsTests {
    @Test(
        arguments: [
            ("", []), ("  ", []), ("/bin/cat", ["/bin/cat"]), (" /bin/cat\t a  b\n", ["/bin/cat", "a", "b"]),
            ("a 'b  c' \"d e\"", ["a", "b  c", "d e"]), ("a''b '' \"\"", ["ab", "", ""]), ("a\\ b \\'", ["a b", "'"]),
            ("'a\\b' \"a\\\"b\\\\\"", ["a\\b", "a\"b\\"]), ("\"it's\" 'say \"x\"'", ["it's", "say \"x\""]),
            ("$HOME `x` * ~ # |", ["$HOME", "`x`", "*", "~", "#", "|"]), ("é 'ü", nil),
            ("a' \u{301}b'", ["a \u{301}b"]), ("a \u{301}b", ["a", "\u{301}b"]), ("\"a", nil), ("a\\", nil),
        ] as [(String, [String]?)]
    )
    func words(text: String, words: [String]?) {
        #expect(CommandWords.split(text) == words)
    }
}
