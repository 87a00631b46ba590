import Foundation

/// The call of a task. Its block is a job of that task, so that task-local values and `Task.isCancelled` are what they are
/// outside of it; only the thread is another one, that of the connection, because SQLite blocks.
///
/// It is the executor of an actor that has this one call. Where an executor would run the job, it asks the ``Reception``
/// for a place first; the job runs when it has one, or when it is known that it gets none.
// @unchecked: what changes belongs to one side at a time: whoever tells the outcome, and then the job.
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

    /// Runs the body with a place, which it gives back. Its errors are those of the task, if that was cancelled.
    /// - Throws: also why there is no place.
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

    /// Has the job run now.
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
    /// The error of a call whose task may have been cancelled. That explains only that a statement, or its wait for a lock,
    /// was cut short: another error may say that data is damaged, or that it is not known what was stored.
    func explain(_ error: any Error) -> any Error {
        let known = error as? DatabaseError
        // A block that goes on after its statement was cut short finds its transaction gone.
        let isCutShort = [SQLITE_INTERRUPT, SQLITE_BUSY].contains(known?.code) || known == .transactionLost
        return isSet && isCutShort ? CancellationError() : error
    }
}
