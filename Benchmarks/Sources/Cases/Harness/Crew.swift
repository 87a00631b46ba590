import Foundation
import Synchronization

/// Threads that wait for work between passes: to start them would cost more than what they are to do. Dispatch would
/// not start more of them than there are processors.
final class Crew {
    /// What the threads share with each other, and with the one that measures.
    private final class Shared: Sendable {
        let starts: [DispatchSemaphore]
        let done = DispatchSemaphore(value: 0)
        let isOver = Atomic(false)
        let error = Mutex<(any Error)?>(nil)

        init(_ count: Int) { starts = (0..<count).map { _ in DispatchSemaphore(value: 0) } }

        func startAll() {
            for start in starts { start.signal() }
        }

        func waitForAll() {
            for _ in starts { done.wait() }
        }
    }

    private let shared: Shared

    /// - Parameter body: is given the number of its thread, from 0.
    init(_ count: Int, _ body: @escaping (Int) throws -> Void) {
        // Each thread uses what is its own, or what has a lock.
        nonisolated(unsafe) let body = body
        let shared = Shared(count)
        for index in 0..<count {
            Thread {
                while true {
                    shared.starts[index].wait()
                    defer { shared.done.signal() }
                    guard !shared.isOver.load(ordering: .acquiring) else { return }
                    do {
                        try body(index)
                    } catch {
                        shared.error.withLock { $0 = error }
                    }
                }
            }.start()
        }
        self.shared = shared
    }

    deinit {
        shared.isOver.store(true, ordering: .releasing)
        shared.startAll()
        shared.waitForAll()
    }

    /// Each thread does its work once.
    func work() throws {
        shared.startAll()
        shared.waitForAll()
        if let error = shared.error.withLock({ $0 }) { throw error }
    }

    /// Runs the body on as many threads; each has to call its argument, which returns when all have called it.
    static func meet(_ count: Int, _ body: @escaping (_ everybodyIsHere: () -> Void) throws -> Void) throws {
        let present = Atomic(0)
        let crew = Crew(count) { _ in
            try body {
                present.add(1, ordering: .relaxed)
                while present.load(ordering: .relaxed) < count { sched_yield() }
            }
        }
        try crew.work()
    }
}
