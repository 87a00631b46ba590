import SQLiteEngine

/// A row of a query, for as long as the statement stands on it.
public struct RawRow {
    let statement: OpaquePointer

    public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

    public func isBlob(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_BLOB }

    public func integer(_ column: Int32) -> Int { Int(sqlite3_column_int64(statement, column)) }

    /// Of a text in UTF-8, or of a blob.
    public func withBytes<T>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
        // A blob is fetched as it is; the length is asked for after the conversion that the fetch may make.
        let bytes =
            isBlob(column)
            ? sqlite3_column_blob(statement, column)
            : sqlite3_column_text(statement, column).map { UnsafeRawPointer($0) }
        return try body(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, column))))
    }
}
