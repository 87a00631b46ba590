internal import SQLiteEngine

/// The stored columns of a table, and the statements that read and write all of its rows.
struct TableLayout {
    /// The name for messages.
    let name: String
    /// The bytes of the stored name, which need not be UTF-8.
    let identifier: [UInt8]
    /// The names of the stored columns. Generated columns are left out, because they have no values of their own. `nil`
    /// for a name that is not UTF-8.
    private let columns: [String?]
    /// Whether each column of the table is a stored one.
    private let isStoredWhole: Bool
    /// Whether a column belongs to a primary key.
    private let hasPrimaryKey: Bool
    /// A name of the row id that no column has; `nil` for tables WITHOUT ROWID.
    let rowID: String?

    /// All tables that store rows, sorted by name. This includes the tables behind virtual tables, but not the virtual
    /// tables. sqlite_sequence comes last, because inserting into tables with AUTOINCREMENT changes it.
    static func all(of connection: Connection) throws(DatabaseError) -> [TableLayout] {
        let names = try connection.prepare(
            """
            SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0
            ORDER BY name = 'sqlite_sequence', name COLLATE BINARY
            """
        )
        defer { names.close() }
        var result: [TableLayout] = []
        while try names.step() {
            result.append(try TableLayout(names.withBytes(at: 0) { Array($0) } ?? [], of: connection))
        }
        return result
    }

    private init(_ identifier: [UInt8], of connection: Connection) throws(DatabaseError) {
        self.identifier = identifier
        name = String(decoding: identifier, as: UTF8.self)
        // https://www.sqlite.org/pragma.html#pragma_table_xinfo
        let information = try connection.prepare(["PRAGMA main.table_xinfo(", quoted(identifier), ")"])
        defer { information.close() }
        var stored: [String?] = []
        var all: Set<String> = []
        var count = 0
        var hasPrimaryKey = false
        while try information.step() {
            let column = information.text(at: 1)
            if let column { all.insert(column.lowercased()) }
            if information.int64(at: 6) == 0 { stored.append(column) }
            if information.int64(at: 5) > 0 { hasPrimaryKey = true }
            count += 1
        }
        columns = stored
        (isStoredWhole, self.hasPrimaryKey) = (stored.count == count, hasPrimaryKey)
        var found: String?
        for candidate in ["rowid", "_rowid_", "oid"] where found == nil && !all.contains(candidate) {
            do throws(DatabaseError) {
                try connection.prepare(["SELECT \(candidate) FROM main.", quoted(identifier)]).close()
                found = candidate
            } catch {
                // The table has no row id by this name.
                guard error.code == SQLITE_ERROR else { throw error }
            }
        }
        rowID = found
    }

    // MARK: Rows

    /// How many columns a result has at most. https://www.sqlite.org/limits.html#max_column
    private static let mostColumns = 2000

    /// Every row, in the order of the table's B-tree.
    func rows(of connection: Connection) throws(DatabaseError) -> TableRows {
        let names = columns.compactMap { $0?.quotedIdentifier }
        // A column name that is not UTF-8 cannot be written in the statement. So all columns are read, including
        // generated ones.
        let values = (rowID.map { [$0] } ?? []) + (names.count == columns.count ? names : ["*"])
        // With its row id, a table can have one more.
        let most = TableLayout.mostColumns
        var parts = [try select(values.prefix(most), connection)]
        if values.count > most { parts.append(try select(values.dropFirst(most), connection)) }
        return TableRows(parts: parts)
    }

    private func select(_ values: ArraySlice<String>, _ connection: Connection) throws(DatabaseError) -> Statement {
        // SQLite takes an unknown name in double quotes for a text, unless it is qualified.
        // https://www.sqlite.org/quirks.html#dblquote
        let list = values.map { "s." + $0 }.joined(separator: ", ")
        let way: String
        if let rowID {
            way = "NOT INDEXED ORDER BY s.\(rowID)"
        } else {
            // SQLite may use any index for a table WITHOUT ROWID, even with NOT INDEXED. Its rows are in the B-tree of
            // its primary key.
            let indexes = try connection.prepare(["PRAGMA main.index_list(", quoted(identifier), ")"])
            defer { indexes.close() }
            var key: String?
            while try indexes.step() { if indexes.text(at: 3) == "pk" { key = indexes.text(at: 1) } }
            way = key.map { "INDEXED BY \($0.quotedIdentifier)" } ?? "NOT INDEXED"
        }
        return try connection.prepare(["SELECT \(list) FROM main.", quoted(identifier), " AS s \(way)"])
    }

    /// The first row id from this one on; `nil` if there is none, or if the table has no row ids. Reads nothing else of the
    /// row.
    func firstRow(from number: Int64, of connection: Connection) throws(DatabaseError) -> Int64? {
        guard let rowID else { return nil }
        return try firstRow("WHERE s.\(rowID) >= \(number) ORDER BY s.\(rowID)", connection)
    }

    /// The row id of the first row (`ASC`) or the last one (`DESC`); `nil` if there is none, or if the table has no row
    /// ids. Its first row is read then.
    func edge(_ order: String, of connection: Connection) throws(DatabaseError) -> Int64? {
        if let rowID { return try firstRow("ORDER BY s.\(rowID) \(order)", connection) }
        let rows = try rows(of: connection)
        defer { rows.close() }
        _ = try rows.step()
        return nil
    }

    private func firstRow(_ condition: String, _ connection: Connection) throws(DatabaseError) -> Int64? {
        guard let rowID else { return nil }
        let statement = try connection.prepare([
            "SELECT s.\(rowID) FROM main.", quoted(identifier), " AS s NOT INDEXED \(condition) LIMIT 1",
        ])
        defer { statement.close() }
        return try statement.step() ? statement.int64(at: 0) : nil
    }

    /// A statement that inserts one row, with the columns of ``rows(of:)``. OR ABORT overrides conflict clauses of the
    /// schema, which could drop or change a row.
    func insertion() throws(DatabaseError) -> String {
        let stored = (rowID.map { [$0] } ?? []) + (try names().map(\.quotedIdentifier))
        let marks = [String](repeating: "?", count: stored.count).joined(separator: ", ")
        return "\(inserting) (\(stored.joined(separator: ", "))) VALUES (\(marks))"
    }

    private var inserting: String { "INSERT OR ABORT INTO main.\(name.quotedIdentifier)" }

    /// The names of the stored columns.
    private func names() throws(DatabaseError) -> [String] {
        let names = columns.compactMap { $0 }
        guard names.count == columns.count, Array(name.utf8) == identifier else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message: """
                    The name of the table \(name), or of a column of it, is not UTF-8, so that it cannot be made anew. \
                    Rename it with another tool, or copy the file as it is.
                    """
            )
        }
        return names
    }

    /// A statement that inserts all rows of the table with this name in another schema, with their row ids.
    /// - Parameter connection: one that has that schema as "main".
    /// - Returns: `nil` if no statement can read as many columns.
    func transfer(from schema: String, of connection: Connection) throws(DatabaseError) -> String? {
        let names = try names().map(\.quotedIdentifier)
        let table = "\(schema.quotedIdentifier).\(name.quotedIdentifier)"
        // Without columns, SQLite inserts records as they are, if the tables are alike. It also would copy indexes as they
        // are, and not make them anew, and row ids only if they are a column. In a table with row ids, a primary key that has
        // no index is one. https://www.sqlite.org/fileformat.html#representation_of_sql_tables
        if rowID != nil, hasPrimaryKey, isStoredWhole, try !hasIndex(connection) {
            return "\(inserting) SELECT * FROM \(table)"
        }
        let stored = (rowID.map { [$0] } ?? []) + names
        guard stored.count <= TableLayout.mostColumns else { return nil }
        let values = stored.map { "s." + $0 }.joined(separator: ", ")
        // Without an order, SQLite may read an index that has all of these columns. A table whose columns take all names of
        // the row id would get its rows in the order of that.
        let way = "NOT INDEXED" + (rowID.map { " ORDER BY s.\($0)" } ?? "")
        return "\(inserting) (\(stored.joined(separator: ", "))) SELECT \(values) FROM \(table) AS s \(way)"
    }

    private func hasIndex(_ connection: Connection) throws(DatabaseError) -> Bool {
        let indexes = try connection.prepare(["PRAGMA main.index_list(", quoted(identifier), ")"])
        defer { indexes.close() }
        return try indexes.step()
    }

    // MARK: Indexes

    /// The contents of each index, in the order of the index. Leaves out indexes for which the connection lacks a
    /// collation or function, and those whose names are not UTF-8.
    func indexes(of connection: Connection) throws(DatabaseError) -> [(name: String, rows: Statement)] {
        // https://www.sqlite.org/pragma.html#pragma_index_list
        let list = try connection.prepare(["PRAGMA main.index_list(", quoted(identifier), ")"])
        defer { list.close() }
        var result: [(name: String, rows: Statement)] = []
        while try list.step() {
            // In a table WITHOUT ROWID, the index of the primary key is the table itself.
            guard let index = list.text(at: 1), rowID != nil || list.text(at: 3) != "pk" else { continue }
            // Expressions in an index have no column name.
            let names = try connection.texts("PRAGMA main.index_xinfo(\(index.quotedIdentifier))", column: 2)
            let values = names.filter { !$0.isEmpty }.map(\.quotedIdentifier) + (rowID.map { [$0] } ?? [])
            guard !values.isEmpty else { continue }
            let selection = values.map { "s." + $0 }.joined(separator: ", ")
            // SQLite uses a partial index only if the query has the condition of the index.
            let condition = list.int64(at: 4) == 0 ? [] : try condition(ofIndex: index, connection)
            do throws(DatabaseError) {
                let rows = try connection.prepare([
                    "SELECT \(selection) FROM main.", quoted(identifier), " AS s INDEXED BY \(index.quotedIdentifier) ",
                    condition,
                ])
                result.append((index, rows))
            } catch {
                guard error.code == SQLITE_ERROR else { throw error }
            }
        }
        return result
    }

    /// The WHERE clause of a partial index: the end of its SQL, after the columns.
    /// https://www.sqlite.org/partialindex.html
    private func condition(ofIndex index: String, _ connection: Connection) throws(DatabaseError) -> [UInt8] {
        let statement = try connection.prepare("SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?")
        defer { statement.close() }
        try statement.bind(index, at: 1)
        guard try statement.step() else { return [] }
        return statement.withBytes(at: 0) { bytes in
            let bytes = bytes.bindMemory(to: UInt8.self)
            var tokens = SQLTokenizer(bytes)
            var depth = 0
            while let token = tokens.next() {
                let first = bytes[token.range.lowerBound]
                if first == UInt8(ascii: "(") { depth += 1 }
                guard first == UInt8(ascii: ")") else { continue }
                depth -= 1
                if depth == 0 { return Array(bytes[token.range.upperBound...]) }
            }
            return []
        } ?? []
    }
}

/// The rows of a table. With many columns, each row comes in two parts, from two statements.
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

/// A piece of SQL: a text, or the bytes of a name.
private protocol SQLPiece {
    var bytes: [UInt8] { get }
}

extension String: SQLPiece {
    fileprivate var bytes: [UInt8] { Array(utf8) }
}

extension [UInt8]: SQLPiece {
    fileprivate var bytes: [UInt8] { self }
}

/// Quotes a name like `quotedIdentifier`, but as bytes.
private func quoted(_ identifier: [UInt8]) -> [UInt8] {
    let quote = UInt8(ascii: "\"")
    return [quote] + identifier.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
}

extension Connection {
    fileprivate func prepare(_ pieces: [any SQLPiece]) throws(DatabaseError) -> Statement {
        try pieces.flatMap(\.bytes).withUnsafeBufferPointer { bytes throws(DatabaseError) in
            try prepare(bytes, from: 0).0
        }
    }
}
