internal import SQLiteEngine

/// Readers without conversion, for ``Column``: they ask SQLite no more than they must. Without a row SQLite answers
/// NULL to all of them.
extension Statement {
    func storedType(at index: Int32) -> SqliteValueType {
        pointer.flatMap { SqliteValueType(rawValue: sqlite3_column_type($0, index)) } ?? .null
    }

    /// `nil` unless it is an INTEGER.
    func storedInteger(at index: Int32) -> Int64? {
        guard let pointer, sqlite3_column_type(pointer, index) == SqliteValueType.integer.rawValue else { return nil }
        return sqlite3_column_int64(pointer, index)
    }

    /// `nil` unless it is a REAL or an INTEGER.
    func storedNumber(at index: Int32) -> Double? {
        guard let pointer else { return nil }
        let type = sqlite3_column_type(pointer, index)
        guard type == SqliteValueType.float.rawValue || type == SqliteValueType.integer.rawValue else { return nil }
        return sqlite3_column_double(pointer, index)
    }

    /// `nil` unless it is a TEXT of valid UTF-8.
    func storedText(at index: Int32) -> String? {
        guard let pointer, sqlite3_column_type(pointer, index) == SqliteValueType.text.rawValue,
            let start = sqlite3_column_text(pointer, index)
        else { return nil }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, index)))
        return String(validating: bytes, as: UTF8.self)
    }
}
