import Foundation
import Testing

@testable import SealedDB

/// Copies of an open database into a new file, where the pages of its own file are not what is to be copied.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct NewFileBackupTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func counts(_ name: String) throws -> [Int] {
        let copy = try Database.testing(directory.file(name))
        defer { copy.close() }
        return try copy.integers("SELECT count(*) FROM t")
    }

    /// Others write meanwhile. The copy has what the transaction sees.
    @Test func ofTheStateThatATransactionSees() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        let other = try Database.testing(directory.file("db"))
        try database.fill(rows: 10)
        #expect(database.beginDeferredTransaction())
        #expect(try database.integers("SELECT count(*) FROM t") == [10])
        try other.fill(rows: 500)
        try database.backup(toNewFile: directory.file("copy"), key: nil, progress: nil)
        #expect(try database.integers("SELECT count(*) FROM t") == [10])
        #expect(database.rollback())
        #expect(try database.integers("SELECT count(*) FROM t") == [510])
        #expect(try counts("copy") == [10])
    }

    /// SQLite keeps the index of the log in its memory then.
    @Test func ofAStoreThatOneConnectionHasForItself() throws {
        let database = try Database.testing(directory.file("db"))
        #expect(try database.value("PRAGMA locking_mode = EXCLUSIVE") == "exclusive")
        #expect(try database.value("PRAGMA journal_mode = WAL") == "wal")
        try database.fill(rows: 10)
        #expect(directory.namesOfFiles == ["db", "db-wal"])
        try database.backup(toNewFile: directory.file("copy"), key: nil, progress: nil)
        #expect(try counts("copy") == [10])
    }

    @Test func ofADatabaseInMemory() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 10)
        try database.backup(toNewFile: directory.file("copy"), key: nil, progress: nil)
        #expect(try counts("copy") == [10])
        #expect(try directory.bytes("copy").range(of: Data("secret row".utf8)) == nil)
    }

    /// What does not fit is refused before anything is copied.
    @Test func aKeyThatDoesNotFitTheSettings() throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings.plaintextHeaderSize = 32
        configuration.cipherSettings.salt = FixtureFormat.salt
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 100)
        // The salt of the copy would be given twice.
        let key = try FixtureKey.rawWithSalt.key()
        var isBegun = false
        let error = #expect(throws: DatabaseError.self) {
            try database.backup(toNewFile: directory.file("copy"), key: key) { _ in isBegun = true }
        }
        #expect(error?.reason == .unusableSettings, "\(error as Any)")
        #expect(!isBegun)
        #expect(directory.namesOfFiles == ["db"])
    }

    /// Nobody may take the key out of its ring while a store comes about that has it.
    @Test func aKeyThatLeavesItsRingMeanwhile() throws {
        let ring = directory.file("ring")
        try Database.testing(directory.file("db")).fill(rows: 10)
        try KeyRing(activeID: "one", key: .testing(1)).write(toNewFile: ring)
        let configuration = Configuration(keyRing: try KeyRing(contentsOfFile: ring))
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        var isGone = false
        #expect(throws: DatabaseError.self) {
            try database.backup(toNewFile: directory.file("copy"), key: nil) { _ in
                guard !isGone else { return }
                isGone = unlink(ring) == 0
                try KeyRing(activeID: "two", key: .testing(2)).write(toNewFile: ring)
            }
        }
        #expect(isGone)
        #expect(directory.namesOfFiles == ["db", "ring"])
    }

    /// The rows were compared, so nothing says that they could not be.
    @Test func whatACopyThatDiffersIsCalled() throws {
        let source = try Database.testing(directory.file("a"))
        try source.fill(rows: 500)
        let target = try Database.testing(directory.file("b"))
        var configuration = Configuration(key: try .testing(1))
        configuration.busyTimeout = .zero
        let other = Database(path: directory.file("b"), configuration: configuration)
        try other.openVerified()
        var isBegun = false
        var isChanged = false
        // Nobody else gets at it while it is written, and this is only called by statements.
        target.setProgressHandler(interval: 1) {
            // It is tried again until nobody is in its way.
            if isBegun, !isChanged { isChanged = (try? other.run("DELETE FROM t WHERE id = 7")) != nil }
            return true
        }
        let error = #expect(throws: DatabaseError.self) {
            try source.backup(to: target, pagesPerStep: 10) { _ in isBegun = true }
        }
        #expect(isChanged && error?.reason == .unverified, "\(error as Any)")
        #expect(error?.message.contains("could not be compared") == false, "\(error as Any)")
    }
}
