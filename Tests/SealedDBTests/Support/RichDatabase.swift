import Foundation
import SealedDB
import Testing

/// A database with one of everything that a copy could lose.
enum RichDatabase {
    static func fill(_ database: Database, encoding: String = "UTF-8", autoVacuum: Int = 0) throws {
        let succeeded = database.executeStatements(
            """
            PRAGMA encoding = '\(raw: encoding)';
            PRAGMA auto_vacuum = \(raw: autoVacuum);
            CREATE TABLE loose (a);
            INSERT INTO loose (rowid, a) VALUES (5, 'secret row five'), (9, 'secret row nine'), (-3, NULL),
                (9223372036854775807, x'');
            CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, a);
            INSERT INTO counted (a) VALUES (1), (2), (3);
            DELETE FROM counted WHERE id > 1;
            UPDATE sqlite_sequence SET seq = 700 WHERE name = 'counted';
            INSERT INTO sqlite_sequence VALUES ('gone', 12);
            CREATE TABLE zz_lowered (id INTEGER PRIMARY KEY AUTOINCREMENT, a);
            CREATE TABLE zz_forgotten (id INTEGER PRIMARY KEY AUTOINCREMENT, a);
            INSERT INTO zz_lowered (a) VALUES (1), (2), (3);
            INSERT INTO zz_forgotten (a) VALUES (1), (2), (3);
            UPDATE sqlite_sequence SET seq = 1 WHERE name = 'zz_lowered';
            DELETE FROM sqlite_sequence WHERE name = 'zz_forgotten';
            CREATE TABLE keyed (k TEXT COLLATE NOCASE, n INTEGER, v, PRIMARY KEY (k DESC, n)) WITHOUT ROWID;
            INSERT INTO keyed VALUES ('b', 2, 'x'), ('A', 1, 'y'), ('c', 1, NULL), ('C', 2, 'z');
            CREATE TABLE computed (a INTEGER, b AS (a * 2), c TEXT GENERATED ALWAYS AS ('c' || a) STORED, d DEFAULT 7);
            INSERT INTO computed (a) VALUES (1), (2);
            CREATE INDEX computed_b ON computed (b);
            CREATE TABLE "odd ""name""; --" ("rowid", "col umn", oid);
            INSERT INTO "odd ""name""; --" VALUES (1, 2, 3), (4, 5, 6);
            CREATE TABLE exact (i INTEGER, r REAL, t TEXT, b BLOB, a ANY) STRICT;
            INSERT INTO exact VALUES (1, 1.5, 'one', x'00ff', 'any'), (-9223372036854775808, 9e999, '', x'', 12);
            CREATE TABLE affine (i INTEGER, r REAL, n NUMERIC, t TEXT);
            INSERT INTO affine VALUES ('12', 3, '1.0', 12), ('not a number', 'x', x'01', x'02');
            CREATE TABLE replaced (a UNIQUE ON CONFLICT REPLACE, b NOT NULL ON CONFLICT IGNORE CHECK (b > 0));
            INSERT INTO replaced VALUES (1, 1), (2, 2);
            PRAGMA ignore_check_constraints = ON;
            INSERT INTO replaced VALUES (3, -3);
            PRAGMA ignore_check_constraints = OFF;
            CREATE TABLE parent (id INTEGER PRIMARY KEY);
            PRAGMA foreign_keys = OFF;
            CREATE TABLE child (p REFERENCES parent (id));
            INSERT INTO child VALUES (4711);
            CREATE TABLE texts (t);
            INSERT INTO texts VALUES ('nul' || char(0) || 'inside'), (CAST(x'80ff' AS TEXT)), ('größer 🗝'),
                (hex(zeroblob(9000)));
            CREATE UNIQUE INDEX texts_t ON texts (t) WHERE length(t) < 100;
            CREATE INDEX texts_length ON texts (length(t) DESC);
            CREATE VIEW v AS SELECT a FROM loose;
            CREATE VIEW broken AS SELECT a FROM no_such_table;
            CREATE TABLE log (what);
            CREATE TRIGGER tr AFTER INSERT ON loose BEGIN INSERT INTO log VALUES ('inserted ' || new.a); END;
            CREATE TRIGGER instead INSTEAD OF INSERT ON v BEGIN SELECT 1; END;
            CREATE VIRTUAL TABLE words USING fts5(w, prefix = '2');
            INSERT INTO words (rowid, w) VALUES (3, 'needle in hay'), (8, 'hay alone');
            DELETE FROM words WHERE rowid = 8;
            CREATE VIRTUAL TABLE old_words USING fts4(w);
            INSERT INTO old_words VALUES ('needle again');
            CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
            INSERT INTO boxes VALUES (1, 0, 10), (2, 5, 6);
            ALTER TABLE parent ADD COLUMN late DEFAULT 'late';
            INSERT INTO parent (id) VALUES (1);
            ANALYZE;
            PRAGMA user_version = 12;
            PRAGMA application_id = 34;
            """
        )
        #expect(succeeded, "\(database.lastErrorMessage())")
    }

    /// All there is to see, read without the code under test.
    static func contents(of database: Database) throws -> [String] {
        var result = try strings(
            database,
            "SELECT type || '|' || name || '|' || tbl_name || '|' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1"
        )
        for pragma in ["user_version", "application_id", "encoding", "auto_vacuum"] {
            result += try strings(database, "SELECT '\(pragma) ' || \(pragma) FROM pragma_\(pragma)")
        }
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY 1"
        for table in try strings(database, tables) {
            let name = "\"" + table.replacingOccurrences(of: "\"", with: "\"\"") + "\""
            let columns = try strings(database, "SELECT name FROM pragma_table_xinfo('\(table)')")
            let values = columns.map { "typeof(\"\($0)\") || '=' || hex(\"\($0)\")" }.joined(separator: " || '|' || ")
            let hasRowID = database.executeQuery("SELECT _rowid_ FROM \(raw: name)", withArgumentsIn: []) != nil
            let rowID = hasRowID ? "_rowid_ || '|' || " : ""
            result += try strings(database, "SELECT '\(table)|' || \(rowID)\(values) FROM \(name)").sorted()
        }
        return result
    }

    private static func strings(_ database: Database, _ sql: String) throws -> [String] {
        let rows = try database.executeQuery(sql, values: nil)
        var result: [String] = []
        while try rows.nextWithError() { result.append(rows.string(forColumnIndex: 0) ?? "NULL") }
        return result
    }

    /// That what was copied also works.
    static func use(_ database: Database) throws {
        #expect(try database.integers("SELECT count(*) FROM words WHERE words MATCH 'needle'") == [1])
        #expect(try database.integers("SELECT count(*) FROM words WHERE words MATCH 'hay'") == [1])
        #expect(try database.integers("SELECT count(*) FROM old_words WHERE w MATCH 'again'") == [1])
        #expect(try database.integers("SELECT count(*) FROM boxes WHERE x0 > 1") == [1])
        #expect(try database.integers("SELECT b FROM computed WHERE b = 4") == [4])
        try database.executeUpdate("INSERT INTO loose VALUES ('after')", values: nil)
        #expect(try database.integers("SELECT count(*) FROM log") == [1])
        try database.executeUpdate("INSERT INTO counted (a) VALUES (1)", values: nil)
        #expect(try database.integers("SELECT max(id) FROM counted") == [701])
    }
}
