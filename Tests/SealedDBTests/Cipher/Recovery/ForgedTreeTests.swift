import Foundation
import Testing

@testable import SealedDB

/// Recovery of stores whose pages are authentic, but whose trees are not those of a database: bugs of programs, memory
/// that fails, or somebody who has the key.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct ForgedTreeTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// - Returns: the first page of table `t`.
    @discardableResult
    private func make(_ script: String, settings: CipherSettings = .init()) throws -> Int {
        var configuration = Configuration(key: try .testing(1))
        (configuration.cipherSettings, configuration.journalMode) = (settings, .delete)
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        defer { database.close() }
        try database.execute(script: script)
        return try database.integers("SELECT rootpage FROM sqlite_schema WHERE name = 't'").first ?? 0
    }

    private func recover(_ settings: CipherSettings = .init()) throws -> StoreRecovery.Report {
        try StoreRecovery(
            path: directory.file("db"),
            key: .testing(1),
            cipherSettings: settings,
            to: directory.file("new")
        ).run()
    }

    private func saved(_ sql: String) throws -> [Int] {
        let database = try Database.testing(directory.file("new"))
        defer { database.close() }
        return try database.integers(sql)
    }

    private static let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"

    /// Rows come once, whoever leads to their page.
    @Test func aPageToWhichTwoCellsLead() throws {
        let root = try make(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a);
            \(ForgedTreeTests.numbers) INSERT INTO t SELECT i, hex(zeroblob(400)) FROM n;
            """
        )
        var lost = 0
        try directory.forge("db", page: root) { page in
            let first = Int(page[12]) << 8 | Int(page[13])
            lost = TreePage(page, number: Int64(root), usableSize: 4016)?.cells.count ?? 0
            page.replaceSubrange(8..<12, with: page[first..<(first + 4)])
        }
        try #require(lost > 3)
        let report = try recover()
        let table = try #require(report.tables.first)
        let child = try #require(table.lostPages.first)
        #expect(table.lostPages.count == 1 && table.brokenRowCount == 0)
        // Nothing leads to the last page any more, so its rows come back without a table.
        #expect(table.rowCount + report.lostAndFoundCount == 60 && report.lostAndFoundCount < 10, "\(report)")
        #expect(try saved("SELECT count(DISTINCT id) FROM lost_and_found") == [report.lostAndFoundCount])
        #expect(try saved("SELECT count(*) FROM lost_and_found WHERE pgno = \(child)") == [0])
    }

    /// A table that begins where an index does has no rows there.
    @Test func aTableThatBeginsWithAnIndex() throws {
        try make(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE INDEX i ON t (a);
            INSERT INTO t VALUES (1, 'one'), (2, 'two'); PRAGMA writable_schema = ON;
            """
        )
        let database = try Database.testing(directory.file("db"))
        let index = try database.integers("SELECT rootpage FROM sqlite_schema WHERE name = 'i'")
        try database.execute(
            script: """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET rootpage = \(raw: String(index[0])) WHERE name = 't';
                """
        )
        database.close()
        let report = try recover()
        #expect(report.tables.map(\.lostPages) == [index.map(Int64.init)] && report.tables.map(\.rowCount) == [0])
        #expect(try saved("SELECT id FROM lost_and_found WHERE nfield = 2 AND id IS NOT NULL ORDER BY 1") == [1, 2])
        #expect(!report.problems.contains { $0.contains("fit") }, "\(report)")
    }

    /// A cell that is none is told, and the others are saved.
    @Test func aCellThatIsNone() throws {
        let root = try make(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');"
        )
        try directory.forge("db", page: root) { $0.replaceSubrange(10..<12, with: [0x0f, 0xff]) }
        let report = try recover()
        #expect(report.tables == [.init(name: "t", rowCount: 2, lostPages: [Int64(root)], brokenRowCount: 0)])
        #expect(try saved("SELECT id FROM t ORDER BY id") == [1, 3] && report.lostAndFoundCount == 0)
    }

    /// Of a page that belongs to nothing, rows are taken only if all of it can be read.
    @Test(arguments: [false, true]) func anOrphanWithACellThatIsNone(isBroken: Bool) throws {
        let root = try make(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');"
        )
        let database = try Database.testing(directory.file("db"))
        try database.execute(script: "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 't';")
        database.close()
        if isBroken { try directory.forge("db", page: root) { $0.replaceSubrange(10..<12, with: [0x0f, 0xff]) } }
        let report = try recover()
        #expect(report.lostAndFoundCount == (isBroken ? 0 : 3) && report.tables == [], "\(report)")
    }

    // MARK: Rows of several pages

    enum Chain: CaseIterable { case ownLeaf, otherRow, loop, nowhere, behindTheEnd }

    /// Two rows, each of which goes on over other pages. The second one is led astray.
    @Test(arguments: Chain.allCases) func aRowThatGoesOnElsewhere(chain: Chain) throws {
        // Of the leaf itself, the row would need no second page.
        let size = chain == .ownLeaf ? 5000 : 10000
        let root = try make(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a);
            INSERT INTO t VALUES (1, zeroblob(\(size))), (2, zeroblob(\(size)));
            """
        )
        let leaf = try #require(
            TreePage(directory.contents(ofPage: root, of: "db"), number: Int64(root), usableSize: 4016)
        )
        let starts = try leaf.cells.map { Int(try #require($0.payload?.overflow)) }
        try #require(starts.count == 2 && leaf.cells[0].payload?.local.count ?? 0 > 900)
        switch chain {
        case .loop, .nowhere, .behindTheEnd:
            let next = chain == .loop ? UInt8(starts[1]) : chain == .nowhere ? 0 : 200
            try directory.forge("db", page: starts[1]) { $0.replaceSubrange(0..<4, with: [0, 0, 0, next]) }
        case .ownLeaf, .otherRow:
            try directory.forge("db", page: root) { page in
                let cell = Int(page[10]) << 8 | Int(page[11])
                // The size of the payload and the row id take four bytes.
                let place = cell + 4 - 1 + (leaf.cells[1].payload?.local.count ?? 0)
                try #require(page[place + 3] == UInt8(starts[1]))
                page[place + 3] = UInt8(chain == .ownLeaf ? root : starts[0])
            }
        }
        let report = try recover()
        #expect(report.tables.map(\.rowCount) == [1] && report.tables.map(\.brokenRowCount) == [1], "\(report)")
        #expect(try saved("SELECT id FROM t") == [1])
        #expect(report.lostAndFoundCount == 0)
    }

    // MARK: Orphans

    /// The rows of a table that the schema does not name any more, of which some go on over a page that is damaged.
    @Test(arguments: [1, 2]) func orphanedRowsThatAreNotWhole(count: Int) throws {
        let root = try make(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a);
            INSERT INTO t VALUES (1, zeroblob(5000)), (2, zeroblob(5000)), (3, 'short');
            """
        )
        let leaf = try #require(
            TreePage(directory.contents(ofPage: root, of: "db"), number: Int64(root), usableSize: 4016)
        )
        for start in leaf.cells.compactMap({ $0.payload?.overflow }).prefix(count) {
            try directory.overwrite("db", at: (Int(start) - 1) * 4096 + 1000, with: [1, 2, 3])
        }
        let database = try Database.testing(directory.file("db"))
        try database.execute(script: "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 't';")
        database.close()
        let report = try recover()
        let text =
            count == 1
            ? "1 row of unknown tables is not whole, and is lost."
            : "2 rows of unknown tables are not whole, and are lost."
        #expect(report.problems == [text] && report.lostAndFoundCount == 3 - count, "\(report)")
    }

    /// Where no row can be read, nothing says that the page has any.
    @Test func anOrphanWithoutAWholeRow() throws {
        let root = try make("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, zeroblob(7000));")
        let leaf = try #require(
            TreePage(directory.contents(ofPage: root, of: "db"), number: Int64(root), usableSize: 4016)
        )
        let start = Int(try #require(leaf.cells.first?.payload?.overflow))
        try directory.overwrite("db", at: (start - 1) * 4096 + 1000, with: [1, 2, 3])
        let database = try Database.testing(directory.file("db"))
        try database.execute(script: "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 't';")
        database.close()
        let report = try recover()
        #expect(report.problems == [] && report.damagedPages == [Int64(start)] && report.lostAndFoundCount == 0)
    }

    // MARK: Header

    /// Old versions of SQLite leave the number of pages at zero.
    @Test func aHeaderWithoutANumberOfPages() throws {
        try make("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'a'), (2, 'b');")
        try directory.forge("db", page: 1) { $0.replaceSubrange(28..<32, with: [0, 0, 0, 0]) }
        let report = try recover()
        #expect(report.isComplete && report.tables.map(\.rowCount) == [2], "\(report)")
    }

    // MARK: Without codes

    /// A store of pages without codes, of which the first has only noise, and the second is or is not a whole page of a
    /// tree.
    @Test(arguments: [false, true]) func whetherAnyPageIsOfThisKey(isBroken: Bool) throws {
        let settings = CipherSettings(usesHMAC: false)
        let root = try make(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'a'), (2, 'b');",
            settings: settings
        )
        try #require(root == 2)
        if isBroken {
            try directory.forge("db", page: root, settings: settings) {
                $0.replaceSubrange(10..<12, with: [0x0f, 0xff])
            }
        }
        try directory.forge("db", page: 1, settings: settings) { page in
            for index in 16..<4096 { page[index] = 0xff }
            // The bytes that are reserved at the end of each page.
            page[20] = 16
        }
        guard isBroken else { return #expect(try recover(settings).lostAndFoundCount == 2) }
        let error = #expect(throws: DatabaseError.self) { try recover(settings) }
        #expect(error?.reason == .wrongKey || error?.reason == .notADatabase, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["db"])
    }

    /// A first page without tables is known by what every header has.
    @Test(arguments: [false, true]) func aFirstPageAlone(isBroken: Bool) throws {
        let settings = CipherSettings(usesHMAC: false)
        try make("PRAGMA user_version = 7", settings: settings)
        let size = try directory.bytes("db").count
        try #require(size == 4096)
        if isBroken { try directory.forge("db", page: 1, settings: settings) { $0[22] = 33 } }
        guard isBroken else { return #expect(try recover(settings).pageCount == 1) }
        let error = #expect(throws: DatabaseError.self) { try recover(settings) }
        #expect(error?.reason == .wrongKey, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["db"])
    }
}
