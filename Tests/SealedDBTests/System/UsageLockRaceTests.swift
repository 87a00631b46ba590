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

    private final class Meeting: Sendable {
        let count = Atomic(0)
    }

    /// Each of two refuses the other one what only the last one gets.
    @Test func twoWhoLeaveAtTheSameTime() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.write("db", [1])
        var rounds = 0
        for _ in 0..<4000 where directory.names == ["db"] {
            let locks = try (0..<2).map { _ in try #require(try UsageLock.shared(store, timeout: 60)) }
            let meeting = Meeting()
            let threads = locks.map { lock in
                nonisolated(unsafe) let lock = lock  // Each thread has one of its own.
                return WorkerThread {
                    meeting.count.add(1, ordering: .acquiringAndReleasing)
                    while meeting.count.load(ordering: .acquiring) < 2 { sched_yield() }
                    lock.release()
                }
            }
            for thread in threads { try #require(thread).join() }
            rounds += 1
        }
        #expect(rounds == 4000, "The lock file stayed after round \(rounds).")
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
