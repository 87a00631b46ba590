import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// The files that the library reads and writes without SQLite: when calls of the system fail, are interrupted, or do only a
/// part.
@Suite(.hangLimit)
struct SmallFileTests {
    typealias Reason = DatabaseError.Reason

    private let directory: TemporaryDirectory
    private static let contents = [UInt8](0..<10)

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static func prepare(_ directory: TemporaryDirectory) throws { try directory.write("f", contents) }

    /// Runs the body while only a part of everything is read or written.
    private func shortened<T>(_ body: () throws -> T) throws -> T {
        let watch = CallWatch(directory.path, failing: 0...Int.max, code: Int32(failing_calls_shortening))
        defer { watch.end() }
        return try body()
    }

    // MARK: FileReader

    private func read(
        _ call: String,
        _ code: Int32,
        from offset: Int64 = 2,
        count: Int = 8
    ) throws -> FailedCall<[UInt8]?> {
        try FailedCall(call, code, prepare: Self.prepare) { directory -> [UInt8]? in
            try FileReader(directory.file("f"))?.bytes(at: offset, count: count)
        }
    }

    @Test func whatIsReadIsWholeOrNothing() throws {
        try Self.prepare(directory)
        let reader = try #require(try FileReader(directory.file("f")))
        #expect(try reader.size() == 10)
        #expect(try reader.bytes(at: 2, count: 8) == Array(Self.contents[2...]))
        #expect(try reader.bytes(at: 3, count: 8) == nil)
        #expect(try reader.bytes(at: 10, count: 1) == nil)
        let inParts = try shortened { try reader.bytes(at: 1, count: 9) }
        #expect(inParts == Array(Self.contents[1...]))
        // A signal is no failure, and a failure is no end of the file.
        #expect(try read("pread", EINTR).value == Array(Self.contents[2...]))
        let failed = try read("pread", EIO)
        #expect(failed.error?.reason == .ioError && failed.open == [])
        #expect(failed.error?.message.contains("Cannot read \(failed.directory.file("f"))") == true)
    }

    @Test func aFileThatCannotBeOpenedIsNotMissing() throws {
        for code in [ENOENT, ENOTDIR] {
            let missing = try read("open", code)
            #expect(missing.error == nil && missing.value == .some(nil), "\(code)")
        }
        for (code, reason) in [(EACCES, .notPermitted), (EIO, .ioError), (EMFILE, .ioError)] as [(Int32, Reason)] {
            #expect(try read("open", code).error?.reason == reason, "\(code)")
        }
        let unknown = try read("fstat", EIO)
        #expect(unknown.error?.reason == .ioError && unknown.open == [])
    }

    @Test func onlyRegularFilesAreRead() throws {
        try Self.prepare(directory)
        #expect(mkdir(directory.file("directory"), 0o700) == 0 && mkfifo(directory.file("pipe"), 0o600) == 0)
        #expect(symlink("f", directory.file("link")) == 0)
        for name in ["directory", "pipe", "link"] {
            let error = #expect(throws: DatabaseError.self) { try FileReader(directory.file(name)) != nil }
            #expect(error?.reason == (name == "link" ? .ioError : .notRegularFile), "\(name)")
        }
        #expect(filesOpen(below: directory) == [])
    }

    @Test func aReaderKnowsItsFile() throws {
        try Self.prepare(directory)
        try directory.write("g", Self.contents)
        let reader = try #require(try FileReader(directory.file("f")))
        #expect(try reader.isSameFile(as: FileSystem.status(directory.file("f"))))
        #expect(try !reader.isSameFile(as: FileSystem.status(directory.file("g"))))
    }

    // MARK: OwnFile

    @Test func anOwnFileIsMadeOrOpened() throws {
        let missing = #expect(throws: DatabaseError.self) { _ = try OwnFile(directory.file("f")) }
        #expect(missing?.reason == .ioError)
        #expect(directory.names == [])
        let noPlace = #expect(throws: DatabaseError.self) { _ = try OwnFile(directory.file("no/f"), creates: true) }
        #expect(noPlace?.reason == .cannotCreate)
        let made = try OwnFile(directory.file("f"), creates: true)
        #expect(try FileSystem.status(directory.file("f")).st_mode & 0o777 == 0o600)
        #expect(try made.bytes(at: 0, count: 5) == [])
        #expect(mkdir(directory.file("directory"), 0o700) == 0 && mkfifo(directory.file("pipe"), 0o600) == 0)
        for name in ["directory", "pipe"] {
            #expect(throws: DatabaseError.self) { _ = try OwnFile(directory.file(name)) }
        }
        let unknown = try FailedCall("fstat", prepare: Self.prepare) { _ = try OwnFile($0.file("f")) }
        #expect(unknown.error?.reason == .ioError && unknown.open == [])
    }

    @Test func anOwnFileIsReadAndWrittenWhole() throws {
        try Self.prepare(directory)
        let file = try OwnFile(directory.file("f"))
        try shortened { try file.write([20, 21, 22, 23, 24, 25, 26], at: 5) }
        let changed = Array(Self.contents[..<5]) + [20, 21, 22, 23, 24, 25, 26]
        #expect(try directory.bytes("f") == Data(changed))
        let inParts = try shortened { try file.bytes(at: 1, count: 11) }
        #expect(inParts == Array(changed[1...]))
        #expect(try file.bytes(at: 8, count: 10) == [23, 24, 25, 26])
        for (call, code, reason) in [
            ("pwrite", EIO, .ioError), ("pwrite", ENOSPC, .noSpace), ("pwrite", EINTR, nil), ("pread", EIO, .ioError),
            ("pread", EINTR, nil), ("fsync", EIO, .ioError), ("fsync", EINTR, .ioError),
        ] as [(String, Int32, Reason?)] {
            let failed = try FailedCall(call, code, prepare: Self.prepare) { directory -> [UInt8] in
                let file = try OwnFile(directory.file("f"))
                try file.write([7, 8, 9], at: 0)
                try file.synchronize()
                return try file.bytes(at: 0, count: 4)
            }
            #expect(failed.error?.reason == reason, "\(call) \(code)")
            #expect(failed.value == (reason == nil ? [7, 8, 9, 3] : nil), "\(call) \(code)")
            #expect(failed.open == [])
        }
    }

    /// Two who believe that they have the lock would write over each other.
    @Test func onlyOneHasTheLock() throws {
        try Self.prepare(directory)
        let second = try OwnFile(directory.file("f"))
        do {
            let first = try OwnFile(directory.file("f"))
            #expect(try first.lock())
            #expect(try !second.lock())
            withExtendedLifetime(first) {}
        }
        #expect(try second.lock())
        for (code, reason) in [(EAGAIN, nil), (EACCES, nil), (EIO, .ioError), (ENOLCK, .ioError)] as [(Int32, Reason?)]
        {
            let own = try FailedCall("lock", code, prepare: Self.prepare) { try OwnFile($0.file("f")).lock() }
            #expect(own.value == (reason == nil ? false : nil) && own.error?.reason == reason, "\(code)")
            let new = try FailedCall("lock", code) { try Self.newFile($0).file.lock() }
            #expect(new.value == (reason == nil ? false : nil) && new.error?.reason == reason, "\(code)")
        }
    }

    @Test func anOwnFileThatLostItsName() throws {
        try Self.prepare(directory)
        try directory.write("g", [1])
        let file = try OwnFile(directory.file("f"))
        #expect(try file.isNamed())
        #expect(rename(directory.file("g"), directory.file("f")) == 0)
        #expect(try !file.isNamed())
        unlink(directory.file("f"))
        #expect(try !file.isNamed())
        for (call, number) in [("fstat", 1), ("lstat", 0)] {
            let failed = try FailedCall(call, number: number, prepare: Self.prepare) {
                try OwnFile($0.file("f")).isNamed()
            }
            #expect(failed.error?.reason == .ioError, "\(call)")
        }
    }

    // MARK: NewFile

    private static func newFile(_ directory: TemporaryDirectory) throws -> (file: NewFile, identity: FileIdentity) {
        let identity = try FileIdentity(creating: directory.file("new"))
        let file = try NewFile(identity, path: directory.file("new"))
        return (try #require(file), identity)
    }

    @Test func aNewFileIsReadAndWrittenWhole() throws {
        let (file, identity) = try Self.newFile(directory)
        let bytes = [UInt8](0..<100)
        try shortened { try bytes.withUnsafeBytes { try file.write($0, at: 3) } }
        #expect(try directory.bytes("new") == Data([0, 0, 0] + bytes))
        var read = [UInt8](repeating: 0, count: 100)
        let isWhole = try shortened { try read.withUnsafeMutableBytes { try file.read(into: $0, at: 3) } }
        #expect(isWhole && read == bytes)
        let isBeyondTheEnd = try !read.withUnsafeMutableBytes { try file.read(into: $0, at: 4) }
        #expect(isBeyondTheEnd)
        try file.truncate(to: 50)
        #expect(try file.size() == 50)
        // Another one of this process may be at work.
        let other = try #require(try NewFile(identity, path: directory.file("new")))
        #expect(try file.lock())
        #expect(try !other.lock())
    }

    /// A child that is about to call exec shares the open file for a moment.
    @Test func theLockEndsWithItsOwnerAlone() throws {
        var file: NewFile?
        let identity: FileIdentity
        (file, identity) = try Self.newFile(directory)
        #expect(try file?.lock() == true)
        let own = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").first {
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
            return path == directory.file("new")
        }
        let copy = dup(try #require(own.flatMap { Int32($0) }))
        defer { close(copy) }
        let other = try #require(try NewFile(identity, path: directory.file("new")))
        #expect(try !other.lock())
        file = nil
        #expect(try other.lock())
    }

    @Test func callsForANewFileThatFail() throws {
        for (call, code, reason) in [
            ("ftruncate", EINTR, nil), ("ftruncate", EIO, .ioError), ("ftruncate", ENOSPC, .noSpace),
            ("pread", EIO, .ioError), ("fsync", EINTR, .ioError), ("fsync", EIO, .ioError),
        ] as [(String, Int32, Reason?)] {
            let failed = try FailedCall(call, code) { directory -> Int64 in
                let file = try Self.newFile(directory).file
                try Self.contents.withUnsafeBytes { try file.write($0, at: 0) }
                try file.truncate(to: 4)
                var read = [UInt8](repeating: 0, count: 4)
                _ = try read.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
                try file.synchronize()
                return try file.size()
            }
            #expect(failed.error?.reason == reason && failed.value == (reason == nil ? 4 : nil), "\(call) \(code)")
            #expect(failed.error?.message.contains(failed.directory.file("new")) != false)
            #expect(failed.open == [], "\(call) \(code)")
        }
    }

    /// Otherwise what somebody writes right after it would go unnoticed: times of files are coarse.
    @Test func aLaterWriteChangesTheMark() throws {
        let file = try Self.newFile(directory).file
        for round in 0..<5 as Range<UInt8> {
            try [round].withUnsafeBytes { try file.write($0, at: 0) }
            let mark = try file.settledMark()
            #expect(try file.mark() == mark)
            try [round + 1].withUnsafeBytes { try file.write($0, at: 0) }
            #expect(try file.mark() != mark)
        }
    }

    // MARK: FileIdentity

    /// A file that nobody knows of would lie there for ever.
    @Test(arguments: ["fstat", "statx"]) func aFileWhoseIdentityIsUnknownIsRemoved(call: String) throws {
        let failed = try FailedCall(call) { _ = try FileIdentity(creating: $0.file("new")) }
        #expect(failed.error?.reason == .ioError)
        #expect(failed.error?.message.contains(failed.directory.file("new")) == true)
        #expect(failed.directory.names == [] && failed.open == [])
    }

    @Test func aFileThatIsOpenedAgain() throws {
        for (call, code, reason) in [
            ("open", EACCES, .notPermitted), ("open", EIO, .ioError), ("fstat", EIO, .ioError),
            ("statx", EIO, .ioError),
        ] as [(String, Int32, Reason)] {
            // The first of each is made when it is created.
            let failed = try FailedCall(call, code, number: 1) { directory -> Void in
                let identity = try FileIdentity(creating: directory.file("new"))
                if let descriptor = try identity.open() { close(descriptor) }
            }
            #expect(failed.error?.reason == reason, "\(call) \(code)")
            #expect(failed.open == [], "\(call) \(code)")
        }
        let path = directory.file("new")
        let identity = try FileIdentity(creating: path)
        #expect(try identity.isNamed(path))
        #expect(try !identity.isOpenInThisProcess())
        let descriptor = try #require(try identity.open())
        #expect(try identity.isOpenInThisProcess())
        close(descriptor)
        #expect(try !identity.isOpenInThisProcess())
        // What has its name now is not it.
        try directory.write("other", [1])
        #expect(try !identity.isNamed(directory.file("other")))
        #expect(rename(path, directory.file("moved")) == 0 && rename(directory.file("other"), path) == 0)
        #expect(try identity.open() == nil)
        #expect(filesOpen(below: directory) == [])
        #expect(try identity.isNamed(directory.file("moved")))
        #expect(try !identity.isNamed(path))
        let missing = #expect(throws: DatabaseError.self) { try identity.isNamed(directory.file("nothing")) }
        #expect(missing?.reason == .ioError)
    }

    /// What another program has put there is not gone on with.
    @Test func leftoversOfOthers() throws {
        try Self.prepare(directory)
        let path = directory.file("f")
        let identity = try #require(try FileIdentity(ofLeftover: path))
        #expect(try identity.isNamed(path))
        #expect(symlink("f", directory.file("link")) == 0 && mkdir(directory.file("directory"), 0o700) == 0)
        for name in ["link", "directory"] { #expect(try FileIdentity(ofLeftover: directory.file(name)) == nil) }
        #expect(link(path, directory.file("twin")) == 0)
        #expect(try FileIdentity(ofLeftover: path) == nil)
        unlink(directory.file("twin"))
        #expect(try FileIdentity(ofLeftover: path) != nil)
        #expect(throws: DatabaseError.self) { try FileIdentity(ofLeftover: directory.file("nothing")) == nil }
        if geteuid() == 0 {
            #expect(chown(path, 65534, 65534) == 0)
            #expect(try FileIdentity(ofLeftover: path) == nil)
        }
        let unknown = try FailedCall("statx", prepare: Self.prepare) {
            _ = try FileIdentity(ofLeftover: $0.file("f"))
        }
        #expect(unknown.error?.reason == .ioError)
    }
}
