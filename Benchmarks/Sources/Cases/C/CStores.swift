import CBaseline

extension CMakers {
    static var stores: [String: Maker] {
        var result: [String: Maker] = [:]
        for way in OpenCases.ways {
            result[way.id] = { fixtures in
                let (path, options) = try OpenCases.store(way, fixtures)
                return Work(units: 1) {
                    let connections = try (0..<way.connections).map { _ in
                        let db = try Baseline(path, options)
                        guard db.integer("SELECT count(*) FROM note") == 1 else { throw Failure("C: nothing to read") }
                        return db
                    }
                    return UInt64(connections.count)
                }
            }
        }
        result["store.rotate"] = { try backup($0, to: .otherRaw) }
        result["store.backup"] = { try backup($0, to: .raw) }
        result["store.backup.verified"] = { try backup($0, to: .raw) }
        result["store.verify"] = { fixtures in
            let db = try Baseline(try fixtures.bulkStore(named: "verified"))
            return Work(units: fixtures.bulkBytes >> 20) {
                #if SQLCipher
                    let damaged = try db.checkCount(baseline_run(db.pointer, "PRAGMA cipher_integrity_check"))
                    guard damaged == 0 else { throw Failure("C: \(damaged) pages are damaged.") }
                #endif
                return UInt64(try db.checkCount(baseline_run(db.pointer, "PRAGMA quick_check")))
            }
        }
        #if SQLCipher
            result["store.large.rotate"] = { try copyLarge($0, to: .otherRaw) }
            result["store.large.backup"] = { try copyLarge($0, to: .raw) }
            for id in ["store.large.verify", "store.large.pages"] {
                result[id] = { fixtures in
                    let (path, mebibytes) = try LargeStoreCases.store("read", fixtures)
                    let db = try Baseline(path)
                    return Work(units: mebibytes) {
                        let damaged = try db.checkCount(baseline_run(db.pointer, "PRAGMA cipher_integrity_check"))
                        guard damaged == 0 else { throw Failure("C: \(damaged) pages are damaged.") }
                        return 1
                    }
                }
            }
            result["store.encrypt"] = { try export($0, from: .none, to: .raw) }
            result["store.decrypt"] = { try export($0, from: .raw, to: .none) }
        #endif
        return result
    }

    private static func backup(_ fixtures: Fixtures, to secret: StoreOptions.Secret) throws -> Work {
        let path = try fixtures.bulkStore(named: "copied")
        return backup(path, fixtures.bulkBytes >> 20, fixtures, to: secret)
    }

    private static func copyLarge(_ fixtures: Fixtures, to secret: StoreOptions.Secret) throws -> Work {
        let (path, mebibytes) = try LargeStoreCases.store("read", fixtures)
        return backup(path, mebibytes, fixtures, to: secret)
    }

    private static func backup(
        _ path: String,
        _ mebibytes: Int,
        _ fixtures: Fixtures,
        to secret: StoreOptions.Secret
    ) -> Work {
        let copy = fixtures.newPath("copy")
        let source = StoreOptions(journalMode: "delete")
        let target = StoreOptions(secret: secret, journalMode: "delete")
        return Work(units: mebibytes, before: { removeFile(copy) }) {
            let code = source.withCOptions { source in
                target.withCOptions { baseline_backup(path, source, copy, $0) }
            }
            guard code == 0 else { throw Failure("C: backup failed with \(code).") }
            return 1
        }
    }

    private static func export(
        _ fixtures: Fixtures,
        from: StoreOptions.Secret,
        to: StoreOptions.Secret
    ) throws -> Work {
        let options = StoreOptions(secret: from, journalMode: "delete")
        let path = try fixtures.bulkStore(options, named: "exported")
        let copy = fixtures.newPath("copy")
        let key = StoreOptions(secret: to).keyText ?? ""
        return Work(units: fixtures.bulkBytes >> 20, before: { removeFile(copy) }) {
            let code = options.withCOptions { baseline_export(path, $0, copy, key) }
            guard code == 0 else { throw Failure("C: export failed with \(code).") }
            return 1
        }
    }

    static var ciphers: [String: Maker] {
        var result: [String: Maker] = [:]
        for variant in CipherCases.variants {
            result["cipher.\(variant.name).scan"] = { try scan(variant.options, $0) }
            result["cipher.\(variant.name).point"] = { try point(variant.options, inTransaction: true, $0) }
            result["cipher.\(variant.name).insert"] = { fixtures in
                let db = try Baseline(fixtures.newPath(), variant.writing)
                try db.execute(CipherCases.createTable)
                return Work(
                    units: CipherCases.rows,
                    isUniform: false,
                    before: { try db.execute(CipherCases.empty) }
                ) {
                    try db.execute("BEGIN")
                    try db.execute(CipherCases.insert)
                    try db.execute("COMMIT")
                    return UInt64(CipherCases.rows)
                }
            }
        }
        return result
    }

    /// In the encrypted build alone: once is enough.
    static var limits: [String: Maker] {
        #if SQLCipher
            var result: [String: Maker] = LimitCases.works.mapValues { work in
                { _ in
                    guard let crypto = CryptoContext() else { throw Failure("libcrypto has no AES or HMAC.") }
                    return Work(units: 64) {
                        guard baseline_crypto_run(crypto.pointer, work, 64) == 1 else {
                            throw Failure("libcrypto failed.")
                        }
                        return 64
                    }
                }
            }
            result["limit.rotate"] = { fixtures in
                let (path, mebibytes) = try LargeStoreCases.store("read", fixtures)
                let count = Int(baseline_processor_count())
                let pages = try fixtures.pageCount(path, StoreOptions()) / count
                let contexts = try (0..<count).map { _ in
                    guard let context = CryptoContext() else { throw Failure("libcrypto has no AES or HMAC.") }
                    return context
                }
                let crew = Crew(count) { thread in
                    guard baseline_crypto_run(contexts[thread].pointer, BASELINE_ROTATE_PAGE, Int32(pages)) == 1 else {
                        throw Failure("libcrypto failed.")
                    }
                }
                return Work(units: mebibytes) {
                    try crew.work()
                    return 1
                }
            }
            result["limit.derivation"] = { _ in
                Work(units: 1) { UInt64(try LimitCases.derive(salt: Array(repeating: 7, count: 16)).count) }
            }
            return result
        #else
            return [:]
        #endif
    }

    private final class CryptoContext {
        let pointer: OpaquePointer

        init?() {
            guard let pointer = baseline_crypto_make(4096) else { return nil }
            self.pointer = pointer
        }

        deinit { baseline_crypto_free(pointer) }
    }
}
