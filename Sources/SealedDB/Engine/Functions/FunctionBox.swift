internal import SQLiteEngine

/// The object that SQLite holds for a function. The C functions that SQLite calls must not throw.
final class FunctionBox {
    private let function: SQLFunction
    /// Not retained: functions run only within statements, and when aggregate states end; the connection outlives both.
    private unowned(unsafe) let connection: Connection

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

    /// Runs a closure of the caller. If it throws, the statement fails, and the error reaches the code that runs the
    /// statement.
    private func attempt(_ context: OpaquePointer, _ body: () throws -> Void) -> Bool {
        do {
            try body()
            if connection.hasLostTransaction { throw DatabaseError.lostTransaction }
            return true
        } catch {
            let message = "The SQL function \(function.name) failed, and the statement with it; it changed nothing."
            let code = connection.thrown.keep(error, message: message)
            FunctionContext(context).fail(message)
            FunctionContext(context).fail(code: code)
            return false
        }
    }

    // MARK: Scalars

    static let callBlock: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
        context,
        count,
        arguments in
        guard let context else { return }
        let box = of(context)
        guard case .block(let block) = box.function.body else { return }
        _ = box.attempt(context) {
            // SQLite passes no array if there are no arguments.
            withUnsafeTemporaryAllocation(of: UnsafeMutableRawPointer.self, capacity: Int(max(count, 1))) { argv in
                argv.baseAddress!.initialize(to: UnsafeMutableRawPointer(context))
                for index in 0..<Int(count) {
                    (argv.baseAddress! + index).initialize(to: UnsafeMutableRawPointer(arguments![index]!))
                }
                block(UnsafeMutableRawPointer(context), count, argv.baseAddress!)
            }
        }
    }

    static let callScalar: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
        context,
        count,
        arguments in
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

    /// Returns the state of the present group of rows. Creates it for a new group. Returns `nil` when out of memory.
    private func state(_ context: OpaquePointer) -> AggregateState? {
        let size = Int32(MemoryLayout<UnsafeMutableRawPointer?>.size)
        guard let memory = sqlite3_aggregate_context(context, size) else { return nil }
        let slot = memory.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
        if let pointer = slot.pointee { return Unmanaged<AggregateState>.fromOpaque(pointer).takeUnretainedValue() }
        guard let state = newState() else { return nil }
        slot.pointee = Unmanaged.passRetained(state).toOpaque()
        return state
    }

    /// Takes the state, which ends with this call. Returns a new state if the group had no rows.
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
        context,
        count,
        arguments in
        change(context) { try $0.step(FunctionArguments(count, arguments)) }
    }

    static let inverse: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
        context,
        count,
        arguments in
        change(context) { try $0.inverse(FunctionArguments(count, arguments)) }
    }

    static let value: @convention(c) (OpaquePointer?) -> Void = { context in
        change(context) { FunctionContext(context!).set(try $0.value()) }
    }

    static let finalize: @convention(c) (OpaquePointer?) -> Void = { context in
        guard let context else { return }
        let box = of(context)
        // SQLite also ends the state of a statement that has failed. Such a state has no result.
        guard let state = box.lastState(context), !state.hasFailed else { return }
        _ = box.attempt(context) { FunctionContext(context).set(try state.finalize()) }
    }
}

extension DatabaseError {
    static let lostTransaction = DatabaseError(
        extendedCode: SQLITE_ABORT,
        reason: .misuse,
        message: """
            A function or tokenizer rolled back the transaction of the writing statement that calls it. The statement was \
            stopped, and nothing of the transaction is kept.
            """
    )
}
