import Foundation
import Synchronization
import Wire

/// Threads that use one store at the same time.
enum ConcurrencyCases {
    static let threadCounts = [1, 2, 4, 8]
    static let coldThreadCounts = [1, 8]
    /// Passes of ``PointCases/queries`` queries that each thread does.
    static let passes = 8
    /// Threads whose writes wait at the same time, for the queue that lets them share commits.
    static let batchCounts = [1, 8, 64]

    /// Rows that each of the writing threads commits in a pass: more of them where commits are shared, and cheap.
    static func commits(_ threads: Int, shared: Bool) -> Int { max(shared ? 16 : 1, 16 / threads) }

    static var infos: [CaseInfo] {
        threadCounts.map { threads in
            CaseInfo(
                id: "concurrency.readers.\(threads)",
                group: "Concurrency",
                title: "point queries by \(threads) reader\(threads == 1 ? "" : "s"), each with a connection",
                unit: "query",
                set: "readers"
            )
        }
            + coldThreadCounts.map { threads in
                CaseInfo(
                    id: "concurrency.cold.\(threads)",
                    group: "Concurrency",
                    title: "point queries by \(threads) reader\(threads == 1 ? "" : "s"), whose caches hold few pages",
                    unit: "query",
                    set: "cold readers"
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
                    title: "durable rows by \(threads) writer\(threads == 1 ? "" : "s"), a commit each (WAL, FULL)",
                    unit: "row",
                    set: "writers"
                )
            }
            + batchCounts.map { threads in
                CaseInfo(
                    id: "concurrency.batched.\(threads)",
                    group: "Concurrency",
                    title:
                        "durable rows by \(threads) writer\(threads == 1 ? "" : "s") that share commits; C commits each",
                    unit: "row",
                    set: "writers"
                )
            } + [
                CaseInfo(
                    id: "concurrency.tasks.64",
                    group: "Concurrency",
                    title: "durable rows by 64 tasks that share commits; C commits each, by threads",
                    unit: "row",
                    set: "writers"
                ),
                CaseInfo(
                    id: "concurrency.await",
                    group: "Concurrency",
                    title: "point query by await, one after the other; C without a lock",
                    unit: "query"
                ),
                CaseInfo(
                    id: "concurrency.parked",
                    group: "Concurrency",
                    title: "point query by a call that parks its thread, one after the other; C without a lock",
                    unit: "query"
                ),
                CaseInfo(
                    id: Turns.first.id,
                    group: "Concurrency",
                    title: "\(turnRows) rows by the first of 8 connections that write all the while (NORMAL)",
                    unit: "row"
                ),
                CaseInfo(
                    id: Turns.last.id,
                    group: "Concurrency",
                    title: "\(turnRows) rows by the last of 8 connections that write all the while (NORMAL)",
                    unit: "row"
                ),
                CaseInfo(
                    id: "concurrency.rotation",
                    group: "Concurrency",
                    title: "write that waits for the end of a rotation in service, by the store's size",
                    unit: "MiB",
                    bytes: 1_048_576
                ),
            ]
    }

    /// Which of the writers is waited for that all write as long as anybody is.
    enum Turns: String, CaseIterable {
        case first, last

        var id: String { "concurrency.turns.\(self)" }
    }

    static let turnRows = 1500

    // MARK: Work

    static func reading(_ threads: Int, _ read: @escaping (Int) throws -> Void) -> Work {
        let crew = Crew(threads) { thread in
            for _ in 0..<passes { try read(thread) }
        }
        return Work(units: threads * passes * PointCases.queries, isUniform: false) {
            try crew.work()
            return UInt64(threads)
        }
    }

    static func writing(_ threads: Int, sharesCommits: Bool = false, _ write: @escaping () throws -> Void) -> Work {
        let commits = commits(threads, shared: sharesCommits)
        let crew = Crew(threads) { _ in
            for _ in 0..<commits { try write() }
        }
        return Work(units: threads * commits, isUniform: false) {
            try crew.work()
            return UInt64(threads)
        }
    }

    /// Eight threads write; the pass ends when the first or the last of them has written so many rows.
    static func takingTurns(_ turns: Turns, _ write: @escaping (Int) throws -> Void) -> Work {
        let threads = 8
        let finished = Atomic(0)
        let crew = Crew(threads) { thread in
            var rows = 0
            while finished.load(ordering: .relaxed) < (turns == .first ? 1 : threads) {
                try write(thread)
                rows += 1
                if rows == turnRows { finished.add(1, ordering: .relaxed) }
            }
        }
        return Work(units: turnRows, isUniform: false) {
            finished.store(0, ordering: .relaxed)
            try crew.work()
            return UInt64(turnRows)
        }
    }

    static func writingInTasks(_ tasks: Int, _ write: @escaping @Sendable () async throws -> Void) -> Work {
        let commits = commits(tasks, shared: true)
        return Work(units: tasks * commits, isUniform: false) {
            try inTask {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<tasks {
                        group.addTask {
                            for _ in 0..<commits { try await write() }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            return UInt64(tasks)
        }
    }

    /// Runs the body in a task, and waits for it.
    static func inTask(_ body: @escaping @Sendable () async throws -> Void) throws {
        let done = DispatchSemaphore(value: 0)
        let error = Mutex<(any Error)?>(nil)
        Task {
            do {
                try await body()
            } catch let thrown {
                error.withLock { $0 = thrown }
            }
            done.signal()
        }
        done.wait()
        if let error = error.withLock({ $0 }) { throw error }
    }

    /// Two threads read; a third writes, one row after the other, until they are done.
    static func readingWhileWriting(
        _ read: @escaping (Int) throws -> Void,
        write: @escaping (Int) throws -> Void
    ) -> Work {
        let readersLeft = Atomic(0)
        let crew = Crew(3) { thread in
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
        return Work(units: 2 * passes * PointCases.queries, isUniform: false) {
            readersLeft.store(2, ordering: .relaxed)
            try crew.work()
            return 2
        }
    }
}
