import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct StoreLockTests {
    /// A child that is about to call exec shares the open file for a moment.
    @Test func theLockEndsWithItsOwnerAlone() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("db", Array(repeating: 1, count: 4096))
        let lock = try StoreLock(path)
        let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        let own = names.first {
            let file = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
            return file.map { $0.hasSuffix("/db") && $0.contains(directory.path) } ?? false
        }
        let copy = dup(try #require(own.flatMap { Int32($0) }))
        let other = sealeddb_open(path, O_RDWR, 0)
        defer { for descriptor in [copy, other] { close(descriptor) } }
        try #require(copy >= 0 && other >= 0)
        #expect(sealeddb_lock_store(other) == -1)
        lock.release()
        #expect(sealeddb_lock_store(other) == 0)
    }
}
