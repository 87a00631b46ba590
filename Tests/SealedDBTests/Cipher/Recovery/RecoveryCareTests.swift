import Foundation
import Testing

@testable import SealedDB

/// What a recovery makes sure of before, while and after it reads, and what it leaves.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RecoveryCareTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.fill(rows: 1500)
        database.close()
    }

    private func recovery(to newKey: Key? = nil) throws -> StoreRecovery {
        StoreRecovery(path: directory.file("db"), key: try .testing(1), to: directory.file("new"), newKey: newKey)
    }

    /// Does something once, while the first pages are looked at or the first rows are saved.
    private func run(
        _ recovery: StoreRecovery,
        in phase: KeyRotation.Progress.Phase = .copy,
        meanwhile: @escaping () throws -> Void
    ) throws -> StoreRecovery.Report {
        var isDone = false
        return try recovery.run { state in
            guard state.phase == phase, !isDone else { return }
            isDone = true
            try meanwhile()
        }
    }

    // MARK: The damaged store

    /// Its journal may lie beside the other name.
    @Test func aStoreWithTwoNames() throws {
        #expect(link(directory.file("db"), directory.file("other")) == 0)
        let error = #expect(throws: DatabaseError.self) { try recovery().run() }
        #expect(error?.reason == .hardLinked, "\(String(describing: error))")
        #expect(directory.names == ["db", "other"])
    }

    /// Who has the store open in WAL mode may write at any moment.
    @Test func aStoreThatIsOpen() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        // Now it has a log.
        try database.fill(rows: 1)
        try #require(directory.names.contains("db-shm"))
        let error = #expect(throws: DatabaseError.self) { try recovery().run() }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        #expect(!directory.names.contains("new"))
        database.close()
        #expect(try recovery().run().isComplete)
    }

    enum Change: CaseIterable { case ofFile, journal, log }

    /// What was read is of no moment that the store had.
    @Test(arguments: Change.allCases) func aStoreThatChangesMeanwhile(change: Change) throws {
        let error = #expect(throws: DatabaseError.self) {
            try run(recovery()) {
                switch change {
                case .ofFile: try directory.write("db", directory.bytes("db") + [0])
                case .journal: try directory.write("db-journal", [1])
                case .log: try directory.write("db-wal", [1])
                }
            }
        }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        #expect(error?.message.contains("Nothing was recovered, and \(directory.file("db")) is unchanged") == true)
        #expect(!directory.names.contains { $0.contains("new") }, "\(directory.names)")
    }

    /// The process has too many files open: that says nothing of the journal or log.
    @Test(arguments: ["db-journal", "db-wal"], 0...3) func aFileThatCannotBeOpened(name: String, number: Int) throws {
        let call = try FailedCall(
            "open \(name)",
            EMFILE,
            number: number,
            prepare: { model in
                let database = try Database.testing(
                    model.file("db"),
                    journalMode: name == "db-wal" ? .wal : .delete
                )
                try database.fill(rows: 300)
                try database.spillChanges()
                try database.execute(script: "BEGIN; UPDATE t SET body = 'x'")
                if name == "db-wal" { try database.execute(script: "COMMIT") }
                try model.keep("db", name, of: database)
            }
        ) { directory in
            try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run().problems
        }
        #expect(call.value == nil, "\(call.value ?? [])")
        #expect(!call.directory.names.contains { $0.contains("new") }, "\(call.directory.names)")
    }

    // MARK: The new store

    @Test func nothingStaysOpen() throws {
        _ = try recovery().run()
        #expect(filesOpen(below: directory) == [])
    }

    /// Its key would open none of the slots.
    @Test func slotsThatComeMeanwhile() throws {
        let error = #expect(throws: DatabaseError.self) {
            try run(recovery()) { try directory.write("new.slots", [1]) }
        }
        #expect(error?.reason == .alreadyExists, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["db", "new.slots"])
    }

    /// Otherwise a power failure could take the new store away, when somebody has removed the damaged one already.
    @Test func theNewNameIsSynced() throws {
        let count = CallWatch(directory.path)
        _ = try recovery().run()
        let calls = count.endWithAll()
        let renamed = try #require(calls.lastIndex { $0.hasPrefix("rename") }, "\(calls)")
        #expect(calls[renamed...].contains("fsync \(directory.path)"), "\(calls)")
    }

    // MARK: Keys

    /// A key that cannot be read again would leave a store that nobody can open.
    @Test func aNewKeyThatIsGone() throws {
        try directory.write("key", Data(String(repeating: "02", count: 32).utf8))
        let key = try KeySource.keyFile(directory.file("key")).key()
        let error = #expect(throws: DatabaseError.self) {
            try run(recovery(to: key)) { unlink(directory.file("key")) }
        }
        #expect(error?.message.contains("Nothing was recovered") == true, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["db"])
    }

    /// So would one that somebody takes out of its ring, which is the key of the damaged store.
    @Test func aRingThatLosesTheKey() throws {
        let path = directory.file("ring")
        var ring = try KeyRing(activeID: "old", key: .testing(1))
        try ring.add(.testing(2), id: "new")
        try ring.write(toNewFile: path)
        let recovery = StoreRecovery(
            path: directory.file("db"),
            key: try KeyRing(contentsOfFile: path).activeKey(),
            to: directory.file("new")
        )
        let error = #expect(throws: DatabaseError.self) {
            try run(recovery) {
                try KeyRing.update(file: path) { ring throws(DatabaseError) in
                    try ring.activate("new")
                    try ring.remove("old")
                }
            }
        }
        #expect(error?.message.contains(path) == true, "\(String(describing: error))")
        #expect(!directory.names.contains { $0.contains("new") }, "\(directory.names)")
    }

    // MARK: Salts

    /// The store does not begin with its salt, which the settings have.
    @Test func aHeaderInTheClear() throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = CipherSettings(plaintextHeaderSize: 32, salt: Array(1...16))
        configuration.journalMode = .delete
        let database = Database(path: directory.file("clear"), configuration: configuration)
        try database.openVerified()
        try database.execute(script: "PRAGMA user_version = 5")
        try database.fill(rows: 300)
        database.close()
        let report = try StoreRecovery(
            path: directory.file("clear"),
            key: .testing(1),
            cipherSettings: configuration.cipherSettings,
            to: directory.file("new")
        ).run()
        #expect(report.isComplete && report.tables.map(\.rowCount) == [300], "\(report)")
        let saved = Database(path: directory.file("new"), configuration: configuration)
        try saved.openVerified()
        #expect(try saved.integers("PRAGMA user_version") == [5])
        saved.close()
    }

    /// The journal has the first page as it was, with the salt.
    @Test func aSaltThatTheJournalHas() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.spillChanges()
        try database.execute(script: "BEGIN; CREATE TABLE u (a); UPDATE t SET body = 'x'")
        try directory.keep("db", "db-journal", of: database)
        try directory.overwrite("db", at: 0, with: [UInt8](repeating: 7, count: 16))
        _ = try recovery().run()
        let saved = try Database.testing(directory.file("new"))
        #expect(try saved.integers("SELECT count(*) FROM t WHERE body LIKE 'secret row%'") == [1500])
        saved.close()
    }
}
