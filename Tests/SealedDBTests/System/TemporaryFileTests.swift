import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct TemporaryFileTests {
    private let directory: TemporaryDirectory
    private let store: String

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.write("app.db", [1])
    }

    private func leave(_ path: String) throws {
        try Data([1]).write(to: URL(fileURLWithPath: path))
    }

    @Test func whatWasLeftIsRemoved() throws {
        for mark in ["", "wal"] {
            for suffix in ["", "-journal", "-wal", "-shm", "-sealdb-lock"] {
                try leave(try TemporaryFile.path(beside: store, mark: mark) + suffix)
            }
        }
        #expect(TemporaryFile.hasLeftover(of: store, mark: "wal"))
        TemporaryFile.removeLeftovers(of: store)
        #expect(directory.names == ["app.db"])
        #expect(!TemporaryFile.hasLeftover(of: store, mark: "wal"))
    }

    @Test func whatIsInUseStays() throws {
        let kept = try TemporaryFile.path(beside: store, mark: "wal")
        for path in [kept, kept + "-journal", try TemporaryFile.path(beside: store)] { try leave(path) }
        TemporaryFile.removeLeftovers(of: store, except: kept)
        #expect(directory.names == [FileSystem.name(of: kept), FileSystem.name(of: kept) + "-journal", "app.db"])
    }

    /// Names that are not ours, though they begin like ours.
    @Test func othersFilesStay() throws {
        let own = FileSystem.name(of: try TemporaryFile.path(beside: store))
        let changed = own.dropLast() + (own.last == "0" ? "1" : "0")
        let ofOther = FileSystem.name(of: try TemporaryFile.path(beside: directory.file("app.db2")))
        let names = [
            ".app.db.sealdb-before-upgrade", ".app.db.sealdb-0123456789abcdef", ".app.db.sealdb-wal-0123456789abcdef",
            ".app.db.sealdb-", ".app.db.sealdb-journal", ".app.db.sealdb--wal", own + ".bak", own.uppercased(),
            String(changed), ofOther, ".app.db.sealdb-old-" + own.suffix(16),
            ".app.db.sealdb-" + String(repeating: "é", count: 8),
        ]
        for name in names { try leave(directory.file(name)) }
        TemporaryFile.removeLeftovers(of: store)
        #expect(Set(directory.names) == Set(names + ["app.db"]))
    }

    /// Names that Swift's strings take for the same are different files.
    @Test func unicodeFormsAreNotTheSame() throws {
        let (composed, decomposed) = ("caf\u{e9}.db", "cafe\u{301}.db")
        try leave(try TemporaryFile.path(beside: directory.file(decomposed)))
        TemporaryFile.removeLeftovers(of: directory.file(composed))
        #expect(directory.names.count == 2)
        TemporaryFile.removeLeftovers(of: directory.file(decomposed))
        #expect(directory.names == ["app.db"])
    }

    @Test func onlyRegularFilesAreRemoved() throws {
        let path = try TemporaryFile.path(beside: store)
        #expect(symlink(store, path) == 0)
        let folder = try TemporaryFile.path(beside: store)
        #expect(mkdir(folder, 0o700) == 0)
        TemporaryFile.removeLeftovers(of: store)
        #expect(directory.names.count == 3)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func filesOfOthersStay() throws {
        let path = try TemporaryFile.path(beside: store)
        try leave(path)
        #expect(chown(path, 65534, 65534) == 0)
        TemporaryFile.removeLeftovers(of: store)
        #expect(directory.names.count == 2)
        // Given to the owner of the store, as a copy of it is.
        #expect(chown(store, 65534, 65534) == 0)
        TemporaryFile.removeLeftovers(of: store)
        #expect(directory.names == ["app.db"])
    }

    /// What a leftover is told to be depends on its mark.
    @Test func leftoversAreKnownByTheirMarks() throws {
        let marked = try TemporaryFile.path(beside: store, mark: "wal")
        for path in [marked, try TemporaryFile.path(beside: store, mark: "walrus")] { try leave(path) }
        try leave(try TemporaryFile.path(beside: store))
        #expect(TemporaryFile.leftovers(of: store, mark: "wal") == [marked])
        #expect(TemporaryFile.leftovers(of: store).count == 3)
        for mark in ["w", "wa", "walr", "old"] { #expect(!TemporaryFile.hasLeftover(of: store, mark: mark), "\(mark)") }
        // A directory that cannot be read has none.
        for call in ["opendir", "readdir"] {
            let failed = try FailedCall(
                call,
                prepare: { directory in
                    let target = try directory.write("app.db", [1])
                    try Data([1]).write(to: URL(fileURLWithPath: TemporaryFile.path(beside: target)))
                }
            ) { directory -> [String] in
                TemporaryFile.removeLeftovers(of: directory.file("app.db"))
                return directory.names
            }
            #expect(failed.directory.names.count == 2, "\(call)")
        }
    }
}
