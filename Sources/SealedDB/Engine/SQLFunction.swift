internal import SQLiteEngine

/// The implementation of a function: its context, the number of its arguments, and the arguments.
public typealias FunctionBlock = (
    _ context: UnsafeMutableRawPointer, _ argc: Int32, _ argv: UnsafeMutablePointer<UnsafeMutableRawPointer>
) -> Void

/// Where SQL may call a function, and what SQLite may conclude. https://www.sqlite.org/c3ref/c_deterministic.html
///
/// The empty set is the safest: the function is called by statements of yours alone. A file that somebody else wrote can
/// then not call it from a trigger, view, index or column definition (SQLite's DIRECTONLY).
public struct FunctionOptions: OptionSet, Sendable, Hashable {
    public let rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// Equal arguments always give equal results, so that SQLite may leave out calls.
    public static let deterministic = FunctionOptions(rawValue: 1)
    /// Triggers, views, indexes and column definitions may call it too. An index also needs ``deterministic``.
    public static let allowedInSchema = FunctionOptions(rawValue: 2)
    /// As ``allowedInSchema``, even where `PRAGMA trusted_schema` is off: it has no side effects and reveals nothing.
    public static let innocuous = FunctionOptions(rawValue: 4)

    var flags: Int32 {
        var flags: Int32 = 0
        if contains(.deterministic) { flags |= SQLITE_DETERMINISTIC }
        if contains(.innocuous) { flags |= SQLITE_INNOCUOUS }
        if isDisjoint(with: [.allowedInSchema, .innocuous]) { flags |= SQLITE_DIRECTONLY }
        return flags
    }
}

/// A function that SQL may call, as it comes back with every opening.
struct SQLFunction {
    enum Body {
        case block(FunctionBlock)
        case scalar((borrowing FunctionArguments) throws -> SQLValue)
        case aggregate(() -> AggregateState)
        case window(() -> AggregateState)
    }

    let name: String
    /// -1 for any number.
    let argumentCount: Int32
    /// `SQLITE_DETERMINISTIC` and the like.
    var flags: Int32 = 0
    let body: Body

    /// Whether SQLite would replace one by the other.
    func isSame(as name: String, _ argumentCount: Int32) -> Bool {
        self.argumentCount == argumentCount && self.name.foldedForSQL == name.foldedForSQL
    }

    /// https://www.sqlite.org/c3ref/create_function.html
    func register(on connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try SQLFunction.validate(name)
        // SQLite releases the box when the connection closes or the function is replaced, and if this fails.
        let box = Unmanaged.passRetained(FunctionBox(self, connection)).toOpaque()
        let flags = SQLITE_UTF8 | flags
        let code: Int32 =
            switch body {
            case .block:
                sqlite3_create_function_v2(
                    handle, name, argumentCount, flags, box, FunctionBox.callBlock, nil, nil, FunctionBox.release)
            case .scalar:
                sqlite3_create_function_v2(
                    handle, name, argumentCount, flags, box, FunctionBox.callScalar, nil, nil, FunctionBox.release)
            case .aggregate:
                sqlite3_create_function_v2(
                    handle, name, argumentCount, flags, box, nil, FunctionBox.step, FunctionBox.finalize,
                    FunctionBox.release)
            case .window:
                sqlite3_create_window_function(
                    handle, name, argumentCount, flags, box, FunctionBox.step, FunctionBox.finalize,
                    FunctionBox.value, FunctionBox.inverse, FunctionBox.release)
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

extension String {
    /// As SQLite compares names: without regard to the case of ASCII letters.
    var foldedForSQL: String {
        if utf8.allSatisfy({ !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }) { return self }
        return String(
            decoding: utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 },
            as: UTF8.self
        )
    }
}

/// What SQLite keeps of a function. Nothing may be thrown through the C functions that it calls.
final class FunctionBox {
    private let function: SQLFunction
    private weak var connection: Connection?

    init(_ function: SQLFunction, _ connection: Connection) {
        self.function = function
        self.connection = connection
    }

    static let release: @convention(c) (UnsafeMutableRawPointer?) -> Void = { data in
        if let data { Unmanaged<FunctionBox>.fromOpaque(data).release() }
    }

    private static func of(_ context: OpaquePointer) -> FunctionBox {
        Unmanaged<FunctionBox>.fromOpaque(sqlite3_user_data(context)).takeUnretainedValue()
    }

    /// Runs a closure of the caller; its error fails the statement, and reaches whoever runs it.
    private func attempt(_ context: OpaquePointer, _ body: () throws -> Void) -> Bool {
        do {
            try body()
            return true
        } catch {
            let message = "The SQL function \(function.name) failed, and the statement with it; it changed nothing."
            let code = connection?.thrown.keep(error, message: message) ?? SQLITE_ERROR
            FunctionContext(context).fail(message)
            FunctionContext(context).fail(code: code)
            return false
        }
    }

    // MARK: Scalars

    static let callBlock: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
        context, count, arguments in
        guard let context, case .block(let block) = of(context).function.body else { return }
        // Without arguments SQLite passes no array.
        withUnsafeTemporaryAllocation(of: UnsafeMutableRawPointer.self, capacity: Int(max(count, 1))) { argv in
            argv.baseAddress!.initialize(to: UnsafeMutableRawPointer(context))
            for index in 0..<Int(count) {
                (argv.baseAddress! + index).initialize(to: UnsafeMutableRawPointer(arguments![index]!))
            }
            block(UnsafeMutableRawPointer(context), count, argv.baseAddress!)
        }
    }

    static let callScalar: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
        context, count, arguments in
        guard let context else { return }
        let box = of(context)
        guard case .scalar(let body) = box.function.body else { return }
        _ = box.attempt(context) {
            FunctionContext(context).set(try body(FunctionArguments(count, arguments)))
        }
    }

    // MARK: Aggregates

    private func newState() -> AggregateState? {
        switch function.body {
        case .aggregate(let make), .window(let make): make()
        case .block, .scalar: nil
        }
    }

    /// The state of the group of rows that is under way, begun if it is new; `nil` when out of memory.
    private func state(_ context: OpaquePointer) -> AggregateState? {
        let size = Int32(MemoryLayout<UnsafeMutableRawPointer?>.size)
        guard let memory = sqlite3_aggregate_context(context, size) else { return nil }
        let slot = memory.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
        if let pointer = slot.pointee { return Unmanaged<AggregateState>.fromOpaque(pointer).takeUnretainedValue() }
        guard let state = newState() else { return nil }
        slot.pointee = Unmanaged.passRetained(state).toOpaque()
        return state
    }

    /// The state, which ends with this call; a new one if there was no row.
    private func lastState(_ context: OpaquePointer) -> AggregateState? {
        guard let memory = sqlite3_aggregate_context(context, 0) else { return newState() }
        let slot = memory.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
        guard let pointer = slot.pointee else { return newState() }
        slot.pointee = nil
        return Unmanaged<AggregateState>.fromOpaque(pointer).takeRetainedValue()
    }

    private static func change(
        _ context: OpaquePointer?,
        _ body: (AggregateState) throws -> Void
    ) {
        guard let context else { return }
        let box = of(context)
        guard let state = box.state(context) else { return FunctionContext(context).failNoMemory() }
        guard !state.hasFailed else { return }
        state.hasFailed = !box.attempt(context) { try body(state) }
    }

    static let step: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
        context, count, arguments in
        change(context) { try $0.step(FunctionArguments(count, arguments)) }
    }

    static let inverse: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
        context, count, arguments in
        change(context) { try $0.inverse(FunctionArguments(count, arguments)) }
    }

    static let value: @convention(c) (OpaquePointer?) -> Void = { context in
        change(context) { FunctionContext(context!).set(try $0.value()) }
    }

    static let finalize: @convention(c) (OpaquePointer?) -> Void = { context in
        guard let context else { return }
        let box = of(context)
        // SQLite also ends a state whose statement has failed; that is not a result.
        guard let state = box.lastState(context), !state.hasFailed else { return }
        _ = box.attempt(context) { FunctionContext(context).set(try state.finalize()) }
    }
}
