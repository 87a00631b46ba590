import Foundation
import SealedDB
import Testing

/// SQLite removes or overwrites whatever has the name of a store's journal, log or index.
@Suite(.hangLimit)
struct MisplacedFileTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let endings = ["-journal", "-wal", "-shm"]
    /// As a key file is.
    private static let contents = Data(String(repeating: "5e", count: 32).utf8 + [0x0a])

    /// Expects that nothing opens or attaches "db", and that the file is as it was.
    private func expectRefusal(
        _ ending: String,
        _ mode: Configuration.JournalMode,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let name = directory.file("db\(ending)")
        let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) {
            let database = try Database.testing(directory.file("db"), journalMode: mode)
            try database.fill(rows: 5)
            database.close()
        }
        #expect(
            // A log beside no store is refused before.
            error?.message.hasPrefix("\(name) has the name of") == true
                || error?.message.hasPrefix("\(name) belongs to") == true,
            "\(String(describing: error))",
            sourceLocation: sourceLocation
        )
        let memory = try Database.testing(nil)
        #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) {
            try memory.attach(directory.file("db"), as: "db", key: isEncrypting ? .testing(1) : nil)
        }
        #expect(!memory.executeStatements("ATTACH '\(raw: directory.file("db"))' AS db; CREATE TABLE db.u (a)"))
        memory.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: name)) == Self.contents, sourceLocation: sourceLocation)
    }

    @Test(arguments: endings, [Configuration.JournalMode.delete, .wal])
    func besideANewStore(ending: String, mode: Configuration.JournalMode) throws {
        try Self.contents.write(to: URL(fileURLWithPath: directory.file("db\(ending)")))
        try expectRefusal(ending, mode)
        #expect(!FileManager.default.fileExists(atPath: directory.file("db")))
    }

    @Test(arguments: endings, [Configuration.JournalMode.delete, .wal])
    func besideAStore(ending: String, mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 5)
        #expect(database.close())
        try Self.contents.write(to: URL(fileURLWithPath: directory.file("db\(ending)")))
        try expectRefusal(ending, mode)
        unlink(directory.file("db\(ending)"))
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [5])
    }

    /// What SQLite leaves of a journal that is not needed any more is none of them.
    @Test(arguments: [Configuration.JournalMode.persist, .truncate])
    func whatSQLiteLeaves(mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 5)
        #expect(database.close())
        #expect(FileManager.default.fileExists(atPath: directory.file("db-journal")))
        #expect(try Database.testing(directory.file("db"), journalMode: mode).integers("SELECT count(*) FROM t") == [5])
        // An index whose maker was killed.
        for length in [0, 3, 32768] {
            try Data(count: length).write(to: URL(fileURLWithPath: directory.file("db-shm")))
            let database = try Database.testing(directory.file("db"), journalMode: .wal)
            #expect(try database.integers("SELECT count(*) FROM t") == [5])
            #expect(database.close())
        }
    }
}
