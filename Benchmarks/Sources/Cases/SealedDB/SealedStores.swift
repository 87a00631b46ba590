import Foundation
import SealedDB

extension SealedMakers {
    static var stores: [String: Maker] {
        var result: [String: Maker] = [:]
        for way in OpenCases.ways {
            result[way.id] = { fixtures in
                let (path, options) = try OpenCases.store(way, fixtures)
                let sameKey = try options.configuration
                return Work(units: 1) {
                    // A passphrase that has been derived is not derived again.
                    let configuration = way.keepsKey ? sameKey : try options.configuration
                    if way.connections == 1 {
                        let queue = try DatabaseQueue(path: path, configuration: configuration)
                        try queue.inDatabase { db in try readNote(db) }
                        queue.close()
                    } else {
                        let pool = DatabasePool(path: path, configuration: configuration)
                        try open(pool, way.connections)
                        pool.releaseAllDatabases()
                    }
                    return UInt64(way.connections)
                }
            }
        }
        result["store.backup"] = { fixtures in
            let configuration = try StoreOptions(journalMode: "delete").configuration
            let source = try DatabaseQueue(path: try fixtures.bulkStore(named: "copied"), configuration: configuration)
            let copy = fixtures.newPath("copy")
            return Work(units: fixtures.bulkBytes >> 20, before: { removeFile(copy) }) {
                try source.inDatabase { db in
                    let destination = Database(path: copy, configuration: configuration)
                    try destination.openVerified()
                    try db.backup(to: destination, pagesPerStep: -1)
                    destination.close()
                }
                return 1
            }
        }
        result["store.verify"] = { fixtures in
            let path = try fixtures.bulkStore(named: "verified")
            let key = try StoreOptions().key
            return Work(units: fixtures.bulkBytes >> 20) {
                guard try IntegrityReport.verify(path: path, key: key).isSound else { throw Failure("Not sound") }
                return 1
            }
        }
        #if SQLCipher
            for count in [0] + LargeStoreCases.workerCounts {
                let suffix = count == 0 ? "" : ".on-\(count)"
                result["store.large.rotate" + suffix] = { try rotateLarge($0, on: count) }
                result["store.large.verify" + suffix] = { try verifyLarge($0, on: count) }
                result["store.large.pages" + suffix] = { try verifyLarge($0, on: count, pagesOnly: true) }
            }
            result["store.large.backup"] = { fixtures in
                let (path, mebibytes) = try LargeStoreCases.store("read", fixtures)
                let copy = fixtures.newPath("copy")
                let key = try StoreOptions().key!
                return Work(units: mebibytes, before: { removeFile(copy) }) {
                    try StoreBackup(path: path, key: key, to: copy).run()
                    return 1
                }
            }
            result["store.rotate"] = { fixtures in
                let path = try fixtures.bulkStore(named: "rotated")
                var keys = try (StoreOptions().key!, StoreOptions(secret: .otherRaw).key!)
                return Work(units: fixtures.bulkBytes >> 20) {
                    try KeyRotation(path: path, from: keys.0, to: keys.1).run()
                    keys = (keys.1, keys.0)
                    return 1
                }
            }
            result["store.encrypt"] = { fixtures in
                let path = try fixtures.bulkStore(StoreOptions(secret: .none), named: "exported")
                let copy = fixtures.newPath("copy")
                let key = try StoreOptions().key!
                return Work(units: fixtures.bulkBytes >> 20, before: { removeFile(copy) }) {
                    try StoreEncryption(plaintextPath: path, path: copy, key: key).run()
                    return 1
                }
            }
            result["store.decrypt"] = { fixtures in
                let path = try fixtures.bulkStore(named: "exported")
                let copy = fixtures.newPath("copy")
                let key = try StoreOptions().key!
                return Work(units: fixtures.bulkBytes >> 20, before: { removeFile(copy) }) {
                    try StoreDecryption(path: path, key: key, plaintextPath: copy).run()
                    return 1
                }
            }
            result["store.backup.verified"] = { fixtures in
                let path = try fixtures.bulkStore(named: "copied")
                let copy = fixtures.newPath("copy")
                let key = try StoreOptions().key!
                return Work(units: fixtures.bulkBytes >> 20, before: { removeFile(copy) }) {
                    try StoreBackup(path: path, key: key, to: copy).run()
                    return 1
                }
            }
        #endif
        return result
    }

    #if SQLCipher
        /// Each has a store of its own, whose key changes.
        private static func rotateLarge(_ fixtures: Fixtures, on processors: Int) throws -> Work {
            let (path, mebibytes) = try LargeStoreCases.store("rotated on \(processors)", fixtures)
            var keys = try (StoreOptions().key!, StoreOptions(secret: .otherRaw).key!)
            return Work(units: mebibytes) {
                try LargeStoreCases.on(processors) { try KeyRotation(path: path, from: keys.0, to: keys.1).run() }
                keys = (keys.1, keys.0)
                return 1
            }
        }

        private static func verifyLarge(
            _ fixtures: Fixtures,
            on processors: Int,
            pagesOnly: Bool = false
        ) throws -> Work {
            let (path, mebibytes) = try LargeStoreCases.store("read", fixtures)
            guard let key = try StoreOptions().key else { throw Failure("The large store has a key") }
            return Work(units: mebibytes) {
                try LargeStoreCases.on(processors) {
                    let report =
                        pagesOnly
                        ? try IntegrityReport.verifyPages(path: path, key: key)
                        : try IntegrityReport.verify(path: path, key: key)
                    guard report.isSound else { throw Failure("Not sound") }
                }
                return 1
            }
        }
    #endif

    static func readNote(_ db: Database) throws {
        guard try db.integer("SELECT count(*) FROM note") == 1 else { throw Failure("SealedDB: nothing to read") }
    }

    private static func open(_ pool: DatabasePool, _ connections: Int) throws {
        guard connections > 0 else { return }
        try pool.inDatabase { db in
            try readNote(db)
            try open(pool, connections - 1)
        }
    }

    static var ciphers: [String: Maker] {
        var result: [String: Maker] = [:]
        // Memory security is the process's, and C has turned it on.
        for variant in CipherCases.variants {
            result["cipher.\(variant.name).scan"] = { try scan(variant.options, $0) }
            result["cipher.\(variant.name).point"] = { try point(variant.options, inTransaction: true, $0) }
            result["cipher.\(variant.name).insert"] = { fixtures in
                let path = fixtures.newPath()
                // A plain store has its page size from the first connection.
                try Baseline(path, variant.writing).execute(CipherCases.createTable)
                let queue = try variant.writing.queue(path)
                return Work(units: CipherCases.rows, isUniform: false) {
                    try queue.inDatabase { db in
                        guard db.executeStatements(CipherCases.empty) else { throw db.lastError() }
                    }
                } pass: {
                    try queue.inTransaction { db in try db.executeUpdate(CipherCases.insert, values: nil) }
                    return UInt64(CipherCases.rows)
                }
            }
        }
        return result
    }
}
