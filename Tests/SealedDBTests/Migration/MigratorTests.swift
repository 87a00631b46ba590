import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct MigratorTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func queue() throws -> DatabaseQueue {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.prepare = { db in try db.executeUpdate("PRAGMA foreign_keys = ON", values: nil) }
        return try DatabaseQueue(path: directory.file("db"), configuration: configuration)
    }

    private func migrator(_ count: Int) -> Migrator {
        var migrator = Migrator()
        for number in 0..<count { migrator.register("m\(number)", sql: "CREATE TABLE t\(number) (n); SELECT 1;") }
        return migrator
    }

    /// They would be changed a second time.
    @Test func filesThatAreAttachedAreNotChangedAgain() throws {
        let archive = Database(path: directory.file("archive"))
        try archive.openVerified()
        try archive.execute(script: "CREATE TABLE log (a)")
        archive.close()
        var configuration = Configuration()
        let path = directory.file("archive")
        configuration.prepare = { db in try db.executeUpdate("ATTACH \(path) AS arch") }
        let database = Database(path: directory.file("plain"), configuration: configuration)
        try database.openVerified()
        defer { database.close() }
        var migrator = Migrator()
        migrator.register("first", sql: "CREATE TABLE t (a); INSERT INTO arch.log VALUES (1)")
        try migrator.migrate(database)
        let error = #expect(throws: DatabaseError.self) { try migrator.hasSchemaChanges(in: database) }
        #expect(error?.reason == .notAllowed, "\(error as Any)")
        #expect(try database.integers("SELECT count(*) FROM arch.log") == [1])
    }

    /// The database in which migrations are only tried has no key, and its files would be plaintext.
    @Test(
        arguments: ["ATTACH 'FILE' AS other; CREATE TABLE other.log AS SELECT 'secret' AS a", "VACUUM INTO 'FILE'"],
        [true, false]
    )
    func migrationsThatAreOnlyTriedWriteNoFile(script: String, isPrepared: Bool) throws {
        let path = directory.file("other")
        let sql = SQL(raw: script.replacing("FILE", with: path))
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        if isPrepared { configuration.prepare = { db in try db.execute(script: sql) } }
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        defer { database.close() }
        var migrator = Migrator()
        migrator.register("first", sql: "CREATE TABLE t (a)")
        // VACUUM needs to be alone.
        if !isPrepared, script.hasPrefix("ATTACH") { migrator.register("second") { db in try db.execute(script: sql) } }
        try migrator.migrate(database)
        unlink(path)
        let result = Result { try migrator.hasSchemaChanges(in: database) }
        #expect(!FileManager.default.fileExists(atPath: path))
        guard isPrepared || script.hasPrefix("ATTACH") else { return #expect(try result.get() == false) }
        let error = #expect(throws: DatabaseError.self) { try result.get() }
        #expect(error?.reason == .notAllowed && error?.message.contains("only tried") == true, "\(error as Any)")
    }

    /// What is not recorded would be run again at the next start.
    @Test(arguments: [true, false]) func aMigrationThatTheStoreDoesNotRecord(isShadowed: Bool) throws {
        let queue = try queue()
        defer { queue.close() }
        var migrator = Migrator()
        migrator.register(
            "first",
            sql: """
                CREATE TABLE t1 (x); INSERT INTO t1 VALUES (1);
                CREATE TABLE sealeddb_migrations (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, checksum TEXT NOT NULL);
                """
        )
        try migrator.migrate(queue)
        migrator.register(
            "guard",
            sql: isShadowed
                ? "CREATE TEMP TABLE sealeddb_migrations AS SELECT * FROM main.sealeddb_migrations"
                : "CREATE TRIGGER g BEFORE INSERT ON sealeddb_migrations BEGIN SELECT RAISE(IGNORE); END"
        )
        migrator.register("double", sql: "UPDATE t1 SET x = x * 2")
        if isShadowed {
            #expect(try migrator.migrate(queue) == ["guard", "double"])
            #expect(try migrator.migrate(queue) == [])
        } else {
            for _ in 0..<2 {
                let error = #expect(throws: DatabaseError.self) { try migrator.migrate(queue) }
                #expect(error?.reason == .unverified && error?.message.contains("guard") == true, "\(error as Any)")
            }
        }
        #expect(try queue.read { try $0.integers("SELECT x FROM t1") } == [isShadowed ? 2 : 1])
    }

    @Test(arguments: ["/* CREATE TABLE t2 (n);", "/*/", "SELECT 1 /* * "]) func aCommentWithoutItsEnd(comment: String)
        throws
    {
        let queue = try queue()
        defer { queue.close() }
        var migrator = Migrator()
        migrator.register("one", sql: "CREATE TABLE t1 (n); " + comment)
        let error = #expect(throws: DatabaseError.self) { try migrator.migrate(queue) }
        #expect(error?.reason == .misuse && error?.message.contains("(*/)") == true, "\(error as Any)")
        #expect(try tables(queue) == [])
        migrator = Migrator()
        migrator.register("one", sql: "CREATE TABLE t1 (n); /* its end **/ -- /* no comment")
        // This one hides nothing.
        migrator.register("two", sql: "CREATE TABLE t2 (n); /* \n")
        #expect(try migrator.migrate(queue) == ["one", "two"])
    }

    /// As old programs end lines.
    @Test func linesThatSQLiteTakesForAComment() throws {
        let queue = try queue()
        defer { queue.close() }
        let script = "CREATE TABLE t1 (n); -- a table\rCREATE TABLE t2 (n);"
        var migrator = Migrator()
        migrator.register("one", sql: script)
        let error = #expect(throws: DatabaseError.self) { try migrator.migrate(queue) }
        #expect(error?.reason == .misuse && error?.message.contains("line feed") == true, "\(error as Any)")
        #expect(try tables(queue) == [])
        queue.inDatabase { db in
            #expect(!db.executeStatements(script))
            #expect(db.lastErrorMessage().contains("Nothing was executed"))
        }
        #expect(try tables(queue) == [])
        migrator = Migrator()
        migrator.register("one", sql: script.replacing("\r", with: "\r\n"))
        #expect(try migrator.migrate(queue) == ["one"])
        #expect(try tables(queue) == ["t1", "t2"])
    }

    private func tables(_ access: some DatabaseAccess) throws -> [String] {
        try access.read { db in try db.texts("SELECT name FROM sqlite_schema WHERE name LIKE 't%' ORDER BY 1") }
    }

    @Test func makesWhatIsMissingOnceAndInOrder() async throws {
        let queue = try queue()
        #expect(try await migrator(2).migrate(queue) == ["m0", "m1"])
        #expect(try await migrator(2).migrate(queue) == [])
        let four = migrator(4)
        #expect(try await queue.read { db in try four.pending(in: db) } == ["m2", "m3"])
        #expect(try migratedSynchronously(queue) == ["m2", "m3"])
        #expect(try tables(queue) == ["t0", "t1", "t2", "t3"])
        #expect(Migrator().names == [] && migrator(2).names == ["m0", "m1"])
    }

    private func migratedSynchronously(_ queue: DatabaseQueue) throws -> [String] { try migrator(4).migrate(queue) }

    @Test func worksOnPoolsAndDatabases() throws {
        let pool = DatabasePool(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        #expect(try migrator(1).migrate(pool) == ["m0"])
        let database = try Database.testing(directory.file("db"))
        #expect(try migrator(2).migrate(database) == ["m1"])
        #expect(database.beginTransaction())
        let error = #expect(throws: DatabaseError.self) { try migrator(3).migrate(database) }
        #expect(error?.reason == .misuse)
    }

    @Test func upToOneOfThem() async throws {
        let queue = try queue()
        #expect(try await migrator(4).migrate(queue, upTo: "m1") == ["m0", "m1"])
        #expect(try await migrator(4).migrate(queue, upTo: "m0") == [])
        #expect(try tables(queue) == ["t0", "t1"])
        let unknown = await #expect(throws: DatabaseError.self) { try await migrator(4).migrate(queue, upTo: "m9") }
        #expect(unknown?.reason == .misuse)
        #expect(try await migrator(4).migrate(queue) == ["m2", "m3"])
    }

    @Test func aSchemaThatWasChangedOtherwise() async throws {
        let queue = try queue()
        let migrator = migrator(3)
        func hasChanges() async throws -> Bool {
            try await queue.writeWithoutTransaction { db in try migrator.hasSchemaChanges(in: db) }
        }
        // Those that were not run do not count.
        #expect(try await !hasChanges())
        try await migrator.migrate(queue, upTo: "m1")
        #expect(try await !hasChanges())
        try await migrator.migrate(queue)
        try await queue.write { db in try db.execute(script: "INSERT INTO t0 VALUES (1)") }
        try await queue.writeWithoutTransaction { db in try db.execute(script: "ANALYZE") }
        #expect(try await !hasChanges())
        for (change, back) in [
            ("CREATE INDEX i ON t0 (n)", "DROP INDEX i"),
            ("CREATE VIEW v AS SELECT 1", "DROP VIEW v"),
            ("DROP TABLE t1; CREATE TABLE t1 (n, m)", "DROP TABLE t1; CREATE TABLE t1 (n)"),
            ("CREATE TABLE sqliteless (a)", "DROP TABLE sqliteless"),
            ("DROP TABLE t2", "CREATE TABLE t2 (n)"),
        ] {
            try await queue.write { db in try db.execute(script: SQL(raw: change)) }
            #expect(try await hasChanges(), "\(change)")
            try await queue.write { db in try db.execute(script: SQL(raw: back)) }
            #expect(try await !hasChanges(), "\(back)")
        }
    }

    /// A connection that would take orphans from now on is not left to go on unnoticed.
    @Test func foreignKeysAreEnforcedAgainOrTheConnectionIsClosed() throws {
        let database = try Database.testing(directory.file("db"))
        try database.executeUpdate("PRAGMA foreign_keys = ON", values: nil)
        #expect(try migrator(1).migrate(database) == ["m0"])
        #expect(try database.integers("PRAGMA foreign_keys") == [1])
        var forbidding = migrator(1)
        forbidding.register("forbids") { db in
            db.authorizer = { request in
                if case .pragma("foreign_keys", "ON") = request.action { .deny } else { .allow }
            }
        }
        #expect(throws: DatabaseError.self) { try forbidding.migrate(database) }
        #expect(!database.isOpen)
        database.authorizer = nil
        #expect(database.open())
        #expect(try forbidding.pending(in: database) == [])
    }

    @Test func aFailureKeepsWhatWasMadeBefore() throws {
        struct Failure: Error {}
        let queue = try queue()
        var failing = migrator(1)
        failing.register("broken") { db in
            try db.executeUpdate("CREATE TABLE t9 (n)", values: nil)
            throw Failure()
        }
        failing.register("never", sql: "CREATE TABLE t8 (n)")
        #expect(throws: Failure.self) { try failing.migrate(queue) }
        #expect(try tables(queue) == ["t0"])
        var repaired = migrator(1)
        repaired.register("broken", sql: "CREATE TABLE t9 (n)")
        #expect(try repaired.migrate(queue) == ["broken"])

        var wrong = repaired
        wrong.register("wrong", sql: "CREATE TABLE t7 (n); nonsense")
        let error = #expect(throws: DatabaseError.self) { try wrong.migrate(queue) }
        #expect(error?.message.contains("\"wrong\" failed and was rolled back") == true)
        #expect(try tables(queue) == ["t0", "t9"])
    }

    @Test func itCannotEndItsTransaction() throws {
        let queue = try queue()
        var migrator = Migrator()
        migrator.register("commits", sql: "CREATE TABLE t1 (n); COMMIT; CREATE TABLE t2 (n)")
        #expect(throws: DatabaseError.self) { try migrator.migrate(queue) }
        #expect(try tables(queue) == [])
        let database = try Database.testing(nil)
        #expect(throws: DatabaseError.self) { try migrator.migrate(database) }
    }

    /// Nor begin another one, on whatever it runs: a half of it would be there, and be told to be rolled back.
    @Test(arguments: ["COMMIT; BEGIN", "END; BEGIN IMMEDIATE", "ROLLBACK; BEGIN", "BEGIN"])
    func itCannotReplaceItsTransaction(script: String) throws {
        let database = try Database.testing(directory.file("db"))
        var migrator = Migrator()
        let change = "CREATE TABLE t1 (n); INSERT INTO t1 VALUES (1)"
        migrator.register("a", sql: "\(change); \(script); INSERT INTO t0 VALUES (1)")
        for _ in 0..<2 {
            let error = #expect(throws: DatabaseError.self) { try migrator.migrate(database) }
            #expect(error?.reason == .misuse && error?.message.contains("was rolled back") == true)
            #expect(!database.isInTransaction)
            #expect(try database.integers("SELECT count(*) FROM sqlite_schema") == [0])
        }
        var repaired = Migrator()
        repaired.register("a", sql: "CREATE TABLE t1 (n)")
        #expect(try repaired.migrate(database) == ["a"])
        // It is as it was for others.
        #expect(database.beginTransaction() && database.commit())
    }

    @Test func storesThatDoNotMatchAreRefused() throws {
        let queue = try queue()
        try migrator(3).migrate(queue)
        func refusal(_ migrator: Migrator) -> DatabaseError? {
            #expect(throws: DatabaseError.self) { try migrator.migrate(queue) }
        }
        let later = refusal(migrator(2))
        #expect(later?.reason == .unknownMigrations && later?.message.contains("m2") == true)
        var reordered = Migrator()
        for number in [0, 2, 1] { reordered.register("m\(number)", sql: "CREATE TABLE t\(number) (n); SELECT 1;") }
        #expect(refusal(reordered)?.message.contains("another order") == true)
        var edited = migrator(2)
        edited.register("m2", sql: "CREATE TABLE t2 (n, more)")
        edited.register("m3", sql: "CREATE TABLE t3 (n)")
        #expect(refusal(edited)?.message.contains("was changed") == true)
        #expect(try tables(queue) == ["t0", "t1", "t2"])
    }

    @Test func foreignKeysAreCheckedAtTheEnd() throws {
        let queue = try queue()
        var migrator = Migrator()
        migrator.register(
            "tables",
            sql: """
                CREATE TABLE tp (id INTEGER PRIMARY KEY);
                CREATE TABLE tc (p REFERENCES tp ON DELETE CASCADE);
                INSERT INTO tp VALUES (1); INSERT INTO tc VALUES (1);
                """
        )
        // Would delete the children if keys were enforced.
        migrator.register(
            "anew",
            sql: """
                CREATE TABLE new (id INTEGER PRIMARY KEY, more); INSERT INTO new (id) SELECT id FROM tp;
                DROP TABLE tp; ALTER TABLE new RENAME TO tp;
                """
        )
        try migrator.migrate(queue)
        #expect(try queue.read { db in try db.integers("SELECT p FROM tc") } == [1])
        migrator.register("orphans", sql: "DELETE FROM tp")
        let error = #expect(throws: DatabaseError.self) { try migrator.migrate(queue) }
        #expect(error?.code == SQLITE_CONSTRAINT && error?.message.contains("tc") == true)
        #expect(try queue.read { db in try db.integers("SELECT id FROM tp") } == [1])
        // They are enforced again.
        #expect(try queue.writeWithoutTransaction { db in try db.integers("PRAGMA foreign_keys") } == [1])
    }

    @Test func severalMayMigrateAtOnce() async throws {
        let path = directory.file("db")
        let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        try await DatabaseQueue(path: path, configuration: configuration).shutDown()
        let migrator = migrator(20)
        let made = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var patient = configuration
                    patient.busyTimeout = .seconds(60)
                    return try await migrator.migrate(DatabaseQueue(path: path, configuration: patient))
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(made.count == 20 && Set(made).count == 20)
    }

    @Test func aCancelledMigrationIsRolledBack() async throws {
        let queue = try queue()
        let started = Gate()
        var migrator = migrator(1)
        migrator.register("endless") { db in
            try db.executeUpdate("CREATE TABLE t1 (n)", values: nil)
            started.open()
            _ = try db.integers(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
            )
        }
        let task = Task { [migrator] in try await migrator.migrate(queue) }
        await started.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try tables(queue) == ["t0"])
        #expect(try await queue.writeWithoutTransaction { db in try db.integers("PRAGMA foreign_keys") } == [1])
    }
}
