import Foundation
import Testing

@testable import SealedDB

/// What SQLite leaves open to SQL and to schemas, and a configuration closes.
@Suite(.hangLimit)
struct SwitchTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ change: (inout Configuration) -> Void = { _ in }) throws -> Database {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        change(&configuration)
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        return database
    }

    /// Whatever number is asked for, the process goes on.
    @Test(arguments: [Int.min, -1, 0, .max]) func numbersAtTheirLimits(number: Int) throws {
        let database = try open { configuration in
            configuration.cacheSize = number
            configuration.statementCacheCapacity = number
        }
        try database.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        for _ in 0..<3 { #expect(try database.integers("SELECT a FROM t") == [1]) }
        database.close()
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.maximumReaderCount = number
        let pool = DatabasePool(path: directory.file("pool"), configuration: configuration)
        try pool.write { db in try db.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES (1)") }
        #expect(try pool.read { db in try db.integers("SELECT a FROM t") } == [1])
        pool.releaseAllDatabases()
    }

    /// SQLite would store NULL for each of them.
    @Test func parametersOfScripts() throws {
        let database = try open()
        try database.execute(script: "CREATE TABLE t (a)")
        for sql in ["INSERT INTO t VALUES (?)", "INSERT INTO t VALUES (:name)", "SELECT 1; INSERT INTO t VALUES ($a)"] {
            let error = #expect(throws: DatabaseError.self) { try database.execute(script: SQL(raw: sql)) }
            #expect(error?.reason == .misuse && error?.message.contains("has parameters") == true, "\(sql)")
            #expect(!database.executeStatements(sql))
            var migrator = Migrator()
            migrator.register("first", sql: sql)
            #expect(throws: DatabaseError.self) { try migrator.migrate(database) }
        }
        try database.execute(script: "INSERT INTO t VALUES ('?'); -- ?1\nINSERT INTO t VALUES (\(5))")
        #expect(try database.executeQuery("SELECT a || '' FROM t").all(String.self) == ["?", "5"])
        database.close()
    }

    @Test func foreignKeys() throws {
        let database = try open()
        try database.execute(
            script: "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a REFERENCES a (id))"
        )
        let error = #expect(throws: DatabaseError.self) { try database.run("INSERT INTO b VALUES (1)") }
        #expect(error?.extendedCode == SQLITE_CONSTRAINT_FOREIGNKEY)
        database.close()
        let lenient = try open { $0.enforcesForeignKeys = false }
        try lenient.run("INSERT INTO b VALUES (1)")
        lenient.close()
    }

    /// A text in double quotes is a column that does not exist, also in a schema.
    @Test func doubleQuotedStrings() throws {
        let database = try open()
        try database.run("CREATE TABLE t (a)")
        for sql in ["SELECT * FROM t WHERE a = \"text\"", "CREATE INDEX i ON t (\"text\")"] {
            let error = #expect(throws: DatabaseError.self) { try database.run(sql) }
            #expect(error?.message.contains("no such column") == true)
        }
        #expect(try database.rows("SELECT \"a\" FROM \"t\"") == [])
        database.close()
        let lenient = try open { $0.acceptsDoubleQuotedStrings = true }
        #expect(try lenient.value("SELECT \"text\"") == .text("text"))
        lenient.close()
    }

    /// A schema may call what is harmless, and no function of the program that is not marked so.
    @Test(arguments: [false, true]) func functionsInASchema(isTrusted: Bool) throws {
        let database = try open { $0.trustsSchema = isTrusted }
        let functions: [(String, FunctionOptions)] = [
            ("direct", []), ("allowed", .allowedInSchema), ("harmless", .innocuous),
        ]
        for (name, options) in functions {
            try database.addFunction(name, argumentCount: 0, options: options) { _ in .integer(1) }
        }
        for name in ["direct", "allowed", "harmless"] { try database.run("CREATE VIEW v_\(name) AS SELECT \(name)()") }
        try database.run("CREATE VIEW v AS SELECT upper('a')")
        #expect(try database.value("SELECT * FROM v") == .text("A"))
        #expect(try database.value("SELECT direct() + allowed()") == .integer(2))
        #expect(try database.value("SELECT * FROM v_harmless") == .integer(1))
        #expect(throws: DatabaseError.self) { try database.value("SELECT * FROM v_direct") }
        if isTrusted {
            #expect(try database.value("SELECT * FROM v_allowed") == .integer(1))
        } else {
            let error = #expect(throws: DatabaseError.self) { try database.value("SELECT * FROM v_allowed") }
            #expect(error?.message.contains("unsafe use") == true)
        }
        database.close()
    }

    /// Whatever is trusted by default, triggers keep a full-text table up to date.
    @Test func fullTextInASchema() throws {
        let database = try open()
        for module in ["fts4", "fts5"] {
            try database.execute(
                script: """
                    CREATE TABLE \(raw: module)_note (body);
                    CREATE VIRTUAL TABLE \(raw: module)_text USING \(raw: module)(body);
                    CREATE TRIGGER \(raw: module)_added AFTER INSERT ON \(raw: module)_note BEGIN
                        INSERT INTO \(raw: module)_text (rowid, body) VALUES (new.rowid, new.body);
                    END;
                    INSERT INTO \(raw: module)_note VALUES ('seven rivers');
                    """
            )
            let found = "SELECT count(*) FROM \(module)_text WHERE \(module)_text MATCH 'rivers'"
            #expect(try database.integers(found) == [1])
        }
        database.close()
    }

    /// SQL cannot damage an encrypted store.
    @Test(.enabled(if: isEncrypting, "a plaintext database is not protected")) func damageBySQL() throws {
        func attempt(_ database: Database) throws -> (schema: Int, isShadowTableWritten: Bool, journalMode: SQLValue?) {
            _ = database.executeStatements("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 't'")
            let isWritten = database.executeUpdate("DELETE FROM search_data", withArgumentsIn: [])
            let schema = try database.integers("SELECT count(*) FROM sqlite_schema WHERE name = 't'")[0]
            return (schema, isWritten, try database.value("PRAGMA journal_mode = OFF"))
        }
        let database = try open()
        try database.execute(script: "CREATE TABLE t (a); CREATE VIRTUAL TABLE search USING fts5(body)")
        let (schema, isWritten, journalMode) = try attempt(database)
        #expect(schema == 1 && !isWritten && journalMode == .text("delete"))
        database.close()
        let lenient = try open { $0.isDefensive = false }
        let result = try attempt(lenient)
        #expect(result.schema == 0 && result.isShadowTableWritten && result.journalMode == .text("off"))
        lenient.close()
    }

    /// FMDB's own initializers leave all as SQLite has it; so ported code runs as before.
    @Test func initializersOfFMDB() throws {
        let path = directory.file("fmdb")
        let database = Database(path: path)
        let queue = try #require(DatabaseQueue(path: path))
        let pool = DatabasePool(path: path)
        func expectDefaults(_ database: Database) {
            #expect(database.executeStatements("CREATE TABLE IF NOT EXISTS t (a REFERENCES u (b))"))
            #expect(database.executeStatements("INSERT INTO t VALUES (\"text\")"))
        }
        #expect(database.open())
        expectDefaults(database)
        database.close()
        queue.inDatabase { expectDefaults($0) }
        queue.close()
        pool.inDatabase { expectDefaults($0) }
        pool.releaseAllDatabases()
    }

    /// They are set again on a connection that replaces another, also where SQL has changed them.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func afterARotation() throws {
        let database = try open()
        try database.run("PRAGMA foreign_keys = OFF")
        try database.rotateKey(to: .testing(2))
        #expect(try database.integers("PRAGMA foreign_keys") == [0])
        #expect(try database.integers("PRAGMA trusted_schema") == [0])
        #expect(!database.executeStatements("CREATE TABLE t (a); INSERT INTO t VALUES (\"text\")"))
        database.close()
    }
}
