import SealedDB

/// Writes each value on a line of its own, with the name of its column, and an empty line between rows.
final class LineWriter: CellWriter {
    private let output: ResultOutput
    private let style: ResultStyle
    private var names: [String] = []
    private var isFirst = true

    init(output: ResultOutput, style: ResultStyle) {
        self.output = output
        self.style = style
    }

    func begin(columns: [String]) {
        let names = columns.map { TerminalText.escaped($0) }
        let width = names.map { TerminalText.width(of: $0) }.max() ?? 0
        self.names = names.map { String(repeating: " ", count: width - TerminalText.width(of: $0)) + $0 }
    }

    func write(_ row: [Cell]) throws {
        if !isFirst { try output.write("\n") }
        isFirst = false
        for (name, cell) in zip(names, row) {
            try output.write("\(name) = \(TerminalText.escaped(cell.plainText ?? style.null ?? ""))\n")
        }
    }

    func end() {}
}

/// Writes a table in GitHub's Markdown. https://github.github.com/gfm/#tables-extension-
final class MarkdownWriter: CellWriter {
    private let output: ResultOutput
    private let style: ResultStyle

    init(output: ResultOutput, style: ResultStyle) {
        self.output = output
        self.style = style
    }

    private static let escapes: [Unicode.Scalar: String] = [
        "\\": "\\\\", "|": "\\|", "\n": "<br>", "<": "&lt;", "&": "&amp;",
    ]

    func begin(columns: [String]) throws {
        // Such a table always has a header.
        try write(columns.map { .text(style.hasHeader ? $0 : "") })
        try output.write("|" + String(repeating: "---|", count: columns.count) + "\n")
    }

    func write(_ row: [Cell]) throws {
        let texts = row.map { cell in
            TerminalText.escaped(cell.plainText ?? style.null ?? "", keepingNewlines: true).unicodeScalars
                .map { MarkdownWriter.escapes[$0] ?? String($0) }.joined()
        }
        try output.write("| " + texts.joined(separator: " | ") + " |\n")
    }

    func end() {}
}
