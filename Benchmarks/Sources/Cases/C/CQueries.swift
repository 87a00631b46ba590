import CBaseline
import Foundation

extension CMakers {
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
        result["point.queue"] = { try point(StoreOptions(), inTransaction: false, $0) }
        result["scan.cold"] = { try scan(StoreOptions(cacheSize: ScanCases.smallCache), $0) }
        result["scan.warm"] = { try scan(StoreOptions(cacheSize: 64 * 1024), $0) }
        return result
    }

    static func point(
        _ options: StoreOptions,
        inTransaction: Bool,
        _ fixtures: Fixtures,
        named name: String = "items"
    ) throws -> Work {
        let db = try Baseline(try fixtures.itemStore(options.forFile, named: name), options)
        let ids = Fixtures.itemIDs(PointCases.queries)
        _ = db.integer(PointCases.warm)
        return Work(units: ids.count) {
            var checksum: UInt64 = 0
            try db.check(
                baseline_points(db.pointer, PointCases.sql, ids, Int32(ids.count), inTransaction, &checksum)
            )
            return checksum
        }
    }

    static func scan(_ options: StoreOptions, _ fixtures: Fixtures) throws -> Work {
        let path = try fixtures.scannedStore(options.forFile)
        let db = try Baseline(path, options)
        return Work(units: try fixtures.pageCount(path, options)) {
            UInt64(bitPattern: db.integer(ScanCases.sql))
        }
    }

    static var functions: [String: Maker] {
        var result: [String: Maker] = [:]
        for (id, sql) in FunctionCases.queries {
            result[id] = { fixtures in
                let db = try Baseline(try fixtures.itemStore())
                try db.check(baseline_make_functions(db.pointer))
                return Work(units: FunctionCases.calls) { UInt64(bitPattern: db.integer(sql)) }
            }
        }
        for id in ["fts.insert", "fts.tokenizer"] { result[id] = insertDocuments }
        result["fts.match"] = { fixtures in
            let db = try Baseline(try FullTextCases.store(fixtures))
            return Work(units: 1) { UInt64(try db.checkCount(baseline_run(db.pointer, FullTextCases.match))) }
        }
        return result
    }

    private static func insertDocuments(_ fixtures: Fixtures) throws -> Work {
        let db = try Baseline(fixtures.newPath())
        try db.execute(FullTextCases.createTable)
        let bodies = CTexts(FullTextCases.bodies)
        return Work(units: FullTextCases.rows) {
            try db.execute("BEGIN")
            try db.insertTexts(FullTextCases.insert, bodies)
            try db.execute("ROLLBACK")
            return UInt64(FullTextCases.rows)
        }
    }

    static var blobs: [String: Maker] {
        [
            "blob.read": { fixtures in
                let db = try Baseline(try BlobCases.store(fixtures, named: "blob"), BlobCases.options)
                var buffer = [UInt8](repeating: 0, count: BlobCases.chunk)
                return Work(units: BlobCases.mebibytes) {
                    var checksum: UInt64 = 0
                    try db.check(
                        baseline_read_blob(
                            db.pointer,
                            BlobCases.table,
                            BlobCases.column,
                            1,
                            &buffer,
                            Int32(BlobCases.chunk),
                            &checksum
                        )
                    )
                    return checksum
                }
            },
            "blob.write": { fixtures in
                let path = try BlobCases.store(fixtures, named: "blob written by C")
                let db = try Baseline(path, BlobCases.options)
                let bytes = [UInt8](repeating: 7, count: BlobCases.chunk)
                return Work(units: BlobCases.mebibytes, isUniform: false) {
                    try db.check(
                        baseline_write_blob(
                            db.pointer,
                            BlobCases.table,
                            BlobCases.column,
                            1,
                            bytes,
                            Int32(BlobCases.chunk)
                        )
                    )
                    return 1
                }
            },
        ]
    }

    static var packages: [String: Maker] {
        var result: [String: Maker] = [:]
        result["packages.load"] = { fixtures in
            let packages = try fixtures.packages()
            let path = fixtures.newPath("packages")
            var db: Baseline?
            return Work(units: packages.count) {
                db = nil
                removeFile(path)
                db = try Baseline(path, PackageCases.loading)
                try db?.execute(PackageIndex.createTable)
            } pass: {
                guard let db else { throw Failure("C: not open") }
                try db.execute("BEGIN")
                try db.insertPackages(packages)
                try db.execute("COMMIT")
                return UInt64(packages.count)
            }
        }
        result["packages.read"] = { fixtures in
            let db = try Baseline(try PackageCases.store(fixtures))
            let kinds = Array(repeating: BASELINE_TEXT, count: PackageIndex.columns.count)
            return Work(units: try fixtures.packages().count) {
                var checksum: UInt64 = 0
                try db.checkCount(
                    baseline_read(db.pointer, PackageCases.read, kinds, Int32(kinds.count), false, &checksum)
                )
                return checksum
            }
        }
        result["packages.lookup"] = { fixtures in
            let db = try Baseline(try PackageCases.store(fixtures))
            let names = try fixtures.packages().names
            let texts = CTexts(names)
            return Work(units: names.count) {
                var checksum: UInt64 = 0
                try db.check(
                    baseline_lookups(
                        db.pointer,
                        PackageCases.lookup,
                        texts.pointers,
                        texts.lengths,
                        Int32(names.count),
                        &checksum
                    )
                )
                return checksum
            }
        }
        for (id, sql) in PackageCases.queries {
            result[id] = { fixtures in
                let db = try Baseline(try PackageCases.store(fixtures))
                return Work(units: 1) { UInt64(try db.checkCount(baseline_run(db.pointer, sql))) }
            }
        }
        return result
    }
}
