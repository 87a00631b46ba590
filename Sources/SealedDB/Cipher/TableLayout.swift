internal import SQLiteEngine

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
        guard !all.isEmpty else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message:
                    "The name of the table \(name) is not text in UTF-8, so that the table cannot be copied or compared."
            )
        }
        columns = stored
        let candidates = ["rowid", "_rowid_", "oid"].filter { !all.contains($0) }
        var found: String?
        for candidate in candidates where found == nil {
            do throws(DatabaseError) {
                try connection.prepare("SELECT \(candidate) FROM main.\(name.quotedIdentifier)").close()
                found = candidate
            } catch {
                // Not there.
                guard error.code == SQLITE_ERROR else { throw error }
            }
        }
        rowID = found
    }

    private var stored: [String] {
        (rowID.map { [$0] } ?? []) + columns.map(\.quotedIdentifier)
    }

    /// Every row, in the order of the table's tree.
    func rows(of connection: Connection) throws(DatabaseError) -> TableRows {
        // With the row id, a table can have one column more than a result. https://www.sqlite.org/limits.html#max_column
        let most = 2000
        var parts = [try connection.prepare(selection(stored.prefix(most)))]
        if stored.count > most { parts.append(try connection.prepare(selection(stored.dropFirst(most)))) }
        return TableRows(parts: parts)
    }

    private func selection(_ values: ArraySlice<String>) -> String {
        let order = rowID.map { " ORDER BY \($0)" } ?? ""
        // Unqualified, the name of a column that is not found is taken for a text. https://www.sqlite.org/quirks.html#dblquote
        let values = values.map { "s." + $0 }
        return "SELECT \(values.joined(separator: ", ")) FROM main.\(name.quotedIdentifier) AS s NOT INDEXED\(order)"
    }

    /// One row, with the columns of ``rows(of:)``. A conflict clause of the schema must not drop or change a row.
    var insertion: String {
        let marks = [String](repeating: "?", count: stored.count).joined(separator: ", ")
        return
            "INSERT OR ABORT INTO main.\(name.quotedIdentifier) (\(stored.joined(separator: ", "))) VALUES (\(marks))"
    }
}

/// The rows of a table, of which each may come in two parts.
struct TableRows {
    let parts: [Statement]

    func step() throws(DatabaseError) -> Bool {
        let hasFirst = try parts[0].step()
        for part in parts.dropFirst() where try part.step() != hasFirst {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: "A table has not as many rows in each of its columns."
            )
        }
        return hasFirst
    }

    func close() {
        for part in parts { part.close() }
    }
}
