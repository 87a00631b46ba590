import ArgumentParser
import SealedDB

/// How rows are written.
struct ResultOptions: ParsableArguments {
    @Option(help: "How the rows are written.")
    var format = ResultFormat.table

    @Flag(help: "Leave out the names of the columns, in table, csv, tsv and markdown.")
    var noHeader = false

    @Option(
        help: ArgumentHelp(
            """
            Write this for NULL, in all formats but json, jsonl and insert. Without it, \\N in tsv, else nothing. Unless it is \
            empty, a value of tsv that would read so is refused.
            """,
            valueName: "text"
        )
    )
    var null: String?

    @Option(help: ArgumentHelp("The table of the statements, in insert.", valueName: "table"))
    var into: String?

    func validate() throws {
        guard (format == .insert) == (into != nil) else {
            throw ValidationError("--format insert goes with --into and the name of a table.")
        }
        if let format = ImportFormat(rawValue: format.rawValue), let null,
            let problem = DelimitedStyle(null: Array(null.utf8)).problemOfNull(in: format)
        {
            throw ValidationError(problem)
        }
    }

    func writer(to output: ResultOutput) -> any ResultWriter {
        format.writer(to: output, ResultStyle(hasHeader: !noHeader, null: null), table: into ?? "")
    }
}

enum ResultFormat: String, ExpressibleByArgument, CaseIterable {
    case table, csv, tsv, json, jsonl, line, markdown, insert

    /// - Parameter table: the table of the statements, for `insert`.
    func writer(to output: ResultOutput, _ style: ResultStyle, table: String) -> any ResultWriter {
        switch self {
        case .table: TableWriter(output: output, style: style)
        case .csv: DelimitedWriter(output: output, format: .csv, style: style)
        case .tsv: DelimitedWriter(output: output, format: .tsv, style: style)
        case .json: JSONWriter(output: output, isLines: false)
        case .jsonl: JSONWriter(output: output, isLines: true)
        case .line: LineWriter(output: output, style: style)
        case .markdown: MarkdownWriter(output: output, style: style)
        case .insert: InsertWriter(output: output, table: table)
        }
    }
}

struct ResultStyle {
    var hasHeader = true
    /// What is written for NULL; `nil` for what is usual in the format.
    var null: String?
}

/// Writes the rows of a result in one format.
protocol ResultWriter: AnyObject {
    func begin(columns: [String]) throws
    /// Writes the current row.
    func write(row: ResultSet) throws
    func end() throws
}

/// One that keeps rows, or writes few: it takes values as they are, at the cost of a copy of each.
protocol CellWriter: ResultWriter {
    func write(_ row: [Cell]) throws
}

extension CellWriter {
    func write(row rows: ResultSet) throws {
        try write((0..<rows.columnCount).map { Cell(rows, column: $0) })
    }
}

extension ResultWriter {
    func begin(columns rows: ResultSet) throws {
        try begin(columns: (0..<rows.columnCount).map { rows.columnName(for: $0) ?? "" })
    }
}
