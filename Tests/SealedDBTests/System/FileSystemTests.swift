import Foundation
import Testing

@testable import SealedDB

/// What is told of files when the system answers or fails, and what stays open then.
@Suite(.hangLimit)
struct FileSystemTests {
    typealias Reason = DatabaseError.Reason

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static func prepare(_ directory: TemporaryDirectory) throws { try directory.write("f", [1, 2, 3]) }

    // MARK: Whether there is a file

    /// Who believes that a store is missing makes a new one.
    @Test func aFileIsMissingOnlyIfThatIsCertain() throws {
        for code in [ENOENT, ENOTDIR, EACCES, EIO, ENOMEM] {
            let isMissing = code == ENOENT || code == ENOTDIR
            let status = try FailedCall("lstat", code, prepare: Self.prepare) { directory -> Bool in
                try FileSystem.statusIfPresent(directory.file("f")) != nil
            }
            #expect(status.value == (isMissing ? false : nil), "\(code)")
            #expect(status.error?.reason == (isMissing ? nil : .ioError), "\(code)")
            let name = try FailedCall("lstat", code, prepare: Self.prepare) { FileSystem.mayExist($0.file("f")) }
            #expect(name.value == !isMissing, "\(code)")
            let bytes = try FailedCall("lstat", code, prepare: Self.prepare) {
                FileSystem.mayExist(bytes: Array($0.file("f").utf8))
            }
            #expect(bytes.value == !isMissing, "\(code)")
        }
        try Self.prepare(directory)
        #expect(symlink("nowhere", directory.file("link")) == 0)
        #expect(try FileSystem.statusIfPresent(directory.file("link")) != nil)
        #expect(try FileSystem.statusIfPresent(directory.file("f"))?.st_size == 3)
        #expect(FileSystem.mayExist(bytes: Array(directory.file("f").utf8)))
        #expect(!FileSystem.mayExist(bytes: Array(directory.file("g").utf8)))
    }

    @Test func theReasonSaysWhyAFileCannotBeExamined() throws {
        let reasons: [(Int32, Reason)] = [
            (ENOENT, .noSuchFile), (ENOTDIR, .noSuchFile), (ELOOP, .noSuchFile), (ENAMETOOLONG, .noSuchFile),
            (EACCES, .notPermitted), (EPERM, .notPermitted), (EIO, .ioError), (ENOMEM, .ioError), (ESTALE, .ioError),
        ]
        for (code, reason) in reasons {
            let call = try FailedCall("stat", code, prepare: Self.prepare) {
                try FileSystem.status($0.file("f")).st_size
            }
            #expect(call.error?.reason == reason, "\(code)")
            #expect(call.error?.message.contains(call.directory.file("f")) == true)
            #expect(call.error?.message.contains(String(cString: strerror(code))) == true, "\(code)")
        }
    }

    /// The lease by which a rotation sees that nobody else has the file open is soon over. What does not end is told.
    @Test func aFileThatCannotBeOpenedForAMoment() throws {
        let once = try FailedCall("open f", EAGAIN, prepare: Self.prepare) {
            try FileReader($0.file("f"))?.size()
        }
        #expect(once.value == 3, "\(once.error as Any)")
        let directory = try TemporaryDirectory()
        try Self.prepare(directory)
        let watch = CallWatch(directory.path, failing: 0...Int.max - 1, code: EAGAIN)
        defer { _ = watch.end() }
        let error = #expect(throws: DatabaseError.self) { try FileReader(directory.file("f")) }
        #expect(error?.reason == .ioError && error?.message.contains("temporarily unavailable") == true)
    }

    /// Whatever was being done, somebody has to make room, and a quota is a disk that is full.
    @Test(arguments: [ENOSPC, EDQUOT]) func noSpaceIsToldAsSuch(code: Int32) {
        let error = DatabaseError.system("Cannot do it", reason: .cannotCreate, number: code)
        #expect(error.reason == .noSpace && error.code == SQLITE_FULL)
        let other = DatabaseError.system("Cannot do it", reason: .cannotCreate, number: EIO)
        #expect(other.reason == .cannotCreate && other.code == SQLITE_IOERR)
    }

    // MARK: Directories

    /// What is read of a directory only in part is not taken for all of it.
    @Test func aDirectoryThatCannotBeReadHasNoNames() throws {
        for (call, number) in [("opendir", 0), ("readdir", 0), ("readdir", 1)] {
            let names = try FailedCall(call, number: number, prepare: Self.prepare) {
                FileSystem.names(in: $0.path)?.count ?? -1
            }
            #expect(names.value == -1, "\(call)")
            #expect(names.open == [], "\(call)")
        }
        let long = String(repeating: "x", count: 255)
        for name in ["ab", "abc", "b", "a", long] { try directory.write(name, []) }
        #expect(FileSystem.names(in: directory.path, beginning: "ab")?.sorted() == ["ab", "abc"])
        #expect(FileSystem.names(in: directory.path)?.sorted() == ["a", "ab", "abc", "b", long])
    }

    @Test func pathsThatAreRelative() {
        #expect(FileSystem.absolute("f") == FileManager.default.currentDirectoryPath + "/f")
        #expect(FileSystem.absolute("/f") == "/f")
    }

    // MARK: New files

    @Test func aNewFileIsItsOwnersAlone() throws {
        let path = directory.file("new")
        try FileSystem.createExclusively(path)
        let status = try FileSystem.status(path)
        #expect(status.st_mode & 0o777 == 0o600 && status.st_size == 0)
        #expect(filesOpen(below: directory) == [])
        try Self.prepare(directory)
        #expect(symlink("elsewhere", directory.file("link")) == 0)
        for name in ["f", "link"] {
            let error = #expect(throws: DatabaseError.self) { try FileSystem.createExclusively(directory.file(name)) }
            #expect(error?.reason == .alreadyExists, "\(name)")
        }
        #expect(try directory.bytes("f") == Data([1, 2, 3]))
        #expect(directory.names == ["f", "link", "new"])
        for (code, reason) in [(EACCES, .cannotCreate), (ENOSPC, .noSpace)] as [(Int32, Reason)] {
            let call = try FailedCall("open", code) { try FileSystem.createExclusively($0.file("new")) }
            #expect(call.error?.reason == reason)
            #expect(call.directory.names == [])
        }
    }

    /// The step says what the user has to look at, and the file is the one whose owner and mode are wanted.
    @Test func attributesThatCannotBeCopied() throws {
        func fail(_ call: String) throws -> FailedCall<Void> {
            try FailedCall(
                call,
                prepare: { directory in
                    try directory.write("original", [1], mode: 0o640)
                    try directory.write("copy", [1])
                }
            ) { try FileSystem.copyAttributes(from: $0.file("original"), to: $0.file("copy")) }
        }
        for (call, step) in [("stat", "stat"), ("fstat", "stat"), ("fchmod", "fchmod")] {
            let failed = try fail(call)
            #expect(failed.error?.reason == .ownershipNotKept, "\(call)")
            let message = failed.error?.message ?? ""
            #expect(message.contains(failed.directory.file("original") + " (\(step))"), "\(message)")
            #expect(failed.open == [], "\(call)")
        }
        let opening = try fail("open")
        #expect(opening.error?.reason == .ioError)
        #expect(opening.error?.message.contains(opening.directory.file("copy")) == true)
        #expect(try fail("close").error == nil)
    }

    // MARK: Syncs

    @Test func aFileThatCannotBeSyncedIsToldAndClosed() throws {
        for call in ["open", "fsync"] {
            for code in [EIO, EROFS, EINVAL] {
                let failed = try FailedCall(call, code, prepare: Self.prepare) {
                    try FileSystem.synchronize($0.file("f"))
                }
                #expect(failed.error?.reason == .ioError, "\(call) \(code)")
                #expect(failed.open == [], "\(call) \(code)")
            }
        }
        let parent = try FailedCall("fsync", prepare: Self.prepare) {
            try FileSystem.synchronizeDirectory(of: $0.file("f"))
        }
        #expect(parent.error?.message.contains("\(parent.directory.path) to disk") == true)
    }

    /// A disk that fails is no file system that does not know how to sync.
    @Test func whatTheFileSystemCannotSyncIsNoFailure() throws {
        for code in [EROFS, EINVAL, ENOTSUP, EIO, ENOSPC] {
            let call = try FailedCall("fsync", code, prepare: Self.prepare) { directory -> Void in
                let descriptor = open(directory.file("f"), O_RDWR | O_CLOEXEC)
                defer { close(descriptor) }
                try FileSystem.synchronizeIfPossible(descriptor, directory.file("f"))
            }
            #expect(call.error?.reason == (code == EIO ? .ioError : code == ENOSPC ? .noSpace : nil), "\(code)")
        }
    }

    // MARK: What is open

    /// Who closes a file drops the locks of all who have it open in this process.
    @Test func whatThisProcessHasOpenIsKnown() throws {
        try Self.prepare(directory)
        let path = directory.file("f")
        #expect(try !FileSystem.isOpenInThisProcess(path))
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        #expect(try FileSystem.isOpenInThisProcess(path))
        #expect(try FileSystem.ownDescriptors(of: FileSystem.status(path), path) == [descriptor])
        #expect(close(descriptor) == 0)
        #expect(try !FileSystem.isOpenInThisProcess(path))
        for code in [ENOENT, ENOTDIR, EACCES, EIO] {
            let call = try FailedCall("stat", code, prepare: Self.prepare) {
                try FileSystem.isOpenInThisProcess($0.file("f"))
            }
            let isMissing = code == ENOENT || code == ENOTDIR
            #expect(call.value == (isMissing ? false : nil) && call.error?.reason == (isMissing ? nil : .ioError))
        }
    }

    @Test func aTextThatCannotBeReadWholeIsNone() throws {
        func read(_ call: String, _ code: Int32, number: Int = 0) throws -> FailedCall<String> {
            try FailedCall(call, code, number: number, prepare: { _ = try $0.write("f", "text".utf8) }) {
                FileSystem.kernelText($0.file("f")) ?? "none"
            }
        }
        for number in [0, 1] {
            let failed = try read("read", EIO, number: number)
            #expect(failed.value == "none" && failed.open == [])
            // A signal is no failure.
            #expect(try read("read", EINTR, number: number).value == "text")
        }
        #expect(try read("open", EMFILE).value == "none")
    }

    // MARK: Names and times

    @Test func randomNames() throws {
        let names = try (0..<20).map { _ in try FileSystem.randomName() }
        #expect(Set(names).count == 20 && names.allSatisfy { $0.wholeMatch(of: /[0-9a-f]{16}/) != nil })
        let watch = CallWatch(nil, failing: 0...Int.max, code: EIO)
        let error = #expect(throws: DatabaseError.self) { try FileSystem.randomName() }
        watch.end()
        #expect(error?.reason == .ioError)
        #expect(FileSystem.hexDigits(0xabc, count: 6) == "000abc")
        #expect(FileSystem.hexDigits(0x123_4567, count: 4) == "4567")
    }

    /// It does not wait for a time that does not come, as when the clock was put back.
    @Test func theClockPassesOnlyWhatIsPast() {
        let now = Int(Date().timeIntervalSince1970)
        #expect(FileSystem.waitForClock(toPass: timespec(tv_sec: now - 1, tv_nsec: 999_999_999)))
        #expect(!FileSystem.waitForClock(toPass: timespec(tv_sec: now + 3600, tv_nsec: 0)))
    }

    /// FMDB's callers pass what they like as a time limit.
    @Test func limitsOfTime() {
        for seconds in [0, -1, -.infinity, .nan] as [Double] {
            #expect(UInt64(nanosecondsOf: seconds) == 0)
            var patience = Patience(seconds: seconds)
            let watch = CallWatch(nil)
            let waits = patience.wait()
            let calls = watch.endWithAll()
            #expect(!waits && calls == [], "\(seconds)")
        }
        #expect(UInt64(nanosecondsOf: 0.25) == 250_000_000)
        #expect(UInt64(nanosecondsOf: 1e9) == 1_000_000_000_000_000_000)
        #expect(UInt64(nanosecondsOf: .infinity) == 1_000_000_000_000_000_000)
        var patience = Patience(seconds: 3600)
        // No pause lasts then.
        let watch = CallWatch(nil, failing: 0...Int.max)
        let waits = (0..<20).map { _ in patience.wait() }
        let calls = watch.endWithAll()
        #expect(calls == Array(repeating: "nanosleep", count: 20))
        #expect(!waits.contains(false))
        #expect(Duration(clampingSeconds: .nan) == .zero)
        #expect(abs(Duration(clampingSeconds: .infinity).seconds - 1e12) < 1)
        #expect(abs(Duration(clampingSeconds: -.infinity).seconds + 1e12) < 1)
        #expect(Duration(clampingSeconds: 1.5).seconds == 1.5)
        #expect(Duration.milliseconds(-250).seconds == -0.25)
    }
}
