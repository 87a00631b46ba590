internal import SQLiteEngine

/// Copies rows from one database to another, value by value and without conversion.
extension Statement {
    /// Binds a column of the present row of `source`, with the same type and the same bytes.
    /// https://www.sqlite.org/c3ref/bind_blob.html
    /// - Parameter isUTF16: whether the source stores texts in UTF-16.
    func bind(column: Int32, of source: Statement, at index: Int32, isUTF16: Bool) throws(DatabaseError) {
        guard let pointer, let row = source.pointer else { throw .statementClosed }
        if isUTF16, let text = source.textThatBeginsLikeAMark(at: column) {
            return try bindUnits(text, at: index)
        }
        guard sqlite3_bind_value(pointer, index, sqlite3_column_value(row, column)) == SQLITE_OK else {
            throw connection.error(sql: sql)
        }
    }

    /// Binds a text in UTF-16, which need not be valid.
    func bind(_ units: [UInt16], at index: Int32) throws(DatabaseError) {
        // SQLite removes one byte order mark.
        try bindUnits(Statement.beginsLikeAMark(units) ? [0xfeff] + units : units, at: index)
    }

    private func bindUnits(_ units: [UInt16], at index: Int32) throws(DatabaseError) {
        guard let pointer else { throw .statementClosed }
        let code = units.withUnsafeBytes { bytes in
            // Without an address SQLite would bind NULL.
            sealeddb_bind_text16(pointer, index, bytes.baseAddress ?? Statement.emptyText, sqlite3_uint64(bytes.count))
        }
        guard code == SQLITE_OK else { throw connection.error(sql: sql) }
    }

    // @unchecked: nobody reads or writes through it, because texts that begin there have no bytes.
    nonisolated(unsafe) private static let emptyText = UnsafeRawPointer(
        UnsafeMutablePointer<UInt16>.allocate(capacity: 1)
    )

    private static func beginsLikeAMark(_ units: some Collection<UInt16>) -> Bool {
        units.first == 0xfeff || units.first == 0xfffe
    }

    /// Returns a text that begins with U+FEFF or U+FFFE, with a byte order mark added in front: SQLite removes one
    /// mark. Returns `nil` for any other value.
    private func textThatBeginsLikeAMark(at column: Int32) -> [UInt16]? {
        guard let pointer, type(at: column) == .text, let text = sqlite3_column_text16(pointer, column) else {
            return nil
        }
        let count = Int(sqlite3_column_bytes16(pointer, column)) / 2
        let units = UnsafeBufferPointer(start: text.assumingMemoryBound(to: UInt16.self), count: count)
        guard Statement.beginsLikeAMark(units) else { return nil }
        return [0xfeff] + units
    }
}
