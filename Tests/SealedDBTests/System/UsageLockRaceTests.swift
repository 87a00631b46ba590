import Foundation
import Synchronization
import Testing

@testable import SealedDB

/// The last user removes the lock file, and whoever opened it just before must not take that for the lock.
@Suite(.hangLimit)
struct UsageLockRaceTests {
    @Test
    func whoHasTheLockHasItsFile() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.write("db", [1])
        let failures = Log<String>()
        let path = UsageLock.path(ofStore: store)
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<1500 {
                do throws(DatabaseError) {
                    let lock = try UsageLock.shared(store, timeout: 60)
                    // Nobody may remove it while somebody has the lock.
                    if !FileSystem.exists(path) { failures.add("the file of a lock is gone") }
                    lock?.release()
                } catch {
                    failures.add(error.message)
                }
            }
        }
        #expect(Set(failures.values).isEmpty)
        #expect(directory.names == ["db"])
    }

    /// A file of the same name that somebody else made meanwhile is theirs.
    @Test func releaseRemovesItsOwnFileOnly() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.write("db", [1])
        let lock = try UsageLock.shared(store, timeout: 0)
        unlink(UsageLock.path(ofStore: store))
        let other = try UsageLock.shared(store, timeout: 0)
        lock?.release()
        #expect(directory.names == ["db", "db-sealdb-lock"])
        other?.release()
        #expect(directory.names == ["db"])
    }
}
