internal import SQLiteEngine

/// Rows as bytes, without a Swift value for each of theirs. Different rows have different bytes.
extension Statement {
    /// Writes the present row. Call it within ``Connection/holdingMutex(_:)``.
    /// - Parameter isUTF16: whether the database stores texts in UTF-16. They are written so, because a conversion would make
    ///   texts equal that are not valid.
    /// - Returns: how many bytes were written; `nil` if there is no room for them.
    @inline(__always)
    func write(into buffer: UnsafeMutableRawBufferPointer, isUTF16: Bool) throws(DatabaseError) -> Int? {
        guard hasRow, let pointer, let start = buffer.baseAddress else { throw .statementClosed }
        let count = sealeddb_write_row(
            pointer,
            sqlite3_column_count(pointer),
            isUTF16 ? 1 : 0,
            start.assumingMemoryBound(to: UInt8.self),
            sqlite3_uint64(buffer.count)
        )
        if count == -2 { throw .noMemoryForValue }
        return count < 0 ? nil : Int(count)
    }

    /// Hands out the same bytes in pieces, for rows of any size. Call it within ``Connection/holdingMutex(_:)``.
    func forEachPiece(
        isUTF16: Bool,
        _ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        guard hasRow, let pointer else { throw .statementClosed }
        for column in 0..<sqlite3_column_count(pointer) {
            var value = sealeddb_row_value()
            guard sealeddb_read_value(pointer, column, isUTF16 ? 1 : 0, &value) != 0 else { throw .noMemoryForValue }
            var head = (UInt64(0), UInt64(0))
            try withUnsafeMutableBytes(of: &head) { (head) throws(DatabaseError) in
                let start = head.baseAddress?.assumingMemoryBound(to: UInt8.self)
                let count = sealeddb_write_head(&value, start)
                try body(UnsafeRawBufferPointer(rebasing: head[..<Int(count)]))
            }
            if value.count > 0 { try body(UnsafeRawBufferPointer(start: value.bytes, count: Int(value.count))) }
        }
        try withUnsafeBytes(of: UInt8(0xff), body)
    }
}

extension Connection {
    /// Keeps other threads from the connection during the call, so that SQLite need not take its mutex for each value.
    /// https://www.sqlite.org/c3ref/db_mutex.html
    func holdingMutex<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        // A connection with a gate has none.
        guard let handle, let mutex = sqlite3_db_mutex(handle) else { return try body() }
        // These return nothing.
        sqlite3_mutex_enter(mutex)
        defer { sqlite3_mutex_leave(mutex) }
        return try body()
    }
}

extension DatabaseError {
    fileprivate static var noMemoryForValue: DatabaseError {
        DatabaseError(extendedCode: SQLITE_NOMEM, message: "There is no memory for a value. Nothing was changed.")
    }
}
