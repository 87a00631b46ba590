// Text compared byte by byte, as SQLite and the system do.
//
// Swift compares characters: a quote or slash that a combining mark follows is not equal to a quote or slash, and some
// characters are equal to others, such as U+1FEF to the back quote. https://www.unicode.org/reports/tr15/

import Foundation

/// A text as the key of a set or dictionary: the names of two files may be equal to Swift.
package struct ExactText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    /// The name of a table, column or schema, as SQLite compares it.
    package init(name: String) { text = name.foldedForSQL }

    package static func == (first: ExactText, second: ExactText) -> Bool {
        first.text.isSame(as: second.text)
    }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension String {
    /// Whether both have the same bytes.
    package func isSame(as other: String) -> Bool {
        let isSame = utf8.withContiguousStorageIfAvailable { own in
            other.utf8.withContiguousStorageIfAvailable { other in
                own.count == other.count
                    && (own.isEmpty || memcmp(own.baseAddress!, other.baseAddress!, own.count) == 0)
            }
        }
        return (isSame ?? nil) ?? utf8.elementsEqual(other.utf8)
    }

    /// The string as a quoted name or text of SQL. https://www.sqlite.org/lang_keywords.html
    /// - Parameter quote: an ASCII character.
    package func quoted(by quote: Unicode.Scalar) -> String {
        let byte = UInt8(ascii: quote)
        var bytes: [UInt8] = [byte]
        bytes.reserveCapacity(utf8.count + 2)
        for next in utf8 {
            if next == byte { bytes.append(byte) }
            bytes.append(next)
        }
        bytes.append(byte)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The string as SQLite compares names: without regard to the case of ASCII letters.
    package var foldedForSQL: String {
        if utf8.allSatisfy({ !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }) { return self }
        return String(
            decoding: utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 },
            as: UTF8.self
        )
    }

    /// Where the last slash is.
    package var lastSlash: Index? { utf8.lastIndex(of: UInt8(ascii: "/")) }

    /// As a path: the directory.
    package var directoryOfPath: String {
        guard let slash = lastSlash else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }

    /// As a path: the name in its directory.
    package var nameOfPath: String { lastSlash.map { String(self[utf8.index(after: $0)...]) } ?? self }
}

extension StringProtocol {
    /// Whether the bytes begin with those of `start`.
    package func begins(with start: String) -> Bool { utf8.starts(with: start.utf8) }

    /// Whether the bytes end with those of `end`.
    package func ends(with end: String) -> Bool {
        utf8.count >= end.utf8.count && utf8.suffix(end.utf8.count).elementsEqual(end.utf8)
    }

    /// The text without its last bytes, which must be whole characters of ASCII.
    package func withoutLast(bytes count: Int) -> String { String(decoding: utf8.dropLast(count), as: UTF8.self) }

    /// Whether the text has these bytes anywhere.
    package func hasBytes(of part: String) -> Bool {
        let (bytes, part) = (Array(utf8), Array(part.utf8))
        guard bytes.count >= part.count else { return false }
        return (0...bytes.count - part.count).contains { bytes[$0...].starts(with: part) }
    }

    /// Whether the text has this ASCII character, whatever follows it.
    package func has(_ character: Unicode.Scalar) -> Bool { utf8.contains(UInt8(ascii: character)) }

    /// The parts between these ASCII characters. An empty text has one part.
    package func parts(between character: Unicode.Scalar) -> [SubSequence] {
        var parts: [SubSequence] = []
        var start = startIndex
        for index in utf8.indices where utf8[index] == UInt8(ascii: character) {
            parts.append(self[start..<index])
            start = utf8.index(after: index)
        }
        parts.append(self[start...])
        return parts
    }
}
