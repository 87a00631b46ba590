import Testing

@testable import SealedDB

/// What two databases could differ in is in the digest by which a copy is compared with its source.
@Suite(.hangLimit)
struct ContentDigestTests {
    private func digest(_ sql: String) throws -> [UInt8] {
        let database = try Database.testing(nil)
        defer { database.close() }
        #expect(database.executeStatements(sql), "\(database.lastError())")
        return try ContentDigest.of(#require(database.connection))
    }

    @Test func values() throws {
        let values = ["NULL", "1", "2", "1.0", "1.5", "'1'", "'a'", "'b'", "''", "x''", "x'61'", "x'62'"]
        let digests = try values.map { try digest("CREATE TABLE t (a); INSERT INTO t VALUES (\($0))") }
        #expect(Set(digests).count == values.count)
        #expect(try digest("CREATE TABLE t (a); INSERT INTO t VALUES ('a')") == digests[6])
    }

    @Test func allElse() throws {
        let changes = [
            "", "INSERT INTO t VALUES (1)", "UPDATE t SET rowid = 7", "DELETE FROM t", "CREATE INDEX i ON t (a)",
            "CREATE TABLE u (a)", "ALTER TABLE t RENAME TO u", "PRAGMA user_version = 3", "PRAGMA application_id = 4",
        ]
        let digests = try changes.map { try digest("CREATE TABLE t (a); INSERT INTO t VALUES (1); \($0)") }
        #expect(Set(digests).count == changes.count)
    }

    /// However long a table is, the caller can stop.
    @Test func theCallerIsAskedMeanwhile() throws {
        let database = try Database.testing(nil)
        defer { database.close() }
        try database.fill(rows: 2500)
        let connection = try #require(database.connection)
        var calls: [Int64] = []
        let undisturbed = try connection.whileReading { pages in
            calls.append(pages)
        } _: { () throws(DatabaseError) in
            try ContentDigest.of(connection)
        }
        #expect(calls.count > 10 && calls == calls.sorted())
        #expect(try undisturbed == ContentDigest.of(connection))
        #expect(throws: DatabaseError.stopped) {
            try connection.whileReading { _ throws(DatabaseError) in
                throw .stopped
            } _: { () throws(DatabaseError) in
                try ContentDigest.of(connection)
            }
        }
    }
}
