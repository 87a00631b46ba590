import Foundation
import Testing

@testable import SealedDB

/// Copies of other page sizes, whose rows SQLite moves from the pages of the source.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RowCopyTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makePlain(_ sql: SQL, journalMode: String = "DELETE") throws -> Database {
        let plain = Database(path: directory.file("plain"))
        #expect(plain.open() && plain.executeStatements("PRAGMA journal_mode = \(raw: journalMode)"))
        #expect(plain.executeStatements(sql), "\(plain.lastErrorMessage())")
        return plain
    }

    private func encrypt() throws {
        try StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: .testing(1)).run()
    }

    private func decrypt() throws {
        try StoreDecryption(path: directory.file("db"), key: .testing(1), plaintextPath: directory.file("again")).run()
    }

    private func digest(_ name: String, key: Key? = nil) throws -> [UInt8] {
        let connection = try StoreOpening(path: directory.file(name), key: key).open()
        defer { connection.close() }
        return try connection.snapshot { () throws(DatabaseError) in try ContentDigest.of(connection) }
    }

    /// Tables that SQLite copies as records, and those that it does not.
    @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func eachKindOfTable(encoding: String) throws {
        let plain = try makePlain(
            """
            PRAGMA encoding = '\(raw: encoding)';
            CREATE TABLE keyed (id INTEGER PRIMARY KEY, a, b REAL);
            INSERT INTO keyed VALUES (-3, 'é', 1), (0, x'00ff', 2.5), (9223372036854775807, NULL, 9e999);
            ALTER TABLE keyed ADD COLUMN later DEFAULT 'of old rows';
            INSERT INTO keyed VALUES (7, CAST(x'fffe' AS TEXT), -1e-300, 'x');
            CREATE TABLE descending (id INTEGER PRIMARY KEY DESC, a);
            INSERT INTO descending (rowid, id, a) VALUES (5, 1, 1), (3, 2, 2);
            CREATE TABLE named (rowid TEXT, _rowid_ INT, a);
            INSERT INTO named (oid, rowid, a) VALUES (11, 'eleven', 1), (4, 'four', 2);
            CREATE TABLE loose (a); INSERT INTO loose (rowid, a) VALUES (5, zeroblob(20000)), (9, 'nine');
            CREATE TABLE indexed (id INTEGER PRIMARY KEY, a UNIQUE, b); CREATE INDEX i ON indexed (b DESC, a);
            INSERT INTO indexed VALUES (2, 'z', 1), (3, 'y', 2), (5, 'x', NULL);
            CREATE TABLE made (id INTEGER PRIMARY KEY, a, b AS (a || '!') STORED, c AS (a || '?'));
            INSERT INTO made (id, a) VALUES (3, 'a'), (1, 'b');
            CREATE TABLE "odd ""name" ("a ""b" PRIMARY KEY, c) WITHOUT ROWID;
            INSERT INTO "odd ""name" VALUES ('k', 1), ('j', 2);
            CREATE TABLE source (id INTEGER PRIMARY KEY, a); INSERT INTO source VALUES (1, 'like the schema');
            CREATE TABLE strict (id INTEGER PRIMARY KEY, a ANY) STRICT; INSERT INTO strict VALUES (1, '01');
            CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO counted VALUES (40);
            DELETE FROM counted; INSERT INTO counted VALUES (3);
            ANALYZE;
            """
        )
        #expect(plain.close())
        let before = try digest("plain")
        try encrypt()
        #expect(try digest("db", key: .testing(1)) == before)
        try decrypt()
        #expect(try digest("again") == before)
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true).isSound)
        #expect(directory.namesOfFiles == ["again", "db", "plain"])
    }

    /// Where the source's index does not have what its table has, the copy's does.
    @Test func anIndexIsMadeAnew() throws {
        let plain = try makePlain(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a, b); CREATE INDEX i ON t (a);
            INSERT INTO t VALUES (1, 'x', 'later'), (2, 'y', 'sooner');
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (b)' WHERE name = 'i';
            """
        )
        #expect(plain.close())
        #expect(try !IntegrityReport.verify(path: directory.file("plain"), key: nil, isDeep: true).isSound)
        try encrypt()
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true).isSound)
    }

    /// What stands only in the log is copied, while the writer has the database open.
    @Test func aLogThatIsInUse() throws {
        let plain = try makePlain("CREATE TABLE t (id INTEGER PRIMARY KEY, body)", journalMode: "WAL")
        try plain.fill(rows: 3000)
        #expect(
            plain.executeStatements("PRAGMA wal_checkpoint(PASSIVE); UPDATE t SET body = 'in the log' WHERE id % 7 = 0")
        )
        try encrypt()
        let store = try Database.testing(directory.file("db"))
        #expect(try store.rows("SELECT id, body FROM t") == plain.rows("SELECT id, body FROM t"))
        #expect(store.executeStatements("PRAGMA journal_mode = WAL; UPDATE t SET body = 'again' WHERE id % 5 = 0"))
        try decrypt()
        let again = Database(path: directory.file("again"))
        #expect(again.open())
        #expect(try again.rows("SELECT id, body FROM t") == store.rows("SELECT id, body FROM t"))
        #expect(again.close() && store.close() && plain.close())
    }

    /// A record that SQLite could move without looking into it.
    @Test func aRecordThatIsDamagedIsNotCopied() throws {
        let plain = try makePlain(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'find me here')"
        )
        #expect(plain.close())
        let whole = try directory.bytes("plain")
        let place = try #require(whole.range(of: Data("find me here".utf8))).lowerBound
        // The type of the column now says that it has more bytes than the record.
        var bytes = whole
        bytes[place - 1] = 0x7f
        try bytes.write(to: URL(fileURLWithPath: directory.file("plain")))
        let error = #expect(throws: DatabaseError.self) { try encrypt() }
        #expect(error?.code == SQLITE_CORRUPT, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["plain"])
        #expect(try directory.bytes("plain") == bytes)
    }

    /// A page is authenticated before anything of it is copied.
    @Test func aPageThatIsNotAuthenticEndsTheCopy() throws {
        let store = try Database.testing(directory.file("db"))
        try store.fill(rows: 3000)
        #expect(store.close())
        let source = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { source.close() }
        let sealing = Sealing(key: try .testing(1))
        let pages = try source.snapshot { () throws(DatabaseError) in try SourcePages(reading: source, sealing) }
        var bytes = try directory.bytes("db")
        bytes[bytes.count / 2] ^= 1
        // The file stays the same one, which the source has open.
        let file = try #require(FileHandle(forUpdatingAtPath: directory.file("db")))
        try file.write(contentsOf: bytes)
        let (reading, reader) = try pages.open()
        defer { reading.close() }
        let error = #expect(throws: DatabaseError.self) {
            try reader.explaining { () throws(DatabaseError) in try ContentDigest.of(reading) }
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        // From then on nothing is read.
        #expect(throws: DatabaseError.self) {
            try reader.explaining { () throws(DatabaseError) in try reading.integer("SELECT 1") }
        }
    }

    /// A name under which pages are served leads nowhere once they are attached.
    @Test func aServedFileIsFoundOnce() throws {
        let store = try Database.testing(directory.file("db"))
        try store.fill(rows: 10)
        #expect(store.close())
        let source = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { source.close() }
        let pages = try SourcePages(reading: source, Sealing(key: .testing(1)))
        let target = try StoreOpening().open()
        defer { target.close() }
        try ServedFile(SourceReader(pages)).attach(to: target, as: "source", hasKey: false)
        #expect(try target.integer("SELECT count(*) FROM source.t") == 10)
        let path = try #require(try target.attachedFiles().first?.path)
        #expect(throws: DatabaseError.self) { try target.run("CREATE TABLE source.u (a)") }
        #expect(throws: DatabaseError.self) { try target.run("DELETE FROM source.t") }
        let other = try StoreOpening(path: directory.file("other"), flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            .open()
        defer { other.close() }
        #expect(throws: DatabaseError.self) {
            try Connection(path: path, flags: SQLITE_OPEN_READONLY).run("SELECT count(*) FROM t")
        }
    }
}
