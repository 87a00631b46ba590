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
}
