import Foundation
import Testing

@testable import SealedDB

/// Whose log a process uses, as its locks and descriptors tell: those of this process itself, which other tests have too.
@Suite(.hangLimit)
final class LogUseTests {
    private let directory: TemporaryDirectory
    private var descriptors: [Int32] = []

    init() throws {
        directory = try TemporaryDirectory()
        try #require(mkdir(directory.file("elsewhere"), 0o700) == 0)
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    private func id(_ name: String) throws -> String {
        LockTable.name(of: try FileSystem.status(directory.file(name)), at: directory.file(name))
    }

    /// Opens a file, and locks it where SQLite locks a store or an index.
    /// - Returns: how the table of locks names it.
    private func use(_ name: String, index: Bool = false, locks: Bool = true) throws -> String {
        let descriptor = open(directory.file(name), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        descriptors.append(descriptor)
        guard locks else { return try id(name) }
        var lock = flock(
            l_type: Int16(F_RDLCK),
            l_whence: Int16(SEEK_SET),
            l_start: index ? 124 : 0x4000_0002,
            l_len: 1,
            l_pid: 0
        )
        try #require(fcntl(descriptor, F_SETLK, &lock) == 0)
        return try id(name)
    }

    /// What is told of this process, for the store `db`.
    private func logUse(index: String) throws -> FileUsers.LogUse {
        let place = FileUsers.Place(path: directory.file("db"), store: try id("db"), log: nil, index: index)
        // The kernel's table may lack every lock.
        return FileUsers.logUse(of: place, by: getpid(), LockTable(lines: []))
    }

    private func isFormer(_ file: String, _ use: FileUsers.LogUse) -> Bool {
        guard case .ofAnother(let former) = use else { return false }
        return former.contains(file)
    }

    @Test func theLogOfTheStoreItself() throws {
        _ = try use("db")
        let index = try use("db-shm", index: true)
        #expect(try logUse(index: index) == .ofThisFile(locksIndex: true))
        _ = try use("elsewhere/other")
        #expect(try logUse(index: index) == .ofThisFile(locksIndex: true))
    }

    @Test func theFormerFileThatHasANameStill() throws {
        let former = try use("db")
        try #require(rename(directory.file("db"), directory.file("former")) == 0)
        try directory.write("db", [])
        _ = try use("db", locks: false)
        let index = try use("db-shm", index: true)
        let use = try logUse(index: index)
        #expect(isFormer(former, use), "\(use)")
    }

    @Test func aTableThatLacksALock() throws {
        _ = try use("db")
        try directory.write("other", [])
        #expect(LockHolders.hasLocks(on: directory.file("db"), ifUnknown: false, table: { LockTable(lines: []) }))
        #expect(!LockHolders.hasLocks(on: directory.file("other"), ifUnknown: true, table: { .empty }))
        // One that cannot be read tells nothing.
        for isAssumed in [true, false] {
            func hasLocks(_ name: String) -> Bool {
                LockHolders.hasLocks(on: directory.file(name), ifUnknown: isAssumed, table: { nil })
            }
            #expect(hasLocks("other") == isAssumed)
            // What a descriptor tells is certain.
            #expect(hasLocks("db") && !hasLocks("absent"))
        }
    }

    /// A child has copies of its parent's descriptors, and no locks but those on its own store.
    @Test func aStoreOfAChild() throws {
        _ = try use("db", locks: false)
        let index = try use("db-shm", locks: false)
        _ = try use("elsewhere/other")
        #expect(try logUse(index: index) == .ofThisFile(locksIndex: false))
    }

    /// It was removed, and is open all the same.
    @Test(arguments: ["db-shm", "another name"]) func theFormerFileOfThePath(name: String) throws {
        let former = try use("db")
        unlink(directory.file("db"))
        let present = try use("db")
        #expect(former != present)
        // By whichever name the index was opened, it is that of the store.
        try directory.write("db-shm", [])
        if name != "db-shm" { try #require(link(directory.file("db-shm"), directory.file(name)) == 0) }
        let index = try use(name, index: true)
        let use = try logUse(index: index)
        #expect(isFormer(former, use), "\(use)")
    }

    /// Who only reads the present file has no lock on it.
    @Test func aFormerFileBesideOneThatIsRead() throws {
        let former = try use("db", locks: false)
        unlink(directory.file("db"))
        let present = try use("db", locks: false)
        #expect(former != present)
        let index = try use("db-shm", index: true)
        #expect(isFormer(former, try logUse(index: index)))
    }

    /// A store that was moved elsewhere is one whose index has no store any more, in the directory where that is.
    @Test(arguments: [("gone-shm", true), ("gone-xyz", false), ("elsewhere/gone-shm", false)])
    func aStoreThatWasMoved(lost: String, isFormer: Bool) throws {
        let former = try use("elsewhere/moved")
        _ = try use("db")
        let index = try use("db-shm", index: true)
        _ = try use(lost, index: true)
        let use = try logUse(index: index)
        #expect(self.isFormer(former, use) == isFormer, "\(use)")
    }
}
