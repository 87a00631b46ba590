import Foundation
import SealedDB
import Testing

/// `sealdb recover` on stores that are damaged in worse ways than by one page: logs, journals, headers, schemas.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct RecoverDamageTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
    }

    private func exec(_ sql: String) throws { try sandbox.succeed("exec", "db", sql, "--key-file", "key") }

    private func rows(_ sql: String) throws -> [String] {
        try sandbox.succeed("query", "saved", sql, "--key-file", "key", "--format", "csv", "--no-header").lines
    }

    private func damage(_ page: Int) throws {
        try sandbox.overwrite("db", at: UInt64((page - 1) * 4096 + 200), with: [1, 2, 3, 4])
    }

    /// The first page of a table or index.
    private func root(_ name: String) throws -> Int {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'"
        let lines = try sandbox.succeed(
            "query",
            "db",
            sql,
            "--key-file",
            "key",
            "--format",
            "csv",
            "--no-header"
        ).lines
        return try #require(Int(lines[0]))
    }

    private func recover(_ status: Int32, _ options: String...) throws -> StoreRecovery.Report {
        let outcome = try sandbox.run([Tool.sealdb, "recover", "db", "saved", "--key-file", "key", "--json"] + options)
        #expect(outcome.status == status, "\(outcome.output)\(outcome.error)")
        return try JSONDecoder().decode(StoreRecovery.Report.self, from: outcome.outputData)
    }

    private static let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"

    // MARK: Logs and journals

    /// Makes a store in WAL mode whose log has 30 transactions.
    private func makeLog() throws {
        let connection = try sandbox.connection()
        let isMade = connection.executeStatements(
            """
            PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
            CREATE TABLE t (id INTEGER PRIMARY KEY, a); PRAGMA wal_checkpoint;
            """
        )
        #expect(isMade)
        for id in 1...30 { try connection.executeUpdate("INSERT INTO t VALUES (\(id), hex(randomblob(500)))") }
        let files = try ["db", "db-wal"].map { (name: $0, bytes: try sandbox.contents($0)) }
        connection.close()
        try sandbox.removeAll(but: ["key"])
        for file in files { try sandbox.write(file.name, file.bytes) }
    }

    @Test(arguments: [0, 20, 32 + 5 * 4120 + 300, 32 + 5 * 4120 + 20])
    func transactionsBehindDamageInTheLogAreSaved(offset: Int) throws {
        try makeLog()
        var log = try sandbox.contents("db-wal")
        log[offset] ^= 0xff
        try sandbox.write("db-wal", log)
        let report = try recover(2)
        #expect(report.problems.contains { $0.contains("The log is damaged") }, "\(report)")
        // A page holds at most four of the rows, and what is lost is one page.
        #expect(report.tables.first?.rowCount ?? 0 >= 26, "\(report)")
    }

    @Test func theLogOfAnotherStoreIsLeftOut() throws {
        try makeLog()
        try sandbox.write("foreign", try sandbox.contents("db-wal"))
        try sandbox.removeAll(but: ["key", "foreign"])
        try sandbox.succeed("create", "db", "--key-file", "key")
        try exec("CREATE TABLE t (a); \(RecoverDamageTests.numbers) INSERT INTO t SELECT i FROM n;")
        try sandbox.write("db-wal", try sandbox.contents("foreign"))
        let report = try recover(2)
        #expect(report.tables.first?.rowCount == 1500 && report.problems.count == 1, "\(report)")
        #expect(report.problems.first?.contains("was left out") == true)
    }

    /// Anybody can write a log whose checksums are right.
    @Test func aLogThatNamesFourBillionPages() throws {
        try exec("CREATE TABLE t (a); INSERT INTO t VALUES (1);")
        for pageSize in [4096, 1024] {
            var log = LogBytes(pageSize: pageSize)
            log.append(page: 0xffff_ffff, committing: 0xffff_ffff)
            try sandbox.write("db-wal", Data(log.bytes))
            let report = try recover(2)
            #expect(report.pageCount == 2 && report.tables.first?.rowCount == 1, "\(report)")
            try sandbox.removeAll(but: ["db", "key"])
        }
    }

    /// A journal of a transaction that was cut off: what can be put back is, and what cannot be is told.
    @Test(arguments: [0, 512 + 4 * 4104 + 4 + 4096 - 200])
    func aDamagedJournal(offset: Int) throws {
        try exec(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a);
            \(RecoverDamageTests.numbers) INSERT INTO t SELECT i, 'old ' || hex(randomblob(50)) FROM n;
            """
        )
        // SQLite itself writes to the file before a transaction is committed, as soon as its cache is full.
        let key = try String(decoding: sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        let script = """
            PRAGMA key = "x'\(key)'";
            PRAGMA cache_size = 10; BEGIN; UPDATE t SET a = 'new ' || substr(a, 5);
            INSERT INTO t SELECT id + 5000, a FROM t;
            .shell cp db cut && cp db-journal cut-journal
            ROLLBACK;
            """
        #expect(try sandbox.run(["sqlcipher", "db"], input: script).status == 0)
        try sandbox.write("db", try sandbox.contents("cut"))
        var journal = try sandbox.contents("cut-journal")
        #expect(journal.count > 60_000)
        journal[offset] ^= 0xff
        try sandbox.write("db-journal", journal)
        let report = try recover(2)
        #expect(report.tables.first?.rowCount ?? 0 >= 1400, "\(report)")
        #expect(report.problems.contains { $0.contains("The journal is damaged") }, "\(report)")
        // With a header that is damaged nothing may be known of the journal. Otherwise the records behind are used.
        guard offset > 0 else { return }
        let old = try #require(Int(try rows("SELECT count(*) FROM t WHERE a LIKE 'old %'")[0]))
        #expect(old >= 1440)
    }

    // MARK: Header

    /// Page 1 of an earlier state: its size and its free pages are wrong, and every row is there.
    @Test func aStaleFirstPage() throws {
        try exec(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE z (a);
            \(RecoverDamageTests.numbers) INSERT INTO z SELECT hex(randomblob(50)) FROM n LIMIT 500;
            DROP TABLE z; INSERT INTO t VALUES (0, 0);
            """
        )
        let old = try sandbox.contents("db").prefix(4096)
        try exec("\(RecoverDamageTests.numbers) INSERT INTO t SELECT i, hex(randomblob(50)) FROM n")
        var bytes = try sandbox.contents("db")
        bytes.replaceSubrange(0..<4096, with: old)
        try sandbox.write("db", bytes)
        let report = try recover(2)
        #expect(report.tables.map(\.rowCount) == [1501] && report.lostAndFoundCount == 0, "\(report)")
        #expect(report.problems.contains { $0.contains("Page 1 is that of another state") }, "\(report)")
    }

    @Test func aFileThatIsCutOff() throws {
        try exec("CREATE TABLE t (a); \(RecoverDamageTests.numbers) INSERT INTO t SELECT hex(randomblob(50)) FROM n;")
        let size = try sandbox.contents("db").count
        try sandbox.truncate("db", to: UInt64(size - 3 * 4096))
        let report = try recover(2)
        #expect(report.problems == ["The file is cut off: it has \(size / 4096 - 3) of \(size / 4096) pages."])
        #expect(report.tables.first?.lostPages.count == 3)
    }

    /// Ten pages are named, and it is told that there are more.
    @Test func pagesThatAreMissingAreNamed() throws {
        try exec("CREATE TABLE t (a); \(RecoverDamageTests.numbers) INSERT INTO t SELECT hex(randomblob(50)) FROM n;")
        let whole = try sandbox.contents("db")
        for (count, words) in [
            (1, ["page", "1", ""]), (10, ["pages", "10", ""]), (12, ["pages", "10", "and 2 more"]),
        ] {
            try sandbox.removeAll(but: ["key"])
            try sandbox.write("db", whole.dropLast(count * 4096))
            let outcome = try sandbox.sealdb("recover", "db", "saved", "--key-file", "key")
            #expect(outcome.status == 2, "\(outcome.error)")
            let line = try #require(outcome.lines.first { $0.hasPrefix("t: ") }, "\(outcome.output)")
            let pattern = /t: [0-9]+ rows, missing below (pages?) ([0-9, ]+)(.*)/
            let told = try #require(line.wholeMatch(of: pattern), "\(line)").output
            let numbers = told.2.split(separator: ",").count
            #expect(["\(told.1)", "\(numbers)", "\(told.3)"] == words, "\(line)")
        }
    }

    /// The salt is the beginning of the file. The log has it too, or an older copy of the file.
    @Test func theSaltIsLost() throws {
        try makeLog()
        let copy = try sandbox.contents("db")
        try sandbox.overwrite("db", at: 0, with: [UInt8](repeating: 0, count: 16))
        #expect(try recover(0).tables.first?.rowCount == 30)
        try sandbox.removeAll(but: ["db", "key"])
        try sandbox.fail(77, "recover", "db", "saved", "--key-file", "key")
        let salt = copy.prefix(16).map { String(format: "%02x", $0) }.joined()
        #expect(try recover(0, "--salt", salt).tables.first?.rowCount == 0)
        #expect(try sandbox.contents("db").prefix(16).allSatisfy { $0 == 0 })
        try sandbox.fail(64, "recover", "db", "other", "--key-file", "key", "--salt", "12")
    }

    /// A store of one page whose other pages are still in the log, and an empty file beside a log.
    @Test(arguments: [16, nil])
    func everythingIsInTheLog(zeros: Int?) throws {
        let connection = try sandbox.connection()
        let isMade = connection.executeStatements(
            """
            PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);
            """
        )
        #expect(isMade)
        let log = try sandbox.contents("db-wal")
        var file = try sandbox.contents("db").prefix(4096)
        connection.close()
        try sandbox.removeAll(but: ["key"])
        if let zeros {
            file.replaceSubrange(..<zeros, with: [UInt8](repeating: 0, count: zeros))
        } else {
            file = Data()
        }
        try sandbox.write("db", Data(file))
        try sandbox.write("db-wal", log)
        #expect(try recover(0).tables.map(\.rowCount) == [2])
    }

    /// Page 1 is older than the log, whose last copy of it is damaged: pages behind the end that it states are looked at.
    @Test func aFirstPageThatIsOlderThanTheLog() throws {
        let connection = try sandbox.connection()
        let isMade = connection.executeStatements(
            """
            PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); PRAGMA wal_checkpoint(TRUNCATE);
            CREATE TABLE late (a); INSERT INTO late VALUES ('kept');
            """
        )
        #expect(isMade)
        let (file, log) = (try sandbox.contents("db"), try sandbox.contents("db-wal"))
        connection.close()
        try sandbox.removeAll(but: ["key"])
        var bytes = log
        for start in stride(from: 32, to: log.count, by: 4120) where log[start..<start + 4].elementsEqual([0, 0, 0, 1])
        {
            bytes[start + 24 + 300] ^= 0xff
        }
        #expect(bytes != log)
        try sandbox.write("db", file)
        try sandbox.write("db-wal", bytes)
        #expect(try recover(2).lostAndFoundCount == 1)
        #expect(try rows("SELECT c0 FROM lost_and_found") == ["kept"])
    }

    // MARK: Without authentication

    @Test func withoutAuthenticationAWrongKeyIsNoticed() throws {
        try sandbox.removeAll(but: ["key"])
        try sandbox.makeKey("other")
        try sandbox.succeed("create", "db", "--key-file", "key", "--no-hmac")
        let sql = "CREATE TABLE t (a, b); \(RecoverDamageTests.numbers) INSERT INTO t SELECT i, hex(i) FROM n;"
        try sandbox.succeed("exec", "db", sql, "--key-file", "key", "--no-hmac")
        try sandbox.fail(77, "recover", "db", "saved", "--key-file", "other", "--no-hmac")
        var noise = SystemRandomNumberGenerator()
        try sandbox.write("noise", Data((0..<65536).map { _ in UInt8.random(in: .min ... .max, using: &noise) }))
        let outcome = try sandbox.sealdb("recover", "noise", "saved", "--key-file", "key", "--no-hmac")
        #expect(outcome.status != 0 && !sandbox.exists("saved"), "\(outcome)")
        let told = try sandbox.succeed("recover", "db", "saved", "--key-file", "key", "--no-hmac")
        #expect(told.output.contains("were not authenticated"), "\(told.output)")
    }

    // MARK: Schema

    /// What is wrong with a virtual table, a view or a trigger costs nothing else.
    @Test func fullTextAndItsPages() throws {
        try exec(
            """
            CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);
            CREATE VIRTUAL TABLE f USING fts5(x); CREATE VIRTUAL TABLE r USING rtree(id, x0, x1);
            \(RecoverDamageTests.numbers) INSERT INTO f SELECT 'word' || i FROM n;
            \(RecoverDamageTests.numbers) INSERT INTO r SELECT i, i, i + 1 FROM n;
            """
        )
        let sound = try sandbox.contents("db")
        for name in ["f_data", "f_content", "f_idx", "f_docsize", "r_node", "r_rowid"] {
            try sandbox.write("db", sound)
            try damage(try root(name))
            let report = try recover(2)
            #expect(report.tables.contains { $0.name == "t" && $0.rowCount == 2 }, "\(name): \(report)")
            #expect(try rows("SELECT group_concat(a) FROM t") == ["\"1,2\""])
            try sandbox.removeAll(but: ["db", "key"])
        }
    }

    @Test func objectsThatCannotBeMade() throws {
        try exec(
            """
            CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2); CREATE VIEW v AS SELECT a FROM t;
            CREATE TABLE u (a); INSERT INTO u VALUES (7); CREATE INDEX i ON u (a);
            CREATE TRIGGER g AFTER INSERT ON u BEGIN SELECT 1; END;
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE u AS SELECT * FROM sqlite_schema' WHERE name = 'u';
            UPDATE sqlite_schema SET sql = 'CREATE TABLE i2 (a)' WHERE name = 'i';
            INSERT INTO sqlite_schema VALUES ('view', 'v', 'v', 0, 'CREATE VIEW v AS SELECT b FROM t');
            INSERT INTO sqlite_schema VALUES ('view', 'w', 'w', 0, 'CREATE VIEW w AS SELEC');
            INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, 'CREATE TABLE y (a)');
            """
        )
        let report = try recover(2)
        #expect(report.tables.map(\.name) == ["t"], "\(report)")
        for name in ["table u", "index i", "trigger g", "view v", "view w", "virtual table x"] {
            #expect(report.problems.contains { $0.contains("The \(name) could not be made") }, "\(name): \(report)")
        }
        #expect(report.problems.contains("1 row of u is in lost_and_found."), "\(report)")
        #expect(try rows("SELECT id, c0 FROM lost_and_found") == ["1,7"])
        #expect(try rows("SELECT name FROM sqlite_schema ORDER BY name") == ["lost_and_found", "t", "v"])
    }

    /// A table that needs a collation of its application: its rows are kept, whatever tree they stand in.
    @Test(arguments: ["", "WITHOUT ROWID"])
    func rowsOfATableThatCannotBeMade(kind: String) throws {
        try exec("CREATE TABLE t (a TEXT, b, PRIMARY KEY (a)) \(kind); INSERT INTO t VALUES ('x', 1), ('y', 2);")
        try exec(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'a TEXT', 'a TEXT COLLATE of_an_app') WHERE name = 't';
            """
        )
        let report = try recover(2)
        #expect(report.problems.contains { $0.contains("The table t could not be made") }, "\(report)")
        #expect(report.problems.contains("2 rows of t are in lost_and_found."), "\(report)")
        let ids = kind.isEmpty ? ["1,x,1", "2,y,2"] : [",x,1", ",y,2"]
        #expect(try rows("SELECT id, c0, c1 FROM lost_and_found ORDER BY c0") == ids)
        try sandbox.removeAll(but: ["db", "key"])
        try damage(try #require(try sandbox.contents("db").count / 4096 == 3 ? 2 : 2))
        #expect(try recover(2).problems.contains { $0.contains("what stands below these pages is missing: 2") })
    }

    /// The leaves of a table WITHOUT ROWID whose root is damaged.
    @Test func rowsWithoutRowIDsBelowADamagedPage() throws {
        try exec(
            """
            CREATE TABLE k (a TEXT PRIMARY KEY, b) WITHOUT ROWID; CREATE TABLE t (a, b); CREATE INDEX i ON t (a);
            \(RecoverDamageTests.numbers) INSERT INTO k SELECT printf('%06d', i), hex(randomblob(30)) FROM n;
            INSERT INTO t SELECT * FROM k;
            """
        )
        let sound = try sandbox.contents("db")
        try damage(try root("k"))
        let report = try recover(2)
        // The root itself has a row for each page below it but the last.
        #expect((1400..<1500).contains(report.lostAndFoundCount), "\(report)")
        #expect(try rows("SELECT count(*) FROM t") == ["1500"])
        #expect(
            try rows("SELECT count(*) FROM lost_and_found JOIN t ON a = c0 AND b = c1 WHERE id IS NULL") == [
                "\(report.lostAndFoundCount)"
            ]
        )
        try sandbox.removeAll(but: ["key"])
        try sandbox.write("db", sound)
        // An index is made anew from its table, so its pages are nothing that is lost.
        try damage(try root("i"))
        #expect(try recover(2).lostAndFoundCount == 0)
        #expect(try rows("SELECT count(*) FROM t INDEXED BY i WHERE a > ''") == ["1500"])
    }

    @Test func theEncodingIsFoundInTheRestOfTheSchema() throws {
        try sandbox.removeAll(but: ["key"])
        #expect(
            try sandbox.run(["sqlite3", "plain", "PRAGMA encoding = 'UTF-16be'; CREATE TABLE first (x);"]).status == 0
        )
        try sandbox.succeed("encrypt", "plain", "db", "--key-file", "key")
        try exec((0..<100).map { "CREATE TABLE table_with_a_long_name_\($0) (a_column, b);" }.joined())
        try exec("INSERT INTO table_with_a_long_name_99 VALUES ('näme', 2)")
        try damage(1)
        let report = try recover(2)
        #expect(report.tables.contains { $0.name == "table_with_a_long_name_99" && $0.rowCount == 1 }, "\(report)")
        #expect(try rows("SELECT * FROM table_with_a_long_name_99") == ["näme,2"])
    }

    // MARK: Values

    /// Values that a column would not hold, because its type is newer than they are, stay what they are.
    @Test func valuesThatTheTypeWouldChange() throws {
        try exec(
            """
            CREATE TABLE i (v); CREATE TABLE n (v); CREATE TABLE r (v); CREATE TABLE x (v); CREATE TABLE b (v);
            INSERT INTO i VALUES ('0005'), (' 1e2 '), (3.0), ('abc'), ('0x10'), ('1e'), (2.5), (NULL);
            INSERT INTO n VALUES ('.5'), (1e300), (x'31'); INSERT INTO r VALUES ('7.'), (7); INSERT INTO x VALUES (7), ('7');
            INSERT INTO b VALUES (7), ('7');
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'v', CASE name
                WHEN 'i' THEN 'v INTEGER' WHEN 'n' THEN 'v DECIMAL' WHEN 'r' THEN 'v REAL' WHEN 'x' THEN 'v VARCHAR'
                ELSE 'v BLOB' END);
            """
        )
        let report = try recover(2)
        #expect(report.tables.map(\.rowCount) == [5, 2, 1, 1, 2], "\(report)")
        let kept = try rows("SELECT typeof(c0), quote(c0) FROM lost_and_found ORDER BY rootpgno, id")
        #expect(kept == ["text,'0005'", "text,' 1e2 '", #"real,"3.0""#, "text,'.5'", "text,'7.'", #"integer,"7""#])
        #expect(try rows("SELECT quote(v) FROM i") == ["'abc'", "'0x10'", "'1e'", #""2.5""#, "NULL"])
    }

    @Test func moreValuesThanATableCanShow() throws {
        let columns = (0..<2000).map { "c\($0)" }.joined(separator: ", ")
        let values = (0..<2000).map(String.init).joined(separator: ", ")
        try exec(
            """
            CREATE TABLE w (\(columns)); INSERT INTO w VALUES (\(values)); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE w (a)';
            """
        )
        let report = try recover(2)
        #expect(
            report.lostAndFoundCount == 2 && report.problems.contains { $0.contains("has 2000 values") },
            "\(report)"
        )
        #expect(try rows("SELECT nfield, c0, c3, c1995 FROM lost_and_found") == ["2000,0,3,1995", "4,1996,1999,"])
    }

    @Test func theCountersAreThoseOfTheStore() throws {
        try exec(
            """
            CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO a VALUES (9);
            CREATE TABLE b (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO b VALUES (50);
            UPDATE sqlite_sequence SET seq = 70 WHERE name = 'b'; DELETE FROM sqlite_sequence WHERE name = 'a';
            """
        )
        #expect(try recover(0).isComplete)
        #expect(try rows("SELECT * FROM sqlite_sequence") == ["b,70"])
    }

    /// A statement of the schema whose bytes are no UTF-8, as old programs write them.
    @Test func aSchemaThatIsNoText() throws {
        try exec("CREATE TABLE t (a, b DEFAULT 'X'); INSERT INTO t (a) VALUES (1);")
        try exec(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = CAST(replace(CAST(sql AS BLOB), x'58', x'e9') AS TEXT);
            """
        )
        #expect(try recover(0).tables.first?.rowCount == 1)
        try sandbox.succeed("exec", "saved", "INSERT INTO t (a) VALUES (2)", "--key-file", "key")
        #expect(try rows("SELECT hex(b) FROM t") == [#""58""#, "E9"])
    }

    @Test func aNewStoreHasAName() throws {
        try sandbox.fail(64, "recover", "db", "-", "--key-file", "key")
        #expect(try sandbox.names() == ["db", "key"])
    }
}

/// A write-ahead log with checksums that are right. <https://www.sqlite.org/walformat.html>
private struct LogBytes {
    private(set) var bytes: [UInt8] = []
    private let pageSize: Int
    private var sum: (UInt32, UInt32) = (0, 0)

    init(pageSize: Int) {
        self.pageSize = pageSize
        append([0x377f_0682, 3_007_000, UInt32(pageSize), 0, 1, 2])
        add(bytes)
        append([sum.0, sum.1])
    }

    mutating func append(page: UInt32, committing count: UInt32) {
        let start = bytes.count
        append([page, count])
        let head = Array(bytes[start...])
        let contents = [UInt8](repeating: 7, count: pageSize)
        add(head)
        add(contents)
        append([1, 2, sum.0, sum.1])
        bytes += contents
    }

    private mutating func append(_ words: [UInt32]) {
        for word in words { for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) } }
    }

    /// The words of the checksum are little-endian.
    private mutating func add(_ part: [UInt8]) {
        func word(_ index: Int) -> UInt32 { (0..<4).reduce(0) { $0 | UInt32(part[index + $1]) << ($1 * 8) } }
        for index in stride(from: 0, to: part.count, by: 8) {
            sum.0 = sum.0 &+ word(index) &+ sum.1
            sum.1 = sum.1 &+ word(index + 4) &+ sum.0
        }
    }
}
