/// A call whose result nobody looks at.
struct DroppedResult {
    let text: String
    /// Where it is, counted from 1.
    let line: Int
    /// The first line of the statement that it is in.
    let statementLine: Int

    var lines: ClosedRange<Int> { min(statementLine, line)...line }
}

/// A file, and which of its lines have comments.
struct SourceText {
    let path: String
    let text: String
    /// From 0; what is behind `//` or between `/*` and `*/` counts, except in a string literal.
    private let comments: [Comment]

    private enum Comment { case none, beside, alone }

    var isSwift: Bool { path.hasSuffix(".swift") }

    init(path: String, text: String) {
        self.path = path
        self.text = text
        var isInside = false
        comments = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let content = line.drop { $0 == " " || $0 == "\t" }
            if isInside || content.hasPrefix("/*") {
                isInside = !content.contains("*/")
                return .alone
            }
            if content.hasPrefix("//") { return .alone }
            return SourceText.commentStart(in: content) ? .beside : .none
        }
    }

    private static func commentStart(in line: Substring) -> Bool {
        var isInString = false
        var previous: Character = " "
        for character in line {
            if character == "\"", previous != "\\" { isInString.toggle() }
            if !isInString, previous == "/", character == "/" { return true }
            previous = character
        }
        return false
    }

    /// On a line of the call, in the lines right before its statement, or before other explained calls right before it.
    func hasComment(beside call: DroppedResult, afterThoseOf explained: Set<Int>) -> Bool {
        if call.lines.contains(where: { comments[$0 - 1] != .none }) { return true }
        let previous = call.statementLine - 1
        return previous > 0 && (comments[previous - 1] == .alone || explained.contains(previous))
    }
}
