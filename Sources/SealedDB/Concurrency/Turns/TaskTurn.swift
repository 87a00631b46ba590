import Foundation

/// A call that a task makes. The block runs as a job of that task, so task-local values and `Task.isCancelled` are the
/// same inside the block as outside. Only the thread differs: the block runs on the connection's thread, because SQLite
/// blocks its thread.
///
/// This class is the executor of an actor that serves this one call. When the executor gets the job, it first asks the
/// ``Reception`` for a place. The job runs when the call has a place, or when it is known that it gets none.
// @unchecked: one side at a time uses what changes: first the side that tells the outcome, then the job.
final class TaskTurn: Reception.Withdrawable, SerialExecutor, @unchecked Sendable {
    /// Set when the task is cancelled.
    let stop = StopFlag()
    private let reception: Reception
    private let isAlone: Bool
    private var request: Reception.Books.Request
    private var job: UnownedJob?
    private var outcome: Result<Reception.Place, any Error>?

    init(_ reception: Reception, _ request: Reception.Books.Request, isAlone: Bool = false) {
        self.reception = reception
        self.request = request
        self.isAlone = isAlone
    }

    /// Runs the body with a place. The body gives the place back.
    /// - Throws: the body's error, or the reason why there is no place. If the task was cancelled, the error is the one
    ///   that ``StopFlag/explain(_:)`` returns.
    func run<T: Sendable>(_ body: @Sendable (_ place: Reception.Place, _ stop: StopFlag) throws -> T) async throws -> T
    {
        let seat = Seat(self)
        return try await withTaskCancellationHandler {
            try await escalating {
                do {
                    return try await seat.run(body)
                } catch {
                    throw stop.explain(error)
                }
            }
        } onCancel: {
            stop.set()
            reception.withdraw(self)
        }
    }

    private func escalating<T: Sendable>(_ body: () async throws -> T) async throws -> T {
        #if compiler(>=6.2)
            return try await withTaskPriorityEscalationHandler {
                try await body()
            } onPriorityEscalated: { [self] _, priority in
                reception.raise(self, to: priority)
            }
        #else
            return try await body()
        #endif
    }

    func enqueue(_ job: consuming ExecutorJob) {
        request.priority = TaskPriority(job.priority) ?? .medium
        self.job = UnownedJob(job)
        reception.enter(request, isAlone: isAlone, for: self)
    }

    /// Stores the outcome, and runs the job: on the place's queue, or on ``Reception/bell`` if there is no place.
    func told(_ outcome: Result<Reception.Place, any Error>) {
        self.outcome = outcome
        guard case .success(let place) = outcome else { return Reception.bell.async { [self] in runJob() } }
        reception.queue(of: place).async { [self] in
            reception.begin(place)
            runJob()
        }
    }

    private func runJob() {
        job!.runSynchronously(on: asUnownedSerialExecutor())
    }

    private actor Seat {
        private let turn: TaskTurn

        nonisolated var unownedExecutor: UnownedSerialExecutor { turn.asUnownedSerialExecutor() }

        init(_ turn: TaskTurn) { self.turn = turn }

        func run<T: Sendable>(_ body: @Sendable (Reception.Place, StopFlag) throws -> T) throws -> T {
            try body(turn.outcome!.get(), turn.stop)
        }
    }
}

extension StopFlag {
    /// Returns `CancellationError` if the flag is set and the error only says that a statement, or its wait for a lock,
    /// was cut short. Other errors are returned unchanged: they may say that data is damaged, or that it is not known
    /// what was stored.
    func explain(_ error: any Error) -> any Error {
        let known = error as? DatabaseError
        // If a statement was cut short and the block continues, it finds that its transaction is gone.
        let isCutShort = [SQLITE_INTERRUPT, SQLITE_BUSY].contains(known?.code) || known == .transactionLost
        return isSet && isCutShort ? CancellationError() : error
    }
}
