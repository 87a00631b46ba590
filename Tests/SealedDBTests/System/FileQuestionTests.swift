import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// What is believed of files by their names, numbers and owners.
@Suite(.hangLimit)
struct FileQuestionTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    // MARK: Which file it is

    /// Inodes have the same numbers in each file system.
    @Test func aFileHasANumberAndADevice() throws {
        let file = try FileSystem.status(directory.write("f", [1]))
        var (otherDevice, otherNumber) = (file, file)
        otherDevice.st_dev += 1
        otherNumber.st_ino += 1
        #expect(file.isSameFile(as: file))
        #expect(!file.isSameFile(as: otherDevice) && !otherDevice.isSameFile(as: file))
        #expect(!file.isSameFile(as: otherNumber))
    }

    @Test func aReaderThatCannotTellItsFile() throws {
        let call = try FailedCall("fstat", number: 1, prepare: { try $0.write("f", [1]) }) { directory in
            let file = try FileSystem.status(directory.file("f"))
            return try FileReader(directory.file("f"))?.isSameFile(as: file)
        }
        #expect(call.error?.reason == .ioError, "\(call.value as Any)")
        let reader = try #require(try FileReader(directory.write("f", [1])))
        #expect(try reader.isSameFile(as: FileSystem.status(directory.file("f"))))
        #expect(try !reader.isSameFile(as: FileSystem.status(directory.write("g", [1]))))
    }

    /// The number of a file that was removed goes to another one, which was made later.
    @Test func anotherFileOfTheSameNumber() throws {
        let path = directory.file("f")
        let identity = try FileIdentity(creating: path)
        let status = try FileSystem.status(path)
        // The clock by which files are dated ticks only a few hundred times a second.
        try #require(FileSystem.waitForClock(toPass: status.st_mtim))
        let descriptor = try #require(try identity.open())
        close(descriptor)
        // Not every file system gives numbers again.
        for _ in 0..<200 {
            unlink(path)
            try directory.write("f", [])
            if try FileSystem.status(path).st_ino == status.st_ino { break }
        }
        #expect(try identity.open() == nil)
        #expect(try !identity.isNamed(path))
        #expect(filesOpen(below: directory) == [])
    }

    // MARK: Names

    /// SQLite could make neither log nor journal.
    @Test func namesThatAreTooLongForTheFilesBeside() throws {
        let longest = String(repeating: "x", count: Int(NAME_MAX) - "-sealdb-lock".count)
        try StoreName.requireRoom(directory.file(longest))
        let error = #expect(throws: DatabaseError.self) { try StoreName.requireRoom(directory.file(longest + "x")) }
        #expect(error?.reason == .cannotCreate && error?.message.contains("has 244 bytes") == true, "\(error as Any)")
    }

    /// Somebody uses the other name, and has transactions in a journal of that.
    @Test(arguments: ["-journal", "-wal"]) func aSecondNameWithAJournalOfItsOwn(suffix: String) throws {
        let path = try directory.write("db", [1])
        try #require(link(path, directory.file("db.old")) == 0)
        try StoreName.requireOneName(path)
        try directory.write("db.old\(suffix)", [1])
        #expect(throws: DatabaseError.self) { try StoreName.requireOneName(path) }
        try directory.write("db\(suffix)", [1])
        let error = #expect(throws: DatabaseError.self) { try StoreName.requireOneName(path) }
        #expect(error?.reason == .hardLinked)
        // As a restore leaves it that is killed.
        unlink(directory.file("db\(suffix)"))
        try #require(link(directory.file("db.old\(suffix)"), directory.file("db\(suffix)")) == 0)
        try StoreName.requireOneName(path)
    }

    /// Only what this library names so is removed, even if its checksum is right.
    @Test func namesOfLeftovers() throws {
        func name(_ mark: String) -> String {
            let start = ".db.sealdb-\(mark)0123456789"
            let hash = start.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            return start + FileSystem.hexDigits(hash, count: 6)
        }
        let own = [name(""), name("mark-")]
        for name in own + [name("two-marks-"), name("-"), name("Mark-"), name("m1-"), name("a--")] {
            try directory.write(name, [1])
        }
        let found = TemporaryFile.leftovers(of: directory.file("db"))
        #expect(Set(found) == Set(own.map(directory.file)), "\(found)")
    }

    // MARK: Journals

    /// A log whose store is gone: nothing says who may write to it.
    @Test func aLogWithoutItsStore() throws {
        try #require(chmod(directory.path, 0o1777) == 0)
        let log = try directory.write("db-wal", [1], mode: 0o660)
        #expect(!JournalName.isOfStranger(log))
        try directory.write("db", [1], mode: 0o600)
        #expect(JournalName.isOfStranger(log))
        try directory.write("db", [1], mode: 0o660)
        #expect(!JournalName.isOfStranger(log))
    }

    /// A text may have several lines.
    @Test(arguments: ["first\nsecond line", "a\tb\tc\td\te", "first\r\nsecond"], ["-journal", "-wal"])
    func textsWithTheNamesOfJournals(text: String, suffix: String) throws {
        let path = directory.file("db")
        try directory.write("db\(suffix)", text.utf8)
        let error = #expect(throws: DatabaseError.self) { try JournalName.requireNothingElse(beside: path) }
        #expect(error?.reason == .cannotCreate)
        // No text has such a byte.
        try directory.write("db\(suffix)", Array("first".utf8) + [0x0b] + Array("second".utf8))
        try JournalName.requireNothingElse(beside: path)
    }

    // MARK: Locks

    /// Who may read the lock file may share the lock.
    @Test(arguments: [EACCES, EROFS]) func aLockFileThatMayOnlyBeRead(code: Int32) throws {
        let shared = try FailedCall("open db-sealdb-lock", code, prepare: Self.prepareLock) { directory in
            let lock = try UsageLock.shared(directory.file("db"), timeout: 0)
            defer { lock?.release() }
            return lock != nil
        }
        #expect(shared.value == true, "\(shared.error as Any)")
        #expect(shared.open == [])
        let exclusive = try FailedCall("open db-sealdb-lock", code, prepare: Self.prepareLock) { directory in
            try UsageLock.exclusive(directory.file("db"), timeout: 0).release()
        }
        #expect(exclusive.error?.reason == .cannotCreate)
    }

    private static func prepareLock(_ directory: TemporaryDirectory) throws {
        try directory.write("db", [1])
        try directory.write("db-sealdb-lock", [])
    }

    /// What would be removed with the last user is somebody's pipe.
    @Test func aPipeIsNoLockFile() throws {
        let path = try directory.write("db", [1])
        try #require(mkfifo(directory.file("db-sealdb-lock"), 0o600) == 0)
        for attempt in [
            { _ = try UsageLock.shared(path, timeout: 0) }, { _ = try UsageLock.exclusive(path, timeout: 0) },
        ] {
            let error = #expect(throws: DatabaseError.self, performing: attempt)
            #expect(error?.reason == .cannotCreate && error?.message.contains("no lock file") == true)
        }
        #expect(directory.names == ["db", "db-sealdb-lock"])
    }

    // MARK: Times

    /// Later writes would not be seen.
    @Test func aStateThatALaterWriteMightLeave() throws {
        let path = try directory.write("db", [1])
        func setTime(_ seconds: Int, _ nanoseconds: Int) throws {
            var times = [
                timespec(tv_sec: seconds, tv_nsec: nanoseconds), timespec(tv_sec: seconds, tv_nsec: nanoseconds),
            ]
            try #require(utimensat(AT_FDCWD, path, &times, 0) == 0)
        }
        try setTime(1_000_000_000, 5)
        #expect(try StoreState.settledFile(path) != nil && StoreState.settled(path) != nil)
        // The file system may count whole seconds only.
        try setTime(1_000_000_000, 0)
        #expect(try StoreState.settledFile(path) == nil)
        // The clock was put back.
        try setTime(time(nil) + 86400, 5)
        #expect(try StoreState.settledFile(path) == nil)
        try setTime(1_000_000_000, 5)
        try directory.write("db-wal", [1])
        #expect(try StoreState.settled(path) == nil && StoreState.settledFile(path) != nil)
    }

    @Test func whatTellsThatAFileIsAnother() throws {
        let path = try directory.write("db", [1, 2])
        func setTime(_ name: String, _ nanoseconds: Int = 5) throws {
            let time = timespec(tv_sec: 1_000_000_000, tv_nsec: nanoseconds)
            var times = [time, time]
            try #require(utimensat(AT_FDCWD, directory.file(name), &times, 0) == 0)
        }
        func isSame(_ name: String = "db", as state: StoreState) throws -> Bool {
            try StoreState(of: directory.file(name)).hasSameFile(as: state)
        }
        try setTime("db")
        let state = try StoreState(of: path)
        #expect(try isSame(as: state))
        try setTime("db", 6)
        #expect(try !isSame(as: state))
        try setTime("db")
        #expect(try isSame(as: state))
        try #require(truncate(path, 1) == 0)
        try setTime("db")
        #expect(try !isSame(as: state))
        try #require(truncate(path, 2) == 0)
        try setTime("db")
        #expect(try isSame(as: state))
        try directory.write("copy", [1, 2])
        try setTime("copy")
        #expect(try !isSame("copy", as: state))
        // What is in the log does not count.
        try directory.write("db-wal", [1])
        #expect(try isSame(as: state))
    }
}
