import Foundation
import Synchronization

/// Work on another thread, which begins at once. Whoever begins it waits for its result in any case, because it may use what
/// ends next.
final class ParallelWork<Value: Sendable>: Sendable {
    private let group = DispatchGroup()
    private let outcome = Guarded<Result<Value, DatabaseError>?>(nil)
    private let state = State()

    private final class State: Sendable {
        let stopFlag = StopFlag()
        let completed = Atomic<Int64>(0)
    }

    /// Told now and then how much is done. It throws if the work is to end early.
    typealias Report = (_ completed: Int64) throws(DatabaseError) -> Void

    init(_ body: @escaping @Sendable (_ report: @escaping Report) throws(DatabaseError) -> Value) {
        DispatchQueue.global().async(group: group) { [outcome, state] in
            let result = Result { () throws(DatabaseError) in
                try body { completed throws(DatabaseError) in
                    guard !state.stopFlag.isSet else { throw ParallelWork.stopped }
                    state.completed.store(completed, ordering: .relaxed)
                }
            }
            outcome.withLock { $0 = result }
        }
    }

    /// Has the work end early, and waits for that.
    func stop() {
        state.stopFlag.set()
        group.wait()
    }

    /// Waits for the result.
    /// - Parameter report: called now and then with how much is done. If it throws, the work ends early.
    func result(report: Report) throws(DatabaseError) -> Value {
        do throws(DatabaseError) {
            while group.wait(timeout: .now() + 0.1) == .timedOut {
                try report(state.completed.load(ordering: .relaxed))
            }
        } catch {
            stop()
            throw error
        }
        guard let outcome = outcome.withLock({ $0 }) else { throw ParallelWork.stopped }
        return try outcome.get()
    }

    private static var stopped: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_INTERRUPT,
            reason: .interrupted,
            message: "The caller stopped the comparison. Nothing was changed."
        )
    }
}
