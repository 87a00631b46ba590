import Foundation
import Synchronization
import Wire

/// Threads that use one store at the same time.
enum ConcurrencyCases {
    static let threadCounts = [1, 2, 4, 8]
    /// Passes of ``PointCases/queries`` queries that each thread does.
    static let passes = 8
    /// Rows that each of the writing threads commits.
    static let commits = 16

    static var infos: [CaseInfo] {
        threadCounts.map { threads in
            CaseInfo(
                id: "concurrency.readers.\(threads)",
                group: "Concurrency",
                title: "point queries by \(threads) reader\(threads == 1 ? "" : "s"), each with a connection",
                unit: "query"
            )
        } + [
            CaseInfo(
                id: "concurrency.readers-writer.2",
                group: "Concurrency",
                title: "point queries by 2 readers while 1 writes (NORMAL)",
                unit: "query"
            )
        ]
            + threadCounts.map { threads in
                CaseInfo(
                    id: "concurrency.writers.\(threads)",
                    group: "Concurrency",
                    title: "durable rows by \(threads) writer\(threads == 1 ? "" : "s") through a queue (WAL, FULL)",
                    unit: "row"
                )
            }
    }

    // MARK: Work

    static func reading(_ threads: Int, _ read: @escaping (Int) throws -> Void) -> Work {
        Work(units: threads * passes * PointCases.queries, isUniform: false) {
            try inThreads(threads) { thread in
                for _ in 0..<passes { try read(thread) }
            }
            return UInt64(threads)
        }
    }

    static func writing(_ threads: Int, _ write: @escaping () throws -> Void) -> Work {
        Work(units: threads * commits, isUniform: false) {
            try inThreads(threads) { _ in
                for _ in 0..<commits { try write() }
            }
            return UInt64(threads)
        }
    }

    /// Two threads read; a third writes, one row after the other, until they are done.
    static func readingWhileWriting(
        _ read: @escaping (Int) throws -> Void,
        write: @escaping (Int) throws -> Void
    ) -> Work {
        Work(units: 2 * passes * PointCases.queries, isUniform: false) {
            let readersLeft = Atomic(2)
            try inThreads(3) { thread in
                if thread < 2 {
                    defer { readersLeft.subtract(1, ordering: .relaxed) }
                    for _ in 0..<passes { try read(thread) }
                } else {
                    var number = 1
                    while readersLeft.load(ordering: .relaxed) > 0 {
                        try write(number)
                        number += 1
                    }
                }
            }
            return 2
        }
    }

    /// Runs the body in as many threads, and waits for them. Dispatch would not start more threads than processors.
    static func inThreads(_ count: Int, _ body: @escaping (Int) throws -> Void) throws {
        // Each thread uses what is its own, or what has a lock.
        nonisolated(unsafe) let body = body
        let errors = Mutex<[any Error]>([])
        let group = DispatchGroup()
        for index in 0..<count {
            group.enter()
            Thread {
                do {
                    try body(index)
                } catch {
                    errors.withLock { $0.append(error) }
                }
                group.leave()
            }.start()
        }
        group.wait()
        if let error = errors.withLock({ $0.first }) { throw error }
    }
}
