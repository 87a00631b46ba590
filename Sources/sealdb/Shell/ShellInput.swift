import SealedDB

/// Puts lines together to statements, and tells them from commands.
struct ShellInput {
    private let lines: any ShellLines
    /// The lines of a statement that is not complete.
    private var pending = ""
    /// Whether anything but blanks and comments is pending.
    private var hasToken = false
    private var number = 0
    /// The number of the line with which the last input began.
    private(set) var start = 1
    /// Whether no further line can be read.
    private(set) var hasFailed = false

    init(_ lines: any ShellLines) { self.lines = lines }

    /// The next statements or command. Blank lines and comments before it are left out.
    /// - Parameters:
    ///   - echo: gets each line.
    ///   - announce: gets what is pending before a line is read.
    mutating func next(
        prompt: String,
        echo: (String) throws -> Void,
        pending announce: (String) -> Void
    ) throws -> ShellLine {
        var prompt = prompt
        while true {
            let line: ShellLine
            do {
                number += 1
                announce(pending)
                line = try lines.next(prompt: prompt)
            } catch {
                // A line that is no text is left out; anything else would happen again.
                hasFailed = (error as? Failure)?.status != .data
                start = number
                throw error
            }
            switch line {
            case .interrupted:
                (pending, hasToken) = ("", false)
                return line
            case .end:
                let isCutOff = lines.name != nil && !pending.isEmpty
                (pending, hasToken) = ("", false)
                guard isCutOff else { return line }
                throw Failure(
                    .data,
                    "The last statement has no semicolon, so a part of it may be missing. It was not run."
                )
            case .text(var text):
                try echo(text)
                // A byte order mark, and the ends of lines of other systems, are no part of a command.
                if number == 1, text.unicodeScalars.first == "\u{feff}" { text.unicodeScalars.removeFirst() }
                if pending.isEmpty {
                    start = number
                    if text.begins(with: ".") {
                        return .text(text.utf8.last == 0x0d ? String(text.unicodeScalars.dropLast()) : text)
                    }
                }
                pending += text + "\n"
                hasToken = hasToken || ShellInput.hasToken(pending)
                if !hasToken {
                    if ShellInput.endsOutsideComment(pending) { pending = "" }
                } else if text.utf8.contains(UInt8(ascii: ";")) || text.utf8.contains(UInt8(ascii: "/")),
                    SQLKeywords.isComplete(pending)
                {
                    defer { (pending, hasToken) = ("", false) }
                    return .text(pending)
                }
                if !pending.isEmpty { prompt = Shell.continuedPrompt }
            }
        }
    }

    private static func hasToken(_ text: String) -> Bool {
        Array(text.utf8).withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            return tokens.next() != nil
        }
    }

    /// - Parameter text: only blanks and comments.
    static func endsOutsideComment(_ text: String) -> Bool {
        SQLKeywords.isComplete("SELECT 1\n\(text)\n;")
    }
}
