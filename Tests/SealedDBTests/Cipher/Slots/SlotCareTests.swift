import Foundation
import Testing

@testable import SealedDB

/// What changes of slots make sure of before they write, and what of the slots they keep.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct SlotCareTests {
    private let store: SlotStore

    init() throws { store = try SlotStore() }

    private func safe() throws -> KeySlots.NewSlot { .init(.key(try .testing(2)), label: "safe") }

    /// A store without slots beside it.
    private func plainStore() throws -> String {
        let path = store.directory.file("plain.db")
        let database = try Database.testing(path, journalMode: .delete)
        try database.fill(rows: 5)
        database.close()
        return path
    }

    private func calls(_ body: () throws -> Void) throws -> [String] {
        let watch = CallWatch(store.directory.path)
        let result = Result { try body() }
        let calls = watch.endWithAll()
        try result.get()
        return calls
    }

    // MARK: Lists

    /// Slots that cannot be read are there all the same.
    @Test func listsOfWhatCannotBeRead() throws {
        try store.write(Array("damaged".utf8))
        let error = #expect(throws: DatabaseError.self) { try KeySlots.unverifiedList(path: store.path) }
        #expect(error?.reason == .malformedSlots, "\(error as Any)")
        for file in store.files { unlink(file) }
        let missing = #expect(throws: DatabaseError.self) { try KeySlots.unverifiedList(path: store.path) }
        #expect(missing?.reason == .noSuchFile, "\(missing as Any)")
    }

    /// What was put aside may hold slots that were removed, and somebody should look at it.
    @Test func whatWasPutAsideIsTold() throws {
        #expect(KeySlots.problems(path: store.path) == [])
        try store.write(SlotStore().bytes(), to: [1])
        #expect(try store.count() == 20)
        let kept = try #require(store.directory.names.first { $0.contains(".kept-") })
        let problems = KeySlots.problems(path: store.path)
        #expect(problems.count == 1 && problems[0].hasPrefix("\(kept) was put aside"), "\(problems)")
    }

    /// Whoever only looks leaves a file that is missing to those who write.
    @Test func whoLooksRepairsNothing() throws {
        unlink(store.files[1])
        _ = try store.slots().list()
        _ = try store.slots().export()
        _ = try store.slots().pin()
        _ = try IntegrityReport.verify(path: store.path, key: .testing(1))
        var configuration = Configuration(key: try .testing(1))
        configuration.isReadOnly = true
        let reader = Database(path: store.path, configuration: configuration)
        try reader.openVerified()
        reader.close()
        #expect(!FileSystem.exists(store.files[1]))
        #expect(try store.count() == 20)
        #expect(try store.bytes(1) == store.bytes(0))
    }

    /// Who accepts older slots does not make them the newest by opening the store.
    @Test func openingsMakeNothingTheNewest() throws {
        let old = try store.bytes()
        _ = try store.slots().rename("ops", to: "x")
        try store.write(old, to: [0])
        unlink(store.files[1])
        let connection = try StoreOpening(path: store.path, key: .testing(1), acceptsOlderSlots: true).open()
        connection.close()
        #expect(!FileSystem.exists(store.files[1]))
        #expect(try store.refusal(.testing(1)).reason == .olderSlots)
    }

    // MARK: Two data keys

    /// The slots of a re-encryption that was cut off before its swap, beside the old store.
    private func cutOff() throws -> SlotStore {
        let copy = try SlotStore()
        _ = try store.slots().reencrypt(keeping: [safe()]) { [store] state in
            guard state.phase == .copy else { return }
            for (from, to) in zip([store.path] + store.files, [copy.path] + copy.files) {
                unlink(to)
                try FileManager.default.copyItem(atPath: from, toPath: to)
            }
        }
        try #require(copy.text.contains("data-key 2 "))
        return copy
    }

    /// A test settles it, and a data key that nobody needs is listed no longer.
    @Test func aTestForgetsADataKey() throws {
        let copy = try cutOff()
        #expect(try copy.slots().test().label == "ops")
        #expect(try !copy.text.contains("data-key 2 "))
        #expect(try copy.count(2) == 20)
    }

    /// As long as it is not known which store is there after a power failure, none is forgotten.
    @Test(arguments: [false, true]) func noDataKeyIsForgottenBeforeASync(reencrypts: Bool) throws {
        let copy = try cutOff()
        let files = try ([copy.path] + copy.files).map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
        func change() throws {
            if reencrypts {
                _ = try copy.slots().reencrypt(keeping: [safe()])
            } else {
                _ = try copy.slots().rename("ops", to: "x")
            }
        }
        let watch = CallWatch(copy.directory.path)
        try change()
        let calls = watch.endWithAll()
        let sync = try #require(calls.firstIndex(of: "fsync \(copy.directory.path)"), "\(calls)")
        let written = try #require(calls.firstIndex { $0.hasPrefix("rename") }, "\(calls)")
        #expect(sync < written, "\(calls)")
        for (path, bytes) in zip([copy.path] + copy.files, files) { try bytes.write(to: URL(fileURLWithPath: path)) }
        let failing = CallWatch(copy.directory.path, failing: sync...sync)
        let error = #expect(throws: DatabaseError.self) { try change() }
        #expect(failing.end(describing: sync) == calls[sync])
        #expect(error?.message.hasPrefix("The slots list two data keys") == true, "\(error as Any)")
        #expect(try Data(copy.bytes(0)) == files[1] && Data(copy.bytes(1)) == files[2])
    }

    // MARK: What the store has under the name of what it remembers

    /// What a store without slots keeps under that name is not emptied for new ones, and no trigger of it runs.
    @Test func aTriggerOfSomebodyWhoHasNoSlots() throws {
        let path = store.directory.file("other.db")
        let database = try Database.testing(path)
        try database.fill(rows: 20)
        let connection = try #require(database.connection)
        // Without slots the name is free, but not for SQL that the library guards.
        try connection.unguarded { () throws(DatabaseError) in
            for sql in [
                Connection.schemaOfMemory, "INSERT INTO sealdb_slots VALUES ('0a', 7)",
                "CREATE TRIGGER x AFTER DELETE ON sealdb_slots BEGIN DELETE FROM t; END",
            ] {
                try connection.run(sql)
            }
        }
        database.close()
        let error = #expect(throws: DatabaseError.self) {
            try KeySlots(path: path, key: .testing(1)).initialize([.init(.key(.testing(2)), label: "ops")])
        }
        #expect(error?.reason == .alreadyExists, "\(error as Any)")
        let opened = try Database.testing(path)
        #expect(try opened.integers("SELECT count(*) FROM t") == [20])
        #expect(try opened.integers("SELECT generation FROM sealdb_slots") == [7])
        #expect(store.directory.names.filter { $0.hasPrefix("other.db.") } == [])
    }

    /// A trigger would run when the store remembers, so nothing is written.
    @Test func aTriggerOfSomebody() throws {
        let text = try store.slots().export()
        try store.tamper("CREATE TRIGGER x AFTER INSERT ON sealdb_slots BEGIN DELETE FROM t; END")
        let before = try (store.bytes(0), store.bytes(1))
        let changes: [() throws -> Void] = [
            { _ = try store.slots().importSlots(text) }, { _ = try store.slots().reencrypt(keeping: [safe()]) },
            { _ = try store.slots().replace(with: .testing(5)) },
        ]
        for change in changes {
            let error = #expect(throws: DatabaseError.self) { try change() }
            #expect(error?.reason == .alreadyExists, "\(error as Any)")
            #expect(error?.message.hasPrefix("The store has a sealdb_slots of its own") == true, "\(error as Any)")
            #expect(try store.bytes(0) == before.0 && store.bytes(1) == before.1)
        }
        #expect(try store.count() == 20)
    }

    // MARK: Others

    /// Nobody waits while a change is prepared. Whoever was faster is not overwritten.
    @Test func slotsThatChangeMeanwhile() throws {
        var prepared: [Int64] = []
        let others = try store.slots(2)
        let table = try store.slots().change { (table, _) throws(DatabaseError) -> Int in
            prepared.append(table.generation)
            if prepared.count == 1 { _ = try others.rename("safe", to: "other") }
            return table.slots.count
        } body: { (table, _) throws(DatabaseError) in
            table.slots[0].label = "own"
        }
        #expect(prepared == [1, 2])
        #expect(table.slots.map(\.label) == ["own", "other"] && table.generation == 3)
    }

    /// An error says that the slots may be changed if a file was, and leaves no transaction.
    @Test(arguments: [false, true]) func whatAFailedChangeLeaves(hasBegun: Bool) throws {
        let connection = try StoreOpening(path: store.path, key: .testing(1)).open()
        defer { connection.close() }
        let cause = DatabaseError.notAllowed("of the test")
        let error = #expect(throws: DatabaseError.self) {
            try connection.changeSlots(orSay: "They may be changed") { (isWritten) throws(DatabaseError) in
                try connection.run("DELETE FROM t")
                isWritten = hasBegun
                throw cause
            }
        }
        #expect(error?.message.contains("They may be changed") == hasBegun && error?.reason == cause.reason)
        #expect(connection.isAutocommit)
        #expect(try connection.integer("SELECT count(*) FROM t") == 20)
    }

    /// Whoever writes to the store may be changing its slots.
    @Test func nothingIsRepairedWhileSomebodyWrites() throws {
        let writer = try store.open(.testing(1))
        #expect(writer.beginImmediateTransaction())
        unlink(store.files[1])
        let other = try store.open(.testing(2))
        #expect(try other.integers("SELECT count(*) FROM t") == [20])
        other.close()
        #expect(!FileSystem.exists(store.files[1]))
        #expect(writer.rollback())
        writer.close()
        #expect(try store.count() == 20)
        #expect(FileSystem.exists(store.files[1]))
    }

    // MARK: Slots of a store that is replaced

    /// The second names go again if nothing was replaced, and only those of the same files.
    @Test func whatIsUndone() throws {
        let kept = store.directory.file("old.db")
        let first = try ReplacedSlots(of: store.path, keptFor: kept, by: nil, nil)
        try store.directory.write("old.db", [1])
        first.undo()
        #expect(FileSystem.exists(kept + ".slots") && FileSystem.exists(kept + ".slots.2"))
        unlink(kept)
        let whole = try store.bytes()
        unlink(store.files[1])
        try store.write(Array("a stranger's".utf8), to: [1])
        first.undo()
        #expect(!FileSystem.exists(kept + ".slots"))
        #expect(try Array(store.directory.bytes("old.db.slots.2")) == whole)
    }

    /// Slots that come back after a power failure would not open the new store.
    @Test func removedSlotsAreGoneForGood() throws {
        let replaced = try ReplacedSlots(of: store.path, keptFor: store.directory.file("old.db"), by: nil, nil)
        let calls = try calls { try replaced.finish() }
        let removed = try #require(calls.lastIndex { $0.hasPrefix("unlink app.db.slots") }, "\(calls)")
        #expect(calls[removed...].contains("fsync \(store.directory.path)"), "\(calls)")
        #expect(!KeySlots.exist(beside: store.path))
    }

    // MARK: The disk

    /// A journal that comes back after a power failure would make the store forget slots that its files have.
    @Test func journalsAreGoneForGood() throws {
        let plain = try plainStore()
        let changes: [(String, () throws -> Void)] = [
            ("app.db", { _ = try store.slots().rename("ops", to: "x") }),
            ("app.db", { _ = try store.slots().importSlots(store.text) }),
            (
                "plain.db",
                { _ = try KeySlots(path: plain, key: .testing(1)).initialize([.init(.key(.testing(3)), label: "a")]) }
            ),
        ]
        for (name, change) in changes {
            let calls = try calls(change)
            let written = try #require(calls.firstIndex { $0.hasPrefix("rename") || $0.hasPrefix("link") }, "\(calls)")
            let removed = try #require(
                calls[written...].firstIndex { $0.hasPrefix("unlink \(name)-journal") },
                "\(calls)"
            )
            #expect(
                calls[removed...].contains { $0 == "fdatasync \(store.directory.path)" },
                "\(name): \(calls[removed...])"
            )
        }
    }

    /// By the name of its leftover the slots of a creation that is cut off are known to be worth nothing.
    @Test func theLeftoverIsSyncedBeforeItsSlots() throws {
        let path = store.directory.file("new.db")
        let calls = try calls { _ = try KeySlots.create(path: path, [.init(.key(.testing(1)), label: "ops")]) }
        let slots = try #require(
            calls.firstIndex { $0.contains("new.db.slots") && !$0.contains("stat") && !$0.hasPrefix("open") },
            "\(calls)"
        )
        #expect(calls[..<slots].contains("fsync \(store.directory.path)"), "\(calls)")
    }

    // MARK: What is kept

    /// A slot that is replaced stays what it was, but for its key.
    @Test func whatAReplacedSlotIs() throws {
        let before = try store.slots().list().slots
        let ops = KeySlots.NewSlot(.key(try .testing(1)), label: "ops")
        let after = try store.slots(2).reencrypt(replacingKeyBy: .testing(5), keeping: [ops]).slots
        #expect(after.map(\.label) == before.map(\.label) && after.map(\.isRecovery) == before.map(\.isRecovery))
        #expect(try store.slots(5).replace(with: .testing(6)).slots.map(\.isRecovery) == [false, true])
        #expect(try store.count(6) == 20)
    }

    /// The cost of a passphrase is what its slot has, whatever is usual for new ones.
    @Test func thePassphraseOfAKeptSlot() throws {
        _ = try store.slots().add(.quick("words", label: "words"))
        let before = try store.slots().list().slots.map(\.derivation)
        let words = KeySlots.NewSlot(.key(try .passphrase("words")), label: "words")
        #expect(try store.slots().reencrypt(keeping: [safe(), words]).slots.map(\.derivation) == before)
        #expect(try store.count(.passphrase("words")) == 20)
    }

    /// Whoever imports a text opens the store by it from then on, with the key that they give.
    @Test func anImportTakesNoKeyThatIsGone() throws {
        let text = try store.slots().export()
        let path = store.directory.file("ring")
        var ring = try KeyRing(activeID: "ops", key: .testing(1))
        try ring.add(.testing(2), id: "safe")
        try ring.write(toNewFile: path)
        let slots = KeySlots(path: store.path, key: try KeyRing(contentsOfFile: path).activeKey())
        try KeyRing.update(file: path) { ring throws(DatabaseError) in
            try ring.activate("safe")
            try ring.remove("ops")
        }
        let before = try store.bytes()
        let error = #expect(throws: DatabaseError.self) { try slots.importSlots(text) }
        #expect(error?.message.contains(path) == true, "\(error as Any)")
        #expect(try store.bytes() == before)
    }

    // MARK: Plans

    @Test func plansOfWhatCannotBe() throws {
        func plan(to new: UInt8 = 5, suffix: String? = nil, reencrypts: Bool) throws -> DatabaseError? {
            let rotation = KeyRotation(
                path: store.path,
                from: try .testing(1),
                to: try .testing(new),
                oldFileSuffix: suffix,
                reencryption: reencrypts ? .init(keeping: [try safe()]) : nil
            )
            return #expect(throws: DatabaseError.self) { try rotation.plan() }
        }
        for reencrypts in [false, true] {
            #expect(try plan(suffix: ".old", reencrypts: reencrypts)?.message.contains("replaces no file") == true)
            #expect(try plan(to: 1, reencrypts: reencrypts) == KeyRotation.sameKey)
        }
        #expect(try store.slots().list().generation == 1)
    }

    // MARK: Leftovers

    enum Stranger: CaseIterable { case changed, ofAnotherStore, linked }

    /// Slots whose store was never named are worth nothing; what only looks like these stays.
    @Test(arguments: Stranger.allCases) func slotsThatMayBeNeeded(stranger: Stranger) throws {
        let files = SlotFiles(store: store.directory.file("new.db"))
        let leftover = try TemporaryFile.path(beside: files.store, mark: SlotFiles.markOfNew)
        try FileManager.default.copyItem(atPath: store.path, toPath: leftover)
        switch stranger {
        case .changed: _ = try store.slots().rename("ops", to: "x")
        case .ofAnotherStore:
            try FileManager.default.removeItem(atPath: leftover)
            let other = try SlotStore()
            try FileManager.default.copyItem(atPath: other.path, toPath: leftover)
        case .linked: #expect(link(leftover, store.directory.file("elsewhere.db")) == 0)
        }
        for name in ["new.db.slots", "new.db.slots.2"] { try store.directory.write(name, store.bytes()) }
        files.removeAbandoned()
        #expect(FileSystem.exists(files.first) && FileSystem.exists(files.second))
    }
}
