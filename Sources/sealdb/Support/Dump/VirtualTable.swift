import SealedDB

/// How the rows of a virtual table can be made again: those of a full-text table or R-Tree by inserting them.
/// https://www.sqlite.org/fts5.html#external_content_and_contentless_tables
struct VirtualTable {
    enum Source {
        /// The table gives back what was inserted.
        case own(TableContents)
        /// The text is in another table, from which the index is made again.
        case otherTable
        /// The table shows what others hold.
        case nothing
    }

    let name: String
    let source: Source
    private let module: String

    /// - Throws: ``Failure`` for a table that does not give back what it holds, or whose module is not known.
    init(_ object: SchemaObject, in database: Database) throws {
        name = object.name
        let (module, arguments) = VirtualTable.module(of: object.sql)
        self.module = module
        switch module {
        case "fts3", "fts4", "fts5":
            if VirtualTable.contentTable(object.sql) != nil {
                source = .otherTable
            } else {
                let own = object.name + "_content"
                let count = try database.scalar(
                    Int.self,
                    "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = \(own) COLLATE NOCASE"
                )
                guard count == 1 else { throw VirtualTable.unwritten(object.name, "keeps no text") }
                let language = VirtualTable.option("languageid", arguments)
                source = .own(
                    try TableContents(object.name, in: database, hasRowID: true, hidden: language.map { [$0] } ?? [])
                )
            }
        case "rtree", "rtree_i32", "geopoly":
            // An R-Tree shows its row id as its first column.
            source = .own(try TableContents(object.name, in: database, hasRowID: module == "geopoly"))
        case "fts4aux", "fts5vocab", "dbstat": source = .nothing
        default: throw VirtualTable.unwritten(object.name, "is of a module that sealdb does not know, \(module)")
        }
    }

    private static func unwritten(_ table: String, _ reason: String) -> Failure {
        Failure(
            .data,
            """
            The virtual table "\(table)" \(reason), so its rows cannot be written as SQL. Name the other tables with --table, \
            or make a copy with: sealdb backup
            """
        )
    }

    /// The table that holds the text of a full-text table; `nil` if there is none.
    static func contentTable(_ sql: String) -> String? {
        let (module, arguments) = module(of: sql)
        guard module.hasPrefix("fts"), let name = option("content", arguments), !name.isEmpty else { return nil }
        return name
    }

    /// The module, in lower case, and the tokens of its arguments, each with its text without quotes.
    private static func module(of sql: String) -> (name: String, arguments: [(kind: SQLToken.Kind, text: String)]) {
        Array(sql.utf8).withUnsafeBufferPointer { bytes in
            var reader = SQLTokenizer(bytes)
            var tokens: [(kind: SQLToken.Kind, text: String)] = []
            while let token = reader.next() { tokens.append((token.kind, reader.name(token))) }
            // CREATE VIRTUAL TABLE name USING module(…), where the name may have a schema and quotes.
            guard let using = tokens.firstIndex(where: { $0.kind == .word && $0.text == "using" }),
                using + 1 < tokens.count
            else { return ("", []) }
            return (tokens[using + 1].text, Array(tokens[(using + 2)...]))
        }
    }

    /// The value of an option `name = value`; empty for an empty one, `nil` if there is none.
    private static func option(_ name: String, _ arguments: [(kind: SQLToken.Kind, text: String)]) -> String? {
        for index in arguments.indices.dropLast(2)
        where arguments[index].text == name && arguments[index + 1].text == "=" {
            guard index == 0 || ["(", ","].contains(arguments[index - 1].text) else { continue }
            let value = arguments[index + 2]
            return [SQLToken.Kind.symbol, .semicolon].contains(value.kind) ? "" : value.text
        }
        return nil
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
