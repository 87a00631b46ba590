import Foundation
import Testing

@testable import SealedDB

/// Slots that somebody made who has the data key, or none, and slots that change while they are changed.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct ForgedSlotTests {
    private let store: SlotStore
    private let wrap = ["/usr/bin/tr", "0-9a-f", "g-v"]
    private let unwrap = ["/usr/bin/tr", "g-v", "0-9a-f"]

    init() throws {
        store = try SlotStore()
    }

    private func salt(_ path: String? = nil) throws -> [UInt8] {
        let connection = try Connection(path: path ?? store.path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        return try connection.mainFileHeader()
    }

    private func opened(_ key: Key? = nil) throws -> OpenedSlots {
        try SlotFiles(store: store.path).open(with: key ?? .testing(1), salt: salt())
    }

    /// Writes both files as somebody could who has the data key.
    private func forge(_ change: (inout SlotTable, OpenedSlots) throws -> Void) throws {
        let opened = try opened()
        var table = opened.table
        try change(&table, opened)
        try store.write(SealedSlots(table, keys: [table.dataKeys[0].number: opened.secret]).bytes)
    }

    private func refusal(_ body: () throws -> Void) throws -> DatabaseError {
        try #require(throws: DatabaseError.self, performing: body)
    }

    private func safe() throws -> KeySlots.NewSlot { .init(.key(try .testing(2)), label: "safe") }

    // MARK: Keys that open nothing

    /// The bytes of the data key with the salt of another store.
    @Test func theDataKeyWithAnotherSalt() throws {
        let opened = try opened()
        #expect(try store.count(opened.fixedKey()) == 20)
        let other = try Key.raw(opened.secret, salt: [UInt8](repeating: 7, count: 16))
        #expect(try refusal { _ = try self.opened(other) }.reason == .wrongKey)
    }

    /// It has a slot, but what that holds is another key.
    @Test func aSlotThatHoldsAnotherDataKey() throws {
        let other = try SecretBytes(copying: [UInt8](repeating: 9, count: 32))
        try forge { table, opened in
            table.slots[1].wraps = [try table.wrap(other, opened.dataKey, slot: 2, under: .testing(2))]
        }
        #expect(try opened().slots(openedBy: .testing(2)).isEmpty)
        #expect(try opened().slots(openedBy: .testing(1)).map(\.label) == ["ops"])
        let bytes = try store.bytes()
        let error = try refusal { _ = try store.slots().reencrypt(keeping: [safe()]) }
        #expect(error.reason == .wrongKey && error.message.contains("The slot safe"), "\(error)")
        #expect(try store.bytes() == bytes)
    }

    /// A program that fails for another's slot opens its own all the same.
    @Test func theSlotsOfAProgram() throws {
        _ = try store.slots().add(.init(.program(wrap: ["/bin/echo", "opaque"], unwrap: nil), label: "other"))
        _ = try store.slots().add(.init(.program(wrap: wrap, unwrap: unwrap), label: "own"))
        let key = try KeySource.unwrapCommand(unwrap).key()
        #expect(try opened().slots(openedBy: key).map(\.label) == ["own"])
        #expect(try opened().slots(openedBy: opened().fixedKey()).isEmpty)
    }

    /// Only the latest results are kept, each of which takes locked memory.
    @Test func resultsOfManyPrograms() throws {
        let command = KeyCommand(["/bin/echo", String(repeating: "0a", count: 32)], timeout: 600)
        let key = try Key.program(command)
        func unwrap(_ number: Int) throws -> Int {
            let bytes = [UInt8(number >> 8), UInt8(number & 0xff)]
            _ = try key.slotKeys.unwrapped(bytes, by: key)
            return key.slotKeys.derivationCount
        }
        for number in 0..<256 { #expect(try unwrap(number) == number + 1) }
        #expect(try unwrap(0) == 256)
        #expect(try unwrap(256) == 257)
        #expect(try unwrap(255) == 257)
        #expect(try unwrap(0) == 258)
    }

    // MARK: What the store remembers

    /// The store has got slots anew since, which have had fewer changes.
    @Test func slotsFromBeforeTheStoreGotItsOwn() throws {
        _ = try store.slots().rename("ops", to: "x")
        let text = try store.slots().export()
        try store.tamper("UPDATE sealdb_slots SET store = '\(String(repeating: "0", count: 32))', generation = 1")
        let error = try store.refusal(.testing(1))
        #expect(error.reason == .olderSlots, "\(error)")
        #expect(error.message.contains("from before the store got the slots that it has now"), "\(error)")
        // A later generation of those says nothing of these.
        let connection = try StoreOpening(path: store.path, key: .testing(1), acceptsOlderSlots: true).open()
        try connection.unguarded { () throws(DatabaseError) in
            try connection.run("UPDATE sealdb_slots SET generation = 9")
        }
        connection.close()
        let imported = try refusal { _ = try store.slots().importSlots(text) }
        #expect(imported.reason == .olderSlots, "\(imported)")
        #expect(imported.message.contains("from before the store got the slots that it has now"), "\(imported)")
    }

    /// What lies there counts only if it was made by somebody who has the data key, for the same slots.
    @Test func slotsThatDoNotCountForAnImport() throws {
        let text = try store.slots().export()
        try store.write(text.replacing("generation 1\n", with: "generation 900\n"))
        #expect(try store.slots().importSlots(text).generation == 2)
        #expect(try store.count() == 20)
        let second = try store.slots().export()
        try forge { table, _ in
            table.store = [UInt8](repeating: 5, count: table.store.count)
            table.generation = 700
        }
        #expect(try store.slots().importSlots(second).generation == 3)
        #expect(try store.count() == 20)
    }

    /// A backup that goes on has the slots of its beginning if somebody puts older ones there.
    @Test func olderSlotsThatComeDuringACopy() throws {
        let old = try store.bytes()
        _ = try store.slots().rename("ops", to: "x")
        let opening = StoreOpening(path: store.path, key: try .testing(1))
        let connection = try opening.open()
        defer { connection.close() }
        let copy = try #require(try SlotCopy(opening, .testing(1), connection))
        #expect(try copy.current(openedBy: .testing(1)).table.generation == 2)
        try store.write(old)
        #expect(try copy.current(openedBy: .testing(1)).table.generation == 2)
    }

    // MARK: Limits

    @Test func moreThanAFileOfSlotsHolds() throws {
        let opened = try opened()
        var table = opened.table
        let bytes = [UInt8](repeating: 1, count: SlotsParser.sizeLimit)
        table.slots[1].wraps = [.init(dataKey: opened.dataKey.number, form: .program(bytes))]
        let error = try refusal { _ = try SealedSlots(table, keys: [opened.dataKey.number: opened.secret]) }
        #expect(error.reason == .misuse && error.message.contains("They were not written"), "\(error)")
    }

    @Test func tooManyDataKeys() throws {
        try forge { table, opened in
            let last = SlotTable.DataKey(number: SlotTable.maximumNumber, salt: opened.dataKey.salt)
            table.dataKeys = [last]
            for (index, byte) in [1, 2].enumerated() {
                let number = table.slots[index].number
                let wrap = try table.wrap(opened.secret, last, slot: number, under: .testing(UInt8(byte)))
                table.slots[index].wraps = [wrap]
            }
        }
        #expect(try store.count() == 20)
        let error = try refusal { _ = try store.slots().reencrypt() }
        #expect(error.reason == .notAllowed && error.message.contains("too many data keys"), "\(error)")
        #expect(try store.count() == 20)
    }

    // MARK: New data keys

    @Test func reencryptionsThatAreRefused() throws {
        _ = try store.slots().add(.init(.program(wrap: wrap, unwrap: unwrap), label: "program"))
        let (bytes, salt) = (try store.bytes(), try salt())
        let same = try refusal { _ = try store.slots().reencrypt(replacingKeyBy: .testing(1)) }
        #expect(same == KeyRotation.sameKey)
        let twice = try refusal { _ = try store.slots().reencrypt(keeping: [safe(), safe()]) }
        #expect(twice.message.contains("is to be kept twice"), "\(twice)")
        let other = ["/bin/echo", String(repeating: "0a", count: 32)]
        let program = KeySlots.NewSlot(.program(wrap: wrap, unwrap: other), label: "program")
        let untrue = try refusal { _ = try store.slots().reencrypt(keeping: [program]) }
        #expect(untrue.message.contains("does not unwrap"), "\(untrue)")
        let key = try KeySource.unwrapCommand(unwrap).key()
        let wrapless = try refusal { _ = try KeySlots(path: store.path, key: key).reencrypt() }
        #expect(wrapless.message.contains("needs its wrap command"), "\(wrapless)")
        #expect(try store.bytes() == bytes && self.salt() == salt)
        #expect(try store.count() == 20)
    }

    /// A program may take any time, in which somebody else changes the slots.
    @Test func slotsThatChangeWhileAProgramWraps() throws {
        _ = try store.slots().add(.init(.program(wrap: wrap, unwrap: nil), label: "program"))
        let (before, salt) = (try store.bytes(), try salt())
        try forge { table, _ in table.generation += 1 }
        let later = try store.directory.write("later", store.bytes())
        try store.write(before)
        let script = "for f in .slots .slots.2; do cp '\(later)' '\(store.path)'$f; done; exec tr 0-9a-f g-v"
        let program = KeySlots.NewSlot(.program(wrap: ["/bin/sh", "-c", script], unwrap: nil), label: "program")
        let error = try refusal { _ = try store.slots().reencrypt(keeping: [program]) }
        #expect(error.reason == .busy, "\(error)")
        #expect(error.message.contains("Others changed the slots meanwhile"), "\(error)")
        #expect(try Array(store.directory.bytes("later")) == store.bytes())
        #expect(try self.salt() == salt)
    }

    enum Change: CaseIterable { case olderSlots, oneFile, laterSlots }

    /// From the swap on, only what was tried before opens the store.
    @Test(arguments: Change.allCases) func slotsThatChangeBeforeTheSwap(change: Change) throws {
        let before = try store.bytes()
        let salt = try salt()
        let changes = Guarded(0)
        let error = try refusal {
            _ = try store.slots().reencrypt(keeping: [safe()]) { _ in
                guard
                    changes.withLock({ count in
                        count += 1
                        return count == 1
                    })
                else { return }
                try interfere(change, before, salt)
            }
        }
        #expect(changes.withLock { $0 } > 0)
        #expect(error.reason == .busy, "\(error)")
        #expect(error.message.contains("Somebody else changed the slots meanwhile"), "\(error)")
        #expect(try self.salt() == salt)
    }

    private func interfere(_ change: Change, _ before: [UInt8], _ salt: [UInt8]) throws {
        switch change {
        case .olderSlots: try store.write(before)
        case .oneFile: unlink(store.files[1])
        case .laterSlots:
            let files = SlotFiles(store: store.path)
            let old = try files.open(with: .testing(1), salt: salt)
            var table = old.table
            let new = try files.open(with: .testing(1), salt: table.dataKeys[1].salt)
            table.generation += 1
            table.slots[1].label = "other"
            let keys = [old.dataKey.number: old.secret, new.dataKey.number: new.secret]
            try store.write(SealedSlots(table, keys: keys).bytes)
        }
    }

    /// Cut off before the swap: the store has the old data key, so there is nothing to end.
    @Test func aReencryptionThatWasCutOffBeforeItsSwap() throws {
        let copy = try TemporaryDirectory()
        let path = copy.file("app.db")
        _ = try store.slots().reencrypt(keeping: [safe()]) { [store] _ in
            guard !FileSystem.exists(path) else { return }
            for (from, to) in zip([store.path] + store.files, ["", ".slots", ".slots.2"]) {
                try FileManager.default.copyItem(atPath: from, toPath: path + to)
            }
        }
        let slots = KeySlots(path: path, key: try .testing(1))
        #expect(String(decoding: try copy.bytes("app.db.slots"), as: UTF8.self).contains("data-key 2 "))
        #expect(try !slots.endReencryption())
        #expect(String(decoding: try copy.bytes("app.db.slots"), as: UTF8.self).contains("data-key 2 "))
        // Beside the new store they are those of one that was cut off after it.
        #expect(rename(store.path, path) == 0)
        #expect(try KeySlots(path: path, key: .testing(1), acceptsOlderSlots: true).endReencryption())
        #expect(!String(decoding: try copy.bytes("app.db.slots"), as: UTF8.self).contains("data-key 1 "))
    }

    /// Slots that list two data keys were changed, so another store may need them.
    @Test(arguments: [false, true]) func slotsBesideAStoreThatWasNeverNamed(hasTwoKeys: Bool) throws {
        let files = SlotFiles(store: store.directory.file("new.db"))
        let leftover = try TemporaryFile.path(beside: files.store, mark: SlotFiles.markOfNew)
        try FileManager.default.copyItem(atPath: store.path, toPath: leftover)
        let opened = try opened()
        var table = opened.table
        var keys = [opened.dataKey.number: opened.secret]
        if hasTwoKeys {
            let other = SlotTable.DataKey(number: 2, salt: [UInt8](repeating: 9, count: 16))
            keys[2] = try SecretBytes(copying: [UInt8](repeating: 8, count: 32))
            table.dataKeys.append(other)
            let wrap = try table.wrap(#require(keys[2]), other, slot: table.slots[0].number, under: .testing(1))
            table.slots[0].wraps.append(wrap)
        }
        #expect(table.generation == 1)
        let bytes = try SealedSlots(table, keys: keys).bytes
        for name in ["new.db.slots", "new.db.slots.2"] { try store.directory.write(name, bytes) }
        files.removeAbandoned()
        #expect(FileSystem.exists(files.first) == hasTwoKeys)
        #expect(FileSystem.exists(files.second) == hasTwoKeys)
    }
}
