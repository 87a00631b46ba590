import Foundation
import Testing

@testable import SealedDB

/// Damaged logs of stores whose header is in clear: all versions of the first page have that in common.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PlaintextHeaderLogTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func open() throws -> Database {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = CipherSettings(plaintextHeaderSize: 32, salt: Array(1...16))
        configuration.journalMode = .wal
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        return database
    }

    /// - Parameter isInFile: whether a checkpoint has written the log to the file.
    private func makeDamagedLog(isInFile: Bool) throws {
        let database = try open()
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0;
                CREATE TABLE account (id INTEGER PRIMARY KEY, balance); INSERT INTO account VALUES (1, 100), (2, 0);
                PRAGMA wal_checkpoint(TRUNCATE); UPDATE account SET balance = 5 WHERE id = 2;
                UPDATE account SET balance = 10 WHERE id = 1; CREATE TABLE later (a);
                """
        )
        if isInFile { _ = try database.checkpoint(.passive) }
        try directory.keep("db", "db-wal", of: database)
        var log = try [UInt8](directory.bytes("db-wal"))
        // The page of the second transaction.
        log[32 + 4120 + 24 + 100] ^= 1
        try directory.write("db-wal", log)
    }

    /// SQLite would put older pages in the place of those of the file.
    @Test func aLogThatIsInTheFile() throws {
        try makeDamagedLog(isInFile: true)
        let error = #expect(throws: DatabaseError.self) { try open().close() }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(error?.message.contains("the file has pages of it") == true, "\(String(describing: error))")
    }

    /// The file has nothing of it, though the first pages begin alike: what SQLite reads is the last state before the
    /// damage.
    @Test func aLogThatIsNotInTheFile() throws {
        try makeDamagedLog(isInFile: false)
        let error = #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: directory.file("db")) }
        #expect(error?.message.contains("1 committed transaction stands behind bytes") == true, "\(error as Any)")
        let database = try open()
        defer { database.close() }
        #expect(try database.integers("SELECT balance FROM account ORDER BY id") == [100, 5])
    }
}
