/// SQLite's own check of the structure of a database. https://www.sqlite.org/pragma.html#pragma_quick_check
struct StructureCheck {
    let connection: Connection

    /// The problems, in SQLite's words.
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

    /// The problems of pages and B-trees, in SQLite's words. Does not compare rows with the constraints of their
    /// tables.
    func pageProblems(goesOn: () -> Bool) throws(DatabaseError) -> [String] {
        do throws(DatabaseError) {
            return try connection.pageProblems(goesOn: goesOn)
        } catch {
            guard error.code == SQLITE_ERROR else { throw error }
            return try tableByTable().filter { $0 != "ok" }
        }
    }

    /// Checks each table separately. For schemas that name a collation, function or tokenizer that only the program
    /// that wrote them has. All pages of tables and indexes are checked, but not what the rows mean to that program.
    private func tableByTable() throws(DatabaseError) -> [String] {
        try connection.run("PRAGMA ignore_check_constraints = ON")
        connection.acceptUnknownCollations()
        var rows: [String] = []
        for name in try connection.texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0") {
            rows += try connection.texts("PRAGMA quick_check(\(name.quoted(by: "'")))")
        }
        return rows
    }
}
