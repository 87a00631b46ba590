import Foundation
import Testing

@testable import SealedDB

/// What the library asks of directories and of the files beside a store.
@Suite(.hangLimit)
struct FilePlaceTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func isOpen(_ path: String) throws -> Bool {
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return descriptors.contains {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
        }
    }

    @Test func aDirectoryThatWasReadIsClosed() throws {
        let path = try #require(FileSystem.resolve(directory.file(".")))
        let held = open(path, O_RDONLY)
        #expect(try isOpen(path))
        #expect(close(held) == 0)
        try Data().write(to: URL(fileURLWithPath: directory.file("a")))
        #expect(FileSystem.names(in: path) == ["a"])
        #expect(try !isOpen(path))
    }

    /// A rotation may be killed while the old file has two names. Anything else with two names is refused.
    @Test func theSecondNameThatAKilledRotationLeaves() throws {
        let store = directory.file("db")
        try Data(count: 512).write(to: URL(fileURLWithPath: store))
        try StoreName.requireOnly(store)
        #expect(link(store, store + ".old") == 0)
        try StoreName.requireOnly(store)
        #expect(rename(store + ".old", directory.file("twin")) == 0)
        let error = #expect(throws: DatabaseError.self) { try StoreName.requireOnly(store) }
        #expect(error?.reason == .hardLinked)
    }

    /// In a directory where strangers may make files, the index of the log is made beforehand, for the store's owner.
    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func theIndexBelongsToTheOwnerOfTheStore() throws {
        let store = directory.file("db")
        try Data(count: 512).write(to: URL(fileURLWithPath: store))
        #expect(chown(store, 65534, 65534) == 0)
        #expect(chmod(directory.file("."), 0o1777) == 0)
        #expect(JournalName.isIndexSafe(ofStore: store))
        var status = stat()
        #expect(lstat(store + "-shm", &status) == 0)
        #expect(status.st_uid == 65534 && status.st_gid == 65534)
    }

    /// Where only owners may replace files, and only a group may make them, its members may write to the store, or not.
    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func journalsInADirectoryOfAGroup() throws {
        let (store, journal) = (directory.file("db"), directory.file("db-journal"))
        try Data(count: 512).write(to: URL(fileURLWithPath: store))
        try Data(count: 512).write(to: URL(fileURLWithPath: journal))
        #expect(chmod(store, 0o660) == 0 && chmod(journal, 0o660) == 0)
        // Somebody who does not own the store made it.
        #expect(chown(journal, 1234, 4321) == 0)
        func isOfStranger(directory mode: mode_t, group: gid_t, storeMode: mode_t = 0o660) -> Bool {
            chown(directory.path, 0, 4321)
            chown(store, 65534, group)
            chmod(directory.path, mode)
            chmod(store, storeMode)
            return JournalName.isOfStranger(journal)
        }
        #expect(isOfStranger(directory: 0o1777, group: 4321))
        #expect(!isOfStranger(directory: 0o0777, group: 4321), "anybody may replace anything there")
        #expect(!isOfStranger(directory: 0o1770, group: 4321), "the group may write to the store")
        #expect(isOfStranger(directory: 0o1770, group: 5432))
        #expect(!isOfStranger(directory: 0o1750, group: 5432), "the group may make nothing")
        // The mode of the journal allows no more than that of the store.
        chmod(journal, 0o640)
        #expect(isOfStranger(directory: 0o1770, group: 4321, storeMode: 0o640))
        // Those of the owner, and of the store's owner, are trusted.
        for user in [geteuid(), 65534] as [uid_t] {
            chown(journal, user, 4321)
            #expect(!isOfStranger(directory: 0o1777, group: 5432))
        }
        chmod(journal, 0o660)
        #expect(isOfStranger(directory: 0o1777, group: 5432, storeMode: 0o640), "others may write to it")
    }

    /// SQLite would make it later, and a stranger before SQLite.
    @Test func theIndexIsMadeWhereStrangersMakeFiles() throws {
        let (store, index) = (directory.file("db"), directory.file("db-shm"))
        #expect(chmod(directory.path, 0o1777) == 0)
        #expect(!JournalName.isIndexSafe(ofStore: store), "without a store its owner is not known")
        #expect(directory.names == [])
        try directory.write("db", [UInt8](repeating: 0, count: 512), mode: 0o700)
        #expect(JournalName.isIndexSafe(ofStore: store))
        let status = try FileSystem.status(index)
        #expect(status.st_size == 0 && status.st_mode & 0o777 == 0o700)
        #expect(filesOpen(below: directory) == [])
        try directory.write("db-shm", [1])
        #expect(JournalName.isIndexSafe(ofStore: store))
        #expect(try directory.bytes("db-shm") == Data([1]))
        unlink(index)
        #expect(chmod(directory.path, 0o700) == 0)
        #expect(JournalName.isIndexSafe(ofStore: store))
        #expect(directory.names == ["db"], "SQLite makes it here")
    }

    /// In any directory: a link would lead SQLite to another file, and a pipe would keep it waiting.
    @Test func whatIsNoFileIsAStrangers() throws {
        #expect(!JournalName.isOfStranger(directory.file("db-wal")), "there is none")
        #expect(symlink("elsewhere", directory.file("db-wal")) == 0)
        #expect(mkfifo(directory.file("db-shm"), 0o600) == 0)
        for name in ["db-wal", "db-shm"] { #expect(JournalName.isOfStranger(directory.file(name)), "\(name)") }
    }

    /// Key slots of the store would be looked for in it.
    @Test(arguments: ["db.slots", "db.slots.2"]) func namesOfKeySlots(name: String) throws {
        let path = directory.file(name)
        try StoreName.requireNoSlots(path)
        try directory.write("db", [UInt8](repeating: 0, count: 100))
        try StoreName.requireNoSlots(path)
        try directory.write("db", [UInt8](repeating: 0, count: 1024))
        let error = #expect(throws: DatabaseError.self) { try StoreName.requireNoSlots(path) }
        #expect(error?.reason == .cannotCreate)
        let start = "\(path) is the name of a file that belongs to \(directory.file("db")):"
        #expect(error?.message.hasPrefix(start) == true, "\(String(describing: error))")
        try StoreName.requireNoSlots(directory.file("db.slots.3"))
    }

    /// What cannot be examined may be a store.
    @Test func namesBesideWhatCannotBeExamined() throws {
        for code in [ENOENT, ENOTDIR, EACCES, EIO] {
            let isMissing = code == ENOENT || code == ENOTDIR
            let slots = try FailedCall("lstat db", code, prepare: { _ = try $0.write("db", [1]) }) {
                try StoreName.requireNoSlots($0.file("db.slots"))
            }
            #expect(slots.error?.reason == (isMissing ? nil : .cannotCreate), "\(code)")
            let log = try FailedCall("lstat db", code, prepare: { _ = try $0.write("db", [1]) }) {
                try StoreName.requireOwn($0.file("db-wal"), reason: .notAllowed)
            }
            #expect(log.error?.reason == (isMissing ? nil : .notAllowed), "\(code)")
        }
    }

    /// Whether somebody else has the store by another name is not left open.
    @Test(arguments: ["statx", "stat"]) func aStoreWhoseNamesCannotBeCounted(call: String) throws {
        let failed = try FailedCall(call, prepare: { _ = try $0.write("db", [UInt8](repeating: 0, count: 512)) }) {
            try StoreName.requireOnly($0.file("db"))
        }
        #expect(failed.error?.reason == .ioError)
        #expect(failed.error?.message.contains("Cannot examine \(failed.directory.file("db"))") == true)
    }

    @Test func namesOfSuperJournals() {
        #expect(JournalName.isOfSuperJournal("/d/db-mj1A2B3C9D4"))
        for name in ["/d/db-mj1A2B3C8D4", "/d/db-mk1A2B3C9D4", "/d/db-mj1A2B3C9DG", "-mj", "/d/db"] {
            #expect(!JournalName.isOfSuperJournal(name), "\(name)")
        }
    }
}
