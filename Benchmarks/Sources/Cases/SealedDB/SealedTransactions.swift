import Foundation
import SealedDB
import Synchronization

extension SealedMakers {
    static var transactions: [String: Maker] {
        var result: [String: Maker] = [:]
        for setting in TransactionCases.settings {
            for batch in TransactionCases.batches {
                result[setting.id(batch: batch)] = { fixtures in
                    let queue = try setting.options.queue(fixtures.newPath())
                    try queue.inDatabase { db in try db.executeUpdate(TransactionCases.createTable, values: nil) }
                    let rows = TransactionCases.rows(batch: batch)
                    return Work(units: rows, isUniform: false) {
                        try queue.inDatabase { db in
                            if batch == 0 {
                                for row in 0..<rows { try insertEntry(row, into: db) }
                            } else {
                                for start in stride(from: 0, to: rows, by: batch) {
                                    try db.inTransaction {
                                        for row in start..<start + batch { try insertEntry(row, into: db) }
                                    }
                                }
                            }
                        }
                        return UInt64(rows)
                    }
                }
            }
        }
        return result
    }

    static func insertEntry(_ row: Int, into db: Database) throws {
        let values = Values.shared
        let index = Values.index(row)
        try db.executeUpdate(
            TransactionCases.insert,
            values.integers[index],
            values.texts[index],
            values.reals[index],
            values.blobs[index]
        )
    }

    static var concurrency: [String: Maker] {
        var result: [String: Maker] = [:]
        let ids = Fixtures.itemIDs(PointCases.queries)
        func read(_ pool: DatabasePool) throws {
            try pool.read { db in
                for id in ids { _ = try lookUp(id, db) }
            }
        }
        /// A pool with as many readers, whose caches are full.
        func pool(_ path: String, _ options: StoreOptions, _ readers: Int) throws -> DatabasePool {
            var configuration = try options.configuration
            configuration.maximumReaderCount = readers
            let pool = DatabasePool(path: path, configuration: configuration)
            try Crew.meet(readers) { everybodyIsHere in
                try pool.read { db in
                    _ = try db.integer(PointCases.warm)
                    everybodyIsHere()
                }
            }
            return pool
        }
        func reading(_ threads: Int, _ options: StoreOptions, _ fixtures: Fixtures) throws -> Work {
            let pool = try pool(try fixtures.itemStore(), options, threads)
            return ConcurrencyCases.reading(threads) { _ in try read(pool) }
        }
        for threads in ConcurrencyCases.coldThreadCounts {
            result["concurrency.cold.\(threads)"] = {
                try reading(threads, StoreOptions(cacheSize: PointCases.smallCache), $0)
            }
        }
        for threads in ConcurrencyCases.threadCounts {
            result["concurrency.readers.\(threads)"] = { try reading(threads, StoreOptions(), $0) }
            result["concurrency.writers.\(threads)"] = { fixtures in
                let queue = try writingQueue(fixtures)
                return ConcurrencyCases.writing(threads) {
                    try queue.write(alone: true) { db in try insertEntry(0, into: db) }
                }
            }
        }
        for threads in ConcurrencyCases.batchCounts {
            result["concurrency.batched.\(threads)"] = { fixtures in
                let queue = try writingQueue(fixtures)
                return ConcurrencyCases.writing(threads, sharesCommits: true) {
                    try queue.write { db in try insertEntry(0, into: db) }
                }
            }
        }
        result["concurrency.tasks.64"] = { fixtures in
            let queue = try writingQueue(fixtures)
            return ConcurrencyCases.writingInTasks(64) {
                try await queue.write { db in try insertEntry(0, into: db) }
            }
        }
        result["concurrency.await"] = { fixtures in
            let queue = try StoreOptions().queue(try fixtures.itemStore())
            try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
            return Work(units: ids.count) {
                let sum = Atomic<UInt64>(0)
                try ConcurrencyCases.inTask {
                    for id in ids {
                        let part = try await queue.read { db in try lookUp(id, db) }
                        sum.add(part, ordering: .relaxed)
                    }
                }
                return sum.load(ordering: .relaxed)
            }
        }
        result["concurrency.parked"] = { fixtures in
            let queue = try StoreOptions().queue(try fixtures.itemStore())
            try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
            return Work(units: ids.count) {
                var sum: UInt64 = 0
                for id in ids { sum &+= try queue.read { db in try lookUp(id, db) } }
                return sum
            }
        }
        for turns in ConcurrencyCases.Turns.allCases {
            result[turns.id] = { fixtures in
                let pool = DatabasePool(
                    path: fixtures.newPath(),
                    configuration: try StoreOptions(synchronous: "normal").configuration
                )
                try pool.inDatabase { db in try db.executeUpdate(TransactionCases.createTable, values: nil) }
                return ConcurrencyCases.takingTurns(turns) { _ in
                    try pool.inDatabase { db in try insertEntry(0, into: db) }
                }
            }
        }
        #if SQLCipher
            result["concurrency.rotation"] = rotation
        #endif
        result["concurrency.readers-writer.2"] = { fixtures in
            let options = StoreOptions(synchronous: "normal")
            let path = try fixtures.itemStore(options.forFile, named: "written")
            let pool = try pool(path, options, 2)
            return ConcurrencyCases.readingWhileWriting { _ in
                try read(pool)
            } write: { number in
                try pool.write(alone: true) { db in
                    try db.executeUpdate("UPDATE item SET number = number WHERE id = ?", number)
                }
            }
        }
        return result
    }

    /// Begins where everybody else waits: the copy is complete, and is to be verified and put in place.
    private static func rotation(_ fixtures: Fixtures) throws -> Work {
        var keys = try (StoreOptions().key!, StoreOptions(secret: .otherRaw).key!)
        let pool = DatabasePool(
            path: try fixtures.bulkStore(named: "rotated-in-service"),
            configuration: try StoreOptions().configuration
        )
        try pool.write { db in try db.executeUpdate(TransactionCases.createTable, values: nil) }
        let (isHeld, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let hasEnded = DispatchSemaphore(value: 1)
        let error = Mutex<(any Error)?>(nil)
        func begin() throws {
            hasEnded.wait()
            if let error = error.withLock({ $0 }) { throw error }
            let new = keys.1
            keys = (keys.1, keys.0)
            Thread.detachNewThread {
                do {
                    var isFirst = true
                    try pool.rotateKey(to: new) { progress in
                        guard progress.phase == .verify, isFirst else { return }
                        isFirst = false
                        isHeld.signal()
                        mayEnd.wait()
                    }
                } catch let thrown {
                    error.withLock { $0 = thrown }
                    isHeld.signal()
                }
                hasEnded.signal()
            }
            isHeld.wait()
        }
        return Work(units: fixtures.bulkBytes >> 20, before: begin) {
            mayEnd.signal()
            try pool.write { db in try insertEntry(0, into: db) }
            return 1
        }
    }

    private static func writingQueue(_ fixtures: Fixtures) throws -> DatabaseQueue {
        let queue = try StoreOptions().queue(fixtures.newPath())
        try queue.inDatabase { db in try db.executeUpdate(TransactionCases.createTable, values: nil) }
        return queue
    }
}
