import Foundation
import Synchronization
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct UsageLockTests {
    private let directory: TemporaryDirectory
    private let store: String

    init() throws {
        directory = try TemporaryDirectory()
        store = directory.file("db")
        try Data([1]).write(to: URL(fileURLWithPath: store))
    }

    private func reason(_ take: () throws(DatabaseError) -> UsageLock?) -> DatabaseError.Reason? {
        do throws(DatabaseError) {
            _ = try take()
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func usersShareAndReplacersExclude() throws {
        let first = try #require(try UsageLock.shared(store, timeout: 0))
        let second = try #require(try UsageLock.shared(store, timeout: 0))
        #expect(reason { () throws(DatabaseError) in try UsageLock.exclusive(store, timeout: 0) } == .busy)
        first.release()
        #expect(reason { () throws(DatabaseError) in try UsageLock.exclusive(store, timeout: 0) } == .busy)
        second.release()
        let replacer = try UsageLock.exclusive(store, timeout: 0)
        #expect(reason { () throws(DatabaseError) in try UsageLock.shared(store, timeout: 0) } == .busy)
        #expect(reason { () throws(DatabaseError) in try UsageLock.exclusive(store, timeout: 0.01) } == .busy)
        replacer.release()
        #expect(try UsageLock.shared(store, timeout: 0) != nil)
    }

    @Test func lastUserRemovesTheFile() throws {
        let first = try UsageLock.shared(store, timeout: 0)
        let second = try UsageLock.shared(store, timeout: 0)
        first?.release()
        first?.release()
        #expect(directory.names == ["db", "db-sealdb-lock"])
        second?.release()
        #expect(directory.names == ["db"])
        try UsageLock.exclusive(store, timeout: 0).release()
        #expect(directory.names == ["db"])
    }

    @Test func fileOfAKilledProcessIsTakenOver() throws {
        #expect(FileManager.default.createFile(atPath: store + "-sealdb-lock", contents: nil))
        let lock = try UsageLock.exclusive(store, timeout: 0)
        #expect(directory.names == ["db", "db-sealdb-lock"])
        lock.release()
        #expect(directory.names == ["db"])
    }

    @Test func fileThatSomebodyPutInItsPlaceStays() throws {
        let lock = try UsageLock.shared(store, timeout: 0)
        unlink(store + "-sealdb-lock")
        let other = try UsageLock.shared(store, timeout: 0)
        lock?.release()
        #expect(directory.names == ["db", "db-sealdb-lock"])
        #expect(reason { () throws(DatabaseError) in try UsageLock.exclusive(store, timeout: 0) } == .busy)
        other?.release()
    }

    @Test(arguments: [0o600, 0o640, 0o664, 0o400])
    func fileHasTheModeOfTheStore(mode: Int) throws {
        chmod(store, mode_t(mode))
        let lock = try UsageLock.shared(store, timeout: 0)
        let found = try FileManager.default.attributesOfItem(atPath: store + "-sealdb-lock")[.posixPermissions] as? Int
        #expect(found == mode | 0o600)
        lock?.release()
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func fileHasTheOwnerOfTheStore() throws {
        #expect(chown(store, 65534, 65533) == 0)
        let lock = try UsageLock.shared(store, timeout: 0)
        var status = stat()
        #expect(stat(store + "-sealdb-lock", &status) == 0)
        #expect(status.st_uid == 65534 && status.st_gid == 65533)
        lock?.release()
    }

    /// Whoever may write has a lock, or does not get the store.
    @Test func noPlaceForALockFile() throws {
        try FileManager.default.createDirectory(atPath: store + "-sealdb-lock", withIntermediateDirectories: false)
        for isForReadingAlone in [true, false] {
            #expect(
                reason { () throws(DatabaseError) in
                    try UsageLock.shared(store, timeout: 0, isForReadingAlone: isForReadingAlone)
                } == .cannotCreate
            )
        }
        #expect(reason { () throws(DatabaseError) in try UsageLock.exclusive(store, timeout: 0) } == .cannotCreate)
        rmdir(store + "-sealdb-lock")
        symlink("elsewhere", store + "-sealdb-lock")
        #expect(reason { () throws(DatabaseError) in try UsageLock.shared(store, timeout: 0) } == .cannotCreate)
        #expect(reason { () throws(DatabaseError) in try UsageLock.exclusive(store, timeout: 0) } == .cannotCreate)
        #expect(directory.names == ["db", "db-sealdb-lock"])
    }

    @Test func fileOfSomebodyElseIsLeftAlone() throws {
        try directory.write("db-sealdb-lock", [1, 2, 3])
        for mode in [UsageLock.Mode.shared, .exclusive] {
            let error = #expect(throws: DatabaseError.self) {
                _ =
                    mode == .shared
                    ? try UsageLock.shared(store, timeout: 0) : try UsageLock.exclusive(store, timeout: 0)
            }
            #expect(error?.reason == .cannotCreate && error?.message.contains("db-sealdb-lock is no lock file") == true)
        }
        #expect(try directory.bytes("db-sealdb-lock") == Data([1, 2, 3]))
    }

    /// Users who come and go all the time never meet a replacer, and are never told that there is one when there is not.
    @Test func manyComeAndGo() throws {
        let users = Atomic(0)
        let replacers = Atomic(0)
        let mistakes = Atomic(0)
        let replacements = Atomic(0)
        let store = store
        DispatchQueue.concurrentPerform(iterations: 8) { worker in
            for _ in 0..<400 {
                if worker < 2 {
                    guard let lock = try? UsageLock.exclusive(store, timeout: 0) else { continue }
                    if replacers.add(1, ordering: .sequentiallyConsistent).oldValue != 0 {
                        mistakes.add(1, ordering: .relaxed)
                    }
                    if users.load(ordering: .sequentiallyConsistent) != 0 { mistakes.add(1, ordering: .relaxed) }
                    replacements.add(1, ordering: .relaxed)
                    replacers.subtract(1, ordering: .sequentiallyConsistent)
                    lock.release()
                } else {
                    guard let lock = try? UsageLock.shared(store, timeout: 60) else {
                        mistakes.add(1, ordering: .relaxed)
                        continue
                    }
                    users.add(1, ordering: .sequentiallyConsistent)
                    if replacers.load(ordering: .sequentiallyConsistent) != 0 { mistakes.add(1, ordering: .relaxed) }
                    users.subtract(1, ordering: .sequentiallyConsistent)
                    lock.release()
                }
            }
        }
        #expect(mistakes.load(ordering: .relaxed) == 0)
        #expect(directory.names == ["db"])
        // A lone user is never refused, though the one before is still removing the file.
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<400 where (try? UsageLock.shared(store, timeout: 0)) == nil {
                mistakes.add(1, ordering: .relaxed)
            }
        }
        #expect(mistakes.load(ordering: .relaxed) == 0)
    }

    /// Only another file in its place is told to be one.
    @Test func aLockFileThatCannotBeMade() throws {
        do throws(DatabaseError) {
            _ = try UsageLock.exclusive(directory.file("no/db"), timeout: 0)
            Issue.record("There is no such directory.")
        } catch {
            #expect(error.reason == .cannotCreate)
            #expect(error.message.contains("Cannot lock") && !error.message.contains("no lock file"), "\(error)")
        }
    }
}
