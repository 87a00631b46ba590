import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// New stores with slots: what others have there is never removed or overwritten.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotCreationTests {
    private let store: SlotStore

    init() throws {
        store = try SlotStore()
    }

    private func leave(mark: String = SlotFiles.markOfNew) throws -> String {
        let leftover = try TemporaryFile.path(beside: store.path, mark: mark)
        #expect(rename(store.path, leftover) == 0)
        return leftover
    }

    private func create() throws {
        _ = try KeySlots.create(path: store.path, [.init(.key(.testing(5)), label: "ops")])
    }

    private func requireRefused(_ what: String, location: SourceLocation = #_sourceLocation) throws {
        let before = [try store.bytes(0), try store.bytes(1)]
        let error = try #require(throws: DatabaseError.self, sourceLocation: location) { try self.create() }
        #expect(error.reason == .alreadyExists, "\(what): \(error)", sourceLocation: location)
        #expect(try [store.bytes(0), store.bytes(1)] == before, "\(what)", sourceLocation: location)
        guard what != "locked" else { return }
        // Nor does the attempt keep them locked.
        for file in store.files {
            let descriptor = sealeddb_open(file, O_RDWR, 0)
            #expect(sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0, "\(what)", sourceLocation: location)
            sealeddb_unlock_and_close(descriptor)
        }
    }

    /// A process that was killed while it made a store leaves its slots, and the store under a name of a leftover.
    @Test(arguments: [[0, 1], [0], [1]])
    func creationsThatWereCutOff(files: [Int]) throws {
        _ = try leave()
        let old = try store.bytes()
        for number in [0, 1] where !files.contains(number) { unlink(store.files[number]) }
        try create()
        #expect(try store.bytes() != old)
        let database = try store.open(.testing(5))
        database.close()
        #expect(store.directory.namesOfFiles == ["app.db", "app.db.slots", "app.db.slots.2"])
    }

    /// The store was moved away without its slots, which are all that opens it, while a leftover of it stayed.
    @Test func slotsOfMovedStoresStay() throws {
        let moved = store.directory.file("moved.db")
        // Of a rotation, a restore or a backup that was killed.
        for mark in ["", "wal"] {
            let leftover = try TemporaryFile.path(beside: store.path, mark: mark)
            try FileManager.default.copyItem(atPath: store.path, toPath: leftover)
        }
        #expect(rename(store.path, moved) == 0)
        try requireRefused("leftovers of other kinds")
        #expect(rename(moved, store.path) == 0)
        #expect(try store.count() == 20)
        // Changed since it was made, though a leftover has the mark of a new store.
        _ = try store.slots().rename("ops", to: "x")
        _ = try leave()
        try requireRefused("a later generation")
    }

    @Test func slotsOfLinkedStoresStay() throws {
        let leftover = try leave()
        #expect(link(leftover, store.directory.file("other.db")) == 0)
        try requireRefused("a store with another name")
    }

    /// As a process that is killed in a re-encryption leaves them.
    @Test func slotsWithTwoDataKeysStay() throws {
        let both = Guarded<String?>(nil)
        _ = try store.slots().reencrypt { [store] _ in
            let text = try store.text
            both.withLock { $0 = text }
        }
        try store.write(try #require(both.withLock { $0 }))
        _ = try leave()
        try requireRefused("two data keys")
    }

    /// Another process makes the store at this moment.
    @Test func slotsOfLivingProcessesStay() throws {
        _ = try leave()
        let descriptor = sealeddb_open(store.files[0], O_RDWR, 0)
        #expect(sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0)
        let other = sealeddb_open(store.files[1], O_RDWR, 0)
        #expect(sealeddb_lock(other, Int32(F_WRLCK), 0, 0) == 0)
        try requireRefused("locked")
        for descriptor in [descriptor, other] { sealeddb_unlock_and_close(descriptor) }
        try create()
    }

    /// What lies there by the time the files get their names stays, and nothing else is left.
    @Test func lostRaces() throws {
        let sealed = try SealedSlots(parsing: store.bytes())
        let stranger = Array("somebody's".utf8)
        for number in [0, 1] {
            let target = SlotFiles(store: store.directory.file("new-\(number)"))
            let path = number == 0 ? target.first : target.second
            try Data(stranger).write(to: URL(fileURLWithPath: path))
            let new = NewSlotFiles(target)
            let error = try #require(throws: DatabaseError.self) {
                try new.write(sealed, attributesFrom: self.store.path)
            }
            #expect(new.discard(error).reason == .alreadyExists)
            #expect(
                store.directory.names.filter { $0.contains("new-\(number)") } == [(path as NSString).lastPathComponent]
            )
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path))) == stranger)
        }
        // Somebody has put another file in the place of one that was made: it is not removed.
        let target = SlotFiles(store: store.directory.file("third"))
        let new = NewSlotFiles(target)
        try new.write(sealed, attributesFrom: store.path)
        unlink(target.first)
        try Data(stranger).write(to: URL(fileURLWithPath: target.first))
        #expect(throws: DatabaseError.self) { try new.requireInPlace() }
        _ = new.discard(.notAllowed("x"))
        #expect(try Array(Data(contentsOf: URL(fileURLWithPath: target.first))) == stranger)
        #expect(!FileManager.default.fileExists(atPath: target.second))
    }

    /// Of many at once, one makes the store, and its slots open it.
    @Test func creationsAtOnce() async throws {
        let path = store.directory.file("race.db")
        let winners = try await withThrowingTaskGroup(of: UInt8?.self) { group in
            for byte in 10..<16 as Range<UInt8> {
                group.addTask {
                    let slot = KeySlots.NewSlot(.key(try .testing(byte)), label: "ops")
                    // All but one fail, each in its own way.
                    return (try? KeySlots.create(path: path, [slot])) == nil ? nil : byte
                }
            }
            return try await group.reduce(into: [UInt8]()) { found, byte in if let byte { found.append(byte) } }
        }
        #expect(winners.count <= 1)
        guard let winner = winners.first else { return #expect(!KeySlots.exist(beside: path)) }
        let database = Database(path: path, configuration: Configuration(key: try .testing(winner)))
        try database.openVerified()
        database.close()
        #expect(try KeySlots(path: path, key: .testing(winner)).list().slots.count == 1)
        #expect(KeySlots.problems(path: path).isEmpty)
    }

    @Test func oneKeyHasOneSlot() throws {
        let slots: [KeySlots.NewSlot] = [
            .init(.key(try .testing(1)), label: "main"), .init(.key(try .testing(1)), label: "safe", isRecovery: true),
        ]
        let path = store.directory.file("new.db")
        #expect(
            try #require(throws: DatabaseError.self) { try KeySlots.create(path: path, slots) }.reason == .alreadyExists
        )
        #expect(!FileManager.default.fileExists(atPath: path) && !KeySlots.exist(beside: path))
    }

    /// Nothing else is made where slots of a store would be looked for.
    @Test func namesAreReserved() throws {
        for file in store.files {
            unlink(file)
            #expect(throws: DatabaseError.self) { try KeyFile.create(atPath: file) }
            let database = Database(path: file, configuration: Configuration(key: try .testing(1)))
            #expect(throws: DatabaseError.self) { try database.openVerified() }
            let plain = try Database.testing(self.store.directory.file("plain.db"))
            plain.close()
            #expect(throws: DatabaseError.self) {
                try StoreBackup(path: self.store.directory.file("plain.db"), key: .testing(1), to: file).run()
            }
            unlink(file)
        }
    }

    // MARK: Stores that exist

    /// A table of the application's own is left alone, and the store has no slots.
    @Test func tablesOfTheSameName() throws {
        let path = store.directory.file("own.db")
        let database = try Database.testing(path)
        try database.executeUpdate("CREATE TABLE Sealdb_Slots (mine)", values: nil)
        try database.executeUpdate("INSERT INTO Sealdb_Slots VALUES (1)", values: nil)
        database.close()
        let error = try #require(throws: DatabaseError.self) {
            try KeySlots(path: path, key: .testing(1)).initialize([.init(.key(.testing(1)), label: "ops")])
        }
        #expect(error.reason == .alreadyExists)
        #expect(!KeySlots.exist(beside: path))
        let again = try Database.testing(path)
        #expect(try again.integers("SELECT mine FROM sealdb_slots") == [1])
        again.close()
    }

    /// What a store remembers of slots that it had once does not make new ones older.
    @Test func storesThatHadSlots() throws {
        let path = store.directory.file("own.db")
        try StoreBackup(path: store.path, key: .testing(1), to: path, backupKey: .testing(8)).run()
        let slots = KeySlots(path: path, key: try .testing(8))
        #expect(throws: DatabaseError.self) { try slots.initialize([.init(.key(.testing(8)), label: "a b")]) }
        let table = try slots.initialize([.init(.key(.testing(8)), label: "ops")])
        #expect(table.generation == 1)
        let database = try Database.testing(path, key: 8)
        #expect(try database.integers("SELECT generation FROM sealdb_slots") == [1])
        database.close()
        // As a process leaves it that is killed before the store remembers.
        let connection = try StoreOpening(path: path, key: .testing(8)).open()
        try connection.unguarded { () throws(DatabaseError) in try connection.run("DELETE FROM sealdb_slots") }
        connection.close()
        let again = try Database.testing(path, key: 8)
        #expect(try again.integers("SELECT count(*) FROM t") == [20])
        again.close()
    }

    @Test func initializationsThatFail() throws {
        let path = store.directory.file("own.db")
        let database = try Database.testing(path)
        try database.fill(rows: 1)
        // Somebody else writes to it.
        try database.executeUpdate("BEGIN IMMEDIATE", values: nil)
        let slots = KeySlots(path: path, key: try .testing(1), busyTimeout: .zero)
        #expect(throws: DatabaseError.self) { try slots.initialize([.init(.key(.testing(1)), label: "ops")]) }
        #expect(!KeySlots.exist(beside: path))
        try database.executeUpdate("ROLLBACK", values: nil)
        database.close()
        #expect(try slots.initialize([.init(.key(.testing(1)), label: "ops")]).slots.count == 1)
    }
}
