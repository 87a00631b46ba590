import Foundation
import SealedDB
import Testing

/// What FMDB's documentation teaches Swift users to write: these forms must compile and work unchanged.
@Suite(.hangLimit)
struct FMDBReadmeTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func openWriteAndRead() throws {
        let fileURL = URL(fileURLWithPath: directory.file("test.sqlite"))
        let database = FMDatabase(url: fileURL)
        guard database.open() else {
            Issue.record("Unable to open database")
            return
        }
        var seen: [String] = []
        do {
            try database.executeUpdate("create table test(x text, y text, z text)", values: nil)
            try database.executeUpdate("insert into test (x, y, z) values (?, ?, ?)", values: ["a", "b", "c"])
            try database.executeUpdate("insert into test (x, y, z) values (?, ?, ?)", values: ["e", "f", "g"])
            let rs = try database.executeQuery("select x, y, z from test", values: nil)
            while rs.next() {
                if let x = rs.string(forColumn: "x"), let y = rs.string(forColumn: "y"),
                    let z = rs.string(forColumn: "z")
                {
                    seen.append("x = \(x); y = \(y); z = \(z)")
                }
            }
        } catch {
            Issue.record("failed: \(error.localizedDescription)")
        }
        database.close()
        #expect(seen == ["x = a; y = b; z = c", "x = e; y = f; z = g"])
    }

    @Test func keyAfterOpening() throws {
        let db = FMDatabase(path: directory.path.appending("/tmp.db"))
        guard db.open() else {
            Issue.record("Unable to open database")
            return
        }
        db.setKey("sup3rs3cr3t")
        let wrote = db.executeStatements("create table t (a); insert into t values ('known plaintext')")
        db.close()
        let bytes = (try? directory.bytes("tmp.db")) ?? Data()
        #expect(bytes.range(of: Data("known plaintext".utf8)) == nil)
        // Without a codec the database is closed, so that nothing gets into it.
        #expect(wrote == isEncrypting)

        if isEncrypting {
            let again = FMDatabase(path: directory.file("tmp.db"))
            #expect(again.open())
            #expect(!again.setKey("wrong"))
            #expect((again.lastError() as? DatabaseError)?.reason == .wrongKey)
            #expect(!again.isOpen)
            #expect(again.open())
            #expect(again.setKeyWith(Data("sup3rs3cr3t".utf8)))
            #expect(try again.integers("select count(*) from t") == [1])
        }
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func encryptAnExistingDatabase() throws {
        let plaintextDb = FMDatabase(path: directory.path.appending("/unencrypted.db"))
        guard plaintextDb.open() else {
            Issue.record("Unable to open database")
            return
        }
        try plaintextDb.fill(rows: 10)
        let encryptedDbPath = directory.path.appending("/encrypted.db")
        try plaintextDb.executeUpdate(
            "ATTACH DATABASE ? AS encrypted KEY ?",
            values: [encryptedDbPath, "encryptedPass"]
        )
        #expect(plaintextDb.executeStatements("SELECT sqlcipher_export('encrypted');"))
        #expect(plaintextDb.executeStatements("DETACH DATABASE encrypted;"))

        let encrypted = FMDatabase(path: encryptedDbPath)
        #expect(encrypted.open())
        #expect(encrypted.setKey("encryptedPass"))
        #expect(try encrypted.integers("SELECT count(*) FROM t") == [10])
    }

    @Test func transactionRolledBackOnError() throws {
        let queue = try #require(FMDatabaseQueue(path: directory.file("q.db")))
        queue.inDatabase { db in
            db.executeStatements("CREATE TABLE foo (bar INTEGER UNIQUE)")
        }
        queue.inTransaction { db, rollback in
            do {
                try db.executeUpdate("INSERT INTO foo (bar) VALUES (?)", values: [1])
                try db.executeUpdate("INSERT INTO foo (bar) VALUES (?)", values: [1])
            } catch {
                rollback.pointee = true
            }
        }
        queue.inTransaction { db, rollback in
            do {
                try db.executeUpdate("INSERT INTO foo (bar) VALUES (?)", values: [1])
                try db.executeUpdate("INSERT INTO foo (bar) VALUES (?)", values: [2])
                try db.executeUpdate("INSERT INTO foo (bar) VALUES (?)", values: [3])
            } catch {
                rollback.pointee = true
                print(error)
            }
        }
        let rows = try queue.inDatabase { db in try db.integers("SELECT bar FROM foo") }
        #expect(rows == [1, 2, 3])
    }

    @Test func customFunction() throws {
        let db = FMDatabase(path: nil)
        db.open()
        db.makeFunctionNamed("RemoveDiacritics", arguments: 1) { context, argc, argv in
            guard db.valueType(argv[0]) == .text || db.valueType(argv[0]) == .null else {
                db.resultError("Expected string parameter", context: context)
                return
            }

            if let string = db.valueString(argv[0])?.folding(options: .diacriticInsensitive, locale: nil) {
                db.resultString(string, context: context)
            } else {
                db.resultNull(context: context)
            }
        }
        db.executeStatements(
            "CREATE TABLE employees (first_name TEXT); INSERT INTO employees VALUES ('Jose'), ('José')"
        )
        let sql = "SELECT count(*) FROM employees WHERE RemoveDiacritics(first_name) LIKE 'jose'"
        #expect(try db.integers(sql) == [2])
        #expect(throws: DatabaseError.self) { try db.integers("SELECT RemoveDiacritics(12)") }
        #expect(db.lastErrorMessage() == "Expected string parameter")
        // The block keeps the database, and the database the block.
        try db.removeFunction("RemoveDiacritics", argumentCount: 1)
        db.close()
    }

    @Test func valuesAndNamedParameters() throws {
        let db = FMDatabase(path: nil)
        db.open()
        db.executeStatements("CREATE TABLE authors (identifier INTEGER, name TEXT, date REAL, comment TEXT)")
        do {
            let identifier = 42
            let name = "Liam O'Flaherty (\"the famous Irish author\")"
            let date = Date()
            let comment: String? = nil

            try db.executeUpdate(
                "INSERT INTO authors (identifier, name, date, comment) VALUES (?, ?, ?, ?)",
                values: [identifier, name, date, comment ?? NSNull()]
            )
            let arguments: [AnyHashable: Any] = ["identifier": 43, "name": name, "date": date, "comment": NSNull()]
            let success = db.executeUpdate(
                "INSERT INTO authors (identifier, name, date, comment) VALUES (:identifier, :name, :date, :comment)",
                withParameterDictionary: arguments
            )
            #expect(success)
            let rs = try db.executeQuery("SELECT * FROM authors ORDER BY identifier", values: nil)
            for expected in [42, 43] {
                #expect(rs.next())
                #expect(rs.int(forColumn: "identifier") == Int32(expected))
                #expect(rs["name"] as? String == name)
                // Stored as seconds since 1970, while Date counts from 2001: the last bit of a Double may differ.
                #expect(abs(try #require(rs.date(forColumn: "date")).timeIntervalSince(date)) < 0.000_001)
                #expect(rs.columnIsNull("comment"))
            }
        }
    }

    @Test func scriptsWithAndWithoutResults() throws {
        let db = FMDatabase(path: "")
        db.open()
        let sql = """
            create table bulktest1 (id integer primary key autoincrement, x text);
            create table bulktest2 (id integer primary key autoincrement, y text);
            insert into bulktest1 (x) values ('XXX');
            insert into bulktest2 (y) values ('YYY');
            """
        #expect(db.executeStatements(sql))
        var counts: [String] = []
        let success = db.executeStatements(
            "select count(*) as count from bulktest1; select count(*) as count from bulktest2; -- end"
        ) { dictionary in
            counts.append(dictionary["count"] as? String ?? "")
            return 0
        }
        #expect(success)
        #expect(counts == ["1", "1"])
        #expect(!db.executeStatements("select 1; select 2") { _ in 1 })
        #expect(db.lastErrorCode() == SQLITE_ABORT)
    }
}
