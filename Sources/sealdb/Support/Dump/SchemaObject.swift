import SealedDB

/// An object of a store's schema, as the SQL that made it.
struct SchemaObject {
    enum Kind {
        case table
        case virtualTable
        /// A table that a virtual table makes for itself.
        case shadowTable
        case view, index, trigger
    }

    private(set) var kind: Kind
    let name: String
    /// The table that the object belongs to.
    let table: String
    private let sql: String
    /// What the engine makes of a virtual table whose module is known.
    private(set) var trial: Result<VirtualTableTrial, any Error>?

    private init(kind: Kind, name: String, table: String, sql: String) {
        (self.kind, self.name, self.table, self.sql) = (kind, name, table, sql)
    }

    /// Returns the objects in the order in which they can be made again, without SQLite's own, and without what a store
    /// remembers of its key slots, which means nothing elsewhere. The store's own names are not trusted: a table may be
    /// called as one of SQLite's functions.
    static func all(of database: Database) throws -> [SchemaObject] {
        let rows = try database.executeQuery(
            """
            SELECT type, name, tbl_name, sql FROM main.sqlite_schema
            WHERE sql IS NOT NULL AND substr(name, 1, 7) <> 'sqlite_' AND sql <> \(KeySlots.memorySchema)
            ORDER BY type <> 'table', rowid
            """
        ).all((String, String, String, String).self)
        var objects = rows.map { type, name, table, sql in
            let kind: Kind =
                switch type {
                case "table": VirtualTableText(sql) == nil ? .table : .virtualTable
                case "view": .view
                case "index": .index
                default: .trigger
                }
            return SchemaObject(kind: kind, name: name, table: table, sql: sql)
        }
        for (index, object) in objects.enumerated() { objects[index].trial = object.tried(among: objects) }
        let trials = objects.compactMap { try? $0.trial?.get() }  // A failed one is told when its rows are asked for.
        for (index, object) in objects.enumerated()
        where object.kind == .table && trials.contains(where: { $0.hasMade(object.name, object.sql) }) {
            objects[index].kind = .shadowTable
        }
        return objects
    }

    /// What a virtual table is made of; `nil` for every other object.
    var virtualTable: VirtualTableText? { kind == .virtualTable ? VirtualTableText(sql) : nil }

    /// Tries what the engine makes of a virtual table whose module is known; `nil` for every other object.
    private func tried(among objects: [SchemaObject]) -> Result<VirtualTableTrial, any Error>? {
        guard let text = virtualTable, text.isKnown else { return nil }
        return Result {
            let content = text.contentTable.map { ExactText(name: $0) }
            // A table may name itself, and is not there twice.
            let source = try objects.first {
                ExactText(name: $0.name) == content && !$0.isOfTable && $0.identity != identity
            }?.statement()
            return try VirtualTableTrial(name, module: text.module, statement(), content: source)
        }
    }

    /// Whether the table counts its row ids. https://www.sqlite.org/autoinc.html
    var counts: Bool {
        Array(sql.utf8).withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            while let token = tokens.next() {
                if token.kind == .word, tokens.name(token) == "autoincrement" { return true }
            }
            return false
        }
    }

    /// The statement, with its semicolon, in a form in which the stock shells take all of it for SQL.
    ///
    /// SQLite reads one statement, and ignores what follows it in the schema. A shell would go on. It also takes a line
    /// `go` or `/` for the end of a statement, and a line that begins with a dot after one for a command of its own. So
    /// no line begins with these. https://www.sqlite.org/cli.html#rules_for_dot_commands_sql_and_more
    /// - Throws: ``Failure`` if the schema holds something else.
    func statement() throws(Failure) -> String {
        let script = SQLScript(sql)
        guard let first = script.statements.first, first.verb == "CREATE" else {
            throw Failure(.data, "The schema holds no statement for \"\(name)\" that makes it.")
        }
        return Array(first.text.utf8).withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            var (result, end): ([UInt8], Int) = ([], 0)
            // What follows the last token is blank or a comment, which would swallow the semicolon.
            while let token = tokens.next(), token.kind != .semicolon || token.range.upperBound < bytes.count {
                let gap = bytes[end..<token.range.lowerBound]
                let mayBeCommand = SchemaObject.mayBeginCommand(bytes[token.range])
                result += mayBeCommand && gap.contains(UInt8(ascii: "\n")) ? [UInt8(ascii: " ")] : Array(gap)
                result += bytes[token.range]
                end = token.range.upperBound
            }
            return String(decoding: result, as: UTF8.self) + ";\n"
        }
    }

    private static func mayBeginCommand(_ token: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let isGo = token.count == 2 && token.map { $0 | 0x20 } == Array("go".utf8)
        return isGo || ".#/".utf8.contains(token.first ?? 0)
    }

    /// Returns those that belong to these tables or views; all if there are no names.
    /// - Throws: ``Failure`` if one of them does not exist.
    static func those(of names: [String], in objects: [SchemaObject]) throws(Failure) -> [SchemaObject] {
        guard !names.isEmpty else { return objects }
        let wanted = Set(names.map { ExactText(name: $0) })
        let found = Set(objects.filter(\.isShown).map { ExactText(name: $0.name) })
        for name in names where !found.contains(ExactText(name: name)) {
            throw Failure(.data, "There is no table or view \"\(name)\".")
        }
        return objects.filter { object in
            object.isShown && wanted.contains(ExactText(name: object.name))
                || object.isOfTable && wanted.contains(ExactText(name: object.table))
        }
    }

    /// A trigger may have the name of a table, view or index.
    struct Identity: Hashable {
        let name: ExactText
        let isTrigger: Bool
    }

    var identity: Identity { Identity(name: ExactText(name: name), isTrigger: kind == .trigger) }

    /// Whether it is an index or trigger.
    var isOfTable: Bool { [.index, .trigger].contains(kind) }

    /// Whether it is a table or view that somebody made.
    var isShown: Bool { [.table, .virtualTable, .view].contains(kind) }
}
