import Foundation
import Logging
import Testing

@testable import SealedDB

/// What a call may rely on: that its turn has an end, is its own, and is not touched afterwards.
@Suite(.hangLimit)
struct TurnPromiseTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func pool(_ change: (inout Configuration) -> Void = { _ in }) throws -> DatabasePool {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.writeBatching.maximumDuration = .seconds(3600)
        change(&configuration)
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try pool.write { db in try db.run("CREATE TABLE t (n INTEGER PRIMARY KEY)") }
        return pool
    }

    // MARK: Its company

    /// A block that uses a savepoint keeps others out of its transaction, and not out of later ones.
    @Test func aSavepointConcernsOneTransaction() async throws {
        let pool = try pool()
        func calls(_ first: Int, usesSavepoint: Bool) -> [@Sendable () async throws -> Void] {
            (first..<first + 4).map { number in
                { @Sendable () async throws -> Void in
                    try await pool.write { db in
                        try db.run("INSERT INTO t VALUES (?)", [number])
                        if usesSavepoint, number == first { try db.execute(script: "SAVEPOINT mine; RELEASE mine") }
                    }
                }
            }
        }
        // The first has its transaction to itself, and the next ones share another.
        for (first, usesSavepoint, commits) in [(0, true, 2), (4, false, 1)] {
            let before = pool.writer.commitCount
            for task in try await behindABarrier(pool, calls(first, usesSavepoint: usesSavepoint)) {
                try await task.value
            }
            #expect(pool.writer.commitCount == before + commits, "\(usesSavepoint)")
        }
        try await pool.write { db in try db.execute(script: "SAVEPOINT mine; RELEASE mine") }
        let before = pool.writer.commitCount
        for task in try await behindABarrier(pool, calls(8, usesSavepoint: false)) { try await task.value }
        #expect(pool.writer.commitCount == before + 1)
    }

    // MARK: Its end

    @Test func aQueueMayBeDroppedRightAfterACall() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for number in 0..<1000 {
                        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
                        try await queue.write { db in try db.run("CREATE TABLE t AS SELECT ? AS n", [number]) }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test(arguments: [0.0001, 0.001])
    func waitsThatEndWhileTheyAreServed(limit: Double) async throws {
        let pool = try pool()
        pool.maximumWait = .seconds(limit)
        let outcomes = try await withThrowingTaskGroup(of: Int.self) { group in
            for worker in 0..<16 {
                group.addTask {
                    var served = 0
                    for _ in 0..<100 {
                        do {
                            if worker % 2 == 0 {
                                served += try await pool.write { _ in 1 }
                            } else {
                                served += try await onThread { try pool.write { _ in 1 } }
                            }
                        } catch let error as DatabaseError where error.reason == .busy {
                            continue
                        }
                    }
                    return served
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(outcomes > 0)
        pool.maximumWait = nil
        #expect(try await pool.write { _ in 1 } == 1)
    }

    @Test func aCapturedObjectMayUseTheQueueWhenItEnds() async throws {
        final class Saver: Sendable {
            let queue: DatabaseQueue
            let outcome: Log<Bool>

            init(_ queue: DatabaseQueue, _ outcome: Log<Bool>) { (self.queue, self.outcome) = (queue, outcome) }

            deinit { outcome.add((try? queue.write { db in try db.run("INSERT INTO t VALUES (7)") }) != nil) }
        }
        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
        try queue.inDatabase { db in try db.run("CREATE TABLE t (n)") }
        let outcome = Log<Bool>()
        func call() async throws {
            let saver = Saver(queue, outcome)
            try await queue.write { [saver] db in
                _ = saver
                try db.run("INSERT INTO t VALUES (1)")
            }
        }
        try await call()
        #expect(outcome.values == [true])
        #expect(try await queue.read { db in try db.integers("SELECT n FROM t") } == [1, 7])
    }

    // MARK: Shared transactions

    /// After a block that took long, the next ones do not make each other wait for such a thing again.
    @Test func whoRanLongLatelyDoesNotShare() async throws {
        let pool = try pool { $0.writeBatching.maximumDuration = .milliseconds(20) }
        try await pool.write { _ in
            let end = DispatchTime.now() + 0.2
            while DispatchTime.now() < end {}
        }
        let before = pool.writer.commitCount
        let calls = (0..<2).map { number in
            { @Sendable () async throws -> Void in
                try await pool.write { db in try db.run("INSERT INTO t VALUES (?)", [number]) }
            }
        }
        for task in try await behindABarrier(pool, calls) { try await task.value }
        #expect(pool.writer.commitCount == before + 2)
    }

    @Test func aBlockThatOutrunsThePromiseIsTold() async throws {
        let log = Log<String>()
        let pool = try pool { configuration in
            configuration.writeBatching.maximumDuration = .seconds(1)
            configuration.logger = Logger(to: log)
        }
        let calls: [@Sendable () async throws -> Void] = [
            { try await pool.write { db in try db.run("INSERT INTO t VALUES (0)") } },
            // Longer than the promise: how long it takes is what the test is about.
            { try await pool.write { _ in _ = usleep(1_100_000) } },
        ]
        for task in try await behindABarrier(pool, calls) { try await task.value }
        // On a slow machine the second one may have come too late to share. Then nobody was kept waiting.
        let isShared = pool.writer.commitCount == 2
        #expect(log.values.contains { $0.contains("kept others waiting") } == isShared)
    }

    @Test func aBlocksOwnErrorIsItsOwn() async throws {
        struct Own: Error {}
        let pool = try pool()
        let calls: [@Sendable () async throws -> Void] = [
            { try await pool.write { db in try db.run("INSERT INTO t VALUES (0)") } },
            { try await pool.write { _ in throw Own() } },
            { try await pool.write { db in try db.run("INSERT OR ROLLBACK INTO t VALUES (0)") } },
        ]
        let tasks = try await behindABarrier(pool, calls)
        let first = await #expect(throws: DatabaseError.self) { try await tasks[0].value }
        #expect(first?.message.contains("shared the transaction") == true)
        await #expect(throws: Own.self) { try await tasks[1].value }
        let guilty = await #expect(throws: DatabaseError.self) { try await tasks[2].value }
        #expect(guilty?.message.contains("shared the transaction") == false)
    }

    @Test func whoBeginsToObserveMeanwhileIsTold() async throws {
        let pool = try pool()
        let observed = Log<DatabaseChangeSequence>()
        let calls: [@Sendable () async throws -> Void] = [
            {
                try await pool.write { db in
                    try db.run("INSERT INTO t VALUES (0)")
                    observed.add(pool.changes(in: ["t"]))
                }
            },
            { try await pool.write { db in try db.run("INSERT INTO t VALUES (1)") } },
        ]
        for task in try await behindABarrier(pool, calls) { try await task.value }
        var changes = try #require(observed.values.first).makeAsyncIterator()
        // It may have read the store before the commit, so that it is told of all of that.
        #expect(await changes.next()?.tables == ["t": .any])
    }

    // MARK: The caller's task

    private enum Request {
        @TaskLocal static var name = "none"
    }

    @Test func blocksOfTasksAreTheirs() async throws {
        let pool = try pool()
        let names = try await Request.$name.withValue("seven") { () async throws -> [String] in
            [
                try await pool.read { _ in Request.name },
                try await pool.write { _ in Request.name },
                try await pool.writeWithoutTransaction { _ in Request.name },
                try await pool.barrier { _ in Request.name },
            ]
        }
        #expect(names == Array(repeating: "seven", count: 4))
    }

    @Test(arguments: [true, false])
    func cancelledWhileItComputesIsUndone(isShared: Bool) async throws {
        let pool = try pool()
        let (started, cancelled) = (Gate(), Gate())
        let guilty: @Sendable () async throws -> Void = {
            try await pool.write { db in
                try db.run("INSERT INTO t VALUES (1)")
                started.open()
                cancelled.waitBlocking()
                #expect(Task.isCancelled)
            }
        }
        let other: @Sendable () async throws -> Void = {
            try await pool.write { db in try db.run("INSERT INTO t VALUES (2)") }
        }
        let tasks = try await behindABarrier(pool, isShared ? [other, guilty] : [guilty])
        await started.wait()
        tasks.last!.cancel()
        cancelled.open()
        await #expect(throws: CancellationError.self) { try await tasks.last!.value }
        #expect(try await pool.read { db in try db.integers("SELECT n FROM t") } == (isShared ? [2] : []))
    }

    @Test func threadsRankAsTasksOfMediumPriority() async throws {
        let pool = try pool()
        let order = Log<String>()
        let (held, release) = (Gate(), Gate())
        let holder = Task {
            try await pool.writeWithoutTransaction { _ in
                held.open()
                release.waitBlocking()
            }
        }
        await held.wait()
        let background = Task(priority: .background) { try await pool.write { _ in order.add("background") } }
        while pool.sharedWriter.lane.waitingCount < 1 { await Task.yield() }
        let thread = Task { try await onThread { try pool.write { _ in order.add("thread") } } }
        while pool.sharedWriter.lane.waitingCount < 2 { await Task.yield() }
        release.open()
        try await holder.value
        try await thread.value
        try await background.value
        #expect(order.values == ["thread", "background"])
    }

    @Test func observersOfAStoreThatWasReplacedAreTold() async throws {
        let path = directory.file("db")
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.journalMode = .delete
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try await queue.write { db in try db.run("CREATE TABLE t (n)") }
        try FileManager.default.copyItem(atPath: path, toPath: directory.file("other"))
        var changes = queue.changes(in: ["t"]).makeAsyncIterator()
        #expect(rename(directory.file("other"), path) == 0)
        _ = try await queue.read { db in try db.integers("SELECT count(*) FROM t") }
        #expect(await changes.next()?.tables == ["t": .any])
    }
}

/// Runs a call on a thread of its own.
func onThread<T: Sendable>(_ call: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { done in
        Thread.detachNewThread { done.resume(with: Result { try call() }) }
    }
}
