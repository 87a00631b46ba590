import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// A file that cannot be shortened is left to the system, which frees it when it is closed.
@Suite(.hangLimit)
struct ReplacedFileCallTests {
    private static let size = 5 * off_t(ReplacedFile.bytesOfPiece) / 2

    @Test func aPieceThatCannotBeFreed() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("file")
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0 && ftruncate(descriptor, Self.size) == 0)
        let reference = sealeddb_keep_file(descriptor)
        defer { close(reference) }
        func size() throws -> off_t {
            var status = stat()
            try #require(fstat(reference, &status) == 0)
            return status.st_size
        }
        let file = try #require(ReplacedFile(descriptor, of: FileSystem.status(path)))
        try #require(unlink(path) == 0)
        // Not every file system tells who has a file open.
        let isTold = sealeddb_is_only_descriptor(descriptor) >= 0
        close(descriptor)
        // A child of another test may have a copy of the descriptor until it calls exec: then nothing is tried.
        while isTold {
            let watch = CallWatch(directory.path, failing: 1...1)
            file.free()
            let calls = watch.endWithAll()
            #expect(calls.first?.hasPrefix("fstat file") == true, "\(calls)")
            guard calls.contains(where: { $0.hasPrefix("ftruncate") }) else { continue }
            #expect(calls.count { $0.hasPrefix("ftruncate") } == 1, "\(calls)")
            break
        }
        #expect(try size() == Self.size)
        // It can be tried again.
        while isTold, try size() == Self.size { file.free() }
        #expect(try size() == (isTold ? off_t(ReplacedFile.bytesOfPiece) : Self.size))
    }
}
