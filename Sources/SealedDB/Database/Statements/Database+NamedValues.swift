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
        var unused = Set(values.keys)
        var slot = ParameterSlot(statement: self)
        while slot.position < parameterCount {
            slot.position += 1
            guard let name = parameterName(at: slot.position), let value = values[name.withoutSign] else {
                throw SQL.unusable(
                    "there is no value for its parameter \(parameterName(at: slot.position) ?? "\(slot.position)").",
                    sql: sql
                )
            }
            unused.remove(name.withoutSign)
            if let value {
                try value.bind(to: slot)
            } else {
                try bindNull(at: slot.position)
            }
        }
        guard unused.isEmpty else {
            let names = unused.sorted().joined(separator: ", ")
            throw SQL.unusable("it has no parameter with the name of these values: \(names).", sql: sql)
        }
        try endBinding(round)
    }
}

extension String {
    /// The name of a parameter without the sign that begins it.
    fileprivate var withoutSign: String { String(decoding: utf8.dropFirst(), as: UTF8.self) }
}
