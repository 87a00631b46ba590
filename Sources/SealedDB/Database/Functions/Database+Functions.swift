public import Foundation

/// Functions and collations written in Swift. They come back when the database is opened again, and are dropped when they
/// are replaced or removed, and with the database.
///
/// The database keeps the closures: one that captures the database keeps it alive for ever, so capture it `unowned`.
/// A closure may run other statements on its database.
///
/// What a closure throws fails the statement, which then has changed nothing, and reaches the caller: a
/// ``DatabaseError`` as it is, any other error as the ``DatabaseError/underlyingError`` of one with the reason
/// ``DatabaseError/Reason/closureFailed``.
extension Database {
    /// Adds a function, or replaces the one of this name and number of arguments.
    ///
    ///     try db.addFunction("slug", argumentCount: 1, options: .deterministic) { arguments in
    ///         SQLValue(arguments.text(at: 0)?.lowercased().replacing(" ", with: "-"))
    ///     }
    ///
    /// - Parameters:
    ///   - name: 1 to 255 bytes. A function of SQLite's own may be replaced, and is back when the database is opened again
    ///     without the replacement.
    ///   - argumentCount: `nil`, the default, for any number.
    ///   - options: by default only statements of yours may call it, the schema may not.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement could be calling the function it replaces;
    ///   `SQLITE_MISUSE` if the database is not open. Nothing is added then.
    /// https://www.sqlite.org/c3ref/create_function.html
    public func addFunction(
        _ name: String,
        argumentCount: Int? = nil,
        options: FunctionOptions = [],
        _ body: @escaping (borrowing FunctionArguments) throws -> SQLValue
    ) throws(DatabaseError) {
        try add(name, argumentCount, options, .scalar(body))
    }

    /// Adds an aggregate, or replaces the function of this name and number of arguments.
    /// - Throws: as ``addFunction(_:argumentCount:options:_:)``.
    public func addAggregate<Aggregate: SQLAggregate>(
        _ name: String,
        argumentCount: Int? = nil,
        options: FunctionOptions = [],
        _ type: Aggregate.Type
    ) throws(DatabaseError) {
        try add(name, argumentCount, options, .aggregate { TypedAggregateState<Aggregate>() })
    }

    /// Adds an aggregate that may also be a window function, or replaces the function of this name and number of arguments.
    /// - Throws: as ``addFunction(_:argumentCount:options:_:)``.
    /// https://www.sqlite.org/windowfunctions.html
    public func addWindowFunction<Function: SQLWindowFunction>(
        _ name: String,
        argumentCount: Int? = nil,
        options: FunctionOptions = [],
        _ type: Function.Type
    ) throws(DatabaseError) {
        try add(name, argumentCount, options, .window { WindowState<Function>() })
    }

    /// Removes a function, aggregate or window function. It is no error if there is none.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement could be calling it.
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

    /// Adds an order of texts, for `COLLATE name`, or replaces the one of this name.
    ///
    /// An index that uses it holds its order, so it must never change, and every program that opens the file needs it.
    /// Texts arrive with their embedded NULs; invalid UTF-8 has U+FFFD in its place, and texts that only differ there are
    /// still told apart.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement could be using the one it replaces;
    ///   `SQLITE_MISUSE` if the database is not open.
    /// https://www.sqlite.org/c3ref/create_collation.html
    public func addCollation(
        _ name: String,
        _ compare: @escaping (String, String) -> ComparisonResult
    ) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try additions.add(Collation(name: name, compare: compare), to: openConnection())
        }
    }

    /// Removes a collation; statements that need it fail from now on.
    /// - Throws: ``DatabaseError``, with `SQLITE_BUSY` if a running statement could be using it.
    public func removeCollation(_ name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try additions.removeCollation(name, from: openConnection())
        }
    }
}
