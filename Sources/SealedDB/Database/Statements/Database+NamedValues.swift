/// Statements with typed values for named parameters.
///
/// A key is the name of a parameter of the form `:name`, `@name` or `$name`, without its first character. Each parameter
/// must have a value, and each key a parameter. https://www.sqlite.org/lang_expr.html#varparam
extension Database {
    /// Executes one statement that changes the database.
    ///
    /// ```swift
    /// try db.executeUpdate("UPDATE person SET seen = :now WHERE name = :name", ["now": Date(), "name": name])
    /// ```
    /// Rows that the statement returns are ignored.
    /// - Throws: ``DatabaseError``, such as for missing or surplus values.
    public func executeUpdate(_ sql: SQL, _ values: [String: (any Bindable)?]) throws(DatabaseError) {
        try update(sql, given: values.count) { statement throws(DatabaseError) in try statement.bind(values) }
    }

    /// Prepares a query. It runs when the first row is requested.
    /// - Throws: ``DatabaseError``, such as for missing or surplus values.
    public func executeQuery(_ sql: SQL, _ values: [String: (any Bindable)?]) throws(DatabaseError) -> ResultSet {
        try query(sql, given: values.count) { statement throws(DatabaseError) in try statement.bind(values) }
    }

    /// Like the form that takes ``SQL``, with text in a `String`.
    /// - Throws: ``DatabaseError``, such as for missing or surplus values.
    @_disfavoredOverload
    @inlinable
    public func executeUpdate(_ sql: some StringProtocol, _ values: [String: (any Bindable)?]) throws(DatabaseError) {
        try executeUpdate(SQL(raw: String(sql)), values)
    }

    /// Like the form that takes ``SQL``, with text in a `String`.
    /// - Throws: ``DatabaseError``, such as for missing or surplus values.
    @_disfavoredOverload
    @inlinable
    public func executeQuery(_ sql: some StringProtocol, _ values: [String: (any Bindable)?]) throws(DatabaseError)
        -> ResultSet
    {
        try executeQuery(SQL(raw: String(sql)), values)
    }
}

extension Statement {
    fileprivate func bind(_ values: [String: (any Bindable)?]) throws(DatabaseError) {
        let round = try beginBinding(Int(parameterCount))
        let names = parameterNames
        var slot = ParameterSlot(statement: self)
        for name in names.all {
            slot.position += 1
            // A dictionary takes names for equal that SQLite does not.
            guard let name, let found = values.index(forKey: name), values[found].key.isSame(as: name) else {
                throw SQL.unusable(
                    "there is no value for its parameter \(parameterName(at: slot.position) ?? "\(slot.position)").",
                    sql: sql
                )
            }
            if let value = values[found].value {
                try value.bind(to: slot)
            } else {
                try bindNull(at: slot.position)
            }
        }
        // Each name has a value. So there is a value without a name only if there are more values.
        guard values.count == names.count else {
            let unused = Set(values.keys).subtracting(names.all.compactMap { $0 }).sorted().joined(separator: ", ")
            throw SQL.unusable("it has no parameter with the name of these values: \(unused).", sql: sql)
        }
        try endBinding(round)
    }
}
