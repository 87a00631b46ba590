public import Foundation

/// FMDB's queries for a single value: the first column of the first row; `nil` if there is no row or the value is NULL.
/// SQLite converts the value as in the reader of the same name; ``ResultSet/scalar(_:)`` does not convert. A writing
/// statement runs to its end, so its changes are committed, or the call throws.
extension Database {
    /// Reads the value like ``ResultSet/int(forColumnIndex:)``.
    /// - Throws: ``DatabaseError`` if the query fails, or if values are missing or surplus. No row is no error.
    public func intForQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> Int32? {
        try value(of: executeQuery(sql, repeat each values)) { $0.int(forColumnIndex: 0) }
    }

    /// Reads the value like ``ResultSet/long(forColumnIndex:)``.
    /// - Throws: ``DatabaseError`` if the query fails, or if values are missing or surplus. No row is no error.
    public func longForQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> Int? {
        try value(of: executeQuery(sql, repeat each values)) { $0.long(forColumnIndex: 0) }
    }

    /// Reads the value like ``ResultSet/bool(forColumnIndex:)``.
    /// - Throws: ``DatabaseError`` if the query fails, or if values are missing or surplus. No row is no error.
    public func boolForQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> Bool? {
        try value(of: executeQuery(sql, repeat each values)) { $0.bool(forColumnIndex: 0) }
    }

    /// Reads the value like ``ResultSet/double(forColumnIndex:)``.
    /// - Throws: ``DatabaseError`` if the query fails, or if values are missing or surplus. No row is no error.
    public func doubleForQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> Double? {
        try value(of: executeQuery(sql, repeat each values)) { $0.double(forColumnIndex: 0) }
    }

    /// Reads the value like ``ResultSet/string(forColumnIndex:)``.
    /// - Throws: ``DatabaseError`` if the query fails, or if values are missing or surplus. No row is no error.
    public func stringForQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> String? {
        try value(of: executeQuery(sql, repeat each values)) { $0.string(forColumnIndex: 0) }
    }

    /// Reads the value like ``ResultSet/data(forColumnIndex:)``.
    /// - Throws: ``DatabaseError`` if the query fails, or if values are missing or surplus. No row is no error.
    public func dataForQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> Data? {
        try value(of: executeQuery(sql, repeat each values)) { $0.data(forColumnIndex: 0) }
    }

    /// Reads the value like ``ResultSet/date(forColumnIndex:)``.
    /// - Throws: ``DatabaseError`` if the query fails, or if values are missing or surplus. No row is no error.
    public func dateForQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> Date? {
        try value(of: executeQuery(sql, repeat each values)) { $0.date(forColumnIndex: 0) }
    }

    private func value<Value>(
        of rows: ResultSet,
        _ read: (ResultSet) -> Value?
    ) throws(DatabaseError) -> Value? {
        defer { rows.close() }
        guard try rows.nextWithError() else { return nil }
        let value = rows.columnIndexIsNull(0) ? nil : read(rows)
        try rows.completeExecution()
        try rows.closeWithError()
        return value
    }
}

/// The same queries for text in a `String`, with one value for each placeholder. If the text has no placeholders, pass
/// it as ``SQL``.
extension Database {
    /// Like ``intForQuery(_:_:)``, with text in a `String`.
    @_disfavoredOverload
    public func intForQuery<First: Bindable, each Argument: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Int32? {
        try intForQuery(SQL(raw: sql), first, repeat each values)
    }

    /// Like ``longForQuery(_:_:)``, with text in a `String`.
    @_disfavoredOverload
    public func longForQuery<First: Bindable, each Argument: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Int? {
        try longForQuery(SQL(raw: sql), first, repeat each values)
    }

    /// Like ``boolForQuery(_:_:)``, with text in a `String`.
    @_disfavoredOverload
    public func boolForQuery<First: Bindable, each Argument: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Bool? {
        try boolForQuery(SQL(raw: sql), first, repeat each values)
    }

    /// Like ``doubleForQuery(_:_:)``, with text in a `String`.
    @_disfavoredOverload
    public func doubleForQuery<First: Bindable, each Argument: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Double? {
        try doubleForQuery(SQL(raw: sql), first, repeat each values)
    }

    /// Like ``stringForQuery(_:_:)``, with text in a `String`.
    @_disfavoredOverload
    public func stringForQuery<First: Bindable, each Argument: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> String? {
        try stringForQuery(SQL(raw: sql), first, repeat each values)
    }

    /// Like ``dataForQuery(_:_:)``, with text in a `String`.
    @_disfavoredOverload
    public func dataForQuery<First: Bindable, each Argument: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Data? {
        try dataForQuery(SQL(raw: sql), first, repeat each values)
    }

    /// Like ``dateForQuery(_:_:)``, with text in a `String`.
    @_disfavoredOverload
    public func dateForQuery<First: Bindable, each Argument: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Date? {
        try dateForQuery(SQL(raw: sql), first, repeat each values)
    }
}
