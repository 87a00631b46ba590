import CBaseline
import Foundation
import Wire

/// Opening a store, reading a row, closing.
enum OpenCases {
    struct Way {
        let id: String
        let secret: StoreOptions.Secret
        /// The connections that are open at the same time.
        let connections: Int
        /// Whether the same `Key` opens again, where a new one would have to be derived.
        var keepsKey = false
    }

    static let ways = [
        Way(id: "open.raw", secret: .raw, connections: 1),
        Way(id: "open.derived", secret: .derived(hexadecimal: ""), connections: 1),
        Way(id: "open.passphrase", secret: .passphrase, connections: 1),
        Way(id: "open.passphrase.again", secret: .passphrase, connections: 1, keepsKey: true),
        Way(id: "open.pool.raw", secret: .raw, connections: 8),
        Way(id: "open.pool.passphrase", secret: .passphrase, connections: 8),
    ]

    static let infos = [
        CaseInfo(id: "open.raw", group: "Opening", title: "raw key", unit: "opening"),
        CaseInfo(id: "open.derived", group: "Opening", title: "key derived before", unit: "opening"),
        CaseInfo(id: "open.passphrase", group: "Opening", title: "passphrase", unit: "opening"),
        CaseInfo(id: "open.passphrase.again", group: "Opening", title: "passphrase, again", unit: "opening"),
        CaseInfo(id: "open.pool.raw", group: "Opening", title: "pool of 8, raw key", unit: "pool"),
        CaseInfo(
            id: "open.pool.passphrase",
            group: "Opening",
            title: "pool of 8, passphrase",
            unit: "pool",
            set: "derivation"
        ),
    ]

    /// The store, and how it is opened.
    static func store(_ way: Way, _ fixtures: Fixtures) throws -> (path: String, options: StoreOptions) {
        var options = StoreOptions(secret: way.secret)
        if case .derived = way.secret { options.secret = .passphrase }
        let path = try fixtures.store("note", options) { db in
            try db.execute("CREATE TABLE note (body TEXT); INSERT INTO note VALUES ('sealed')")
        }
        #if SQLCipher
            if case .derived = way.secret { options.secret = try derived(path) }
        #endif
        return (path, options)
    }

    #if SQLCipher
        private static func derived(_ path: String) throws -> StoreOptions.Secret {
            guard let file = FileHandle(forReadingAtPath: path), let salt = try file.read(upToCount: 16),
                salt.count == 16
            else { throw Failure("\(path) has no salt.") }
            let key = try LimitCases.derive(salt: Array(salt))
            return .derived(
                hexadecimal: (key + salt).map { byte in
                    let digits = String(byte, radix: 16)
                    return digits.count == 1 ? "0" + digits : digits
                }.joined()
            )
        }
    #endif
}

/// A store with key slots. SQLCipher has none, so C does nothing here: the rows before are what there is to compare.
enum SlotCases {
    static let infos = [
        CaseInfo(id: "slots.open.raw", group: "Key slots", title: "open with a raw key", unit: "opening", set: "slots"),
        CaseInfo(
            id: "slots.open",
            group: "Key slots",
            title: "open by the slot of a raw key",
            unit: "opening",
            set: "slots"
        ),
        CaseInfo(
            id: "slots.open.again",
            group: "Key slots",
            title: "open by the slot of a passphrase, again",
            unit: "opening",
            set: "slots"
        ),
        CaseInfo(id: "slots.rename", group: "Key slots", title: "rename a slot", unit: "change"),
        CaseInfo(id: "slots.rotate", group: "Key slots", title: "rotate: add, try, remove", unit: "rotation"),
    ]
}

/// What is done with a store as a whole.
enum WholeStoreCases {
    static let infos = [
        ("store.rotate", "rotate the key: copy, verify, swap; C only copies"),
        ("store.backup", "backup into an open database"),
        ("store.backup.verified", "backup into a new store: copy, verify, sync; C only copies"),
        ("store.encrypt", "plaintext file into an encrypted store: copy, compare, verify; C only copies"),
        ("store.decrypt", "encrypted store into a plaintext file: copy, compare; C only copies"),
        ("store.verify", "verify every page's authentication code"),
    ].map { CaseInfo(id: $0.0, group: "Whole stores", title: $0.1, unit: "MiB", bytes: 1_048_576) }
}

/// What is done with a large store, against C on SQLCipher as it is.
enum LargeStoreCases {
    /// Those that the machine has.
    static let workerCounts = [1, 2, 4, 8].filter { $0 <= Int(baseline_processor_count()) }

    static let infos =
        [
            info("rotate", "rotate: copy, authenticate, compare, sync, swap; C copies by the backup API", "rotation"),
            info("backup", "backup under the same key: copy, authenticate, compare, sync; C copies by the backup API"),
            info("verify", "every code, and the structure; C: cipher_integrity_check, which has no structure", "codes"),
            info("pages", "every code, without the structure; C: cipher_integrity_check", "codes"),
        ]
        + workerCounts.flatMap { count in
            let processors = count == 1 ? "1 processor" : "\(count) processors"
            return [
                info("rotate.on-\(count)", "rotate on \(processors)", "rotation"),
                info("verify.on-\(count)", "every code, and the structure, on \(processors)", "codes"),
                info("pages.on-\(count)", "every code, on \(processors)", "codes"),
            ]
        }

    /// - Parameter set: see ``CaseInfo/set``.
    private static func info(_ name: String, _ title: String, _ set: String = "") -> CaseInfo {
        let id = "store.large.\(name)"
        return CaseInfo(id: id, group: "A large store", title: title, unit: "MiB", bytes: 1_048_576, set: set)
    }

    /// 256 MiB with what SQLite and SQLCipher add, or 16 with --quick.
    static func store(_ name: String, _ fixtures: Fixtures) throws -> (path: String, mebibytes: Int) {
        let path = try fixtures.bulkStore(named: "large \(name)", bytes: (fixtures.isQuick ? 14 : 225) << 20)
        return (path, (try fixtures.pageCount(path, StoreOptions()) * 4096) >> 20)
    }

    /// Work of a thread that has so many processors; 0 for all.
    static func on(_ processors: Int, _ body: () throws -> Void) throws {
        guard processors > 0 else { return try body() }
        guard baseline_use_processors(Int32(processors)) == 1 else { throw Failure("No processor can be chosen.") }
        let result = Result { try body() }
        guard baseline_use_processors(0) == 1 else { throw Failure("The processors cannot be given back.") }
        try result.get()
    }
}

/// The ways to encrypt, each against plain SQLite with pages of the same size.
enum CipherCases {
    static let rows = 1000
    static let createTable = "CREATE TABLE load (id INTEGER PRIMARY KEY, payload BLOB)"
    /// Also empties the log, so that each pass begins alike.
    static let empty = "DELETE FROM load; PRAGMA wal_checkpoint(TRUNCATE)"
    static let insert = """
        WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
        INSERT INTO load SELECT i, randomblob(900) FROM n
        """

    struct Variant {
        let name: String
        let title: String
        let options: StoreOptions

        /// With a cache that holds the whole table, so that each page is written once.
        var writing: StoreOptions {
            var result = options
            result.cacheSize = 32 * 1024
            result.synchronous = "off"
            return result
        }
    }

    static let pageSizes = [1024, 2048, 4096, 8192, 16384, 32768, 65536]

    static let variants: [Variant] = {
        func variant(_ name: String, _ title: String, _ change: (inout StoreOptions) -> Void = { _ in }) -> Variant {
            var options = StoreOptions(cacheSize: ScanCases.smallCache)
            change(&options)
            return Variant(name: name, title: title, options: options)
        }
        return [
            variant("default", "SQLCipher's defaults (HMAC-SHA512, 4 KiB pages)"),
            variant("no-key", "SQLCipher's library, no key") { $0.secret = .none },
            variant("sha256", "HMAC-SHA256") { $0.hmac = "SHA256" },
            variant("sha1", "HMAC-SHA1") { $0.hmac = "SHA1" },
            variant("no-hmac", "no HMAC: changed pages go unnoticed") { $0.omitsHMAC = true },
            variant("memory-security", "memory locked and wiped") { $0.locksMemory = true },
        ]
            + pageSizes.filter { $0 != 4096 }.map { size in
                variant("page-\(size)", "pages of \(size) bytes") { options in
                    options.pageSize = size
                    // Sixteen pages, as the others have.
                    options.cacheSize = 16 * size / 1024
                }
            }
    }()

    static var infos: [CaseInfo] {
        variants.flatMap { variant in
            [
                CaseInfo(
                    id: "cipher.\(variant.name).scan",
                    group: "Ciphers",
                    title: "cold scan: \(variant.title)",
                    unit: "page",
                    bytes: Double(variant.options.pageSize == 0 ? 4096 : variant.options.pageSize),
                    needsMemorySecurity: variant.options.locksMemory
                ),
                CaseInfo(
                    id: "cipher.\(variant.name).point",
                    group: "Ciphers",
                    title: "cold point query: \(variant.title)",
                    unit: "query",
                    needsMemorySecurity: variant.options.locksMemory
                ),
                CaseInfo(
                    id: "cipher.\(variant.name).insert",
                    group: "Ciphers",
                    title: "write 1,000 rows of 900 bytes: \(variant.title)",
                    unit: "row",
                    bytes: 900,
                    needsMemorySecurity: variant.options.locksMemory
                ),
            ]
        }
    }
}

/// What the processor can do at best: libcrypto on one page of 4 KiB, without a database.
enum LimitCases {
    static let works: [String: baseline_crypto_work] = [
        "limit.aes-decrypt": BASELINE_AES_DECRYPT,
        "limit.aes-encrypt": BASELINE_AES_ENCRYPT,
        "limit.hmac": BASELINE_HMAC_SHA512,
        "limit.read": BASELINE_READ_PAGE,
        "limit.read-as-sqlcipher": BASELINE_READ_PAGE_AS_SQLCIPHER,
        "limit.write-as-sqlcipher": BASELINE_WRITE_PAGE_AS_SQLCIPHER,
    ]

    static let infos =
        [
            ("limit.aes-decrypt", "AES-256-CBC, decrypt"),
            ("limit.aes-encrypt", "AES-256-CBC, encrypt"),
            ("limit.hmac", "HMAC-SHA512"),
            ("limit.read", "read a page: HMAC-SHA512 and decrypt, contexts made once"),
            ("limit.read-as-sqlcipher", "read a page: contexts made for each, as SQLCipher 4.6 does"),
            ("limit.write-as-sqlcipher", "write a page: random vector, encrypt, HMAC-SHA512, as SQLCipher 4.6 does"),
        ].map { CaseInfo(id: $0.0, group: "Physical limit", title: $0.1, unit: "page", bytes: 4096) } + [
            CaseInfo(
                id: "limit.rotate",
                group: "Physical limit",
                title:
                    "rotate the pages of the large store: HMAC-SHA512, decrypt, encrypt, HMAC-SHA512, on all processors",
                unit: "MiB",
                bytes: 1_048_576,
                set: "rotation"
            ),
            CaseInfo(
                id: "limit.derivation",
                group: "Physical limit",
                title: "PBKDF2-HMAC-SHA512, 256,000 iterations: one derivation",
                unit: "key",
                set: "derivation"
            ),
        ]

    /// As SQLCipher derives a key from a passphrase.
    static func derive(salt: [UInt8]) throws -> [UInt8] {
        var key = [UInt8](repeating: 0, count: 32)
        guard baseline_derive_key(StoreOptions.passphrase, salt, 256_000, &key) == 1 else {
            throw Failure("libcrypto could not derive a key.")
        }
        return key
    }
}

func removeFile(_ path: String) {
    for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
}
