import Foundation
import SealedDB
import Testing

/// `read(fromFile:)`, `write(toFile:)` and their throwing forms.
@Suite(.hangLimit)
struct MemoryImageTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("store") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func memory(key byte: UInt8? = 1, rows: Int = 0) throws -> Database {
        let database = Database(
            path: nil,
            configuration: Configuration(key: isEncrypting ? try byte.map { try .testing($0) } : nil)
        )
        try database.openVerified()
        if rows > 0 { try database.fill(rows: rows) }
        return database
    }

    private func count(_ database: Database) throws -> [Int] { try database.integers("SELECT count(*) FROM t") }

    private func isSound(key byte: UInt8? = 1) throws -> Bool {
        try IntegrityReport.verify(path: path, key: isEncrypting ? try byte.map { try .testing($0) } : nil).isSound
    }

    @Test func savesAndLoads() throws {
        let database = try memory(rows: 1000)
        #expect(database.write(toFile: path))
        #expect(directory.names == ["store"])
        #expect(try isSound())
        if isEncrypting { #expect(try directory.bytes("store").range(of: Data("secret row".utf8)) == nil) }
        let other = try memory(rows: 5)
        #expect(other.read(fromFile: path))
        #expect(try count(other) == [1000])
        try other.run("INSERT INTO t (body) VALUES ('more')")
        #expect(other.write(toFile: path))
        #expect(try count(try Database.testing(path)) == [1001])
        #expect(directory.names == ["store"])
    }

    @Test func withoutAKeyItIsPlaintext() throws {
        let database = try memory(key: nil, rows: 10)
        #expect(database.write(toFile: path))
        #expect(try directory.bytes("store").starts(with: Data("SQLite format 3\0".utf8)))
        let other = Database()
        #expect(other.open() && other.read(fromFile: path))
        #expect(try count(other) == [10])
    }

    @Test func anEmptyDatabaseCanBeSaved() throws {
        for key: UInt8? in [1, nil] {
            let path = directory.file("empty\(key == nil)")
            try memory(key: key).save(toFile: path)
            let other = try memory(key: key, rows: 3)
            try other.load(fromFile: path)
            #expect(try other.integers("SELECT count(*) FROM sqlite_schema") == [0])
        }
    }

    @Test func aKeySetAfterwardsCounts() throws {
        guard isEncrypting else { return }
        let database = Database(path: ":memory:")
        #expect(database.open() && database.setKey("correct horse"))
        try database.fill(rows: 3)
        try database.save(toFile: path)
        let store = Database(path: path)
        #expect(store.open() && store.setKey("correct horse"))
        #expect(try count(store) == [3])
    }

    @Test func onlyInMemory() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 1)
        #expect(!database.write(toFile: path))
        #expect(database.lastErrorCode() == SQLITE_MISUSE)
        #expect(!database.read(fromFile: path))
        #expect(database.lastErrorMessage().contains("in memory"))
        #expect(!Database(path: "").write(toFile: path))
        #expect(!Database().write(toFile: path))
        #expect(directory.namesOfFiles == ["db"])
    }

    @Test func loadingRefusesAndKeepsWhatThereIs() throws {
        let database = try memory(rows: 7)
        let absent = #expect(throws: DatabaseError.self) { try database.load(fromFile: path) }
        #expect(absent?.reason == .noSuchFile)
        #expect(directory.names == [])
        try Data().write(to: URL(fileURLWithPath: path))
        let empty = #expect(throws: DatabaseError.self) { try database.load(fromFile: path) }
        #expect(empty?.reason == .notADatabase)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int == 0)
        try Data(repeating: 65, count: 8192).write(to: URL(fileURLWithPath: path))
        #expect(throws: DatabaseError.self) { try database.load(fromFile: path) }
        #expect(throws: DatabaseError.self) { try database.load(fromFile: directory.path) }
        #expect(throws: DatabaseError.self) { try memory(key: nil).load(fromFile: path) }
        #expect(try count(database) == [7])
        #expect(database.beginImmediateTransaction())
        try memory(rows: 3).save(toFile: directory.file("good"))
        #expect(throws: DatabaseError.self) { try database.load(fromFile: directory.file("good")) }
        #expect(database.rollback())
        #expect(try count(database) == [7])
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func loadingTellsWrongKeyPlaintextAndMissingKey() throws {
        let database = try memory(rows: 7)
        try memory(key: 2, rows: 1).save(toFile: directory.file("other"))
        try memory(key: nil, rows: 1).save(toFile: directory.file("plain"))
        for (name, reason) in [("other", DatabaseError.Reason.wrongKey), ("plain", .plaintext)] {
            let error = #expect(throws: DatabaseError.self) { try database.load(fromFile: directory.file(name)) }
            #expect(error?.reason == reason)
        }
        let keyless = try memory(key: nil, rows: 4)
        let error = #expect(throws: DatabaseError.self) { try keyless.load(fromFile: directory.file("other")) }
        #expect(error?.reason == .keyRequired)
        #expect(try count(database) == [7])
        #expect(try count(keyless) == [4])
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func savingReplacesOnlyWhatItCouldHaveWritten() throws {
        try memory(key: 2, rows: 2).save(toFile: path)
        let encrypted = try directory.bytes("store")
        let plain = #expect(throws: DatabaseError.self) { try memory(key: nil, rows: 9).save(toFile: path) }
        #expect(plain?.reason == .keyRequired && plain?.message.contains("not replaced") == true)
        let otherKey = #expect(throws: DatabaseError.self) { try memory(key: 1, rows: 9).save(toFile: path) }
        #expect(otherKey?.reason == .wrongKey)
        #expect(try directory.bytes("store") == encrypted)
        try FileManager.default.removeItem(atPath: path)
        try memory(key: nil, rows: 2).save(toFile: path)
        let plaintext = try directory.bytes("store")
        let overPlaintext = #expect(throws: DatabaseError.self) { try memory(key: 1, rows: 9).save(toFile: path) }
        #expect(overPlaintext?.reason == .plaintext)
        #expect(try directory.bytes("store") == plaintext)
        #expect(directory.names == ["store"])
    }

    @Test func otherFilesAreNotReplaced() throws {
        let letter = Data(repeating: 65, count: 1000)
        try letter.write(to: URL(fileURLWithPath: path))
        for key: UInt8? in [1, nil] {
            #expect(throws: DatabaseError.self) { try memory(key: key, rows: 9).save(toFile: path) }
            #expect(throws: DatabaseError.self) { try memory(key: key, rows: 9).save(toFile: directory.path) }
        }
        #expect(try directory.bytes("store") == letter)
        #expect(throws: DatabaseError.self) { try memory(rows: 9).save(toFile: directory.file("absent/store")) }
        try FileManager.default.createSymbolicLink(
            atPath: directory.file("dangling"),
            withDestinationPath: directory.file("absent")
        )
        #expect(throws: DatabaseError.self) { try memory(rows: 9).save(toFile: directory.file("dangling")) }
        #expect(directory.names == ["dangling", "store"])
    }

    @Test func symbolicLinksAreFollowedAndAttributesKept() throws {
        try memory(rows: 2).save(toFile: path)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        let link = directory.file("link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        try memory(rows: 3).save(toFile: link)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o640)
        #expect(try count(try Database.testing(path)) == [3])
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func usersOfTheOldFileAreFound(_ mode: Configuration.JournalMode) throws {
        let user = try Database.testing(path, journalMode: mode)
        try user.fill(rows: 5)
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.busyTimeout = .zero
        let database = Database(path: nil, configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 8)
        #expect(user.beginImmediateTransaction())
        try user.run("INSERT INTO t (body) VALUES ('mine')")
        let error = #expect(throws: DatabaseError.self) { try database.save(toFile: path) }
        #expect(error?.reason == .busy)
        #expect(user.commit())
        #expect(try count(user) == [6])
        #expect(!directory.names.contains { $0.hasPrefix(".store") })
        if mode == .wal {
            // A log that has not been moved into the file would be taken for one of the new file.
            #expect(throws: DatabaseError.self) { try database.save(toFile: path) }
            #expect(try count(user) == [6])
            #expect(try user.value("PRAGMA journal_mode") == "wal")
        }
        #expect(user.close())
        try database.save(toFile: path)
        let store = try Database.testing(path)
        #expect(try count(store) == [8])
        #expect(try store.value("PRAGMA journal_mode") == .text(mode.rawValue))
    }

    /// They would be looked for there.
    @Test(.enabled(if: isEncrypting, "the plain build has no slots"))
    func namesOfSlotFilesAreRefused() throws {
        try memory(rows: 2).save(toFile: path)
        for ending in [".slots", ".slots.2"] {
            let error = #expect(throws: DatabaseError.self) { try memory(rows: 3).save(toFile: path + ending) }
            #expect(error?.reason == .cannotCreate && error?.message.contains("Nothing was changed") == true)
        }
        #expect(directory.names == ["store"])
    }

    /// SQLite would take them for journals of the new file.
    @Test(arguments: [Configuration.JournalMode.persist, .truncate])
    func noJournalOfTheOldFileIsLeft(_ mode: Configuration.JournalMode) throws {
        let user = try Database.testing(path, journalMode: mode)
        try user.fill(rows: 5)
        user.close()
        #expect(directory.names == ["store", "store-journal"])
        try memory(rows: 8).save(toFile: path)
        #expect(directory.names == ["store"])
        #expect(try count(try Database.testing(path)) == [8])
    }

    @Test func whatCannotBeReplacedStays() throws {
        try memory(rows: 2).save(toFile: path)
        let before = try directory.bytes("store")
        let database = try memory(rows: 9)
        #expect(database.beginImmediateTransaction())
        try database.run("INSERT INTO t (body) VALUES ('x')")
        #expect(throws: DatabaseError.self) { try database.save(toFile: path) }
        #expect(database.rollback())
        try FileManager.default.linkItem(atPath: path, toPath: directory.file("second"))
        let linked = #expect(throws: DatabaseError.self) { try database.save(toFile: path) }
        #expect(linked?.reason == .hardLinked)
        #expect(try directory.bytes("store") == before)
        #expect(directory.names == ["second", "store"])
    }

    /// It leaves WAL mode for the swap. When the swap fails, nothing but its rows is what was meant to change.
    @Test func aSwapThatFailsLeavesTheOldFileInWALMode() throws {
        let user = try Database.testing(path, journalMode: .wal)
        try user.fill(rows: 5)
        #expect(user.close())
        let database = try memory(rows: 8)
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let all = CallWatch(directory.path)
        try database.save(toFile: path)
        let calls = all.endWithAll()
        let swap = try #require(calls.firstIndex { $0 == "rename store" })
        try before.write(to: URL(fileURLWithPath: path))
        let failing = CallWatch(directory.path, failing: swap...swap)
        let error = #expect(throws: DatabaseError.self) { try database.save(toFile: path) }
        #expect(failing.end(describing: swap) == "rename store")
        #expect(error?.reason == .ioError, "\(String(describing: error))")
        #expect(error?.message.hasPrefix("Nothing was saved, and \(path) is as it was: ") == true)
        #expect(directory.names == ["store"])
        let store = try Database.testing(path)
        #expect(try count(store) == [5])
        #expect(try store.value("PRAGMA journal_mode") == .text("wal"))
        #expect(store.close())
    }

    /// A new file that could not be written or get its name is no file; one whose name may be lost is there.
    @Test func whatIsLeftOfANewFile() throws {
        let database = try memory(rows: 8)
        let all = CallWatch(directory.path)
        try database.save(toFile: path)
        let calls = all.endWithAll()
        let sync = try #require(calls.firstIndex { $0.hasPrefix("fsync") })
        let name = try #require(calls.firstIndex { $0.hasPrefix("renameat2") })
        let end = try #require(calls.lastIndex { $0.hasPrefix("fsync") })
        try #require(sync < name && name < end)
        for index in [sync, name, end] {
            try FileManager.default.removeItem(atPath: path)
            let failing = CallWatch(directory.path, failing: index...index)
            let error = #expect(throws: DatabaseError.self) { try database.save(toFile: path) }
            #expect(failing.end(describing: index) == calls[index])
            #expect(directory.names == (index == end ? ["store"] : []), "\(calls[index])")
            let lost = "\(path) is complete, but the directory could not be synced: "
            let told = index == end ? lost : "Nothing was saved: "
            #expect(error?.message.hasPrefix(told) == true, "\(String(describing: error))")
            // It is removed again by the next.
            if index != end { try database.save(toFile: path) }
        }
        #expect(try isSound())
    }

    @Test func observersAreToldOfALoad() async throws {
        try memory(rows: 2).save(toFile: path)
        let database = try memory()
        var changes = database.changes(in: ["t"]).makeAsyncIterator()
        try database.load(fromFile: path)
        #expect(await changes.next()?.tables == ["t": .any])
    }

    @Test func customCollationsAndTokenizersAreSaved() throws {
        let database = try memory()
        try database.addCollation("backwards") { $1.compare($0) }
        try database.addTokenizer("words") { _ in SimpleTokenizer() }
        try database.run("CREATE TABLE c (name TEXT COLLATE backwards UNIQUE)")
        try database.run("INSERT INTO c VALUES ('a'), ('b')")
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = words)")
        try database.run("INSERT INTO s VALUES ('It''s here')")
        try database.save(toFile: path)
        try database.run("DELETE FROM c")
        try database.load(fromFile: path)
        #expect(try database.rows("SELECT name FROM c ORDER BY name") == [["b"], ["a"]])
        #expect(try database.value("SELECT count(*) FROM s WHERE s MATCH 'here'") == 1)
    }
}
