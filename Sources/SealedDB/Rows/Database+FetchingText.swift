public import Foundation

/// The same queries for text in a `String`, with one value for each placeholder. If the text has no placeholders, pass
/// it as ``SQL``.
extension Database {
    /// Like ``query(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func query<Value: Decodable, First: Bindable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Rows<Value> {
        try query(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``query(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func query<Value: ColumnReadable & Decodable, First: Bindable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Rows<Value> {
        try query(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``query(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func query<each Column: ColumnReadable, First: Bindable, each Argument: Bindable>(
        _ type: (repeat each Column).Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Rows<(repeat each Column)> {
        try query(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``all(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func all<Value: Decodable, First: Bindable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Value] {
        try all(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``all(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func all<Value: ColumnReadable & Decodable, First: Bindable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Value] {
        try all(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``all(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func all<each Column: ColumnReadable, First: Bindable, each Argument: Bindable>(
        _ type: (repeat each Column).Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [(repeat each Column)] {
        try all(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``first(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func first<Value: Decodable, First: Bindable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Value? {
        try self.first(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``first(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func first<Value: ColumnReadable & Decodable, First: Bindable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Value? {
        try self.first(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``first(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func first<each Column: ColumnReadable, First: Bindable, each Argument: Bindable>(
        _ type: (repeat each Column).Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> (repeat each Column)? {
        try self.first(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``scalar(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func scalar<Value: ColumnReadable, First: Bindable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Value? {
        try scalar(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``dictionary(_:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func dictionary<
        Key: ColumnReadable & Hashable,
        Value: ColumnReadable,
        First: Bindable,
        each Argument: Bindable
    >(
        _ type: (Key, Value).Type,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Key: Value] {
        try dictionary(type, SQL(raw: sql), first, repeat each values)
    }

    /// Like ``dictionary(_:keyedBy:_:_:)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func dictionary<
        Key: ColumnReadable & Hashable,
        Value: Decodable,
        First: Bindable,
        each Argument: Bindable
    >(
        _ type: Value.Type,
        keyedBy column: String,
        _ sql: String,
        _ first: First,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Key: Value] {
        try dictionary(type, keyedBy: column, SQL(raw: sql), first, repeat each values)
    }

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
