import Foundation
import Testing

@testable import SealedDB

/// Recovery of stores whose schema is odd or damaged.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct ForgedSchemaTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func make(_ script: String) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        defer { database.close() }
        try database.execute(script: script)
    }

    private func root(_ name: String) throws -> Int {
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        return try database.integers("SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'")[0]
    }

    private func damage(_ page: Int) throws {
        try directory.overwrite("db", at: (page - 1) * 4096 + 200, with: [1, 2, 3, 4])
    }

    private func recover() throws -> StoreRecovery.Report {
        try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
    }

    private func saved(_ sql: String) throws -> [Int] {
        let database = try Database.testing(directory.file("new"))
        defer { database.close() }
        return try database.integers(sql)
    }

    // MARK: Tables

    /// The row id is that of the column that is the key, whatever other columns and indexes there are.
    @Test func columnsThatAreTheRowID() throws {
        try make(
            """
            CREATE TABLE unique_beside (id INTEGER PRIMARY KEY, b UNIQUE);
            INSERT INTO unique_beside VALUES (50, 1), (90, 2);
            CREATE TABLE number_before (a INTEGER, id INTEGER PRIMARY KEY);
            INSERT INTO number_before VALUES (7, 50), (8, 90);
            CREATE TABLE two_indexes (a UNIQUE, k TEXT PRIMARY KEY, c) WITHOUT ROWID;
            INSERT INTO two_indexes VALUES (1, 'one', 11), (2, 'two', 22);
            """
        )
        let report = try recover()
        #expect(report.isComplete, "\(report)")
        #expect(try saved("SELECT id FROM unique_beside ORDER BY b") == [50, 90])
        #expect(try saved("SELECT a FROM number_before ORDER BY id") == [7, 8])
        #expect(try saved("SELECT id FROM number_before ORDER BY id") == [50, 90])
        #expect(try saved("SELECT a FROM two_indexes WHERE k = 'two' AND c = 22") == [2])
    }

    @Test func aGeneratedColumnOfATableWithoutRowIDs() throws {
        try make(
            """
            CREATE TABLE t (k TEXT PRIMARY KEY, g AS (k || 'x') STORED, v AS (k || 'y'), c) WITHOUT ROWID;
            INSERT INTO t (k, c) VALUES ('one', 1), ('two', 2);
            """
        )
        let report = try recover()
        #expect(report.isComplete && report.tables.map(\.rowCount) == [2], "\(report)")
        #expect(try saved("SELECT c FROM t WHERE g = 'twox' AND v = 'twoy'") == [2])
    }

    /// Rows that were written when the table had one column, whose place one has now that is computed. There is no name
    /// for the row id, nor another value.
    @Test func aRowWithoutAnythingThatCanBeSet() throws {
        try make(
            """
            CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE t (rowid AS (7) STORED, _rowid_ DEFAULT 8, oid DEFAULT 9)'
            WHERE name = 't';
            """
        )
        let report = try recover()
        #expect(report.tables.map(\.rowCount) == [2] && report.lostAndFoundCount == 0, "\(report)")
        #expect(try saved("SELECT _rowid_ + oid FROM t") == [17, 17])
    }

    // MARK: Schema

    /// A row of the schema that is none: what it led to is saved, and told.
    @Test func aRowOfTheSchemaThatIsNone() throws {
        try make(
            """
            CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); CREATE TABLE u (a); INSERT INTO u VALUES (3);
            PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'tabel' WHERE name = 't';
            """
        )
        let report = try recover()
        #expect(report.problems.contains { $0.hasPrefix("The schema is damaged") }, "\(report)")
        #expect(report.tables.map(\.name) == ["u"] && report.lostAndFoundCount == 2, "\(report)")
    }

    /// The table of numbers that were given remains when the last table that needs it is dropped.
    @Test func theSequenceAlone() throws {
        try make(
            """
            CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE t; CREATE TABLE u (a);
            INSERT INTO sqlite_sequence VALUES ('gone', 12);
            """
        )
        let report = try recover()
        #expect(report.isComplete, "\(report)")
        #expect(try saved("SELECT seq FROM sqlite_sequence WHERE name = 'gone'") == [12])
    }

    /// Its statement would run another one, so its rows have no table.
    @Test func aSequenceThatCannotBeMade() throws {
        try make(
            """
            CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (5); DROP TABLE t;
            CREATE TABLE u (a);
            INSERT INTO u VALUES (3); INSERT INTO sqlite_sequence VALUES ('gone', 12);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE sqlite_sequence AS SELECT 1' WHERE name = 'sqlite_sequence';
            """
        )
        let report = try recover()
        #expect(report.problems.contains { $0.contains("sqlite_sequence could not be made") }, "\(report)")
        #expect(report.tables.map(\.name) == ["u"])
        #expect(try saved("SELECT c1 FROM lost_and_found WHERE c0 = 'gone'") == [12])
    }

    /// Otherwise it is not among the tables.
    @Test func aSequenceThatIsDamaged() throws {
        try make("CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (5);")
        let page = try root("sqlite_sequence")
        try damage(page)
        let report = try recover()
        #expect(report.tables.first { $0.name == "sqlite_sequence" }?.lostPages == [Int64(page)], "\(report)")
        #expect(report.tables.first { $0.name == "t" }?.rowCount == 1)
    }

    /// What was lost of a table that cannot be made is told in a sentence, with the first ten pages.
    @Test(arguments: [1, 10, 11]) func aTableThatCannotBeMade(damaged: Int) throws {
        try make(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO t SELECT i, zeroblob(900) FROM n;
            PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE t AS SELECT 1' WHERE name = 't';
            """
        )
        let contents = try directory.contents(ofPage: 2, of: "db")
        let tree = try #require(TreePage(contents, number: 2, usableSize: 4016))
        let children = tree.cells.compactMap(\.child).prefix(damaged)
        try #require(children.count == damaged)
        for page in children { try damage(Int(page)) }
        let report = try recover()
        let problem = try #require(report.problems.first { $0.hasPrefix("Of t, which could not be made") }, "\(report)")
        let list = children.sorted().prefix(10).map(String.init).joined(separator: ", ")
        #expect(problem.hasSuffix("is missing: \(list)\(damaged > 10 ? " and others" : "")."), "\(problem)")
        #expect(report.problems.contains { $0.hasSuffix("rows of t are in lost_and_found.") }, "\(report)")
    }
}
