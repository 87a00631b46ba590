import Foundation
import Testing

@testable import SealedDB

/// Every way by which a store, or what it holds, comes to another place: either the slots come along, or the result is a store
/// without slots under a key of its own, or it is refused.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotWaysTests {
    private let store: SlotStore
    private let copy: String

    init() throws {
        store = try SlotStore()
        copy = store.directory.file("copy.db")
    }

    private func count(_ path: String, _ key: UInt8) throws -> Int {
        let database = try Database.testing(path, key: key)
        defer { database.close() }
        return try database.integers("SELECT count(*) FROM t")[0]
    }

    private func refusal<T>(_ body: () throws -> T) throws -> DatabaseError {
        try #require(throws: DatabaseError.self) { try body() }
    }

    private func copyFiles(_ endings: [String], from: String? = nil, to: String? = nil) throws {
        for ending in endings {
            try FileManager.default.copyItem(atPath: (from ?? store.path) + ending, toPath: (to ?? copy) + ending)
        }
    }

    private static let all = ["", ".slots", ".slots.2"]

    @Test func copyingFiles() throws {
        let key = try Key.testing(1)
        #expect(try store.count(key) == 20)
        try copyFiles([""])
        // Also a key that knows the data key from the original tells that there are no slots.
        for key in [key, try .testing(2)] {
            let database = Database(path: copy, configuration: Configuration(key: key))
            #expect(try refusal { try database.openVerified() }.reason == .wrongKey)
            #expect(try refusal { try IntegrityReport.verify(path: copy, key: key) }.reason == .wrongKey)
            let main = try Database.testing(nil)
            #expect(try refusal { try main.attach(copy, as: "c", key: key) }.reason == .wrongKey)
            main.close()
        }
        try copyFiles([".slots"])
        #expect(try count(copy, 2) == 20)
        #expect(KeySlots.problems(path: copy).isEmpty)
        // From then on each has its own.
        _ = try KeySlots(path: copy, key: .testing(1)).remove("safe")
        #expect(try store.count(2) == 20)
    }

    /// A copy from before the store got slots opens with the key that it has, also if that key has the same data key elsewhere.
    @Test func copiesFromBeforeThereWereSlots() throws {
        let path = store.directory.file("plain.db")
        let database = try Database.testing(path)
        try database.fill(rows: 3)
        database.close()
        try copyFiles([""], from: path)
        let key = try Key.testing(1)
        _ = try KeySlots(path: path, key: key).initialize([.init(.key(key), label: "ops")])
        for path in [path, copy] { #expect(try IntegrityReport.verify(path: path, key: key).isSound) }
        let main = try Database.testing(nil)
        try main.attach(copy, as: "c", key: key)
        #expect(try main.integers("SELECT count(*) FROM c.t") == [3])
        main.close()
    }

    @Test func moving() throws {
        for ending in Self.all { #expect(rename(store.path + ending, copy + ending) == 0) }
        #expect(try count(copy, 1) == 20)
        // Without its slots: nothing is made in their place.
        #expect(rename(copy, store.path) == 0)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        let database = Database(path: copy, configuration: Configuration(key: try .testing(9)))
        #expect(try refusal { try database.openVerified() }.reason == .alreadyExists)
        #expect(rename(store.path, copy) == 0)
        #expect(try count(copy, 1) == 20)
    }

    @Test func links() throws {
        symlink(store.path, copy)
        #expect(try count(copy, 2) == 20)
        #expect(try KeySlots(path: copy, key: .testing(1)).rename("ops", to: "x").generation == 2)
        #expect(!FileManager.default.fileExists(atPath: copy + ".slots"))
        let report = try StoreBackup(path: copy, key: .testing(1), to: store.directory.file("b.db")).run()
        #expect(report.pageCount > 0)
        #expect(try count(store.directory.file("b.db"), 1) == 20)
        unlink(copy)
        link(store.path, copy)
        let database = Database(path: copy, configuration: Configuration(key: try .testing(1)))
        #expect(try refusal { try database.openVerified() }.reason == .hardLinked)
    }

    @Test func encryption() throws {
        let plain = store.directory.file("plain.db")
        try StoreDecryption(path: store.path, key: .testing(2), plaintextPath: plain).run()
        // The result is a store without slots.
        try StoreEncryption(plaintextPath: plain, path: copy, key: .testing(8)).run()
        #expect(!KeySlots.exist(beside: copy))
        #expect(try count(copy, 8) == 20)
        #expect(
            try KeySlots(path: copy, key: .testing(8)).initialize([.init(.key(.testing(8)), label: "x")]).generation
                == 1
        )
        #expect(try count(copy, 8) == 20)
        // Where slots lie, nothing is made.
        let other = store.directory.file("other.db")
        try copyFiles([".slots", ".slots.2"], to: other)
        let encryption = StoreEncryption(plaintextPath: plain, path: other, key: try .testing(8))
        #expect(try refusal { try encryption.run() }.reason == .alreadyExists)
        let decryption = StoreDecryption(path: store.path, key: try .testing(2), plaintextPath: other)
        #expect(try refusal { try decryption.run() }.reason == .alreadyExists)
        #expect(try Array(store.directory.bytes("other.db.slots")) == store.bytes())
    }

    @Test func backupsUnderTheKeyOfASlot() throws {
        // Given by itself, the key is that of the backup, which has no slots.
        try StoreBackup(path: store.path, key: .testing(1), to: copy, backupKey: .testing(1)).run()
        #expect(!KeySlots.exist(beside: copy))
        #expect(try count(copy, 1) == 20)
        #expect(throws: DatabaseError.self) { try self.count(copy, 2) }
    }

    @Test func backupsNeverReplaceSlots() throws {
        try copyFiles([".slots", ".slots.2"])
        _ = try store.slots().rename("ops", to: "x")
        // Of the same store, and older: they may be all that opens a store that was moved.
        let old = try store.directory.bytes("copy.db.slots")
        let backup = StoreBackup(path: store.path, key: try .testing(1), to: copy)
        #expect(try refusal { try backup.run() }.reason == .alreadyExists)
        #expect(try store.directory.bytes("copy.db.slots") == old)
        #expect(!FileManager.default.fileExists(atPath: copy))
    }

    @Test func servicesTakeSlotsAlong() throws {
        let pool = DatabasePool(path: store.path, configuration: Configuration(key: try .testing(1)))
        try pool.backup(to: copy)
        pool.releaseAllDatabases()
        #expect(try count(copy, 2) == 20)
        #expect(try Array(store.directory.bytes("copy.db.slots")) == store.bytes())
        let queue = try DatabaseQueue(path: store.path, configuration: Configuration(key: try .testing(2)))
        let own = store.directory.file("own.db")
        try queue.backup(to: own, key: .testing(8))
        #expect(try refusal { try queue.backup(to: copy) }.reason == .alreadyExists)
        queue.close()
        #expect(!KeySlots.exist(beside: own))
        #expect(try count(own, 8) == 20)
    }

    @Test func liveBackups() throws {
        let source = try store.open(.testing(1))
        let target = try Database.testing(copy, key: 8)
        try source.backup(to: target)
        target.close()
        // The target keeps its own key, and has no slots.
        #expect(try count(copy, 8) == 20)
        #expect(!KeySlots.exist(beside: copy))
        // What a store remembers of its slots would be replaced.
        let other = try SlotStore()
        let taken = try other.open(.testing(1))
        #expect(try refusal { try source.backup(to: taken) }.reason == .unsupported)
        let plain = try Database.testing(copy, key: 8)
        #expect(try refusal { try plain.backup(to: taken) }.reason == .unsupported)
        for database in [source, taken, plain] { database.close() }
        #expect(try other.count(2) == 20)
    }

    @Test func statementsThatMakeFiles() throws {
        let database = try store.open(.testing(1))
        for sql in ["VACUUM INTO '\(copy)'", "ATTACH '\(copy)' AS c"] {
            #expect(!database.executeStatements(sql))
            #expect("\(database.lastError())".contains("slots"), "\(sql): \(database.lastError())")
        }
        database.close()
        var configuration = Configuration(key: try .testing(1))
        configuration.createsFile = true
        let again = Database(path: store.path, configuration: configuration)
        try again.openVerified()
        try again.attach(copy, as: "c", key: .testing(8))
        try again.executeUpdate("CREATE TABLE c.t AS SELECT * FROM t", values: nil)
        again.close()
        #expect(try count(copy, 8) == 20)
        #expect(
            try StockShell.run(store.path, "PRAGMA key = \"x'\(store.dataKey())'\"; SELECT count(*) FROM t;") == ["20"]
        )
    }

    @Test func databasesInMemory() throws {
        let memory = try Database.testing(nil, key: 2)
        try memory.load(fromFile: store.path)
        #expect(try memory.integers("SELECT count(*) FROM t") == [20])
        #expect(try refusal { try memory.save(toFile: store.path) }.reason == .unsupported)
        try memory.save(toFile: copy)
        #expect(try count(copy, 2) == 20)
        #expect(!KeySlots.exist(beside: copy))
        let third = store.directory.file("third.db")
        try copyFiles([".slots"], to: third)
        #expect(try refusal { try memory.save(toFile: third) }.reason == .alreadyExists)
        memory.close()
        #expect(try store.count() == 20)
    }

    /// The image is encrypted under the key itself, and has no slots.
    @Test func images() throws {
        let database = try store.open(.testing(2))
        let image = try database.serialized()
        database.close()
        let again = try Database.opening(serialized: image, configuration: Configuration(key: .testing(2)))
        #expect(try again.integers("SELECT count(*) FROM t") == [20])
        again.close()
    }

    @Test func recovery() throws {
        _ = try store.slots().add(
            .init(.program(wrap: ["/usr/bin/tr", "0-9a-f", "g-v"], unwrap: nil), label: "program")
        )
        let program = try KeySource.unwrapCommand(["/usr/bin/tr", "g-v", "0-9a-f"]).key()
        #expect(
            try refusal { try StoreRecovery(path: store.path, key: program, to: copy).run() }.reason == .malformedKey
        )
        _ = try StoreRecovery(path: store.path, key: program, to: copy, newKey: .testing(8)).run()
        #expect(try count(copy, 8) == 20)
        let own = store.directory.file("own.db")
        _ = try StoreRecovery(path: store.path, key: .testing(2), to: own).run()
        #expect(try count(own, 2) == 20)
        #expect(!KeySlots.exist(beside: own))
    }

    // MARK: Restores

    private func backUp() throws { try StoreBackup(path: store.path, key: .testing(1), to: copy).run() }

    private func restore(_ key: UInt8) throws {
        try StoreRestore(backupPath: copy, key: .testing(key), to: store.path).run()
    }

    /// The store is gone, and its slots are there: they are newer, and stay.
    @Test func restoresBesideNewerSlots() throws {
        try backUp()
        _ = try store.slots(2).remove("ops")
        let newer = try store.bytes()
        unlink(store.path)
        // A key that these slots lack would restore a store that it does not open.
        #expect(try refusal { try restore(1) }.reason == .wrongKey)
        try restore(2)
        #expect(try store.bytes() == newer)
        #expect(try store.count(2) == 20)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
    }

    /// The store is there, and its newer slots stay: what they do not open is not restored.
    @Test func restoresThatTheKeyWouldNotOpen() throws {
        try backUp()
        _ = try store.slots(2).remove("ops")
        let error = try refusal { try restore(1) }
        #expect(error.reason == .wrongKey && error.message.contains("Nothing was restored"))
        #expect(try store.count(2) == 20)
        #expect(store.directory.names.filter { $0.contains("replaced") }.isEmpty)
    }

    @Test func restoresBesideOtherSlots() throws {
        try backUp()
        unlink(store.path)
        let other = try SlotStore().bytes()
        try store.write(other)
        #expect(try refusal { try restore(1) }.reason == .alreadyExists)
        #expect(try store.bytes(0) == other && store.bytes(1) == other)
    }

    @Test func restoresBringNoOlderSlots() throws {
        try backUp()
        _ = try KeySlots(path: copy, key: .testing(2)).remove("ops")
        let newer = try store.directory.bytes("copy.db.slots")
        for ending in [".slots", ".slots.2"] {
            unlink(copy + ending)
            try FileManager.default.copyItem(atPath: store.path + ending, toPath: copy + ending)
        }
        #expect(try refusal { try restore(1) }.reason == .olderSlots)
        try newer.write(to: URL(fileURLWithPath: copy + ".slots"))
        try restore(2)
        #expect(try store.count(2) == 20)
    }

    /// What is not restored leaves nothing of the slots behind.
    @Test func restoresThatFail() throws {
        try backUp()
        let database = try store.open(.testing(1))
        #expect(throws: DatabaseError.self) { try self.restore(1) }
        database.close()
        #expect(store.directory.names.filter { $0.contains("replaced") }.isEmpty)
    }

    // MARK: Retention

    @Test func slotsOfRemovedBackups() throws {
        try backUp()
        let salt = Hexadecimal.string(Array(try store.directory.bytes("copy.db").prefix(16)))
        let other = String(repeating: "0", count: 32)
        // Not while the backup is there, and not those of another one.
        KeySlots.removeFiles(ofRemoved: copy, salt: salt)
        #expect(KeySlots.exist(beside: copy))
        unlink(copy)
        KeySlots.removeFiles(ofRemoved: copy, salt: other)
        #expect(KeySlots.exist(beside: copy))
        try Data(SlotStore().bytes()).write(to: URL(fileURLWithPath: copy + ".slots.2"))
        KeySlots.removeFiles(ofRemoved: copy, salt: salt)
        #expect(store.directory.names.filter { $0.hasPrefix("copy") } == ["copy.db.slots.2"])
    }
}
