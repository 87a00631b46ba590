#if PlainSQLite
    import Foundation
    import GRDB
    import Synchronization

    extension GRDBMakers {
        static var transactions: [String: Maker] {
            var result: [String: Maker] = [:]
            for setting in TransactionCases.settings {
                for batch in TransactionCases.batches {
                    result[setting.id(batch: batch)] = { fixtures in
                        let queue = try setting.options.grdbQueue(fixtures.newPath())
                        try queue.inDatabase { db in try db.execute(sql: TransactionCases.createTable) }
                        let rows = TransactionCases.rows(batch: batch)
                        return Work(units: rows, isUniform: false) {
                            try queue.inDatabase { db in
                                if batch == 0 {
                                    for row in 0..<rows { try insertEntry(row, into: db) }
                                } else {
                                    for start in stride(from: 0, to: rows, by: batch) {
                                        try db.inTransaction(.immediate) {
                                            for row in start..<start + batch { try insertEntry(row, into: db) }
                                            return .commit
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
            try db.cachedStatement(sql: TransactionCases.insert).execute(arguments: [
                values.integers[index], values.texts[index], values.reals[index], values.blobs[index],
            ])
        }

        static var concurrency: [String: Maker] {
            var result: [String: Maker] = [:]
            let ids = Fixtures.itemIDs(PointCases.queries)
            /// A pool with as many readers, whose caches are full.
            func pool(_ path: String, _ options: StoreOptions, _ readers: Int) throws -> DatabasePool {
                var configuration = try options.grdbConfiguration
                configuration.maximumReaderCount = readers
                let pool = try DatabasePool(path: path, configuration: configuration)
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
                return ConcurrencyCases.reading(threads) { _ in
                    try pool.read { db in _ = try lookUp(ids, in: db) }
                }
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
            result["concurrency.tasks.64"] = { fixtures in
                let queue = try writingQueue(fixtures)
                return ConcurrencyCases.writingInTasks(64) {
                    try await queue.write { db in try insertEntry(0, into: db) }
                }
            }
            result["concurrency.await"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(try fixtures.itemStore())
                try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
                return Work(units: ids.count) {
                    let sum = Atomic<UInt64>(0)
                    try ConcurrencyCases.inTask {
                        for id in ids {
                            let part = try await queue.read { db in try lookUp(id, in: db) }
                            sum.add(part, ordering: .relaxed)
                        }
                    }
                    return sum.load(ordering: .relaxed)
                }
            }
            result["concurrency.parked"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(try fixtures.itemStore())
                try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
                return Work(units: ids.count) {
                    var sum: UInt64 = 0
                    for id in ids { sum &+= try queue.read { db in try lookUp(id, in: db) } }
                    return sum
                }
            }
            for turns in ConcurrencyCases.Turns.allCases {
                result[turns.id] = { fixtures in
                    let pool = try DatabasePool(
                        path: fixtures.newPath(),
                        configuration: StoreOptions(synchronous: "normal").grdbConfiguration
                    )
                    try pool.write { db in try db.execute(sql: TransactionCases.createTable) }
                    return ConcurrencyCases.takingTurns(turns) { _ in
                        try pool.writeWithoutTransaction { db in try insertEntry(0, into: db) }
                    }
                }
            }
            result["concurrency.readers-writer.2"] = { fixtures in
                let options = StoreOptions(synchronous: "normal")
                let pool = try pool(try fixtures.itemStore(options.forFile, named: "written"), options, 2)
                return ConcurrencyCases.readingWhileWriting { _ in
                    try pool.read { db in _ = try lookUp(ids, in: db) }
                } write: { number in
                    try pool.writeWithoutTransaction { db in
                        let statement = try db.cachedStatement(sql: "UPDATE item SET number = number WHERE id = ?")
                        try statement.execute(arguments: [number])
                    }
                }
            }
            return result
        }

        private static func writing(_ threads: Int, _ fixtures: Fixtures) throws -> Work {
            let queue = try writingQueue(fixtures)
            return ConcurrencyCases.writing(threads) { try queue.write { db in try insertEntry(0, into: db) } }
        }

        private static func writingQueue(_ fixtures: Fixtures) throws -> DatabaseQueue {
            let queue = try StoreOptions().grdbQueue(fixtures.newPath())
            try queue.inDatabase { db in try db.execute(sql: TransactionCases.createTable) }
            return queue
        }

        static var stores: [String: Maker] {
            var result: [String: Maker] = [:]
            for way in OpenCases.ways {
                result[way.id] = { fixtures in
                    let (path, options) = try OpenCases.store(way, fixtures)
                    return Work(units: 1) {
                        if way.connections == 1 {
                            let queue = try options.grdbQueue(path)
                            try queue.inDatabase { db in try readNote(db) }
                            try queue.close()
                        } else {
                            var configuration = try options.grdbConfiguration
                            // One more connection writes.
                            configuration.maximumReaderCount = way.connections - 1
                            let pool = try DatabasePool(path: path, configuration: configuration)
                            try pool.writeWithoutTransaction { db in try readNote(db) }
                            try Crew.meet(way.connections - 1) { everybodyIsHere in
                                try pool.read { db in
                                    try readNote(db)
                                    everybodyIsHere()
                                }
                            }
                            try pool.close()
                        }
                        return UInt64(way.connections)
                    }
                }
            }
            result["store.backup"] = { fixtures in
                let source = try StoreOptions(journalMode: "delete").grdbQueue(
                    try fixtures.bulkStore(named: "copied")
                )
                let copy = fixtures.newPath("copy")
                return Work(units: fixtures.bulkBytes >> 20, before: { removeFile(copy) }) {
                    let target = try StoreOptions(journalMode: "delete").grdbQueue(copy)
                    try source.backup(to: target)
                    try target.close()
                    return 1
                }
            }
            return result
        }

        private static func readNote(_ db: Database) throws {
            guard try db.integer("SELECT count(*) FROM note") == 1 else { throw Failure("GRDB: nothing to read") }
        }
    }
#endif
