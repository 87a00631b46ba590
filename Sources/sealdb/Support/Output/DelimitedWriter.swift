import Foundation

/// Writes CSV or TSV with a header row, in the form that the import reads.
final class DelimitedWriter: ResultWriter {
    private let output: ResultOutput
    private let format: DelimitedFormat
    private let style: ResultStyle

    init(output: ResultOutput, format: DelimitedFormat, style: ResultStyle) {
        self.output = output
        self.format = format
        self.style = style
    }

    func begin(columns: [String]) throws {
        guard style.hasHeader else { return }
        try write(columns.map { Cell.text($0) })
    }

    func write(_ row: [Cell]) throws {
        for (column, cell) in row.enumerated() {
            if column > 0 { try output.write(format == .csv ? "," : "\t") }
            switch cell {
            case .null: try output.write(style.null)
            case .integer, .real, .blob: try writeText((cell.plainText ?? "").utf8)
            case .text(let text): try writeText(text.utf8)
            case .brokenText(let bytes): try writeText(bytes)
            }
        }
        try output.write("\n")
    }

    func end() {}

    private func writeText(_ bytes: some Collection<UInt8>) throws {
        switch format {
        case .csv: try writeQuoted(bytes)
        case .tsv: try writeEscaped(bytes)
        }
    }

    private func writeQuoted(_ bytes: some Collection<UInt8>) throws {
        // What is written for NULL is quoted where it is a text, to distinguish the two.
        try output.write(DelimitedWriter.quoted(bytes, delimiter: UInt8(ascii: ","), null: Array(style.null.utf8)))
    }

    /// A field of CSV: in quotes where it needs them, or where it reads as what stands for NULL.
    static func quoted(_ bytes: some Collection<UInt8>, delimiter: UInt8, null: [UInt8]?) -> [UInt8] {
        let quote = UInt8(ascii: "\"")
        let needsQuotes = bytes.contains { [quote, delimiter, 0x0a, 0x0d].contains($0) }
        guard needsQuotes || null.map(bytes.elementsEqual) == true else { return Array(bytes) }
        return [quote] + bytes.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
    }

    private func writeEscaped(_ bytes: some Collection<UInt8>) throws {
        try output.write(DelimitedWriter.escaped(bytes))
    }

    /// A field of TSV.
    static func escaped(_ bytes: some Collection<UInt8>) -> [UInt8] {
        bytes.flatMap { byte -> [UInt8] in
            switch byte {
            case 0x09: Array("\\t".utf8)
            case 0x0a: Array("\\n".utf8)
            case 0x0d: Array("\\r".utf8)
            case UInt8(ascii: "\\"): Array("\\\\".utf8)
            default: [byte]
            }
        }
    }
}
