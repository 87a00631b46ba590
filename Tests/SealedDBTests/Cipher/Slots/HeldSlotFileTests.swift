import Foundation
import Testing

@testable import SealedDB

/// Somebody puts other files in the place of files of slots while these are made: what they hold is not used, and what was
/// somebody else's is not lost.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct HeldSlotFileTests {
    private let store: SlotStore
    private let opened: OpenedSlots
    private let outside: TemporaryDirectory

    init() throws {
        store = try SlotStore()
        outside = try TemporaryDirectory()
        let connection = try Connection(path: store.path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        opened = try SlotFiles(store: store.path).open(with: .testing(1), salt: connection.mainFileHeader())
    }

    private func files(_ directory: TemporaryDirectory, _ name: String = "app.db") -> SlotFiles {
        SlotFiles(store: directory.file(name))
    }

    private func prepare(_ directory: TemporaryDirectory) throws { try directory.write("app.db", [1]) }

    private func create(_ directory: TemporaryDirectory) throws {
        let new = NewSlotFiles(files(directory))
        do throws(DatabaseError) {
            try new.write(opened.sealed, attributesFrom: directory.file("app.db"))
        } catch {
            throw new.discard(error)
        }
    }

    /// The next generation in the place of these slots.
    private func change(_ directory: TemporaryDirectory) throws {
        var table = opened.table
        table.generation += 1
        let next = try SealedSlots(table, keys: [opened.dataKey.number: opened.secret])
        var hasBegun = false
        try files(directory).write(next, of: opened.owner, hasBegun: &hasBegun)
    }

    private func prepareSlots(_ directory: TemporaryDirectory) throws {
        try prepare(directory)
        for name in ["app.db.slots", "app.db.slots.2"] { try directory.write(name, opened.sealed.bytes) }
    }

    /// Puts another file in the place of the one that is being made.
    private func exchange(in directory: String) throws {
        let own = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { descriptor in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        }
        let file = try #require(own.first { ("/" + $0).hasPrefix(directory + "/.") && $0.contains(".sealdb-") })
        let other = try outside.write("other", Array("somebody else's".utf8))
        try #require(rename(other, "/" + file) == 0)
    }

    private func error(_ result: Result<Void, any Error>) -> DatabaseError? {
        #expect(throws: DatabaseError.self) { try result.get() }
    }

    // MARK: Exchanged

    @Test func aNewFileThatIsExchangedWhileItIsWritten() throws {
        let (result, directory) = try HeldOperation.run(
            "write .app.db.slots.sealdb-*",
            prepare: prepare,
            create,
            meanwhile: exchange
        )
        let error = error(result)
        #expect(error?.message.contains("does not hold what was written") == true, "\(error as Any)")
        #expect(!FileSystem.exists(files(directory).first) && !FileSystem.exists(files(directory).second))
    }

    @Test func aNewFileThatIsExchangedBeforeItHasItsName() throws {
        let (result, directory) = try HeldOperation.run(
            "pread .app.db.slots.sealdb-*",
            prepare: prepare,
            create,
            meanwhile: exchange
        )
        let error = error(result)
        #expect(error?.reason == .unverified, "\(error as Any)")
        #expect(error?.message.contains("put a file in the place of the new") == true, "\(error as Any)")
        #expect(!FileSystem.exists(files(directory).second))
    }

    @Test func aChangedFileThatIsExchanged() throws {
        let (result, directory) = try HeldOperation.run(
            "pread .app.db.slots.sealdb-*",
            prepare: prepareSlots,
            change,
            meanwhile: exchange
        )
        let error = error(result)
        #expect(error?.reason == .unverified, "\(error as Any)")
        #expect(error?.message.contains("put a file in the place of the new") == true, "\(error as Any)")
        // The other one is as it was.
        #expect(try Array(directory.bytes("app.db.slots.2")) == opened.sealed.bytes)
    }

    // MARK: What is there already

    /// It is not read, and nothing takes its place.
    @Test(arguments: [S_IFIFO, S_IFDIR]) func whatIsNoFileIsNotTaken(kind: mode_t) throws {
        let directory = try TemporaryDirectory()
        try prepare(directory)
        let path = files(directory).first
        try #require(kind == S_IFIFO ? mkfifo(path, 0o600) == 0 : mkdir(path, 0o700) == 0)
        let new = NewSlotFiles(files(directory))
        let error = #expect(throws: DatabaseError.self) {
            try new.write(opened.sealed, attributesFrom: directory.file("app.db"), adoptsSame: true)
        }
        #expect(error?.reason == .alreadyExists, "\(error as Any)")
        #expect(directory.names == ["app.db", "app.db.slots"])
    }

    /// Files that are gone need not be removed by anybody.
    @Test func newFilesThatAreGone() throws {
        let directory = try TemporaryDirectory()
        try prepare(directory)
        let new = NewSlotFiles(files(directory))
        try new.write(opened.sealed, attributesFrom: directory.file("app.db"))
        #expect(throws: Never.self) { try new.requireInPlace() }
        for path in [files(directory).first, files(directory).second] { unlink(path) }
        let failure = DatabaseError.notAllowed("of the test")
        #expect(new.discard(failure) == failure)
    }

    private static let strangers = Array("a stranger's\n".utf8)

    /// Only the very same file has its second name already.
    @Test func anotherFileWithTheNameForTheOldSlots() throws {
        let directory = try TemporaryDirectory()
        try prepare(directory)
        try directory.write("app.db.slots", Self.strangers)
        try directory.write("old.db.slots", Array("something else\n".utf8))
        var hasBegun = false
        let kept = files(directory, "old.db")
        try files(directory).write(opened.sealed, of: opened.owner, keptAs: kept, hasBegun: &hasBegun)
        let aside = directory.names.filter { $0.hasPrefix("app.db.slots.kept-") }
        #expect(aside.count == 1)
        #expect(try aside.map { Array(try directory.bytes($0)) } == [Self.strangers])
        #expect(try Array(directory.bytes("app.db.slots")) == opened.sealed.bytes)
        // With the second name, no third one is needed.
        try directory.write("app.db.slots", Self.strangers)
        unlink(directory.file("old.db.slots"))
        try #require(link(directory.file("app.db.slots"), directory.file("old.db.slots")) == 0)
        try files(directory).write(opened.sealed, of: opened.owner, keptAs: kept, hasBegun: &hasBegun)
        #expect(directory.names.filter { $0.hasPrefix("app.db.slots.kept-") } == aside)
        #expect(try Array(directory.bytes("old.db.slots")) == Self.strangers)
    }

    /// A file system without second names, where the first one cannot be changed either.
    @Test func somebodyElsesFileThatCannotBePutAside() throws {
        func write(_ directory: TemporaryDirectory) throws {
            var hasBegun = false
            try files(directory).write(opened.sealed, of: opened.owner, hasBegun: &hasBegun)
        }
        let model = try TemporaryDirectory()
        let directory = try TemporaryDirectory()
        for directory in [model, directory] {
            try prepare(directory)
            try directory.write("app.db.slots", Self.strangers)
        }
        let count = CallWatch(model.path)
        try write(model)
        let calls = count.endWithAll()
        let index = try #require(calls.firstIndex { $0.hasPrefix("link app.db.slots.kept-") }, "\(calls)")
        let watch = CallWatch(directory.path, failing: index...index + 1, code: EPERM)
        let result = Result { try write(directory) }
        #expect(watch.end(describing: index + 1)?.hasPrefix("renameat2 app.db.slots.kept-") == true)
        #expect(error(result)?.message.contains("could not be kept as") == true)
        #expect(directory.names == ["app.db", "app.db.slots"])
        #expect(try Array(directory.bytes("app.db.slots")) == Self.strangers)
        // One of both is enough.
        let other = CallWatch(directory.path, failing: index...index, code: EPERM)
        let second = Result { try write(directory) }
        other.end()
        #expect(throws: Never.self) { try second.get() }
        #expect(directory.names.contains { $0.hasPrefix("app.db.slots.kept-") })
    }

    // MARK: Stores whose place is taken

    /// The old store had one file of slots only.
    @Test func theOldSlotsGoWithTheirStore() throws {
        let directory = try TemporaryDirectory()
        try prepare(directory)
        try directory.write("app.db.slots", Self.strangers)
        let replaced = try ReplacedSlots(of: directory.file("app.db"), keptFor: directory.file("old.db"), by: nil, nil)
        try replaced.finish()
        #expect(directory.names == ["app.db", "old.db.slots"])
        #expect(try Array(directory.bytes("old.db.slots")) == Self.strangers)
    }

    @Test func oldSlotsThatStay() throws {
        let call = try FailedCall(
            "unlink app.db.slots",
            EPERM,
            prepare: { directory in
                try prepare(directory)
                try directory.write("app.db.slots", Self.strangers)
            },
            { directory in
                let (target, kept) = (directory.file("app.db"), directory.file("old.db"))
                try ReplacedSlots(of: target, keptFor: kept, by: nil, nil).finish()
            }
        )
        #expect(call.error?.message.contains("may not be its own yet") == true, "\(call.error as Any)")
        #expect(call.directory.names == ["app.db", "app.db.slots", "old.db.slots"])
    }

    // MARK: Reading

    /// Whoever may put files there could have derivations made and programs run.
    @Test(.enabled(if: geteuid() == 0, "only root may give files away")) func slotsOfAnotherUser() throws {
        try #require(chown(store.files[0], 4711, 4711) == 0)
        #expect(try store.count() == 20)
        let copies = SlotFiles(store: store.path).read()
        #expect(copies.allSatisfy { $0.slots != nil })
        for file in store.files { try #require(chown(file, 4711, 4711) == 0) }
        #expect(SlotFiles(store: store.path).read().allSatisfy { $0.slots == nil && !$0.isMissing })
        let error = try store.refusal(.testing(1))
        #expect(error.reason == .malformedSlots && error.message.contains("belongs neither to the owner"), "\(error)")
        // They may be those of the owner of the store.
        try #require(chown(store.path, 4711, 4711) == 0)
        #expect(SlotFiles(store: store.path).read().allSatisfy { $0.slots != nil })
    }

    /// There is nothing below a file.
    @Test func aPathBelowAFile() throws {
        let path = store.path + "/db"
        #expect(SlotFiles(store: path).read().map(\.isMissing) == [true, true])
        #expect(try StoreOpening(path: path, key: .testing(1)).openedSlots(.testing(1), header: []) == nil)
    }

    /// The connection for the salt is closed, too.
    @Test func aStoreThatCannotBeReadGetsNoSlots() throws {
        let text = try store.slots().export()
        let call = try FailedCall(
            "pread app.db",
            prepare: { directory in
                for file in [store.path] + store.files {
                    let copy = directory.file(FileSystem.name(of: file))
                    try FileManager.default.copyItem(atPath: file, toPath: copy)
                }
            },
            { directory in
                _ = try KeySlots(path: directory.file("app.db"), key: .testing(1)).importSlots(text)
            }
        )
        #expect(call.error != nil)
        #expect(call.open == [])
    }
}
