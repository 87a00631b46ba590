import CSealedDBSystem
import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// Contexts of OpenSSL that are kept from page to page return what SQLCipher's own functions return.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PageContextsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func theyAreKept() throws {
        let engine = EngineInfo.current()
        #expect(engine.keepsPageContexts, "\(engine.pageContextsDetail ?? "")")
        #expect(engine.pageContextsDetail == nil && engine.cipherProvider == "openssl")
    }

    @Test func theyAgreeWithSQLCipher() throws {
        try #require(EngineInfo.current().keepsPageContexts)
        for _ in 0..<20 { #expect(sealeddb_check_contexts() == 1) }
    }

    /// The shell reads what was written with them, and they read what it wrote.
    @Test(arguments: FixtureFormat.all)
    func storesGoToAndFro(format: FixtureFormat) throws {
        let path = directory.file("db")
        let shell = "\(FixtureKey.raw.pragma) \(format.pragmas) "
        let sums = "SELECT count(*), sum(length(body)), sum(id) FROM t;"
        try format.make(path, key: .raw)
        var configuration = Configuration(key: try FixtureKey.raw.key())
        configuration.cipherSettings = format.settings
        configuration.journalMode = .delete
        for round in 0..<3 {
            let database = Database(path: path, configuration: configuration)
            try database.openVerified()
            // A small cache, so that pages are written and read while the transaction lasts.
            #expect(database.executeStatements("PRAGMA cache_size = 10"))
            try database.inTransaction {
                for row in 0..<200 {
                    let value = Data(repeating: UInt8(row), count: row * 40)
                    try database.executeUpdate("INSERT INTO t (body) VALUES (?)", values: [value])
                }
                try database.executeUpdate("DELETE FROM t WHERE id % 7 = ?", values: [round])
                try database.executeUpdate("UPDATE t SET body = body || 'x' WHERE id % 5 = 0", values: nil)
            }
            let ours = try database.rows(sums)
            database.close()
            let report = try IntegrityReport.verify(
                path: path,
                key: FixtureKey.raw.key(),
                cipherSettings: format.settings,
                isDeep: true
            )
            #expect(report.isSound)
            let text = ours[0].map { value in if case .integer(let number) = value { "\(number)" } else { "?" } }
            #expect(try StockShell.run(path, shell + sums) == [text.joined(separator: "|")])
            // The shell's lines that say "ok" are left out.
            let checks = format.isAuthenticated ? "PRAGMA cipher_integrity_check; " : ""
            #expect(try StockShell.run(path, shell + checks + "PRAGMA integrity_check;").isEmpty)
            try StockShell.run(path, shell + "UPDATE t SET body = body || 'y' WHERE id % 3 = 0;")
        }
    }

    /// Codecs of one connection, each with a key of its own and two with other settings, are used in turn.
    @Test(arguments: [CipherSettings.init(), .init(pageSize: 1024, hmacAlgorithm: .sha1), .init(usesHMAC: false)])
    func attachedStores(settings: CipherSettings) throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let main = Database(path: directory.file("main"), configuration: configuration)
        try main.openVerified()
        let names = ["a", "b", "c"]
        for (index, name) in names.enumerated() {
            try main.attach(directory.file(name), as: name, key: .testing(UInt8(index + 2)))
            try main.run("CREATE TABLE \(name).t (body)")
            try main.run("PRAGMA \(name).cache_size = 5")
            for row in 0..<100 { try main.run("INSERT INTO \(name).t VALUES (zeroblob(?))", [row * 40]) }
        }
        #expect(main.executeStatements("PRAGMA main.cache_size = 5; CREATE TABLE main.t (body)"))
        for round in 1...4 {
            for name in names {
                try main.run("INSERT INTO main.t SELECT body FROM \(name).t")
                try main.run("UPDATE \(name).t SET body = CAST(body || \(round) AS BLOB)")
            }
        }
        let lengths = [40 * 4950 * 12 + 300 * (0 + 1 + 2 + 3)]
        #expect(try main.integers("SELECT sum(length(body)) FROM main.t") == lengths)
        for (index, name) in names.enumerated() {
            try main.detach(name)
            let report = try IntegrityReport.verify(path: directory.file(name), key: .testing(UInt8(index + 2)))
            #expect(report.isSound)
        }
    }

    /// During a rekey in place, pages are read with one key and written with another.
    @Test func rekeyedInPlace() throws {
        let database = FMDatabase(path: directory.file("db"))
        #expect(database.open() && database.setKey("one"))
        try database.fill(rows: 500)
        #expect(database.executeStatements("PRAGMA cache_size = 10"))
        for key in ["two", "three"] { #expect(database.rekey(key), "\(database.lastError())") }
        try database.fill(rows: 500)
        #expect(database.close())
        let key = try Key.passphrase("three")
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: key, isDeep: true).isSound)
        let sql = "PRAGMA key = 'three'; SELECT count(*) FROM t;"
        #expect(try StockShell.run(directory.file("db"), sql) == ["1000"])
    }

    /// Each connection has contexts of its own, also if threads open and close them all the time.
    @Test func connectionsOnManyThreads() throws {
        let paths = (0..<8).map { directory.file("\($0)") }
        let rounds = 15
        let failures = Failures()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            do {
                for round in 1...rounds {
                    let database = try Database.testing(paths[thread], key: UInt8(thread + 1), journalMode: .wal)
                    try database.run("CREATE TABLE IF NOT EXISTS t (body)")
                    try database.run("PRAGMA cache_size = 5")
                    for row in 0..<40 { try database.run("INSERT INTO t VALUES (zeroblob(?))", [row * 100]) }
                    let sum = try database.integers("SELECT sum(length(body)) FROM t")
                    if sum != [78000 * round] { failures.note("\(thread), \(round): \(sum)") }
                    database.close()
                }
            } catch {
                failures.note("\(thread): \(error)")
            }
        }
        #expect(failures.all.isEmpty, "\(failures.all)")
    }

    /// What threads report. The lock protects it.
    private final class Failures: @unchecked Sendable {
        private let lock = NSLock()
        private var texts: [String] = []
        var all: [String] { lock.withLock { texts } }
        func note(_ text: String) { lock.withLock { texts.append(text) } }
    }

    // MARK: What cannot be done

    private static let page = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    private func code(_ contexts: OpaquePointer, key: Int = 32, size: Int32 = 4000, algorithm: Int32 = 2) -> Int32 {
        var out = [UInt8](repeating: 0xee, count: 64)
        let key = [UInt8](repeating: 9, count: key)
        let count = Int32(key.count)
        let result = sealeddb_page_code(contexts, algorithm, key, count, Self.page, size, [1, 0, 0, 0], 4, &out)
        // What failed has left no trace.
        #expect(result == 1 || out.allSatisfy { $0 == 0xee })
        return result
    }

    private func cipher(_ contexts: OpaquePointer, key: Int = 32, size: Int32 = 4016, mode: Int32 = 0) -> Int32 {
        var out = [UInt8](repeating: 0, count: 8192)
        let key = [UInt8](repeating: 9, count: key)
        return sealeddb_page_cipher(contexts, mode, key, Int32(key.count), Self.page, Self.page, size, &out)
    }

    @Test func whatIsNoPageIsLeftToSQLCipher() throws {
        var functions = sealeddb_openssl()
        try #require(sealeddb_find_openssl(dlopen(nil, RTLD_LAZY), &functions) == 1)
        try withUnsafePointer(to: &functions) { functions in
            let contexts = try #require(sealeddb_make_page_contexts(functions))
            defer { sealeddb_free_page_contexts(contexts) }
            #expect(code(contexts) == 1 && cipher(contexts) == 1 && cipher(contexts, mode: 1) == 1)
            for algorithm in [-1, 3] as [Int32] { #expect(code(contexts, algorithm: algorithm) == 0) }
            #expect(code(contexts, key: 16) == 0 && code(contexts, key: 64) == 0 && code(contexts, size: 0) == 0)
            for mode in [-1, 2] as [Int32] { #expect(cipher(contexts, mode: mode) == 0) }
            for size in [0, -16, 4015] as [Int32] { #expect(cipher(contexts, size: size) == 0) }
            #expect(cipher(contexts, key: 16) == 0)
            // In place, SQLCipher's function could not follow a failure.
            var page = Self.page
            let key = [UInt8](repeating: 9, count: 32)
            page.withUnsafeMutableBufferPointer { page in
                let base = page.baseAddress!
                for distance in [0, 16] {
                    let result = sealeddb_page_cipher(contexts, 0, key, 32, key, base, 2048, base + distance)
                    #expect(result == 0)
                }
                #expect(sealeddb_page_cipher(contexts, 0, key, 32, key, base, 2048, base + 2048) == 1)
            }
        }
        #expect(sealeddb_find_openssl(dlopen("libm.so.6", RTLD_LAZY), &functions) == 0)
    }

    /// Each function that fails makes the call fail, and the context go; the next call begins anew.
    @Test func whatOpenSSLFails() throws {
        var functions = FakeOpenSSL.functions
        try withUnsafePointer(to: &functions) { functions in
            for name in FakeOpenSSL.names {
                let contexts = try #require(sealeddb_make_page_contexts(functions))
                for isFirst in [true, false] {
                    FakeOpenSSL.failing = isFirst ? name : nil
                    let isOfCode = name.hasPrefix("hmac"), isOfCipher = name.hasPrefix("cipher")
                    #expect(code(contexts) == (isFirst && !isOfCipher ? 0 : 1), "\(name)")
                    #expect(cipher(contexts) == (isFirst && !isOfCode ? 0 : 1), "\(name)")
                }
                #expect(FakeOpenSSL.errorsLeft == 0, "\(name)")
                // Contexts that are kept can fail too.
                if name.hasSuffix("init") || name.hasSuffix("update") || name.hasSuffix("final") {
                    let before = FakeOpenSSL.count
                    FakeOpenSSL.failing = name
                    #expect(code(contexts) == 0 || cipher(contexts) == 0, "\(name)")
                    #expect(FakeOpenSSL.count == before - 1, "\(name)")
                }
                FakeOpenSSL.failing = nil
                sealeddb_free_page_contexts(contexts)
                #expect(FakeOpenSSL.count == 0, "\(name)")
            }
        }
        #expect(sealeddb_page_contexts_agree(&functions, nil, nil, 0) == 0)
        #expect(FakeOpenSSL.count == 0)
    }
}

/// Functions in the place of OpenSSL's, of which one can fail.
private enum FakeOpenSSL {
    // One test alone uses them.
    nonisolated(unsafe) static var failing: String?
    nonisolated(unsafe) static var count = 0
    nonisolated(unsafe) static var errorsLeft = 0

    static let names = [
        "init_crypto", "random", "hmac_new", "hmac_init", "hmac_update", "hmac_final", "cipher_new", "cipher_init",
        "cipher_set_padding", "cipher_update",
    ]

    private static func result(_ name: String) -> Int32 {
        guard failing == name else { return 1 }
        if name != "init_crypto" { errorsLeft += 1 }
        return 0
    }

    private static func make(_ name: String) -> UnsafeMutableRawPointer? {
        guard result(name) == 1 else { return nil }
        count += 1
        return UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    }

    private static func end(_ context: UnsafeMutableRawPointer?) {
        context?.deallocate()
        count -= 1
    }

    static var functions: sealeddb_openssl {
        var functions = sealeddb_openssl()
        functions.init_crypto = { _, _ in FakeOpenSSL.result("init_crypto") }
        functions.random = { bytes, count in
            memset(bytes!, 5, Int(count))
            return FakeOpenSSL.result("random")
        }
        functions.cleanse = { bytes, count in memset(bytes!, 0, count) }
        functions.clear_errors = { FakeOpenSSL.errorsLeft = 0 }
        functions.digests = ({ nil }, { nil }, { nil })
        functions.hmac_new = { FakeOpenSSL.make("hmac_new") }
        functions.hmac_init = { _, _, _, _, _ in FakeOpenSSL.result("hmac_init") }
        functions.hmac_update = { _, _, _ in FakeOpenSSL.result("hmac_update") }
        functions.hmac_final = { _, _, size in
            // The size must be right too.
            size?.pointee = FakeOpenSSL.failing == "hmac_final" ? 32 : 64
            if FakeOpenSSL.failing == "hmac_final" { FakeOpenSSL.errorsLeft += 1 }
            return 1
        }
        functions.hmac_free = { FakeOpenSSL.end($0) }
        functions.aes_256_cbc = { nil }
        functions.cipher_new = { FakeOpenSSL.make("cipher_new") }
        functions.cipher_init = { _, _, _, _, _, _ in FakeOpenSSL.result("cipher_init") }
        functions.cipher_set_padding = { _, _ in FakeOpenSSL.result("cipher_set_padding") }
        functions.cipher_update = { _, _, outSize, _, size in
            outSize?.pointee = FakeOpenSSL.failing == "cipher_update" ? size - 16 : size
            if FakeOpenSSL.failing == "cipher_update" { FakeOpenSSL.errorsLeft += 1 }
            return 1
        }
        functions.cipher_free = { FakeOpenSSL.end($0) }
        return functions
    }
}
