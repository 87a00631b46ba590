import Foundation
import Testing

@testable import SealedDB

/// Rotations of stores with slots, and new data keys.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotRotationTests {
    private let store: SlotStore

    init() throws {
        store = try SlotStore()
    }

    private func salt() throws -> [UInt8] {
        let connection = try Connection(path: store.path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        return try connection.mainFileHeader()
    }

    /// Whoever plans learns of a new key that cannot be read again.
    @Test func aNewKeyThatIsGoneBeforeThePlan() throws {
        let path = try store.directory.write("new", String(repeating: "05", count: 32).utf8)
        let rotation = KeyRotation(path: store.path, from: try .testing(1), to: try KeySource.keyFile(path).key())
        #expect(try rotation.plan().estimatedSeconds == 0)
        unlink(path)
        #expect(throws: DatabaseError.self) { try rotation.plan() }
    }

    @Test func aRotationReplacesTheSlot() throws {
        let salt = try salt()
        let rotation = KeyRotation(path: store.path, from: try .testing(1), to: try .testing(5))
        #expect(try rotation.plan().estimatedSeconds == 0)
        #expect(try !rotation.isDone())
        #expect(try rotation.run().pageCount > 0)
        #expect(try rotation.isDone())
        #expect(try self.salt() == salt)
        #expect(try store.count(5) == 20)
        #expect(try store.count(2) == 20)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        let report = try store.slots(5).list()
        #expect(report.slots.map(\.label) == ["safe", "ops"] && report.generation == 3)
        #expect(store.directory.namesOfFiles == ["app.db", "app.db.slots", "app.db.slots.2"])
    }

    /// Each step is a generation of its own: in between, both keys open.
    @Test func aRotationThatWasCutOffGoesOn() throws {
        _ = try store.slots().add(.init(.key(.testing(5)), label: "new"))
        let rotation = KeyRotation(path: store.path, from: try .testing(1), to: try .testing(5))
        #expect(try !rotation.isDone())
        _ = try rotation.run()
        #expect(try store.slots(5).list().slots.map(\.label) == ["safe", "new"])
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
    }

    /// The old slot goes only when the new one has opened the store, in a generation of its own.
    @Test func theOldSlotStaysUntilTheNewOneIsTried() throws {
        let calls = Guarded(0)
        let key = try KeySource.closure {
            try .testing(
                calls.withLock {
                    $0 += 1
                    return $0
                } < 3 ? 5 : 6
            )
        }.key()
        let error = try #require(throws: DatabaseError.self) {
            try KeyRotation(path: self.store.path, from: .testing(1), to: key).run()
        }
        #expect(error.reason == .keySourceFailed && error.message.contains("removed again"))
        #expect(try store.count(1) == 20)
        #expect(try store.slots().list().slots.map(\.label) == ["ops", "safe"])
        #expect(try store.refusal(.testing(5)).reason == .wrongKey)
    }

    /// A rotation that leaves a slot of the old key would say something untrue.
    @Test func allSlotsOfTheOldKeyGo() throws {
        let again = KeySlots.NewSlot(.key(try .testing(1)), label: "again")
        _ = try store.slots(2).change { (table, opened) throws(DatabaseError) in
            try table.slot(again, number: 9, opened.secret, opened.dataKey)
        } body: { (table, slot) throws(DatabaseError) in
            try table.append(slot)
        }
        let rotation = KeyRotation(path: store.path, from: try .testing(1), to: try .testing(5))
        #expect(try !rotation.isDone())
        _ = try rotation.run()
        #expect(try rotation.isDone())
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        #expect(try store.slots(5).list().slots.map(\.label) == ["safe", "ops"])
    }

    /// There is always room for the slot that takes another's place.
    @Test func rotationsOfManySlots() throws {
        for number in 3...SlotTable.maximumSlotCount {
            _ = try store.slots().add(.init(.key(.testing(UInt8(100 + number))), label: "n\(number)"))
        }
        #expect(throws: DatabaseError.self) { try self.store.slots().add(.init(.key(.testing(99)), label: "more")) }
        _ = try KeyRotation(path: store.path, from: .testing(1), to: .testing(5)).run()
        #expect(try store.count(5) == 20)
        #expect(try store.slots(5).list().slots.count == SlotTable.maximumSlotCount)
    }

    @Test func rotationsThatCannotBe() throws {
        func refusal(_ old: UInt8, _ new: UInt8, keeping suffix: String? = nil) throws -> DatabaseError.Reason {
            let rotation = KeyRotation(
                path: store.path,
                from: try .testing(old),
                to: try .testing(new),
                oldFileSuffix: suffix
            )
            #expect(throws: DatabaseError.self) { try rotation.plan() }
            return try #require(throws: DatabaseError.self) { try rotation.run() }.reason
        }
        #expect(try refusal(1, 1) == .malformedKey)
        #expect(try refusal(3, 5) == .wrongKey)
        #expect(try refusal(1, 5, keeping: ".old") == .notAllowed)
        let migration = StoreMigration(path: store.path, key: try .testing(1), to: CipherSettings(pageSize: 8192))
        #expect(try #require(throws: DatabaseError.self) { try migration.run() }.reason == .unsupported)
        let database = try store.open(.testing(1))
        #expect(!database.rekey("open sesame"))
        #expect("\(database.lastError())".contains("slots"))
        database.close()
        #expect(try store.count() == 20)
        #expect(try store.slots().list().generation == 1)
    }

    @Test func servicesGoOn() throws {
        let pool = DatabasePool(path: store.path, configuration: Configuration(key: try .testing(1)))
        let other = try DatabaseQueue(path: store.path, configuration: Configuration(key: try .testing(2)))
        try pool.rotateKey(to: .testing(5))
        try pool.inDatabase { try $0.fill(rows: 5) }
        #expect(try other.inDatabase { try $0.integers("SELECT count(*) FROM t") } == [25])
        #expect(try pool.read { try $0.integers("SELECT count(*) FROM t") } == [25])
        pool.releaseAllDatabases()
        other.close()
        #expect(try store.count(5) == 25)
    }

    @Test func newDataKeys() throws {
        let (old, key) = (try salt(), try store.dataKey())
        let oldSlots = try store.text
        let copy = store.directory.file("copy.db")
        try FileManager.default.copyItem(atPath: store.path, toPath: copy)
        let report = try store.slots().reencrypt(keeping: [.init(.key(.testing(2)), label: "safe", isRecovery: true)])
        #expect(report.slots.map(\.label) == ["ops", "safe"] && report.generation == 3)
        #expect(try salt() != old)
        #expect(try store.dataKey() != key)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        #expect(try !store.text.contains(Hexadecimal.string(old)))
        // Who has the old data key, or the old slots, opens only old copies.
        #expect(throws: (any Error).self) {
            try StockShell.run(self.store.path, "PRAGMA key = \"x'\(key)'\"; SELECT count(*) FROM t;")
        }
        let current = try store.text
        try store.write(oldSlots)
        #expect(try store.refusal(.testing(1)).reason == .malformedSlots)
        try store.write(current)
        #expect(try StockShell.run(copy, "PRAGMA key = \"x'\(key)'\"; SELECT count(*) FROM t;") == ["20"])
    }

    private func replacing(
        _ old: UInt8 = 1,
        with key: Key,
        keeping kept: [KeySlots.NewSlot] = [],
        removing lost: Set<String>? = nil
    ) throws -> KeyRotation {
        KeyRotation(
            path: store.path,
            from: try .testing(old),
            to: key,
            reencryption: .init(keeping: kept, removing: lost)
        )
    }

    private func safe() throws -> [KeySlots.NewSlot] { [.init(.key(try .testing(2)), label: "safe", isRecovery: true)] }

    /// The slot and the data key at once.
    @Test func rotationsWithANewDataKey() throws {
        let (old, dataKey) = (try salt(), try store.dataKey())
        let rotation = try replacing(with: .testing(5), keeping: safe())
        let plan = try rotation.plan()
        #expect(plan.removedSlots == [] && plan.neededSpace > 0)
        #expect(try replacing(with: .testing(5)).plan().removedSlots == ["safe"])
        #expect(try !rotation.isDone() && salt() == old)
        #expect(try rotation.run().pageCount > 0)
        #expect(try rotation.isDone() && salt() != old)
        #expect(try store.count(5) == 20 && store.count(2) == 20)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        let report = try store.slots(5).list()
        #expect(report.slots.map(\.label) == ["safe", "ops"] && report.slots.map(\.isRecovery) == [true, false])
        #expect(try !store.text.contains(Hexadecimal.string(old)))
        #expect(throws: (any Error).self) {
            try StockShell.run(self.store.path, "PRAGMA key = \"x'\(dataKey)'\"; SELECT count(*) FROM t;")
        }
        #expect(store.directory.namesOfFiles == ["app.db", "app.db.slots", "app.db.slots.2"])
    }

    /// By the way of ``KeySlots``, to a passphrase.
    @Test func newDataKeysForAnotherKind() throws {
        let passphrase = try Key.passphrase("open sesame")
        let report = try store.slots().reencrypt(
            to: passphrase,
            keeping: [],
            removing: nil,
            scrypt: .least,
            progress: nil
        )
        #expect(report.slots.slots.map(\.label) == ["ops"] && report.slots.slots[0].kind == .passphrase)
        #expect(try store.count(.passphrase("open sesame")) == 20)
        #expect(try KeySlots(path: store.path, key: passphrase).reencrypt(replacingKeyBy: .testing(6)).slots.count == 1)
        #expect(try store.count(6) == 20)
    }

    /// The new key has a slot already, as after a rotation that was cut off.
    @Test func newDataKeysForTheSlotOfTheNewKey() throws {
        _ = try store.slots().add(.init(.key(.testing(5)), label: "new"))
        _ = try replacing(with: .testing(5), keeping: safe(), removing: []).run()
        #expect(try store.slots(5).list().slots.map(\.label) == ["safe", "new"])
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
    }

    /// After a rotation that replaced the slot alone, the same with a new data key still makes one.
    @Test func theDataKeyIsReplacedAfterTheSlot() throws {
        _ = try KeyRotation(path: store.path, from: .testing(1), to: .testing(5)).run()
        let salt = try salt()
        let rotation = try replacing(with: .testing(5), keeping: safe())
        _ = try rotation.run()
        #expect(try self.salt() != salt)
        #expect(try store.count(5) == 20 && store.count(2) == 20)
    }

    @Test func newDataKeysThatCannotBe() throws {
        let bytes = try store.bytes()
        func refusal(_ rotation: KeyRotation) throws -> DatabaseError.Reason {
            try #require(throws: DatabaseError.self) { try rotation.run() }.reason
        }
        #expect(try refusal(replacing(with: .testing(1))) == .malformedKey)
        #expect(try refusal(replacing(3, with: .testing(5))) == .wrongKey)
        #expect(try refusal(replacing(with: .testing(5), removing: [])) == .busy)
        // The slot whose key is replaced, and one that there is not.
        for kept in [KeySlots.NewSlot(.key(try .testing(1)), label: "ops"), .init(.key(try .testing(2)), label: "x")] {
            #expect(throws: DatabaseError.self) { try self.replacing(with: .testing(5), keeping: [kept]).run() }
        }
        let program = try KeySource.unwrapCommand(["/bin/cat"]).key()
        #expect(throws: DatabaseError.self) { try self.replacing(with: program).run() }
        let kept = try KeyRotation(
            path: store.path,
            from: .testing(1),
            to: .testing(5),
            oldFileSuffix: ".old",
            reencryption: .init()
        )
        #expect(try refusal(kept) == .notAllowed)
        // A key that its source does not give again before the swap.
        let calls = Guarded(0)
        let fickle = try KeySource.closure {
            try .testing(
                calls.withLock {
                    $0 += 1
                    return $0
                } < 3 ? 5 : 6
            )
        }.key()
        #expect(try refusal(replacing(with: fickle, keeping: safe())) == .keySourceFailed)
        #expect(calls.withLock { $0 } >= 3)
        #expect(try store.slots().list().slots.map(\.label) == ["ops", "safe"])
        #expect(try !store.text.contains("data-key 2"))
        #expect(try store.count(1) == 20 && store.count(2) == 20 && bytes.count == store.bytes().count)
        let plain = try Database.testing(store.directory.file("plain.db"))
        try plain.fill(rows: 1)
        plain.close()
        let rotation = KeyRotation(
            path: store.directory.file("plain.db"),
            from: try .testing(1),
            to: try .testing(5),
            reencryption: .init()
        )
        #expect(try refusal(rotation) == .notAllowed)
        #expect(throws: DatabaseError.self) { try rotation.plan() }
    }

    /// Cut off before the swap, the old key opens the store, and after it the new one; and the label stays.
    @Test func rotationsWithANewDataKeyThatWereCutOff() throws {
        let before = store.directory.file("before.db")
        try FileManager.default.copyItem(atPath: store.path, toPath: before)
        let listed = Guarded<String?>(nil)
        let rotation = try replacing(with: .testing(5), keeping: safe())
        _ = try rotation.run { [store] _ in
            let text = try store.text
            listed.withLock { $0 = text }
        }
        let both = try #require(listed.withLock { $0 })
        #expect(both.split(separator: "\n").count { $0.hasSuffix(" ops") } == 2)
        func cutOff() throws {
            try store.tamper("UPDATE sealdb_slots SET generation = 2", by: 5)
            try store.write(both)
        }
        try cutOff()
        let salt = try salt()
        #expect(try store.count(5) == 20 && store.count(2) == 20)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        // The same again only ends it, and so does the question whether it is done.
        _ = try rotation.run()
        #expect(try self.salt() == salt && !store.text.contains("data-key 1 "))
        #expect(try store.slots(5).list().slots.map(\.label) == ["safe", "ops"])
        try cutOff()
        #expect(try rotation.isDone() && !store.text.contains("data-key 1 "))
        // The old store.
        #expect(rename(before, store.path) == 0)
        try store.write(both)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        #expect(try store.refusal(.testing(5)).reason == .wrongKey)
        #expect(try store.slots(1).rename("safe", to: "x").slots.map(\.label) == ["ops", "x"])
        #expect(try !store.text.contains("data-key 2 "))
        _ = try replacing(with: .testing(5)).run()
        #expect(try store.count(5) == 20)
    }

    /// There is room for the slot that takes another's place.
    @Test func newDataKeysOfManySlots() throws {
        for number in 3...SlotTable.maximumSlotCount {
            _ = try store.slots().add(.init(.key(.testing(UInt8(100 + number))), label: "n\(number)"))
        }
        _ = try replacing(with: .testing(5)).run()
        #expect(try store.slots(5).list().slots.map(\.label) == ["ops"])
    }

    @Test func slotsWhoseKeyIsNotGivenAreLost() throws {
        #expect(try store.slots().reencrypt().slots.map(\.label) == ["ops"])
        #expect(try store.refusal(.testing(2)).reason == .wrongKey)
        #expect(try store.count(1) == 20)
    }

    @Test func reencryptionsThatFail() throws {
        let bytes = try store.bytes()
        let salt = try salt()
        for kept in [
            KeySlots.NewSlot(.key(try .testing(3)), label: "safe"), .init(.key(try .testing(2)), label: "nobody"),
            .init(.program(wrap: ["/bin/false"], unwrap: nil), label: "safe"),
            // The slot of the key itself, with another key.
            .init(.key(try .testing(2)), label: "ops"),
        ] {
            #expect(throws: DatabaseError.self) { try self.store.slots().reencrypt(keeping: [kept]) }
            #expect(try store.bytes() == bytes)
        }
        struct Stop: Error {}
        let stopped = try #require(throws: DatabaseError.self) {
            try self.store.slots().reencrypt(keeping: [.init(.key(.testing(2)), label: "safe")]) { _ in throw Stop() }
        }
        #expect(stopped.reason == .interrupted)
        let queue = try DatabaseQueue(path: store.path, configuration: Configuration(key: try .testing(1)))
        let busy = try #require(throws: DatabaseError.self) {
            try KeySlots(path: self.store.path, key: .testing(1), busyTimeout: .zero).reencrypt()
        }
        #expect(busy.reason == .busy)
        queue.close()
        #expect(try self.salt() == salt)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        // The data key that was listed for nothing is gone again.
        #expect(try store.slots().list().slots.count == 2)
        #expect(try !store.text.contains("data-key 2"))
    }

    /// A slot that somebody has added since the caller looked is not removed.
    @Test func slotsThatWereNotLookedAtStay() throws {
        _ = try store.slots().add(.init(.key(.testing(5)), label: "new"))
        let error = try #require(throws: DatabaseError.self) {
            try self.store.slots().reencrypt(removing: ["safe"])
        }
        #expect(error.reason == .busy && error.message.contains("new"))
        #expect(try store.slots().reencrypt(removing: ["safe", "new"]).slots.map(\.label) == ["ops"])
    }

    /// What wraps is tried before the slot depends on it, if the program that unwraps is given.
    @Test func programsAreTriedBefore() throws {
        let wrap = ["/usr/bin/tr", "0-9a-f", "g-v"]
        let unwrap = ["/usr/bin/tr", "g-v", "0-9a-f"]
        _ = try store.slots().add(.init(.program(wrap: wrap, unwrap: unwrap), label: "program"))
        let bytes = try store.bytes()
        let wrong = KeySlots.NewSlot(
            .program(wrap: ["/usr/bin/tr", "0-9a-f", "A-P"], unwrap: unwrap),
            label: "program"
        )
        #expect(throws: DatabaseError.self) { try self.store.slots().reencrypt(keeping: [wrong]) }
        #expect(try store.bytes() == bytes)
        _ = try store.slots().reencrypt(keeping: [.init(.program(wrap: wrap, unwrap: unwrap), label: "program")])
        #expect(try store.count(KeySource.unwrapCommand(unwrap).key()) == 20)
    }

    /// Cut off before the swap, and right after it: the salt tells which data key it is.
    @Test func reencryptionsThatWereCutOff() throws {
        let before = store.directory.file("before.db")
        try FileManager.default.copyItem(atPath: store.path, toPath: before)
        let listed = Guarded<String?>(nil)
        _ = try store.slots().reencrypt(keeping: [.init(.key(.testing(2)), label: "safe")]) { [store] _ in
            let text = try store.text
            listed.withLock { $0 = text }
        }
        let both = try #require(listed.withLock { $0 })
        #expect(both.contains("data-key 1") && both.contains("data-key 2"))
        // The store remembers the later generation, which the process that was cut off would not have written.
        try store.tamper("UPDATE sealdb_slots SET generation = 2")
        try store.write(both)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        #expect(try store.slots(2).test().report.slots.count == 2)
        #expect(try !store.text.contains("data-key 1 "))
        #expect(rename(before, store.path) == 0)
        try store.write(both)
        #expect(try store.count(1) == 20 && store.count(2) == 20)
        #expect(try store.slots().rename("ops", to: "x").slots.count == 2)
        #expect(try !store.text.contains("data-key 2 "))
    }

    /// The number of a slot that was removed goes to the next one, which is another slot.
    @Test func sameSlots() throws {
        let table = SlotFiles(of: store.path).read()[0].slots!.table
        let safe = try #require(table.slot("safe"))
        _ = try store.slots().remove("safe")
        _ = try store.slots().add(.init(.key(.testing(7)), label: "late"))
        let late = try #require(SlotFiles(of: store.path).read()[0].slots?.table.slot("late"))
        #expect(late.number == safe.number && !late.isSame(safe))
        _ = try store.slots(7).rename("late", to: "later")
        let later = try #require(SlotFiles(of: store.path).read()[0].slots?.table.slot("later"))
        #expect(later.isSame(late))
    }

    /// A slot that takes the place of the old one while the new key is asked for is not removed for it.
    @Test func anotherSlotOfTheSameNumber() throws {
        _ = try store.slots().add(.init(.key(.testing(3)), label: "last"))
        let path = store.path
        let isDone = Guarded(false)
        let new = try KeySource.closure {
            // The second time it is asked for between the two generations.
            let isFirst = isDone.withLock { done in
                defer { done = true }
                return !done
            }
            if !isFirst, try KeySlots(path: path, key: .testing(2)).list().slots.count == 4 {
                let slots = try KeySlots(path: path, key: .testing(2))
                _ = try slots.remove("last.replaced")
                _ = try slots.add(.init(.key(.testing(8)), label: "late"))
            }
            return try .testing(5)
        }.key()
        let report = try store.slots(3).replace(with: new)
        #expect(Set(report.slots.map(\.label)) == ["ops", "safe", "last", "late"])
        #expect(try store.count(8) == 20 && store.count(5) == 20)
        #expect(try store.refusal(.testing(3)).reason == .wrongKey)
    }

    /// After a rotation that was cut off, neither a third key nor a wrong old one passes it over.
    @Test func halfRotations() throws {
        let whole = try store.text
        // Both slots are there, as after the first generation.
        _ = try store.slots().add(.init(.key(.testing(5)), label: "new"))
        _ = try store.slots().rename("ops", to: "ops.replaced")
        _ = try store.slots().rename("new", to: "ops")
        #expect(throws: DatabaseError.self) { try self.store.slots(1).replace(with: .testing(6)) }
        let wrong = try KeyRotation(path: store.path, from: .testing(9), to: .testing(5))
        let refusal = try #require(throws: DatabaseError.self) { try wrong.isDone() }
        #expect(refusal.reason == .wrongKey && refusal.message.contains("ops.replaced"))
        #expect(try store.count(1) == 20 && store.count(5) == 20)
        // The same again goes on.
        #expect(try store.slots(1).replace(with: .testing(5)).slots.map(\.label).sorted() == ["ops", "safe"])
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        #expect(try KeyRotation(path: store.path, from: .testing(9), to: .testing(5)).isDone())
        // Or the slot of the key that is not wanted goes, and the label comes back.
        _ = try store.slots(5).rename("ops", to: "ops.replaced")
        #expect(try store.slots(5).replace(with: .testing(6)).slots.map(\.label).sorted() == ["ops", "safe"])
        let error = try #require(throws: DatabaseError.self) { try self.store.slots(6).importSlots(whole) }
        #expect(error.reason == .wrongKey || error.reason == .olderSlots)
    }

    /// The label comes back, whatever labels there are and however long it is.
    @Test func labelsOfReplacedSlots() throws {
        _ = try store.slots().add(.init(.key(.testing(3)), label: "ops.replaced"))
        #expect(try store.slots().replace(with: .testing(5)).slots.map(\.label) == ["safe", "ops.replaced", "ops"])
        #expect(try store.count(3) == 20)
        let longest = String(repeating: "x", count: 64)
        _ = try store.slots(5).rename("ops", to: longest)
        #expect(try store.slots(5).replace(with: .testing(6)).slots.map(\.label) == ["safe", "ops.replaced", longest])
        #expect(try store.count(6) == 20)
    }

    /// A store that cannot be written to could not remember its slots: they stay as they are.
    @Test func readOnlyFiles() throws {
        let changes: [() throws -> Void] = [
            { _ = try self.store.slots().add(.init(.key(.testing(4)), label: "new")) },
            { _ = try self.store.slots().replace(with: .testing(5)) },
            { _ = try self.store.slots().importSlots(self.store.text) },
            { _ = try self.store.slots().reencrypt(keeping: self.safe()) },
        ]
        // If a process has databases open, SQLite asks first whether the file is one of them. Other tests have some or not.
        let elsewhere = try TemporaryDirectory()
        let other = try Database.testing(elsewhere.file("db"))
        defer { #expect(other.close()) }
        let before = try Files(store)
        for change in changes {
            let count = CallWatch(store.directory.path)
            try change()
            let opened = count.endWithAll().enumerated().filter { _, call in
                call.hasPrefix("open") && call.hasSuffix(" app.db")
            }
            try before.restore(store)
            var refusals = 0
            for (index, _) in opened {
                let watch = CallWatch(store.directory.path, failing: index...index, code: EACCES)
                let result = Result { try change() }
                watch.end()
                // SQLite opens a file for reading that it may not open for writing.
                if case .failure(let error as DatabaseError) = result, error.code == SQLITE_READONLY {
                    // A new slot whose trial fails so is removed again, which makes new generations.
                    #expect(try store.slots().list().slots.map(\.label).sorted() == ["ops", "safe"], "\(error)")
                    if try Files(store) == before { refusals += 1 }
                }
                try before.restore(store)
            }
            #expect(refusals > 0)
        }
    }

    private struct Files: Equatable {
        private let bytes: [String: Data]

        init(_ store: SlotStore) throws {
            bytes = try store.directory.namesOfFiles.reduce(into: [:]) { bytes, name in
                bytes[name] = try Data(contentsOf: URL(fileURLWithPath: store.directory.file(name)))
            }
        }

        func restore(_ store: SlotStore) throws {
            for name in store.directory.namesOfFiles {
                try FileManager.default.removeItem(atPath: store.directory.file(name))
            }
            for (name, bytes) in bytes { try bytes.write(to: URL(fileURLWithPath: store.directory.file(name))) }
        }
    }
}
