/// What of a table is stored, and how to read and write all of it.
struct TableLayout {
    let name: String
    /// Without generated columns, which have no values of their own.
    let columns: [String]
    /// The name by which the row id can be told apart from the columns; `nil` for tables WITHOUT ROWID.
    let rowID: String?

    /// All tables that have rows of their own: those behind virtual tables, but not these themselves. Sorted by name.
    static func all(of connection: Connection) throws(DatabaseError) -> [TableLayout] {
        let names = try connection.texts(
            "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name COLLATE BINARY"
        )
        var result: [TableLayout] = []
        for name in names { result.append(try TableLayout(name, of: connection)) }
        return result
    }

    private init(_ name: String, of connection: Connection) throws(DatabaseError) {
        self.name = name
        // https://www.sqlite.org/pragma.html#pragma_table_xinfo
        let information = try connection.prepare("PRAGMA main.table_xinfo(\(name.quotedIdentifier))")
        defer { information.close() }
        var stored: [String] = []
        var all: Set<String> = []
        while try information.step() {
            let column = information.text(at: 1) ?? ""
            all.insert(column.lowercased())
            if information.int64(at: 6) == 0 { stored.append(column) }
        }
        columns = stored
        let candidates = ["rowid", "_rowid_", "oid"].filter { !all.contains($0) }
        rowID = candidates.first { candidate in
            // Not prepared, not there.
            guard let statement = try? connection.prepare("SELECT \(candidate) FROM main.\(name.quotedIdentifier)")
            else {
                return false
            }
            statement.close()
            return true
        }
    }

    private var stored: [String] {
        (rowID.map { [$0] } ?? []) + columns.map(\.quotedIdentifier)
    }

    /// Every row, in the order of the table's tree.
    var selection: String {
        let order = rowID.map { " ORDER BY \($0)" } ?? ""
        return "SELECT \(stored.joined(separator: ", ")) FROM main.\(name.quotedIdentifier) NOT INDEXED\(order)"
    }

    /// One row, with the columns of ``selection``. A conflict clause of the schema must not drop or change a row.
    var insertion: String {
        let marks = [String](repeating: "?", count: stored.count).joined(separator: ", ")
        return
            "INSERT OR ABORT INTO main.\(name.quotedIdentifier) (\(stored.joined(separator: ", "))) VALUES (\(marks))"
    }
}
