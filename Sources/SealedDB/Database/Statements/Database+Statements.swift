import Foundation

/// FMDB's calls.
///
/// Each takes a literal as ``SQL``, so that its interpolated values are bound, and cannot change the statement. Text in
/// a `String` is executed as it is, as by FMDB: it must not contain values from outside.
extension Database {
    // MARK: Updates

    /// Executes one statement that changes the database, with one value for each `?`.
    ///
    /// Values may be the standard integers, `Double`, `Float`, `Bool`, strings, `Data`, `[UInt8]`, `Date`, `Decimal`,
    /// `UUID`, `URL`, `NSNumber`, `NSNull`, ``Bindable`` types, and optionals of these; any other type is an error.
    /// There must be one value for each parameter, and the text must be one statement. Rows that the statement returns
    /// are ignored.
    /// - Parameters:
    ///   - sql: one statement.
    ///   - arguments: the values; empty if they are interpolated in the literal.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func executeUpdate(_ sql: SQL, withArgumentsIn arguments: [Any]) -> Bool {
        unlessFailed { () throws(DatabaseError) in try executeUpdate(sql, values: arguments) } != nil
    }

    /// Like ``executeUpdate(_:withArgumentsIn:)-(SQL,_)``, but throws.
    public func executeUpdate(_ sql: SQL, values: [Any]?) throws(DatabaseError) {
        try update(sql, given: values?.count ?? 0) { statement throws(DatabaseError) in
            try statement.bind(all: values)
        }
    }

    /// Executes one statement with values for parameters of the form `:name`. The keys have no colon. Keys without a
    /// parameter are ignored.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func executeUpdate(_ sql: SQL, withParameterDictionary arguments: [AnyHashable: Any]) -> Bool {
        unlessFailed { () throws(DatabaseError) in
            try update(sql, given: arguments.count) { statement throws(DatabaseError) in
                try statement.bind(named: arguments)
            }
        } != nil
    }

    // MARK: Queries

    /// Prepares a query with one value for each `?`. It runs when `next()` is first called.
    /// - Returns: `nil` on failure; see ``lastError()``.
    @discardableResult
    public func executeQuery(_ sql: SQL, withArgumentsIn arguments: [Any]) -> ResultSet? {
        unlessFailed { () throws(DatabaseError) in try executeQuery(sql, values: arguments) }
    }

    /// Like ``executeQuery(_:withArgumentsIn:)-(SQL,_)``, but throws.
    @discardableResult
    public func executeQuery(_ sql: SQL, values: [Any]?) throws(DatabaseError) -> ResultSet {
        try query(sql, given: values?.count ?? 0) { statement throws(DatabaseError) in
            try statement.bind(all: values)
        }
    }

    /// Prepares a query with values for parameters of the form `:name`. Pass `nil` if there are no parameters.
    /// - Returns: `nil` on failure; see ``lastError()``.
    @discardableResult
    public func executeQuery(_ sql: SQL, withParameterDictionary arguments: [AnyHashable: Any]?) -> ResultSet? {
        unlessFailed { () throws(DatabaseError) in
            try query(sql, given: arguments?.count ?? 0) { statement throws(DatabaseError) in
                if let arguments {
                    try statement.bind(named: arguments)
                } else {
                    try statement.bind(all: nil)
                }
            }
        }
    }

    /// Prepares a statement that runs many times, with `bind(with:)` and `step()` or `next()`. Values that are
    /// interpolated in the literal are bound until others are.
    /// - Throws: ``DatabaseError`` if the text is not one valid statement, or a value cannot be bound.
    @discardableResult
    public func prepare(_ sql: SQL) throws(DatabaseError) -> ResultSet {
        try query(sql, given: 0, isPrepared: true) { _ in }
    }

    // MARK: Text in a string

    // Not plain `String`: the compiler (6.3) may prefer that for a literal, although it is disfavored, and interpolated
    // values would become text.

    /// Like ``executeUpdate(_:withArgumentsIn:)-(SQL,_)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func executeUpdate(_ sql: some StringProtocol, withArgumentsIn arguments: [Any]) -> Bool {
        executeUpdate(SQL(raw: String(sql)), withArgumentsIn: arguments)
    }

    /// Like ``executeUpdate(_:values:)-(SQL,_)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func executeUpdate(_ sql: some StringProtocol, values: [Any]?) throws(DatabaseError) {
        try executeUpdate(SQL(raw: String(sql)), values: values)
    }

    /// Like ``executeUpdate(_:withParameterDictionary:)-(SQL,_)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func executeUpdate(_ sql: some StringProtocol, withParameterDictionary arguments: [AnyHashable: Any]) -> Bool
    {
        executeUpdate(SQL(raw: String(sql)), withParameterDictionary: arguments)
    }

    /// Like ``executeQuery(_:withArgumentsIn:)-(SQL,_)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func executeQuery(_ sql: some StringProtocol, withArgumentsIn arguments: [Any]) -> ResultSet? {
        executeQuery(SQL(raw: String(sql)), withArgumentsIn: arguments)
    }

    /// Like ``executeQuery(_:values:)-(SQL,_)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func executeQuery(_ sql: some StringProtocol, values: [Any]?) throws(DatabaseError) -> ResultSet {
        try executeQuery(SQL(raw: String(sql)), values: values)
    }

    /// Like ``executeQuery(_:withParameterDictionary:)-(SQL,_)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func executeQuery(_ sql: some StringProtocol, withParameterDictionary arguments: [AnyHashable: Any]?)
        -> ResultSet?
    {
        executeQuery(SQL(raw: String(sql)), withParameterDictionary: arguments)
    }

    /// Like ``prepare(_:)-(SQL)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func prepare(_ sql: some StringProtocol) throws(DatabaseError) -> ResultSet {
        try prepare(SQL(raw: String(sql)))
    }

    // MARK: Shared

    /// - Parameters:
    ///   - given: how many values `bind` has for the statement.
    ///   - bind: called if the SQL has no values of its own.
    func update(
        _ sql: SQL,
        given: Int,
        bind: (Statement) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        try recording("Database.executeUpdate") { () throws(DatabaseError) in
            let statement = try prepareOne(sql)
            defer { statement.close() }
            if try !statement.bindValues(of: sql, given: given) { try bind(statement) }
            trace(statement)
            while try statement.step() {}
        }
    }

    func query(
        _ sql: SQL,
        given: Int,
        isPrepared: Bool = false,
        bind: (Statement) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> ResultSet {
        try recording("Database.executeQuery or prepare") { () throws(DatabaseError) in
            let statement = try prepareOne(sql)
            do throws(DatabaseError) {
                if try !statement.bindValues(of: sql, given: given) { try bind(statement) }
            } catch {
                statement.close()
                throw error
            }
            trace(statement)
            return ResultSet(statement: statement, database: self, sql: sql.text, isPrepared: isPrepared)
        }
    }

    func prepareOne(_ sql: SQL) throws(DatabaseError) -> Statement {
        try sql.requireUsable()
        do throws(DatabaseError) {
            return try prepareOne(sql.text)
        } catch {
            throw sql.explained(error)
        }
    }

    /// Prepares one statement. Throws if the text contains several; FMDB would silently ignore all but the first.
    func prepareOne(_ sql: String) throws(DatabaseError) -> Statement {
        let connection = try openConnection()
        let statement = try connection.prepare(sql)
        guard statement.pointer != nil else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "The text holds no statement."
            )
        }
        guard !statement.hasTail else {
            defer { statement.close() }
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: """
                    The text holds more than one statement. Nothing was executed; use execute(script:) or \
                    executeStatements.
                    """,
                sql: statement.sql
            )
        }
        return statement
    }
}
