// Text compared byte by byte, as SQLite and the system do.
//
// Swift compares characters: a quote or slash that a combining mark follows is not equal to a quote or slash, and some
// characters are equal to others, such as U+1FEF to the back quote. https://www.unicode.org/reports/tr15/

/// A text as the key of a set or dictionary: the names of two files may be equal to Swift.
package struct ExactText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (first: ExactText, second: ExactText) -> Bool {
        first.text.utf8.elementsEqual(second.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}

extension String {
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
