import Testing

@testable import sealdb

/// The parser alone, also with a buffer so small that everything falls on an edge.
@Suite(.hangLimit)
struct JSONReaderTests {
    /// The rows, each field as its kind and bytes, and the names of the columns at the end.
    private func parse(
        _ text: [UInt8],
        names: [String]? = nil,
        ignoresOthers: Bool = false,
        isSurvey: Bool = false,
        bufferSize: Int
    ) throws -> (rows: [[String]], names: [String]) {
        var rest = text[...]
        var reader = JSONReader(
            names: names,
            ignoresOthers: ignoresOthers,
            isSurvey: isSurvey,
            bufferSize: bufferSize
        ) { buffer in
            let count = min(rest.count, buffer.count)
            buffer.replaceSubrange(..<count, with: rest.prefix(count))
            rest = rest.dropFirst(count)
            return count
        }
        var rows: [[String]] = []
        while try reader.next() {
            let record = reader.record
            rows.append(
                (0..<record.fieldCount).map { index in
                    let bytes = record.bytes(at: index)
                    return switch record.kind(at: index) {
                    case .null: "null"
                    case .blob: "blob \(bytes.map { String($0) }.joined(separator: " "))"
                    case let kind: "\(kind) \(String(decoding: bytes, as: UTF8.self))"
                    }
                }
            )
        }
        return (rows, reader.names)
    }

    private func parse(_ text: String) throws -> [[String]] {
        let bytes = Array(text.utf8)
        let rows = try parse(bytes, bufferSize: 4096).rows
        #expect(try parse(bytes, bufferSize: 1).rows == rows)
        return rows
    }

    @Test(
        arguments: [
            ("", []),
            (" \n\t\r\n", []),
            ("[]", []),
            ("[ ] \n", []),
            ("{\"a\":1}", [["integer 1"]]),
            ("\u{feff}{\"a\":1}\n{\"a\":2}\n", [["integer 1"], ["integer 2"]]),
            ("[\n{\"a\":1},\n{\"a\":2}\n]\n", [["integer 1"], ["integer 2"]]),
            ("{\"a\":1,\"b\":\"x\"}{\"b\":\"y\"}", [["integer 1", "text x"], ["null", "text y"]]),
            ("{ \"a\" : -7 , \"b\" : null }", [["integer -7", "null"]]),
            ("{\"a\":true,\"b\":false}", [["integer 1", "integer 0"]]),
            ("{\"a\":1.0,\"b\":1e5,\"c\":-0,\"d\":0}", [["real 1.0", "real 1e5", "real -0", "integer 0"]]),
            ("{\"a\":\"\",\"b\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", [["text ", "text \"\\/\u{8}\u{c}\n\r\t"]]),
            ("{\"a\":\"\\u00e9\\ud83d\\ude00\\u0000\"}", [["text é😀\0"]]),
            ("{\"\\u0061\":\"é日😀\"}", [["text é日😀"]]),
            ("{\"a\":[1, {\"b\" : \"x\\\"]\"}, []],\"c\":{}}", [["text [1,{\"b\":\"x\\\"]\"},[]]", "text {}"]]),
            ("{\"a\":{\"$blob\":\"AP8=\"},\"b\":{\"$blob\":\"\"}}", [["blob 0 255", "blob "]]),
            ("{\"a\": { \"$blob\" : \"AAECAw==\" }}", [["blob 0 1 2 3"]]),
            ("{\"a\":{\"$text\":\"YQ==\"}}", [["text a"]]),
            ("{\"a\":{\"$blob\":\"AP9=\"}}", [["text {\"$blob\":\"AP9=\"}"]]),
            ("{\"a\":{\"$blob\":\"AP8=\",\"b\":\"\"}}", [["text {\"$blob\":\"AP8=\",\"b\":\"\"}"]]),
        ] as [(String, [[String]])]
    )
    func rows(_ text: String, _ rows: [[String]]) throws {
        #expect(try parse(text) == rows)
    }

    @Test(
        arguments: [
            ("{\"a\":1}\n{\"b\":1}", 2, "no object before has the member b"),
            ("{\"a\":1,\"A\":1}", 1, "the members a and A are one column to SQLite"),
            ("{\"\":1}", 1, "a member has an empty name"),
            ("{\"a\":1,\n\"a\":1}", 2, "a member occurs twice in an object"),
            ("1", 1, "there is no object, which begins with {"),
            ("[{\"a\":1}", 1, "the array is not closed"),
            ("[", 1, "the array is not closed"),
            ("[{\"a\":1} {\"a\":1}]", 1, "a comma is missing between two objects"),
            ("[{\"a\":1},\n]", 2, "there is no object, which begins with {"),
            ("[]x", 1, "something follows the array"),
            ("{\"a\"", 1, "a colon is missing behind the name of a member"),
            ("{a:1}", 1, "a member has no name in quotes"),
            ("{\"a\":1", 1, "an object is not closed, or a comma is missing in it"),
            ("{\"a\":1 \"b\":2}", 1, "an object is not closed, or a comma is missing in it"),
            ("{\"a\":\"x", 1, "a string is not closed"),
            ("{\"a\":\"x\ny\"}", 1, "a control character is in a string; JSON has escapes for them"),
            ("{\"a\":\"\\x\"}", 1, "a string has an escape that JSON does not have"),
            ("{\"a\":\"\\ud800\"}", 1, "half of a character is missing in a string"),
            ("{\"a\":\"\\udc00\"}", 1, "half of a character is missing in a string"),
            ("{\"a\":\"\\u00g0\"}", 1, "a string has an escape that JSON does not have"),
            ("{\"a\":01}", 1, "a value is none of JSON's"),
            ("{\"a\":+1}", 1, "a value is none of JSON's"),
            ("{\"a\":1.}", 1, "a value is none of JSON's"),
            ("{\"a\":.5}", 1, "a value is none of JSON's"),
            ("{\"a\":1e}", 1, "a value is none of JSON's"),
            ("{\"a\":Infinity}", 1, "a value is none of JSON's"),
            ("{\"a\":nul}", 1, "a value is none of JSON's"),
            ("{\"a\":[1 2]}", 1, "an array or object is not closed"),
            ("{\"a\":{\"b\" 1}}", 1, "a colon is missing behind the name of a member"),
        ] as [(String, Int, String)]
    )
    func malformed(_ text: String, line: Int, reason: String) throws {
        for bufferSize in [1, 4096] {
            #expect(throws: ImportError(line: line, reason: reason)) {
                try parse(Array(text.utf8), bufferSize: bufferSize)
            }
        }
    }

    @Test func invalidTextAndDepth() throws {
        let invalid = Array("{\"a\":\"".utf8) + [0xc3, UInt8(ascii: "\""), UInt8(ascii: "}")]
        #expect(throws: ImportError(line: 1, reason: "a string is not valid UTF-8")) {
            try parse(invalid, bufferSize: 4096)
        }
        let deep = "{\"a\":" + String(repeating: "[", count: 100_000)
        #expect(throws: ImportError(line: 1, reason: "values lie within one another too deeply")) {
            try parse(Array(deep.utf8), bufferSize: 4096)
        }
    }

    /// What never ends would take all memory. Here it ends far behind the limit.
    @Test(
        arguments: [
            "{\"a\":\"x*", "{\"a\":\"\\n*", "{\"a\":1*", "{\"a\":[\"x*", "{\"a\":[1*", "{\"a\":[\"\\n*", "{\"a\":[1,*",
            "{\"x*", "{\"b\":\"x*", "{\"b\":[\"x*", "{\"a\": *",
        ]
    )
    func objectWithoutAnEnd(_ beginning: String) throws {
        let tail =
            beginning.hasSuffix("\\n*") ? "\\n" : beginning.hasSuffix("1,*") ? "1," : String(beginning.dropLast().last!)
        let text = Array((beginning.dropLast() + String(repeating: tail, count: 10_000)).utf8)
        for bufferSize in [1, 100] {
            var rest = text[...]
            var reader = JSONReader(
                names: ["a"],
                ignoresOthers: true,
                keepsText: true,
                bufferSize: bufferSize,
                sizeLimit: 1000
            ) { buffer in
                let count = min(rest.count, buffer.count)
                buffer.replaceSubrange(..<count, with: rest.prefix(count))
                rest = rest.dropFirst(count)
                return count
            }
            #expect(throws: ImportError(line: 1, reason: "the object exceeds 1 GB")) { try reader.next() }
            #expect(text.count - rest.count < 3000)
        }
    }

    @Test func moreMembersThanATableHasColumns() throws {
        let text = "{" + (0...2000).map { "\"m\($0)\":1" }.joined(separator: ",") + "}"
        #expect(
            throws: ImportError(
                line: 1,
                reason: "there are more than 2000 members, and SQLite takes so many columns"
            )
        ) {
            try parse(Array(text.utf8), bufferSize: 4096)
        }
    }

    @Test func namesThatAreFoundOrKnown() throws {
        let text = Array("{\"a\":1}\n{\"b\":2,\"c\":{\"d\":[\"x\"]}}\n".utf8)
        let surveyed = try parse(text, isSurvey: true, bufferSize: 1)
        #expect(surveyed.names == ["a", "b", "c"])
        #expect(surveyed.rows == [["integer 1"], ["null", "integer 2", "text {\"d\":[\"x\"]}"]])
        let known = try parse(text, names: ["b"], ignoresOthers: true, bufferSize: 1)
        #expect(known.rows == [["null"], ["integer 2"]] && known.names == ["b"])
        #expect(throws: ImportError(line: 1, reason: "no object before has the member a")) {
            try parse(text, names: ["b"], bufferSize: 1)
        }
    }
}
