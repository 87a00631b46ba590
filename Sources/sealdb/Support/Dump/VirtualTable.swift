import SealedDB

/// How the rows of a virtual table can be made again: those of a full-text table or R-Tree by inserting them.
/// https://www.sqlite.org/fts5.html#external_content_and_contentless_tables
struct VirtualTable {
    enum Source {
        /// The table gives back what was inserted.
        case own
        /// The text is in another table, from which the index is made again.
        case otherTable
    }

    let name: String
    let source: Source
    let hasRowID: Bool
    private let module: String

    /// - Throws: ``Failure`` for a table that does not give back what it holds.
    init(_ object: SchemaObject, in database: Database) throws {
        name = object.name
        let text = object.sql.lowercased()
        module = String(text.firstMatch(of: /using\s+["'`\[]?([a-z0-9_]+)/)?.output.1 ?? "")
        let isFullText = module.hasPrefix("fts")
        // An R-Tree shows its row id as its first column. Of other modules nothing is known.
        hasRowID = isFullText
        let content = isFullText ? text.firstMatch(of: /[(,]\s*content\s*=\s*(["'`]?)([^"'`,)]*)\1/)?.output.2 : nil
        guard content != "" else {
            throw Failure(
                .data,
                """
                The full-text table "\(object.name)" keeps no text, so its rows cannot be written as SQL. Name the other tables \
                with --table, or make a copy with: sealdb backup
                """
            )
        }
        source = content == nil ? .own : .otherTable
    }

    /// The options that were set in an FTS5 table. https://www.sqlite.org/fts5.html#special_insert_commands
    func options(_ database: Database) throws -> [(name: String, value: Cell)] {
        guard module == "fts5" else { return [] }
        let rows = try database.executeQuery(
            "SELECT k, v FROM main.\(identifier: name + "_config") WHERE k <> 'version' ORDER BY k"
        )
        defer { rows.close() }
        var options: [(String, Cell)] = []
        while try rows.nextWithError() {
            options.append((rows.string(forColumnIndex: 0) ?? "", Cell(rows, column: 1)))
        }
        return options
    }

    static func command(_ command: String, _ table: String) -> String {
        "INSERT INTO \(SQLLiteral.name(table))(\(SQLLiteral.name(table))) VALUES('\(command)')"
    }
}
