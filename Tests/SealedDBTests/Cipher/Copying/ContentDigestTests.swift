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

    /// No two of these make the same database.
    @Test func whatIsEasilyTakenForTheSame() throws {
        let large = "x'" + String(repeating: "61", count: 200_000)
        let contents = [
            "CREATE TABLE t (a, b); INSERT INTO t VALUES ('ab', 'c')",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES ('a', 'bc')",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES ('abc', '')",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES ('abc', NULL)",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES ('abc', x'')",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (x'616263', NULL)",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (CAST(x'61626300' AS TEXT), NULL)",
            "CREATE TABLE t (a ANY, b ANY) STRICT",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (9007199254740993, 0)",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (9007199254740992.0, 0)",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (4.9e-324, 0)",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (9e999, 0)",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (-9e999, 0)",
            "CREATE TABLE t (a, b); INSERT INTO t (rowid, a) VALUES (1, 1), (2, 2)",
            "CREATE TABLE t (a, b); INSERT INTO t (rowid, a) VALUES (1, 2), (2, 1)",
            "CREATE TABLE t (a, b); INSERT INTO t (rowid, a) VALUES (1, 1), (3, 2)",
            "CREATE TABLE t (a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES (1, 1), (2, 2)",
            "CREATE TABLE t (a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES (1, 2), (2, 1)",
            "CREATE TABLE t (a, b AS (a + 1)); INSERT INTO t VALUES (1)",
            "CREATE TABLE t (a, b AS (a + 2)); INSERT INTO t VALUES (1)",
            "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT)",
            "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (7); DELETE FROM t",
            "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (8); DELETE FROM t",
            "CREATE VIRTUAL TABLE t USING fts5(a)",
            "CREATE VIRTUAL TABLE t USING fts5(a); INSERT INTO t VALUES ('word')",
            "CREATE VIRTUAL TABLE t USING fts5(a); INSERT INTO t VALUES ('words')",
            "CREATE TABLE t (a); INSERT INTO t VALUES (\(large)61')",
            "CREATE TABLE t (a); INSERT INTO t VALUES (\(large)62')",
            "CREATE TABLE t (a); INSERT INTO t VALUES (CAST(\(large)62' AS TEXT))",
            "CREATE TABLE t (a); INSERT INTO t VALUES (\(large)62'), (NULL)",
            "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a); INSERT INTO t VALUES ('a')",
            "PRAGMA encoding = 'UTF-16be'; CREATE TABLE t (a); INSERT INTO t VALUES ('a')",
        ]
        let digests = try contents.map { try digest($0) }
        for (index, digest) in digests.enumerated() {
            #expect(digests.firstIndex(of: digest) == index, "\(contents[index].prefix(80))")
        }
        #expect(try digest(contents[27]) == digests[27])
    }

    /// In UTF-8 both would be the same replacement character.
    @Test(arguments: ["UTF-16le", "UTF-16be"])
    func textsThatAreNotValid(encoding: String) throws {
        let texts = ["x'00d8'", "x'01d8'", "x'd800'", "x'd801'", "x'00dc00dc'", "x'fdff'"]
        let digests = try texts.map {
            try digest(
                "PRAGMA encoding = '\(encoding)'; CREATE TABLE t (a); INSERT INTO t VALUES (CAST(\($0) AS TEXT))"
            )
        }
        #expect(Set(digests).count == texts.count)
    }

    /// How much of the buffer a row finds left makes no difference.
    @Test func rowsOfEachSizeAtTheEndOfTheBuffer() throws {
        let sizes = [1, 65_520, 65_530, 65_536, 131_050, 131_060, 131_072, 200_000]
        let fills = sizes.map { first in
            sizes.map { "INSERT INTO t VALUES (zeroblob(\(first)), zeroblob(\($0)), zeroblob(1))" }
        }
        let all = fills.flatMap { $0 }
        let digests = try all.map { try digest("CREATE TABLE t (a, b, c); \($0); \($0)") }
        #expect(Set(digests).count == all.count)
        #expect(try digest("CREATE TABLE t (a, b, c); \(all[9]); \(all[9])") == digests[9])
    }

    @Test func allElse() throws {
        let changes = [
            "", "INSERT INTO t VALUES (1)", "UPDATE t SET rowid = 7", "DELETE FROM t", "CREATE INDEX i ON t (a)",
            "CREATE TABLE u (a)", "ALTER TABLE t RENAME TO u", "PRAGMA user_version = 3", "PRAGMA application_id = 4",
        ]
        let digests = try changes.map { try digest("CREATE TABLE t (a); INSERT INTO t VALUES (1); \($0)") }
        #expect(Set(digests).count == changes.count)
    }

    /// Whoever has a copy that differs learns where.
    @Test func whatDiffersIsNamed() throws {
        func parts(_ sql: String) throws -> ContentDigest.Parts {
            let database = try Database.testing(nil)
            defer { database.close() }
            #expect(database.executeStatements("CREATE TABLE t (a); CREATE INDEX i ON t (a); CREATE TABLE u (a)"))
            #expect(database.executeStatements(sql), "\(database.lastError())")
            return try ContentDigest.Parts(of: #require(database.connection))
        }
        let rows = "INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)"
        let whole = try parts(rows)
        for (sql, wanted) in [
            (rows, []), ("INSERT INTO t VALUES (2); INSERT INTO u VALUES (1)", ["index i", "table t"]),
            ("INSERT INTO t VALUES (1)", ["table u"]), ("SELECT 1", ["index i", "table t", "table u"]),
            (rows + "; CREATE TABLE v (a)", ["the schema"]), (rows + "; DROP INDEX i", ["the schema"]),
            (rows + "; PRAGMA user_version = 1", ["the schema"]),
        ] as [(String, [String])] {
            let other = try parts(sql)
            #expect(other.differences(from: whole) == wanted, "\(sql)")
            #expect(whole.differences(from: other) == wanted, "\(sql)")
        }
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
