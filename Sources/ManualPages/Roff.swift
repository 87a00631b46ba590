/// Text in the language of mdoc(7).
enum Roff {
    /// Text within a line. What a formatter would make typographic stays as it is typed, so that it can be pasted.
    static func escaped(_ text: some StringProtocol) -> String {
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "`": result += "\\(ga"
            case "~": result += "\\(ti"
            case "^": result += "\\(ha"
            case _ where !scalar.isASCII: result += "\\[u" + hex(scalar) + "]"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }

    private static func hex(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// A line of text: one that begins like a request is none.
    static func line(_ text: some StringProtocol) -> String {
        let line = escaped(text)
        return (line.hasPrefix(".") ? "\\&" : "") + line
    }

    /// A paragraph, each of its sentences on a line of its own, so that the gaps between them are right.
    static func paragraph(_ text: String) -> String {
        var sentences: [Substring] = []
        var rest = text[...]
        while let end = rest.firstMatch(of: /[.:?][)"]? +(?=[A-Z"$\-{])/) {
            sentences.append(rest[..<end.range.upperBound])
            rest = rest[end.range.upperBound...]
        }
        sentences.append(rest)
        return sentences.map { sentence in
            var sentence = sentence
            while sentence.last == " " { sentence.removeLast() }
            return line(sentence) + "\n"
        }.joined()
    }

    static func literal(_ lines: [String]) -> String {
        ".Bd -literal -offset indent\n" + lines.map { line($0) + "\n" }.joined() + ".Ed\n"
    }

    /// An argument of a macro.
    static func argument(_ text: String) -> String {
        let text = escaped(text)
        return text.contains(" ") ? "\"\(text)\"" : "\\&" + text
    }
}
