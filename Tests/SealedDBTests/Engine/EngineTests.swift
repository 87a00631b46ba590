import Foundation
import SQLiteEngine
import SealedDB
import Testing

@Suite(.hangLimit)
struct EngineTests {
    @Test func checksPass() {
        let engine = EngineInfo.current()
        #expect(engine.checks.filter { !$0.passed } == [])
        #expect(engine.checks.isEmpty == !engine.isEncrypting)
        #expect((engine.cipherVersion != nil) == engine.isEncrypting)
        #expect(engine.sqliteVersion == Database.sqliteLibVersion())
        #expect(Database.isSQLiteThreadSafe())
        #expect(Database.fmdbUserVersion() == "2.7.12")
    }

    @Test func connectionsShareNoStatistics() throws {
        let db = Database()
        defer { db.close() }
        try db.openVerified()
        try db.executeUpdate("CREATE TABLE t (text)", values: nil)
        #expect(sqlite3_memory_used() == 0)
    }

    /// OpenSSL would free the state of threads that run, and those that end meanwhile would free it again.
    @Test(.awaitsProcess, .enabled(if: isEncrypting, "the plain build has no OpenSSL"))
    func opensslIsThereToTheEndOfTheProcess() async {
        await #expect(processExitsWith: .exitCode(7)) {
            // Handlers run in reverse order: this one after OpenSSL's, which would be registered at the first opening.
            atexit { _exit(sealeddb_is_openssl_alive() == 1 ? 7 : 1) }
            let directory = try TemporaryDirectory()
            let db = try Database.testing(directory.file("db"))
            try db.executeUpdate("CREATE TABLE t (a)")
            exit(0)
        }
    }

    @Test(.enabled(if: !isEncrypting, "is about the plain build"))
    func plainBuildRefusesKeys() throws {
        let directory = try TemporaryDirectory()
        let key = try Key.testing(1)
        let path = directory.file("db")
        let error = #expect(throws: DatabaseError.self) {
            try Database(path: path, configuration: Configuration(key: key)).openVerified()
        }
        #expect(error?.reason == .unsupported)
        #expect(throws: DatabaseError.self) { try DatabaseQueue(path: path, configuration: Configuration(key: key)) }
        #expect(throws: DatabaseError.self) { try StoreEncryption(plaintextPath: path, path: path, key: key).run() }
        #expect(directory.names == [])
    }
}
