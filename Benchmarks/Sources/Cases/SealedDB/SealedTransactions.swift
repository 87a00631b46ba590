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
        for threads in ConcurrencyCases.threadCounts {
            result["concurrency.readers.\(threads)"] = { fixtures in
                let pool = try pool(try fixtures.itemStore(), StoreOptions(), threads)
                return ConcurrencyCases.reading(threads) { _ in try read(pool) }
            }
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

    private static func writingQueue(_ fixtures: Fixtures) throws -> DatabaseQueue {
        let queue = try StoreOptions().queue(fixtures.newPath())
        try queue.inDatabase { db in try db.executeUpdate(TransactionCases.createTable, values: nil) }
        return queue
    }
}
