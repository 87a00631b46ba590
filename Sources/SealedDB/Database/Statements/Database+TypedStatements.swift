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
        let statement = try start(sql, given: SQL.count(repeat (each Value).self))
        var slot = ParameterSlot(statement: statement)
        func bind<Next: Bindable>(_ value: Next) throws(DatabaseError) {
            slot.position += 1
            try value.bind(to: slot)
        }
        do throws(DatabaseError) {
            _ = (repeat try bind(each values))
        } catch {
            throw failed(statement, error)
        }
        try finishUpdate(statement, slot.round)
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
        let statement = try start(sql, given: SQL.count(repeat (each Value).self))
        var slot = ParameterSlot(statement: statement)
        func bind<Next: Bindable>(_ value: Next) throws(DatabaseError) {
            slot.position += 1
            try value.bind(to: slot)
        }
        do throws(DatabaseError) {
            _ = (repeat try bind(each values))
        } catch {
            throw failed(statement, error)
        }
        return try resultSet(of: statement, sql, slot.round)
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

    /// Prepares the statement, and binds the values that the text has of its own.
    @usableFromInline
    func start(_ sql: SQL, given: Int) throws(DatabaseError) -> Statement {
        try recording("Database.executeUpdate or executeQuery") { () throws(DatabaseError) in
            try sql.requireUsable()
            let statement = try prepareOne(sql.text)
            do throws(DatabaseError) {
                guard sql.values.isEmpty else {
                    guard given == 0 else {
                        throw SQL.unusable(
                            "it has values of its own, so that others cannot be added.",
                            sql: statement.sql
                        )
                    }
                    try statement.bind(sql.values)
                    return statement
                }
                _ = try statement.beginBinding(given)
            } catch {
                statement.close()
                throw error
            }
            return statement
        }
    }

    /// Ends a statement whose values could not be bound.
    @usableFromInline
    func failed(_ statement: Statement, _ error: DatabaseError) -> DatabaseError {
        statement.close()
        return recorded(error)
    }

    @usableFromInline
    func finishUpdate(_ statement: Statement, _ round: Int32) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            defer { statement.close() }
            try statement.endBinding(round)
            trace(statement)
            while try statement.step() {}
        }
    }

    @usableFromInline
    func resultSet(of statement: Statement, _ sql: SQL, _ round: Int32) throws(DatabaseError) -> ResultSet {
        do throws(DatabaseError) {
            try statement.endBinding(round)
        } catch {
            throw failed(statement, error)
        }
        trace(statement)
        return ResultSet(statement: statement, database: self, sql: sql.text, isPrepared: false)
    }
}

extension SQL {
    /// How many types there are.
    @inlinable
    static func count<each Value>(_ types: repeat (each Value).Type) -> Int {
        var count = 0
        for _ in repeat each types { count += 1 }
        return count
    }
}
