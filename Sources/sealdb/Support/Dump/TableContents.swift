import SealedDB

/// Which columns of a table have to be written, so that its rows can be made again.
struct TableContents {
    let table: String
    /// The names of the columns, of which the first may be that of the row id.
    let columns: [String]

    /// Selects these columns.
    var query: String {
        "SELECT \(columns.map(SQLLiteral.name).joined(separator: ", ")) FROM main.\(SQLLiteral.name(table))"
    }

    /// Finds the columns that store something. Where no column shows the row id, the row id comes first.
    /// https://www.sqlite.org/pragma.html#pragma_table_xinfo
    init(_ table: String, in database: Database) throws {
        let isWithoutRowID = try database.scalar(
            Bool.self,
            "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = \(table)"
        )
        try self.init(table, in: database, hasRowID: isWithoutRowID == false)
    }

    /// - Parameter hidden: hidden columns of a virtual table that store something.
    init(_ table: String, in database: Database, hasRowID: Bool, hidden: [String] = []) throws {
        self.table = table
        let all = try database.all(
            (String, String, Int, Int).self,
            "SELECT name, upper(type), pk, hidden FROM pragma_table_xinfo(\(table))"
        )
        // Neither generated columns nor the hidden ones of virtual tables can be written.
        let stored = all.filter { $0.3 == 0 || $0.3 == 1 && hidden.contains($0.0.lowercased()) }.map(\.0)
        let key = all.filter { $0.2 > 0 }
        // An INTEGER PRIMARY KEY that is declared DESC has an index of its own, and is not the row id.
        let hasIndex = try database.scalar(
            Bool.self,
            "SELECT EXISTS (SELECT 1 FROM pragma_index_list(\(table)) WHERE origin = 'pk')"
        )
        let isShown = key.count == 1 && key[0].1 == "INTEGER" && hasIndex == false
        let taken = Set(all.map { $0.0.lowercased() })
        let free = ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
        columns = (hasRowID && !isShown ? free.map { [$0] } ?? [] : []) + stored
    }
}
