import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct CollationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func ordersAndCompares() throws {
        let database = try Database.testing(nil)
        try database.addCollation("numeric") { $0.compare($1, options: .numeric) }
        try database.run("CREATE TABLE t (name TEXT COLLATE numeric UNIQUE)")
        try database.run("INSERT INTO t VALUES ('file10'), ('file9'), ('file1')")
        #expect(try database.rows("SELECT name FROM t ORDER BY name") == [["file1"], ["file9"], ["file10"]])
        #expect(try database.value("SELECT 'A10' > 'A9' COLLATE Numeric") == 1)
    }

    @Test func embeddedNULsAndInvalidUTF8AreToldApart() throws {
        let database = try Database.testing(nil)
        try database.addCollation("plain") { first, second in
            first == second ? .orderedSame : first < second ? .orderedAscending : .orderedDescending
        }
        try database.run("CREATE TABLE t (name TEXT COLLATE plain PRIMARY KEY)")
        for name in ["a", "a\0", "a\0b"] { try database.run("INSERT INTO t VALUES (?)", [name]) }
        let invalid = ["61ff", "61fe", "61c3", "61efbfbd"]
        for bytes in invalid { try database.run("INSERT INTO t VALUES (CAST(x'\(bytes)' AS TEXT))") }
        #expect(try database.integers("SELECT count(*) FROM t") == [7])
        for bytes in invalid {
            #expect(throws: DatabaseError.self) { try database.run("INSERT INTO t VALUES (CAST(x'\(bytes)' AS TEXT))") }
            let found = try database.rows("SELECT hex(name) FROM t WHERE name = CAST(x'\(bytes)' AS TEXT)")
            #expect(found == [[.text(bytes.uppercased())]])
        }
        #expect(try database.value("PRAGMA integrity_check") == "ok")
    }

    @Test func missingAndRemoved() throws {
        let database = try Database.testing(directory.file("db"))
        let unknown = #expect(throws: DatabaseError.self) { try database.value("SELECT 'a' < 'b' COLLATE mine") }
        #expect(unknown?.message.contains("no such collation") == true)
        try database.addCollation("mine") { $1.compare($0) }
        #expect(try database.value("SELECT 'a' < 'b' COLLATE mine") == 0)
        let rows = try database.executeQuery(
            "SELECT column1 FROM (VALUES ('a'), ('b')) ORDER BY 1 COLLATE mine",
            values: nil
        )
        #expect(rows.next())
        let busy = #expect(throws: DatabaseError.self) { try database.removeCollation("mine") }
        #expect(busy?.code == SQLITE_BUSY)
        rows.close()
        try database.removeCollation("MINE")
        #expect(throws: DatabaseError.self) { try database.value("SELECT 'a' < 'b' COLLATE mine") }
        database.close()
        #expect(throws: DatabaseError.self) { try database.addCollation("mine") { $0.compare($1) } }
        #expect(throws: DatabaseError.self) { try database.removeCollation("mine") }
        #expect(database.open())
        #expect(throws: DatabaseError.self) { try database.value("SELECT 'a' < 'b' COLLATE mine") }
        for name in ["", "a\0b"] {
            #expect(throws: DatabaseError.self) { try database.addCollation(name) { $0.compare($1) } }
        }
    }

    @Test func mayNotUseTheDatabase() throws {
        let database = try Database.testing(nil)
        try database.addCollation("nosy") { [unowned database] first, second in
            #expect(throws: DatabaseError.self) { try database.value("SELECT 1") }
            #expect(database.lastErrorMessage().contains("hook"))
            return first.compare(second)
        }
        #expect(
            try database.rows("SELECT column1 FROM (VALUES ('b'), ('a')) ORDER BY 1 COLLATE nosy") == [["a"], ["b"]]
        )
    }

    /// A rotation or check by somebody who does not have the collations and functions.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func storesThatUseThemCanBeVerifiedAndRotatedByOthers() throws {
        do {
            let database = try Database.testing(directory.file("db"))
            try database.addCollation("numeric") { $0.compare($1, options: .numeric) }
            try database.addFunction("checked", argumentCount: 1, options: [.deterministic, .allowedInSchema]) { $0[0] }
            try database.addTokenizer("words") { _ in SimpleTokenizer() }
            try database.run("CREATE TABLE t (name TEXT COLLATE numeric UNIQUE, CHECK (checked(name)))")
            try database.run("CREATE INDEX i ON t (checked(name))")
            try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = words)")
            try database.run("INSERT INTO t VALUES ('1x')")
            try database.run("INSERT INTO s VALUES ('1x')")
        }
        let path = directory.file("db")
        #expect(try IntegrityReport.verify(path: path, key: .testing(1)).isSound)
        try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
        let database = try Database.testing(path, key: 2)
        #expect(try database.integers("SELECT count(*) FROM t") == [1])
        #expect(throws: DatabaseError.self) { try database.value("SELECT name FROM t ORDER BY name") }
        database.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: 4096 * 2 + 100)
        try file.write(contentsOf: Data(repeating: 1, count: 8))
        try file.close()
        #expect(try !IntegrityReport.verify(path: path, key: .testing(2)).isSound)
    }

    /// SQLite sorts in files on several threads, if it may, and each of them would call the closure.
    @Test func sortsOnOneThread() throws {
        let database = Database(path: directory.file("db"), configuration: Configuration())
        try database.openVerified()
        try database.addCollation("mine") { $0.compare($1) }
        try database.execute(script: "PRAGMA temp_store = FILE; PRAGMA cache_size = 10; PRAGMA threads = 4")
        #expect(try database.value("PRAGMA threads") == 0)
        database.limit(for: SQLITE_LIMIT_WORKER_THREADS, value: 4)
        #expect(database.limit(for: SQLITE_LIMIT_WORKER_THREADS, value: -1) == 0)
        let sql: SQL = """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
            SELECT hex(randomblob(50)) AS s FROM n ORDER BY s COLLATE mine
            """
        let sorted = try database.executeQuery(sql).all(String.self)
        #expect(sorted.count == 10000 && sorted == sorted.sorted())
        #expect(try database.value("SELECT 1") == 1)
    }
}
