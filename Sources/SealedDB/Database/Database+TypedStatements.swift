/// Statements with typed values: no dictionary of types is asked, and nothing is boxed.
///
/// SQL is given as a literal or as ``SQL``: what is interpolated in it is bound. Otherwise there is one value for each
/// placeholder, and the text may then also come from a `String`.
extension Database {
    /// Executes one statement that changes the database.
    ///
    /// ```swift
    /// try db.executeUpdate("INSERT INTO person (name, age) VALUES (\(name), \(age))")
    /// try db.executeUpdate("INSERT INTO person (name, age) VALUES (?, ?)", name, age)
    /// ```
    /// Rows that it returns are passed over.
    /// - Throws: ``DatabaseError``, also for more than one statement, and if values are missing or surplus.
    @inlinable
    public func executeUpdate<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) {
        var given = 0
        for _ in repeat (each Value).self { given += 1 }
        try executeUpdate(sql, given: given) { slot throws(DatabaseError) in
            for value in repeat each values {
                slot.position += 1
                try value.bind(to: slot)
            }
        }
    }

    /// As ``executeUpdate(_:_:)``, with text that is held in a variable.
    @_disfavoredOverload
    @inlinable
    public func executeUpdate<First: Bindable, each Value: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Value
    ) throws(DatabaseError) {
        try executeUpdate(SQL(raw: sql), first, repeat each values)
    }

    /// Prepares a query; it runs with the first row that is asked for.
    ///
    /// ```swift
    /// let rows = try db.executeQuery("SELECT name FROM person WHERE age > \(18)")
    /// while try rows.nextWithError() { print(try rows.value(String.self, forColumn: "name")) }
    /// ```
    /// - Throws: ``DatabaseError``, also for more than one statement, and if values are missing or surplus.
    @inlinable
    public func executeQuery<each Value: Bindable>(
        _ sql: SQL,
        _ values: repeat each Value
    ) throws(DatabaseError) -> ResultSet {
        var given = 0
        for _ in repeat (each Value).self { given += 1 }
        return try executeQuery(sql, given: given) { slot throws(DatabaseError) in
            for value in repeat each values {
                slot.position += 1
                try value.bind(to: slot)
            }
        }
    }

    /// As ``executeQuery(_:_:)``, with text that is held in a variable.
    @_disfavoredOverload
    @inlinable
    public func executeQuery<First: Bindable, each Value: Bindable>(
        _ sql: String,
        _ first: First,
        _ values: repeat each Value
    ) throws(DatabaseError) -> ResultSet {
        try executeQuery(SQL(raw: sql), first, repeat each values)
    }

    // A String without values of its own may have got them spliced in: `"… = '\(name)' " + order`.

    @available(*, unavailable, message: "Make the variable an SQL, or write SQL(raw:) if no value was spliced in.")
    public func executeUpdate(_ sql: String) throws(DatabaseError) { fatalError() }

    @available(*, unavailable, message: "Make the variable an SQL, or write SQL(raw:) if no value was spliced in.")
    public func executeQuery(_ sql: String) throws(DatabaseError) -> ResultSet { fatalError() }

    // MARK: What the calls above leave to the library, so that no more than the binding is compiled for their types

    @usableFromInline
    func executeUpdate(
        _ sql: SQL,
        given: Int,
        _ bind: (inout ParameterSlot) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try sql.requireUsable()
            try update(sql.text) { statement throws(DatabaseError) in
                try statement.bind(sql, given: given, dateFormat: dateFormat, bind)
            }
        }
    }

    @usableFromInline
    func executeQuery(
        _ sql: SQL,
        given: Int,
        _ bind: (inout ParameterSlot) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> ResultSet {
        try recording { () throws(DatabaseError) in try sql.requireUsable() }
        return try query(sql.text, isPrepared: false) { statement throws(DatabaseError) in
            try statement.bind(sql, given: given, dateFormat: dateFormat, bind)
        }
    }
}
