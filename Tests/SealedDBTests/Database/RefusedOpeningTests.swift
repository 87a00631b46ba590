import Foundation
import Testing

@testable import SealedDB

/// What was asked for and cannot be had is refused, before anything is written.
@Suite(.hangLimit)
struct RefusedOpeningTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeStore(_ journalMode: Configuration.JournalMode = .delete) throws {
        let database = try Database.testing(path, journalMode: journalMode)
        try database.fill(rows: 10)
        #expect(database.close())
    }

    private func configuration() throws -> Configuration { Configuration(key: isEncrypting ? try .testing(1) : nil) }

    /// This VFS has no memory that connections share, which a write-ahead log needs.
    @Test func aJournalModeThatTheVFSLacks() throws {
        try makeStore()
        var configuration = try configuration()
        configuration.journalMode = .wal
        let database = Database(path: path, configuration: configuration)
        #expect(!database.open(withFlags: SQLITE_OPEN_READWRITE, vfs: "unix-dotfile"))
        #expect(database.lastErrorMessage().contains("could not be made wal"), "\(database.lastError())")
        #expect(!database.isOpen)
        configuration.journalMode = .delete
        let other = Database(path: path, configuration: configuration)
        #expect(other.open(withFlags: SQLITE_OPEN_READWRITE, vfs: "unix-dotfile"), "\(other.lastError())")
        #expect(try other.integers("SELECT count(*) FROM t") == [10])
    }

    /// SQLite itself only says that it cannot.
    @Test func whatTheSystemSaysIsTold() throws {
        let database = Database(path: directory.file("missing/db"))
        let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
        #expect(error?.message.hasSuffix("(No such file or directory)") == true, "\(error as Any)")
    }

    /// Otherwise commits would be less durable than they were to be.
    @Test func aFileThatCannotBeReadNow() throws {
        let writer = Database(path: path)
        #expect(writer.open())
        try writer.execute(script: "PRAGMA journal_mode = delete; CREATE TABLE t (a); BEGIN EXCLUSIVE")
        var configuration = Configuration()
        configuration.busyTimeout = .zero
        let database = Database(path: path, configuration: configuration)
        #expect(!database.open())
        #expect(database.lastErrorCode() == SQLITE_BUSY, "\(database.lastError())")
        #expect(writer.rollback())
        #expect(database.open())
    }

    @Test func attachingToWhatIsReadOnlyMakesNoFile() throws {
        try makeStore()
        var configuration = try configuration()
        configuration.isReadOnly = true
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        let error = #expect(throws: DatabaseError.self) {
            try database.attach(directory.file("other"), as: "other", key: configuration.key)
        }
        #expect(error?.reason == .noSuchFile, "\(error as Any)")
        #expect(!directory.names.contains("other"))
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: [nil, "", ":memory:"])
    func theKeyOfWhatIsInMemory(path: String?) throws {
        let database = try Database.testing(path)
        try database.fill(rows: 3)
        #expect(!database.rekey("another"))
        let error = database.lastError() as? DatabaseError
        #expect(error?.reason == .misuse && error?.message.contains("Only an encrypted file") == true)
        #expect(try database.integers("SELECT count(*) FROM t") == [3])
    }

    /// Before anything is copied.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func theKeyThatItHas() throws {
        try makeStore()
        let database = try Database.testing(path)
        let error = #expect(throws: DatabaseError.self) { try database.pathToRotate(for: .testing(1)) }
        #expect(error?.message.contains("The new key is the old one") == true, "\(error as Any)")
        #expect(try database.pathToRotate(for: .testing(2)).hasSuffix("/db"))
    }

    /// The connection that reads the log is SQLite's own, whose locks those of another VFS would not meet.
    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: [nil, "unix-excl"])
    func aLogIsFollowedOnlyWithTheUsualVFS(vfs: String?) throws {
        try makeStore()
        var configuration = try configuration()
        configuration.journalMode = .wal
        let database = Database(path: path, configuration: configuration)
        #expect(database.open(withFlags: SQLITE_OPEN_READWRITE, vfs: vfs), "\(database.lastError())")
        let copy = try database.liveCopy(for: .testing(2))
        #expect(copy is FollowedCopy == (vfs == nil) && copy is LiveCopy == (vfs != nil))
        copy.discard()
        #expect(try database.integers("SELECT count(*) FROM t") == [10])
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func replicationThroughAnotherVFS() throws {
        var configuration = Configuration(
            key: try .testing(1),
            replication: Replication(to: directory.file("repository"))
        )
        configuration.journalMode = .wal
        let gate = ThreadGate()
        let database = Database(path: path, configuration: configuration, gate: gate)
        database.enter()
        defer { database.leave() }
        #expect(!database.open(withFlags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs: "unix-excl"))
        #expect(database.lastErrorMessage().contains("another VFS"), "\(database.lastError())")
        #expect(directory.names == [])
    }

    /// With a key there is no image without a page, but without one it is that of a database nobody has written to.
    @Test func anImageWithoutBytes() throws {
        let database = try Database.opening(serialized: Data())
        #expect(try database.integers("SELECT count(*) FROM sqlite_schema") == [0])
        let keyed = try configuration()
        guard isEncrypting else { return }
        let error = #expect(throws: DatabaseError.self) {
            _ = try Database.opening(serialized: Data(), configuration: keyed)
        }
        #expect(error?.reason == .notADatabase)
    }

    @Test func theImageOfWhatNobodyHasWrittenTo() throws {
        let database = Database(path: nil)
        try database.openVerified()
        for image in [try database.serialized(), try database.plaintextSerialized()] {
            let copy = try Database.opening(serialized: image)
            #expect(try copy.integers("SELECT count(*) FROM sqlite_schema") == [0])
            try copy.fill(rows: 2)
        }
    }

    /// That a store has a key says nothing of a file that SQL attaches.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aFileThatIsNoDatabaseBesideAStore() throws {
        try makeStore()
        try directory.write("other", [UInt8](repeating: 0x61, count: 8192))
        var configuration = try configuration()
        configuration.allowsCipherStatements = true
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        #expect(
            !database.executeStatements(
                "ATTACH '\(raw: directory.file("other"))' AS other KEY ''; SELECT * FROM other.t"
            )
        )
        let error = database.lastError() as? DatabaseError
        #expect(error?.code == SQLITE_NOTADB && error?.reason == .sqlite, "\(error as Any)")
        #expect(try database.integers("SELECT count(*) FROM t") == [10])
    }

    /// SQL gives the key and the settings, which come directly after it.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aNewStoreWhoseSettingsSQLGives() throws {
        var configuration = Configuration()
        configuration.allowsCipherStatements = true
        configuration.journalMode = .truncate
        configuration.cacheSize = 100
        let database = Database(path: path, configuration: configuration)
        #expect(database.open())
        let digits = String(repeating: "5a", count: 32)
        let pragmas = "PRAGMA key = \"x'\(digits)'\"; PRAGMA cipher_page_size = 1024;"
        #expect(database.executeStatements("\(raw: pragmas) CREATE TABLE t (a); INSERT INTO t VALUES (7)"))
        #expect(database.close())
        #expect(try StockShell.run(path, "\(pragmas) SELECT a FROM t;") == ["7"])
    }
}
