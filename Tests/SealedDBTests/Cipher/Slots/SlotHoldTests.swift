import Foundation
import Testing

@testable import SealedDB

/// Who removes a key from a ring looks first whether another one opens the store. A change of slots that is under way then
/// must not take that one away.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotHoldTests {
    private let store: SlotStore
    private let ringPath: String

    /// The ring has the key of the slot `ops`, and another one that opens nothing yet.
    init() throws {
        store = try SlotStore()
        ringPath = store.directory.file("ring")
        var ring = try KeyRing(activeID: "new", key: .testing(5))
        try ring.add(.testing(1), id: "ops")
        try ring.write(toNewFile: ringPath)
    }

    private func key(_ id: String) throws -> Key { try KeyRing(contentsOfFile: ringPath).key(id) }

    private func slots() throws -> KeySlots { KeySlots(path: store.path, key: try key("ops")) }

    private func remove(_ id: String, activating active: String) throws(DatabaseError) {
        try KeyRing.update(file: ringPath) { ring throws(DatabaseError) in
            try ring.activate(active)
            try ring.remove(id)
        }
    }

    /// Whether somebody could change the ring now.
    private static func isFree(_ ringPath: String) -> Bool {
        let descriptor = open(ringPath, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    private func requireUnchanged() throws {
        #expect(try store.count(1) == 20)
        #expect(try store.slots(2).list().slots.map(\.label) == ["ops", "safe"])
        #expect(SlotHoldTests.isFree(ringPath))
    }

    /// As long as the new slot may be withdrawn, the old key is needed.
    @Test func theOldKeyStaysUntilTheNewOneIsTried() throws {
        let calls = Guarded(0)
        let wasFree = Guarded<[Bool]>([])
        let new = try KeySource.closure { [ringPath] in
            let call = calls.withLock {
                $0 += 1
                return $0
            }
            wasFree.withLock { $0.append(SlotHoldTests.isFree(ringPath)) }
            return try .testing(call < 3 ? 5 : 6)
        }.key()
        #expect(throws: DatabaseError.self) { try slots().replace(with: new) }
        #expect(wasFree.withLock { $0 } == [true, true, false])
        try requireUnchanged()
    }

    /// Who has the store open may still save it, with a key that others have.
    @Test func aKeyThatIsGoneFromItsRingCanBeReplaced() throws {
        let slots = try slots()
        try remove("ops", activating: "new")
        #expect(throws: DatabaseError.self) { try slots.remove("safe") }
        #expect(try slots.replace(with: key("new")).slots.map(\.label) == ["safe", "ops"])
        #expect(try store.count(5) == 20)
        #expect(SlotHoldTests.isFree(ringPath))
    }

    @Test func aNewKeyThatIsGoneFromItsRingIsNotUsed() throws {
        let new = try key("new")
        let error = try #require(throws: DatabaseError.self) {
            _ = try slots().change(adding: new) { (table, opened) throws(DatabaseError) in
                try remove("new", activating: "ops")
                return try table.slot(.init(.key(new), label: "new"), number: 9, opened.secret, opened.dataKey)
            } body: { (table, slot) throws(DatabaseError) in
                try table.append(slot)
            }
        }
        #expect(error.message.contains("could not be read again"), "\(error)")
        try requireUnchanged()
    }

    /// It is the proof that a slot is left that opens.
    @Test func theKeyThatStaysIsKeptInItsRing() throws {
        let slots = try slots()
        #expect(throws: DatabaseError.self) {
            _ = try slots.change { (_, _) throws(DatabaseError) in
                try remove("ops", activating: "new")
            } body: { (table, _) throws(DatabaseError) in
                try table.drop { $0.label == "safe" }
            }
        }
        try requireUnchanged()
    }

    @Test func aRingThatIsBeingChangedIsWaitedForOnlyBriefly() throws {
        try KeyRing.update(file: ringPath) { ring throws(DatabaseError) in
            let error = #expect(throws: DatabaseError.self) { try slots().remove("safe") }
            #expect(error?.reason == .busy, "\(error as Any)")
        }
        try requireUnchanged()
        #expect(try slots().remove("safe").slots.map(\.label) == ["ops"])
    }

    /// The copy takes its time.
    @Test(arguments: [true, false]) func aReencryptionTakesNoKeyThatIsGone(replaces: Bool) throws {
        let (slots, new) = (try slots(), try key("new"))
        let isRemoved = Guarded(false)
        let error = #expect(throws: DatabaseError.self) {
            let progress = { (_: KeyRotation.Progress) in
                guard !isRemoved.withLock({ $0 }) else { return }
                isRemoved.withLock { $0 = true }
                try replaces ? remove("new", activating: "ops") : remove("ops", activating: "new")
            }
            if replaces {
                _ = try slots.reencrypt(replacingKeyBy: new, progress: progress)
            } else {
                _ = try slots.reencrypt(progress: progress)
            }
        }
        #expect(isRemoved.withLock { $0 })
        #expect(error?.message.contains("could not be read again") == true, "\(error as Any)")
        try requireUnchanged()
    }

    // MARK: Backups

    private var backupPath: String { store.directory.file("backup.db") }

    private func backUp(_ meanwhile: @escaping () throws -> Void) throws {
        let isDone = Guarded(false)
        try StoreBackup(path: store.path, key: key("ops"), to: backupPath).run { _ in
            guard !isDone.withLock({ $0 }) else { return }
            isDone.withLock { $0 = true }
            try meanwhile()
        }
    }

    private func useLog() throws {
        let database = try store.open(.testing(1))
        defer { database.close() }
        #expect(try database.executeQuery("PRAGMA journal_mode = wal").scalar(String.self) == "wal")
    }

    @Test func aBackupHasTheSlotsOfItsEnd() throws {
        try useLog()
        try backUp { _ = try store.slots().add(.init(.key(.testing(7)), label: "late")) }
        for byte: UInt8 in [1, 2, 7] {
            let database = Database(path: backupPath, configuration: Configuration(key: try .testing(byte)))
            try database.openVerified()
            #expect(try database.integers("SELECT count(*) FROM t") == [20])
            database.close()
        }
    }

    @Test func aBackupThatItsKeyWouldNotOpenIsNotMade() throws {
        try useLog()
        let error = #expect(throws: DatabaseError.self) {
            try backUp { _ = try store.slots().replace(with: .testing(7)) }
        }
        #expect(error?.reason == .wrongKey && error?.message.contains("changed meanwhile") == true, "\(error as Any)")
        #expect(store.directory.namesOfFiles.allSatisfy { !$0.hasPrefix("backup") })
    }

    /// The store has another key by now, and so nobody needed that one any more.
    @Test(arguments: [true, false]) func aBackupUnderAKeyThatIsGoneIsNotMade(hasSlots: Bool) throws {
        var path = store.path
        if !hasSlots {
            path = store.directory.file("plain.db")
            let database = try Database.testing(path)
            try database.fill(rows: 20)
            database.close()
        }
        let isDone = Guarded(false)
        let error = #expect(throws: DatabaseError.self) {
            try StoreBackup(path: path, key: key("ops"), to: backupPath).run { _ in
                guard !isDone.withLock({ $0 }) else { return }
                isDone.withLock { $0 = true }
                try remove("ops", activating: "new")
            }
        }
        #expect(error?.message.contains("could not be read again") == true, "\(error as Any)")
        #expect(store.directory.namesOfFiles.allSatisfy { !$0.hasPrefix("backup") })
    }
}
