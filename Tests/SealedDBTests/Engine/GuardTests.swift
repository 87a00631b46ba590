import Foundation
import Testing

@testable import SealedDB

/// SQL that would let plaintext or a key out, or spoil the store, is refused before SQLCipher sees it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct GuardTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// The refusal says which pragma it is about, and what to do instead.
    @Test(arguments: ["key", "hexrekey", "cipher_migrate", "cipher_page_size", "kdf_iter", "temp_store"])
    func refusalsSayWhatTheyAreAbout(pragma: String) {
        let text = GuardRules(allowsCipherStatements: false).refusal(ofPragma: pragma, value: "1")
        #expect(text?.contains(pragma) == true, "\(text ?? "not refused")")
    }

    private func expectRefusal(_ database: Database, _ sql: String, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(!database.executeStatements(sql), "\(sql)", sourceLocation: sourceLocation)
        let error = database.lastError() as? DatabaseError
        #expect(error?.reason == .notAllowed, "\(sql): \(database.lastError())", sourceLocation: sourceLocation)
        #expect(error?.code == SQLITE_AUTH, sourceLocation: sourceLocation)
        #expect(error?.description.contains("hush") == false, sourceLocation: sourceLocation)
    }

    /// The copy would get the key of main, or none.
    @Test(arguments: [true, false]) func aCopyOfAnAttachedDatabase(mainHasKey: Bool) throws {
        try Database.testing(directory.file("other"), key: 2).fill(rows: 5)
        let main = mainHasKey ? try Database.testing(directory.file("db")) : Database(path: ":memory:")
        if !mainHasKey { try main.openVerified() }
        defer { main.close() }
        try main.attach(directory.file("other"), as: "o", key: .testing(2))
        for schema in ["o", "\"o\"", "[o]", "'o'"] {
            expectRefusal(main, "VACUUM \(schema) INTO '\(directory.file("copy"))'")
        }
        #expect(!directory.names.contains("copy"))
        #expect(main.executeStatements("VACUUM o; VACUUM main INTO '\(raw: directory.file("copy"))'"))
    }

    @Test func settingsAndKeysAreRefused() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 10)
        let before = try database.integers("PRAGMA kdf_iter") + database.integers("PRAGMA cipher_use_hmac")
        for sql in [
            "PRAGMA temp_store = FILE", "PRAGMA temp_store = 1", "PRAGMA temp_store(0)",
            "PRAGMA main.temp_store=default",
            "PRAGMA temp_store_directory = '/tmp'", "PRAGMA key = 'hush'", "PRAGMA rekey = 'hush'",
            "PRAGMA hexrekey = 'aa'", "EXPLAIN PRAGMA rekey = 'hush'", "PRAGMA cipher_use_hmac = off",
            "pragma CIPHER_use_HMAC(0)", "PRAGMA \"cipher_hmac_algorithm\" = HMAC_SHA1", "EXPLAIN PRAGMA kdf_iter = 5",
            "PRAGMA cipher_compatibility = 3", "PRAGMA page_size = 8192", "PRAGMA cipher_page_size = 8192",
            "PRAGMA cipher_plaintext_header_size = 32", "PRAGMA cipher_default_page_size = 8192",
            "PRAGMA cipher_log = '\(directory.file("log"))'", "PRAGMA cipher_profile = '\(directory.file("log"))'",
            "PRAGMA cipher_log_level = TRACE", "PRAGMA cipher_memory_security = on", "PRAGMA cipher_migrate",
            "PRAGMA cipher_default_compatibility = 1", "PRAGMA cipher_salt = \"x'00'\"", "PRAGMA kdf_iter = 5",
            "ATTACH '\(directory.file("other"))' AS o KEY 'hush'", "ATTACH '\(directory.file("other"))' AS o KEY ''",
            "ATTACH 'file:\(directory.file("other"))?key=' AS o", "VACUUM INTO 'file:\(directory.file("other"))?key='",
            "SELECT 1; PRAGMA rekey = 'hush'", "\u{FEFF}ATTACH '\(directory.file("other"))' AS o KEY ''",
            "SELECT 1;\u{FEFF}/**/\u{FEFF}ATTACH '\(directory.file("other"))' AS o KEY 'hush'",
            "ATTACH '\(directory.file("other"))' AS ?1KEY ''", "ATTACH '\(directory.file("other"))' AS $a(x)KEY 'hush'",
            "ATTACH '\(directory.file("other"))'AS[o]KEY''", "\u{FEFF}PRAGMA rekey = 'hush'",
            "/*/*/PRAGMA \u{FEFF}key = 'hush'",
        ] {
            expectRefusal(database, sql)
        }
        #expect(directory.namesOfFiles == ["db"])
        #expect(try database.integers("PRAGMA kdf_iter") + database.integers("PRAGMA cipher_use_hmac") == before)
        try database.fill(rows: 10)
        database.close()
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [20])
    }

    @Test func otherSQLIsNot() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 10)
        for sql in [
            "PRAGMA temp_store", "PRAGMA temp_store = MEMORY", "PRAGMA temp_store = 2", "PRAGMA cipher_settings",
            "PRAGMA cipher_version", "PRAGMA cipher_integrity_check", "PRAGMA page_size", "PRAGMA cipher_log_level",
            "PRAGMA foreign_keys = ON", "PRAGMA journal_mode = WAL", "PRAGMA user_version = 3", "VACUUM",
            "ATTACH ':memory:' AS m", "ATTACH '' AS e", "ATTACH '\(directory.file("o"))' AS o",
            "CREATE TABLE o.t AS SELECT * FROM t", "VACUUM INTO '\(directory.file("copy"))'",
            "CREATE TEMP TABLE x AS SELECT * FROM t ORDER BY body",
        ] {
            #expect(database.executeStatements(sql), "\(sql): \(database.lastErrorMessage())")
        }
        database.close()
        // Without KEY it is the same key, and never plaintext.
        for name in ["o", "copy"] {
            #expect(try Database.testing(directory.file(name)).integers("SELECT count(*) FROM t") == [10])
        }
    }

    /// An attached file, and what VACUUM INTO writes, would get the default settings: unreadable, and with larger pages
    /// partly plaintext.
    @Test func nothingInheritsOtherSettings() throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = CipherSettings(pageSize: 65536)
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 10)
        expectRefusal(database, "VACUUM INTO '\(directory.file("copy"))'")
        expectRefusal(database, "ATTACH '\(directory.file("o"))' AS o")
        #expect(throws: DatabaseError.self) {
            try database.executeUpdate("ATTACH ? AS o", values: [directory.file("o")])
        }
        #expect(database.executeStatements("VACUUM; ATTACH ':memory:' AS m"))
        #expect(directory.namesOfFiles == ["db"])
    }

    @Test func permittedByTheConfiguration() throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.allowsCipherStatements = true
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        let path = directory.file("other")
        #expect(database.executeStatements("ATTACH '\(raw: path)' AS o KEY 'hush'; CREATE TABLE o.t (a); DETACH o"))
        expectRefusal(database, "PRAGMA temp_store = FILE")
        expectRefusal(database, "PRAGMA cipher_log = '\(directory.file("log"))'")
        let other = Database(path: path, configuration: Configuration(key: try .passphrase("hush")))
        try other.openVerified()
        #expect(try other.integers("SELECT count(*) FROM t") == [0])
    }

    /// As in FMDB's samples: the key comes by SQL, on a connection that has none yet.
    @Test func guardedOnceAKeyCameBySQL() throws {
        let database = Database(path: directory.file("db"))
        database.open()
        #expect(database.executeStatements("PRAGMA key = 'hush'; CREATE TABLE t (a)"))
        expectRefusal(database, "PRAGMA temp_store = FILE")
        expectRefusal(database, "PRAGMA cipher_use_hmac = off")
        expectRefusal(database, "PRAGMA key = 'other'")
        database.close()

        let plain = Database(path: directory.file("plain"))
        plain.open()
        try plain.fill(rows: 3)
        #expect(plain.executeStatements("PRAGMA temp_store = FILE"))
        let attach = "ATTACH '\(directory.file("sealed"))' AS s KEY 'hush'"
        expectRefusal(plain, attach)
        #expect(plain.executeStatements("PRAGMA temp_store = MEMORY; \(raw: attach)"))
        expectRefusal(plain, "PRAGMA temp_store = FILE")
        #expect(plain.executeStatements("ATTACH '\(raw: directory.file("second"))' AS s2 KEY 'hush'"))
    }

    /// Were a key not seen in an ATTACH: the file itself is looked at.
    @Test func noPlaintextFileStaysAttached() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 3)
        let connection = try #require(database.connection)
        let attach = "ATTACH '\(directory.file("plain"))' AS p KEY ''"
        try connection.unguarded { () throws(DatabaseError) in try connection.run(attach) }
        let error = #expect(throws: DatabaseError.self) { try connection.requireSealedAttachments() }
        #expect(error?.reason == .notAllowed && error?.message.contains("detached again") == true)
        #expect(try database.executeQuery("SELECT name FROM pragma_database_list").all(String.self) == ["main"])

        // The statement that attaches it fails, however it came to be compiled.
        let compiled = try connection.unguarded { () throws(DatabaseError) in try connection.prepare(attach) }
        let refusal = #expect(throws: DatabaseError.self) { try compiled.step() }
        #expect(refusal?.reason == .notAllowed, "\(refusal as Any)")
        compiled.close()
        #expect(try database.executeQuery("SELECT name FROM pragma_database_list").all(String.self) == ["main"])

        // While a transaction has it, it cannot be detached.
        #expect(database.beginTransaction())
        try connection.unguarded { () throws(DatabaseError) in
            try connection.run(attach)
            try connection.run("CREATE TABLE p.made (a)")
        }
        #expect(throws: DatabaseError.self) { try connection.requireSealedAttachments() }
        #expect(!database.executeStatements("INSERT INTO p.made SELECT body FROM t"))
        #expect((database.lastError() as? DatabaseError)?.reason == .notAllowed)
        #expect(database.rollback())
        #expect(try database.executeQuery("SELECT name FROM pragma_database_list").all(String.self) == ["main"])
        #expect(try directory.bytes("plain").isEmpty)

        // What the library was told to attach in plaintext is not touched.
        let plain = Database(path: directory.file("plain"))
        plain.open()
        try plain.fill(rows: 1)
        plain.close()
        try database.attach(directory.file("plain"), as: "Plain")
        #expect(
            database.executeStatements(
                "ATTACH '\(raw: directory.file("other"))' AS o; CREATE TABLE o.t AS SELECT * FROM t"
            )
        )
        #expect(try database.integers("SELECT count(*) FROM plain.t") == [1])

        // That holds for the file, and not for another one under its name.
        #expect(database.executeStatements("DETACH plain"))
        #expect(connection.plaintextSchemas.isEmpty)
        try connection.unguarded { () throws(DatabaseError) in
            try connection.run(attach.replacingOccurrences(of: " p ", with: " plain "))
        }
        #expect(throws: DatabaseError.self) { try connection.requireSealedAttachments() }
    }

    /// SQLite has the last word about what a statement is.
    @Test func whatIsReadOtherwiseIsRefused() throws {
        let database = try Database.testing(directory.file("db"))
        let connection = try #require(database.connection)
        let other = Array("SELECT 1".utf8).withUnsafeBufferPointer { SQLStatementText($0) }
        let outer = connection.statementGuard.begin(other)
        #expect(connection.statementGuard.refuses(RawEngine.attach, "x", nil, in: nil))
        #expect(connection.statementGuard.refuses(RawEngine.pragma, "Key", "hush", in: nil))
        #expect(!connection.statementGuard.refuses(RawEngine.pragma, "page_size", nil, in: nil))
        #expect(connection.statementGuard.takeRefusal()?.message.contains("hush") == false)
        #expect(connection.statementGuard.end(outer).isSuperset(of: [.attach, .pragma]))

        // Also before there is a key, and with it rules.
        let plain = Database(path: directory.file("plain"))
        plain.open()
        let unruled = try #require(plain.connection)
        #expect(unruled.guardRules == nil)
        let none = unruled.statementGuard.begin(other)
        #expect(unruled.statementGuard.refuses(RawEngine.pragma, "Key", "hush", in: nil))
        #expect(unruled.statementGuard.refuses(RawEngine.attach, "x", nil, in: nil))
        #expect(unruled.statementGuard.end(none).isSuperset(of: [.attach, .pragma]))
    }

    /// They would reach the stores of all others in the process. The values are those that are there.
    @Test(arguments: [
        "PRAGMA cipher_default_use_hmac = ON", "PRAGMA cipher_default_page_size(4096)",
        "EXPLAIN PRAGMA main.\"CIPHER_default_KDF_iter\" = 256000", "pragma cipher_default_plaintext_header_size = 0",
        "PRAGMA temp.cipher_default_compatibility = 4", "PRAGMA cipher_default_hmac_algorithm = HMAC_SHA512",
        "PRAGMA cipher_log = off", "PRAGMA cipher_log_level = NONE", "PRAGMA cipher_log_source(ANY)",
        "PRAGMA cipher_profile = off", "PRAGMA cipher_hmac_salt_mask = \"x'3a'\"", "PRAGMA cipher_memory_security = 0",
    ])
    func settingsOfTheProcessAreRefused(sql: String) throws {
        let plain = Database(path: directory.file("plain"))
        plain.open()
        expectRefusal(plain, sql)
        // A key of an attached file comes with the library, and permits no more.
        try plain.attach(directory.file("other"), as: "o", key: .testing(2))
        expectRefusal(plain, sql)
        expectRefusal(try .testing(directory.file("db")), sql)
        // Reading is not.
        let name = try #require(sql.split { " =(".contains($0) }.first { $0.lowercased().contains("cipher_") })
        #expect(plain.executeStatements("PRAGMA \(raw: name)"))

        var configuration = Configuration()
        configuration.allowsCipherStatements = true
        let permitted = Database(path: nil, configuration: configuration)
        permitted.open()
        let isFile = sql.hasPrefix("PRAGMA cipher_log =") || sql.hasPrefix("PRAGMA cipher_profile")
        #expect(permitted.executeStatements(sql) != isFile)
    }

    /// Were the process's defaults changed by others in between: what is attached is looked at.
    @Test func noFileWithOtherSettingsStaysAttached() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 3)
        let connection = try #require(database.connection)
        try connection.unguarded { () throws(DatabaseError) in
            try connection.run("ATTACH '\(directory.file("other"))' AS o")
            try connection.run("PRAGMA o.cipher_use_hmac = off")
        }
        let error = #expect(throws: DatabaseError.self) { try connection.requireSealedAttachments() }
        #expect(
            error?.reason == .notAllowed && error?.message.contains("cipher_use_hmac = 0") == true,
            "\(error as Any)"
        )
        #expect(try database.executeQuery("SELECT name FROM pragma_database_list").all(String.self) == ["main"])
        #expect(try directory.bytes("other").isEmpty)
    }

    /// The application's authorizer comes second, and cannot allow what is refused.
    @Test func besideAnAuthorizer() throws {
        let database = try Database.testing(directory.file("db"))
        var count = 0
        database.authorizer = { _ in
            count += 1
            return .allow
        }
        expectRefusal(database, "PRAGMA temp_store = FILE")
        #expect(database.executeStatements("CREATE TABLE t (a)"))
        #expect(count > 0)
        database.authorizer = nil
        expectRefusal(database, "PRAGMA cipher_use_hmac = off")
        database.close()
        database.open()
        expectRefusal(database, "PRAGMA cipher_use_hmac = off")
    }

    @Test func plaintextDatabasesAreTheirOwnersBusiness() throws {
        let plain = Database(path: directory.file("plain"))
        plain.open()
        let sql = "CREATE TABLE t (a); PRAGMA temp_store = FILE; PRAGMA page_size = 8192; VACUUM"
        #expect(plain.executeStatements(sql))
        #expect(try plain.integers("PRAGMA page_size") == [8192])
    }
}
