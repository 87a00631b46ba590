import Foundation
import SealedDB

extension SealedMakers {
    static var queries: [String: Maker] {
        var result: [String: Maker] = [:]
        for cache in PointCases.caches {
            for inTransaction in [false, true] {
                let id = PointCases.id(cache: cache.name, inTransaction: inTransaction, form: "any")
                result[id] = { fixtures in
                    try point(StoreOptions(cacheSize: cache.size), inTransaction: inTransaction, fixtures)
                }
            }
        }
        result["point.queue"] = { fixtures in
            let queue = try StoreOptions().queue(try fixtures.itemStore())
            let ids = Fixtures.itemIDs(PointCases.queries)
            try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
            return Work(units: ids.count) {
                var sum: UInt64 = 0
                for id in ids { sum &+= try queue.inDatabase { db in try lookUp(id, in: db) } }
                return sum
            }
        }
        result["scan.cold"] = { try scan(StoreOptions(cacheSize: ScanCases.smallCache), $0) }
        result["scan.warm"] = { try scan(StoreOptions(cacheSize: 64 * 1024), $0) }
        return result
    }

    static func point(_ options: StoreOptions, inTransaction: Bool, _ fixtures: Fixtures) throws -> Work {
        let queue = try options.queue(try fixtures.itemStore(options.forFile))
        let ids = Fixtures.itemIDs(PointCases.queries)
        try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
        return Work(units: ids.count) {
            try queue.inDatabase { db in
                guard inTransaction else { return try lookUp(ids, in: db) }
                guard db.beginDeferredTransaction() else { throw db.lastError() }
                let sum = try lookUp(ids, in: db)
                guard db.commit() else { throw db.lastError() }
                return sum
            }
        }
    }

    static func lookUp(_ ids: [Int64], in db: Database) throws -> UInt64 {
        var sum: UInt64 = 0
        for id in ids { sum &+= try lookUp(id, in: db) }
        return sum
    }

    private static func lookUp(_ id: Int64, in db: Database) throws -> UInt64 {
        let rows = try db.executeQuery(PointCases.sql, values: [id])
        defer { rows.close() }
        guard try rows.nextWithError() else { return 0 }
        return UInt64(bitPattern: rows.longLongInt(forColumnIndex: 0))
            &+ UInt64(rows.string(forColumnIndex: 1)?.utf8.count ?? 0)
    }

    static func scan(_ options: StoreOptions, _ fixtures: Fixtures) throws -> Work {
        let path = try fixtures.bulkStore(options.forFile)
        let queue = try options.queue(path)
        return Work(units: try fixtures.pageCount(path, options)) {
            try queue.inDatabase { db in UInt64(bitPattern: try db.integer(ScanCases.sql)) }
        }
    }

    static var packages: [String: Maker] {
        var result: [String: Maker] = [:]
        result["packages.load"] = { fixtures in
            let packages = try fixtures.packages()
            let path = fixtures.newPath("packages")
            var queue: DatabaseQueue?
            return Work(units: packages.count) {
                queue?.close()
                removeFile(path)
                queue = try PackageCases.loading.queue(path)
                try queue?.inDatabase { db in try db.executeUpdate(PackageIndex.createTable, values: nil) }
            } pass: {
                try queue?.inTransaction { db in
                    let width = PackageIndex.columns.count
                    for start in stride(from: 0, to: packages.texts.count, by: width) {
                        try db.executeUpdate(PackageIndex.insert, values: Array(packages.texts[start..<start + width]))
                    }
                }
                return UInt64(packages.count)
            }
        }
        result["packages.read"] = { fixtures in
            let queue = try StoreOptions().queue(try PackageCases.store(fixtures))
            return Work(units: try fixtures.packages().count) {
                try queue.inDatabase { db in
                    let rows = try db.executeQuery(PackageCases.read, values: nil)
                    var sum: UInt64 = 0
                    while try rows.nextWithError() {
                        for column in 0..<Int32(PackageIndex.columns.count) {
                            sum &+= UInt64(rows.string(forColumnIndex: column)?.utf8.count ?? 0)
                        }
                    }
                    return sum
                }
            }
        }
        result["packages.lookup"] = { fixtures in
            let queue = try StoreOptions().queue(try PackageCases.store(fixtures))
            let names = try fixtures.packages().names
            return Work(units: names.count) {
                try queue.inDatabase { db in
                    var sum: UInt64 = 0
                    for name in names {
                        let rows = try db.executeQuery(PackageCases.lookup, values: [name])
                        guard try rows.nextWithError() else { continue }
                        for column in Int32(0)..<2 {
                            sum &+= UInt64(rows.string(forColumnIndex: column)?.utf8.count ?? 0)
                        }
                        rows.close()
                    }
                    return sum
                }
            }
        }
        for (id, sql) in PackageCases.queries {
            result[id] = { fixtures in
                let queue = try StoreOptions().queue(try PackageCases.store(fixtures))
                return Work(units: 1) { try queue.inDatabase { db in UInt64(try db.count(sql)) } }
            }
        }
        return result
    }
}
