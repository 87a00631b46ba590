import Foundation
import SealedDB

extension SealedMakers {
    static var queries: [String: Maker] {
        var result: [String: Maker] = [:]
        for cache in PointCases.caches {
            for inTransaction in [false, true] {
                for (form, lookUp) in [("any", lookUpAny), ("typed", lookUp)] {
                    let id = PointCases.id(cache: cache.name, inTransaction: inTransaction, form: form)
                    result[id] = { fixtures in
                        let options = StoreOptions(cacheSize: cache.size)
                        return try point(options, inTransaction: inTransaction, fixtures, lookUp)
                    }
                }
            }
        }
        result["point.queue"] = { fixtures in
            let queue = try StoreOptions().queue(try fixtures.itemStore())
            let ids = Fixtures.itemIDs(PointCases.queries)
            try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
            return Work(units: ids.count) {
                var sum: UInt64 = 0
                for id in ids { sum &+= try queue.inDatabase { db in try lookUp(id, db) } }
                return sum
            }
        }
        result["scan.cold"] = { try scan(StoreOptions(cacheSize: ScanCases.smallCache), $0) }
        result["scan.warm"] = { try scan(StoreOptions(cacheSize: 64 * 1024), $0) }
        return result
    }

    static func point(
        _ options: StoreOptions,
        inTransaction: Bool,
        _ fixtures: Fixtures,
        _ lookUp: @escaping (Int64, Database) throws -> UInt64 = lookUp
    ) throws -> Work {
        let queue = try options.queue(try fixtures.itemStore(options.forFile))
        let ids = Fixtures.itemIDs(PointCases.queries)
        try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
        return Work(units: ids.count) {
            try queue.inDatabase { db in
                if inTransaction, !db.beginDeferredTransaction() { throw db.lastError() }
                var sum: UInt64 = 0
                for id in ids { sum &+= try lookUp(id, db) }
                if inTransaction, !db.commit() { throw db.lastError() }
                return sum
            }
        }
    }

    private static let sql = SQL(raw: PointCases.sql)

    static func lookUp(_ id: Int64, _ db: Database) throws -> UInt64 {
        guard let (number, body) = try db.executeQuery(sql, id).first((Int64, String).self) else { return 0 }
        return UInt64(bitPattern: number) &+ UInt64(body.utf8.count)
    }

    /// In FMDB's form.
    private static func lookUpAny(_ id: Int64, _ db: Database) throws -> UInt64 {
        let rows = try db.executeQuery(PointCases.sql, values: [id])
        defer { rows.close() }
        guard try rows.nextWithError() else { return 0 }
        return UInt64(bitPattern: rows.longLongInt(forColumnIndex: 0))
            &+ UInt64(rows.string(forColumnIndex: 1)?.utf8.count ?? 0)
    }

    static func scan(_ options: StoreOptions, _ fixtures: Fixtures) throws -> Work {
        let path = try fixtures.scannedStore(options.forFile)
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
                    let texts = packages.texts
                    for start in stride(from: 0, to: texts.count, by: PackageIndex.columns.count) {
                        try db.executeUpdate(
                            PackageIndex.insert,
                            texts[start],
                            texts[start + 1],
                            texts[start + 2],
                            texts[start + 3],
                            texts[start + 4],
                            texts[start + 5]
                        )
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
                    let columns = Int32(PackageIndex.columns.count)
                    var sum: UInt64 = 0
                    while try rows.nextWithError() {
                        for column in 0..<columns {
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
                        let row = try db.executeQuery(SQL(raw: PackageCases.lookup), name).first((String, String).self)
                        sum &+= UInt64((row?.0.utf8.count ?? 0) + (row?.1.utf8.count ?? 0))
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
