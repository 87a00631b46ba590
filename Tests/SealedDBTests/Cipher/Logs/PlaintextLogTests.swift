import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// Logs of databases that are not encrypted, some pages of which are in the file as they are in the log.
@Suite(.hangLimit)
struct PlaintextLogTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Others reserve bytes at the end of each page too, as a codec does. A transaction that was rolled back has left frames behind
    /// the end of the log.
    @Test(arguments: [0, 16, 32] as [Int32]) func reservedBytes(count: Int32) throws {
        let flags = SealedDB.SQLITE_OPEN_READWRITE | SealedDB.SQLITE_OPEN_CREATE
        let connection = try Connection(path: directory.file("open"), flags: flags)
        defer { connection.close() }
        var reserved = count
        // SQLITE_FCNTL_RESERVE_BYTES
        #expect(sqlite3_file_control(connection.handle, "main", 38, &reserved) == 0)
        for statement in [
            "PRAGMA journal_mode = wal", "PRAGMA wal_autocheckpoint = 0",
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v, body)",
            """
            WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
            INSERT INTO t SELECT i, 0, randomblob(2400) FROM n
            """,
            "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA cache_size = 5", "BEGIN", "UPDATE t SET v = 7", "ROLLBACK",
        ] {
            try connection.run(statement)
        }
        let file = try [UInt8](directory.bytes("open"))
        try #require(file[20] == UInt8(count))
        try directory.write("db", Data(file))
        try directory.write("db-wal", directory.bytes("open-wal"))
        try #require(directory.bytes("db-wal").count > 5 * 4120)
        #expect(throws: Never.self) { try LogDamage.requireNone(ofStore: directory.file("db")) }
    }
}
