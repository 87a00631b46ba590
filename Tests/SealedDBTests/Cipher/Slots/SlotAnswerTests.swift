import Foundation
import Testing

@testable import SealedDB

/// What is told of stores with slots, and of what has none.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotAnswerTests {
    private let store: SlotStore

    init() throws {
        store = try SlotStore()
    }

    private func rotation(
        _ old: Key,
        _ new: Key,
        path: String? = nil,
        reencryption: KeyRotation.Reencryption? = nil
    ) -> KeyRotation {
        KeyRotation(path: path ?? store.path, from: old, to: new, reencryption: reencryption)
    }

    private func fixedKey() throws -> Key {
        let connection = try Connection(path: store.path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        return try SlotFiles(store: store.path).open(with: .testing(1), salt: connection.mainFileHeader()).fixedKey()
    }

    // MARK: Labels

    private static func slot(_ number: Int, _ label: String, _ kind: SlotTable.Kind = .key) -> SlotTable.Slot {
        .init(number: number, kind: kind, isRecovery: false, created: "2026-01-01", label: label, wraps: [])
    }

    @Test(arguments: [
        ("ops.replaced", true), ("ops.replaced-2", true), ("ops.replaced-12", true), ("a.replaced.replaced", true),
        ("ops", false), (".replaced", false), (".replaced-2", false), ("ops.replacedx", false),
        ("ops.replaced2", false), ("ops.replaced22", false), ("ops.replaced-x", false), ("ops.replaced-2x", false),
    ])
    func labelsThatARotationLeaves(label: String, isLeft: Bool) {
        let table = SlotTable(store: [], generation: 1, dataKeys: [], slots: [Self.slot(1, label)])
        #expect(table.leftSlots.map(\.label) == (isLeft ? [label] : []))
    }

    @Test func aSlotIsAlsoItsKind() {
        #expect(Self.slot(1, "a").isSame(Self.slot(1, "b")))
        #expect(!Self.slot(1, "a").isSame(Self.slot(2, "a")))
        #expect(!Self.slot(1, "a").isSame(Self.slot(1, "a", .program)))
    }

    // MARK: Rotations

    @Test func theDataKeyHasNoSlotToReplace() throws {
        let error = #expect(throws: DatabaseError.self) { try rotation(fixedKey(), .testing(5)).plan() }
        #expect(error?.reason == .malformedKey && error?.message.contains("no slot to replace") == true)
    }

    /// Nobody asks for another key here, and so nothing is left of a rotation.
    @Test func theKeyThatStaysIsThereAlready() throws {
        let key = try Key.testing(1)
        #expect(try rotation(key, key).isDone())
        _ = try store.slots().rename("safe", to: "safe.replaced")
        #expect(try rotation(key, key).isDone())
        let error = #expect(throws: DatabaseError.self) { try rotation(.testing(7), key).isDone() }
        #expect(error?.message.contains("safe.replaced") == true, "\(error as Any)")
    }

    /// Where a new data key is asked for, a store without slots may have the new key all the same.
    @Test func aStoreWithoutSlotsThatHasTheNewKey() throws {
        let path = store.directory.file("own.db")
        let database = try Database.testing(path)
        try database.fill(rows: 1)
        database.close()
        #expect(try rotation(.testing(7), .testing(1), path: path, reencryption: .init()).isDone())
        #expect(try !rotation(.testing(1), .testing(7), path: path, reencryption: .init()).isDone())
    }

    // MARK: Tests

    /// That both files are whole is said only if they are.
    @Test func aFileThatCannotBeMadeAnew() throws {
        let database = try store.open(.testing(1))
        #expect(database.beginImmediateTransaction())
        unlink(store.files[1])
        let error = #expect(throws: DatabaseError.self) {
            try KeySlots(path: store.path, key: .testing(1), busyTimeout: .zero).test()
        }
        #expect(error?.code == SQLITE_BUSY, "\(error as Any)")
        #expect(!FileSystem.exists(store.files[1]))
        #expect(database.rollback())
        database.close()
        #expect(try store.slots().test().label == "ops")
        #expect(try store.bytes(0) == store.bytes(1))
    }

    // MARK: Headers in the clear

    /// Slots are found by the salt, which such a store does not have in its file.
    @Test func storesWithAHeaderInTheClear() throws {
        let salt = [UInt8](repeating: 3, count: 16)
        let settings = CipherSettings(plaintextHeaderSize: 32, salt: salt)
        let path = store.directory.file("clear.db")
        var configuration = Configuration(key: try .testing(4))
        configuration.cipherSettings = settings
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 1)
        database.close()
        let slot = KeySlots.NewSlot(.key(try .testing(5)), label: "new")
        for attempt in [
            { _ = try KeySlots(path: path, key: .testing(4), cipherSettings: settings).initialize([slot]) },
            {
                let path = store.directory.file("new.db")
                _ = try KeySlots.create(path: path, cipherSettings: settings, [slot])
            },
        ] as [() throws -> Void] {
            let error = #expect(throws: DatabaseError.self, performing: attempt)
            #expect(error?.message.contains("cannot have slots: they are found by its salt") == true, "\(error as Any)")
        }
        #expect(!store.directory.names.contains { $0.hasPrefix("new.db") || $0.hasPrefix("clear.db.") })
        let opening = StoreOpening(path: store.path, key: try .testing(1), settings: settings)
        let error = #expect(throws: DatabaseError.self) { try opening.openedSlots(.testing(1), header: salt) }
        #expect(error?.message.contains("a plaintext header cannot have") == true, "\(error as Any)")
    }
}
