/// An aggregate function, such as `sum`. One value is made for each group of rows, and released with it.
///
/// If a method throws, the statement fails, as with ``Database/addFunction(_:argumentCount:options:_:)``.
/// https://www.sqlite.org/appfunc.html#the_application_defined_function_callbacks
public protocol SQLAggregate {
    /// Begins a group.
    init()

    /// Adds a row.
    /// - Throws: any error if the row cannot be added. The statement fails with it, as with that of a function.
    mutating func step(_ arguments: borrowing FunctionArguments) throws

    /// Returns the result, even of a group without rows. It is called at most once, after all other calls.
    /// - Throws: any error if there is no result. The statement fails with it, as with that of a function.
    mutating func finalize() throws -> SQLValue
}

/// An aggregate that may also be used with `OVER (…)`, where rows leave the window again.
/// https://www.sqlite.org/windowfunctions.html#user_defined_aggregate_window_functions
public protocol SQLWindowFunction: SQLAggregate {
    /// Removes the oldest row of the window.
    /// - Throws: any error if the row cannot be removed. The statement fails with it, as with that of a function.
    mutating func inverse(_ arguments: borrowing FunctionArguments) throws

    /// Returns the result for the rows that are in the window now.
    /// - Throws: any error if there is no result. The statement fails with it, as with that of a function.
    mutating func value() throws -> SQLValue
}

/// The value of one group, which SQLite holds as a pointer.
class AggregateState {
    final var hasFailed = false

    func step(_ arguments: borrowing FunctionArguments) throws {}
    func inverse(_ arguments: borrowing FunctionArguments) throws {}
    func value() throws -> SQLValue { .null }
    func finalize() throws -> SQLValue { .null }
}

final class TypedAggregateState<Aggregate: SQLAggregate>: AggregateState {
    private var aggregate = Aggregate()

    override func step(_ arguments: borrowing FunctionArguments) throws { try aggregate.step(arguments) }
    override func finalize() throws -> SQLValue { try aggregate.finalize() }
}

final class WindowState<Function: SQLWindowFunction>: AggregateState {
    private var function = Function()

    override func step(_ arguments: borrowing FunctionArguments) throws { try function.step(arguments) }
    override func inverse(_ arguments: borrowing FunctionArguments) throws { try function.inverse(arguments) }
    override func value() throws -> SQLValue { try function.value() }
    override func finalize() throws -> SQLValue { try function.finalize() }
}
