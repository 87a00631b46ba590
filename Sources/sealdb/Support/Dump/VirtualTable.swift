import SealedDB

/// The statement that made a virtual table, as far as it tells where the rows are.
/// https://www.sqlite.org/fts5.html#external_content_and_contentless_tables
struct VirtualTableText {
    /// In lower case.
    let module: String
    private let arguments: [(kind: SQLToken.Kind, text: String)]

    /// - Returns: `nil` for any other statement.
    init?(_ sql: String) {
        let tokens = Array(sql.utf8).withUnsafeBufferPointer { bytes in
            var reader = SQLTokenizer(bytes)
            var tokens: [(kind: SQLToken.Kind, text: String)] = []
            while let token = reader.next() { tokens.append((token.kind, reader.name(token))) }
            return tokens
        }
        guard tokens.count > 5, tokens[0].text == "create", tokens[1].kind == .word, tokens[1].text == "virtual",
            let using = tokens.dropFirst(3).firstIndex(where: { $0.kind == .word && $0.text == "using" }),
            using + 1 < tokens.count
        else { return nil }
        module = tokens[using + 1].text
        arguments = Array(tokens[(using + 2)...])
    }

    var isFullText: Bool { ["fts3", "fts4", "fts5"].contains(module) }

    /// The table that holds the text of a full-text table; `nil` if there is none.
    var contentTable: String? {
        guard isFullText, let name = option("content"), !name.isEmpty else { return nil }
        return name
    }

    /// Whether the module makes tables of which is known what they are for.
    var isKnown: Bool { isFullText || ["rtree", "rtree_i32", "geopoly"].contains(module) }

    /// FTS5's options, in the order in which it compares them with what is written: any beginning of a name will do.
    private static let options = [
        "prefix", "tokenize", "content", "contentless_delete", "contentless_unindexed", "content_rowid", "columnsize",
        "locale", "detail", "tokendata",
    ]

    private func isOption(_ text: String, _ name: String) -> Bool {
        switch module {
        case "fts3": false
        case "fts5": !text.isEmpty && VirtualTableText.options.first { $0.begins(with: text) } == name
        default: text == name
        }
    }

    /// The value of an option `name = value`; empty for an empty one, `nil` if there is none.
    func option(_ name: String) -> String? {
        for index in arguments.indices.dropLast(2)
        where isOption(arguments[index].text, name) && arguments[index + 1].text == "=" {
            guard index == 0 || ["(", ","].contains(arguments[index - 1].text) else { continue }
            let value = arguments[index + 2]
            return [SQLToken.Kind.symbol, .semicolon].contains(value.kind) ? "" : value.text
        }
        return nil
    }
}

/// How the rows of a virtual table can be made again: those of a full-text table or R-Tree by inserting them.
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
    private let text: VirtualTableText
    private let object: SchemaObject

    /// - Throws: ``Failure`` for a table that does not give back what it holds, or whose module is not known.
    init(_ object: SchemaObject, _ text: VirtualTableText, in database: Database) throws {
        let name = object.name
        self.name = name
        let keepsText = try VirtualTable.trial(of: object)?.keepsText ?? false
        (self.text, self.object) = (text, object)
        switch text.module {
        case "fts3", "fts4", "fts5":
            if !keepsText {
                guard text.contentTable != nil else { throw VirtualTable.unwritten(name, "keeps no text") }
                source = .otherTable
            } else {
                let language = text.option("languageid").map { [$0] } ?? []
                source = .own(try TableContents(name, in: database, hasRowID: true, hidden: language))
            }
        case "rtree", "rtree_i32", "geopoly":
            source = .own(try TableContents(name, in: database, hasRowID: text.module == "geopoly"))
        case "fts4aux", "fts5vocab", "fts3tokenize", "dbstat": source = .nothing
        default: throw VirtualTable.unwritten(name, "is of a module that sealdb does not know, \(text.module)")
        }
    }

    /// What the engine makes of the table.
    /// - Throws: ``Failure`` if it makes nothing: then it does not drop the table either.
    @discardableResult
    static func trial(of object: SchemaObject) throws -> VirtualTableTrial? {
        do {
            return try object.trial?.get()
        } catch {
            throw unwritten(
                object.name,
                "cannot be made anew (\((error as? DatabaseError)?.message ?? "\(error)"))"
            )
        }
    }

    private static func unwritten(_ table: String, _ reason: String, advice: String = "") -> Failure {
        Failure(
            .data,
            """
            The virtual table "\(table)" \(reason), so its rows cannot be written as SQL. Name the other tables with --table, \
            or make a copy with: sealdb backup\(advice.isEmpty ? "" : ".")\(advice)
            """
        )
    }

    /// - Throws: ``Failure`` if the index of the table is to be made anew from text elsewhere, and would become another one.
    func requireSameIndex(in database: Database) throws {
        guard case .otherTable = source, let contentTable = text.contentTable else { return }
        let index = ExternalIndex(
            name: name,
            module: text.module,
            statement: try object.statement(),
            contentTable: contentTable,
            database: database
        )
        guard let difference = try index.difference() else { return }
        let rebuild = VirtualTable.command("rebuild", name)
        throw VirtualTable.unwritten(
            name,
            difference.reason,
            advice: difference.isMendedByRebuild ? " If it may hold all of that text, first execute: \(rebuild)" : ""
        )
    }

    /// The options that were set in an FTS5 table. https://www.sqlite.org/fts5.html#special_insert_commands
    func options(_ database: Database) throws -> [(name: String, value: Cell)] {
        guard text.module == "fts5" else { return [] }
        let rows = try database.executeQuery(
            "SELECT k, v FROM main.\(identifier: name + "_config") WHERE k <> 'version' ORDER BY k"
        )
        defer { rows.close() }
        var options: [(String, Cell)] = []
        while try rows.nextWithError() {
            let name = rows.string(forColumnIndex: 0) ?? ""
            // Anything else would be another command than one that sets an option, such as one that empties the index.
            guard VirtualTable.settings.contains(where: { name.isSame(as: $0) }) else {
                throw VirtualTable.unwritten(self.name, "has a setting that sealdb does not know, \"\(name)\"")
            }
            options.append((name, Cell(rows, column: 1)))
        }
        return options
    }

    /// https://www.sqlite.org/fts5.html#special_insert_commands
    private static let settings = [
        "pgsz", "hashsize", "automerge", "usermerge", "crisismerge", "deletemerge", "rank", "secure-delete",
        "insttoken",
    ]

    static func command(_ command: String, _ table: String) -> String {
        "INSERT INTO \(SQLLiteral.name(table))(\(SQLLiteral.name(table))) VALUES('\(command)')"
    }
}
