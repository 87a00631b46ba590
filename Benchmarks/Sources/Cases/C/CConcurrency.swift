import Synchronization

extension CMakers {
    static var concurrency: [String: Maker] {
        var result: [String: Maker] = [:]
        func reading(_ threads: Int, _ options: StoreOptions, _ fixtures: Fixtures) throws -> Work {
            let works = try (0..<threads).map { _ in try point(options, inTransaction: true, fixtures) }
            return ConcurrencyCases.reading(threads) { thread in _ = try works[thread].pass() }
        }
        for threads in ConcurrencyCases.coldThreadCounts {
            result["concurrency.cold.\(threads)"] = {
                try reading(threads, StoreOptions(cacheSize: PointCases.smallCache), $0)
            }
        }
        for threads in ConcurrencyCases.threadCounts {
            result["concurrency.readers.\(threads)"] = { try reading(threads, StoreOptions(), $0) }
            result["concurrency.writers.\(threads)"] = { try writing(threads, $0) }
        }
        for threads in ConcurrencyCases.batchCounts {
            result["concurrency.batched.\(threads)"] = { try writing(threads, $0) }
        }
        result["concurrency.tasks.64"] = { try writing(64, $0) }
        result["concurrency.await"] = { try point(StoreOptions(), inTransaction: true, $0) }
        result["concurrency.parked"] = { try point(StoreOptions(), inTransaction: true, $0) }
        result["concurrency.readers-writer.2"] = { fixtures in
            let options = StoreOptions(synchronous: "normal")
            let works = try (0..<2).map { _ in
                try point(options, inTransaction: true, fixtures, named: "written")
            }
            let writer = try Baseline(try fixtures.itemStore(options.forFile, named: "written"), options)
            return ConcurrencyCases.readingWhileWriting { thread in
                _ = try works[thread].pass()
            } write: { number in
                try writer.execute("UPDATE item SET number = number WHERE id = \(number)")
            }
        }
        return result
    }

    private static func writing(_ threads: Int, _ fixtures: Fixtures) throws -> Work {
        let db = try Baseline(fixtures.newPath())
        try db.execute(TransactionCases.createTable)
        let lock = Mutex(())
        return ConcurrencyCases.writing(threads) {
            try lock.withLock { _ in try db.insertBatches(of: 1, rows: 1) }
        }
    }
}
