import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// What the guard of statements refuses and allows, asked as SQLite asks it.
@Suite(.hangLimit)
struct GuardEdgeTests {
    private let directory: TemporaryDirectory
    private let connection: Connection

    init() throws {
        directory = try TemporaryDirectory()
        let flags = SealedDB.SQLITE_OPEN_READWRITE | SealedDB.SQLITE_OPEN_CREATE
        connection = try Connection(path: directory.file("db"), flags: flags)
    }

    private func text<T>(_ sql: String, _ body: (SQLStatementText) throws -> T) rethrows -> T {
        try Array(sql.utf8).withUnsafeBufferPointer { try body(SQLStatementText($0)) }
    }

    @Test func pragmasThatOnlyRead() {
        let rules = GuardRules(allowsCipherStatements: false)
        for name in ["temp_store_directory", "data_store_directory"] {
            #expect(rules.refusal(ofPragma: name, value: nil) == nil)
            #expect(rules.refusal(ofPragma: name, value: "/tmp") != nil)
        }
        // It acts without a value.
        #expect(rules.refusal(ofPragma: "cipher_test_on", value: nil) != nil)
        #expect(rules.refusal(ofPragma: "cipher_version", value: nil) == nil)
    }

    /// What SQLite attaches for a moment is no store.
    @Test(arguments: ["", ":memory:"]) func filesThatAreNone(name: String) {
        var rules = GuardRules(allowsCipherStatements: false)
        #expect(rules.refusal(ofAttached: name) == nil)
        rules.hasSlots = true
        #expect(rules.refusal(ofAttached: name) == nil)
        #expect(rules.refusal(ofAttached: "a") != nil)
        connection.statementGuard.refusesFiles = true
        #expect(!connection.statementGuard.refuses(RawEngine.attach, name, nil, in: nil))
        #expect(connection.statementGuard.refuses(RawEngine.attach, "a", nil, in: nil))
        #expect(connection.statementGuard.refuses(RawEngine.attach, nil, nil, in: nil))
    }

    @Test func anEmptyJournalMode() {
        connection.statementGuard.requiresJournal = true
        for (value, isRefused) in [("", false), ("o", true), ("OFF", true), ("offs", false), ("wal", false)] {
            #expect(connection.statementGuard.refuses(RawEngine.pragma, "journal_mode", value, in: nil) == isRefused)
        }
    }

    /// A VACUUM that does not run fills no table.
    @Test func aVacuumThatWaits() throws {
        let vacuum = try connection.prepare("VACUUM")
        defer { vacuum.close() }
        var rules = GuardRules(allowsCipherStatements: false)
        rules.hasSlots = true
        connection.guardRules = rules
        let isRefused = connection.statementGuard.refuses(SQLITE_INSERT, GuardRules.slotMemory, nil, in: "temp")
        #expect(isRefused)
    }

    @Test(.enabled(if: isEncrypting, "needs a codec")) func copiesOfAttachedDatabases() throws {
        try connection.run("ATTACH ':memory:' AS o")
        let sql = "VACUUM o INTO '\(directory.file("copy"))'"
        try connection.run(sql)
        #expect(directory.names.contains("copy"))
        connection.guardRules = GuardRules(allowsCipherStatements: false)
        let error = #expect(throws: DatabaseError.self) { try text(sql) { try connection.authorizeKeyStatement($0) } }
        #expect(error?.reason == .notAllowed)
        try connection.unguarded { () throws(DatabaseError) in
            try Result { try text(sql) { try connection.authorizeKeyStatement($0) } }
                .mapError { $0 as! DatabaseError }.get()
        }
    }

    /// The library itself may write to what a store remembers of its slots.
    @Test func blobsOfTheSlotMemory() throws {
        try connection.run("CREATE TABLE \(GuardRules.slotMemory) (a)")
        try connection.run("INSERT INTO \(GuardRules.slotMemory) VALUES (zeroblob(3))")
        connection.guardRules = GuardRules(allowsCipherStatements: false)
        func open() throws(DatabaseError) -> BlobHandle {
            try BlobHandle(
                connection,
                database: "main",
                table: GuardRules.slotMemory,
                column: "a",
                rowID: 1,
                isWritable: true
            )
        }
        let error = #expect(throws: DatabaseError.self) { try open() }
        #expect(error?.reason == .notAllowed)
        try connection.unguarded { () throws(DatabaseError) in
            let blob = try open()
            try blob.close()
        }
    }

    // MARK: The authorizer of the caller

    @Test func keysAreNotToldToTheAuthorizer() {
        for name in ["key", "REKEY", "hexkey"] {
            #expect(AuthorizerAction(RawEngine.pragma, name, "secret") == .pragma(name, argument: nil))
        }
        let other = AuthorizerAction(RawEngine.pragma, "user_version", "5")
        #expect(other == .pragma("user_version", argument: "5"))
    }

    @Test func theStricterDecisionApplies() {
        let all: [AuthorizerDecision] = [.allow, .ignore, .deny]
        for (first, one) in all.enumerated() {
            for (second, two) in all.enumerated() { #expect(one.and(two) == all[max(first, second)]) }
        }
    }

    // MARK: What watches pages

    @Test(arguments: ["3.6.0", "5.5.0", "4.4.9", "4.20.0", "4", "4.x"]) func enginesThatAreNotKnown(version: String) {
        let none = directory.file("none")
        let problem = PageWatch.begin(library: none, cipherVersion: version, reasonAgainstContexts: nil)
        #expect(problem == "SQLCipher \(version) is not known to have the provider")
    }

    @Test(.enabled(if: getenv(PageContexts.variable) == nil, "is about what is kept by default"))
    func contextsAreNotInLockedMemory() {
        #expect(PageContexts.reasonAgainst(hasMemorySecurity: false) == nil)
        #expect(
            PageContexts.reasonAgainst(hasMemorySecurity: true).map { String(cString: $0) } == "memory security is on"
        )
    }
}
