import Foundation

/// Writes aligned columns. The first rows determine their widths, and the others are written as they come, so that a
/// result of any size needs little memory.
final class TableWriter: CellWriter {
    private let output: ResultOutput
    private let style: ResultStyle
    private let sampleSize = 1000
    /// Columns get no wider than this, so that a single long value does not push everything else off the screen.
    private let maximumWidth = 60
    private var columns: [String] = []
    private var sample: [[Cell]]? = []
    private var widths: [Int] = []
    private var alignsRight: [Bool] = []

    init(output: ResultOutput, style: ResultStyle) {
        self.output = output
        self.style = style
    }

    func begin(columns: [String]) {
        self.columns = columns.map { TerminalText.escaped($0) }
    }

    func write(_ row: [Cell]) throws {
        guard sample != nil else { return try writeLine(row) }
        sample?.append(row)
        if sample?.count == sampleSize { try writeSample() }
    }

    func end() throws {
        if sample != nil { try writeSample() }
    }

    private func writeSample() throws {
        let rows = sample ?? []
        sample = nil
        widths = columns.indices.map { column in
            let widest = rows.map { TerminalText.width(of: text(of: $0[column])) }.max() ?? 0
            return max(style.hasHeader ? TerminalText.width(of: columns[column]) : 0, min(widest, maximumWidth))
        }
        alignsRight = columns.indices.map { column in
            let values = rows.map { $0[column] }.filter { $0.plainText != nil }
            return !values.isEmpty && values.allSatisfy(\.isNumber)
        }
        if style.hasHeader {
            try writeLine(columns.map { Cell.text($0) })
            try output.write(widths.map { String(repeating: "-", count: $0) }.joined(separator: "  ") + "\n")
        }
        for row in rows { try writeLine(row) }
    }

    private func text(of cell: Cell) -> String {
        TerminalText.escaped(cell.plainText ?? style.null ?? "")
    }

    private func writeLine(_ row: [Cell]) throws {
        var line = ""
        for (column, cell) in row.enumerated() {
            let text = text(of: cell)
            let padding = String(repeating: " ", count: max(0, widths[column] - TerminalText.width(of: text)))
            if column > 0 { line += "  " }
            line += alignsRight[column] ? padding + text : text + padding
        }
        while line.last == " " { line.removeLast() }
        try output.write(line + "\n")
    }
}
