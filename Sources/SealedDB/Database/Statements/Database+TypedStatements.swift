/// Statements with typed values, which need no dynamic casts and no boxing.
///
/// Pass SQL as a literal or as ``SQL``; interpolated values are bound. Otherwise, pass one value for each placeholder;
/// the text may then also come from a `String`.
extension Database {
    /// Executes one statement that changes the database.
    ///
    /// ```swift
    /// try db.executeUpdate("INSERT INTO person (name, age) VALUES (\(name), \(age))")
    /// try db.executeUpdate("INSERT INTO person (name, age) VALUES (?, ?)", name, age)
    /// ```
    /// Rows that the statement returns are ignored.
    /// - Throws: ``DatabaseError``, such as for several statements, and for missing or surplus values.
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

    /// Like ``executeUpdate(_:_:)-(_,Value)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func executeUpdate<First: Bindable, each Value: Bindable>(
        _ sql: some StringProtocol,
        _ first: First,
        _ values: repeat each Value
    ) throws(DatabaseError) {
        try executeUpdate(SQL(raw: String(sql)), first, repeat each values)
    }

    /// Prepares a query. It runs when the first row is requested.
    ///
    /// ```swift
    /// let rows = try db.executeQuery("SELECT name FROM person WHERE age > \(18)")
    /// while try rows.nextWithError() { print(try rows.value(String.self, forColumn: "name")) }
    /// ```
    /// - Throws: ``DatabaseError``, such as for several statements, and for missing or surplus values.
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

    /// Like ``executeQuery(_:_:)-(_,Value)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func executeQuery<First: Bindable, each Value: Bindable>(
        _ sql: some StringProtocol,
        _ first: First,
        _ values: repeat each Value
    ) throws(DatabaseError) -> ResultSet {
        try executeQuery(SQL(raw: String(sql)), first, repeat each values)
    }

    // If a `String` is passed without values, they may have been inserted into its text:
    // `"… = '\(name)' " + order`.

    @available(*, unavailable, message: "Make the variable an SQL, or write SQL(raw:) if no value was spliced in.")
    public func executeUpdate(_ sql: String) throws(DatabaseError) { fatalError() }

    @available(*, unavailable, message: "Make the variable an SQL, or write SQL(raw:) if no value was spliced in.")
    public func executeQuery(_ sql: String) throws(DatabaseError) -> ResultSet { fatalError() }

    // MARK: Parts of the calls above that do not depend on types, so that only the binding is compiled for each use

    /// Prepares the statement, and binds the values that belong to the SQL.
    @usableFromInline
    func start(_ sql: SQL, given: Int) throws(DatabaseError) -> Statement {
        try recording("Database.executeUpdate or executeQuery") { () throws(DatabaseError) in
            let statement = try prepareOne(sql)
            do throws(DatabaseError) {
                if try !statement.bindValues(of: sql, given: given) { _ = try statement.beginBinding(given) }
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
    /// Returns the number of types.
    @inlinable
    static func count<each Value>(_ types: repeat (each Value).Type) -> Int {
        var count = 0
        for _ in repeat each types { count += 1 }
        return count
    }
}
