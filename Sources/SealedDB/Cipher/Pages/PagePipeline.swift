/// Works on runs of pages for a ``PagePipeline``. Only one thread uses a worker.
protocol PageWorker: AnyObject {
    associatedtype Outcome: Sendable

    /// Reads these pages into the worker's own memory. Only one worker of a pipeline reads at a time, and they read in
    /// the order of the pages.
    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError)

    /// Works on the pages that were read last, while other workers do the same.
    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> Outcome
}

/// Reads all pages of a file and works on them, on as many processors as there are, in a bounded amount of memory.
///
/// The caller's thread works too, and starts helpers for the other processors. If the system has no threads to give,
/// there are fewer helpers, or none. Each worker takes the next run of pages and reads it, under a lock, because the
/// VFS of a connection need not allow reads on several threads, and because disks like to be read in order. Then it
/// works on the run without the lock. All helpers have ended when the call returns.
struct PagePipeline {
    let pageSize: Int
    /// How many pages are worked on, from ``firstPage`` on.
    let pageCount: Int64
    var firstPage: Int64 = 1
    /// How many pages a worker needs room for.
    let pagesInRun: Int
    /// How many runs per worker may be taken before the first of them is delivered.
    private let runsAhead: Int64
    /// How many workers there are if the system gives as many threads.
    var workerCount: Int
    /// Starts a helper.
    var startThread: (@escaping @Sendable () -> Void) -> WorkerThread? = { WorkerThread($0) }

    /// More would only wait for each other to read: a run is copied from the system's cache about ten times as fast as
    /// its codes are computed.
    private static let mostWorkers = 8
    /// Below this many bytes, threads cost more than they gain.
    private static let leastSharedBytes: Int64 = 1 << 20
    private static let mostPagesInRun = 64
    private static let mostBytesInRun = 1 << 18
    private static let runsAhead: Int64 = 4
    /// Parts are large, and what comes of one may be as large.
    private static let partsAhead: Int64 = 2
    private static let mostBytesInParts = 1 << 26

    init(pageSize: Int, pages numbers: ClosedRange<Int64>) {
        self.init(pageSize: pageSize, pageCount: Int64(numbers.count))
        firstPage = numbers.lowerBound
    }

    init(pageSize: Int, pageCount: Int64) {
        let mostInRun = PagePipeline.mostBytesInRun / pageSize
        let pagesInRun = max(1, min(PagePipeline.mostPagesInRun, mostInRun))
        self.init(pageSize, pageCount, pagesInRun: pagesInRun, runsAhead: PagePipeline.runsAhead)
    }

    /// For what consists of parts that workers take one at a time. Each is a page here.
    init(partSize: Int, partCount: Int64) {
        self.init(partSize, partCount, pagesInRun: 1, runsAhead: PagePipeline.partsAhead)
        workerCount = max(1, min(workerCount, PagePipeline.mostBytesInParts / partSize))
    }

    private init(_ pageSize: Int, _ pageCount: Int64, pagesInRun: Int, runsAhead: Int64) {
        (self.pageSize, self.pageCount) = (pageSize, pageCount)
        (self.pagesInRun, self.runsAhead) = (pagesInRun, runsAhead)
        let isSmall = pageCount < PagePipeline.leastSharedBytes / Int64(pageSize)
        workerCount = isSmall ? 1 : min(WorkerThread.processorCount, PagePipeline.mostWorkers)
    }

    /// Has all pages worked on.
    /// - Parameters:
    ///   - makeWorker: called on this thread, for each worker.
    ///   - deliver: called on this thread with the outcome of each run, in the order of the pages. Workers may be at the
    ///     pages after these meanwhile. If it returns false, the call stops and returns.
    /// - Throws: what a worker has thrown, after the outcomes of all pages before are delivered.
    func forEachRun<Worker: PageWorker>(
        makeWorker: () throws(DatabaseError) -> Worker,
        deliver: (_ numbers: ClosedRange<Int64>, _ outcome: Worker.Outcome) -> Bool
    ) throws(DatabaseError) {
        let worker = try makeWorker()
        let helperCount = min(Int64(workerCount), (pageCount + Int64(pagesInRun) - 1) / Int64(pagesInRun)) - 1
        let line = RunLine<Worker.Outcome>(
            pageCount: pageCount,
            pagesInRun: Int64(pagesInRun),
            mostAhead: runsAhead * max(1, helperCount + 1)
        )
        var threads: [WorkerThread] = []
        defer {
            line.stop()
            for thread in threads { thread.join() }
        }
        while threads.count < helperCount {
            // What one worker lacks the memory for, or the system has no thread for, the others do.
            guard let helper = try? makeWorker(), let thread = startThread(helping(line, helper)) else { break }
            threads.append(thread)
        }
        while true {
            switch line.step({ numbers throws(DatabaseError) in try worker.read(pages(numbers)) }) {
            case .work(let numbers):
                line.put(Result { () throws(DatabaseError) in try worker.outcome(of: pages(numbers)) }, of: numbers)
            case .deliver(let numbers, let outcome): guard try deliver(pages(numbers), outcome.get()) else { return }
            case .end: return
            }
        }
    }

    /// The pages of the file that are these ones of the line, which counts from 1.
    private func pages(_ numbers: ClosedRange<Int64>) -> ClosedRange<Int64> {
        PagePipeline.pages(numbers, from: firstPage)
    }

    private static func pages(_ numbers: ClosedRange<Int64>, from firstPage: Int64) -> ClosedRange<Int64> {
        numbers.lowerBound + firstPage - 1...numbers.upperBound + firstPage - 1
    }

    /// What a helper's thread does.
    private func helping<Worker: PageWorker>(
        _ line: RunLine<Worker.Outcome>,
        _ worker: Worker
    ) -> @Sendable () -> Void {
        // Only the thread that calls this uses the worker from now on.
        nonisolated(unsafe) let worker = worker
        let first = firstPage
        return {
            while let numbers = line.take({ numbers throws(DatabaseError) in
                try worker.read(PagePipeline.pages(numbers, from: first))
            }) {
                line.put(
                    Result { () throws(DatabaseError) in
                        try worker.outcome(of: PagePipeline.pages(numbers, from: first))
                    },
                    of: numbers
                )
            }
        }
    }
}
