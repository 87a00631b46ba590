import Foundation
import SealedDB
import Testing

/// A constraint that is violated has a reason, and is named as far as SQLite names it.
@Suite(.hangLimit)
struct ConstraintTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.execute(
            script: """
                PRAGMA foreign_keys = ON;
                CREATE TABLE t (
                    id INTEGER PRIMARY KEY, a NOT NULL, b UNIQUE, c REFERENCES t (id),
                    d CHECK (d > 0), e CONSTRAINT positive CHECK (e > 0), f,
                    UNIQUE (a, c)
                );
                CREATE UNIQUE INDEX folded ON t (lower(f));
                CREATE TABLE keyed (x, y, PRIMARY KEY (x, y)) WITHOUT ROWID;
                CREATE TABLE `odd.name` (`a.b` UNIQUE, `c, d` UNIQUE);
                INSERT INTO t VALUES (1, 'a', 'b', 1, 1, 1, 'f');
                INSERT INTO keyed VALUES (1, 2);
                INSERT INTO `odd.name` VALUES (1, 1);
                """
        )
    }

    private func failure(_ sql: SQL) throws -> DatabaseError {
        try #require(#expect(throws: DatabaseError.self) { try database.executeUpdate(sql) })
    }

    @Test func theReasonAndWhatIsNamed() throws {
        let cases: [(SQL, DatabaseError.Reason, ResultCode, String?, [String], String?)] = [
            ("INSERT INTO t (a) VALUES (NULL)", .notNullConstraint, .SQLITE_CONSTRAINT_NOTNULL, "t", ["a"], nil),
            ("INSERT INTO t (a, b) VALUES (1, 'b')", .uniqueConstraint, .SQLITE_CONSTRAINT_UNIQUE, "t", ["b"], nil),
            (
                "INSERT INTO t (a, c) VALUES (\("a"), \(1))", .uniqueConstraint, .SQLITE_CONSTRAINT_UNIQUE, "t",
                ["a", "c"], nil
            ),
            (
                "INSERT INTO t (a, f) VALUES (1, 'F')", .uniqueConstraint, .SQLITE_CONSTRAINT_UNIQUE, nil, [],
                "folded"
            ),
            (
                "INSERT INTO t (id, a) VALUES (1, 1)", .primaryKeyConstraint, .SQLITE_CONSTRAINT_PRIMARYKEY, "t",
                ["id"], nil
            ),
            (
                "INSERT INTO keyed VALUES (1, 2)", .primaryKeyConstraint, .SQLITE_CONSTRAINT_PRIMARYKEY, "keyed",
                ["x", "y"], nil
            ),
            ("INSERT INTO t (a, d) VALUES (1, -1)", .checkConstraint, .SQLITE_CONSTRAINT_CHECK, nil, [], "d > 0"),
            ("INSERT INTO t (a, e) VALUES (1, -1)", .checkConstraint, .SQLITE_CONSTRAINT_CHECK, nil, [], "positive"),
            // Which of the dots is the one between table and column cannot be told.
            (
                "INSERT INTO `odd.name` (`a.b`) VALUES (1)", .uniqueConstraint, .SQLITE_CONSTRAINT_UNIQUE, nil, [],
                nil
            ),
            (
                "INSERT INTO `odd.name` (`c, d`) VALUES (1)", .uniqueConstraint, .SQLITE_CONSTRAINT_UNIQUE, nil, [],
                nil
            ),
        ]
        for (sql, reason, code, table, columns, name) in cases {
            let error = try failure(sql)
            #expect(error.reason == reason, "\(sql)")
            #expect(error.resultCode == code, "\(sql)")
            #expect(error.resultCode?.primary == .SQLITE_CONSTRAINT)
            let constraint = try #require(error.constraint, "\(sql)")
            #expect(constraint.table == table, "\(sql)")
            #expect(constraint.columns == columns, "\(sql)")
            #expect(constraint.name == name, "\(sql)")
        }
    }

    @Test func foreignKeysAreNotNamed() throws {
        let error = try failure("INSERT INTO t (a, c) VALUES (1, 9)")
        #expect(error.reason == .foreignKeyConstraint)
        #expect(error.constraint == nil)
        #expect(error.description.contains("(foreign key constraint)"))
    }

    @Test func otherFailuresAreNoConstraint() throws {
        let error = try failure("INSERT INTO nowhere VALUES ('UNIQUE constraint failed: t.a')")
        #expect(error.resultCode == .SQLITE_ERROR)
        #expect(error.reason == .sqlite)
        #expect(error.constraint == nil)
    }

    /// A context in front of SQLite's message does not hide the names.
    @Test func aCommitThatFails() throws {
        try database.execute(script: "CREATE TABLE later (a REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)")
        let error = try #require(
            #expect(throws: DatabaseError.self) {
                try database.inTransaction { try database.executeUpdate("INSERT INTO later VALUES (9)") }
            }
        )
        #expect(error.reason == .foreignKeyConstraint)
    }
}

/// The codes are those of SQLite's header.
struct ResultCodeTests {
    @Test func eachCodeHasItsNumber() throws {
        let header = try String(contentsOfFile: "/usr/include/sqlite3.h", encoding: .utf8)
        let codes = (0...Int32(UInt16.max)).compactMap(ResultCode.init(rawValue:))
        let numbers = Dictionary(uniqueKeysWithValues: codes.map { ("\($0)", $0.rawValue) })
        var compared = 0
        for line in header.matches(of: /#define (SQLITE_[A-Z_]+) +([0-9]+) +\/\*/) {
            guard let number = numbers[String(line.output.1)] else { continue }
            #expect(Int32(line.output.2) == number, "\(line.output.1)")
            compared += 1
        }
        for line in header.matches(of: /#define (SQLITE_[A-Z_]+) +\((SQLITE_[A-Z]+) *\| *\(([0-9]+)<<8\)\)/) {
            let (name, base) = (String(line.output.1), numbers[String(line.output.2)])
            guard let number = numbers[name], let base, let part = Int32(line.output.3) else { continue }
            #expect(base | part << 8 == number, "\(name)")
            compared += 1
        }
        // The engine's header may be older or newer than the table.
        #expect(codes.count == 108)
        #expect(compared > 95)
    }
}
