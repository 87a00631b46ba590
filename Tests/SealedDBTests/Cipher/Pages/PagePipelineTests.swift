import Foundation
import Testing

@testable import SealedDB

/// All runs are worked on, once, and delivered in order, however many threads there are.
@Suite(.hangLimit)
struct PagePipelineTests {
    /// What the workers of one pipeline do.
    struct State {
        var reads: [ClosedRange<Int64>] = []
        var deliveredRuns = 0
        var workerCount = 0
        var readerCount = 0
        var busyCount = 0 { didSet { mostBusy = max(mostBusy, busyCount) } }
        var mostBusy = 0
    }

    // @unchecked: the state is only touched while `condition` is locked.
    private final class Record: @unchecked Sendable {
        private let condition = NSCondition()
        private var state = State()

        @discardableResult
        func sync<T>(_ body: (inout State) throws -> T) rethrows -> T {
            condition.lock()
            defer {
                condition.broadcast()
                condition.unlock()
            }
            return try body(&state)
        }

        /// Waits until the state is so, or until the time is over.
        func wait(seconds: Double = 600, until isSo: (State) -> Bool) {
            condition.lock()
            defer { condition.unlock() }
            let end = Date(timeIntervalSinceNow: seconds)
            while !isSo(state), condition.wait(until: end) {}
        }
    }

    private final class Worker: PageWorker {
        private let record: Record
        private let reading: (ClosedRange<Int64>) throws(DatabaseError) -> Void
        private let working: (ClosedRange<Int64>) throws(DatabaseError) -> Void
        private var pages: ClosedRange<Int64>?

        init(
            _ record: Record,
            reading: @escaping (ClosedRange<Int64>) throws(DatabaseError) -> Void = { _ in },
            working: @escaping (ClosedRange<Int64>) throws(DatabaseError) -> Void = { _ in }
        ) {
            (self.record, self.reading, self.working) = (record, reading, working)
            record.sync { $0.workerCount += 1 }
        }

        deinit {
            record.sync { $0.workerCount -= 1 }
        }

        func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
            record.sync { record in
                record.readerCount += 1
                #expect(record.readerCount == 1, "two workers read at once")
                record.reads.append(numbers)
            }
            defer { record.sync { $0.readerCount -= 1 } }
            try reading(numbers)
            pages = numbers
        }

        func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> [Int64] {
            #expect(pages == numbers, "other pages were read")
            record.sync { $0.busyCount += 1 }
            defer { record.sync { $0.busyCount -= 1 } }
            try working(numbers)
            return Array(numbers)
        }
    }

    private static let failure = DatabaseError(extendedCode: SQLITE_IOERR_READ, message: "of the test")

    private func pipeline(pages: Int64, workers: Int, pageSize: Int = 4096) -> PagePipeline {
        var pipeline = PagePipeline(pageSize: pageSize, pageCount: pages)
        pipeline.workerCount = workers
        return pipeline
    }

    @Test(arguments: [1, 2, 3, 8], [0, 1, 63, 64, 65, 128, 1000, 6400] as [Int64])
    func eachPageOnceAndInOrder(workers: Int, pages: Int64) throws {
        let record = Record()
        var delivered: [Int64] = []
        let thread = pthread_self()
        try pipeline(pages: pages, workers: workers).forEachRun { () throws(DatabaseError) in
            Worker(record)
        } deliver: { numbers, outcome in
            #expect(pthread_equal(pthread_self(), thread) != 0)
            #expect(outcome == Array(numbers))
            delivered += outcome
            return true
        }
        #expect(delivered == (pages > 0 ? Array(1...pages) : []))
        record.sync { record in
            // Read in order, and nothing is left of the workers.
            #expect(record.reads.flatMap(Array.init) == delivered)
            #expect(record.workerCount == 0 && record.busyCount == 0)
        }
    }

    @Test func asManyWorkAtTheSameTime() throws {
        let record = Record()
        var runs = 0
        try pipeline(pages: 6400, workers: 3).forEachRun { () throws(DatabaseError) in
            Worker(record, working: { _ in record.wait { $0.mostBusy >= 3 } })
        } deliver: { _, _ in
            runs += 1
            return true
        }
        #expect(runs == 100 && record.sync { $0.mostBusy } == 3)
    }

    /// Runs that nobody has taken delivery of do not pile up.
    @Test func aSlowCallerIsWaitedFor() throws {
        let record = Record()
        try pipeline(pages: 64000, workers: 3).forEachRun { () throws(DatabaseError) in
            Worker(record)
        } deliver: { _, _ in
            let most = record.sync { record in
                record.deliveredRuns += 1
                return record.deliveredRuns + 12
            }
            // The time is over when no more are taken, as they must not be.
            if most == 13 { record.wait(seconds: 0.3) { $0.reads.count > most } }
            record.sync { #expect($0.reads.count <= most) }
            return true
        }
        #expect(record.sync { $0.deliveredRuns } == 1000)
    }

    @Test(arguments: [1, 2, 8], [0, 1, 7, 20] as [Int64])
    func aFailureEndsAllBehindWhatWasBefore(workers: Int, run: Int64) throws {
        let first = run * 64 + 1
        for failsInReading in [true, false] {
            let record = Record()
            var delivered: [Int64] = []
            let fail = { (numbers: ClosedRange<Int64>) throws(DatabaseError) in
                if numbers.lowerBound == first { throw Self.failure }
            }
            let error = #expect(throws: DatabaseError.self) {
                try pipeline(pages: 64000, workers: workers).forEachRun { () throws(DatabaseError) in
                    failsInReading ? Worker(record, reading: fail) : Worker(record, working: fail)
                } deliver: { _, outcome in
                    delivered += outcome
                    return true
                }
            }
            #expect(error == Self.failure)
            #expect(delivered == (run > 0 ? Array(1..<first) : []))
            record.sync { record in
                #expect(record.workerCount == 0 && record.busyCount == 0)
                if failsInReading { #expect(record.reads.last?.lowerBound == first) }
                #expect(record.reads.count <= Int(run) + 4 * workers)
            }
        }
    }

    @Test(arguments: [1, 2, 8]) func theCallerStopsIt(workers: Int) throws {
        let record = Record()
        var delivered: [Int64] = []
        try pipeline(pages: 64000, workers: workers).forEachRun { () throws(DatabaseError) in
            Worker(record)
        } deliver: { _, outcome in
            delivered += outcome
            return delivered.count < 640
        }
        #expect(delivered == Array(1...640))
        #expect(record.sync { $0.reads.count } <= 10 + 4 * workers)
        #expect(record.sync { $0.workerCount } == 0)
    }

    /// Its memory and its connection may be gone next.
    @Test func noHelperIsAtWorkAfterwards() throws {
        let record = Record()
        let caller = Int(bitPattern: pthread_self())
        let (isInside, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try pipeline(pages: 64000, workers: 2).forEachRun { () throws(DatabaseError) in
            Worker(
                record,
                working: { numbers in
                    // Nothing is delivered before the first run, which the helper may get.
                    guard Int(bitPattern: pthread_self()) != caller, numbers.lowerBound > 1 else { return }
                    isInside.signal()
                    mayEnd.wait()
                    for _ in 0..<2000 { sched_yield() }
                }
            )
        } deliver: { _, _ in
            isInside.wait()
            // The helper may take some more runs before it is stopped.
            for _ in 0..<10 { mayEnd.signal() }
            return false
        }
        #expect(record.sync { $0.busyCount } == 0 && record.sync { $0.workerCount } == 0)
    }

    // MARK: What cannot be had

    @Test(arguments: [0, 1, 2]) func threadsThatTheSystemDoesNotGive(given: Int) throws {
        let record = Record()
        var pipeline = pipeline(pages: 6400, workers: 8)
        var asked = 0
        pipeline.startThread = { body in
            asked += 1
            return asked <= given ? WorkerThread(body) : nil
        }
        var delivered: [Int64] = []
        try pipeline.forEachRun { () throws(DatabaseError) in
            Worker(record)
        } deliver: { _, outcome in
            delivered += outcome
            return true
        }
        #expect(delivered == Array(1...6400) && asked == given + 1)
        #expect(record.sync { $0.mostBusy } <= given + 1 && record.sync { $0.workerCount } == 0)
    }

    @Test func workersThatCannotBeMade() throws {
        for made in 0..<3 {
            let record = Record()
            var asked = 0
            var delivered: [Int64] = []
            let result = Result { () throws(DatabaseError) in
                try pipeline(pages: 6400, workers: 8).forEachRun { () throws(DatabaseError) in
                    asked += 1
                    guard asked <= made else { throw Self.failure }
                    return Worker(record)
                } deliver: { _, outcome in
                    delivered += outcome
                    return true
                }
            }
            #expect(asked == made + 1)
            #expect(delivered == (made > 0 ? Array(1...6400) : []))
            if made == 0 { #expect(throws: Self.failure) { try result.get() } } else { try result.get() }
        }
    }

    // MARK: How much

    @Test func littleIsDoneOnTheCallersThread() {
        for size in [512, 4096, 65536] {
            let small = PagePipeline(pageSize: size, pageCount: Int64((1 << 20) / size - 1))
            #expect(small.workerCount == 1)
            let large = PagePipeline(pageSize: size, pageCount: Int64((1 << 20) / size))
            #expect(large.workerCount == min(8, WorkerThread.processorCount))
        }
    }

    @Test func aRunIsBounded() {
        for size in (9...16).map({ 1 << $0 }) {
            let pages = PagePipeline(pageSize: size, pageCount: 1000).pagesInRun
            #expect(pages >= 1 && pages <= 64 && pages * size <= 1 << 18)
            #expect(pages == 64 || pages * size == 1 << 18)
        }
    }

    @Test func processorsAreThoseOfTheThread() throws {
        let status = try String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)
        let mask = try #require(status.firstMatch(of: /Cpus_allowed:\t([0-9a-f,]+)/)).1
        let count = mask.reduce(0) { $0 + ($1.hexDigitValue ?? 0).nonzeroBitCount }
        #expect(WorkerThread.processorCount == count)
    }

    /// A service's signals are for its own threads.
    @Test func helpersGetNoSignals() throws {
        var before = sigset_t()
        #expect(pthread_sigmask(SIG_BLOCK, nil, &before) == 0)
        nonisolated(unsafe) var blocked: [Int32: Bool] = [:]
        let thread = try #require(
            WorkerThread {
                var mask = sigset_t()
                #expect(pthread_sigmask(SIG_BLOCK, nil, &mask) == 0)
                for signal in [SIGTERM, SIGINT, SIGCHLD, SIGSEGV, SIGABRT] {
                    blocked[signal] = sigismember(&mask, signal) == 1
                }
            }
        )
        thread.join()
        #expect(blocked == [SIGTERM: true, SIGINT: true, SIGCHLD: true, SIGSEGV: false, SIGABRT: false])
        // The caller's own signals are as they were.
        var after = sigset_t()
        #expect(pthread_sigmask(SIG_BLOCK, nil, &after) == 0)
        for signal in Int32(1)..<32 { #expect(sigismember(&before, signal) == sigismember(&after, signal)) }
    }
}
