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
        return rows.map { type, name, table, sql, form in
            let kind: Kind =
                switch (type, form) {
                case ("table", "virtual"): .virtualTable
                case ("table", "shadow"): .shadowTable
                case ("table", _): .table
                default: .other
                }
            return SchemaObject(kind: kind, type: type, name: name, table: table, sql: sql)
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
