import Foundation
import Testing

@testable import SealedDB

/// Slots of backups, restored stores and texts.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotCopyTests {
    private let store: SlotStore
    private let backup: String

    init() throws {
        store = try SlotStore()
        backup = store.directory.file("backup.db")
    }

    private func backUp(_ key: UInt8 = 1, backupKey: Key? = nil) throws {
        try StoreBackup(path: store.path, key: .testing(key), to: backup, backupKey: backupKey).run()
    }

    private func restore(_ key: UInt8 = 1) throws -> StoreRestore.Report {
        try StoreRestore(backupPath: backup, key: .testing(key), to: store.path).run()
    }

    private func count(_ path: String, _ key: UInt8) throws -> Int {
        let database = try Database.testing(path, key: key)
        defer { database.close() }
        return try database.integers("SELECT count(*) FROM t")[0]
    }

    private func change(_ rows: Int) throws {
        let database = try store.open(.testing(2))
        try database.fill(rows: rows)
        database.close()
    }

    @Test func backupsTakeTheirSlotsAlong() throws {
        try backUp()
        for key in [1, 2] as [UInt8] { #expect(try count(backup, key) == 20) }
        #expect(try store.directory.bytes("backup.db.slots") == store.directory.bytes("app.db.slots"))
        let again = try #require(throws: DatabaseError.self) { try self.backUp() }
        #expect(again.reason == .alreadyExists)
        // A backup that was killed leaves its slots, which are no obstacle; others are.
        unlink(backup)
        try backUp()
        unlink(backup)
        for ending in ["", ".2"] {
            try Data(SlotStore().bytes()).write(to: URL(fileURLWithPath: backup + ".slots" + ending))
        }
        #expect(try #require(throws: DatabaseError.self) { try self.backUp() }.reason == .alreadyExists)
        // Before anything is copied.
        let refused = #expect(throws: DatabaseError.self) {
            try StoreBackup(path: store.path, key: .testing(1), to: backup).run { _ in Issue.record("It copies.") }
        }
        #expect(refused?.reason == .alreadyExists)
    }

    @Test func whoAcceptsOlderSlotsBacksThemUp() throws {
        let older = try store.text
        _ = try store.slots(2).rename("ops", to: "x")
        try store.write(older)
        var configuration = Configuration(key: try .testing(1))
        configuration.isReadOnly = true
        configuration.acceptsOlderSlots = true
        let database = Database(path: store.path, configuration: configuration)
        try database.openVerified()
        try database.backup(toNewFile: backup, key: nil, progress: nil)
        database.close()
        // It is as old as the store's slots, and is refused like them.
        #expect(try #require(throws: DatabaseError.self) { try self.count(backup, 2) }.reason == .olderSlots)
        configuration.key = try .testing(2)
        let copy = Database(path: backup, configuration: configuration)
        try copy.openVerified()
        #expect(try copy.integers("SELECT count(*) FROM t") == [20])
        copy.close()
    }

    @Test func backupsUnderTheirOwnKeyHaveNone() throws {
        try backUp(backupKey: .testing(8))
        #expect(!KeySlots.exist(beside: backup))
        #expect(try count(backup, 8) == 20)
    }

    @Test func restoresBringSlotsBack() throws {
        try backUp()
        for file in [store.path] + store.files { unlink(file) }
        #expect(try restore().replacedPath == nil)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        #expect(try store.bytes(0) == store.bytes(1))
    }

    /// A slot that was removed since the backup does not come back with it.
    @Test func restoresKeepNewerSlots() throws {
        try backUp()
        try change(5)
        _ = try store.slots(2).remove("ops")
        let replaced = try #require(try restore(2).replacedPath)
        #expect(try store.count(2) == 20)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        #expect(try count(replaced, 2) == 25)
        #expect(try store.slots(2).rename("safe", to: "spare").slots.count == 1)
    }

    @Test func restoresOfAnotherDataKeyBringItsSlots() throws {
        try backUp()
        try change(5)
        _ = try store.slots().reencrypt()
        let replaced = try #require(try restore(2).replacedPath)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        #expect(try count(replaced, 1) == 25)
        // And over a store without slots, and from one.
        let plain = store.directory.file("plain.db")
        let database = try Database.testing(plain, key: 9)
        try database.fill(rows: 1)
        database.close()
        try StoreRestore(backupPath: backup, key: .testing(1), to: plain).run()
        #expect(try count(plain, 2) == 20)
        try StoreBackup(path: backup, key: .testing(1), to: store.directory.file("own.db"), backupKey: .testing(9))
            .run()
        try StoreRestore(backupPath: store.directory.file("own.db"), key: .testing(9), to: plain).run()
        #expect(try count(plain, 9) == 20)
        #expect(!KeySlots.exist(beside: plain))
    }

    @Test func texts() throws {
        let text = try store.slots().export()
        #expect(try text == store.text)
        for file in store.files { unlink(file) }
        #expect(throws: DatabaseError.self) { try self.store.slots().list() }
        #expect(
            try #require(throws: DatabaseError.self) { try self.store.slots(3).importSlots(text) }.reason == .wrongKey
        )
        for wrong in ["", "x", String(text.dropLast(9)), text + "\n", text.uppercased(), try SlotStore().text] {
            let error = try #require(throws: DatabaseError.self) { try self.store.slots().importSlots(wrong) }
            #expect(error.reason == .malformedSlots)
        }
        #expect(!KeySlots.exist(beside: store.path))
        #expect(try store.slots().importSlots(text).slots.count == 2)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        _ = try store.slots(2).remove("ops")
        let older = try #require(throws: DatabaseError.self) { try self.store.slots(2).importSlots(text) }
        #expect(older.reason == .olderSlots)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        #expect(try store.slots(1, acceptsOlder: true).importSlots(text).slots.count == 2)
        #expect(try store.count(1) == 20)
    }

    @Test func importsOverDamage() throws {
        let text = try store.slots().export()
        try store.write("damaged")
        #expect(try store.refusal(.testing(1)).reason == .malformedSlots)
        #expect(try store.slots().importSlots(text).slots.count == 2)
        #expect(try store.count() == 20)
    }

    @Test func decryptionAndRecovery() throws {
        let plain = store.directory.file("plain.db")
        try StoreDecryption(path: store.path, key: .testing(2), plaintextPath: plain).run()
        let database = Database(path: plain)
        #expect(database.open())
        #expect(try database.integers("SELECT count(*) FROM t") == [20])
        database.close()
        let recovered = store.directory.file("recovered.db")
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: store.path))
        try file.write(contentsOf: Data(repeating: 0, count: 16))
        try file.close()
        #expect(try store.refusal(.testing(2)).reason == .malformedSlots)
        let report = try StoreRecovery(path: store.path, key: .testing(2), to: recovered, newKey: .testing(9)).run()
        #expect(report.tables.contains { $0.name == "t" })
        #expect(try count(recovered, 9) == 20)
    }

    @Test func verification() throws {
        #expect(try IntegrityReport.verify(path: store.path, key: .testing(2)).isSound)
        #expect(try StoreInfo.inspect(path: store.path, key: .testing(2)).details?.tableCount == 2)
        #expect(try StoreDiagnosis.examine(path: store.path, key: .testing(2)).finding == .opens)
        #expect(try StoreDiagnosis.examine(path: store.path, key: .testing(3)).finding == .wrongKey)
    }

    /// Two who change slots at once: nothing is lost, and nobody reads half of it.
    @Test func changesAtOnce() async throws {
        let path = store.path
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<2 {
                group.addTask {
                    for number in 0..<4 {
                        let slots = KeySlots(
                            path: path,
                            key: try .testing(UInt8(writer + 1)),
                            busyTimeout: .seconds(60)
                        )
                        let key = try Key.testing(UInt8(20 + writer * 8 + number))
                        _ = try slots.add(.init(.key(key), label: "w\(writer)-\(number)"))
                        if number % 2 == 0 { _ = try slots.remove("w\(writer)-\(number)") }
                    }
                }
            }
            group.addTask {
                for _ in 0..<30 {
                    let database = Database(path: path, configuration: Configuration(key: try .testing(2)))
                    try database.openVerified()
                    database.close()
                }
            }
            try await group.waitForAll()
        }
        let report = try store.slots().list()
        #expect(Set(report.slots.map(\.label)) == ["ops", "safe", "w0-1", "w0-3", "w1-1", "w1-3"])
        #expect(report.generation == 13)
        #expect(try store.bytes(0) == store.bytes(1))
        #expect(store.directory.namesOfFiles.count == 3)
    }
}
