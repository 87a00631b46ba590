import Foundation
import Testing

@testable import SealedDB

/// Names that belong to a store, and what is believed of the files that have them.
@Suite(.hangLimit)
struct BesideNameTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
    }

    private func makeStore(_ size: Int = 512) throws {
        try directory.write("db", [UInt8](repeating: 0, count: size))
    }

    private func reason(_ body: () throws -> Void) -> DatabaseError.Reason? {
        (#expect(throws: DatabaseError.self, performing: body))?.reason
    }

    // MARK: Names of another store

    /// What is written through a link lands where it leads.
    @Test(arguments: ["db-wal", "db-journal", "db-shm", "db-sealdb-lock", "db.slots", "db.slots.2"])
    func aLinkToANameOfAStore(name: String) throws {
        try makeStore()
        try directory.write(name, [])
        let link = directory.file("link")
        try #require(symlink(name, link) == 0)
        for path in [directory.file(name), link] {
            #expect(reason { try StoreName.requireNoPart(path) } == .cannotCreate, "\(path)")
        }
        try StoreName.requireNoPart(directory.file("other"))
    }

    /// A new store begins as an empty file. A link has the length of where it leads as its size.
    @Test func whatMayBeAStore() throws {
        let log = directory.file("db-wal")
        try StoreName.requireOwn(log)
        try makeStore(0)
        #expect(reason { try StoreName.requireOwn(log) } == .cannotCreate)
        try makeStore(511)
        try StoreName.requireOwn(log)
        unlink(path)
        try #require(symlink(String(repeating: "x/", count: 256), path) == 0)
        try StoreName.requireOwn(log)
    }

    /// A leftover would be taken for a part of the other store.
    @Test func nothingIsPutBesideANameOfAStore() throws {
        try makeStore()
        #expect(reason { _ = try TemporaryFile.path(beside: directory.file("db-wal")) } == .cannotCreate)
        #expect(throws: Never.self) { try TemporaryFile.path(beside: path) }
    }

    /// Who only reads removes nothing.
    @Test func aNameOfAStoreMayBeRead() throws {
        try makeStore()
        let log = try directory.write("db-wal", [UInt8](repeating: 0, count: 512))
        #expect(reason { try StoreName.requireOnly(log) } == .cannotCreate)
        try StoreName.requireOnly(log, isReadOnly: true)
    }

    /// The files beside a store have the name of the file, not that of a link to it.
    @Test func theNameThatCountsIsThatOfTheFile() throws {
        let name = String(repeating: "x", count: Int(NAME_MAX) - 5)
        try directory.write(name, [])
        let (short, long) = (directory.file("short"), directory.file(name.replacing("x", with: "y")))
        try #require(symlink(name, short) == 0 && symlink("db", long) == 0)
        try makeStore()
        #expect(reason { try StoreName.requireRoom(short) } == .cannotCreate)
        try StoreName.requireRoom(long)
        let link = directory.file("link")
        try #require(symlink("db", link) == 0)
        try directory.write("db-journal", "a key or a table".utf8)
        #expect(reason { try StoreName.requireOnly(link) } == .cannotCreate)
    }

    /// One second name may be that of a rotation that was killed; a third one is somebody's.
    @Test func aStoreWithAThirdName() throws {
        try makeStore()
        let elsewhere = try TemporaryDirectory()
        try #require(link(path, directory.file("db.old")) == 0)
        try StoreName.requireOneName(path)
        try #require(link(path, elsewhere.file("copy")) == 0)
        #expect(reason { try StoreName.requireOneName(path) } == .hardLinked)
    }

    @Test func aSecondNameWhoseJournalCannotBeExamined() throws {
        let failed = try FailedCall("lstat db.old-journal") { directory in
            let path = try directory.write("db", [1])
            try #require(link(path, directory.file("db.old")) == 0)
            try StoreName.requireOneName(path)
        }
        #expect(failed.error?.reason == .hardLinked)
    }

    // MARK: Files of strangers

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func anIndexThatAStrangerHasMade() throws {
        try makeStore()
        try #require(chmod(directory.path, 0o1777) == 0)
        let index = try directory.write("db-shm", [UInt8](repeating: 0, count: 4096))
        #expect(JournalName.isIndexSafe(ofStore: path))
        try #require(chown(index, 4711, 4711) == 0)
        #expect(!JournalName.isIndexSafe(ofStore: path))
    }

    /// Whoever may write to the journal and not to the store could change the store by it.
    @Test(arguments: [0o620, 0o602] as [mode_t]) func aJournalToWhichMoreMayWrite(mode: mode_t) throws {
        try makeStore()
        try #require(chmod(directory.path, 0o1777) == 0)
        let journal = try directory.write("db-journal", [1], mode: mode)
        #expect(JournalName.isOfStranger(journal))
        try #require(chmod(path, mode) == 0)
        #expect(!JournalName.isOfStranger(journal))
    }

    @Test(arguments: ["-journal", "-wal", "-shm"]) func allFilesOfStrangersAreRefused(suffix: String) throws {
        try makeStore()
        try JournalName.requireNoneOfStrangers(path)
        try #require(symlink("elsewhere", path + suffix) == 0)
        #expect(reason { try JournalName.requireNoneOfStrangers(path) } == .unsafeJournal)
    }

    /// It may be a user of the store who made it, so nobody is told to move it away as if it were something else.
    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func aTextOfAStranger() throws {
        try makeStore()
        try #require(chmod(directory.path, 0o1777) == 0)
        let journal = try directory.write("db-journal", "a key or a table".utf8)
        #expect(reason { try JournalName.requireNothingElse(beside: path) } == .cannotCreate)
        try #require(chown(journal, 4711, 4711) == 0)
        try JournalName.requireNothingElse(beside: path)
        #expect(reason { try JournalName.requireNoneOfStrangers(path) } == .unsafeJournal)
    }

    // MARK: Something else by the name of a journal

    /// An index has whole pages, or the three bytes of one who has begun it.
    @Test func sizesOfAnIndex() throws {
        for size in [0, 3, 4096, 8192, 32768] {
            try directory.write("db-shm", [UInt8](repeating: 1, count: size))
            try JournalName.requireNothingElse(beside: path)
        }
        for size in [1, 2, 4, 65, 4095, 4097] {
            try directory.write("db-shm", [UInt8](repeating: 1, count: size))
            #expect(reason { try JournalName.requireNothingElse(beside: path) } == .cannotCreate, "\(size)")
        }
    }

    /// A plaintext database begins with 15 characters and a NUL.
    @Test(arguments: ["-journal", "-wal"]) func theShortestText(suffix: String) throws {
        for text in ["12345678", "SQLite format 3\0", "SQLite format 3\0\u{10}"] {
            try directory.write("db\(suffix)", text.utf8)
            #expect(reason { try JournalName.requireNothingElse(beside: path) } == .cannotCreate, "\(text)")
        }
        for text in ["", "1234567", "1234567\u{7f}", "\u{1f}2345678"] {
            try directory.write("db\(suffix)", text.utf8)
            try JournalName.requireNothingElse(beside: path)
        }
    }

    /// As many digits as this library gives, and no more.
    @Test func aLeftoverHasSixteenDigits() throws {
        for digits in ["0123456789", "012345678901", "01234567"] {
            let start = ".db.sealdb-\(digits)"
            let hash = start.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            try directory.write(start + FileSystem.hexDigits(hash, count: 6), [1])
        }
        let found = TemporaryFile.leftovers(of: path).map(\.nameOfPath)
        #expect(found.count == 1 && found[0].hasPrefix(".db.sealdb-0123456789"), "\(found)")
        #expect(found.first?.utf8.count == 27)
    }

    // MARK: The lock file

    /// A reader does without a lock where it may not have one, and not where something else has the name.
    @Test func aReaderBesideAFileThatIsNoLock() throws {
        try makeStore()
        try directory.write("db-sealdb-lock", [1])
        #expect(reason { _ = try UsageLock.shared(path, timeout: 0, isForReadingAlone: true) } == .cannotCreate)
        let failed = try FailedCall("open db-sealdb-lock", EIO, prepare: { try $0.write("db", []) }) {
            try UsageLock.shared($0.file("db"), timeout: 0, isForReadingAlone: true) == nil
        }
        #expect(failed.error?.reason == .cannotCreate, "\(failed.value as Any)")
    }
}
