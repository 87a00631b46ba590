import SealedDB

/// Which columns of a table have to be written, so that its rows can be made again.
///
/// It is asked by pragmas as statements: a table of the store could have the name of a pragma's function.
struct TableContents {
    let table: String
    /// The names of the columns, of which the first may be that of the row id.
    private(set) var columns: [String]
    /// The columns of the primary key, in its order.
    let primaryKey: [String]
    /// What the row id is called; `nil` if there is none, or no name for it.
    let rowID: String?
    private let isVirtual: Bool
    /// How the store keeps its texts.
    private let encoding: TextEncoding

    /// Selects the columns from the table itself: a damaged index could leave out rows.
    var query: String { selection + (isVirtual ? "" : " NOT INDEXED") }

    private var selection: String {
        let names = columns.map(SQLLiteral.name)
        // SQLite hands out texts in UTF-8. A text that is not valid UTF-16 becomes another one by that.
        let bytes = encoding.isUTF8 ? [] : names.map { "CASE typeof(\($0)) WHEN 'text' THEN CAST(\($0) AS BLOB) END" }
        return "SELECT \((names + bytes).joined(separator: ", ")) FROM main.\(SQLLiteral.name(table))"
    }

    /// The values of the row at which the result of ``query`` stands, in the order of ``columns``.
    func row(_ rows: ResultSet) -> [Cell] {
        let count = Int32(columns.count)
        return (0..<count).map { column in
            let cell = Cell(rows, column: column)
            guard !encoding.isUTF8, rows.type(forColumnIndex: column) == .text,
                let bytes = rows.data(forColumnIndex: column + count)
            else { return cell }
            if case .text(let text) = cell, encoding.bytes(of: text) == bytes { return cell }
            return .brokenText(bytes)
        }
    }

    /// Selects the columns of the rows for which a condition is true.
    func query(where condition: String) -> String { "\(selection) WHERE \(condition)" }

    /// The same without the row id, where no column shows it.
    var withoutRowID: TableContents {
        var contents = self
        if let rowID, !primaryKey.contains(where: { $0.isSame(as: rowID) }) {
            contents.columns.removeAll { $0.isSame(as: rowID) }
        }
        return contents
    }

    /// Finds the columns that store something. Where no column shows the row id, the row id comes first.
    /// https://www.sqlite.org/pragma.html#pragma_table_list
    init(_ table: String, in database: Database) throws {
        let list = try database.executeQuery("PRAGMA main.table_list(\(identifier: table))")
        defer { list.close() }
        var isWithoutRowID: Bool?
        while try list.nextWithError() {
            if list.string(forColumn: "schema") == "main" { isWithoutRowID = list.bool(forColumn: "wr") }
        }
        try self.init(table, in: database, hasRowID: isWithoutRowID == false, isVirtual: false)
    }

    /// - Parameter hidden: hidden columns of a virtual table that store something, in lower case.
    init(_ table: String, in database: Database, hasRowID: Bool, hidden: [String] = []) throws {
        try self.init(table, in: database, hasRowID: hasRowID, hidden: hidden, isVirtual: true)
    }

    private init(
        _ table: String,
        in database: Database,
        hasRowID: Bool,
        hidden: [String] = [],
        isVirtual: Bool
    ) throws {
        self.table = table
        let rows = try database.executeQuery("PRAGMA main.table_xinfo(\(identifier: table))")
        defer { rows.close() }
        var (all, stored): ([String], [String]) = ([], [])
        var keys: [(place: Int32, name: String, type: String)] = []
        while try rows.nextWithError() {
            let name = rows.string(forColumn: "name") ?? ""
            all.append(name)
            let place = rows.int(forColumn: "pk")
            if place > 0 { keys.append((place, name, rows.string(forColumn: "type") ?? "")) }
            // Neither generated columns nor the hidden ones of virtual tables can be written.
            let form = rows.int(forColumn: "hidden")
            if form == 0 || form == 1 && hidden.contains(name.foldedForSQL) { stored.append(name) }
        }
        // An INTEGER PRIMARY KEY that is declared DESC has an index of its own, and is not the row id.
        let indexes = try database.executeQuery("PRAGMA main.index_list(\(identifier: table))")
        defer { indexes.close() }
        var hasIndex = false
        while try indexes.nextWithError() { if indexes.string(forColumn: "origin") == "pk" { hasIndex = true } }
        let isShown = keys.count == 1 && keys[0].type.foldedForSQL == "integer" && !hasIndex
        let taken = Set(all.map { ExactText(name: $0) })
        let free = ["rowid", "_rowid_", "oid"].first { !taken.contains(ExactText($0)) }
        primaryKey = keys.sorted { $0.place < $1.place }.map(\.name)
        // An R-Tree shows its row id as its first column.
        rowID = isVirtual && !hasRowID ? stored.first : !hasRowID ? nil : isShown ? primaryKey[0] : free
        columns = (hasRowID && !isShown ? free.map { [$0] } ?? [] : []) + stored
        self.isVirtual = isVirtual
        encoding = try TextEncoding(of: database)
    }

    /// Calls `body` with the values of each row, in the order of ``columns``.
    func forEachRow(in database: Database, _ body: ([Cell]) throws -> Void) throws {
        let rows = try database.executeQuery(SQL(raw: query))
        defer { rows.close() }
        while try rows.nextWithError() { try body(row(rows)) }
    }
}
