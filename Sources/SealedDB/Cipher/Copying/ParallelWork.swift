import Foundation

/// Work on another thread, which begins at once. Whoever begins it waits for its result in any case, because it may use what
/// ends next. If the system has no thread to give, the work is done by whoever wants its result.
final class ParallelWork<Value: Sendable>: Sendable {
    /// Told now and then how much is done. It throws if the work is to end early.
    typealias Report = (_ completed: Int64) throws(DatabaseError) -> Void
    typealias Body = @Sendable (_ report: @escaping Report) throws(DatabaseError) -> Value

    private let body: Body
    private let state = State()
    /// `nil` if there is none, or if it has ended and was waited for.
    private let thread: Guarded<WorkerThread?>

    // @unchecked: what changes is only touched while `condition` is locked.
    private final class State: @unchecked Sendable {
        private let condition = NSCondition()
        private var outcome: Result<Value, DatabaseError>?
        private var completed: Int64 = 0
        private var isStopped = false

        /// What is done so far.
        func report(_ count: Int64) throws(DatabaseError) {
            condition.lock()
            defer { condition.unlock() }
            guard !isStopped else { throw ParallelWork.stopped }
            completed = count
        }

        func stop() {
            condition.lock()
            defer { condition.unlock() }
            isStopped = true
        }

        var failure: DatabaseError? {
            condition.lock()
            defer { condition.unlock() }
            if case .failure(let error) = outcome { return error }
            return nil
        }

        func end(_ result: Result<Value, DatabaseError>) {
            condition.lock()
            defer { condition.unlock() }
            outcome = result
            condition.broadcast()
        }

        /// Waits for the result, but not for long.
        /// - Returns: how much is done if there is no result yet.
        func wait() -> (Result<Value, DatabaseError>?, completed: Int64) {
            condition.lock()
            defer { condition.unlock() }
            // Whether it was woken or the time is over does not matter, because the outcome shows whether there is one.
            if outcome == nil { _ = condition.wait(until: Date(timeIntervalSinceNow: 0.1)) }
            return (outcome, completed)
        }
    }

    /// - Parameter startThread: starts the thread; `nil` if there is none.
    init(
        startThread: (@escaping @Sendable () -> Void) -> WorkerThread? = { WorkerThread($0) },
        _ body: @escaping Body
    ) {
        self.body = body
        thread = Guarded(
            startThread { [state] in
                state.end(
                    Result { () throws(DatabaseError) in
                        try body { completed throws(DatabaseError) in try state.report(completed) }
                    }
                )
            }
        )
    }

    /// Throws if the work has failed already, for whoever does what is only worth something with its result.
    func requireNoFailure() throws(DatabaseError) {
        if let failure = state.failure { throw failure }
    }

    /// Has the work end early, and waits for that.
    func stop() {
        state.stop()
        join()
    }

    private func join() {
        let thread = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        thread?.join()
    }

    /// Waits for the result. Call it once.
    /// - Parameter report: called now and then with how much is done. If it throws, the work ends early.
    func result(report: @escaping Report) throws(DatabaseError) -> Value {
        guard thread.withLock({ $0 != nil }) else { return try body(report) }
        do throws(DatabaseError) {
            while true {
                let (outcome, completed) = state.wait()
                guard let outcome else {
                    try report(completed)
                    continue
                }
                join()
                return try outcome.get()
            }
        } catch {
            stop()
            throw error
        }
    }

    private static var stopped: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_INTERRUPT,
            reason: .interrupted,
            message: "The caller stopped the comparison. Nothing was changed."
        )
    }
}
