import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// The two files of slots, call by call: at each moment one of them is whole, and what is told of them is so.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotFileCallTests {
    private let store: SlotStore
    private let opened: OpenedSlots

    init() throws {
        store = try SlotStore()
        let connection = try Connection(path: store.path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        opened = try SlotFiles(store: store.path).open(with: .testing(1), salt: connection.mainFileHeader())
    }

    /// The same slots in another generation.
    private func sealed(_ generation: Int64) throws -> SealedSlots {
        var table = opened.table
        table.generation = generation
        return try SealedSlots(table, keys: [opened.dataKey.number: opened.secret])
    }

    private func outcome(_ body: () throws -> Void) -> DatabaseError? {
        do {
            try body()
            return nil
        } catch {
            return error as? DatabaseError
        }
    }

    private func calls(_ body: () throws -> Void) throws -> [String] {
        let watch = CallWatch(store.directory.path)
        do {
            try body()
        } catch {
            watch.end()
            throw error
        }
        return watch.endWithAll()
    }

    private func failing(_ index: Int, _ code: Int32 = EIO, _ body: () throws -> Void) -> DatabaseError? {
        let watch = CallWatch(store.directory.path, failing: index...index, code: code)
        defer { watch.end() }
        return outcome(body)
    }

    private var openFiles: [String] { filesOpen(below: store.directory).filter { $0.contains(".slots") } }

    private func kind(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    // MARK: Changes

    @Test func eachCallOfAChangeFails() throws {
        let (old, next) = (try store.bytes(), try sealed(2))
        var hasBegun = false
        func change() throws {
            hasBegun = false
            try opened.files.write(next, of: opened.owner, hasBegun: &hasBegun)
        }
        let counted = try calls(change)
        #expect(try store.bytes(0) == next.bytes && store.bytes(1) == next.bytes)
        let names = store.directory.names
        var (before, between) = (0, 0)
        for (index, call) in counted.enumerated() {
            try store.write(old)
            let error = failing(index, EIO, change)
            let found = (try store.bytes(0), try store.bytes(1))
            let comment: Comment = "\(call): \(error.map { "\($0)" } ?? "done")"
            if error == nil {
                #expect(found.0 == next.bytes && found.1 == next.bytes, comment)
            } else if !hasBegun {
                before += 1
                #expect(found.0 == old && found.1 == old, comment)
            } else if error?.message.contains("is not known, above all after a power failure") == true {
                #expect([old, next.bytes].contains(found.0) && found.1 == old, comment)
            } else {
                between += 1
                #expect(error?.message.contains("has the change (generation 2), but") == true, comment)
                #expect(found.0 == next.bytes && [old, next.bytes].contains(found.1), comment)
            }
            #expect(openFiles == [], comment)
            #expect(store.directory.names == names, comment)
        }
        #expect(before > 3 && between > 3, "\(counted)")
    }

    /// A signal that the process handles, and a disk that gives back another byte than was written.
    @Test func readingBackAndSignals() throws {
        let (old, next) = (try store.bytes(), try sealed(2))
        func change() throws {
            var hasBegun = false
            try opened.files.write(next, of: opened.owner, hasBegun: &hasBegun)
        }
        let counted = try calls(change)
        for (index, call) in counted.enumerated() where call.hasPrefix("pread ") || call.hasPrefix("write ") {
            try store.write(old)
            #expect(failing(index, EINTR, change) == nil, "\(call)")
            #expect(try store.bytes(0) == next.bytes && store.bytes(1) == next.bytes, "\(call)")
        }
        let index = try #require(counted.firstIndex(of: "pread .app.db.slots.sealdb-*"), "\(counted)")
        try store.write(old)
        // See FailingCalls.h.
        let error = failing(index, -1, change)
        #expect(error?.reason == .unverified && error?.message.contains("what was written") == true, "\(error as Any)")
        #expect(try store.bytes(0) == old && store.bytes(1) == old)
        #expect(!store.directory.names.contains { $0.contains(".sealdb-") })
    }

    /// Whether what cannot be read is older slots, or a later version's, is not known: it is neither used nor replaced.
    @Test func whatCannotBeReadIsLeftAlone() throws {
        unlink(store.files[1])
        try #require(mknod(store.files[1], S_IFSOCK | 0o600, 0) == 0)
        #expect(try store.count() == 20)
        #expect(kind(store.files[1]) == S_IFSOCK)
        let error = try #require(throws: DatabaseError.self) { try self.store.slots().rename("ops", to: "x") }
        #expect(error.message.contains("has the change (generation 2)"), "\(error)")
        #expect(error.message.contains("is not known, so it was left alone"), "\(error)")
        #expect(kind(store.files[1]) == S_IFSOCK)
        #expect(!store.directory.names.contains { $0.contains(".sealdb-") || $0.contains(".kept-") })
        unlink(store.files[1])
        #expect(try store.count() == 20)
        #expect(try store.slots().list().slots.map(\.label) == ["x", "safe"])
        #expect(try store.bytes(0) == store.bytes(1))
    }

    /// What a link leads to is somebody else's.
    @Test func aLinkIsReplaced() throws {
        let whole = try store.bytes()
        let elsewhere = store.directory.file("elsewhere")
        #expect(rename(store.files[0], elsewhere) == 0 && symlink(elsewhere, store.files[0]) == 0)
        #expect(try store.count() == 20)
        #expect(kind(store.files[0]) == S_IFREG)
        #expect(try store.bytes() == whole)
        #expect(try Array(store.directory.bytes("elsewhere")) == whole)
    }

    /// Who repairs the slots at an opening leaves the connection as any other.
    @Test func aConnectionThatHasRepaired() throws {
        unlink(store.files[1])
        let connection = try StoreOpening(path: store.path, key: .testing(1), busyTimeout: 7).open()
        defer { connection.close() }
        #expect(try store.bytes(1) == store.bytes(0))
        #expect(connection.isAutocommit)
        #expect(try connection.integer("PRAGMA busy_timeout") == 7000)
    }

    // MARK: New files

    @Test func eachCallOfACreationFails() throws {
        let target = SlotFiles(store: store.directory.file("new.db"))
        func made() -> [String] { store.directory.names.filter { $0.contains("new.db") } }
        func create(_ new: NewSlotFiles) throws {
            try new.write(self.opened.sealed, attributesFrom: self.store.path)
        }
        func remove() { for path in [target.first, target.second] { unlink(path) } }
        let counted = try calls { try create(NewSlotFiles(target)) }
        #expect(made() == ["new.db.slots", "new.db.slots.2"])
        remove()
        var failures = 0
        for (index, call) in counted.enumerated() {
            do {
                let new = NewSlotFiles(target)
                if let error = failing(index, EIO, { try create(new) }) {
                    failures += 1
                    #expect(new.discard(error) == error, "\(call)")
                    #expect(made() == [], "\(call): \(error)")
                } else {
                    #expect(made() == ["new.db.slots", "new.db.slots.2"], "\(call)")
                    remove()
                }
            }
            #expect(openFiles == [], "\(call)")
        }
        #expect(failures > 8, "\(counted)")
    }

    /// Slots that nothing opens stay only if that is told.
    @Test func slotsThatCannotBeRemovedAreNamed() throws {
        let target = SlotFiles(store: store.directory.file("new.db"))
        let failure = DatabaseError.notAllowed("of the test")
        func made() throws -> NewSlotFiles {
            for path in [target.first, target.second] { unlink(path) }
            let new = NewSlotFiles(target)
            try new.write(opened.sealed, attributesFrom: store.path)
            return new
        }
        let first = try made()
        let counted = try calls { _ = first.discard(failure) }
        let removals = counted.indices.filter { counted[$0].hasPrefix("unlink new.db.slots") }
        #expect(removals.count == 2, "\(counted)")
        // The last one that was made goes first.
        for (index, (path, other)) in zip(removals, [(target.second, target.first), (target.first, target.second)]) {
            let new = try made()
            let watch = CallWatch(store.directory.path, failing: index...index, code: EACCES)
            let told = new.discard(failure)
            watch.end()
            #expect(told.message.contains("remove \(path):"), "\(told)")
            #expect(kind(path) == S_IFREG && kind(other) == nil)
        }
        let last = try made()
        let watch = CallWatch(store.directory.path, failing: 0...Int.max, code: EACCES)
        let told = last.discard(failure)
        watch.end()
        #expect(told.message.contains("remove \(target.second), \(target.first):"), "\(told)")
        #expect(told.reason == failure.reason)
    }

    /// Slots that were there before are as good as new ones, and stay whatever becomes of the rest.
    @Test func slotsThatWereThere() throws {
        let target = SlotFiles(store: store.directory.file("new.db"))
        try Data(opened.sealed.bytes).write(to: URL(fileURLWithPath: target.first))
        // Another process is about to make them, and may discard them.
        let descriptor = sealeddb_open(target.first, O_RDWR, 0)
        try #require(descriptor >= 0 && sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0)
        let busy = outcome {
            try NewSlotFiles(target).write(opened.sealed, attributesFrom: store.path, adoptsSame: true)
        }
        #expect(busy?.reason == .busy)
        sealeddb_unlock_and_close(descriptor)
        let new = NewSlotFiles(target)
        try new.write(opened.sealed, attributesFrom: store.path, adoptsSame: true)
        #expect(kind(target.second) == S_IFREG)
        _ = new.discard(.notAllowed("of the test"))
        #expect(kind(target.first) == S_IFREG && kind(target.second) == nil)
        let strict = outcome { try NewSlotFiles(target).write(opened.sealed, attributesFrom: store.path) }
        #expect(strict?.reason == .alreadyExists)
        let other = try sealed(2)
        let changed = outcome { try NewSlotFiles(target).write(other, attributesFrom: store.path, adoptsSame: true) }
        #expect(changed?.reason == .alreadyExists)
        #expect(try Array(store.directory.bytes("new.db.slots")) == opened.sealed.bytes)
    }

    /// A leftover that somebody has locked is one that is being made.
    @Test func whatIsBeingMadeIsNotRemoved() throws {
        let leftover = try TemporaryFile.path(beside: store.files[0])
        try Data(opened.sealed.bytes).write(to: URL(fileURLWithPath: leftover))
        let descriptor = sealeddb_open(leftover, O_RDWR, 0)
        try #require(descriptor >= 0 && sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0)
        SlotFiles.removeLeftovers(of: store.files[0])
        #expect(kind(leftover) == S_IFREG)
        sealeddb_unlock_and_close(descriptor)
        SlotFiles.removeLeftovers(of: store.files[0])
        #expect(kind(leftover) == nil)
    }

    // MARK: Slots of a store that is replaced

    @Test func slotsThatCannotBeKept() throws {
        let kept = store.directory.file("old.db")
        try Data("a stranger's".utf8).write(to: URL(fileURLWithPath: kept + ".slots.2"))
        let error = outcome { _ = try ReplacedSlots(of: store.path, keptFor: kept, by: nil, nil) }
        #expect(error?.message.contains("Cannot keep \(store.files[1]) as \(kept).slots.2") == true, "\(error as Any)")
        // Nothing was replaced, so nothing is kept.
        #expect(kind(kept + ".slots") == nil)
        #expect(try store.directory.bytes("old.db.slots.2") == Data("a stranger's".utf8))
        #expect(try store.count() == 20)
    }

    @Test func slotsThatSomebodyReplacedMeanwhile() throws {
        let whole = try store.bytes()
        let kept = store.directory.file("old.db")
        let replaced = try ReplacedSlots(of: store.path, keptFor: kept, by: nil, nil)
        unlink(store.files[1])
        try store.write(Array("a stranger's".utf8), to: [1])
        let error = outcome { try replaced.finish() }
        #expect(error?.reason == .alreadyExists && error?.message.contains("\(kept) with its slots") == true)
        #expect(try store.bytes(1) == Array("a stranger's".utf8))
        for name in ["old.db.slots", "old.db.slots.2"] { #expect(try Array(store.directory.bytes(name)) == whole) }
    }

    // MARK: Generations

    /// After the last one, nothing that would be older than itself is written.
    @Test func theLastGeneration() throws {
        try store.write(sealed(SlotTable.maximumGeneration - 1).bytes)
        #expect(try store.slots().rename("ops", to: "x").generation == SlotTable.maximumGeneration)
        let last = try store.bytes()
        let error = try #require(throws: DatabaseError.self) { try self.store.slots().rename("x", to: "y") }
        #expect(error.reason == .notAllowed && error.message.contains("changed too often"), "\(error)")
        #expect(try store.bytes(0) == last && store.bytes(1) == last && store.count() == 20)
    }

    /// A test changes nothing, unless there is something to settle.
    @Test func aTestOfWhatIsWhole() throws {
        let whole = try store.bytes()
        #expect(try store.slots(2).test().label == "safe")
        #expect(try store.bytes(0) == whole && store.bytes(1) == whole)
        // As a process leaves it that is killed before the store remembers.
        try store.tamper("DELETE FROM sealdb_slots")
        #expect(try store.slots().test().report.generation == 2)
        let database = try store.open(.testing(1))
        #expect(try database.integers("SELECT generation FROM sealdb_slots") == [2])
        database.close()
    }

    /// Without a key the newer of two files counts, whichever it is.
    @Test(arguments: [0, 1]) func theNewerFileIsListed(number: Int) throws {
        try store.write(sealed(5).bytes, to: [number])
        #expect(try KeySlots.unverifiedList(path: store.path).generation == 5)
        let problems = KeySlots.problems(path: store.path)
        #expect(problems.count == 1 && problems[0].contains("differ"), "\(problems)")
    }

    /// What is imported becomes the newest, also where the store remembers less than its files say.
    @Test func importedSlotsAreTheNewest() throws {
        let text = try store.slots().export()
        _ = try store.slots().rename("ops", to: "x")
        _ = try store.slots().rename("x", to: "y")
        let newest = try store.bytes()
        try store.tamper("UPDATE sealdb_slots SET generation = 1")
        let error = try #require(throws: DatabaseError.self) { try self.store.slots().importSlots(text) }
        #expect(error.reason == .olderSlots && error.message.contains("has had slots of generation 3"), "\(error)")
        #expect(try store.bytes(0) == newest && store.bytes(1) == newest)
        #expect(try store.slots(1, acceptsOlder: true).importSlots(text).generation == 4)
        try store.write(newest)
        #expect(try store.refusal(.testing(1)).reason == .olderSlots)
    }
}
