import Foundation

/// The line in which workers take runs of pages, and put what came of them until it can be delivered in order.
///
/// No run is taken that is too far ahead of the delivered ones, so that little is kept when a worker or the caller is
/// slow. After a failure no further run is taken.
// @unchecked: what changes is only touched while `condition` is locked.
final class RunLine<Outcome: Sendable>: @unchecked Sendable {
    /// What the caller's thread is to do next.
    enum Step {
        case work(ClosedRange<Int64>)
        case deliver(ClosedRange<Int64>, Result<Outcome, DatabaseError>)
        case end
    }

    typealias Load = (ClosedRange<Int64>) throws(DatabaseError) -> Void

    private let pageCount: Int64
    private let pagesInRun: Int64
    private let runCount: Int64
    private let mostAhead: Int64
    private let condition = NSCondition()
    /// The number of runs that were taken. They are the first ones.
    private var taken: Int64 = 0
    /// The number of runs that were delivered. They are the first ones.
    private var delivered: Int64 = 0
    private var outcomes: [Int64: Result<Outcome, DatabaseError>] = [:]
    /// Whether no run is taken any more.
    private var isOver = false

    /// - Parameter mostAhead: how many runs may be taken that are not delivered.
    init(pageCount: Int64, pagesInRun: Int64, mostAhead: Int64) {
        (self.pageCount, self.pagesInRun, self.mostAhead) = (pageCount, pagesInRun, mostAhead)
        runCount = (pageCount + pagesInRun - 1) / pagesInRun
    }

    /// Takes the next run and reads its pages. Waits as long as none may be taken.
    /// - Returns: `nil` if no run will be left for this worker.
    func take(_ load: Load) -> ClosedRange<Int64>? {
        condition.lock()
        defer { condition.unlock() }
        while !isOver, taken < runCount {
            if let numbers = takeNow(load) { return numbers }
            if !isOver { condition.wait() }
        }
        return nil
    }

    func put(_ outcome: Result<Outcome, DatabaseError>, of numbers: ClosedRange<Int64>) {
        condition.lock()
        defer { condition.unlock() }
        keep(outcome, of: (numbers.lowerBound - 1) / pagesInRun)
    }

    /// What the caller's thread is to do: deliver the next outcome if it is there, or else take a run. Waits if it can
    /// do neither.
    func step(_ load: Load) -> Step {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let outcome = outcomes.removeValue(forKey: delivered) {
                delivered += 1
                condition.broadcast()
                return .deliver(numbers(ofRun: delivered - 1), outcome)
            }
            guard delivered < runCount else { return .end }
            if let numbers = takeNow(load) { return .work(numbers) }
            if outcomes[delivered] == nil { condition.wait() }
        }
    }

    /// Makes the workers end after what they are doing.
    func stop() {
        condition.lock()
        defer { condition.unlock() }
        isOver = true
        condition.broadcast()
    }

    /// Takes a run if one may be taken now. Only with the lock, which is held while the pages are read.
    private func takeNow(_ load: Load) -> ClosedRange<Int64>? {
        guard !isOver, taken < runCount, taken - delivered < mostAhead else { return nil }
        let run = taken
        taken += 1
        do throws(DatabaseError) {
            try load(numbers(ofRun: run))
            return numbers(ofRun: run)
        } catch {
            keep(.failure(error), of: run)
            return nil
        }
    }

    /// Only with the lock.
    private func keep(_ outcome: Result<Outcome, DatabaseError>, of run: Int64) {
        outcomes[run] = outcome
        // All runs before this one are taken, so the failure will be delivered.
        if case .failure = outcome { isOver = true }
        condition.broadcast()
    }

    private func numbers(ofRun run: Int64) -> ClosedRange<Int64> {
        run * pagesInRun + 1...min((run + 1) * pagesInRun, pageCount)
    }
}
