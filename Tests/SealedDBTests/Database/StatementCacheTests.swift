import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct StatementCacheTests {
    private func database(capacity: Int = 64) throws -> Database {
        var configuration = Configuration()
        configuration.statementCacheCapacity = capacity
        let database = Database(path: nil, configuration: configuration)
        try database.openVerified()
        try database.executeUpdate("CREATE TABLE t (a INTEGER)", values: nil)
        for number in 1...3 { try database.executeUpdate("INSERT INTO t VALUES (?)", values: [number]) }
        return database
    }

    /// How often the statement that is prepared for this text has been used.
    private func useCount(_ sql: String, _ db: Database, values: [Any] = []) throws -> Int {
        let rows = try db.executeQuery(sql, values: values)
        defer { rows.close() }
        while try rows.nextWithError() {}
        return try #require(try db.executeQuery(sql, values: values).statement).useCount - 1
    }

    @Test func oneTextUsedTwiceAtOnceIsTwoStatements() throws {
        let db = try database()
        let sql = "SELECT a FROM t WHERE a >= ? ORDER BY a"
        let outer = try db.executeQuery(sql, values: [1])
        var pairs: [[Int]] = []
        while try outer.nextWithError() {
            let inner = try db.executeQuery(sql, values: [3])
            while try inner.nextWithError() {
                pairs.append([outer.long(forColumnIndex: 0), inner.long(forColumnIndex: 0)])
            }
        }
        #expect(pairs == [[1, 3], [2, 3], [3, 3]])
    }

    @Test func valuesOfTheFormerUseAreGone() throws {
        let db = try database()
        let set = try db.prepare("SELECT ?")
        #expect(set.bind(with: ["a secret value"]))
        #expect(set.next())
        set.close()
        let again = try db.prepare("SELECT ?")
        #expect(again.statement?.useCount == 2)
        #expect(again.next())
        #expect(again.columnIndexIsNull(0))
    }

    @Test func aStatementThatFailedIsNotKept() throws {
        let db = try database()
        try db.executeUpdate("CREATE UNIQUE INDEX i ON t (a)", values: nil)
        let sql = "INSERT INTO t VALUES (?)"
        #expect(!db.executeUpdate(sql, withArgumentsIn: [1]))
        let set = try db.prepare(sql)
        #expect(set.statement?.useCount == 1)
        set.close()
        // A number of values that does not fit is no fault of the statement.
        #expect(!db.executeUpdate(sql, withArgumentsIn: []))
        #expect(!db.executeUpdate(sql, withArgumentsIn: [1, 2]))
        #expect(db.executeUpdate(sql, withArgumentsIn: [4]))
        #expect(try db.prepare(sql).statement?.useCount == 5)
    }

    @Test func textsOfEqualCharactersAndOtherBytesAreTwoStatements() throws {
        let db = try database()
        // Equal to Swift, but not to SQL.
        #expect(try db.integers("SELECT length('e\u{301}')") == [2])
        #expect(try db.integers("SELECT length('\u{e9}')") == [1])
        #expect(try db.integers("SELECT length('e\u{301}')") == [2])
    }

    @Test func textsThatDifferInOneByteAnywhere() throws {
        let db = try database(capacity: 1000)
        // Each text twice, so that one that is taken for another gives a wrong number.
        let texts = (0..<40).flatMap { place in
            (0..<8).map {
                "SELECT " + String(repeating: "0", count: place) + "\($0)" + String(repeating: "1", count: 5)
            }
        }
        for sql in texts + texts {
            let expected = try #require(Int(sql.dropFirst(7).suffix(18)))
            #expect(try db.integers(sql) == [expected])
        }
        #expect(try db.prepare("SELECT 0011111").statement?.useCount == 3)
    }

    @Test func aSmallerCapacityKeepsNothingBeyondIt() throws {
        let db = try database(capacity: 4)
        for number in 1...4 { #expect(try db.integers("SELECT \(number)") == [number]) }
        db.shouldCacheStatements = false
        #expect(try db.prepare("SELECT 4").statement?.useCount == 1)
        db.shouldCacheStatements = true
        #expect(try useCount("SELECT 4", db) == 1)
        #expect(try db.prepare("SELECT 4").statement?.useCount == 3)
    }

    @Test func theOldestGivesWay() throws {
        let db = try database(capacity: 2)
        #expect(try useCount("SELECT 1", db) == 1)
        #expect(try useCount("SELECT 2", db) == 1)
        #expect(try useCount("SELECT 1", db) == 3)
        #expect(try useCount("SELECT 3", db) == 1)
        #expect(try useCount("SELECT 1", db) == 5)
        #expect(try useCount("SELECT 2", db) == 1)
    }

    @Test func columnsFollowTheSchema() throws {
        let db = try database()
        #expect(try db.executeQuery("SELECT * FROM t", values: nil).columnCount == 1)
        try db.executeUpdate("ALTER TABLE t ADD COLUMN b DEFAULT 'new'", values: nil)
        let rows = try db.executeQuery("SELECT * FROM t", values: nil)
        #expect(rows.columnCount == 2)
        #expect(rows.columnIndex(forName: "b") == 1)
        rows.close()
        #expect(db.beginTransaction())
        try db.executeUpdate("ALTER TABLE t DROP COLUMN b", values: nil)
        #expect(try db.executeQuery("SELECT * FROM t", values: nil).columnCount == 1)
        #expect(db.rollback())
        #expect(try db.executeQuery("SELECT * FROM t", values: nil).columnCount == 2)
    }

    @Test func columnsFollowASchemaThatAnotherConnectionChanged() throws {
        let directory = try TemporaryDirectory()
        let db = try Database.testing(directory.file("db"))
        let other = try Database.testing(directory.file("db"))
        try db.fill(rows: 1)
        let first = try db.executeQuery("SELECT * FROM t", values: nil)
        #expect(first.next() && first.columnIndex(forName: "added") == -1)
        first.close()
        try other.executeUpdate("ALTER TABLE t ADD COLUMN added DEFAULT 7", values: nil)
        let rows = try db.executeQuery("SELECT * FROM t", values: nil)
        #expect(rows.statement?.useCount == 2)
        _ = rows.columnIndex(forName: "added")
        #expect(rows.next())
        #expect(rows.int(forColumn: "added") == 7)
    }

    @Test func keptStatementsDoNotKeepTheDatabaseOpenOrLocked() throws {
        let directory = try TemporaryDirectory()
        let db = try Database.testing(directory.file("db"))
        try db.fill(rows: 3)
        let rows = try db.executeQuery("SELECT * FROM t", values: nil)
        #expect(rows.next())
        rows.close()
        let other = try Database.testing(directory.file("db"))
        other.maxBusyRetryTimeInterval = 0
        try other.executeUpdate("DROP TABLE t", values: nil)
        #expect(db.close())
    }

    /// Whatever stands before the first word.
    @Test(arguments: ["", "-- c\n", "/* c */", "\u{FEFF}", ";", " \u{b}", "/**/ ;\u{FEFF}"])
    func changesOfTheSchemaAreSeen(start: String) throws {
        let db = try database()
        #expect(try db.executeQuery("SELECT * FROM t", values: nil).columnCount == 1)
        try db.executeUpdate("\(raw: start)ALTER TABLE t ADD COLUMN b", values: nil)
        #expect(try db.executeQuery("SELECT * FROM t", values: nil).columnCount == 2)
        #expect(db.beginTransaction())
        #expect(db.executeStatements("\(raw: start)ALTER TABLE t ADD COLUMN c"))
        #expect(try db.executeQuery("SELECT * FROM t", values: nil).columnCount == 3)
        try db.executeUpdate("\(raw: start)ROLLBACK", values: nil)
        #expect(try db.executeQuery("SELECT * FROM t", values: nil).columnCount == 2)
        try db.executeUpdate("\(raw: start)ATTACH ':memory:' AS m", values: nil)
        try db.executeUpdate("CREATE TABLE m.u (a, b, c, d)", values: nil)
        #expect(try db.executeQuery("SELECT * FROM u", values: nil).columnCount == 4)
        try db.executeUpdate("\(raw: start)DETACH m", values: nil)
        #expect(db.executeQuery("SELECT * FROM u", withArgumentsIn: []) == nil)
        for number in 1...2 {
            try db.executeUpdate("\(raw: start)PRAGMA user_version = \(raw: 5 * number)", values: nil)
            try db.executeUpdate("\(raw: start)PRAGMA user_version = 7", values: nil)
            #expect(db.userVersion == 7)
        }
    }

    /// Compiled to nothing while there is no such table.
    @Test func droppingWhatIsNotThere() throws {
        let db = try database()
        for _ in 0..<2 {
            try db.executeUpdate("DROP TABLE IF EXISTS u", values: nil)
            try db.executeUpdate("CREATE TABLE u (a, b)", values: nil)
            #expect(try db.executeQuery("SELECT * FROM u", values: nil).columnCount == 2)
        }
    }

    @Test func whatMayFollowAStatement() throws {
        let db = try database()
        for end in [
            ";", "; -- comment", ";/* a; b */", " ; ;; ", ";\u{FEFF}", "-- comment", ";\n-- a\n-- b\n;", "; /* open",
        ] {
            try db.executeUpdate("CREATE TABLE IF NOT EXISTS u (a)\(raw: end)", values: nil)
            #expect(try db.integers("SELECT 1\(end)") == [1], "\(end)")
        }
        for end in ["; SELECT 2", ";/* */x", ";\u{b}", "; 'a'", "; ;\u{FEFF}1", "; \u{0}"] {
            let error = #expect(throws: DatabaseError.self, "\(end)") {
                try db.executeUpdate("SELECT 1\(raw: end)", values: nil)
            }
            #expect(error?.message.contains("more than one statement") == true, "\(end)")
        }
        #expect(throws: DatabaseError.self) { try db.executeUpdate("SELECT 1\u{0}", values: nil) }
        #expect(!db.executeStatements("DELETE FROM t; \u{0}; DELETE FROM t"))
        #expect(db.lastErrorMessage().contains("NUL"))
    }

    /// SQLite gets each part of a script once.
    @Test func scriptsAreReadOnce() throws {
        let db = try database()
        let connection = try #require(db.connection)
        let script = String(repeating: "INSERT INTO t VALUES ('some text; with a semicolon');\n", count: 5000)
        let before = connection.compiledByteCount
        #expect(db.beginTransaction() && db.executeStatements(script) && db.commit())
        #expect(connection.compiledByteCount - before < script.utf8.count + 100)
        #expect(try db.integers("SELECT count(*) FROM t") == [5003])
    }

    private struct Refused: Error, Bindable {
        func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
            throw DatabaseError(extendedCode: SealedDB.SQLITE_MISUSE, reason: .misuse, message: "not this one")
        }
    }

    /// What a call has prepared that then fails is not in use for as long as the database is open.
    @Test(arguments: [0, 64]) func callsThatFailLeaveNoStatement(capacity: Int) throws {
        let wrongCalls: [(Database) throws -> Void] = [
            { db in try db.executeUpdate("SELECT a FROM t; SELECT 2", values: nil) },
            { db in try db.executeUpdate("SELECT a FROM t WHERE a = ?", values: nil) },
            { db in _ = try db.executeQuery("SELECT a FROM t WHERE a = ?", values: nil) },
            { db in try db.executeUpdate("SELECT a FROM t WHERE a = ?", 1, 2) },
            { db in _ = try db.executeQuery("SELECT a FROM t WHERE a = ?", 1, 2) },
            { db in try db.executeUpdate("SELECT a FROM t WHERE a = ?", Refused()) },
            { db in _ = try db.executeQuery("SELECT a FROM t WHERE a = ?", Refused()) },
            { db in _ = try db.executeQuery("SELECT a FROM t WHERE a = ?", ["b": 1]) },
            { db in try db.execute(script: "SELECT a FROM t WHERE a = ?") },
        ]
        for (index, call) in wrongCalls.enumerated() {
            let db = try database(capacity: capacity)
            db.clearCachedStatements()
            for _ in 0..<3 { #expect(throws: DatabaseError.self) { try call(db) } }
            db.clearCachedStatements()
            let connection = try #require(db.connection?.handle)
            #expect(sqlite3_next_stmt(connection, nil) == nil, "\(index)")
        }
    }

    /// As many as before, or by default.
    @Test func cachingIsSwitchedOnAgain() throws {
        for capacity in [64, 100] {
            let db = try database(capacity: capacity)
            for isOn in [false, true] { db.shouldCacheStatements = isOn }
            let connection = try #require(db.connection)
            let queries = (0..<60).map { "SELECT a FROM t WHERE a = \($0)" }
            for query in queries { _ = try db.integers(query) }
            let before = connection.compiledByteCount
            for query in queries { _ = try db.integers(query) }
            #expect(connection.compiledByteCount == before, "\(capacity)")
        }
    }

    @Test func pragmasActEveryTime() throws {
        let db = try database()
        for _ in 0..<2 {
            try db.executeUpdate("PRAGMA user_version = 5", values: nil)
            #expect(db.userVersion == 5)
            try db.executeUpdate("PRAGMA user_version = 6", values: nil)
            #expect(db.userVersion == 6)
        }
    }

    /// What neither reads nor changes rows may do its work when it is prepared.
    @Test(arguments: ["VACUUM", "ANALYZE", "REINDEX", "PRAGMA user_version", "EXPLAIN SELECT 1"])
    func whatElseThereIsIsNotKept(sql: String) throws {
        let db = try database()
        for _ in 0..<2 {
            let set = try db.prepare(sql)
            #expect(set.statement?.useCount == 1)
            while try set.nextWithError() {}
            set.close()
        }
    }
}
