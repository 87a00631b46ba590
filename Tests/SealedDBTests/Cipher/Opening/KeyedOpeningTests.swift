import Foundation
import SealedDB
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyedOpeningTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func reason(key: Key?, settings: CipherSettings = .init()) -> DatabaseError.Reason? {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        do throws(DatabaseError) {
            try Database(path: directory.file("db"), configuration: configuration).openVerified()
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func newStoreIsEncryptedFromItsFirstPage() throws {
        let database = try Database.testing(directory.file("db"))
        let header = try directory.bytes("db").prefix(15)
        #expect(header.count == 15)
        #expect(header != Data("SQLite format 3".utf8))
        try database.fill(rows: 200)
        database.close()
        #expect(try directory.bytes("db").range(of: Data("secret row".utf8)) == nil)
    }

    @Test func wrongKeyFailsAtOpening() throws {
        try Database.testing(directory.file("db")).fill(rows: 5)
        let before = try directory.bytes("db")
        #expect(try reason(key: .testing(2)) == .wrongKey)
        #expect(try reason(key: .passphrase("no")) == .wrongKey)
        #expect(try reason(key: .testing(1)) == nil)
        #expect(try directory.bytes("db") == before)
        #expect(throws: DatabaseError.self) {
            try DatabaseQueue(path: directory.file("db"), configuration: Configuration(key: .testing(2)))
        }
        let error = #expect(throws: DatabaseError.self) {
            try Database(path: directory.file("db")).openAndRead()
        }
        #expect(error?.reason == .keyRequired)
    }

    /// The key is right and all pages are as they were written, so the error stays SQLite's own.
    @Test func aSchemaThatSQLiteCannotReadIsToldSo() throws {
        try StockShell.run(
            directory.file("db"),
            """
            .dbconfig defensive off
            PRAGMA key = "x'\(String(repeating: "01", count: 32))'";
            CREATE TABLE t(a);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE t(' WHERE name = 't';
            """
        )
        let error = #expect(throws: DatabaseError.self) { try Database.testing(directory.file("db")).close() }
        #expect(error?.code == 11, "\(error as Any)")
        #expect(error?.message.contains("malformed database schema") == true, "\(error as Any)")
    }

    @Test func plaintextIsToldApart() throws {
        let plain = Database(path: directory.file("db"))
        plain.open()
        try plain.fill(rows: 5)
        plain.close()
        let before = try directory.bytes("db")
        #expect(try reason(key: .testing(1)) == .plaintext)
        #expect(try directory.bytes("db") == before)
        #expect(throws: DatabaseError.self) {
            try StoreInfo.inspect(path: directory.file("db"), key: .testing(1))
        }
        #expect(try StoreInfo.inspect(path: directory.file("db"), key: nil).kind == .plaintext)
    }

    @Test func notADatabaseIsToldApart() throws {
        try Data("just some text".utf8).write(to: URL(fileURLWithPath: directory.file("db")))
        #expect(try reason(key: .testing(1)) == .notADatabase)
        try FileManager.default.removeItem(atPath: directory.file("db"))
        try FileManager.default.createDirectory(atPath: directory.file("db"), withIntermediateDirectories: false)
        #expect(try reason(key: .testing(1)) == .notRegularFile)
    }

    @Test func settingsAreAppliedAndNeeded() throws {
        let settings = CipherSettings(
            pageSize: 8192,
            kdfIterations: 1000,
            kdfAlgorithm: .sha256,
            hmacAlgorithm: .sha256
        )
        var configuration = Configuration(key: try .passphrase("p"))
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 100)
        #expect(try database.integers("PRAGMA page_size") == [8192])
        database.close()
        #expect(try reason(key: .passphrase("p"), settings: settings) == nil)
        #expect(try reason(key: .passphrase("p")) == .wrongKey)
        for bad in [CipherSettings(pageSize: 1000), CipherSettings(pageSize: 256), CipherSettings(kdfIterations: 0)] {
            #expect(try reason(key: .passphrase("p"), settings: bad) == .unusableSettings)
        }
        try database.openVerified()
        try database.rotateKey(to: .testing(3))
        #expect(try database.integers("PRAGMA page_size") == [8192])
        #expect(try database.integers("SELECT count(*) FROM t") == [100])
    }

    @Test func temporaryTablesStayInMemory() throws {
        let database = try Database.testing(directory.file("db"))
        #expect(try database.integers("PRAGMA temp_store") == [2])
    }

    @Test func setKeyRefusesWithinATransactionAndEmpty() throws {
        let database = Database(path: directory.file("db"))
        database.open()
        database.beginImmediateTransaction()
        #expect(!database.setKey("p"))
        #expect(!database.isOpen)
        database.open()
        #expect(!database.setKey(""))
        #expect(!database.isOpen)
        #expect(!database.executeStatements("CREATE TABLE t (a)"))
    }

    @Test func rawKeyLiteralAsInFMDB() throws {
        try Database.testing(directory.file("db"), key: 0xAB).fill(rows: 4)
        let database = Database(path: directory.file("db"))
        database.open()
        #expect(database.setKey("x'" + String(repeating: "ab", count: 32) + "'"))
        #expect(try database.integers("SELECT count(*) FROM t") == [4])
    }
}

extension Database {
    fileprivate func openAndRead() throws {
        try openVerified()
        _ = try integers("SELECT count(*) FROM sqlite_schema")
    }

    /// The files beside the store have longer names.
    @Test(.enabled(if: isEncrypting, "for a store with a key"))
    func aNameWithoutRoom() throws {
        let directory = try TemporaryDirectory()
        for (count, fits) in [(243, true), (244, false)] {
            let path = directory.file(String(repeating: "n", count: count))
            func open() throws -> Bool { try Database.testing(path).close() }
            if fits {
                #expect(try open())
            } else {
                let error = #expect(throws: DatabaseError.self) { _ = try open() }
                #expect(error?.message.contains("Give it a shorter name") == true, "\(String(describing: error))")
            }
        }
    }
}
