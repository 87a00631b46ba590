internal import SQLiteEngine

/// Rows from one database into another, value by value as SQLite has them.
extension Statement {
    /// Binds a column of the row that `source` stands on: same type, same bytes.
    /// https://www.sqlite.org/c3ref/bind_blob.html
    func bind(column: Int32, of source: Statement, at index: Int32) throws(DatabaseError) {
        guard let pointer, let row = source.pointer else { throw .statementClosed }
        let code = sqlite3_bind_value(pointer, index, sqlite3_column_value(row, column))
        guard code == SQLITE_OK else { throw connection.error(sql: sql) }
    }
}
