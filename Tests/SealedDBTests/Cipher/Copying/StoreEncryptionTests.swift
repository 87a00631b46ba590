import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StoreEncryptionTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makePlain(pageSize: Int) throws {
        let plain = Database(path: directory.file("plain"))
        plain.open()
        #expect(
            plain.executeStatements(
                """
                PRAGMA page_size = \(raw: pageSize);
                CREATE TABLE loose (a);
                INSERT INTO loose (rowid, a) VALUES (5, 'secret row five'), (9, 'secret row nine');
                CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, a);
                INSERT INTO counted (a) VALUES (1), (2);
                DELETE FROM counted WHERE id = 2;
                CREATE VIEW v AS SELECT a FROM loose;
                CREATE TRIGGER tr AFTER INSERT ON loose BEGIN SELECT 1; END;
                CREATE VIRTUAL TABLE words USING fts5(w);
                INSERT INTO words VALUES ('needle in hay');
                PRAGMA user_version = 12;
                PRAGMA application_id = 34;
                """
            ),
            "\(plain.lastErrorMessage())"
        )
        plain.close()
    }

    @Test(arguments: [1024, 4096, 65536])
    func everythingIsKept(pageSize: Int) throws {
        try makePlain(pageSize: pageSize)
        let before = try directory.bytes("plain")
        // A passphrase with a NUL, which no URI could carry.
        let key = try [UInt8]("pass\0word".utf8).withUnsafeBytes { try Key.passphrase($0) }
        try StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: key).run()
        #expect(try directory.bytes("plain") == before)
        #expect(directory.names == ["db", "plain"])
        #expect(try directory.bytes("db").range(of: Data("secret row".utf8)) == nil)
        let database = Database(path: directory.file("db"), configuration: Configuration(key: key))
        try database.openVerified()
        #expect(try database.integers("SELECT rowid FROM loose") == [5, 9])
        #expect(try database.integers("SELECT seq FROM sqlite_sequence") == [2])
        #expect(try database.integers("SELECT count(*) FROM v") == [2])
        #expect(try database.integers("SELECT count(*) FROM words WHERE words MATCH 'needle'") == [1])
        #expect(try database.integers("PRAGMA user_version") == [12])
        #expect(try database.integers("PRAGMA application_id") == [34])
        #expect(try database.integers("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'") == [1])
    }

    /// A process that makes the same store takes the unfinished file for a leftover.
    @Test func theUnfinishedFileIsRemovedBySomebodyElse() throws {
        try makePlain(pageSize: 4096)
        let path = directory.file("db")
        let encryption = StoreEncryption(plaintextPath: directory.file("plain"), path: path, key: try .testing(1))
        let error = #expect(throws: DatabaseError.self) {
            try encryption.run { _ in TemporaryFile.removeLeftovers(of: path) }
        }
        #expect(error?.reason == .busy, "\(error as Any)")
        #expect(error?.message.contains("Somebody else has removed the unfinished") == true, "\(error as Any)")
        #expect(directory.names == ["plain"])
    }

    /// With the row id, such a table has more columns than a result.
    @Test func aTableOfAsManyColumnsAsThereCanBe() throws {
        let plain = Database(path: directory.file("plain"))
        #expect(plain.open())
        let columns = (0..<2000).map { "c\($0)" }.joined(separator: ", ")
        #expect(
            plain.executeStatements("CREATE TABLE wide (\(raw: columns)); INSERT INTO wide (c0, c1999) VALUES (1, 2)")
        )
        #expect(plain.executeStatements("INSERT INTO wide (rowid, c0, c1998) VALUES (7, 3, 4)") && plain.close())
        let key = try Key.testing(1)
        try StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: key).run()
        let database = try Database.testing(directory.file("db"))
        #expect(try database.integers("SELECT rowid FROM wide") == [1, 7])
        #expect(try database.integers("SELECT c1999 FROM wide WHERE c0 = 1") == [2])
        #expect(try database.integers("SELECT c1998 FROM wide WHERE c0 = 3") == [4])
    }

    /// Such a name cannot be given to a new table.
    @Test(arguments: ["CREATE TABLE \"gr?n\" (a)", "CREATE TABLE t (a, \"gr?n\")"])
    func aNameThatIsNotUTF8(sql: String) throws {
        let plain = Database(path: directory.file("plain"))
        #expect(plain.open() && plain.executeStatements(sql) && plain.executeStatements("CREATE TABLE u (a)"))
        #expect(plain.close())
        var bytes = try directory.bytes("plain")
        let name = Array("gr?n".utf8)
        var index = 0
        while index + name.count <= bytes.count {
            if bytes[index..<index + name.count].elementsEqual(name) { bytes[index + 2] = 0xf6 }
            index += 1
        }
        try bytes.write(to: URL(fileURLWithPath: directory.file("plain")))
        let key = try Key.testing(1)
        #expect(throws: DatabaseError.self) {
            try StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: key).run()
        }
        #expect(directory.names == ["plain"])
        let source = Database(path: directory.file("plain"))
        #expect(source.open())
        let target = Database(path: directory.file("copy"))
        // Page by page nothing is named.
        #expect(target.open())
        try source.backup(to: target)
        #expect(try source.serialized().count == bytes.count)
        #expect(try target.integers("SELECT count(*) FROM sqlite_schema") == [2])
        let connection = try source.openConnection()
        let before = try ContentDigest.of(connection)
        #expect(source.executeStatements("PRAGMA writable_schema = OFF; INSERT INTO u VALUES (1)"))
        #expect(try ContentDigest.of(connection) != before)
    }

    @Test func refusalsLeaveNothing() throws {
        try makePlain(pageSize: 4096)
        func reason(_ source: String, _ target: String) throws -> DatabaseError.Reason? {
            let encryption = StoreEncryption(
                plaintextPath: directory.file(source),
                path: directory.file(target),
                key: try .testing(1)
            )
            do throws(DatabaseError) {
                try encryption.run()
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(try reason("plain", "plain") == .alreadyExists)
        #expect(try reason("absent", "db") == .noSuchFile)
        #expect(try reason("plain", "no/db") == .cannotCreate)
        try Database.testing(directory.file("sealed")).fill(rows: 1)
        #expect(try reason("sealed", "db") == .notADatabase)
        struct Stop: Error {}
        let encryption = StoreEncryption(
            plaintextPath: directory.file("plain"),
            path: directory.file("db"),
            key: try .testing(1)
        )
        #expect(throws: DatabaseError.self) { try encryption.run { _ in throw Stop() } }
        #expect(directory.names == ["plain", "sealed"])
    }

    /// Its log or journal may lie beside the other name.
    @Test func aDatabaseWithTwoNames() throws {
        try makePlain(pageSize: 4096)
        #expect(link(directory.file("plain"), directory.file("other")) == 0)
        let encryption = StoreEncryption(
            plaintextPath: directory.file("plain"),
            path: directory.file("db"),
            key: try .testing(1)
        )
        let error = #expect(throws: DatabaseError.self) { try encryption.run() }
        #expect(error?.reason == .hardLinked, "\(String(describing: error))")
        #expect(directory.names == ["other", "plain"])
    }

    /// SQLite would leave out what stands behind the damage, and whoever has the store then may delete the database.
    @Test func aDatabaseWithADamagedLog() throws {
        let plain = Database(path: directory.file("plain"))
        #expect(plain.open())
        try plain.execute(script: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a)")
        for value in 1...5 { try plain.executeUpdate("INSERT INTO t VALUES (?)", values: [value]) }
        try directory.keep("plain", "plain-wal", of: plain)
        var log = try directory.bytes("plain-wal")
        log[32 + 2 * (24 + 4096) + 1000] ^= 1
        try directory.write("plain-wal", log)
        let encryption = StoreEncryption(
            plaintextPath: directory.file("plain"),
            path: directory.file("db"),
            key: try .testing(1)
        )
        let error = #expect(throws: DatabaseError.self) { try encryption.run() }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(directory.names == ["plain", "plain-wal"])
        #expect(try directory.bytes("plain-wal") == log)
    }

    /// A store whose salt is in neither the file nor the settings could be opened by nobody. It is not even begun.
    @Test func settingsWithoutASalt() throws {
        try makePlain(pageSize: 4096)
        let settings = CipherSettings(plaintextHeaderSize: 32)
        let watch = CallWatch(directory.path)
        let error = #expect(throws: DatabaseError.self) {
            try StoreEncryption(
                plaintextPath: directory.file("plain"),
                path: directory.file("db"),
                key: .testing(1),
                cipherSettings: settings
            ).run()
        }
        #expect(error?.reason == .unusableSettings, "\(String(describing: error))")
        #expect(watch.endWithAll() == [])
        // So is a backup under a key that lacks the salt which that of the store has.
        let key = try [UInt8](repeating: 1, count: 48).withUnsafeBytes { bytes in
            try Key.raw(.init(rebasing: bytes[..<32]), salt: .init(rebasing: bytes[32...]))
        }
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 5)
        database.close()
        let second = CallWatch(directory.path)
        let refused = #expect(throws: DatabaseError.self) {
            try StoreBackup(
                path: directory.file("db"),
                key: key,
                cipherSettings: settings,
                to: directory.file("backup"),
                backupKey: .testing(2)
            ).run()
        }
        #expect(refused?.reason == .unusableSettings, "\(String(describing: refused))")
        #expect(second.endWithAll() == [])
    }

    /// It is told what it is before SQLite may wait for it.
    @Test func whatIsNoFileIsNotEncrypted() throws {
        try FileManager.default.createDirectory(atPath: directory.file("plain"), withIntermediateDirectories: false)
        let encryption = StoreEncryption(
            plaintextPath: directory.file("plain"),
            path: directory.file("db"),
            key: try .testing(1)
        )
        let error = #expect(throws: DatabaseError.self) { try encryption.run() }
        #expect(error?.reason == .notRegularFile, "\(String(describing: error))")
        #expect(error?.message.hasPrefix("\(directory.file("plain")) is not a regular file.") == true)
        #expect(directory.names == ["plain"])
    }

    /// SQLite would take it for the new store's, and nothing would open that.
    @Test(arguments: ["-wal", "-journal"])
    func logOfAnotherDatabaseIsInTheWay(suffix: String) throws {
        try makePlain(pageSize: 4096)
        try directory.write("db" + suffix, Data("log of a database that is gone".utf8))
        let encryption = StoreEncryption(
            plaintextPath: directory.file("plain"),
            path: directory.file("db"),
            key: try .testing(1)
        )
        let error = try #require(#expect(throws: DatabaseError.self) { try encryption.run() })
        #expect(error.reason == .alreadyExists)
        #expect(directory.names == ["db" + suffix, "plain"])
        // Left by a restore that was killed: it has another name, under which it is kept.
        #expect(link(directory.file("db" + suffix), directory.file("kept" + suffix)) == 0)
        try encryption.run()
        #expect(directory.names == ["db", "kept" + suffix, "plain"])
    }

    @Test func whatAKilledRunLeftIsRemoved() throws {
        try makePlain(pageSize: 4096)
        let left = try TemporaryFile.path(beside: directory.file("db"))
        try Data("half a copy".utf8).write(to: URL(fileURLWithPath: left))
        try StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: try .testing(1))
            .run()
        #expect(directory.names == ["db", "plain"])
    }
}
