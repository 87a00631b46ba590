import Foundation
import Synchronization
import Testing

@testable import SealedDB
@testable import sealdb

@Suite(.hangLimit)
struct BatchRunnerTests {
    private let items: [StoreItem]

    init() throws {
        items = try ["a", "b", "c"].map { try StoreItem("/nowhere/\($0)") }
    }

    private func runner(deadline: Date? = nil, jobs: Int = 1, continuesOnError: Bool = false) -> BatchRunner {
        BatchRunner(jobs: jobs, continuesOnError: continuesOnError, control: BatchControl(deadline: deadline))
    }

    /// The same file is the same store, whether it is there or not.
    @Test func identitiesAreAbsolutePaths() {
        #expect(StoreItem.identity(of: "/nowhere") == "/nowhere")
        #expect(StoreItem.identity(of: "//nowhere") == "/nowhere")
        #expect(StoreItem.identity(of: "/usr/../nowhere/db") == "/nowhere/db")
        #expect(StoreItem.identity(of: "/") == "/")
    }

    /// A journal tells of the last of its batches alone.
    @Test func aJournalOfTwoBatches() throws {
        func begin(_ batch: String, _ operation: String, _ store: String) -> JournalRecord {
            var record = JournalRecord(.begin)
            record.version = JournalRecord.currentVersion
            record.batch = batch
            record.operation = operation
            record.directory = "/"
            record.stores = [store]
            return record
        }
        let records = [
            begin("first", "other", "/a"), JournalRecord(.done, path: "/a"), JournalRecord(.end),
            begin("second", "rotate", "/b"), JournalRecord(.start, path: "/b"),
        ]
        let state = try #require(try JournalState(records))
        #expect(state.batch == "second" && state.operation == "rotate")
        #expect(state.stores == ["/b"] && state.runCount == 1)
    }

    /// Where the system has no more threads, fewer do the work, or the caller's.
    @Test(arguments: [0, 1, 2]) func thereAreFewThreads(count: Int) {
        let started = Mutex(0)
        var runner = runner(jobs: 3)
        runner.startThread = { body in
            let mayStart = started.withLock { started in
                defer { started += 1 }
                return started < count
            }
            return mayStart ? WorkerThread(body) : nil
        }
        let jobs = Mutex<Set<Int>>([])
        let outcomes = runner.run(items) { _, job in
            _ = jobs.withLock { $0.insert(job) }
            return .done
        }
        #expect(outcomes == [.done, .done, .done])
        #expect(jobs.withLock { $0 }.isSubset(of: 0..<max(count, 1)))
    }

    /// What was not begun is not complete.
    @Test func nothingIsBegunAfterTheDeadline() {
        let runner = runner(deadline: Date(timeIntervalSinceNow: -1))
        let outcomes = runner.run(items) { _, _ in .done }
        #expect(outcomes == [.notBegun, .notBegun, .notBegun])
        #expect(runner.status(of: outcomes) == ExitStatus.busy.rawValue)
    }

    @Test func whatThereIsNoTimeForIsLeftOut() {
        let runner = runner(deadline: Date(timeIntervalSinceNow: 3600))
        let outcomes = runner.run(items, mayBegin: { $0.name.hasSuffix("b") }) { _, _ in .done }
        #expect(outcomes == [.notBegun, .done, .notBegun])
        #expect(runner.status(of: outcomes) == ExitStatus.busy.rawValue)
    }

    @Test func statusOfEachOutcome() {
        let failed = StoreOutcome.failed(status: 65, message: "")
        #expect(runner().status(of: [.done, .unchanged]) == 0)
        #expect(runner().status(of: []) == 0)
        #expect(runner().status(of: [.done, .stopped]) == ExitStatus.busy.rawValue)
        #expect(runner().status(of: [.done, .notBegun]) == ExitStatus.busy.rawValue)
        #expect(runner().status(of: [.done, failed, .notBegun]) == 65)
        #expect(runner(continuesOnError: true).status(of: [.done, failed, .done]) == ExitStatus.partial.rawValue)
    }

    @Test func endsWithTheFirstFailureUnlessItGoesOn() {
        let failed = StoreOutcome.failed(status: 65, message: "")
        let work: @Sendable (StoreItem, Int) -> StoreOutcome = { item, _ in item.name.hasSuffix("a") ? failed : .done }
        #expect(runner().run(items, work) == [failed, .notBegun, .notBegun])
        #expect(runner(continuesOnError: true).run(items, work) == [failed, .done, .done])
    }

    @Test func everyStoreIsWorkedOnOnce() throws {
        let items = try (0..<50).map { try StoreItem("/nowhere/\($0)") }
        let seen = Mutex<[String]>([])
        let outcomes = runner(jobs: 4).run(items) { item, job in
            seen.withLock { $0.append(item.name) }
            return (0..<4).contains(job) ? .done : .stopped
        }
        #expect(outcomes == Array(repeating: .done, count: 50))
        #expect(seen.withLock { $0.sorted() } == items.map(\.name).sorted())
    }

    @Test func controlEndsTheWorkOnAStore() {
        #expect(throws: Never.self) { try BatchControl().check() }
        #expect(throws: Never.self) { try BatchControl(deadline: Date(timeIntervalSinceNow: 60)).check() }
        let control = BatchControl(deadline: Date(timeIntervalSinceNow: -1))
        #expect(control.stopStatus == ExitStatus.busy.rawValue)
        #expect(throws: (any Error).self) { try control.check() }
        #expect(BatchControl().hasTime(for: 1e9))
        #expect(!BatchControl(deadline: Date(timeIntervalSinceNow: 60)).hasTime(for: 120))
        #expect(BatchControl(deadline: Date(timeIntervalSinceNow: 60)).hasTime(for: 5))
    }
}
