import Foundation
import SealedDB
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StoreBackupTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func backup(key: Key? = nil, to name: String = "backup") throws -> StoreBackup {
        StoreBackup(
            path: directory.file("db"),
            key: try .testing(1),
            to: directory.file(name),
            backupKey: key,
            busyTimeout: .zero
        )
    }

    private func restore(key byte: UInt8 = 1) throws -> StoreRestore {
        StoreRestore(backupPath: directory.file("backup"), key: try .testing(byte), to: directory.file("db"))
    }

    private func count(_ name: String, key: UInt8 = 1) throws -> [Int] {
        let database = try Database.testing(directory.file(name), key: key)
        defer { database.close() }
        return try database.integers("SELECT count(*) FROM t")
    }

    private func reason(_ body: () throws -> Void) -> DatabaseError.Reason? {
        do {
            try body()
            return nil
        } catch {
            return (error as? DatabaseError)?.reason
        }
    }

    /// Somebody was faster. What they made stays.
    @Test func aFileThatComesMeanwhile() throws {
        try Database.testing(directory.file("db")).fill(rows: 10)
        let found = reason {
            try backup().run { progress in
                if progress.phase == .verify { try directory.write("backup", [1, 2, 3]) }
            }
        }
        #expect(found == .alreadyExists)
        #expect(try directory.bytes("backup") == Data([1, 2, 3]))
        #expect(directory.names == ["backup", "db"])
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal], [1, 2] as [UInt8])
    func ofAStoreInUse(mode: Configuration.JournalMode, key: UInt8) throws {
        let store = try Database.testing(directory.file("db"), journalMode: mode)
        try store.fill(rows: 300)
        var isWritten = false
        try backup(key: .testing(key)).run { progress in
            guard progress.phase == .copy, mode == .wal, !isWritten else { return }
            // Others go on, and the backup does not see it.
            try store.executeUpdate("INSERT INTO t (body) VALUES ('later')", values: nil)
            isWritten = true
        }
        #expect(isWritten == (mode == .wal))
        #expect(try count("backup", key: key) == [300])
        #expect(try store.integers("SELECT count(*) FROM t") == [isWritten ? 301 : 300])
        store.close()
        #expect(directory.names == ["backup", "db"])
        #expect(try directory.bytes("backup").prefix(16) != directory.bytes("db").prefix(16))
        #expect(try IntegrityReport.verify(path: directory.file("backup"), key: .testing(key)).isSound)
    }

    @Test func otherSettingsAreKept() throws {
        let settings = CipherSettings(pageSize: 8192, hmacAlgorithm: .sha256)
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let store = Database(path: directory.file("db"), configuration: configuration)
        try store.openVerified()
        try store.fill(rows: 50)
        store.close()
        let path = directory.file("backup")
        try StoreBackup(path: directory.file("db"), key: .testing(1), cipherSettings: settings, to: path).run()
        #expect(try StoreDiagnosis.examine(path: path, key: .testing(1), cipherSettings: settings).finding == .opens)
        #expect(try directory.bytes("backup").range(of: Data("secret row".utf8)) == nil)
    }

    @Test func backupRefusals() throws {
        let store = try Database.testing(directory.file("db"))
        try store.fill(rows: 10)
        #expect(reason { try backup(to: "db").run() } == .alreadyExists)
        #expect(reason { try backup(to: "no/backup").run() } == .cannotCreate)
        #expect(reason { try backup().run { _ in throw CancellationError() } } == .interrupted)
        #expect(store.beginExclusiveTransaction())
        #expect(reason { try backup().run() } == .busy)
        #expect(store.rollback())
        #expect(directory.namesOfFiles == ["db"])
    }

    @Test func restoreIntoNothing() throws {
        try Database.testing(directory.file("db")).fill(rows: 10)
        try backup().run()
        unlink(directory.file("db"))
        let report = try restore().run()
        #expect(report.replacedPath == nil)
        #expect(try count("db") == [10])
        #expect(directory.names == ["backup", "db"])
    }

    /// What was there is kept with its log, and the log does not get into the new store.
    @Test(arguments: ["sound", "damaged", "wal"])
    func restoreOverAStore(state: String) throws {
        let store = try Database.testing(directory.file("db"))
        try store.fill(rows: 10)
        try backup().run()
        try store.fill(rows: 5)
        store.close()
        switch state {
        case "damaged":
            try Data(repeating: 7, count: 8192).write(to: URL(fileURLWithPath: directory.file("db")))
        case "wal":
            // A service was killed: its log holds what the file does not.
            let copied = try Database.testing(directory.file("db"), journalMode: .wal)
            try copied.fill(rows: 3)
            let log = try directory.bytes("db-wal")
            let bytes = try directory.bytes("db")
            copied.close()
            try bytes.write(to: URL(fileURLWithPath: directory.file("db")))
            try log.write(to: URL(fileURLWithPath: directory.file("db-wal")))
        default: break
        }
        let before = try directory.bytes("db")
        let report = try restore().run()
        #expect(try count("db") == [10])
        let replaced = try #require(report.replacedPath)
        #expect(try Data(contentsOf: URL(fileURLWithPath: replaced)) == before)
        switch state {
        case "sound": #expect(try Database.testing(replaced).integers("SELECT count(*) FROM t") == [15])
        case "wal": #expect(try Database.testing(replaced).integers("SELECT count(*) FROM t") == [18])
        default: break
        }
    }

    @Test func restoreRefusals() throws {
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        try store.fill(rows: 10)
        try backup().run()
        let before = directory.names
        #expect(reason { try restore().run() } == .busy)
        #expect(reason { try restore(key: 2).run() } == .wrongKey)
        // Still usable by who had it open.
        try store.fill(rows: 1)
        #expect(directory.names == before)
        store.close()
        let bytes = try directory.bytes("db")
        #expect(reason { try restore().run { _ in throw CancellationError() } } == .interrupted)
        let itself = StoreRestore(backupPath: directory.file("db"), key: try .testing(1), to: directory.file("db"))
        #expect(reason { try itself.run() } == .alreadyExists)
        var damaged = try directory.bytes("backup")
        damaged[damaged.count - 2000] ^= 1
        try damaged.write(to: URL(fileURLWithPath: directory.file("backup")))
        #expect(reason { try restore().run() } == .damaged)
        unlink(directory.file("backup"))
        #expect(reason { try restore().run() } == .noSuchFile)
        #expect(try directory.bytes("db") == bytes)
        #expect(directory.names == ["db"])
    }

    /// A key that the store has already is not asked for once more.
    @Test func aBackupUnderTheSameKeyNeedsNoSource() throws {
        try Database.testing(directory.file("db")).close()
        let keys = try ["01", "02"].map { byte in
            let file = directory.file("key")
            try Data(String(repeating: byte, count: 32).utf8).write(to: URL(fileURLWithPath: file))
            #expect(chmod(file, 0o600) == 0)
            defer { unlink(file) }
            return try KeySource.keyFile(file).key()
        }
        try StoreBackup(path: directory.file("db"), key: keys[0], to: directory.file("copy")).run()
        #expect(throws: DatabaseError.self) {
            try StoreBackup(path: directory.file("db"), key: keys[0], to: directory.file("other"), backupKey: keys[1])
                .run()
        }
    }
}
