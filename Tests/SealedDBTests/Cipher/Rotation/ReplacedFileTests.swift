import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit) struct ReplacedFileTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let descriptor: Int32
    /// Keeps it when it is closed.
    private let reference: Int32
    private let status: stat
    private static let size = 5 * off_t(ReplacedFile.bytesOfPiece) / 2

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("file")
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        reference = sealeddb_keep_file(descriptor)
        try #require(reference >= 0)
        try #require(ftruncate(descriptor, ReplacedFileTests.size) == 0)
        status = try FileSystem.status(path)
    }

    private var size: off_t? {
        var status = stat()
        return fstat(reference, &status) == 0 ? status.st_size : nil
    }

    /// Its first page stays: SQLite would take an empty file for a new database.
    @Test func isFreedWhenNobodyHasIt() throws {
        let file = try #require(ReplacedFile(descriptor, of: status))
        try #require(unlink(path) == 0)
        // Not every file system tells who has a file open.
        let isTold = sealeddb_is_only_descriptor(descriptor) >= 0
        close(descriptor)
        #expect(size == ReplacedFileTests.size)
        file.free()
        // A child of another test may have a copy of the descriptor until it calls exec.
        while isTold, size == ReplacedFileTests.size { file.free() }
        #expect(size == (isTold ? off_t(ReplacedFile.bytesOfPiece) : ReplacedFileTests.size))
        close(reference)
    }

    /// Somebody has kept it as a copy.
    @Test func isLeftAloneUnderAnotherName() throws {
        let file = try #require(ReplacedFile(descriptor, of: status))
        try #require(link(path, directory.file("copy")) == 0)
        try #require(unlink(path) == 0)
        close(descriptor)
        file.free()
        #expect(size == ReplacedFileTests.size)
        close(reference)
    }

    /// Somebody reads it.
    @Test func isLeftAloneWhileItIsOpen() throws {
        let file = try #require(ReplacedFile(descriptor, of: status))
        try #require(unlink(path) == 0)
        file.free()
        #expect(size == ReplacedFileTests.size)
        close(descriptor)
        close(reference)
    }

    /// As if another thread had closed the descriptor, and had got its number for another file.
    @Test func anotherFileIsNotKept() throws {
        let other = open(directory.file("other"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(other >= 0)
        #expect(ReplacedFile(other, of: status) == nil)
        #expect(ReplacedFile(-1, of: status) == nil)
        for descriptor in [other, descriptor, reference] { close(descriptor) }
    }

    /// The locks of SQLite would be lost if another descriptor were closed.
    @Test func lettingGoKeepsTheLocks() throws {
        var lock = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 1, l_pid: 0)
        try #require(fcntl(descriptor, F_SETLK, &lock) == 0)
        var file = ReplacedFile(descriptor, of: status)
        #expect(file != nil)
        file = nil
        // The lock belongs to the process. Another process, or an open file description, cannot have it.
        let other = open(path, O_RDWR | O_CLOEXEC)
        try #require(other >= 0)
        var (type, count) = (Int32(F_WRLCK), 1 as Int64)
        #expect(sealeddb_excluding_lock(other, &type, 0, &count) == 0)
        #expect(type == F_WRLCK)
        for descriptor in [other, descriptor, reference] { close(descriptor) }
    }
}
