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

    private func encryption() throws -> StoreEncryption {
        StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: try .testing(1))
    }

    private func encrypt() throws { try encryption().run() }

    private func decrypt() throws {
        try StoreDecryption(path: directory.file("db"), key: .testing(1), plaintextPath: directory.file("again")).run()
    }

    private func digest(_ name: String, key: Key? = nil) throws -> [UInt8] {
        let connection = try StoreOpening(path: directory.file(name), key: key).open()
        defer { connection.close() }
        return try connection.snapshot { () throws(DatabaseError) in try ContentDigest.of(connection) }
    }

    /// The new file is made by SQLite alone, and the message says what it cannot make.
    @Test(arguments: ["CREATE INDEX odd ON t (a COLLATE rev)", "CREATE TABLE odd (a CHECK (a > f(a)))"])
    func whatOnlyAProgramCanMake(sql: String) throws {
        let plain = try makePlain("CREATE TABLE t (a)")
        try plain.addCollation("rev") { $1.compare($0) }
        try plain.addFunction("f", argumentCount: 1, options: [.deterministic, .innocuous]) { _ in .integer(1) }
        try plain.execute(script: "\(raw: sql)")
        #expect(plain.close())
        let error = #expect(throws: DatabaseError.self) { try encrypt() }
        let kind = sql.contains("INDEX") ? "index" : "table"
        #expect(error?.message.contains("The \(kind) odd cannot be made") == true, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["plain"])
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

    /// Where the source's index does not have what its table has, one of the two lacks something. The copy's index, which is made
    /// anew, would not tell.
    @Test func anIndexThatContradicts() throws {
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
        let error = #expect(throws: DatabaseError.self) { try encrypt() }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        // As the message says, where all rows are there.
        let again = Database(path: directory.file("plain"))
        #expect(again.open())
        try again.execute(script: "REINDEX")
        #expect(again.close())
        try encrypt()
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true).isSound)
    }

    /// SQLite writes the encoding with the first table or view that it makes.
    @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func aViewAlone(encoding: String) throws {
        let plain = try makePlain("PRAGMA encoding = '\(raw: encoding)'; CREATE VIEW v AS SELECT 'é' AS a")
        #expect(plain.close())
        let before = try digest("plain")
        try encrypt()
        #expect(try digest("db", key: .testing(1)) == before)
        try decrypt()
        #expect(try digest("again") == before)
        let again = Database(path: directory.file("again"))
        #expect(again.open())
        #expect(try again.rows("SELECT a FROM v") == [[.text("é")]])
        #expect(again.close())
    }

    /// SQLCipher asks whether zeros that it reads of the copy stand in its file. Zeros at that place of the source do not count.
    @Test(arguments: [1, 2], [8192, 65536])
    func zerosOfASourceWithOtherPages(autoVacuum: Int, pageSize: Int) throws {
        // A long row of the schema has a page, which the second table takes for its root.
        let plain = try makePlain(
            """
            PRAGMA page_size = \(raw: pageSize); PRAGMA auto_vacuum = \(raw: autoVacuum);
            CREATE TABLE first (\(raw: (0..<1500).map { "c\($0)" }.joined(separator: ", ")));
            CREATE TABLE second (id INTEGER PRIMARY KEY, a);
            INSERT INTO second VALUES (1, zeroblob(200000));
            """
        )
        #expect(plain.close())
        let before = try digest("plain")
        try encrypt()
        #expect(try digest("db", key: .testing(1)) == before)
        let (path, key) = (directory.file("db"), try Key.testing(1))
        let (large, small) = (CipherSettings(pageSize: pageSize), CipherSettings(pageSize: 1024))
        _ = try StoreMigration(path: path, key: key, from: CipherSettings(), to: large).run()
        _ = try StoreMigration(path: path, key: key, from: large, to: small).run()
        let store = try StoreOpening(path: path, key: key, settings: small).open()
        defer { store.close() }
        #expect(try ContentDigest.of(store) == before)
    }

    /// With less memory more pages are read twice; with none there is an error.
    @Test func lessMemoryForPages() throws {
        var asked: [Int] = []
        func keptPages(most: Int) throws -> KeptPages {
            try KeptPages(pageSize: 4096) { count in
                asked.append(count)
                return count <= most ? malloc(count) : nil
            }
        }
        let full = try keptPages(most: .max).count
        #expect(asked == [full * 4096])
        let pages = try keptPages(most: 10_000)
        #expect(pages.count == 2)
        for number in [1, 2, 3, 1] as [Int64] {
            let page = try pages.keep(number) { $0.initializeMemory(as: UInt8.self, repeating: UInt8(number)) }
            #expect(page.count == 4096 && page.allSatisfy { $0 == UInt8(number) })
            #expect(pages.page(number) != nil && pages.page(number + 2) == nil)
        }
        #expect(try keptPages(most: 4096).count == 1)
        let error = #expect(throws: DatabaseError.self) { try keptPages(most: 4095) }
        #expect(error?.code == SQLITE_NOMEM)
    }

    /// If the system has no thread to give, the work is done where its result is wanted.
    @Test func workWithoutAThread() throws {
        let work = { (body: @escaping ParallelWork<Int>.Body) in ParallelWork(startThread: { _ in nil }, body) }
        var told: [Int64] = []
        let first = work { report throws(DatabaseError) in
            try report(3)
            return 7
        }
        #expect(try first.result { told.append($0) } == 7)
        #expect(told == [3])
        try first.requireNoFailure()
        let failure = DatabaseError(extendedCode: SQLITE_FULL, message: "stopped")
        let second = work { report throws(DatabaseError) in
            try report(1)
            return 0
        }
        let error = #expect(throws: DatabaseError.self) {
            try second.result { _ throws(DatabaseError) in throw failure }
        }
        #expect(error?.code == SQLITE_FULL)
        second.stop()
    }

    @Test func workOnAThread() throws {
        let caller = pthread_self()
        let work = ParallelWork { report throws(DatabaseError) in
            try report(3)
            return pthread_equal(pthread_self(), caller) == 0 ? 7 : 0
        }
        #expect(try work.result { _ in } == 7)
        let lost = ParallelWork<Int> { _ throws(DatabaseError) in
            throw DatabaseError(extendedCode: SQLITE_CORRUPT, message: "lost")
        }
        #expect(throws: DatabaseError.self) { try lost.result { _ in } }
        #expect(throws: DatabaseError.self) { try lost.requireNoFailure() }
        // What is stopped ends, and so does what is told so by its caller.
        let endless: ParallelWork<Int>.Body = { report throws(DatabaseError) in
            while true { try report(1) }
        }
        ParallelWork(endless).stop()
        let failure = DatabaseError(extendedCode: SQLITE_FULL, message: "stopped")
        let error = #expect(throws: DatabaseError.self) {
            try ParallelWork(endless).result { _ throws(DatabaseError) in throw failure }
        }
        #expect(error?.code == SQLITE_FULL)
    }

    /// Nothing but the order of the rows tells these row ids, and an index holds all that is read.
    @Test func aTableThatTakesAllNamesOfTheRowID() throws {
        let plain = try makePlain(
            """
            CREATE TABLE t (rowid, _rowid_, oid, made VARCHAR(4000) AS (rowid || '!'));
            CREATE INDEX i ON t (oid, _rowid_, rowid);
            INSERT INTO t VALUES (1, 2, 9), (2, 5, 3), (3, 1, 1), (NULL, 0, 5);
            """
        )
        let rows = try plain.rows("SELECT rowid, _rowid_, oid FROM t NOT INDEXED")
        #expect(plain.close())
        let before = try digest("plain")
        try encrypt()
        #expect(try digest("db", key: .testing(1)) == before)
        let store = try Database.testing(directory.file("db"))
        #expect(try store.rows("SELECT rowid, _rowid_, oid FROM t NOT INDEXED") == rows)
        #expect(store.close())
    }

    /// Changes the bytes of the plaintext database.
    private func edit(_ change: (inout Data) throws -> Void) throws {
        var bytes = try directory.bytes("plain")
        try change(&bytes)
        try bytes.write(to: URL(fileURLWithPath: directory.file("plain")))
    }

    /// SQLite takes what other programs have written in Latin-1.
    @Test func textsOfTheSchemaThatAreNotUTF8() throws {
        let plain = try makePlain(
            """
            CREATE TABLE t (a DEFAULT 'gr~n', -- gr~n
                b); INSERT INTO t DEFAULT VALUES;
            CREATE INDEX i ON t (b) WHERE a <> 'gr~n';
            CREATE VIEW v AS SELECT 'gr~n' AS a; CREATE VIEW "gr~n" AS SELECT 1;
            CREATE TRIGGER r INSERT ON t BEGIN SELECT 'gr~n'; END;
            """
        )
        #expect(plain.close())
        try edit { bytes in
            var count = 0
            while let range = bytes.range(of: Data("gr~n".utf8)) {
                bytes[range.lowerBound + 2] = 0xfc
                count += 1
            }
            // With the row, and the name of the view in its row and in its text.
            #expect(count == 9)
        }
        let before = try digest("plain")
        try encrypt()
        #expect(try digest("db", key: .testing(1)) == before)
        try decrypt()
        #expect(try digest("again") == before)
    }

    /// A database keeps its encoding when its last table is gone.
    @Test func theEncodingOfAnEmptiedDatabase() throws {
        let plain = try makePlain("PRAGMA encoding = 'UTF-16be'; CREATE TABLE t (a); DROP TABLE t")
        #expect(plain.close())
        try encrypt()
        let store = try Database.testing(directory.file("db"))
        #expect(try store.rows("PRAGMA encoding") == [[.text("UTF-16be")]])
        #expect(try store.rows("SELECT count(*) FROM sqlite_schema") == [[.integer(0)]])
        #expect(store.close())
    }

    /// The caller is asked whether to go on, also while nothing is read.
    @Test func rowsOfOnePage() throws {
        let plain = try makePlain("PRAGMA page_size = 65536; CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        #expect(
            plain.executeStatements(
                """
                WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 6000)
                INSERT INTO t SELECT i, 0 FROM c
                """
            )
        )
        #expect(plain.close())
        var count = 0
        let encryption = try encryption()
        _ = try encryption.run { if $0.phase == .copy { count += 1 } }
        #expect(count > 200)
    }

    /// A tree whose pages lead to one another so often that nobody reads it to its end, from few pages that SQLite keeps. The
    /// check of the structure finds it before anything is copied.
    @Test func aTreeWithoutEnd() throws {
        let plain = try makePlain(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x');
            CREATE TABLE u (a); INSERT INTO u VALUES (zeroblob(100000)); DROP TABLE u;
            """
        )
        #expect(plain.close())
        try edit { bytes in
            let root = 4096
            // What was the root is the only leaf.
            bytes.replaceSubrange(15 * 4096..<16 * 4096, with: bytes[root..<root + 4096])
            for (page, child) in [(2, 5)] + (5..<16).map({ ($0, $0 + 1) }) {
                var tree = Data(count: 4096)
                let (cells, size) = (400, 5)
                tree.replaceSubrange(
                    0..<12,
                    with: [5, 0, 0, UInt8(cells >> 8), UInt8(cells & 0xff), 0, 0, 0, 0, 0, 0, UInt8(child)]
                )
                for cell in 0..<cells {
                    let place = 4096 - (cell + 1) * size
                    tree.replaceSubrange(place..<place + size, with: [0, 0, 0, UInt8(child), 1])
                    tree.replaceSubrange(12 + 2 * cell..<14 + 2 * cell, with: [UInt8(place >> 8), UInt8(place & 0xff)])
                    tree.replaceSubrange(5..<7, with: [UInt8(place >> 8), UInt8(place & 0xff)])
                }
                bytes.replaceSubrange((page - 1) * 4096..<page * 4096, with: tree)
            }
        }
        let error = #expect(throws: DatabaseError.self) { try encrypt() }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["plain"])
    }

    /// Makes a database whose only record claims so many bytes, from a page that leads to itself.
    private func makePlain(claiming claimed: Int) throws {
        let plain = try makePlain(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, zeroblob(9000))"
        )
        #expect(plain.close())
        try edit { bytes in
            func varint(_ value: Int) -> [UInt8] {
                var (rest, result) = (value >> 7, [UInt8(value & 0x7f)])
                while rest > 0 {
                    result.insert(UInt8(rest & 0x7f | 0x80), at: 0)
                    rest >>= 7
                }
                return result
            }
            // https://www.sqlite.org/fileformat.html#b_tree_pages
            let type = varint(12 + 2 * claimed)
            let head = [UInt8(2 + type.count), 0] + type
            let (least, most) = ((4096 - 12) * 32 / 255 - 23, 4096 - 35)
            let rest = least + (head.count + claimed - least) % (4096 - 4)
            let local = rest <= most ? rest : least
            let payload = head + [UInt8](repeating: 0, count: local - head.count)
            let cell = varint(head.count + claimed) + [1] + payload + [0, 0, 0, 3]
            let place = [UInt8((4096 - cell.count) >> 8), UInt8((4096 - cell.count) & 0xff)]
            let leaf = [13, 0, 0, 0, 1] + place + [0] + place
            let gap = [UInt8](repeating: 0, count: 4096 - leaf.count - cell.count)
            bytes.replaceSubrange(4096..<8192, with: leaf + gap + cell)
            bytes.replaceSubrange(8192..<8196, with: [0, 0, 0, 3])
        }
    }

    /// SQLite could move the record without looking into it. That it cannot be read ends the copy.
    @Test func aRecordThatIsTooLarge() throws {
        try makePlain(claiming: 3_000_000_000)
        // Far more than it takes to see that.
        var count = 0
        let encryption = try encryption()
        let error = #expect(throws: DatabaseError.self) {
            try encryption.run { _ in
                count += 1
                guard count < 100_000 else { throw CancellationError() }
            }
        }
        #expect(error?.code == SQLITE_CORRUPT || error?.code == SQLITE_TOOBIG, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["plain"])
    }

    /// The caller is asked whether to go on within a record, also while its pages are ones that were read before.
    @Test func aLargeRecord() throws {
        try makePlain(claiming: 8_000_000)
        var count = 0
        let encryption = try encryption()
        do throws(DatabaseError) {
            _ = try encryption.run { if $0.phase == .copy { count += 1 } }
            #expect(count > 8_000_000 / 4096)
        } catch {
            // Later versions of SQLite see that the page leads to itself.
            #expect(error.code == SQLITE_CORRUPT, "\(error)")
        }
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
