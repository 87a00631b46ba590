/// Queries that return their rows as Swift values.
///
/// | type | result of a row |
/// |---|---|
/// | `Person.self`, a Decodable type | a value, read by column names; see ``ResultSet/rows(_:)-(Value.Type)`` |
/// | `(Int, String?).self` | a tuple of the columns, in their order |
/// | `Int.self`, a ``ColumnReadable`` type | the value of the first column |
///
/// SQL is passed as in ``Database/executeQuery(_:_:)``.
extension Database {
    /// Runs a query, and returns its rows one at a time.
    @inlinable
    public func query<Value: Decodable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Rows<Value> {
        try executeQuery(sql, repeat each values).rows(type)
    }

    /// Like ``query(_:_:_:)``; a row is the value of its first column.
    @inlinable
    public func query<Value: ColumnReadable & Decodable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Rows<Value> {
        try executeQuery(sql, repeat each values).rows(type)
    }

    /// Like ``query(_:_:_:)``; a row is a tuple of its columns.
    @inlinable
    public func query<each Column: ColumnReadable, each Argument: Bindable>(
        _ type: (repeat each Column).Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Rows<(repeat each Column)> {
        try executeQuery(sql, repeat each values).rows(type)
    }

    /// Returns all rows of a query.
    @inlinable
    public func all<Value: Decodable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Value] {
        try query(type, sql, repeat each values).all()
    }

    /// Like ``all(_:_:_:)``; a row is the value of its first column.
    @inlinable
    public func all<Value: ColumnReadable & Decodable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Value] {
        try query(type, sql, repeat each values).all()
    }

    /// Like ``all(_:_:_:)``; a row is a tuple of its columns.
    @inlinable
    public func all<each Column: ColumnReadable, each Argument: Bindable>(
        _ type: (repeat each Column).Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [(repeat each Column)] {
        try query(type, sql, repeat each values).all()
    }

    /// Returns the first row of a query; `nil` if there is none. Further rows are not read, unless the statement
    /// writes. A writing statement runs to its end, so its changes are committed, or the call throws.
    @inlinable
    public func first<Value: Decodable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Value? {
        try first(of: query(type, sql, repeat each values))
    }

    /// Like ``first(_:_:_:)``; a row is the value of its first column.
    @inlinable
    public func first<Value: ColumnReadable & Decodable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Value? {
        try first(of: query(type, sql, repeat each values))
    }

    /// Like ``first(_:_:_:)``; a row is a tuple of its columns.
    @inlinable
    public func first<each Column: ColumnReadable, each Argument: Bindable>(
        _ type: (repeat each Column).Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> (repeat each Column)? {
        try first(of: query(type, sql, repeat each values))
    }

    /// Returns the first column of the first row; `nil` if there is no row or the value is NULL. A writing statement
    /// runs to its end.
    @inlinable
    public func scalar<Value: ColumnReadable, each Argument: Bindable>(
        _ type: Value.Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> Value? {
        try first((Value?).self, sql, repeat each values) ?? nil
    }

    /// Returns the first two columns of all rows as keys and values of a dictionary.
    ///
    /// ```swift
    /// let names = try db.dictionary((Int, String).self, "SELECT id, name FROM person")
    /// ```
    /// - Throws: ``DatabaseError`` if the query fails or two rows have the same key.
    @inlinable
    public func dictionary<Key: ColumnReadable & Hashable, Value: ColumnReadable, each Argument: Bindable>(
        _ type: (Key, Value).Type,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Key: Value] {
        let rows = try executeQuery(sql, repeat each values)
        defer { rows.close() }
        var result: [Key: Value] = [:]
        for (key, value) in try rows.rows(type).all() {
            guard result.updateValue(value, forKey: key) == nil else { throw rows.repeatedKey }
        }
        return result
    }

    /// Returns all rows as values of a Decodable type. The keys of the dictionary are the values of one column.
    ///
    /// ```swift
    /// let people: [Int: Person] = try db.dictionary(Person.self, keyedBy: "id", "SELECT * FROM person")
    /// ```
    /// - Throws: ``DatabaseError`` if the query fails or two rows have the same key.
    @inlinable
    public func dictionary<Key: ColumnReadable & Hashable, Value: Decodable, each Argument: Bindable>(
        _ type: Value.Type,
        keyedBy column: String,
        _ sql: SQL,
        _ values: repeat each Argument
    ) throws(DatabaseError) -> [Key: Value] {
        let rows = try executeQuery(sql, repeat each values)
        defer { rows.close() }
        let elements = rows.rows(type)
        var result: [Key: Value] = [:]
        while let element = try elements.next() {
            let key = try rows.value(Key.self, forColumn: column)
            guard result.updateValue(element, forKey: key) == nil else { throw rows.repeatedKey }
        }
        return result
    }

    @inlinable
    func first<Element>(of rows: Rows<Element>) throws(DatabaseError) -> Element? {
        let element = try rows.next()
        try rows.complete()
        return element
    }
}

extension ResultSet {
    @usableFromInline var repeatedKey: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "Two rows have the same key, so that a dictionary cannot hold both.",
            sql: prepared.sql
        )
    }
}
