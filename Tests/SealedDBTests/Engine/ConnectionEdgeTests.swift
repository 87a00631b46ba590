import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// What a connection does with files that are moved, locked, empty or named oddly, and what it gives back when it ends.
@Suite(.hangLimit)
struct ConnectionEdgeTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let flags = SealedDB.SQLITE_OPEN_READWRITE | SealedDB.SQLITE_OPEN_CREATE

    private func connection(_ name: String = "db") throws -> Connection {
        try Connection(path: directory.file(name), flags: Self.flags)
    }

    // MARK: Opening

    /// SQLite refuses these names and flags without a call of the system that could fail. How an earlier one failed says nothing.
    @Test(arguments: [EIO, EACCES]) func whyAFileIsNotOpened(earlier: Int32) {
        let long = "/" + String(repeating: "a", count: 5000)
        errno = earlier
        let error = #expect(throws: DatabaseError.self) { try Connection(path: long, flags: Self.flags) }
        #expect(error?.reason == .noSuchFile, "\(String(describing: error))")
        let other = #expect(throws: DatabaseError.self) { try Connection(path: directory.file("none"), flags: 0) }
        #expect(other?.code == SealedDB.SQLITE_MISUSE, "\(String(describing: other))")
        #expect(other?.reason != .noSuchFile, "\(String(describing: other))")
        #expect(directory.names == [])
    }

    @Test func theTraitsOfTheBuild() {
        #expect(EngineInfo.enabledTraits.contains(isEncrypting ? "SQLCipher" : "PlainSQLite"))
    }

    @Test func aTimeThatIsNoNumber() throws {
        let connection = try connection()
        defer { connection.close() }
        connection.setBusyTimeout(seconds: 1)
        connection.setBusyTimeout(seconds: .nan)
        #expect(try connection.integer("PRAGMA busy_timeout") == 0)
    }

    // MARK: Files that are moved

    @Test func aFileThatWasMovedBeforeItWasFirstLookedAt() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        try FileManager.default.copyItem(atPath: path, toPath: directory.file("copy"))
        #expect(rename(directory.file("copy"), path) == 0)
        #expect(try connection.mainFileHasMoved())
        #expect(try connection.mainFileHasMoved())
    }

    @Test func aDatabaseInMemoryDoesNotMove() throws {
        let connection = try Connection(path: ":memory:", flags: Self.flags)
        defer { connection.close() }
        #expect(try !connection.mainFileHasMoved())
    }

    @Test func aStoreWithoutALog() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        let handle = try #require(connection.handle)
        #expect(try connection.waitForLogPosition(handle) == nil)
        // The index that was asked for is there now, and SQLite only removes that of a log.
        var file: UnsafeMutablePointer<sqlite3_file>?
        #expect(sealeddb_open_file(handle, "main", &file) == SQLiteEngine.SQLITE_OK)
        let opened = try #require(file)
        #expect(opened.pointee.pMethods.pointee.xShmUnmap(opened, 1) == SQLiteEngine.SQLITE_OK)
    }

    /// Somebody who writes the index may be stopped in the middle of it. He is waited for, but not for ever.
    @Test func anIndexThatIsWrittenForLong() throws {
        let connection = try connection()
        defer { connection.close() }
        #expect(try connection.text("PRAGMA journal_mode = wal") == "wal")
        try connection.run("CREATE TABLE t (a)")
        try connection.run("BEGIN")
        _ = try connection.integer("SELECT count(*) FROM t")
        let handle = try #require(connection.handle)
        #expect(try connection.waitForLogPosition(handle) != nil)
        let index = try FileHandle.closedToChildren(path + "-shm", O_RDWR)
        var byte: UInt8 = 0
        #expect(pread(index.fileDescriptor, &byte, 1, 8) == 1)
        byte ^= 1
        #expect(pwrite(index.fileDescriptor, &byte, 1, 8) == 1)
        // Pauses of this thread that end at once.
        let pauses = CallWatch(nil, failing: 0...10_000)
        let error = #expect(throws: DatabaseError.self) { try connection.waitForLogPosition(handle) }
        #expect(pauses.endWithAll().count { $0.hasPrefix("nanosleep") } == 2000)
        #expect(error?.code == SealedDB.SQLITE_PROTOCOL, "\(String(describing: error))")
        byte ^= 1
        #expect(pwrite(index.fileDescriptor, &byte, 1, 8) == 1)
        #expect(try connection.waitForLogPosition(handle) != nil)
        try connection.run("COMMIT")
    }

    // MARK: Images

    @Test func theImageOfAnEmptyFile() throws {
        try directory.write("db", [])
        let connection = try Connection(path: path, flags: SealedDB.SQLITE_OPEN_READONLY)
        defer { connection.close() }
        #expect(try connection.plaintextImage().isEmpty)
    }

    /// What cannot be read is not taken for an empty database.
    @Test func theImageOfAFileThatIsLocked() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        let other = try self.connection()
        defer { other.close() }
        try other.run("BEGIN EXCLUSIVE")
        #expect(throws: DatabaseError.self) { try connection.plaintextImage() }
        try other.run("COMMIT")
        #expect(try connection.plaintextImage().count == 2 * 4096)
    }

    // MARK: Logs of attached files

    /// The log of an attached file is moved when it has become long, and not at each commit.
    @Test func theLogOfAnAttachedFile() throws {
        let connection = try connection()
        defer { connection.close() }
        connection.countWALFrames()
        try connection.unguarded { () throws(DatabaseError) in
            try connection.run("ATTACH '\(directory.file("other"))' AS o")
            _ = try connection.text("PRAGMA o.journal_mode = wal")
        }
        try connection.run("CREATE TABLE o.t (a)")
        let before = try directory.bytes("other")
        try connection.run("INSERT INTO o.t VALUES (zeroblob(20000))")
        #expect(try directory.bytes("other") == before)
        try connection.run("INSERT INTO o.t VALUES (zeroblob(5000000))")
        #expect(try directory.bytes("other").count > 4_000_000)
    }

    // MARK: Closing

    private var descriptors: [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return all.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0) }
    }

    /// Something that the library does not know of still uses it, and ends later.
    @Test func whatIsInUseIsClosedWhenThatEnds() throws {
        let connection = try connection()
        try connection.run("CREATE TABLE t (a)")
        var statement: OpaquePointer?
        #expect(sqlite3_prepare_v2(connection.handle, "SELECT * FROM t", -1, &statement, nil) == 0)
        #expect(!connection.close())
        #expect(connection.handle == nil)
        #expect(descriptors.contains(path))
        sqlite3_finalize(statement)
        #expect(!descriptors.contains(path))
    }

    /// A function that a statement calls cannot end that statement.
    @Test func closingWithinAFunction() throws {
        let database = Database(path: path)
        try database.openVerified()
        defer { database.close() }
        let connection = try #require(database.connection)
        try database.addFunction("close", argumentCount: 1) { [unowned connection] arguments in
            if arguments.integer(at: 0) == 0 { return SQLValue(connection.close()) }
            connection.abandon()
            return .integer(7)
        }
        #expect(try connection.texts("SELECT close(0) UNION ALL SELECT close(1)") == ["0", "7"])
        #expect(connection.handle != nil)
        #expect(try connection.integer("SELECT 1") == 1)
    }

    // MARK: Settings

    /// As many pages as there are cannot be forbidden, and no setting is lost by that.
    @Test func aLimitOfPagesThatIsTooLow() throws {
        let (small, large) = (try connection(), try connection("large"))
        defer {
            small.close()
            large.close()
        }
        try small.run("CREATE TABLE t (a)")
        try small.run("PRAGMA max_page_count = 5")
        try large.run("CREATE TABLE t AS SELECT zeroblob(100000)")
        try ConnectionSettings(of: small).restore(on: large)
        #expect(try large.integer("PRAGMA max_page_count") ?? 0 > 5)
    }

    @Test func settingsThatCannotBeRestored() throws {
        let (file, other) = (try connection(), try connection("other"))
        let memory = try Connection(path: ":memory:", flags: Self.flags)
        defer { for connection in [file, other, memory] { connection.close() } }
        try file.run("CREATE TABLE t (a)")
        try other.run("PRAGMA page_size = 512")
        try other.run("CREATE TABLE t (a)")
        // A database in memory has no journal in a file.
        let journal = #expect(throws: DatabaseError.self) { try ConnectionSettings(of: file).restore(on: memory) }
        #expect(journal?.message.contains("journal_mode could not be set") == true, "\(String(describing: journal))")
        // More small pages than large ones are in the cache before it spills.
        let spill = #expect(throws: DatabaseError.self) { try ConnectionSettings(of: file).restore(on: other) }
        #expect(spill?.message.contains("cache_spill could not be set") == true, "\(String(describing: spill))")
    }

    // MARK: Changes that are held

    private func holding(_ journalMode: String) throws -> Connection {
        let connection = try connection()
        connection.setBusyTimeout(seconds: 0)
        #expect(try connection.text("PRAGMA journal_mode = \(journalMode)") == journalMode)
        try connection.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b)")
        try connection.run("INSERT INTO t VALUES (0, 0), (-1, 0)")
        try connection.run("PRAGMA cache_size = 10")
        try connection.holdChanges()
        return connection
    }

    private let much = "INSERT INTO t (b) SELECT zeroblob(20000000)"

    /// Who only reads in the transaction undoes nothing, so that what was changed is written meanwhile.
    @Test func aReaderDoesNotKeepChangesInMemory() throws {
        let connection = try holding("wal")
        defer { connection.close() }
        let reader = try connection.prepare("SELECT id FROM t WHERE id <= 0")
        defer { reader.close() }
        try connection.run("BEGIN")
        try connection.run(much)
        #expect(try reader.step())
        let before = try directory.bytes("db-wal").count
        try connection.writeHeldChanges()
        #expect(try directory.bytes("db-wal").count > before + 10_000_000)
        reader.close()
        try connection.run("ROLLBACK")
    }

    /// Nothing more is done on a connection of which that is known.
    @Test func changesThatCannotBeWritten() throws {
        let gate = ThreadGate()
        gate.enter()
        let connection = try Connection(path: path, flags: Self.flags, gate: gate)
        defer { connection.close() }
        #expect(try connection.text("PRAGMA journal_mode = wal") == "wal")
        try connection.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b)")
        try connection.run("PRAGMA cache_size = 10")
        try connection.holdChanges()
        try connection.run("BEGIN")
        try connection.run(much)
        #expect(!connection.isUnfit)
        let watch = CallWatch(directory.path, failing: 0...100_000)
        let error = #expect(throws: DatabaseError.self) { try connection.writeHeldChanges() }
        watch.end()
        #expect(error?.code == SealedDB.SQLITE_IOERR, "\(String(describing: error))")
        #expect(connection.isUnfit)
        #expect(connection.rollBack())
        #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    }

    /// Somebody who reads keeps the file from being written to, and the changes stay in memory.
    @Test func changesThatCannotBeWrittenYet() throws {
        let connection = try holding("delete")
        defer { connection.close() }
        let other = try self.connection()
        defer { other.close() }
        let reader = try other.prepare("SELECT id FROM t")
        #expect(try reader.step())
        try connection.run("BEGIN")
        try connection.run(much)
        try connection.writeHeldChanges()
        reader.close()
        try connection.run("COMMIT")
        #expect(try other.integer("SELECT count(*) FROM t") == 3)
    }
}
