import Foundation
import SealedDB
import Testing

/// `sealdb recover` on stores of which pages are damaged.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct RecoverTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
    }

    private func exec(_ sql: String, _ store: String = "db") throws {
        try sandbox.succeed("exec", store, sql, "--key-file", "key")
    }

    private func rows(_ sql: String, _ store: String) throws -> [String] {
        try sandbox.succeed("query", store, sql, "--key-file", "key", "--format", "csv", "--no-header").lines
    }

    private func damage(_ page: Int) throws {
        try sandbox.overwrite("db", at: UInt64((page - 1) * 4096 + 200), with: [1, 2, 3, 4])
    }

    @discardableResult
    private func recover(_ status: Int32, _ options: String...) throws -> Outcome {
        let outcome = try sandbox.run([Tool.sealdb, "recover", "db", "saved", "--key-file", "key"] + options)
        #expect(outcome.status == status, "\(outcome.output)\(outcome.error)")
        if sandbox.exists("saved") { try sandbox.succeed("verify", "saved", "--key-file", "key", "--deep") }
        return outcome
    }

    /// Tables of each kind, with values of each kind.
    private static let everything = """
        CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, bio);
        CREATE TABLE k (a TEXT, b INTEGER, c, PRIMARY KEY (c, a)) WITHOUT ROWID;
        CREATE TABLE g (a, b REAL, s AS (a || 1) STORED, v AS (a || 2) VIRTUAL, c);
        CREATE TABLE descending (a INTEGER PRIMARY KEY DESC, b);
        CREATE TABLE counted (a INTEGER PRIMARY KEY AUTOINCREMENT);
        CREATE TABLE empty (a);
        CREATE INDEX i ON people (name); CREATE UNIQUE INDEX u ON people (id, name);
        CREATE VIEW v AS SELECT * FROM people;
        CREATE TRIGGER t AFTER INSERT ON g BEGIN DELETE FROM empty; END;
        CREATE VIRTUAL TABLE f USING fts5(x);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO people SELECT i * 3, 'Person ' || i, zeroblob(i % 90) FROM n;
        INSERT INTO people VALUES
            (-5, char(0) || 'é' || char(128512), 1e300), (9223372036854775807, CAST(x'ff' AS TEXT), -9e999),
            (2000, 'long', randomblob(30000)), (2001, hex(zeroblob(9000)), -9223372036854775808), (2002, '', x''),
            (2003, NULL, 128), (2004, 'n', -129), (2005, 'n', 8388607), (2006, 'n', -2147483649),
            (2007, 'n', 140737488355328);
        INSERT INTO k SELECT name, id, bio FROM people WHERE name IS NOT NULL AND bio IS NOT NULL;
        INSERT INTO k VALUES ('over', 1, hex(randomblob(5000)));
        INSERT INTO g (a, b, c) SELECT id, id, name FROM people WHERE id < 90;
        ALTER TABLE g ADD COLUMN d DEFAULT 'later'; INSERT INTO g (a, d) VALUES (1, 'now');
        INSERT INTO descending VALUES (7, 'seven'), (3, 'three');
        INSERT INTO counted VALUES (5), (9); DELETE FROM counted WHERE a = 9;
        INSERT INTO f VALUES ('the quick fox'), ('the slow ox');
        PRAGMA user_version = -7; PRAGMA application_id = 99;
        """

    @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"], ["delete", "wal"])
    func aSoundStoreComesBackWhole(encoding: String, journalMode: String) throws {
        try sandbox.removeAll(but: ["key"])
        let start = "PRAGMA encoding = '\(encoding)'; PRAGMA auto_vacuum = FULL; CREATE TABLE first (x);"
        #expect(try sandbox.run(["sqlite3", "plain", start]).status == 0)
        try sandbox.succeed("encrypt", "plain", "db", "--key-file", "key")
        try exec("PRAGMA journal_mode = \(journalMode)")
        var sql = RecoverTests.everything
        // In UTF-16 this is no text of one character.
        if encoding != "UTF-8" {
            sql = sql.replacing("x'ff'", with: "x'41d8'").replacing("char(0)", with: "char(65279)")
        }
        try exec(sql)
        let outcome = try recover(0)
        #expect(!outcome.output.contains("lost_and_found"), "\(outcome.output)")
        #expect(
            outcome.lines.contains("people: 410 rows") && outcome.lines.contains("counted: 1 row"),
            "\(outcome.output)"
        )
        let difference = try sandbox.sealdb("diff", "db", "saved", "--key-file", "key")
        #expect(difference.status == 0, "\(difference.output)\(difference.error)")
        #expect(try rows("SELECT count(*) FROM f WHERE f MATCH 'quick'", "saved") == ["1"])
        #expect(try rows("PRAGMA encoding", "saved") == [encoding])
    }

    /// Where no name of the row id is free, the rows come back without it.
    @Test func tablesThatHideTheirRowIDs() throws {
        try exec("CREATE TABLE t (rowid, _rowid_, oid); INSERT INTO t VALUES (1, 2, 3), (4, 5, 6);")
        try recover(0)
        #expect(try rows("SELECT * FROM t", "saved") == ["1,2,3", "4,5,6"])
    }

    /// Whatever page is damaged, nothing else is missing, and nothing is invented.
    @Test func eachPageDamagedAlone() throws {
        try exec(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a, b);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
            INSERT INTO t SELECT i, 'Person ' || i, hex(randomblob(CASE i % 60 WHEN 0 THEN 4000 ELSE 100 END)) FROM n;
            """
        )
        let sql = "SELECT id || ' ' || a || ' ' || b FROM t"
        let before = Set(try rows(sql, "db"))
        #expect(before.count == 300)
        let sound = try sandbox.contents("db")
        let pageCount = sound.count / 4096
        for page in 1...pageCount {
            try sandbox.write("db", sound)
            try damage(page)
            try recover(2)
            let tables = try sandbox.succeed("tables", "saved", "--key-file", "key").lines
            var found: [String] = []
            if tables.contains("t") { found += try rows(sql, "saved") }
            if tables.contains("lost_and_found") {
                found += try rows("SELECT id || ' ' || c1 || ' ' || c2 FROM lost_and_found WHERE nfield = 3", "saved")
            }
            #expect(Set(found).count == found.count && Set(found).isSubset(of: before), "page \(page)")
            // A page holds at most 18 of these rows; page 1, the root, and a page of a long row none or one.
            #expect(before.count - found.count <= 18, "page \(page): \(found.count)")
            if page == 1 { #expect(found.count == before.count) }
            try sandbox.removeAll(but: ["db", "key"])
        }
    }

    @Test func severalDamagedPagesAreReported() throws {
        try exec(RecoverTests.everything)
        try damage(1)
        try damage(9)
        let outcome = try recover(2, "--json")
        let report = try JSONDecoder().decode(StoreRecovery.Report.self, from: outcome.outputData)
        #expect(report.damagedPages == [1, 9])
        #expect(!report.isComplete && report.lostAndFoundCount > 400)
        #expect(report.problems.contains { $0.contains("The schema is damaged") })
        #expect(outcome.error.contains("saved has what could be read"))
    }

    /// A schema of several pages whose root is damaged: its leaves are found.
    @Test func theSchemaIsPutTogether() throws {
        try exec((0..<150).map { "CREATE TABLE table_with_a_long_name_\($0) (a_column, b);" }.joined())
        try exec("INSERT INTO table_with_a_long_name_149 VALUES (1, 2)")
        try damage(1)
        let outcome = try recover(2)
        #expect(outcome.lines.contains("table_with_a_long_name_149: 1 row"), "\(outcome.output)")
        #expect(try rows("SELECT * FROM table_with_a_long_name_149", "saved") == ["1,2"])
    }

    @Test func rowsThatDoNotFitAreKept() throws {
        try exec(
            """
            CREATE TABLE t (a INTEGER PRIMARY KEY, b NOT NULL DEFAULT 1, c);
            INSERT INTO t VALUES (1, 2, 3), (2, 3, 4);
            CREATE TABLE c (x CHECK (x > 0)); PRAGMA ignore_check_constraints = ON; INSERT INTO c VALUES (-1);
            CREATE TABLE lost_and_found (a); INSERT INTO lost_and_found VALUES (7);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a INTEGER PRIMARY KEY, b)' WHERE name = 't';
            """
        )
        let outcome = try recover(2)
        #expect(outcome.output.contains("2 rows of t do not fit the table"), "\(outcome.output)")
        #expect(outcome.lines.contains("lost_and_found: 2 rows"), "\(outcome.output)")
        #expect(try rows("SELECT id, nfield, c0, c1, c2 FROM lost_and_found_0", "saved") == ["1,3,,2,3", "2,3,,3,4"])
        // Rows that were older than a CHECK constraint stay in their table.
        #expect(try rows("SELECT x FROM c", "saved") == ["-1"])
    }

    @Test func deletedRowsDoNotComeBack() throws {
        try exec(RecoverTests.everything)
        try exec("PRAGMA secure_delete = OFF; DELETE FROM people WHERE id < 900; DROP TABLE k;")
        try recover(0)
        #expect(try sandbox.sealdb("diff", "db", "saved", "--key-file", "key").status == 0)
    }

    @Test func whatIsOnlyInTheLogOrToBeRolledBack() throws {
        try exec(RecoverTests.everything)
        try exec("PRAGMA journal_mode = WAL")
        let other = try sandbox.connection()
        try other.executeUpdate("UPDATE people SET name = 'in the log' WHERE id = 3", values: nil)
        // Who has the store open might write meanwhile.
        try recover(75)
        #expect(!sandbox.exists("saved"))
        for name in ["db", "db-wal"] { try sandbox.write("copy" + name.dropFirst(2), try sandbox.contents(name)) }
        other.close()
        try sandbox.succeed("recover", "copy", "saved", "--key-file", "key")
        #expect(try rows("SELECT name FROM people WHERE id = 3", "saved") == ["in the log"])
    }

    @Test func recoverRefusals() throws {
        try exec(RecoverTests.everything)
        try sandbox.makeKey("other")
        try sandbox.fail(77, "recover", "db", "saved", "--key-file", "other")
        try sandbox.fail(66, "recover", "absent", "saved", "--key-file", "key")
        try sandbox.fail(73, "recover", "db", "db", "--key-file", "key")
        try sandbox.fail(64, "recover", "db", "saved")
        try sandbox.write("text", "not a database")
        #expect(try sandbox.sealdb("recover", "text", "saved", "--key-file", "key").status != 0)
        #expect(try sandbox.names() == ["db", "key", "other", "text"])
        // Everything under another key.
        let before = try sandbox.contents("db")
        try sandbox.succeed("recover", "db", "saved", "--key-file", "key", "--new-key-file", "other")
        try sandbox.succeed("verify", "saved", "--key-file", "other", "--deep")
        try sandbox.fail(77, "verify", "saved", "--key-file", "key")
        #expect(try sandbox.contents("db") == before)
    }

    /// Nor is a file of that name made.
    @Test func notIntoAPipe() throws {
        let outcome = try sandbox.fail(64, "recover", "db", "-", "--key-file", "key")
        #expect(outcome.error.contains("cannot go to standard output"), "\(outcome.error)")
        #expect(try sandbox.names() == ["db", "key"])
    }
}
