import Testing

@testable import sealdb

/// The parser alone, also with a buffer so small that everything falls on an edge.
@Suite(.hangLimit)
struct DelimitedReaderTests {
    private func parse(_ text: [UInt8], _ format: ImportFormat, bufferSize: Int) throws -> [[String]] {
        var rest = text[...]
        var reader = DelimitedReader(format: format, bufferSize: bufferSize) { buffer in
            let count = min(rest.count, bufferSize, buffer.count)
            buffer.replaceSubrange(..<count, with: rest.prefix(count))
            rest = rest.dropFirst(count)
            return count
        }
        var rows: [[String]] = []
        while try reader.next() {
            let record = reader.record
            rows.append(
                try (0..<record.fieldCount).map { record.isNull(at: $0) ? "<NULL>" : try record.text(at: $0) }
            )
        }
        return rows
    }

    private func parse(_ text: String, _ format: ImportFormat) throws -> [[String]] {
        let bytes = Array(text.utf8)
        let rows = try parse(bytes, format, bufferSize: 4096)
        #expect(try parse(bytes, format, bufferSize: 1) == rows)
        return rows
    }

    /// Wherever the buffer ends, and whichever field of a record has quotes.
    @Test func fieldsWithAndWithoutQuotes() throws {
        let wide = (0..<50).map { "c\($0)" }
        let fields = ["a", "", "\"\"", "\"q,\n\"", "é b"]
        var text = wide.joined(separator: ",") + "\n"
        var wanted = [wide]
        let values = ["a", "<NULL>", "", "q,\n", "é b"]
        for first in 0..<5 {
            for second in 0..<5 {
                for third in 0..<5 {
                    text +=
                        [first, second, third].map { fields[$0] }.joined(separator: ",") + (third == 0 ? "\r\n" : "\n")
                    wanted.append([first, second, third].map { values[$0] })
                }
            }
        }
        for size in [3, 4, 7, 64, 1000, 100_000] {
            #expect(try parse(Array(text.utf8), .csv, bufferSize: size) == wanted, "\(size)")
        }
    }

    @Test(
        arguments: [
            ("", []),
            ("a", [["a"]]),
            ("a\n", [["a"]]),
            ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
            ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
            ("a,b\n1,2", [["a", "b"], ["1", "2"]]),
            ("a,b\n1,", [["a", "b"], ["1", "<NULL>"]]),
            ("\"a\0b\"\n", [["a\0b"]]),
            (",\n", [["<NULL>", "<NULL>"]]),
            ("\n", [["<NULL>"]]),
            ("\u{feff}a\n1\n", [["a"], ["1"]]),
            ("\"a\",\"b\"\n", [["a", "b"]]),
            ("\"a\"\"b\"\n", [["a\"b"]]),
            ("\"\"\n", [[""]]),
            ("\"\"\"\"\n", [["\""]]),
            ("\"a,b\",c\n", [["a,b", "c"]]),
            ("\"line 1\nline 2\",x\n", [["line 1\nline 2", "x"]]),
            ("\"line 1\r\nline 2\"\r\n", [["line 1\r\nline 2"]]),
            ("é,日本\n", [["é", "日本"]]),
            (" a , b \n", [[" a ", " b "]]),
            ("\"a\"", [["a"]]),
            ("a\tb\\n\n", [["a\tb\\n"]]),
        ] as [(String, [[String]])]
    )
    func csv(_ text: String, _ rows: [[String]]) throws {
        #expect(try parse(text, .csv) == rows)
    }

    @Test(
        arguments: [
            ("", []),
            ("a\tb\n1\t2\n", [["a", "b"], ["1", "2"]]),
            ("a\tb\r\n", [["a", "b"]]),
            ("a\tb", [["a", "b"]]),
            ("\t\n", [["", ""]]),
            ("\"a\",b\n", [["\"a\",b"]]),
            ("x\\ty\\nz\\r\\\\w\n", [["x\ty\nz\r\\w"]]),
            ("C:\\data\n", [["C:\\data"]]),
            ("a\\", [["a\\"]]),
            ("\\N\t\\\\N\t\\Nx\tx\\N\n", [["<NULL>", "\\N", "\\Nx", "x\\N"]]),
            ("a\\r\n", [["a\r"]]),
            ("a\\0b\n", [["a\0b"]]),
            ("a\rb\n", [["a\rb"]]),
            ("\u{feff}a\n", [["a"]]),
        ] as [(String, [[String]])]
    )
    func tsv(_ text: String, _ rows: [[String]]) throws {
        #expect(try parse(text, .tsv) == rows)
    }

    @Test(
        arguments: [
            ("a\n\"b", 2, "the quote opened here is never closed"),
            ("a\n\"b\nc\nd", 2, "the quote opened here is never closed"),
            ("a,b\n\"x\"y,2\n", 2, "text after the closing quote of field 1"),
            ("a,b\n1,\"x\" \n", 2, "text after the closing quote of field 2"),
            ("a,b\n1,x\"y\n", 2, "a quote inside field 2, which does not begin with one"),
            ("a\rb\n", 1, "a carriage return without a line feed"),
            ("a\n\"x\"\r", 2, "a carriage return without a line feed"),
            ("a\n\"multi\nline\"\nb\0c\n", 4, "a NUL byte that is not in quotes; is this text in UTF-8?"),
        ] as [(String, Int, String)]
    )
    func malformed(_ text: String, line: Int, reason: String) throws {
        for bufferSize in [1, 4096] {
            #expect(throws: ImportError(line: line, reason: reason)) {
                try parse(Array(text.utf8), .csv, bufferSize: bufferSize)
            }
        }
    }

    @Test func invalidTextNamesTheLineWithinARecord() throws {
        let text = Array("a,b\nx,\"1\n2\n".utf8) + [0xff] + Array("\n3\"\n".utf8)
        #expect(throws: ImportError(line: 4, reason: "field 2 is not valid UTF-8")) {
            try parse(text, .csv, bufferSize: 4096)
        }
        // Half a character at the end of one field must not be completed by the next.
        #expect(throws: ImportError(line: 1, reason: "field 1 is not valid UTF-8")) {
            try parse([0xc3, UInt8(ascii: ","), 0xa9], .csv, bufferSize: 4096)
        }
        #expect(throws: ImportError(line: 1, reason: "field 1 is not valid UTF-8")) {
            try parse([0xed, 0xa0, 0x80], .tsv, bufferSize: 4096)
        }
    }
}
