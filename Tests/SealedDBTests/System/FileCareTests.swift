import Foundation
import Testing

@testable import SealedDB

/// What the system answers about files is not taken for more than it says.
@Suite(.hangLimit)
struct FileCareTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("new")
    }

    // MARK: What begins to be written

    private static let syncing = "sync_file_range new"

    /// The result of one call on the new file, and the calls which that made.
    private func result<T>(
        failing code: Int32?,
        _ body: () throws(DatabaseError) -> T
    ) -> (result: Result<T, DatabaseError>, calls: [String]) {
        let watch = CallWatch(directory.path, failing: code.map { _ in 0...Int.max }, code: code ?? 0)
        let result = Result { () throws(DatabaseError) in try body() }
        return (result, watch.endWithAll())
    }

    private func newFile() throws -> NewFile {
        try #require(try NewFile(FileIdentity(creating: path), path: path))
    }

    /// The sync does not tell an error of the disk a second time.
    @Test(arguments: [EIO, ENOSPC, EDQUOT]) func anErrorOfTheDiskIsTold(code: Int32) throws {
        let file = try newFile()
        try [1, 2, 3].withUnsafeBytes { bytes in try file.write(bytes, at: 0) }
        let begun = result(failing: code) { () throws(DatabaseError) in try file.beginWriting(0..<3) }
        #expect(begun.calls == [Self.syncing])
        #expect(throws: DatabaseError.self) { try begun.result.get() }
        let awaited = result(failing: code) { () throws(DatabaseError) in try file.awaitWriting(0..<3) }
        #expect(awaited.calls == [Self.syncing])
        #expect(throws: DatabaseError.self) { try awaited.result.get() }
    }

    @Test(arguments: [ENOSYS, EPERM, EINVAL, ESPIPE, EOPNOTSUPP]) func whatIsNotPossibleIsLeftToTheSync(
        code: Int32
    ) throws {
        let file = try newFile()
        let begun = result(failing: code) { () throws(DatabaseError) in try file.beginWriting(0..<3) }
        #expect(begun.calls == [Self.syncing])
        #expect(try !begun.result.get())
    }

    /// Where the system cannot do it, its answer is no error of the disk.
    @Test func whereNothingCanBeAwaited() throws {
        let identity = try FileIdentity(creating: path)
        let counting = CallWatch(directory.path)
        let counted = Result { try NewFile(identity, path: path) }
        let calls = counting.endWithAll()
        #expect(try counted.get() != nil)
        let index = try #require(calls.firstIndex(of: Self.syncing), "\(calls)")
        let watch = CallWatch(directory.path, failing: index...index, code: ENOSYS)
        let made = Result { try NewFile(identity, path: path) }
        watch.end()
        let file = try #require(try made.get())
        let awaited = result(failing: ENOSYS) { () throws(DatabaseError) in try file.awaitWriting(0..<3) }
        #expect(awaited.calls == [])
        try awaited.result.get()
    }

    /// Of a file that has contents, the question could take the error of a write away from the sync.
    @Test func aFileWithContentsIsNotAskedAbout() throws {
        let identity = try FileIdentity(creating: path)
        try FileHandle.closedToChildren(path, O_WRONLY).write(contentsOf: Data([1]))
        let made = result(failing: nil) { () throws(DatabaseError) in try NewFile(identity, path: path) }
        #expect(!made.calls.contains(Self.syncing), "\(made.calls)")
        #expect(try made.result.get() != nil)
    }

    // MARK: Times

    /// The kernel gives the same time to whatever is written between two ticks of its clock.
    @Test func aWriteAfterAMarkChangesIt() throws {
        let file = try newFile()
        for _ in 0..<40 {
            try [1].withUnsafeBytes { bytes in try file.write(bytes, at: 0) }
            let mark = try file.settledMark()
            try [1].withUnsafeBytes { bytes in try file.write(bytes, at: 0) }
            #expect(try file.mark() != mark)
        }
    }

    /// Not the tick of this very time.
    @Test func theClockHasTickedSince() {
        for _ in 0..<40 {
            var (before, after) = (timespec(), timespec())
            // The results do not matter: this clock always exists.
            clock_gettime(CLOCK_REALTIME_COARSE, &before)
            let hasPassed = FileSystem.waitForClock(toPass: before)
            clock_gettime(CLOCK_REALTIME_COARSE, &after)
            #expect(!hasPassed || (before.tv_sec, before.tv_nsec) < (after.tv_sec, after.tv_nsec))
        }
    }

    // MARK: Files and paths

    /// Two disks number their files alike.
    @Test func aFileOfAnotherDeviceIsAnother() throws {
        try directory.write("f", [1])
        let descriptor = open(directory.file("f"), O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        var status = try FileSystem.status(directory.file("f"))
        #expect(try FileSystem.ownDescriptors(of: status, "f") == [descriptor])
        status.st_dev += 1
        #expect(try FileSystem.ownDescriptors(of: status, "f") == [])
    }

    /// The system would take it for the shorter one.
    @Test func aPathWithANULByte() throws {
        #expect(throws: Never.self) { try FileSystem.requireNoNUL(path) }
        let error = #expect(throws: DatabaseError.self) { try FileSystem.requireNoNUL(path + "\0.db") }
        #expect(error?.reason == .misuse)
    }

    // MARK: The lock of a store's users

    /// Whoever waits gets the lock as soon as it is given back.
    @Test func aLockIsWaitedFor() throws {
        let store = try directory.write("db", [])
        for _ in 0..<30 {
            let lock = try UsageLock.shared(store, timeout: 0)
            let (began, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let told = Guarded<DatabaseError?>(nil)
            Thread.detachNewThread {
                began.signal()
                do throws(DatabaseError) {
                    try UsageLock.exclusive(store, timeout: 600).release()
                } catch {
                    told.withLock { $0 = error }
                }
                done.signal()
            }
            began.wait()
            // The other thread may have asked by now, or asks later.
            for _ in 0..<200 { sched_yield() }
            lock?.release()
            done.wait()
            #expect(told.withLock { $0 } == nil)
        }
    }

    private func failure(_ call: String, _ code: Int32, _ body: () throws -> Void) throws -> DatabaseError? {
        let counting = CallWatch(directory.path)
        let counted = Result { try body() }
        let calls = counting.endWithAll()
        try counted.get()
        let index = try #require(calls.firstIndex(of: call), "\(calls)")
        let watch = CallWatch(directory.path, failing: index...index, code: code)
        defer { watch.end() }
        return #expect(throws: DatabaseError.self) { try body() }
    }

    /// A file that cannot be examined is not one that is gone, and who may not write to it is told so.
    @Test func aLockFileThatCannotBeExamined() throws {
        let store = try directory.write("db", [])
        func take() throws { try UsageLock.exclusive(store, timeout: 0).release() }
        let unexamined = try failure("lstat db-sealdb-lock", EIO, take)
        #expect(unexamined?.reason == .cannotCreate && unexamined?.message.contains("Cannot lock") == true)
        let other = try UsageLock.shared(store, timeout: 0)
        defer { other?.release() }
        let counting = CallWatch(directory.path, failing: 0...0, code: EACCES)
        let error = #expect(throws: DatabaseError.self) { try take() }
        let calls = counting.endWithAll()
        #expect(calls.count { $0.hasPrefix("open db-sealdb-lock") } == 1, "\(calls)")
        #expect(error?.message.contains(String(cString: strerror(EACCES))) == true, "\(error as Any)")
    }
}
