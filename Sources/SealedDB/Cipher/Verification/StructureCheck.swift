/// SQLite's own check of a database's structure. https://www.sqlite.org/pragma.html#pragma_quick_check
struct StructureCheck {
    let connection: Connection

    /// What is wrong, in SQLite's words.
    func problems(_ pragma: String) throws(DatabaseError) -> [String] {
        let rows: [String]
        do throws(DatabaseError) {
            rows = try connection.texts("PRAGMA \(pragma)")
        } catch {
            guard error.code == SQLITE_ERROR else { throw error }
            rows = try tableByTable()
        }
        return rows.filter { $0 != "ok" }
    }

    /// What is wrong with pages and trees; rows are not compared with the constraints of their tables.
    func pageProblems(goesOn: () -> Bool) throws(DatabaseError) -> [String] {
        do throws(DatabaseError) {
            return try connection.pageProblems(goesOn: goesOn)
        } catch {
            guard error.code == SQLITE_ERROR else { throw error }
            return try tableByTable().filter { $0 != "ok" }
        }
    }

    /// The schema names a collation, function or tokenizer that only the program has that wrote it. All pages are checked
    /// that belong to tables and indexes; what those rows mean to that program is not.
    private func tableByTable() throws(DatabaseError) -> [String] {
        try connection.run("PRAGMA ignore_check_constraints = ON")
        connection.acceptUnknownCollations()
        var rows: [String] = []
        for name in try connection.texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0") {
            rows += try connection.texts("PRAGMA quick_check('\(name.replacing("'", with: "''"))')")
        }
        return rows
    }
}
