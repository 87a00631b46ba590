import SealedDB
import Synchronization

/// The result of the work on one store.
enum StoreOutcome: Sendable, Equatable {
    case done
    /// The store already was as it should be.
    case unchanged
    case failed(status: Int32, message: String)
    /// The work was begun, and the store was left as it was.
    case stopped
    case notBegun
}

/// Works on many stores, several at a time.
struct BatchRunner: Sendable {
    /// How many stores are worked on at a time.
    let jobs: Int
    let continuesOnError: Bool
    let control: BatchControl
    var startThread: @Sendable (@escaping @Sendable () -> Void) -> WorkerThread? = {
        WorkerThread(takesSignals: true, $0)
    }

    /// Calls `work` for one store after the other, until one fails (unless ``continuesOnError``), a signal comes, or
    /// the deadline is reached. Work that has begun is brought to its end.
    /// - Parameters:
    ///   - mayBegin: called for each store. If it returns false, the store is left out.
    ///   - work: called on several threads, with the store and the number of the job, from 0.
    /// - Returns: the outcomes, in the order of the stores.
    func run(
        _ items: [StoreItem],
        mayBegin: @escaping @Sendable (StoreItem) -> Bool = { _ in true },
        _ work: @escaping @Sendable (StoreItem, _ job: Int) -> StoreOutcome
    ) -> [StoreOutcome] {
        let books = Books(count: items.count)
        @Sendable func run(_ job: Int) {
            while control.stopStatus == nil, let index = books.next() {
                guard mayBegin(items[index]) else { continue }
                let outcome = work(items[index], job)
                books.note(outcome, at: index, isLast: outcome.isFailure && !continuesOnError)
            }
        }
        // The jobs get threads of their own: a pool has no more threads than there are processors, and jobs mostly wait
        // for the disk. Where the system has no more to give, those that there are do all, or this one does.
        var threads: [WorkerThread] = []
        for job in 0..<min(jobs, items.count) {
            guard let thread = startThread({ run(job) }) else { break }
            threads.append(thread)
        }
        if threads.isEmpty { run(0) }
        for thread in threads { thread.join() }
        return books.outcomes
    }

    private final class Books: Sendable {
        private struct State {
            var outcomes: [StoreOutcome]
            var nextIndex = 0
            var isOver = false
        }

        private let state: Mutex<State>

        init(count: Int) {
            state = Mutex(State(outcomes: Array(repeating: .notBegun, count: count)))
        }

        var outcomes: [StoreOutcome] { state.withLock { $0.outcomes } }

        func next() -> Int? {
            state.withLock { state in
                guard !state.isOver, state.nextIndex < state.outcomes.count else { return nil }
                defer { state.nextIndex += 1 }
                return state.nextIndex
            }
        }

        func note(_ outcome: StoreOutcome, at index: Int, isLast: Bool) {
            state.withLock { state in
                state.outcomes[index] = outcome
                if isLast { state.isOver = true }
            }
        }
    }

    /// The exit code for all stores together.
    func status(of outcomes: [StoreOutcome]) -> Int32 {
        if let status = SignalWatch.exitStatus { return status }
        let failures = outcomes.compactMap(\.failureStatus)
        if let first = failures.first { return continuesOnError ? ExitStatus.partial.rawValue : first }
        let isComplete = outcomes.allSatisfy { $0 == .done || $0 == .unchanged }
        return isComplete ? 0 : ExitStatus.busy.rawValue
    }
}

extension StoreOutcome {
    var failureStatus: Int32? {
        if case .failed(let status, _) = self { status } else { nil }
    }

    var isFailure: Bool { failureStatus != nil }

    /// The name of the outcome in JSON.
    var name: String {
        switch self {
        case .done: "done"
        case .unchanged: "unchanged"
        case .failed: "failed"
        case .stopped: "stopped"
        case .notBegun: "notBegun"
        }
    }
}
