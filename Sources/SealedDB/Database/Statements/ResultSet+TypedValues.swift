/// Typed reading of the current row and typed binding.
extension ResultSet {
    /// Returns the value of a column in the current row. Values are only converted as ``ColumnReadable`` describes.
    /// - Throws: ``DatabaseError`` if the value has another type, if it is NULL and the type is not optional, or if
    ///   there is no row or no such column.
    @inlinable
    public func value<Value: ColumnReadable>(
        _ type: Value.Type = Value.self,
        forColumnIndex columnIdx: Int32
    ) throws(DatabaseError) -> Value {
        // If the compiler knows the type, only the comparison that is true remains. The comparisons avoid
        // `init(column:)` for the usual types: the compiler (6.3) would not inline a protocol witness that throws a
        // typed error, even if it knows the type.
        if Value.self == Int64.self, let value = integer(columnIdx) {
            return unsafeBitCast(value, to: Value.self)
        } else if Value.self == Int.self, let value = integer(columnIdx) {
            return unsafeBitCast(Int(value), to: Value.self)
        } else if Value.self == Double.self, let value = number(columnIdx) {
            return unsafeBitCast(value, to: Value.self)
        } else if Value.self == String.self, let value = text(columnIdx) {
            return unsafeBitCast(value, to: Value.self)
        }
        let column = try column(at: columnIdx)
        do throws(DatabaseError) {
            return try Value(column: column)
        } catch {
            throw recorded(error)
        }
    }

    // These return `nil` if there is no row or no such column, or if the value has another type.

    @usableFromInline
    func integer(_ index: Int32) -> Int64? { prepared.hasColumn(index) ? prepared.storedInteger(at: index) : nil }

    @usableFromInline
    func number(_ index: Int32) -> Double? { prepared.hasColumn(index) ? prepared.storedNumber(at: index) : nil }

    @usableFromInline
    func text(_ index: Int32) -> String? { prepared.hasColumn(index) ? prepared.storedText(at: index) : nil }

    /// Like ``value(_:forColumnIndex:)``. The column is found by name, as in ``columnIndex(forName:)``.
    @inlinable
    public func value<Value: ColumnReadable>(
        _ type: Value.Type = Value.self,
        forColumn columnName: String
    ) throws(DatabaseError) -> Value {
        try value(type, forColumnIndex: try index(forColumn: columnName))
    }

    /// Calls `body` with the bytes of a BLOB or TEXT, without copying them.
    ///
    /// The bytes are SQLite's own, and valid only until `body` returns. `body` must not step or close the result set.
    /// - Returns: the result of `body`; `nil` for NULL, and if there is no value.
    /// - Throws: what `body` throws.
    public func withUnsafeBytes<Result, Failure: Error>(
        forColumnIndex columnIdx: Int32,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        try prepared.withBytes(at: columnIdx, body)
    }

    /// Like ``withUnsafeBytes(forColumnIndex:_:)``, with the column found by name.
    public func withUnsafeBytes<Result, Failure: Error>(
        forColumn columnName: String,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        try withUnsafeBytes(forColumnIndex: columnIndex(forName: columnName), body)
    }

    /// Binds new values to a statement from ``Database/prepare(_:)-(SQL)``, in the order of its parameters, and makes it
    /// ready to run.
    ///
    /// ```swift
    /// let insert = try db.prepare("INSERT INTO person (name, age) VALUES (?, ?)")
    /// for person in people {
    ///     try insert.bind(person.name, person.age)
    ///     try insert.stepWithError()
    /// }
    /// ```
    /// - Throws: ``DatabaseError``, such as for missing or surplus values. The statement does not run until values are
    ///   bound.
    @inlinable
    public func bind<each Value: Bindable>(_ values: repeat each Value) throws(DatabaseError) {
        var slot = try startBinding(SQL.count(repeat (each Value).self))
        func bind<Next: Bindable>(_ value: Next) throws(DatabaseError) {
            slot.position += 1
            try value.bind(to: slot)
        }
        do throws(DatabaseError) {
            _ = (repeat try bind(each values))
        } catch {
            throw recorded(error)
        }
        try endBinding(slot)
    }

    @inlinable
    func startBinding(_ given: Int) throws(DatabaseError) -> ParameterSlot {
        guard let slot = firstSlot(given) else { throw unbindable(given) }
        return slot
    }

    /// Returns the position before the first parameter; `nil` if the values cannot be bound.
    @usableFromInline
    func firstSlot(_ given: Int) -> ParameterSlot? {
        let isReset = prepared.isReset()
        // Begins to bind even if the former execution failed, so that the statement does not run again without its
        // values.
        return prepared.inUse && prepared.beginsBinding(given) && isReset ? ParameterSlot(statement: prepared) : nil
    }

    @usableFromInline
    @inline(never)
    func unbindable(_ given: Int) -> DatabaseError {
        recorded(prepared.takeEndFailure() ?? (prepared.inUse ? prepared.wrongCount(given) : .statementClosed))
    }

    @usableFromInline
    func endBinding(_ slot: borrowing ParameterSlot) throws(DatabaseError) {
        guard prepared.endsBinding(slot.round) else { throw recorded(prepared.incomplete(slot.round)) }
        if prepared.inUse { succeeded() }
    }

    // MARK: Shared

    /// Records an error of reading as an error of the database.
    @usableFromInline
    func recorded(_ error: DatabaseError) -> DatabaseError {
        parentDB?.recorded(error) ?? error
    }

    /// Returns a column of the current row.
    @usableFromInline
    func column(at index: Int32) throws(DatabaseError) -> Column {
        guard prepared.hasColumn(index) else { throw missing(index) }
        return Column(statement: prepared, index: index)
    }

    @inline(never)
    private func missing(_ index: Int32) -> DatabaseError {
        guard prepared.hasRow else { return noRow }
        return missing("The row has \(prepared.columnCount) columns; there is none of index \(index).")
    }

    @usableFromInline
    func index(forColumn columnName: String) throws(DatabaseError) -> Int32 {
        guard prepared.hasRow else { throw noRow }
        let index = columnIndex(forName: columnName)
        guard index >= 0 else { throw missing(prepared.noColumn(columnName)) }
        return index
    }

    private var noRow: DatabaseError {
        missing("The set stands on no row. Call nextWithError(), and read while it returns true.")
    }

    func missing(_ message: String) -> DatabaseError {
        recorded(DatabaseError(extendedCode: SQLITE_RANGE, reason: .misuse, message: message, sql: prepared.sql))
    }
}

extension Statement {
    /// Returns the message for an unknown column.
    func noColumn(_ name: String) -> String {
        let names = (0..<columnCount).compactMap { columnName(at: $0) }.joined(separator: ", ")
        return "There is no column \"\(name)\". The columns are: \(names)."
    }
}
