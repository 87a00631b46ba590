import Testing

@testable import SealedDB

/// Texts by their bytes, at the ends and where Swift sees other characters.
@Suite(.hangLimit)
struct ExactTextTests {
    @Test func partsAndEnds() {
        #expect("a//b/".parts(between: "/").map(String.init) == ["a", "", "b", ""])
        #expect("".parts(between: "/").map(String.init) == [""])
        #expect("a/\u{301}b".parts(between: "/").count == 2)
        #expect("abc".ends(with: "abc") && "abc".ends(with: "") && "abc".ends(with: "bc"))
        #expect(!"abc".ends(with: "xabc") && !"abc".ends(with: "ab"))
        #expect("abc".begins(with: "abc") && !"ab".begins(with: "abc"))
        #expect("abc".hasBytes(of: "abc") && "abc".hasBytes(of: "c") && "abc".hasBytes(of: ""))
        #expect(!"abc".hasBytes(of: "abcd") && !"abc".hasBytes(of: "ac"))
        #expect("db-wal".withoutLast(bytes: 4) == "db")
    }

    @Test func paths() {
        for (path, directory, name) in [
            ("/a/b", "/a", "b"), ("/a", "/", "a"), ("a", ".", "a"), ("a/b", "a", "b"), ("a/", "a", ""), ("/", "/", ""),
            ("a/\u{301}b", "a", "\u{301}b"),
        ] {
            #expect(Array(path.directoryOfPath.utf8) == Array(directory.utf8), "\(path)")
            #expect(Array(path.nameOfPath.utf8) == Array(name.utf8), "\(path)")
        }
    }

    @Test func namesAsSQLiteComparesThem() {
        #expect("@AZ[`az{\u{c9}".foldedForSQL == "@az[`az{\u{c9}")
        #expect(ExactText(name: "Table") == ExactText(name: "tABLE"))
        #expect(ExactText("Table") != ExactText("tABLE"))
        #expect(Set([ExactText("\u{e9}"), ExactText("e\u{301}"), ExactText("\u{e9}")]).count == 2)
        #expect("\u{e9}" == "e\u{301}" && !"\u{e9}".isSame(as: "e\u{301}"))
        #expect("".isSame(as: "") && !"a".isSame(as: "") && !"ab".isSame(as: "ac"))
        #expect("a'b''".quoted(by: "'") == "'a''b'''''")
    }
}
