internal import SQLiteEngine

/// Copies rows from one database to another, value by value and without conversion.
extension Statement {
    /// Binds a column of the present row of `source`, with the same type and the same bytes.
    /// https://www.sqlite.org/c3ref/bind_blob.html
    /// - Parameter isUTF16: whether the source stores texts in UTF-16.
    func bind(column: Int32, of source: Statement, at index: Int32, isUTF16: Bool) throws(DatabaseError) {
        guard let pointer, let row = source.pointer else { throw .statementClosed }
        let code: Int32
        if isUTF16, let text = source.textThatBeginsLikeAMark(at: column) {
            code = text.withUnsafeBytes { bytes in
                return sealeddb_bind_text16(pointer, index, bytes.baseAddress, sqlite3_uint64(bytes.count))
            }
        } else {
            code = sqlite3_bind_value(pointer, index, sqlite3_column_value(row, column))
        }
        guard code == SQLITE_OK else { throw connection.error(sql: sql) }
    }

    /// Returns a text that begins with U+FEFF or U+FFFE, with a byte order mark added in front: SQLite removes one
    /// mark. Returns `nil` for any other value.
    private func textThatBeginsLikeAMark(at column: Int32) -> [UInt16]? {
        guard let pointer, type(at: column) == .text, let text = sqlite3_column_text16(pointer, column) else {
            return nil
        }
        let count = Int(sqlite3_column_bytes16(pointer, column)) / 2
        let units = UnsafeBufferPointer(start: text.assumingMemoryBound(to: UInt16.self), count: count)
        guard let first = units.first, first == 0xfeff || first == 0xfffe else { return nil }
        return [0xfeff] + units
    }
}
