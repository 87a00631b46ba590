import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// What SQLite's own check tells of odd schemas, and what ends it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StructureFindingsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func make(_ script: String) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.execute(script: script)
        try #require(database.close())
    }

    private func withCheck<T>(_ body: (StructureCheck) throws -> T) throws -> T {
        let connection = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { connection.close() }
        return try body(StructureCheck(connection: connection))
    }

    private static let unknown = """
        CREATE TABLE c (a UNIQUE); INSERT INTO c VALUES ('x'); PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = 'CREATE TABLE c (a COLLATE strange UNIQUE)' WHERE name = 'c';
        """

    /// A page that two tables have is found beside what only a program knows.
    @Test(arguments: [false, true]) func problemsOfPages(isDamaged: Bool) throws {
        let damage = """
            UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 't') WHERE name = 'u';
            """
        try make("CREATE TABLE t (a); CREATE TABLE u (a);" + StructureFindingsTests.unknown + (isDamaged ? damage : ""))
        let problems = try withCheck { try $0.pageProblems { true } }
        #expect(problems.isEmpty != isDamaged, "\(problems)")
        let problem = try withCheck { try $0.pageProblem {} }
        #expect((problem == nil) != isDamaged, "\(problem ?? "")")
    }

    /// A structure that cannot be followed any further does not hide what was found in it before.
    @Test(arguments: [StructureCheck.Depth.quick, .deep], [false, true])
    func aStructureThatEndsTheCheck(depth: StructureCheck.Depth, isUnknown: Bool) throws {
        try make(
            """
            CREATE TABLE t (a UNIQUE); CREATE TABLE u (a); INSERT INTO t VALUES (1); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name LIKE '%autoindex_t%')
            WHERE name = 'u';
            """ + (isUnknown ? StructureFindingsTests.unknown : "")
        )
        let findings = try withCheck { try $0.findings(depth) }
        #expect(findings.problems.contains { $0.hasPrefix("*** in database main ***") }, "\(findings)")
        #expect(findings.problems.contains { $0.hasSuffix("database disk image is malformed") }, "\(findings)")
    }

    /// An expression that fails for a row of one table does not hide what is wrong with others.
    @Test(arguments: [StructureCheck.Depth.quick, .deep]) func anExpressionThatFails(depth: StructureCheck.Depth) throws
    {
        try make(
            """
            CREATE TABLE n (a); INSERT INTO n VALUES (NULL);
            CREATE TABLE g (a, b); INSERT INTO g (a) VALUES (-9223372036854775808); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE g (a, b AS (abs(a)) NOT NULL)' WHERE name = 'g';
            UPDATE sqlite_schema SET sql = 'CREATE TABLE n (a NOT NULL)' WHERE name = 'n';
            """
        )
        let findings = try withCheck { try $0.findings(depth) }
        #expect(findings.problems.contains("g: integer overflow"), "\(findings)")
        #expect(findings.problems.contains("NULL value in n.a"), "\(findings)")
    }

    /// A store whose program has functions of its own is sound; what only these tell is said to be left out.
    @Test(arguments: [false, true]) func aColumnThatOnlyTheProgramGenerates(isDeep: Bool) throws {
        try make(
            """
            CREATE TABLE g (a, b); INSERT INTO g (a) VALUES (5); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE g (a, b AS (own(a)) NOT NULL)' WHERE name = 'g';
            """
        )
        let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: isDeep)
        #expect(report.isSound && report.tablesNotCompared == ["g"], "\(report)")
    }

    /// A table of FTS4 without contents cannot be compared. One whose contents are gone is damaged.
    @Test func fullTextWhoseContentsAreGone() throws {
        try make(
            """
            CREATE VIRTUAL TABLE e USING fts4(body, content=""); INSERT INTO e (docid, body) VALUES (1, 'word');
            CREATE VIRTUAL TABLE f USING fts4(body); INSERT INTO f VALUES ('word');
            """
        )
        let sound = try withCheck { try $0.findings(.deep) }
        #expect(sound == StructureCheck.Findings(problems: [], tablesNotCompared: ["e"]))
        let database = try Database.testing(directory.file("db"))
        try database.execute(script: "DROP TABLE f_content")
        try #require(database.close())
        let findings = try withCheck { try $0.findings(.deep) }
        #expect(findings.problems.count == 1 && findings.tablesNotCompared == ["e"], "\(findings)")
    }

    /// Its module is there, whatever another table lacks.
    @Test func fullTextBesideWhatOnlyTheProgramKnows() throws {
        let fullText = "CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('word');"
        try make(fullText + StructureFindingsTests.unknown)
        let findings = try withCheck { try $0.findings(.deep) }
        #expect(findings == StructureCheck.Findings(problems: [], tablesNotCompared: ["c"]))
    }

    @Test func theCheckStops() throws {
        try make(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
            INSERT INTO t SELECT i, hex(randomblob(200)) FROM n;
            """
        )
        let stop = DatabaseError(extendedCode: SQLITE_INTERRUPT, reason: .interrupted, message: "Enough.")
        let error = #expect(throws: DatabaseError.self) {
            try withCheck { check in try check.pageProblem { () throws(DatabaseError) in throw stop } }
        }
        #expect(error == stop)
    }

    /// What the disk does not read is no problem of the structure.
    @Test(arguments: [false, true]) func aPlaceThatCannotBeRead(isUnknown: Bool) throws {
        try make(
            "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(100000));"
                + (isUnknown ? StructureFindingsTests.unknown : "")
        )
        let place = failing_calls_spoil(directory.file("db"), 9 * 4096)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        let error = #expect(throws: DatabaseError.self) { try withCheck { try $0.pageProblem {} } }
        #expect(error?.code == SQLITE_IOERR, "\(String(describing: error))")
        let deep = #expect(throws: DatabaseError.self) { try withCheck { try $0.findings(.deep) } }
        #expect(deep?.code == SQLITE_IOERR, "\(String(describing: deep))")
        // A report names the page, and what SQLite says.
        let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true)
        #expect(report.damagedPages.contains(10) && !report.isSound && !report.structureProblems.isEmpty, "\(report)")
    }
}
