/// Typed reading of the current row, and typed binding.
extension ResultSet {
    /// The value of a column in the current row, without any conversion that ``ColumnReadable`` does not name.
    /// - Throws: ``DatabaseError`` if the value is of another type, NULL for a type that is no optional, or not there.
    @inlinable
    public func value<Value: ColumnReadable>(
        _ type: Value.Type = Value.self,
        forColumnIndex columnIdx: Int32
    ) throws(DatabaseError) -> Value {
        let column = try column(at: columnIdx)
        do throws(DatabaseError) {
            return try Value(column: column)
        } catch {
            throw recorded(error)
        }
    }

    /// As ``value(_:forColumnIndex:)``, by the column's name as in ``columnIndex(forName:)``.
    @inlinable
    public func value<Value: ColumnReadable>(
        _ type: Value.Type = Value.self,
        forColumn columnName: String
    ) throws(DatabaseError) -> Value {
        try value(type, forColumnIndex: try index(forColumn: columnName))
    }

    /// Calls `body` with the bytes of a BLOB or TEXT, without copying them.
    ///
    /// They are SQLite's own, and valid only until `body` returns; it must not move or close the set.
    /// - Returns: what `body` returns; `nil` for NULL, and where there is no value.
    public func withUnsafeBytes<Result, Failure: Error>(
        forColumnIndex columnIdx: Int32,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        try prepared.withBytes(at: columnIdx, body)
    }

    /// As ``withUnsafeBytes(forColumnIndex:_:)``, by the column's name.
    public func withUnsafeBytes<Result, Failure: Error>(
        forColumn columnName: String,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        try withUnsafeBytes(forColumnIndex: columnIndex(forName: columnName), body)
    }

    /// Binds new values to a set from ``Database/prepare(_:)``, in the order of its parameters, and makes it ready to
    /// run.
    ///
    /// ```swift
    /// let insert = try db.prepare("INSERT INTO person (name, age) VALUES (?, ?)")
    /// for person in people {
    ///     try insert.bind(person.name, person.age)
    ///     try insert.stepWithError()
    /// }
    /// ```
    /// - Throws: ``DatabaseError``, also if values are missing or surplus; it does not run before values are bound.
    @inlinable
    public func bind<each Value: Bindable>(_ values: repeat each Value) throws(DatabaseError) {
        var given = 0
        for _ in repeat (each Value).self { given += 1 }
        try bind(given: given) { slot throws(DatabaseError) in
            for value in repeat each values {
                slot.position += 1
                try value.bind(to: slot)
            }
        }
    }

    @usableFromInline
    func bind(
        given: Int,
        _ bind: (inout ParameterSlot) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        guard let database = parentDB else { throw .statementClosed }
        prepared.reset()
        do throws(DatabaseError) {
            try prepared.bind(given: given, dateFormat: database.dateFormat, bind)
        } catch {
            throw recorded(error)
        }
        if case .some = database.recordedError { database.recordedError = nil }
    }

    // MARK: Shared

    /// Remembers an error of reading as that of the database.
    @usableFromInline
    func recorded(_ error: DatabaseError) -> DatabaseError {
        guard let parentDB else { return error }
        do throws(DatabaseError) {
            return try parentDB.recording { () throws(DatabaseError) -> DatabaseError in throw error }
        } catch {
            return error
        }
    }

    /// A column of the current row.
    @usableFromInline
    func column(at index: Int32) throws(DatabaseError) -> Column {
        try requireRow()
        guard index >= 0, index < prepared.columnCount else {
            throw missing("The row has \(prepared.columnCount) columns; there is none of index \(index).")
        }
        return Column(statement: prepared, dateFormat: parentDB?.dateFormat, index: index)
    }

    @usableFromInline
    func index(forColumn columnName: String) throws(DatabaseError) -> Int32 {
        try requireRow()
        let index = columnIndex(forName: columnName)
        guard index >= 0 else { throw missing(prepared.noColumn(columnName)) }
        return index
    }

    private func requireRow() throws(DatabaseError) {
        guard prepared.hasRow else {
            throw missing("The set stands on no row. Call nextWithError(), and read while it returns true.")
        }
    }

    func missing(_ message: String) -> DatabaseError {
        recorded(DatabaseError(extendedCode: SQLITE_RANGE, reason: .misuse, message: message, sql: prepared.sql))
    }
}

extension Statement {
    /// For errors.
    func noColumn(_ name: String) -> String {
        let names = (0..<columnCount).compactMap { columnName(at: $0) }.joined(separator: ", ")
        return "There is no column \"\(name)\". The columns are: \(names)."
    }
}
