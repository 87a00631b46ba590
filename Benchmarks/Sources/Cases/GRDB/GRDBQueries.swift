#if PlainSQLite
    import Foundation
    import GRDB

    extension GRDBMakers {
        static var queries: [String: Maker] {
            var result: [String: Maker] = [:]
            for form in PointCases.forms {
                for cache in PointCases.caches {
                    for inTransaction in [false, true] {
                        let id = PointCases.id(cache: cache.name, inTransaction: inTransaction, form: form.id)
                        result[id] = { fixtures in
                            try point(StoreOptions(cacheSize: cache.size), inTransaction: inTransaction, fixtures)
                        }
                    }
                }
            }
            result["point.queue"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(try fixtures.itemStore())
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
            let queue = try options.grdbQueue(try fixtures.itemStore(options.forFile))
            let ids = Fixtures.itemIDs(PointCases.queries)
            try queue.inDatabase { db in _ = try db.integer(PointCases.warm) }
            return Work(units: ids.count) {
                try queue.inDatabase { db in
                    guard inTransaction else { return try lookUp(ids, in: db) }
                    try db.beginTransaction(.deferred)
                    let sum = try lookUp(ids, in: db)
                    try db.commit()
                    return sum
                }
            }
        }

        static func lookUp(_ ids: [Int64], in db: Database) throws -> UInt64 {
            var sum: UInt64 = 0
            for id in ids { sum &+= try lookUp(id, in: db) }
            return sum
        }

        static func lookUp(_ id: Int64, in db: Database) throws -> UInt64 {
            let rows = try Row.fetchCursor(db.cachedStatement(sql: PointCases.sql), arguments: [id])
            guard let row = try rows.next() else { return 0 }
            return UInt64(bitPattern: row[0] as Int64) &+ UInt64((row[1] as String).utf8.count)
        }

        private static func scan(_ options: StoreOptions, _ fixtures: Fixtures) throws -> Work {
            let path = try fixtures.scannedStore(options.forFile)
            let queue = try options.grdbQueue(path)
            return Work(units: try fixtures.pageCount(path, options)) {
                try queue.inDatabase { db in UInt64(bitPattern: try db.integer(ScanCases.sql)) }
            }
        }

        static var functions: [String: Maker] {
            var result: [String: Maker] = [:]
            for (id, sql) in FunctionCases.queries where !id.hasSuffix(".block") {
                result[id] = { fixtures in
                    let queue = try StoreOptions().grdbQueue(try fixtures.itemStore())
                    queue.inDatabase { db in addFunctions(to: db) }
                    return Work(units: FunctionCases.calls) {
                        try queue.inDatabase { db in UInt64(bitPattern: try db.integer(sql)) }
                    }
                }
            }
            result["fts.insert"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(fixtures.newPath())
                try queue.inDatabase { db in try db.execute(sql: FullTextCases.createTable) }
                return Work(units: FullTextCases.rows) {
                    try queue.inDatabase { db in
                        try db.beginTransaction(.immediate)
                        for body in FullTextCases.bodies {
                            try db.cachedStatement(sql: FullTextCases.insert).execute(arguments: [body])
                        }
                        try db.rollback()
                    }
                    return UInt64(FullTextCases.rows)
                }
            }
            result["fts.match"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(try FullTextCases.store(fixtures))
                return Work(units: 1) { try queue.inDatabase { db in UInt64(try db.count(FullTextCases.match)) } }
            }
            return result
        }

        private struct Total: DatabaseAggregate {
            var total: Int64 = 0

            mutating func step(_ values: [DatabaseValue]) {
                total &+= Int64.fromDatabaseValue(values[0]) ?? 0
            }

            func finalize() -> (any DatabaseValueConvertible)? { total }
        }

        private static func addFunctions(to db: Database) {
            db.add(function: DatabaseFunction("total_of", argumentCount: 1, pure: true, aggregate: Total.self))
            db.add(
                function: DatabaseFunction("twice", argumentCount: 1, pure: true) { values in
                    Int64.fromDatabaseValue(values[0]).map { $0 * 2 }
                }
            )
            db.add(
                function: DatabaseFunction("half", argumentCount: 1, pure: true) { values in
                    String.fromDatabaseValue(values[0]).flatMap { String($0.utf8.prefix($0.utf8.count / 2)) }
                }
            )
        }

        static var packages: [String: Maker] {
            var result: [String: Maker] = [:]
            result["packages.load"] = { fixtures in
                let packages = try fixtures.packages()
                let path = fixtures.newPath("packages")
                var queue: DatabaseQueue?
                return Work(units: packages.count) {
                    try queue?.close()
                    removeFile(path)
                    queue = try PackageCases.loading.grdbQueue(path)
                    try queue?.inDatabase { db in try db.execute(sql: PackageIndex.createTable) }
                } pass: {
                    try queue?.write { db in
                        let width = PackageIndex.columns.count
                        for start in stride(from: 0, to: packages.texts.count, by: width) {
                            try db.cachedStatement(sql: PackageIndex.insert).execute(
                                arguments: StatementArguments(packages.texts[start..<start + width])
                            )
                        }
                    }
                    return UInt64(packages.count)
                }
            }
            result["packages.read"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(try PackageCases.store(fixtures))
                return Work(units: try fixtures.packages().count) {
                    try queue.inDatabase { db in
                        let rows = try Row.fetchCursor(db.cachedStatement(sql: PackageCases.read))
                        var sum: UInt64 = 0
                        while let row = try rows.next() {
                            for column in 0..<PackageIndex.columns.count {
                                sum &+= UInt64((row[column] as String).utf8.count)
                            }
                        }
                        return sum
                    }
                }
            }
            result["packages.lookup"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(try PackageCases.store(fixtures))
                let names = try fixtures.packages().names
                return Work(units: names.count) {
                    try queue.inDatabase { db in
                        var sum: UInt64 = 0
                        for name in names {
                            let statement = try db.cachedStatement(sql: PackageCases.lookup)
                            let rows = try Row.fetchCursor(statement, arguments: [name])
                            guard let row = try rows.next() else { continue }
                            for column in 0..<2 { sum &+= UInt64((row[column] as String).utf8.count) }
                        }
                        return sum
                    }
                }
            }
            for (id, sql) in PackageCases.queries {
                result[id] = { fixtures in
                    let queue = try StoreOptions().grdbQueue(try PackageCases.store(fixtures))
                    return Work(units: 1) { try queue.inDatabase { db in UInt64(try db.count(sql)) } }
                }
            }
            return result
        }
    }
#endif
