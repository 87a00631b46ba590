import Foundation
import Testing

@testable import SealedDB

/// What openings and attachments believe of a file, and what they leave beside it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct OpeningCareTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws { directory = try TemporaryDirectory() }

    // MARK: Attached stores

    private func attach(_ file: String, key: UInt8) throws -> DatabaseError? {
        let main = try Database.testing(directory.file("main"))
        defer { main.close() }
        let error = #expect(throws: DatabaseError.self) { try main.attach(file, as: "other", key: .testing(key)) }
        #expect(try main.integers("SELECT count(*) FROM pragma_database_list WHERE name = 'other'") == [0])
        // The main store goes on.
        try main.executeUpdate("CREATE TABLE IF NOT EXISTS still (a)")
        return error
    }

    /// The journal of a store must not be rolled back by somebody with the wrong key.
    @Test func aJournalOfAnotherKey() throws {
        let owner = try Database.testing(directory.file("owned"), journalMode: .delete)
        try owner.fill(rows: 300)
        try owner.spillChanges()
        try owner.execute(script: "BEGIN; UPDATE t SET body = 'x'")
        for ending in ["", "-journal"] { try directory.write("db" + ending, directory.bytes("owned" + ending)) }
        try owner.execute(script: "ROLLBACK")
        owner.close()
        let before = try (directory.bytes("db"), directory.bytes("db-journal"))
        let error = try attach(path, key: 2)
        #expect(error?.reason == .wrongKey, "\(error as Any)")
        #expect(try directory.bytes("db") == before.0 && directory.bytes("db-journal") == before.1)
        let store = try Database.testing(path)
        #expect(try store.integers("SELECT count(*) FROM t WHERE body LIKE 'secret row%'") == [300])
        store.close()
    }

    /// Nor must a log be written into the file, the store's own or another's.
    @Test(arguments: [1, 2] as [UInt8], [2, 3] as [UInt8]) func aLogAndAnotherKey(owner: UInt8, key: UInt8) throws {
        let store = try Database.testing(path, key: 1, journalMode: .wal)
        try store.fill(rows: 30)
        try store.execute(
            script: "PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET body = 'own'"
        )
        let file = try directory.bytes("db")
        var log = try directory.bytes("db-wal")
        store.close()
        if owner != 1 {
            let other = try Database.testing(directory.file("owned"), key: owner, journalMode: .wal)
            try other.fill(rows: 30)
            log = try directory.bytes("owned-wal")
            other.close()
        }
        try directory.write("db", file)
        try directory.write("db-wal", log)
        // With the key of the log, its pages are right, and the file's are not.
        let error = try attach(path, key: key)
        #expect(error?.message.contains("Nothing was attached") == true, "\(error as Any)")
        #expect(try directory.bytes("db") == file && directory.bytes("db-wal") == log)
        guard owner == 1 else { return }
        let again = try Database.testing(path)
        #expect(try again.integers("SELECT count(*) FROM t WHERE body = 'own'") == [30])
        again.close()
    }

    @Test func aWrongKeyIsToldSo() throws {
        let store = try Database.testing(path, journalMode: .delete)
        try store.fill(rows: 3)
        store.close()
        let error = try attach(path, key: 2)
        #expect(
            error?.reason == .wrongKey && error?.message.contains("Nothing was attached") == true,
            "\(error as Any)"
        )
    }

    /// Its journal may lie beside the other name.
    @Test func aStoreWithTwoNames() throws {
        let store = try Database.testing(path, journalMode: .delete)
        try store.fill(rows: 3)
        store.close()
        #expect(link(path, directory.file("link")) == 0)
        #expect(try attach(path, key: 1)?.reason == .hardLinked)
    }

    /// Slots may be among them that were removed, whichever store has them.
    @Test func olderSlots() throws {
        let store = try SlotStore()
        let old = try store.bytes()
        _ = try store.slots(2).remove("ops")
        try store.write(old)
        #expect(try attach(store.path, key: 1)?.reason == .olderSlots)
    }

    // MARK: Files that are cut off

    /// The last page was half written when the power failed, and the log has all of it.
    @Test func aLastPageThatTheLogHas() throws {
        let database = try Database.testing(path, journalMode: .wal)
        try database.fill(rows: 300)
        try database.execute(script: "PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE)")
        try database.executeUpdate("UPDATE t SET body = upper(body)")
        try directory.keep("db", "db-wal", of: database)
        try directory.write("db", directory.bytes("db").dropLast(100))
        let again = try Database.testing(path)
        #expect(try again.integers("SELECT count(*) FROM t WHERE body LIKE 'SECRET ROW%'") == [300])
        again.close()
    }

    // MARK: Headers in the clear

    /// SQLite would believe each of these, and write pages that nothing can read.
    @Test(arguments: [(16, 0x20), (17, 1), (18, 3), (18, 0), (19, 3), (19, 0), (20, 79), (20, 0)])
    func aHeaderThatWasChanged(place: Int, byte: UInt8) throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = CipherSettings(plaintextHeaderSize: 32, salt: Array(1...16))
        configuration.journalMode = .delete
        func open() throws -> Database {
            let database = Database(path: path, configuration: configuration)
            try database.openVerified()
            return database
        }
        let database = try open()
        try database.fill(rows: 30)
        database.close()
        let whole = try directory.bytes("db")
        try #require(whole[16] == 0x10 && whole[20] == 80)
        try directory.overwrite("db", at: place, with: [byte])
        let error = #expect(throws: DatabaseError.self) { try open() }
        #expect(
            error?.reason == .damaged && error?.message.contains("was changed: the header") == true,
            "\(error as Any)"
        )
        try directory.write("db", whole)
        let again = try open()
        #expect(try again.integers("SELECT count(*) FROM t") == [30])
        again.close()
    }

    // MARK: Whether a store was written to

    @Test func whatTheStateOfAStoreIs() throws {
        try directory.write("db", [1, 2, 3])
        let state = try #require(try StoreState.settled(path))
        #expect(try StoreState(of: path) == state)
        // A log without contents has nothing that the file lacks.
        try directory.write("db-wal", [])
        #expect(try StoreState(of: path) == state)
        #expect(try StoreState.settled(path) == state)
        try directory.write("db-wal", [1])
        #expect(try StoreState.settled(path) == nil)
        #expect(try StoreState.settledFile(path)?.hasSameFile(as: state) == true)
        #expect(try StoreState(of: path) != state)
        unlink(path + "-wal")
        // Where only whole seconds count, a later write may have the same time.
        var times = [timespec(tv_sec: 1_700_000_000, tv_nsec: 0), timespec(tv_sec: 1_700_000_000, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        #expect(try StoreState.settled(path) == nil)
        times[1].tv_nsec = 5
        #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        let other = try #require(try StoreState.settled(path))
        #expect(other != state && !other.hasSameFile(as: state))
    }

    /// That it cannot be locked at all is another thing than that somebody else has it.
    @Test(arguments: [(EIO, DatabaseError.Reason.ioError), (ENOLCK, .ioError), (EAGAIN, .busy), (EACCES, .busy)])
    func aFileThatCannotBeLocked(code: Int32, reason: DatabaseError.Reason) throws {
        let call = try FailedCall("lock db", code, prepare: { try $0.write("db", [1, 2, 3]) }) { directory in
            try StoreLock(directory.file("db")).release()
        }
        #expect(call.error?.reason == reason, "\(call.error as Any)")
        #expect(call.open == [])
    }
}
