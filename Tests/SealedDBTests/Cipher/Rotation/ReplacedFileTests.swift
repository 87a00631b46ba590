import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

@Suite struct ReplacedFileTests {
    private let directory: TemporaryDirectory
    private let path: String
    /// Open, with a size of several pieces.
    private let descriptor: Int32
    private static let size = off_t(40 << 20) + 1

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("file")
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        try #require(ftruncate(descriptor, ReplacedFileTests.size) == 0)
    }

    private var size: off_t? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.st_size : nil
    }

    @Test func isFreedWhenItHasNoName() throws {
        let file = try #require(ReplacedFile(descriptor))
        try #require(unlink(path) == 0)
        #expect(size == ReplacedFileTests.size)
        file.free()
        #expect(size == 0)
        close(descriptor)
    }

    /// Somebody has kept it as a copy.
    @Test func isLeftAloneUnderAnotherName() throws {
        let file = try #require(ReplacedFile(descriptor))
        try #require(link(path, directory.file("copy")) == 0)
        try #require(unlink(path) == 0)
        file.free()
        #expect(size == ReplacedFileTests.size)
        close(descriptor)
    }

    /// The locks of SQLite would be lost if another descriptor were closed.
    @Test func lettingGoKeepsTheLocks() throws {
        var lock = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 1, l_pid: 0)
        try #require(fcntl(descriptor, F_SETLK, &lock) == 0)
        var file = ReplacedFile(descriptor)
        #expect(file != nil)
        file = nil
        // The lock belongs to the process. Another process, or an open file description, cannot have it.
        let other = open(path, O_RDWR | O_CLOEXEC)
        try #require(other >= 0)
        var (type, count) = (Int32(F_WRLCK), 1 as Int64)
        #expect(sealeddb_excluding_lock(other, &type, 0, &count) == 0)
        #expect(type == F_WRLCK)
        close(other)
        close(descriptor)
    }

    @Test func withoutAFileNothingIsKept() {
        close(descriptor)
        #expect(ReplacedFile(-1) == nil)
    }
}
