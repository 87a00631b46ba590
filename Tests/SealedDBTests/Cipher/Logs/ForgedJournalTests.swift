import Foundation
import Testing

@testable import SealedDB

/// Journals that somebody has put beside a store, made without its key.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct ForgedJournalTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeStore(_ mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 30)
        #expect(database.close())
    }

    /// A hot journal without a page, that names the journal of a transaction over several files.
    private func journal(naming path: String) throws -> [UInt8] { try journal(naming: Array(path.utf8)) }

    private func journal(naming name: [UInt8]) throws -> [UInt8] {
        func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        let pages = UInt32(try directory.bytes("db").count / 4096)
        var bytes = magic + [0, 0x1234, pages, 512, 4096].flatMap(word)
        bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
        let sum = name.reduce(0 as UInt32) { $0 &+ UInt32(bitPattern: Int32(Int8(bitPattern: $1))) }
        bytes += word(0x4000_0000 / 4096 + 1) + name + word(UInt32(name.count)) + word(sum) + magic
        return bytes
    }

    private func expectRefusal(_ body: () throws -> Void, _ location: SourceLocation = #_sourceLocation) {
        let error = #expect(throws: DatabaseError.self, sourceLocation: location, performing: body)
        #expect(error?.reason == .unsafeJournal, "\(String(describing: error))", sourceLocation: location)
    }

    /// A refusal; or from later versions of SQLite, which do not delete the file that is named, all rows.
    private func expectNothingLost(_ body: () throws -> [Int], _ location: SourceLocation = #_sourceLocation) {
        let isOfLater = Engine.sqliteVersionNumber >= 3_047_000
        do {
            let found = try body()
            #expect(isOfLater && found == [30], sourceLocation: location)
        } catch {
            #expect(error is DatabaseError, sourceLocation: location)
        }
    }

    /// SQLite would delete the file that is named.
    @Test(arguments: [Configuration.JournalMode.delete, .wal], ["victim", "other.db-wal", "db-mj12345678"])
    func aJournalThatNamesAFile(mode: Configuration.JournalMode, victim: String) throws {
        try makeStore(mode)
        try directory.write(victim, "the only key".utf8)
        try directory.write("db-journal", journal(naming: directory.file(victim)))
        let before = try directory.bytes("db")
        expectRefusal { try Database.testing(directory.file("db")).close() }
        expectRefusal { try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run() }
        expectRefusal {
            let other = try Database.testing(directory.file("main"))
            defer { other.close() }
            try other.attach(directory.file("db"), as: "db", key: .testing(1))
        }
        #expect(try directory.bytes(victim).elementsEqual("the only key".utf8))
        #expect(try directory.bytes("db") == before)
        unlink(directory.file("db-journal"))
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [30])
    }

    /// Those that are asked for by name are guarded like SQLite's own.
    @Test(arguments: ["unix", "unix-excl", "unix-none"])
    func aVFSByName(name: String) throws {
        try makeStore(.delete)
        let database = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
        #expect(database.open(withFlags: SQLITE_OPEN_READWRITE, vfs: name))
        try directory.write("victim", "the only key".utf8)
        try directory.write("db-journal", journal(naming: directory.file("victim")))
        expectNothingLost { try database.integers("SELECT count(*) FROM t") }
        #expect(try directory.bytes("victim").elementsEqual("the only key".utf8))
        #expect(try database.integers("SELECT count(*) FROM t") == [30])
    }

    /// In rollback-journal mode SQLite looks for a journal with each transaction.
    @Test func aJournalThatComesWhileTheStoreIsOpen() throws {
        try makeStore(.delete)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try database.integers("SELECT count(*) FROM t") == [30])
        try directory.write("victim", "the only key".utf8)
        try directory.write("db-journal", journal(naming: directory.file("victim")))
        expectNothingLost { try database.integers("SELECT count(*) FROM t") }
        #expect(try directory.bytes("victim").elementsEqual("the only key".utf8))
        // It held nothing else, and SQLite is through with it.
        #expect(try database.integers("SELECT count(*) FROM t") == [30])
    }

    /// By SQL the file is attached without a look at it.
    @Test func aJournalOfAFileThatSQLAttaches() throws {
        try makeStore(.delete)
        let other = try Database.testing(directory.file("main"))
        defer { other.close() }
        try directory.write("victim", "the only key".utf8)
        try directory.write("db-journal", journal(naming: directory.file("victim")))
        #expect(!other.executeStatements("ATTACH '\(raw: directory.file("db"))' AS db; SELECT count(*) FROM db.t"))
        #expect(try directory.bytes("victim").elementsEqual("the only key".utf8))
    }

    /// As SQLite leaves one that is cut off.
    @Test func theJournalOfSeveralFiles() throws {
        try makeStore(.delete)
        let name = directory.file("db-mj0123459AB")
        try directory.write("db-mj0123459AB", Array(directory.file("db-journal").utf8) + [0])
        try directory.write("db-journal", journal(naming: name))
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try database.integers("SELECT count(*) FROM t") == [30])
        #expect(directory.namesOfFiles == ["db"])
    }

    /// Its name need not be text. If it were not found, the transaction would count as committed.
    @Test func aSuperJournalWhoseNameIsNotUTF8() throws {
        try makeStore(.delete)
        let name = Array(directory.file("db-mj").utf8) + [0xe9, 0xff]
        let path = name.map { CChar(bitPattern: $0) } + [0]
        let descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        #expect(descriptor >= 0)
        close(descriptor)
        try directory.write("db-journal", journal(naming: name))
        let journal = try #require(try RollbackJournal(ofStore: directory.file("db")))
        #expect(try !journal.hasLostSuperJournal())
        let error = #expect(throws: DatabaseError.self) { try journal.requireSafeSuperJournal() }
        #expect(error?.reason == .unsafeJournal)
        unlink(path)
        #expect(try journal.hasLostSuperJournal())
    }

    /// Between its verification and the swap: SQLite would cut it off at one page.
    @Test func aJournalBesideACopyThatIsVerified() throws {
        try makeStore(.delete)
        var bytes = try journal(naming: directory.file("gone")).prefix(512)
        bytes.replaceSubrange(16..<20, with: [0, 0, 0, 1])
        try directory.write("key", Array(String(repeating: "02", count: 32).utf8))
        let newKey = try KeySource.keyFile(directory.file("key")).key()
        var planted = 0
        let error = #expect(throws: DatabaseError.self) {
            try KeyRotation(path: directory.file("db"), from: .testing(1), to: newKey).run { state in
                guard state.phase == .swap else { return }
                for name in directory.names where name.hasPrefix(".db.sealdb-") && name.hasSuffix("-journal") == false {
                    try directory.write(name + "-journal", bytes)
                    planted += 1
                }
            }
        }
        #expect(planted == 1)
        #expect(error?.message.contains("unchanged under the old key") == true, "\(String(describing: error))")
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [30])
    }

    @Test(arguments: ["db-journal", "db-wal"])
    func aLinkInThePlaceOfAJournal(name: String) throws {
        try makeStore(name == "db-wal" ? .wal : .delete)
        try directory.write("elsewhere", journal(naming: directory.file("victim")))
        #expect(symlink(directory.file("elsewhere"), directory.file(name)) == 0)
        let before = try directory.bytes("elsewhere")
        expectRefusal { try Database.testing(directory.file("db")).close() }
        #expect(try directory.bytes("elsewhere") == before)
    }

    /// Where everybody may make files.
    @Test(
        .enabled(if: geteuid() == 0, "only root can give a file away"),
        arguments: ["db-journal", "db-wal", "db-shm"]
    )
    func aJournalOfAnotherUser(name: String) throws {
        try makeStore(name == "db-journal" ? .delete : .wal)
        // What cannot be an index is refused whoever made it.
        let index = [UInt8](repeating: 0, count: 32768)
        try directory.write(name, name == "db-shm" ? index : journal(naming: directory.file("gone")))
        #expect(chmod(directory.path, 0o1777) == 0)
        #expect(chown(directory.file(name), 65534, 65534) == 0)
        expectRefusal { try Database.testing(directory.file("db")).close() }
        // They may have a part in the store.
        #expect(chown(directory.file("db"), 65534, 65534) == 0)
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [30])
    }

    /// A journal is believed where only the directory's owner makes files, whatever else its mode says.
    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"), arguments: [0o755, 0o1755] as [mode_t])
    func aJournalWhereStrangersMakeNone(mode: mode_t) throws {
        try makeStore(.delete)
        try directory.write("db-journal", journal(naming: directory.file("gone")))
        #expect(chmod(directory.path, mode) == 0 && chown(directory.file("db-journal"), 65534, 65534) == 0)
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [30])
    }

    /// SQLite opens the index of a log by itself, and as root gives it to the store's owner, whoever else has it open.
    @Test(.enabled(if: geteuid() == 0, "only root can give a file away")) func anIndexOfAnotherUser() throws {
        try makeStore(.delete)
        #expect(chmod(directory.path, 0o1777) == 0)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        // It comes after the store was opened.
        try directory.write("db-shm", [])
        #expect(chown(directory.file("db-shm"), 65534, 65534) == 0)
        #expect(!database.executeStatements("PRAGMA journal_mode = WAL; CREATE TABLE u (a)"))
        #expect(try directory.bytes("db-shm").isEmpty)
        // Our own, but others can write to it.
        #expect(chown(directory.file("db-shm"), 0, 0) == 0 && chmod(directory.file("db-shm"), 0o666) == 0)
        expectRefusal { try Database.testing(directory.file("db")).close() }
        unlink(directory.file("db-shm"))
        #expect(database.executeStatements("PRAGMA journal_mode = WAL; CREATE TABLE u (a)"))
        let files = directory.namesOfFiles
        #expect(files.contains("db-shm") && files.contains("db-wal"))
    }
}
