import Foundation

/// Writes objects, one per line, as the rows come: as the elements of an array, or each on its own.
final class JSONWriter: ResultWriter {
    private let output: ResultOutput
    private let isLines: Bool
    /// The names of the members, as encoded JSON with their colons.
    private var names: [String] = []
    private var isFirst = true

    init(output: ResultOutput, isLines: Bool) {
        self.output = output
        self.isLines = isLines
    }

    func begin(columns: [String]) throws {
        names = JSONWriter.unique(columns).map { JSONWriter.string($0) + ":" }
        if !isLines { try output.write("[") }
    }

    func write(_ row: [Cell]) throws {
        if !isLines { try output.write(isFirst ? "\n" : ",\n") }
        isFirst = false
        try writeObject(row)
        if isLines { try output.write("\n") }
    }

    /// Writes the object alone.
    func writeObject(_ row: [Cell]) throws {
        try output.write("{")
        for (column, cell) in row.enumerated() {
            if column > 0 { try output.write(",") }
            try output.write(names[column])
            try output.write(JSONWriter.value(cell))
        }
        try output.write("}")
    }

    func end() throws {
        guard !isLines else { return }
        try output.write(isFirst ? "]\n" : "\n]\n")
    }

    /// Makes column names unique, because an object should not have a name twice. Like in SQLite's shell, the second
    /// `id` becomes `id:1`.
    static func unique(_ columns: [String]) -> [String] {
        var used = Set<String>()
        return columns.map { column in
            var name = column
            var number = 0
            while used.contains(name) {
                number += 1
                name = "\(column):\(number)"
            }
            used.insert(name)
            return name
        }
    }

    private static func value(_ cell: Cell) -> String {
        switch cell {
        case .null: "null"
        case .integer(let value): String(value)
        // JSON has no infinity, so it becomes null.
        case .real(let value): value.isFinite ? "\(value)" : "null"
        case .text(let text): string(text)
        case .brokenText(let bytes): string(String(decoding: bytes, as: UTF8.self))
        case .blob(let bytes): "\"\(bytes.base64EncodedString())\""
        }
    }

    static func string(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            // JSON allows the control characters beyond ASCII without an escape, but a terminal would obey them.
            case "\0"..<" ", "\u{7f}"..<"\u{a0}": result += String(format: "\\u%04x", scalar.value)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
