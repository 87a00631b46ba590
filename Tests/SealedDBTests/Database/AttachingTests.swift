import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct AttachingTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func plain(_ name: String) throws -> Database {
        let database = Database(path: directory.file(name))
        database.open()
        try database.fill(rows: 5)
        return database
    }

    private func reason(_ body: () throws -> Void) -> DatabaseError.Reason? {
        do {
            try body()
            return nil
        } catch {
            return (error as? DatabaseError)?.reason
        }
    }

    @Test(arguments: FixtureKey.allCases, [true, false])
    func withAKeyOfItsOwn(key: FixtureKey, mainIsSealed: Bool) throws {
        let main = try mainIsSealed ? Database.testing(directory.file("main")) : plain("main")
        if mainIsSealed { try main.fill(rows: 5) }
        // One that is made now, and one that the stock shell made.
        try main.attach(directory.file("new"), as: "new one", key: key.key())
        #expect(try directory.bytes("new").count == 4096)
        try FixtureFormat.current.make(directory.file("old"), key: key)
        try main.attach(directory.file("old"), as: "old", key: key.key())
        try main.executeUpdate(
            "CREATE TABLE \"new one\".t AS SELECT * FROM old.t UNION ALL SELECT * FROM main.t",
            values: nil
        )
        #expect(try main.integers("SELECT count(*) FROM \"new one\".t JOIN old.t USING (id)") == [45])
        try main.detach("new one")
        try main.detach("old")
        #expect(reason { try main.detach("old") } != nil)
        main.close()
        let sql = "\(key.pragma) SELECT count(*) FROM t;"
        #expect(try StockShell.run(directory.file("new"), sql) == ["45"])
        #expect(try directory.bytes("new").range(of: Data("secret row".utf8)) == nil)
    }

    /// Nobody takes the file from under its user.
    @Test func anAttachedStoreIsInUse() throws {
        let main = try Database.testing(directory.file("main"))
        let other = directory.file("other")
        try main.attach(other, as: "Other", key: .testing(2))
        #expect(reason { _ = try UsageLock.exclusive(other, timeout: 0) } == .busy)
        try main.detach("other")
        try UsageLock.exclusive(other, timeout: 0).release()
    }

    @Test func transactionsAcrossStores() throws {
        let main = try Database.testing(directory.file("main"))
        try main.fill(rows: 5)
        try main.attach(directory.file("other"), as: "o", key: .testing(2))
        try main.executeUpdate("CREATE TABLE o.u (a)", values: nil)
        #expect(main.beginImmediateTransaction())
        try main.executeUpdate("INSERT INTO o.u SELECT id FROM t", values: nil)
        try main.executeUpdate("DELETE FROM t", values: nil)
        #expect(main.rollback())
        #expect(try main.integers("SELECT (SELECT count(*) FROM o.u), count(*) FROM t") == [0])
        #expect(main.beginImmediateTransaction())
        try main.executeUpdate("INSERT INTO o.u SELECT id FROM t", values: nil)
        try main.executeUpdate("DELETE FROM t", values: nil)
        #expect(main.commit())
        main.close()
        #expect(try Database.testing(directory.file("main")).integers("SELECT count(*) FROM t") == [0])
        #expect(try Database.testing(directory.file("other"), key: 2).integers("SELECT count(*) FROM u") == [5])
    }

    @Test func nothingIsInheritedOrPlaintextByAccident() throws {
        let main = try Database.testing(directory.file("main"))
        #expect(reason { try main.attach(directory.file("new"), as: "n") } == .keyRequired)
        try Database.testing(directory.file("sealed")).close()
        #expect(reason { try main.attach(directory.file("sealed"), as: "s") } == .keyRequired)
        #expect(reason { try main.attach(directory.file("sealed"), as: "s", key: .testing(2)) } == .wrongKey)
        try plain("plain").close()
        let before = try directory.bytes("plain")
        #expect(reason { try main.attach(directory.file("plain"), as: "p", key: .testing(1)) } == .plaintext)
        #expect(try directory.bytes("plain") == before)
        // Asked for, and there already.
        try main.attach(directory.file("plain"), as: "p")
        #expect(try main.integers("SELECT count(*) FROM p.t") == [5])
        try main.attach(":memory:", as: "m")
        try main.attach("", as: "e")
        #expect(main.executeStatements("CREATE TABLE m.t (a); CREATE TABLE e.t (a)"))
        try main.attach(directory.file("sealed"), as: "s", key: main.configuration.key)
        #expect(directory.namesOfFiles == ["main", "plain", "sealed"])
    }

    /// A store that is attached with a key leaves the rules of the main one as they are.
    @Test func theRulesOfTheMainStoreStay() throws {
        let main = try Database.testing(directory.file("main"))
        try main.attach(directory.file("other"), as: "other", key: .testing(2))
        for sql: SQL in [
            "PRAGMA main.rekey = 'x'", "PRAGMA other.rekey = 'x'", "PRAGMA other.cipher_page_size = 1024",
        ] {
            let error = #expect(throws: DatabaseError.self) { try main.executeUpdate(sql) }
            #expect(error?.reason == .notAllowed, "\(String(describing: error))")
        }
        #expect(main.connection?.guardRules?.allowsCipherStatements == false)
    }

    @Test func whatCannotBeAttached() throws {
        let main = try Database.testing(directory.file("main"))
        try FixtureFormat.olderFormats[2].make(directory.file("old"), key: .raw)
        #expect(reason { try main.attach(directory.file("old"), as: "o", key: FixtureKey.raw.key()) } == .olderFormat)
        #expect(reason { try main.attach(directory.file("no/where"), as: "o", key: .testing(1)) } != nil)
        #expect(reason { try main.attach("a\0b", as: "o", key: .testing(1)) } == .misuse)
        #expect(main.beginImmediateTransaction())
        #expect(reason { try main.attach(directory.file("new"), as: "n", key: .testing(1)) } == .misuse)
        #expect(main.rollback())
        var configuration = Configuration(key: try .testing(1))
        configuration.createsFile = false
        let strict = Database(path: directory.file("main"), configuration: configuration)
        try strict.openVerified()
        #expect(reason { try strict.attach(directory.file("new"), as: "n", key: .testing(1)) } == .noSuchFile)
        #expect(!directory.names.contains("new"))
        // A name in SQL's own characters is only a name, and "file:" only a path.
        try main.attach(directory.file("new"), as: "x\"; --", key: .testing(1))
        #expect(FileManager.default.currentDirectoryPath != directory.path)
        #expect(reason { try main.attach("file:no/where?key=", as: "f", key: .testing(1)) } != nil)
    }

    /// With the same key and salt, pages of one store would be accepted at the same place in another.
    @Test(arguments: [FixtureKey.passphrase, .raw])
    func saltsOfTheirOwn(key: FixtureKey) throws {
        let main = Database(path: directory.file("main"), configuration: Configuration(key: try key.key()))
        try main.openVerified()
        try main.fill(rows: 40)
        let mainKey = try #require(main.configuration.key)
        for (name, key) in [("first", mainKey), ("second", try key.key())] {
            try main.attach(directory.file(name), as: name, key: key)
            try main.executeUpdate("CREATE TABLE \(raw: name).t AS SELECT * FROM main.t", values: nil)
        }
        main.close()
        try StoreBackup(path: directory.file("main"), key: mainKey, to: directory.file("backup")).run()
        let names = ["main", "first", "second", "backup"]
        #expect(Set(try names.map { try directory.bytes($0).prefix(16) }).count == names.count)

        for name in names.dropFirst() {
            var bytes = try directory.bytes("main")
            bytes.replaceSubrange(4096..<8192, with: try directory.bytes(name)[4096..<8192])
            try directory.write("mixed", bytes)
            let mixed = Database(path: directory.file("mixed"), configuration: Configuration(key: mainKey))
            #expect(mixed.open())
            #expect(reason { _ = try mixed.integers("SELECT count(*) FROM t") } == .damaged)
            mixed.close()
        }
    }

    /// The tables of an encrypted file must not be sorted on disk, whatever main is.
    @Test func temporaryTablesStayInMemory() throws {
        let main = try plain("main")
        #expect(main.executeStatements("PRAGMA temp_store = FILE"))
        #expect(reason { try main.attach(directory.file("new"), as: "n", key: .testing(1)) } == .notAllowed)
        #expect(main.executeStatements("PRAGMA temp_store = MEMORY"))
        try main.attach(directory.file("new"), as: "n", key: .testing(1))
        #expect(!main.executeStatements("PRAGMA temp_store = FILE"))
    }

    /// SQLite's pragma without a schema is for main alone.
    @Test func attachedFilesAreSyncedAsMainIs() throws {
        try Database.testing(directory.file("other")).close()
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        for (mode, number) in [(nil, 3), (.normal, 1), (.off, 0)] as [(Configuration.Synchronous?, Int)] {
            configuration.synchronous = mode
            let database = Database(path: directory.file("main"), configuration: configuration)
            try database.openVerified()
            try database.attach(directory.file("other"), as: "o", key: configuration.key)
            #expect(try database.integers("PRAGMA o.synchronous") == [number])
            #expect(database.executeStatements("DETACH o; ATTACH '\(raw: directory.file("new"))' AS p"))
            #expect(try database.integers("PRAGMA p.synchronous") == [number])
            database.close()
        }
    }

    /// What a failed COMMIT leaves is not always nothing.
    @Test func whatAFailedCommitLeaves() throws {
        let database = try Database.testing(directory.file("main"))
        defer { database.close() }
        let connection = try #require(database.connection)
        #expect(connection.stateAfterFailedCommit(SQLITE_FULL) == nil)
        #expect(connection.stateAfterFailedCommit(1290)?.contains("The transaction is stored") == true)
        // SQLITE_IOERR_FSYNC
        for (mode, isInDoubt) in [("delete", false), ("truncate", true), ("persist", true), ("wal", true)] {
            #expect(try database.executeQuery(SQL(raw: "PRAGMA journal_mode = \(mode)")).scalar(String.self) == mode)
            let state = connection.stateAfterFailedCommit(1034)
            let text = mode == "wal" ? "may be stored, now or after a crash" : "may be stored: what"
            #expect(
                (state?.contains(text) ?? false) == isInDoubt,
                "\(mode): \(state ?? "nothing")"
            )
            // SQLITE_IOERR_TRUNCATE
            #expect((connection.stateAfterFailedCommit(1546) != nil) == (mode != "wal"))
        }
        #expect(database.executeStatements("PRAGMA journal_mode = delete; PRAGMA locking_mode = exclusive"))
        #expect(connection.stateAfterFailedCommit(1034) != nil)
        #expect(database.executeStatements("PRAGMA locking_mode = normal; SELECT count(*) FROM sqlite_schema"))
        try Database.testing(directory.file("other")).close()
        try database.attach(directory.file("other"), as: "o", key: isEncrypting ? .testing(1) : nil)
        #expect(connection.stateAfterFailedCommit(SQLITE_FULL)?.contains("one of them may be stored") == true)
    }

    /// A statement that only reads has nothing that may be stored.
    @Test func whatAFailedReadLeaves() throws {
        let database = try Database.testing(directory.file("main"))
        defer { database.close() }
        #expect(database.executeStatements("PRAGMA journal_mode = persist; CREATE TABLE t (a)"))
        // SQLITE_IOERR_FSYNC
        let failure = DatabaseError(extendedCode: 1034, message: "of the disk")
        try database.addFunction("fail") { _ in throw failure }
        for (sql, mayBeStored) in [("SELECT fail()", false), ("INSERT INTO t VALUES (fail())", true)] {
            let error = #expect(throws: DatabaseError.self) {
                let rows = try database.executeQuery(sql, values: nil)
                while try rows.nextWithError() {}
            }
            #expect(error?.extendedCode == 1034)
            #expect(error?.message.contains("may be stored") == mayBeStored, "\(sql): \(error as Any)")
        }
    }

    /// A lock is let go with its file, and not before.
    @Test func whatStaysAttachedStaysLocked() throws {
        let main = try Database.testing(directory.file("main"))
        for name in ["a", "b"] { try main.attach(directory.file(name), as: name, key: .testing(1)) }
        try main.detach("a")
        try main.executeUpdate("CREATE TABLE b.t (x)")
        try KeyRotation(path: directory.file("a"), from: .testing(1), to: .testing(2)).run()
        let rotation = KeyRotation(
            path: directory.file("b"),
            from: try .testing(1),
            to: try .testing(2),
            busyTimeout: .zero
        )
        #expect(reason { try rotation.run() } == .busy)
        #expect(main.executeStatements("DETACH b"))
        try rotation.run()
    }

    @Test func whoLooksWaitsForNoWriter() throws {
        let path = directory.file("db")
        let writer = try Database.testing(path)
        try writer.executeUpdate("CREATE TABLE t (a)")
        var opening = StoreOpening(path: path, key: try .testing(1), settings: CipherSettings(), takesLock: false)
        opening.busyTimeout = 0
        let looker = try opening.open()
        defer { looker.close() }
        #expect(try looker.whileNobodyWrites { 1 } == 1)
        #expect(writer.beginImmediateTransaction())
        try writer.executeUpdate("INSERT INTO t VALUES (1)")
        #expect(try looker.whileNobodyWrites { 1 } == nil)
        #expect(writer.commit())
        #expect(try looker.whileNobodyWrites { 1 } == 1)
    }

    /// What it attaches is there already, as its own file is.
    @Test func aReadOnlyDatabaseMakesNoFile() throws {
        let path = directory.file("read")
        try Database.testing(path).close()
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.isReadOnly = true
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        let error = #expect(throws: DatabaseError.self) {
            try database.attach(directory.file("absent"), as: "o", key: isEncrypting ? .testing(2) : nil)
        }
        #expect(error?.reason == .noSuchFile, "\(error as Any)")
        #expect(!directory.names.contains("absent"))
        try Database.testing(directory.file("there"), key: 2).fill(rows: 3)
        try database.attach(directory.file("there"), as: "o", key: isEncrypting ? .testing(2) : nil)
        #expect(try database.integers("SELECT count(*) FROM o.t") == [3])
    }
}
