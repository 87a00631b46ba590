import SealedDB

/// An object of a store's schema, as the SQL that made it.
struct SchemaObject {
    enum Kind {
        case table
        case virtualTable
        /// A table that a virtual table makes for itself.
        case shadowTable
        /// An index, view or trigger.
        case other
    }

    let kind: Kind
    /// `table`, `index`, `view` or `trigger`.
    let type: String
    let name: String
    /// The table that the object belongs to.
    let table: String
    let sql: String

    /// Returns the objects in the order in which they can be made again, without SQLite's own.
    static func all(of database: Database) throws -> [SchemaObject] {
        let rows = try database.all(
            (String, String, String, String, String?).self,
            """
            SELECT s.type, s.name, s.tbl_name, s.sql, t.type FROM main.sqlite_schema AS s
            LEFT JOIN pragma_table_list AS t ON t.schema = 'main' AND t.name = s.name AND s.type = 'table'
            WHERE s.sql IS NOT NULL AND substr(s.name, 1, 7) <> 'sqlite_' ORDER BY s.type <> 'table', s.rowid
            """
        )
        let objects = rows.map { type, name, table, sql, form in
            let kind: Kind =
                switch (type, form) {
                case ("table", "virtual"): .virtualTable
                case ("table", "shadow"): .shadowTable
                case ("table", _): .table
                default: .other
                }
            return SchemaObject(kind: kind, type: type, name: name, table: table, sql: sql)
        }
        // SQLite goes by the name. But if the text of a full-text table is in another table, a table `…_content` is the
        // user's own.
        let ofOthers = objects.filter { $0.kind == .virtualTable && VirtualTable.contentTable($0.sql) != nil }
        return objects.map { object in
            let isOwn = ofOthers.contains { equal($0.name + "_content", object.name) }
            guard object.kind == .shadowTable, isOwn else { return object }
            return SchemaObject(
                kind: .table,
                type: object.type,
                name: object.name,
                table: object.table,
                sql: object.sql
            )
        }
    }

    /// The statement, with its semicolon, in a form in which the stock shells take all of it for SQL.
    ///
    /// SQLite reads one statement, and ignores what follows it in the schema. A shell would go on, and it takes a line
    /// that begins with a dot for a command of its own, if it takes the lines before it for complete.
    var statement: String {
        let text = SQLScript(sql).statements.first?.text ?? ""
        return Array(text.utf8).withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            var (result, end): ([UInt8], Int) = ([], 0)
            // What follows the last token is blank or a comment, which would swallow the semicolon.
            while let token = tokens.next(), token.kind != .semicolon || token.range.upperBound < bytes.count {
                result += bytes[end..<token.range.lowerBound]
                let first = bytes[token.range.lowerBound]
                if result.last == UInt8(ascii: "\n"), first == UInt8(ascii: ".") || first == UInt8(ascii: "#") {
                    result.append(UInt8(ascii: " "))
                }
                result += bytes[token.range]
                end = token.range.upperBound
            }
            return String(decoding: result, as: UTF8.self) + ";\n"
        }
    }

    /// Returns those that belong to these tables or views; all if there are none.
    /// - Throws: ``Failure`` if one of them does not exist.
    static func those(of names: [String], in objects: [SchemaObject]) throws(Failure) -> [SchemaObject] {
        guard !names.isEmpty else { return objects }
        for name in names where !objects.contains(where: { $0.isNamed(name) }) {
            throw Failure(.data, "There is no table or view \"\(name)\".")
        }
        return objects.filter { object in names.contains { object.isNamed($0) || equal($0, object.table) } }
    }

    private func isNamed(_ name: String) -> Bool {
        ["table", "view"].contains(type) && SchemaObject.equal(name, self.name)
    }

    /// SQLite ignores the case of ASCII letters.
    private static func equal(_ first: String, _ second: String) -> Bool {
        func folded(_ text: String) -> [UInt8] {
            text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        }
        return folded(first) == folded(second)
    }
}
