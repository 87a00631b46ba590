import Foundation
import Testing

@testable import SealedDB

/// SQL reaches what a store remembers of its slots neither when SQLite compiles a statement again, nor by what a
/// virtual table compiles, nor by the schema.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotMemoryGuardTests {
    private let store: SlotStore

    init() throws {
        store = try SlotStore()
    }

    private func expectRefused(_ error: DatabaseError?, _ location: SourceLocation = #_sourceLocation) {
        let message = error?.message ?? "no error"
        #expect(message.contains("remembers its key slots"), "\(message)", sourceLocation: location)
        #expect(error?.reason == .notAllowed, sourceLocation: location)
    }

    private func expectRemembered(_ database: Database, _ location: SourceLocation = #_sourceLocation) throws {
        #expect(try database.integers("SELECT generation FROM sealdb_slots") == [1], sourceLocation: location)
    }

    // MARK: What SQLite compiles by itself

    /// Somebody else gives the table a trigger after the statement was compiled.
    @Test(arguments: [true, false])
    func statementsThatAreCompiledAgain(isPrepared: Bool) throws {
        let database = try store.open(.testing(1))
        defer { database.close() }
        database.shouldCacheStatements = true
        let sql = "INSERT INTO t (body) VALUES (?)"
        let prepared = try isPrepared ? database.prepare(sql) : nil
        func insert(_ text: String) throws {
            guard let prepared else { return try database.run(sql, [text]) }
            #expect(prepared.bind(with: [text]))
            _ = try prepared.stepWithError()
        }
        try insert("before")
        try store.tamper("CREATE TRIGGER tr AFTER INSERT ON t BEGIN DELETE FROM sealdb_slots; END")
        expectRefused(#expect(throws: DatabaseError.self) { try insert("after") })
        prepared?.close()
        try expectRemembered(database)
        #expect(try database.integers("SELECT count(*) FROM t") == [21])
    }

    /// A full-text table compiles what writes to its own tables when it first needs it.
    @Test func statementsOfVirtualTables() throws {
        let created = try store.open(.testing(1))
        try created.run("CREATE VIRTUAL TABLE ft USING fts5(x)")
        created.close()
        // Only a connection that is not defensive takes such a trigger.
        try store.tamper("CREATE TRIGGER tr AFTER INSERT ON ft_docsize BEGIN DELETE FROM sealdb_slots; END")
        let database = try store.open(.testing(1))
        defer { database.close() }
        expectRefused(#expect(throws: DatabaseError.self) { try database.run("INSERT INTO ft VALUES ('a')") })
        try expectRemembered(database)
        #expect(try database.integers("SELECT count(*) FROM ft") == [0])
    }

    // MARK: The schema and the pages

    @Test(arguments: [
        "PRAGMA writable_schema = ON", "PRAGMA writable_schema = 1", "PRAGMA main.writable_schema=yes",
        "pragma WRITABLE_SCHEMA(True)", "PRAGMA writable_schema = 2",
    ])
    func theSchemaStaysUnwritable(sql: String) throws {
        let database = try store.open(.testing(1))
        defer { database.close() }
        #expect(!database.executeStatements(sql), "\(sql)")
        let error = database.lastError() as? DatabaseError
        #expect(error?.reason == .notAllowed)
        #expect(error?.message.contains("writable_schema stays off") == true, "\(sql): \(error as Any)")
        for value in ["OFF", "RESET", "off", "0", "no", "false"] {
            let isAccepted = database.executeStatements("PRAGMA writable_schema = \(raw: value)")
            #expect(isAccepted, "\(value): \(database.lastError())")
        }
        #expect(try database.integers("PRAGMA writable_schema") == [0])
    }

    @Test func withoutSlotsTheSchemaMayBeWritten() throws {
        let database = try Database.testing(store.directory.file("plain.db"))
        defer { database.close() }
        #expect(database.executeStatements("PRAGMA writable_schema = ON"), "\(database.lastError())")
        #expect(try database.integers("PRAGMA writable_schema") == [1])
        let rules = GuardRules(allowsCipherStatements: false)
        #expect(rules.refusal(ofPragma: "writable_schema", value: "ON") == nil)
        // Whether SQL may set keys does not matter.
        let lenient = GuardRules(allowsCipherStatements: true, hasSlots: true)
        #expect(lenient.refusal(ofPragma: "Writable_Schema", value: "ON") != nil)
        #expect(lenient.refusal(ofPragma: "writable_schema", value: nil) == nil)
    }

    @Test func pagesAreNotWrittenBySQL() {
        let rules = GuardRules(allowsCipherStatements: false, hasSlots: true)
        for name in ["sqlite_dbpage", "SQLite_DBPage"] {
            #expect(rules.refusal(ofChanging: name, addsRows: true) != nil)
        }
        #expect(rules.refusal(ofChanging: "t", addsRows: true) == nil)
        #expect(rules.refusal(ofChanging: nil, addsRows: true) == nil)
        let others = GuardRules(allowsCipherStatements: false, hasSlots: false)
        #expect(others.refusal(ofChanging: "sqlite_dbpage", addsRows: true) == nil)
    }

    // MARK: Connections that do not know of the slots

    private static let removals = [
        "DELETE FROM sealdb_slots", "UPDATE main.Sealdb_Slots SET generation = 0", "DROP TABLE sealdb_slots",
        "ALTER TABLE sealdb_slots RENAME TO other",
    ]

    /// Somebody gives the store slots while it is open.
    @Test func aConnectionThatIsOlderThanTheSlots() throws {
        let path = store.directory.file("older.db")
        let database = try Database.testing(path)
        defer { database.close() }
        try database.fill(rows: 5)
        _ = try KeySlots(path: path, key: .testing(1)).initialize([.init(.key(.testing(2)), label: "ops")])
        for sql in Self.removals {
            #expect(!database.executeStatements(sql), "\(sql)")
            try expectRemembered(database)
        }
        try database.run("CREATE TRIGGER tr AFTER INSERT ON t BEGIN DELETE FROM sealdb_slots; END")
        expectRefused(
            #expect(throws: DatabaseError.self) { try database.run("INSERT INTO t (body) VALUES ('x')") }
        )
        try expectRemembered(database)
        expectRefused(
            #expect(throws: DatabaseError.self) {
                try database.openBlob(table: "sealdb_slots", column: "store", rowID: 1, isWritable: true)
            }
        )
    }

    /// The files of the slots are away, and the store is opened by its own key.
    @Test func aConnectionWithTheDataKey() throws {
        let key = try Array(store.dataKey().utf8).withUnsafeBytes { try Key.raw(hexadecimal: $0) }
        for file in store.files { unlink(file) }
        let database = try store.open(key)
        defer { database.close() }
        for sql in Self.removals {
            #expect(!database.executeStatements(sql), "\(sql)")
            try expectRemembered(database)
        }
    }

    // MARK: What is SQLite's own

    /// VACUUM fills a copy of the table with a statement of its own.
    @Test(arguments: [false, true])
    func vacuumStillWorks(hasFullText: Bool) throws {
        let database = try store.open(.testing(1))
        if hasFullText {
            try database.run("CREATE VIRTUAL TABLE ft USING fts5(x)")
            try database.run("INSERT INTO ft VALUES ('a')")
        }
        database.shouldCacheStatements = true
        for _ in 0..<2 { try database.run("VACUUM") }
        #expect(database.executeStatements("/* all */ vacuum main; REINDEX; ANALYZE"), "\(database.lastError())")
        try expectRemembered(database)
        if hasFullText { #expect(try database.integers("SELECT count(*) FROM ft WHERE ft MATCH 'a'") == [1]) }
        // What has begun as VACUUM ends with it.
        #expect(!database.executeStatements("DELETE FROM sealdb_slots"))
        expectRefused(database.lastError() as? DatabaseError)
        database.close()
        #expect(try store.count() == 20)
    }
}
