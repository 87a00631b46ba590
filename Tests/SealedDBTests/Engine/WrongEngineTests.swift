import Foundation
import SealedDB
import Testing

private let isTrustedEngine = isEncrypting && EngineInfo.current().checks.filter { !$0.passed }.isEmpty

/// Runs only where libsqlite3 was put in front of libsqlcipher, which `scripts/test` does, or in the plain build: no
/// way into the library that takes a key may go on.
@Suite(.hangLimit, .enabled(if: !isTrustedEngine, "is about a process with the wrong engine"))
struct WrongEngineTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        // Looks like an encrypted store of three pages.
        try Data((0..<12288).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 13) })
            .write(to: URL(fileURLWithPath: directory.file("sealed")))
        let plain = Database(path: directory.file("plain"))
        plain.open()
        #expect(plain.executeStatements("CREATE TABLE t (a)"))
    }

    @Test func everyEntryPointRefuses() throws {
        let key = try Key.testing(1)
        let other = try Key.testing(2)
        let fresh = directory.file("fresh")
        let sealed = directory.file("sealed")
        let plain = directory.file("plain")
        let before = try (directory.bytes("sealed"), directory.bytes("plain"))
        let unread = KeySource.closure { preconditionFailure("The source was read.") }
        let ring = try KeyRing(activeID: "a", source: unread)
        let attempts: [() throws -> Void] = [
            { try Database(path: fresh, configuration: Configuration(key: key)).openVerified() },
            { try Database(path: nil, configuration: Configuration(key: key)).openVerified() },
            { try Database(path: fresh, configuration: Configuration(keySource: unread)).openVerified() },
            { _ = try DatabaseQueue(path: sealed, configuration: Configuration(keyRing: ring)) },
            { _ = try DatabaseQueue(path: fresh, configuration: Configuration(key: key)) },
            { _ = try KeyRotation(path: sealed, from: key, to: other).plan() },
            { try KeyRotation(path: sealed, from: key, to: other).run() },
            { try StoreEncryption(plaintextPath: plain, path: fresh, key: key).run() },
            { try StoreDecryption(path: sealed, key: key, plaintextPath: fresh).run() },
            { _ = try StoreMigration(path: sealed, key: key).plan() },
            { try StoreMigration(path: sealed, key: key, from: .sqlCipher3).run() },
            { try StoreBackup(path: sealed, key: key, to: fresh).run() },
            { try StoreRestore(backupPath: sealed, key: key, to: fresh).run() },
            { _ = try StoreDiagnosis.examine(path: sealed, key: key) },
            { _ = try IntegrityReport.verify(path: sealed, key: key) },
            { _ = try StoreInfo.inspect(path: sealed, key: key) },
        ]
        for (number, attempt) in attempts.enumerated() {
            let error = #expect(throws: DatabaseError.self, "attempt \(number)") { try attempt() }
            #expect([.wrongEngine, .unsupported].contains(error?.reason), "attempt \(number): \(error as Any)")
        }
        #expect(directory.names == ["plain", "sealed"])
        #expect(try directory.bytes("sealed") == before.0)
        #expect(try directory.bytes("plain") == before.1)
    }

    @Test func theEngineIsNotCalledEncrypting() {
        let engine = EngineInfo.current()
        #expect(!engine.isEncrypting)
        #expect(engine.cipherVersion == nil)
        #expect(!EngineInfo.enabledTraits.isEmpty)
    }

    @Test func keysInSQLAreRefused() throws {
        let database = Database(path: directory.file("plain"))
        database.open()
        for sql in [
            "ATTACH 'x' AS x KEY 'y'", "attach database ? as x key ?", " /* ; */ -- ;\n ATTACH 'KEY' AS [x] KEY 'k'",
            "PRAGMA key = 'y'", "PRAGMA main.\"hexKey\"='00'", "EXPLAIN PRAGMA rekey('y')", "; ; pragma key('y')",
        ] {
            #expect(!database.executeStatements(sql))
            let reason = (database.lastError() as? DatabaseError)?.reason
            #expect([.wrongEngine, .unsupported].contains(reason), "\(sql): \(database.lastError())")
        }
        #expect(database.executeStatements("ATTACH ':memory:' AS \"key\"; PRAGMA user_version = 1; SELECT 'KEY'"))
        #expect(directory.names == ["plain", "sealed"])
    }

    @Test func whatOnlySQLCipherHasIsRefused() throws {
        let database = Database(path: directory.file("plain"))
        database.open()
        let error = #expect(throws: DatabaseError.self) { try database.addRandom(Data([1, 2, 3])) }
        #expect([.wrongEngine, .unsupported].contains(error?.reason), "\(error as Any)")
        #expect(!database.applyLicense("a license"))
        let reason = (database.lastError() as? DatabaseError)?.reason
        #expect([.wrongEngine, .unsupported].contains(reason), "\(database.lastError())")
    }

    @Test func setKeyCloses() throws {
        let database = Database(path: directory.file("plain"))
        database.open()
        #expect(!database.setKey("passphrase"))
        #expect(!database.isOpen)
        #expect(!database.executeStatements("CREATE TABLE u (a)"))
        database.open()
        #expect(!database.rekey("passphrase"))
    }
}
