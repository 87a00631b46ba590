import Foundation
import Synchronization

/// Workers that take items from one list until it is empty.
final class Pool {
    private let workers: [Worker]

    init(_ workers: [Worker]) { self.workers = workers }

    var first: Worker { workers[0] }

    /// The results in the order of the items. Ends early with the first error, which is the harness's own.
    func map<Item: Sendable, Output: Sendable>(
        _ items: [Item],
        _ body: @escaping @Sendable (Worker, Item) throws -> Output
    ) throws -> [Output] {
        let list = WorkList<Output>(count: items.count)
        let group = DispatchGroup()
        for worker in workers {
            let lent = Lent(worker: worker)
            group.enter()
            // A thread of its own: Dispatch's have a lower priority, which the processes would inherit.
            Thread.detachNewThread {
                while let index = list.take() {
                    list.finish(index, Result { try body(lent.worker, items[index]) })
                }
                group.leave()
            }
        }
        group.wait()
        return try list.outputs()
    }

    /// A worker on its way to the one thread that uses it.
    // @unchecked: `map` waits for that thread, and is not called by two threads.
    private struct Lent: @unchecked Sendable {
        let worker: Worker
    }
}

/// What is still to be done, and what has come of the rest.
private final class WorkList<Output: Sendable>: Sendable {
    private struct State: Sendable {
        var next = 0
        var outputs: [Int: Output] = [:]
        var error: (any Error)?
    }

    private let count: Int
    private let state = Mutex(State())

    init(count: Int) { self.count = count }

    func take() -> Int? {
        state.withLock { state in
            guard state.next < count, state.error == nil else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    func finish(_ index: Int, _ result: Result<Output, any Error>) {
        state.withLock { state in
            switch result {
            case .success(let output): state.outputs[index] = output
            case .failure(let error): state.error = error
            }
        }
    }

    func outputs() throws -> [Output] {
        try state.withLock { state in
            if let error = state.error { throw error }
            return (0..<count).compactMap { state.outputs[$0] }
        }
    }
}
