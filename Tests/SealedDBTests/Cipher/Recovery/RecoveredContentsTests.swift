import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// What a recovery makes of odd tables, rows without a table, and pages that are not in use.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RecoveredContentsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func make(_ script: String, settings: CipherSettings = .init()) throws {
        var configuration = Configuration(key: try .testing(1))
        (configuration.cipherSettings, configuration.journalMode) = (settings, .delete)
        configuration.isDefensive = false
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.execute(script: "\(raw: script)")
        database.close()
    }

    private func recover(_ settings: CipherSettings = .init()) throws -> StoreRecovery.Report {
        try StoreRecovery(
            path: directory.file("db"),
            key: .testing(1),
            cipherSettings: settings,
            to: directory.file("new")
        ).run()
    }

    private func saved(_ sql: String) throws -> [[SQLValue]] {
        let database = try Database.testing(directory.file("new"))
        defer { database.close() }
        return try database.rows(sql)
    }

    private static let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"

    // MARK: Tables

    @Test(arguments: [0, 1, 2]) func whetherFreePagesAreGivenBack(mode: Int) throws {
        // The first page is there already, so that only VACUUM changes it.
        try make("PRAGMA auto_vacuum = \(mode); VACUUM; CREATE TABLE t (a); INSERT INTO t VALUES (1);")
        #expect(try recover().isComplete)
        #expect(try saved("PRAGMA auto_vacuum") == [[.integer(Int64(mode))]])
    }

    /// Any value stays as it is in a column of any type, if the table is a strict one.
    @Test func valuesOfAnyType() throws {
        try make("CREATE TABLE t (a ANY, b TEXT) STRICT; INSERT INTO t VALUES ('12', 'x'), (12, 'y'), (1.0, 'z');")
        let report = try recover()
        #expect(report.isComplete, "\(report)")
        #expect(try saved("SELECT a, b FROM t ORDER BY b") == [["12", "x"], [12, "y"], [1.0, "z"]])
    }

    /// A text of UTF-16 with half a unit at its end.
    @Test func halfAUnit() {
        #expect(SalvagedEncoding.utf16LittleEndian.units([0x41, 0, 0x42]) == [0x41])
        #expect(SalvagedEncoding.utf16BigEndian.units([0, 0x41]) == [0x41])
        #expect(SalvagedEncoding.utf16BigEndian.units([]) == [])
    }

    // MARK: Rows without a table

    /// The names of SQLite do not depend on the case, and a store that was recovered before has such tables.
    @Test func tablesOfTheSameNames() throws {
        try make(
            """
            CREATE TABLE LOST_AND_FOUND (a); INSERT INTO LOST_AND_FOUND VALUES (1);
            CREATE TABLE lost_and_found_0 (a); INSERT INTO lost_and_found_0 VALUES (2);
            CREATE TABLE t (a); INSERT INTO t VALUES (3);
            PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 't';
            """
        )
        #expect(try recover().lostAndFoundCount == 1)
        #expect(try saved("SELECT c0 FROM lost_and_found_1") == [[3]])
        #expect(try saved("SELECT a FROM lost_and_found UNION ALL SELECT a FROM lost_and_found_0") == [[1], [2]])
    }

    /// What is known of one row is not told of the next: which table it was of, or its row id.
    @Test func whatIsKnownOfEachRow() throws {
        try make(
            """
            CREATE TABLE misfit (a, b); CREATE TABLE rows (a, b); CREATE TABLE keys (k PRIMARY KEY, v) WITHOUT ROWID;
            INSERT INTO misfit VALUES (1, 'one'); INSERT INTO rows (rowid, a, b) VALUES (70, 2, 'two');
            INSERT INTO keys VALUES (3, 'three');
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE misfit (a)' WHERE name = 'misfit';
            UPDATE sqlite_schema SET type = 'tabel' WHERE name IN ('rows', 'keys');
            """
        )
        #expect(try recover().lostAndFoundCount == 3)
        #expect(
            try saved("SELECT c1, rootpgno IS NULL, id FROM lost_and_found ORDER BY c0")
                == [["one", 0, 1], ["two", 1, 70], ["three", 1, .null]]
        )
    }

    /// The root of a table that cannot be made tells what its other pages have to be.
    @Test func aPageOfAnIndexInATree() throws {
        try make(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a);
            \(RecoveredContentsTests.numbers) INSERT INTO t SELECT i, zeroblob(900) FROM n;
            CREATE TABLE u (k PRIMARY KEY) WITHOUT ROWID; INSERT INTO u VALUES ('of an index');
            """
        )
        let database = try Database.testing(directory.file("db"))
        let roots = try database.integers("SELECT rootpage FROM sqlite_schema ORDER BY name")
        database.close()
        try make(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE t AS SELECT 1' WHERE name = 't';
            """
        )
        try directory.forge("db", page: roots[0]) { page in
            let first = Int(page[12]) << 8 | Int(page[13])
            page.replaceSubrange(first..<(first + 4), with: [0, 0, UInt8(roots[1] >> 8), UInt8(roots[1] & 255)])
        }
        let report = try recover()
        #expect(report.tables.map(\.rowCount) == [1], "\(report)")
        let told = report.problems.first { $0.hasPrefix("Of t, which could not be made") }
        #expect(told?.hasSuffix("is missing: \(roots[1]).") == true, "\(report)")
        #expect(try saved("SELECT count(*) FROM lost_and_found WHERE rootpgno IS NOT NULL AND id IS NULL") == [[0]])
    }

    // MARK: Pages

    /// The list of free pages goes on over other pages. What they held was deleted, and does not come back.
    @Test func aLongListOfFreePages() throws {
        let settings = CipherSettings(pageSize: 1024)
        try make(
            """
            PRAGMA secure_delete = OFF; CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE TABLE gone (a);
            \(RecoveredContentsTests.numbers) INSERT INTO gone SELECT hex(randomblob(350)) FROM n; DROP TABLE gone;
            """,
            settings: settings
        )
        let free = try directory.contents(ofPage: 1, of: "db", settings: settings)[36..<40]
        try #require(BigEndian.number(free) > (944 / 4 - 2) + 30)
        let report = try recover(settings)
        #expect(report.isComplete && report.tables.map(\.rowCount) == [1], "\(report)")
    }

    /// A page of the list names more pages than it has room for.
    @Test func aListThatClaimsTooMuch() throws {
        try make(
            """
            CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE TABLE gone (a);
            INSERT INTO gone SELECT 2; DROP TABLE gone;
            """
        )
        let header = try directory.contents(ofPage: 1, of: "db")
        let trunk = Int(BigEndian.number(header[32..<36]))
        try directory.forge("db", page: trunk) { $0.replaceSubrange(4..<8, with: [0x7f, 0xff, 0xff, 0xff]) }
        #expect(try recover().tables.map(\.rowCount) == [1])
    }

    /// Programs that do not know the number of pages leave it as it was, and change only one of two counters.
    @Test func aNumberOfPagesThatIsOld() throws {
        try make("CREATE TABLE t (a); INSERT INTO t VALUES (1);")
        try directory.forge("db", page: 1) { page in
            page.replaceSubrange(28..<32, with: [0, 0, 0, 1])
            page[27] &+= 1
        }
        let report = try recover()
        #expect(report.isComplete && report.tables.map(\.rowCount) == [1], "\(report)")
    }

    /// What stands behind the end of the database is no page of it, and may be anything.
    @Test func bytesBehindTheEnd() throws {
        try make("CREATE TABLE t (a); INSERT INTO t VALUES (1);")
        let file = try directory.bytes("db")
        var generator = SeededGenerator(seed: 3)
        let noise = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &generator) }
        try directory.write("db", file + noise)
        let report = try recover()
        #expect(report.isComplete && report.damagedPages == [], "\(report)")
    }

    /// Nobody knows what stood where the disk cannot read, also if the page is free now.
    @Test func aFreePageThatCannotBeRead() throws {
        try make(
            """
            CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE TABLE gone (a);
            \(RecoveredContentsTests.numbers) INSERT INTO gone SELECT hex(randomblob(350)) FROM n; DROP TABLE gone;
            """
        )
        let header = try directory.contents(ofPage: 1, of: "db")
        let trunk = Int(BigEndian.number(header[32..<36]))
        let leaf = BigEndian.number(try directory.contents(ofPage: trunk, of: "db")[8..<12])
        let place = failing_calls_spoil(directory.file("db"), (leaf - 1) * 4096 + 100)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        let report = try recover()
        #expect(report.damagedPages == [leaf] && report.tables.map(\.rowCount) == [1], "\(report)")
    }
}
