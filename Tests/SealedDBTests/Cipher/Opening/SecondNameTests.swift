import Foundation
import SealedDB
import Testing

/// A store that two open by different names would have two logs.
@Suite(.hangLimit)
struct SecondNameTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func expectRefusal(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) {
        let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) {
            try Database.testing(directory.file(name))
        }
        #expect(error?.reason == .hardLinked, "\(String(describing: error))", sourceLocation: sourceLocation)
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal]) func hardLinks(mode: Configuration.JournalMode) throws {
        try FileManager.default.createDirectory(atPath: directory.file("elsewhere"), withIntermediateDirectories: false)
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 5)
        #expect(database.close())
        #expect(link(directory.file("db"), directory.file("elsewhere/db")) == 0)
        expectRefusal("db")
        expectRefusal("elsewhere/db")
        unlink(directory.file("elsewhere/db"))
        #expect(link(directory.file("db"), directory.file("other")) == 0)
        expectRefusal("db")
        expectRefusal("other")
        unlink(directory.file("other"))
        // As a rotation that was killed leaves it. By the second name nothing is written.
        #expect(link(directory.file("db"), directory.file("db.old")) == 0)
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [5])
        expectRefusal("db.old")
        // Somebody uses it by the other name, or did: what is committed there is not seen by this one.
        for ending in ["-wal", "-shm", "-journal"] {
            #expect(FileManager.default.createFile(atPath: directory.file("db.old\(ending)"), contents: nil))
            expectRefusal("db")
            unlink(directory.file("db.old\(ending)"))
        }
        // A rotation gives one name.
        #expect(link(directory.file("db"), directory.file("db.older")) == 0)
        expectRefusal("db")
    }

    /// By whatever way it is opened.
    @Test func hardLinksOfAttachedStores() throws {
        try Database.testing(directory.file("db"), journalMode: .wal).fill(rows: 5)
        #expect(link(directory.file("db"), directory.file("other")) == 0)
        let database = try Database.testing(nil)
        defer { database.close() }
        let error = #expect(throws: DatabaseError.self) {
            try database.attach(directory.file("db"), as: "db", key: isEncrypting ? .testing(1) : nil)
        }
        #expect(error?.reason == .hardLinked)
        #expect(!database.executeStatements("ATTACH '\(raw: directory.file("db"))' AS db"))
        unlink(directory.file("other"))
        try database.attach(directory.file("db"), as: "db", key: isEncrypting ? .testing(1) : nil)
    }

    /// A symbolic link is no second name: SQLite follows it before it names the log.
    @Test func symbolicLinks() throws {
        try Database.testing(directory.file("db"), journalMode: .wal).fill(rows: 5)
        #expect(symlink(directory.file("db"), directory.file("link")) == 0)
        #expect(try Database.testing(directory.file("link")).integers("SELECT count(*) FROM t") == [5])
    }

    // MARK: Names of what belongs to another store

    /// Whoever uses that store would remove or overwrite the file.
    @Test(arguments: ["-journal", "-wal", "-shm", "-sealdb-lock", "-mj0A1B2C9D3"])
    func namesOfSiblings(ending: String) throws {
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 5)
        let name = directory.file("db" + ending)
        unlink(name)
        func expectRefusal(_ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) {
            let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation, performing: body)
            #expect(error?.reason == .cannotCreate, "\(String(describing: error))", sourceLocation: sourceLocation)
            #expect(error?.message.contains("belongs to") == true, sourceLocation: sourceLocation)
            #expect(!FileManager.default.fileExists(atPath: name), sourceLocation: sourceLocation)
        }
        expectRefusal { _ = try Database.testing(name) }
        expectRefusal {
            try Database.testing(nil).attach(name, as: "other", key: isEncrypting ? .testing(1) : nil)
        }
        #expect(!store.executeStatements("ATTACH '\(raw: name)' AS other"))
        expectRefusal { try Database.testing(nil).save(toFile: name) }
        guard isEncrypting else { return }
        expectRefusal {
            _ = try StoreBackup(path: directory.file("db"), key: .testing(1), to: name).run()
        }
        // A file with such a name is anybody's as long as there is no such store.
        #expect(store.close())
        try FileManager.default.moveItem(atPath: directory.file("db"), toPath: directory.file("moved"))
        try Database.testing(name).fill(rows: 1)
        // Nor does what is no database have a log.
        try Data("#!/bin/sh\n".utf8).write(to: URL(fileURLWithPath: directory.file("script")))
        try Database.testing(directory.file("script" + ending)).fill(rows: 1)
        try FileManager.default.createDirectory(atPath: directory.file("box"), withIntermediateDirectories: false)
        try Database.testing(directory.file("box" + ending)).fill(rows: 1)
    }

    // MARK: Names that are lost while the store is open

    enum Loss: CaseIterable {
        case renamed, removed, replaced
    }

    /// What would be acknowledged would be in no file that has a name.
    @Test(arguments: Loss.allCases, [Configuration.JournalMode.delete, .wal, .memory])
    func nothingIsCommitted(loss: Loss, mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 5)
        try expectNothingIsCommitted(database, loss, isWAL: mode == .wal)
    }

    @Test(arguments: Loss.allCases, [Configuration.JournalMode.delete, .wal])
    func nothingIsCommittedToAnAttachedStore(loss: Loss, mode: Configuration.JournalMode) throws {
        try Database.testing(directory.file("db"), journalMode: mode).fill(rows: 5)
        let database = try Database.testing(nil)
        try database.attach(directory.file("db"), as: "db", key: isEncrypting ? .testing(1) : nil)
        try expectNothingIsCommitted(database, loss, isWAL: mode == .wal)
    }

    private func expectNothingIsCommitted(_ database: Database, _ loss: Loss, isWAL: Bool) throws {
        try Database.testing(directory.file("new")).fill(rows: 7)
        #expect(database.executeStatements("BEGIN"))
        #expect(database.executeStatements("INSERT INTO t DEFAULT VALUES"))
        switch loss {
        case .renamed: #expect(rename(directory.file("db"), directory.file("away")) == 0)
        case .removed: #expect(unlink(directory.file("db")) == 0)
        case .replaced: #expect(rename(directory.file("new"), directory.file("db")) == 0)
        }
        #expect(!database.executeStatements("COMMIT"))
        #expect((database.lastError() as? DatabaseError)?.extendedCode == SQLITE_READONLY_DBMOVED)
        #expect(!database.executeStatements("INSERT INTO t DEFAULT VALUES"))
        #expect((database.lastError() as? DatabaseError)?.extendedCode == SQLITE_READONLY_DBMOVED)
        #expect(try database.integers("SELECT count(*) FROM t") == [5])
        database.close()
        // A log of the old file stays where it was, beside the new one, for whoever has to see what became of it.
        guard loss == .replaced, !isWAL else { return }
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [7])
    }
}
