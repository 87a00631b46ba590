internal import SQLiteEngine

/// The implementation of a function. Its parameters are SQLite's context, the number of arguments, and the arguments.
public typealias FunctionBlock = (
    _ context: UnsafeMutableRawPointer, _ argc: Int32, _ argv: UnsafeMutablePointer<UnsafeMutableRawPointer>
) -> Void

/// Where SQL may call a function, and what SQLite may assume about it.
/// https://www.sqlite.org/c3ref/c_deterministic.html
///
/// The empty set is the safest: only your own statements may call the function. A file that somebody else wrote cannot
/// call it from a trigger, view, index or column definition (SQLite's DIRECTONLY).
public struct FunctionOptions: OptionSet, Sendable, Hashable {
    /// SQLite's flags.
    public let rawValue: Int32

    /// Makes options of SQLite's flags.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// Equal arguments always give equal results, so SQLite may omit calls.
    public static let deterministic = FunctionOptions(rawValue: 1)
    /// Triggers, views, indexes and column definitions may call it too, if ``Configuration/trustsSchema`` is set. An
    /// index also needs ``deterministic``.
    public static let allowedInSchema = FunctionOptions(rawValue: 2)
    /// Like ``allowedInSchema``, even if the schema is not trusted. Such a function must have no side effects and
    /// reveal nothing.
    public static let innocuous = FunctionOptions(rawValue: 4)

    var flags: Int32 {
        var flags: Int32 = 0
        if contains(.deterministic) { flags |= SQLITE_DETERMINISTIC }
        if contains(.innocuous) { flags |= SQLITE_INNOCUOUS }
        if isDisjoint(with: [.allowedInSchema, .innocuous]) { flags |= SQLITE_DIRECTONLY }
        return flags
    }
}

/// A function that SQL may call. The database registers it on each connection that it opens.
struct SQLFunction {
    enum Body {
        case block(FunctionBlock)
        case scalar((borrowing FunctionArguments) throws -> SQLValue)
        case aggregate(() -> AggregateState)
        case window(() -> AggregateState)
    }

    let name: String
    /// The number of arguments; -1 for any number.
    let argumentCount: Int32
    /// Flags such as `SQLITE_DETERMINISTIC`.
    var flags: Int32 = 0
    let body: Body

    /// Whether SQLite would replace this function by one with that name and number of arguments.
    func isSame(as name: String, _ argumentCount: Int32) -> Bool {
        self.argumentCount == argumentCount && self.name.foldedForSQL == name.foldedForSQL
    }

    /// https://www.sqlite.org/c3ref/create_function.html
    func register(on connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try SQLFunction.validate(name)
        // SQLite releases the box when the connection closes, when the function is replaced, and if this call fails.
        let box = Unmanaged.passRetained(FunctionBox(self, connection)).toOpaque()
        let code: Int32
        switch body {
        case .block, .scalar:
            let call = if case .block = body { FunctionBox.callBlock } else { FunctionBox.callScalar }
            code = sqlite3_create_function_v2(
                handle,
                name,
                argumentCount,
                SQLITE_UTF8 | flags,
                box,
                call,
                nil,
                nil,
                FunctionBox.release
            )
        case .aggregate, .window:
            let isWindow = if case .window = body { true } else { false }
            code = sqlite3_create_window_function(
                handle,
                name,
                argumentCount,
                SQLITE_UTF8 | flags,
                box,
                FunctionBox.step,
                FunctionBox.finalize,
                isWindow ? FunctionBox.value : nil,
                isWindow ? FunctionBox.inverse : nil,
                FunctionBox.release
            )
        }
        try connection.check(code)
    }

    static func remove(_ name: String, argumentCount: Int32, from connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try validate(name)
        let code = sqlite3_create_function_v2(handle, name, argumentCount, SQLITE_UTF8, nil, nil, nil, nil, nil)
        try connection.check(code)
    }

    private static func validate(_ name: String) throws(DatabaseError) {
        guard !(1...255).contains(name.utf8.count) || name.utf8.contains(0) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The name of a function has 1 to 255 bytes and no NUL. Nothing was changed."
        )
    }
}
