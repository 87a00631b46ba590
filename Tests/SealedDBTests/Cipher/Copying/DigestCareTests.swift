import Foundation
import Testing

@testable import SealedDB

/// What could make databases that differ look alike, and equal ones different.
@Suite(.hangLimit)
struct DigestCareTests {
    private func digest(_ sql: String) throws -> [UInt8] {
        let database = try Database.testing(nil)
        defer { database.close() }
        #expect(database.executeStatements(sql), "\(database.lastError())")
        return try ContentDigest.of(#require(database.connection))
    }

    /// Programs set this to find queries that rely on an order.
    @Test func theOrderThatAUserHasSet() throws {
        func parts(_ sql: String) throws -> ContentDigest.Parts {
            let database = try Database.testing(nil)
            defer { database.close() }
            #expect(
                database.executeStatements(
                    """
                    CREATE TABLE t (a); CREATE INDEX i ON t (a); CREATE TABLE w (k PRIMARY KEY) WITHOUT ROWID;
                    INSERT INTO t VALUES (1), (2), (3); INSERT INTO w VALUES (1), (2); \(raw: sql)
                    """
                )
            )
            return try ContentDigest.Parts(of: #require(database.connection))
        }
        #expect(try parts("").differences(from: parts("PRAGMA reverse_unordered_selects = ON")) == [])
    }

    @Test func rowsOfAnotherTable() throws {
        let sql = "CREATE TABLE t (a); CREATE TABLE u (a); INSERT INTO"
        #expect(try digest("\(sql) t VALUES (1)") != digest("\(sql) u VALUES (1)"))
        let rows = "INSERT INTO t VALUES (1); INSERT INTO u VALUES (2)"
        #expect(try digest("\(sql) t VALUES (7); \(rows)") != digest("\(sql) u VALUES (7); \(rows)"))
    }

    /// SQLite makes one character of the two halves, whatever the second one is.
    @Test func textsThatWouldBeAlikeInUTF8() throws {
        let sql = "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a); INSERT INTO t VALUES (CAST("
        #expect(try digest("\(sql)x'00d84100' AS TEXT))") != digest("\(sql)x'00d841dc' AS TEXT))"))
    }

    /// It is not among those that this connection merely has no collation for.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func aTableThatIsDamaged() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("db")
        let store = try Database.testing(path, journalMode: .delete)
        #expect(
            store.executeStatements(
                """
                CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                INSERT INTO w SELECT i, zeroblob(500) FROM n;
                """
            )
        )
        #expect(store.close())
        var bytes = try directory.bytes("db")
        bytes[bytes.count - 2000] ^= 1
        try directory.write("db", bytes)
        let connection = try StoreOpening(path: path, key: .testing(1)).open()
        defer { connection.close() }
        #expect(throws: DatabaseError.self) { _ = try ContentDigest.Parts(of: connection) }
    }
}
