import Foundation

/// A task's call: waits without a thread, and can be cancelled at any stage.
// @unchecked: what changes is used by one side at a time: the task before it waits, then whoever runs the block.
final class Call<Value: Sendable>: @unchecked Sendable {
    /// Set when the task is cancelled.
    let stop = StopFlag()
    /// The block's result, before ``end(_:)``.
    var value: Value?
    private let lane: Lane
    private var continuation: CheckedContinuation<Value, any Error>?

    init(_ lane: Lane) {
        self.lane = lane
    }

    /// Waits for a place, has the work done on the lane's thread, and waits for its end.
    func run(
        shareable: Bool,
        _ work: @escaping @Sendable (_ place: Int, _ call: Call) -> Void
    ) async throws -> Value {
        let turn = Lane.Turn(
            isShareable: shareable,
            priority: Task.currentPriority,
            start: { place in work(place, self) },
            refused: { error in self.end(error) }
        )
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                self.continuation = continuation
                lane.enqueue(turn) { stop.isSet }
            }
        } onCancel: {
            stop.set()
            lane.withdraw(turn, because: CancellationError())
        }
    }

    /// Resumes the task with ``value`` or the error. Of errors, a cancellation explains only that a statement, or its wait
    /// for a lock, was cut short: another one may say that data is damaged, or that it is not known what was stored.
    func end(_ error: (any Error)?) {
        guard let continuation else { return }
        self.continuation = nil
        if let error {
            let known = error as? DatabaseError
            // A block that goes on after its statement was cut short finds its transaction gone.
            let isCutShort = [SQLITE_INTERRUPT, SQLITE_BUSY].contains(known?.code) || known == .transactionLost
            continuation.resume(throwing: stop.isSet && isCutShort ? CancellationError() : error)
        } else {
            continuation.resume(returning: value!)
        }
    }

    /// Runs the work, gives the place back, and resumes the task.
    func end(_ work: () throws -> Value, before leave: () -> Void) {
        var failure: (any Error)?
        do { value = try work() } catch { failure = error }
        leave()
        end(failure)
    }
}
