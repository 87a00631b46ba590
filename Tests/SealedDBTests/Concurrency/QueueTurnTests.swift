import Foundation
import Testing

@testable import SealedDB

/// How a turn of the writer ends, and how it goes from one caller to the next.
@Suite(.hangLimit)
struct QueueTurnTests {
    private struct Failure: Error {}

    /// A connection that is never opened.
    private struct Handed: @unchecked Sendable {
        let value: Database
    }

    enum Caller: CaseIterable, Sendable { case task, thread }

    /// On this thread.
    private static func write(_ writer: Writer, _ block: (Database) throws -> Void) {
        _ = try? writer.write(alone: false, block)
    }

    /// Who has been told may drop the queue: its connection must not be in use any more.
    @Test(arguments: Caller.allCases, [false, true])
    func callersAreToldWhenTheTurnIsOver(caller: Caller, fails: Bool) async throws {
        let database = Database(path: nil, configuration: Configuration(), gate: ThreadGate())
        let told = StopFlag()
        let early = Log<String>()
        let writer = Writer(
            database: database,
            reception: Reception(readers: 0, lends: false, instruments: Instruments(path: nil)),
            ready: { db throws(DatabaseError) in try db.openVerified() },
            afterTurn: { _ in
                // Time enough for a caller who was told before.
                for _ in 0..<2000 where !told.isSet { sched_yield() }
                if told.isSet { early.add("told before the turn was over") }
            }
        )
        let block: @Sendable (Database) throws -> Void = { _ in if fails { throw Failure() } }
        switch caller {
        case .task: _ = try? await writer.write(alone: false, block)
        case .thread: QueueTurnTests.write(writer, block)
        }
        told.set()
        #expect(early.values == [])
        #expect(writer.commitCount == (fails ? 0 : 1))
    }

    /// Several share a transaction: those who do not end it are told no sooner.
    @Test func thoseWhoShareAreToldWhenTheTurnIsOver() async throws {
        let database = Database(path: nil, configuration: Configuration(), gate: ThreadGate())
        let told = StopFlag()
        let early = Log<String>()
        var limits = Configuration.WriteBatching()
        // A slow machine must not end a transaction.
        limits.maximumDuration = .seconds(3600)
        let writer = Writer(
            database: database,
            limits: limits,
            reception: Reception(readers: 0, lends: false, instruments: Instruments(path: nil)),
            ready: { db throws(DatabaseError) in try db.openVerified() },
            afterTurn: { _ in
                for _ in 0..<2000 where !told.isSet { sched_yield() }
                if told.isSet { early.add("told before the turn was over") }
            }
        )
        let release = Gate()
        let held = Gate()
        let holder = Task {
            try await writer.write(alone: true) { _ in
                held.open()
                release.waitBlocking()
            }
        }
        await held.wait()
        let tasks = (0..<4).map { number in
            Task {
                if number % 2 == 0 {
                    try await writer.write(alone: false) { _ in }
                } else {
                    try await withCheckedThrowingContinuation { done in
                        Thread.detachNewThread { done.resume(with: Result { try writer.write(alone: false) { _ in } }) }
                    }
                }
                told.set()
            }
        }
        while writer.lane.waitingCount < 4 { await Task.yield() }
        release.open()
        try await holder.value
        for task in tasks { try await task.value }
        #expect(early.values == [])
        #expect(writer.commitCount == 2)
    }

    /// Under the sanitizers: the last reference goes away where the caller goes on.
    @Test func queuesAreDroppedRightAfterTheirLastCall() async throws {
        let count = 600
        let stored = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<count {
                group.addTask {
                    let queue = try DatabaseQueue(path: nil, configuration: Configuration())
                    try await queue.write { db in
                        try db.executeUpdate("CREATE TABLE t (n)", values: nil)
                        try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                    }
                    guard number % 2 == 0 else { return 1 }
                    // Several share the last turn.
                    async let first: Void = queue.write { db in
                        try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                    }
                    async let second: Void = queue.write { db in
                        try db.executeUpdate("INSERT INTO t VALUES (2)", values: nil)
                    }
                    try await first
                    try await second
                    return 3
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(stored == count * 2)
    }

    /// A pool may be told to release its connections at any moment of a turn.
    @Test func connectionsAreReleasedWhileTheyAreUsed() async throws {
        let directory = try TemporaryDirectory()
        let pool = DatabasePool(
            path: directory.file("db"),
            configuration: try Configuration(key: isEncrypting ? .testing(1) : nil)
        )
        try await pool.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        let writers = (0..<4).map { number in
            Task {
                for _ in 0..<25 {
                    try await pool.write { db in try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number]) }
                }
            }
        }
        let releaser = Task { for _ in 0..<40 { pool.releaseAllDatabases(); await Task.yield() } }
        for writer in writers { try await writer.value }
        await releaser.value
        pool.releaseAllDatabases()
        #expect(pool.countOfOpenDatabases == 0)
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [100])
    }

    // MARK: Waits that end at the last moment

    /// One who is taken out of the line at its limit has the place only when it is given up.
    @Test func aHandOverThatHasBegunIsWaitedFor() async throws {
        var begun = 0
        while begun < 3 {
            let database = Handed(value: Database(path: nil, configuration: Configuration(), gate: ThreadGate()))
            let reception = Reception(readers: 0, lends: false, instruments: Instruments(path: nil))
            let place = try reception.enter(.writer, call: "test")
            reception.maximumWait = 0.1
            let (entered, ended) = (StopFlag(), StopFlag())
            let end = Gate()
            Thread.detachNewThread {
                if let place = try? reception.enter(.writer, call: "test", shareable: true) {
                    entered.set()
                    database.value.enter()
                    reception.leave(place, database.value)
                }
                ended.set()
                end.open()
            }
            while reception.look({ $0.waitingCount(.writer) }) == 0, !ended.isSet { sched_yield() }
            // On a slow machine it may have given up already.
            if let next = reception.passOn(place) {
                begun += 1
                let limit = DispatchTime.now() + 0.2
                while DispatchTime.now() < limit, !entered.isSet { sched_yield() }
                #expect(!entered.isSet, "It used the place while another one had it.")
                next.tell(.success(place))
                await end.wait()
                #expect(entered.isSet)
            } else {
                await end.wait()
            }
        }
    }

    /// With limits about as long as a turn, waits end and places are handed over at the same moment.
    @Test(arguments: [0.0, 0.0002, 0.002])
    func nothingIsLostWhenWaitsEndAtTheLastMoment(limit: Double) async throws {
        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
        try await queue.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        queue.maximumWait = .seconds(limit)
        let outcomes = Log<Bool>()
        let strange = Log<String>()
        let callers = DispatchGroup()
        for number in 0..<12 {
            callers.enter()
            Thread.detachNewThread {
                for _ in 0..<100 {
                    do {
                        try queue.write { db in try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number]) }
                        outcomes.add(true)
                    } catch let error as DatabaseError where error.reason == .busy {
                        outcomes.add(false)
                    } catch {
                        strange.add("\(error)")
                    }
                }
                callers.leave()
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    for _ in 0..<50 {
                        do {
                            try await queue.write { db in
                                try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                            }
                            outcomes.add(true)
                        } catch let error as DatabaseError where error.reason == .busy {
                            outcomes.add(false)
                        } catch {
                            strange.add("\(error)")
                        }
                    }
                }
            }
        }
        await withCheckedContinuation { done in callers.notify(queue: .global()) { done.resume() } }
        queue.maximumWait = nil
        #expect(strange.values == [])
        #expect(outcomes.values.count == 1400)
        let stored = try await queue.read { db in try db.integers("SELECT count(*) FROM t") }
        #expect(stored == [outcomes.values.count { $0 }])
    }

    /// FMDB's `close` reports nothing, so it must not leave the connection open.
    @Test func closeThatWaitedTooLongClosesLater() throws {
        let directory = try TemporaryDirectory()
        let queue = try DatabaseQueue(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? .testing(1) : nil)
        )
        let (entered, leave, left) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        Thread.detachNewThread {
            queue.inDatabase { _ in
                entered.signal()
                leave.wait()
            }
            left.signal()
        }
        #expect(entered.wait(timeout: .now() + 60) == .success)
        queue.maximumWait = .milliseconds(50)
        queue.close()
        // The lock of whoever has a key.
        #expect(directory.names.contains("db-sealdb-lock") == isEncrypting)
        leave.signal()
        #expect(left.wait(timeout: .now() + 60) == .success)
        #expect(directory.names == ["db"])
    }
}
