import Foundation
import Testing

@testable import SealedDB

/// Names, times and texts of a repository.
@Suite(.hangLimit)
struct RepositoryFormTests {
    @Test func times() throws {
        let time = try #require(RepositoryTime("2026-11-25T18:04:21.125Z"))
        #expect(time.description == "2026-11-25T18:04:21.125Z")
        #expect(time.milliseconds == 1_795_629_861_125)
        #expect(RepositoryTime("2026-11-25 18:04:21Z")?.milliseconds == 1_795_629_861_000)
        #expect(RepositoryTime("2026-11-25T19:04:21+01:00")?.milliseconds == 1_795_629_861_000)
        #expect(RepositoryTime("2026-11-25T17:34:21.9-00:30")?.milliseconds == 1_795_629_861_900)
        for text in [
            "", "2026-11-25", "2026-11-25T18:04:21", "2026-02-30T00:00:00Z", "2026-11-25T24:00:00Z",
            "2026-11-25T18:04:21.Z", "2026-11-25T18:04:21+1:00", "2026-11-25T18:04:21Zx", "x026-11-25T18:04:21Z",
            "2026-11-25T18:60:21Z", "2026-11-25T18:04:21+24:00", "1960-11-25T18:04:21Z",
        ] {
            #expect(RepositoryTime(text) == nil, "\(text)")
        }
    }

    @Test func names() throws {
        let digest = String(repeating: "0a", count: 32)
        let names: [ObjectName] = [
            .mark, .chunk(digest), .slots(digest), .snapshot(generation: 3, sequence: 0),
            .segment(generation: 123_456_789, sequence: 17), .cut(generation: 3, sequence: 17),
        ]
        for name in names { #expect(ObjectName(name.text) == name, "\(name.text)") }
        #expect(names[3].text == "generations/00000003/snapshot-000000000000")
        #expect(names[5].text == "generations/00000003/cut-000000000017")
        for text in [
            "", "x", "repository/", "chunks/0b/\(digest)", "chunks/0a/\(digest)x", "slots/x", "slots/../\(digest)",
            "generations/3/snapshot-000000000000", "generations/00000003/snapshot-0",
            "generations/00000003/other-000000000000", "generations/00000003/cuts-000000000001",
            "generations/00000003/segment-00000000000x", "generations/-0000003/segment-000000000001",
            "Generations/00000003/snapshot-000000000000",
        ] {
            #expect(ObjectName(text) == nil, "\(text)")
        }
    }

    @Test func pathsInLines() throws {
        for path in ["/a b/c.db", "/a\nb", "/100%/%0a", "/größer", "\u{1b}[1m"] {
            let text = ObjectText.escaped(path)
            #expect(!text.utf8.contains { $0 < 0x20 })
            #expect(ObjectText.unescaped(text) == path)
        }
        #expect(ObjectText.unescaped("%4") == nil)
        #expect(ObjectText.unescaped("%ff") == nil)
    }

    /// No change of a byte, and no cut, goes unnoticed.
    @Test func linesThatWereChanged() throws {
        var text = ObjectText(title: "Title 1")
        text.add("number", 12)
        text.add("name", "value: with a colon")
        let bytes = try text.sealed()
        let read = try ObjectText(parsing: bytes + [1, 2], title: "Title 1", of: "x")
        #expect(read.byteCount == bytes.count)
        #expect(try read.number("number") == 12)
        #expect(try read.value("name") == "value: with a colon")
        #expect(throws: DatabaseError.self) { try read.number("number", in: 0...11) }
        #expect(throws: DatabaseError.self) { try read.value("other") }
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(throws: DatabaseError.self, "byte \(index)") {
                try ObjectText(parsing: changed, title: "Title 1", of: "x")
            }
            #expect(throws: DatabaseError.self) {
                try ObjectText(parsing: Array(bytes[..<index]), title: "Title 1", of: "x")
            }
        }
        #expect(throws: DatabaseError.self) { try ObjectText(parsing: bytes, title: "Title 2", of: "x") }
    }
}
