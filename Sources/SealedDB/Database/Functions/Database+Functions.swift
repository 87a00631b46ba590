public import Foundation

/// Functions and collations written in Swift. They are added again whenever the database is reopened. They are released
/// when they are replaced or removed, and with the database.
///
/// The database retains the closures: a closure that captures the database keeps it alive for ever, so capture it
/// `unowned`. A closure may run other statements on its database.
///
/// If a closure throws, the statement fails and changes nothing, and its caller gets the error: a ``DatabaseError`` as
/// it is, any other error as the ``DatabaseError/underlyingError`` of one with the reason
/// ``DatabaseError/Reason/closureFailed``.
extension Database {
    /// Adds a function, or replaces the function with this name and number of arguments.
    ///
    ///     try db.addFunction("slug", argumentCount: 1, options: .deterministic) { arguments in
    ///         SQLValue(arguments.text(at: 0)?.lowercased().replacing(" ", with: "-"))
    ///     }
    ///
    /// - Parameters:
    ///   - name: 1 to 255 bytes. You may replace a built-in function of SQLite. It is back when the database is
    ///     reopened without the replacement.
    ///   - argumentCount: the number of arguments; `nil`, the default, for any number.
    ///   - options: by default, only your own statements may call the function, and the schema may not.
    ///   - body: makes the result of the arguments. What it throws fails the statement.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement may be calling the function that is
    ///   replaced, and `SQLITE_MISUSE` if the database is not open. Nothing is added then.
    /// https://www.sqlite.org/c3ref/create_function.html
    public func addFunction(
        _ name: String,
        argumentCount: Int? = nil,
        options: FunctionOptions = [],
        _ body: @escaping (borrowing FunctionArguments) throws -> SQLValue
    ) throws(DatabaseError) {
        try add(name, argumentCount, options, .scalar(body))
    }

    /// Adds an aggregate, or replaces the function with this name and number of arguments.
    /// - Throws: the same errors as ``addFunction(_:argumentCount:options:_:)``.
    public func addAggregate<Aggregate: SQLAggregate>(
        _ name: String,
        argumentCount: Int? = nil,
        options: FunctionOptions = [],
        _ type: Aggregate.Type
    ) throws(DatabaseError) {
        try add(name, argumentCount, options, .aggregate { TypedAggregateState<Aggregate>() })
    }

    /// Adds an aggregate that may also be used as a window function, or replaces the function with this name and number
    /// of arguments.
    /// - Throws: the same errors as ``addFunction(_:argumentCount:options:_:)``.
    /// https://www.sqlite.org/windowfunctions.html
    public func addWindowFunction<Function: SQLWindowFunction>(
        _ name: String,
        argumentCount: Int? = nil,
        options: FunctionOptions = [],
        _ type: Function.Type
    ) throws(DatabaseError) {
        try add(name, argumentCount, options, .window { WindowState<Function>() })
    }

    /// Removes a function, aggregate or window function. Does nothing if there is none.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement may be calling it.
    public func removeFunction(_ name: String, argumentCount: Int? = nil) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try additions.removeFunction(name, argumentCount: count(argumentCount), from: openConnection())
        }
    }

    private func add(
        _ name: String,
        _ argumentCount: Int?,
        _ options: FunctionOptions,
        _ body: SQLFunction.Body
    ) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let function = SQLFunction(
                name: name,
                argumentCount: try count(argumentCount),
                flags: options.flags,
                body: body
            )
            try additions.add(function, to: openConnection())
        }
    }

    private func count(_ argumentCount: Int?) throws(DatabaseError) -> Int32 {
        guard let argumentCount else { return -1 }
        guard (0...127).contains(argumentCount) else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "A function has 0 to 127 arguments; \(argumentCount) were given. Nothing was changed."
            )
        }
        return Int32(argumentCount)
    }

    // MARK: Collations

    /// Adds a collation, for `COLLATE name`, or replaces the collation of this name.
    ///
    /// An index that uses the collation is stored in its order. So the order must never change, and every program that
    /// opens the file needs the collation. Texts are passed with their NUL characters. In invalid UTF-8, U+FFFD
    /// replaces the invalid bytes; texts that only differ in such bytes are still different.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement may be using the collation that is
    ///   replaced, and `SQLITE_MISUSE` if the database is not open.
    /// https://www.sqlite.org/c3ref/create_collation.html
    public func addCollation(
        _ name: String,
        _ compare: @escaping (String, String) -> ComparisonResult
    ) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try additions.add(Collation(name: name, compare: compare), to: openConnection())
        }
    }

    /// Removes a collation. Statements that need it fail from now on.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement may be using it.
    public func removeCollation(_ name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try additions.removeCollation(name, from: openConnection())
        }
    }
}
