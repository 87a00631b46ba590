import Foundation
import SealedDB
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StoreConversionTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ name: String, key: Key?, _ settings: CipherSettings = .init()) throws -> Database {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        return database
    }

    @discardableResult
    private func makePlain(encoding: String = "UTF-8", autoVacuum: Int = 0) throws -> [String] {
        let plain = try open("plain", key: nil)
        try RichDatabase.fill(plain, encoding: encoding, autoVacuum: autoVacuum)
        defer { plain.close() }
        return try RichDatabase.contents(of: plain)
    }

    /// What is told of a copy row by row only grows.
    @Test func progressOfRows() throws {
        let plain = try open("plain", key: nil)
        try plain.fill(rows: 6000)
        plain.close()
        var told: [Int64] = []
        try StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: .testing(1))
            .run { state in if state.phase == .copy { told.append(state.completedPages) } }
        #expect(told.count > 4 && told == told.sorted(), "\(told)")
        // The same number may be told again, so that the caller can stop while large rows are copied.
        #expect(Set(told).count > 4, "\(told)")
    }

    /// Plaintext in, every format out and back in: nothing may be lost on the way.
    @Test(arguments: FixtureFormat.all)
    func thereAndBack(format: FixtureFormat) throws {
        let contents = try makePlain()
        let key = try Key.testing(1)
        try StoreEncryption(
            plaintextPath: directory.file("plain"),
            path: directory.file("db"),
            key: key,
            cipherSettings: format.settings
        ).run()
        #expect(try directory.bytes("db").range(of: Data("secret row".utf8)) == nil)
        let sealed = try open("db", key: key, format.settings)
        #expect(try RichDatabase.contents(of: sealed) == contents)
        sealed.close()

        // A raw key has no rounds.
        if !["SQLCipher 4", "few rounds"].contains(format.testDescription) {
            let isUnauthenticated = !format.isAuthenticated
            try StoreMigration(path: directory.file("db"), key: key, allowsUnauthenticated: isUnauthenticated).run()
        }
        let migrated = try open("db", key: key)
        #expect(try RichDatabase.contents(of: migrated) == contents)
        #expect(try migrated.integers("PRAGMA page_size") == [4096])
        migrated.close()

        let decryption = StoreDecryption(path: directory.file("db"), key: key, plaintextPath: directory.file("again"))
        try decryption.run()
        let again = try open("again", key: nil)
        #expect(try RichDatabase.contents(of: again) == contents)
        try RichDatabase.use(again)
        again.close()
        let used = try open("db", key: key)
        try RichDatabase.use(used)
        #expect(try StockShell.run(directory.file("again"), "SELECT count(*) FROM loose;") == ["5"])
        #expect(directory.namesOfFiles == ["again", "db", "plain"])
    }

    /// Rows that are older than a CHECK constraint are no damage, and are copied.
    @Test(arguments: FixtureFormat.all)
    func rowsThatViolateAConstraint(format: FixtureFormat) throws {
        let plain = try open("plain", key: nil)
        #expect(
            plain.executeStatements(
                "CREATE TABLE c (a CHECK (a > 0)); PRAGMA ignore_check_constraints = ON; INSERT INTO c VALUES (-7)"
            )
        )
        plain.close()
        let (key, path) = (try Key.testing(1), directory.file("db"))
        let settings = format.settings
        try StoreEncryption(plaintextPath: directory.file("plain"), path: path, key: key, cipherSettings: settings)
            .run()
        #expect(try open("db", key: key, settings).integers("SELECT a FROM c") == [-7])
        try StoreDecryption(path: path, key: key, cipherSettings: settings, plaintextPath: directory.file("again"))
            .run()
        #expect(try open("again", key: nil).integers("SELECT a FROM c") == [-7])
        guard !["SQLCipher 4", "few rounds"].contains(format.testDescription) else { return }
        try StoreMigration(path: path, key: key, allowsUnauthenticated: !format.isAuthenticated).run()
        #expect(try open("db", key: key).integers("SELECT a FROM c") == [-7])
    }

    @Test(arguments: [("UTF-16le", 0), ("UTF-16be", 1), ("UTF-8", 2)])
    func encodingAndAutoVacuum(encoding: String, autoVacuum: Int) throws {
        let contents = try makePlain(encoding: encoding, autoVacuum: autoVacuum)
        #expect(contents.contains("encoding \(encoding)") && contents.contains("auto_vacuum \(autoVacuum)"))
        let encryption = StoreEncryption(
            plaintextPath: directory.file("plain"),
            path: directory.file("db"),
            key: try .testing(1)
        )
        try encryption.run()
        #expect(try RichDatabase.contents(of: open("db", key: .testing(1))) == contents)
    }

    /// SQLite takes a mark of the byte order away from UTF-16 that it is given, also where it is a part of the text.
    @Test(arguments: ["UTF-16le", "UTF-16be", "UTF-8"]) func marksOfTheByteOrder(encoding: String) throws {
        let plain = Database(path: directory.file("plain"))
        try plain.openVerified()
        let made = plain.executeStatements(
            """
            PRAGMA encoding = '\(raw: encoding)';
            CREATE TABLE t (a, PRIMARY KEY (a)) WITHOUT ROWID;
            INSERT INTO t VALUES (char(0xfeff)), (char(0xfeff) || 'a'), (char(0xfffe) || 'b'), (char(0xfeff, 0xfeff)), (''),
                (char(0xfeff, 0xfffe) || x'00'), ('c' || char(0xfeff)), (x'fffe'), (x'feff00');
            """
        )
        #expect(made)
        let texts: SQL = "SELECT group_concat(hex(a) || typeof(a)) FROM t"
        let before = try plain.stringForQuery(texts)
        plain.close()
        let key = try Key.testing(1)
        try StoreEncryption(plaintextPath: directory.file("plain"), path: directory.file("db"), key: key).run()
        #expect(try open("db", key: key).stringForQuery(texts) == before)
        let wider = CipherSettings(pageSize: 8192)
        try StoreMigration(path: directory.file("db"), key: key, from: .init(), to: wider).run()
        #expect(try open("db", key: key, wider).stringForQuery(texts) == before)
        let plaintextPath = directory.file("again")
        try StoreDecryption(path: directory.file("db"), key: key, cipherSettings: wider, plaintextPath: plaintextPath)
            .run()
        let again = Database(path: directory.file("again"))
        try again.openVerified()
        #expect(try again.stringForQuery(texts) == before)
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func migrationKeepsTheJournalModeAndChangesTheKey(mode: Configuration.JournalMode) throws {
        try FixtureFormat.olderFormats[2].make(directory.file("db"), key: .passphrase)
        let old = try open("db", key: FixtureKey.passphrase.key(), .sqlCipher3)
        let rows = try old.executeQuery("PRAGMA journal_mode = \(raw: mode.rawValue)", values: nil)
        #expect(rows.next())
        rows.close()
        old.close()
        let migration = StoreMigration(
            path: directory.file("db"),
            key: try FixtureKey.passphrase.key(),
            from: .sqlCipher3,
            newKey: try .testing(7)
        )
        #expect(try migration.plan().pageSize == 1024)
        var phases: [KeyRotation.Progress.Phase] = []
        let report = try migration.run { phases.append($0.phase) }
        #expect(report.pageSize == 4096)
        #expect(Set(phases) == [.copy, .verify, .structure, .compare, .sync, .swap])
        let new = try open("db", key: .testing(7))
        let found = try new.executeQuery("PRAGMA journal_mode", values: nil)
        #expect(found.next() && found.string(forColumnIndex: 0) == mode.rawValue)
        found.close()
        #expect(try new.integers("SELECT count(*) FROM t") == [40])
        new.close()
        #expect(directory.names == ["db"])
    }

    @Test func onlyRoundsDiffer() throws {
        let key = try Key.passphrase("p")
        try open("db", key: key, CipherSettings(kdfIterations: 5000)).fill(rows: 100)
        let migration = StoreMigration(
            path: directory.file("db"),
            key: key,
            from: CipherSettings(kdfIterations: 5000),
            to: CipherSettings(kdfIterations: 6000)
        )
        try migration.run()
        let store = try open("db", key: key, CipherSettings(kdfIterations: 6000))
        #expect(try store.integers("SELECT count(*) FROM t") == [100])
    }

    @Test func refusalsLeaveEverythingAlone() throws {
        try FixtureFormat.olderFormats[2].make(directory.file("db"), key: .raw)
        let before = try directory.bytes("db")
        let path = directory.file("db")
        func reason(_ migration: StoreMigration) -> DatabaseError.Reason? {
            do throws(DatabaseError) {
                try migration.run()
                return nil
            } catch {
                return error.reason
            }
        }
        let key = try FixtureKey.raw.key()
        #expect(try reason(StoreMigration(path: path, key: .testing(1))) == .wrongKey)
        #expect(reason(StoreMigration(path: path, key: key, from: .sqlCipher4, to: .sqlCipher2)) == .olderFormat)
        #expect(reason(StoreMigration(path: path, key: key, to: .sqlCipher3)) == .unusableSettings)
        #expect(reason(StoreMigration(path: path, key: key, to: CipherSettings(pageSize: 5))) == .unusableSettings)
        #expect(reason(StoreMigration(path: path + "x", key: key)) == .noSuchFile)
        struct Stop: Error {}
        #expect(throws: DatabaseError.self) { try StoreMigration(path: path, key: key).run { _ in throw Stop() } }
        let other = try open("db", key: key, .sqlCipher3)
        #expect(other.beginImmediateTransaction())
        #expect(reason(StoreMigration(path: path, key: key)) == .busy)
        #expect(other.rollback())
        other.close()
        #expect(throws: DatabaseError.self) {
            try StoreDecryption(path: path, key: key, cipherSettings: .sqlCipher3, plaintextPath: path).run()
        }
        #expect(throws: DatabaseError.self) {
            try StoreDecryption(path: path, key: .testing(1), plaintextPath: directory.file("plain")).run()
        }
        #expect(try directory.bytes("db") == before)
        #expect(directory.names == ["db"])
    }

    /// A view may call what only the application has.
    @Test func functionsOfTheApplicationInTheSchema() throws {
        let key = try Key.testing(1)
        let database = try open("db", key: key, .sqlCipher3)
        try database.fill(rows: 5)
        database.makeFunctionNamed("twice", arguments: 1) { [unowned database] context, _, values in
            database.resultLong(2 * database.valueLong(values[0]), context: context)
        }
        try database.executeUpdate("CREATE VIEW doubled AS SELECT twice(id) AS d FROM t", values: nil)
        database.close()
        try StoreMigration(path: directory.file("db"), key: key).run()
        #expect(try open("db", key: key).integers("SELECT count(*) FROM sqlite_schema WHERE name = 'doubled'") == [1])
    }

    /// Why copies are made row by row: what SQLCipher's own ways do, as its own shell shows.
    @Test func trapsOfTheOtherWays() throws {
        try makePlain()
        try StockShell.run(
            directory.file("plain"),
            "ATTACH '\(directory.file("exported"))' AS e KEY 'k'; SELECT sqlcipher_export('e');"
        )
        let exported = try open("exported", key: .passphrase("k"))
        #expect(try exported.integers("PRAGMA user_version") == [0])
        #expect(try exported.integers("PRAGMA application_id") == [0])
        exported.close()

        try FixtureFormat.oddSettings[1].make(directory.file("large"), key: .raw)
        try StockShell.run(
            directory.file("large"),
            """
            \(FixtureKey.raw.pragma) \(FixtureFormat.oddSettings[1].pragmas)
            VACUUM INTO '\(directory.file("vacuumed"))';
            """
        )
        let key = try FixtureKey.raw.key()
        for settings in [FixtureFormat.oddSettings[1].settings, .init()] {
            #expect(throws: DatabaseError.self) { try open("vacuumed", key: key, settings) }
        }
    }

    @Test func plaintextFileIsForItsOwnerAlone() throws {
        try Database.testing(directory.file("db")).fill(rows: 3)
        let decryption = StoreDecryption(
            path: directory.file("db"),
            key: try .testing(1),
            plaintextPath: directory.file("plain")
        )
        try decryption.run()
        var status = stat()
        stat(directory.file("plain"), &status)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(try directory.bytes("plain").prefix(15) == Data("SQLite format 3".utf8))
    }
}
