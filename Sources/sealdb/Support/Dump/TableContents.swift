import SealedDB

/// Which columns of a table have to be written, so that its rows can be made again.
///
/// It is asked by pragmas as statements: a table of the store could have the name of a pragma's function.
struct TableContents {
    let table: String
    /// The names of the columns, of which the first may be that of the row id.
    let columns: [String]
    /// Selects these columns from the table itself: a damaged index could leave out rows.
    let query: String

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
        var (all, stored, keys): ([String], [String], [String]) = ([], [], [])
        while try rows.nextWithError() {
            let name = rows.string(forColumn: "name") ?? ""
            all.append(name)
            if rows.int(forColumn: "pk") > 0 { keys.append(rows.string(forColumn: "type") ?? "") }
            // Neither generated columns nor the hidden ones of virtual tables can be written.
            let form = rows.int(forColumn: "hidden")
            if form == 0 || form == 1 && hidden.contains(name.foldedForSQL) { stored.append(name) }
        }
        // An INTEGER PRIMARY KEY that is declared DESC has an index of its own, and is not the row id.
        let indexes = try database.executeQuery("PRAGMA main.index_list(\(identifier: table))")
        defer { indexes.close() }
        var hasIndex = false
        while try indexes.nextWithError() { if indexes.string(forColumn: "origin") == "pk" { hasIndex = true } }
        let isShown = keys.count == 1 && keys[0].foldedForSQL == "integer" && !hasIndex
        let taken = Set(all.map { ExactText(name: $0) })
        let free = ["rowid", "_rowid_", "oid"].first { !taken.contains(ExactText($0)) }
        columns = (hasRowID && !isShown ? free.map { [$0] } ?? [] : []) + stored
        query =
            "SELECT \(columns.map(SQLLiteral.name).joined(separator: ", ")) FROM main.\(SQLLiteral.name(table))"
            + (isVirtual ? "" : " NOT INDEXED")
    }
}
