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

    /// Whoever replaces a store looks for those who have it open, and must not find one that only waits for the lock.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aStoreThatIsBeingReplacedIsNotOpened() throws {
        unlink(store)
        try Database.testing(store).fill(rows: 5)
        var configuration = Configuration(key: try .testing(1))
        configuration.busyTimeout = .zero
        func calls(_ body: (Database) -> Void) -> [String] {
            let watch = CallWatch(directory.path)
            let database = Database(path: store, configuration: configuration)
            body(database)
            database.close()
            return watch.endWithAll()
        }
        let replacer = try UsageLock.exclusive(store, timeout: 0)
        let refused = calls { database in
            let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
            #expect(error?.reason == .busy)
        }
        #expect(refused.contains("open db-sealdb-lock") && !refused.contains("open db"), "\(refused)")
        replacer.release()
        let opened = calls { database in #expect(throws: Never.self) { try database.openVerified() } }
        #expect(opened.contains("open db"), "\(opened)")
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

    /// Who can only read loses nothing without a lock; whoever may write does not get the store.
    @Test(arguments: [EACCES, EPERM, EROFS, ENOSPC]) func noPermissionForALockFile(code: Int32) throws {
        let count = CallWatch(directory.path)
        _ = try UsageLock.shared(store, timeout: 0)
        let calls = count.endWithAll()
        let openings = calls.indices.filter { calls[$0].hasPrefix("open") && calls[$0].hasSuffix("db-sealdb-lock") }
        // The first one looks whether there is a file.
        try #require(openings.count == 2, "\(calls)")
        for isForReadingAlone in [true, false] {
            let watch = CallWatch(directory.path, failing: openings[1]...openings[1], code: code)
            defer { watch.end() }
            var isLocked = false
            let told = reason { () throws(DatabaseError) in
                let lock = try UsageLock.shared(store, timeout: 0, isForReadingAlone: isForReadingAlone)
                isLocked = lock != nil
                return lock
            }
            let expected: DatabaseError.Reason? =
                code == ENOSPC ? .noSpace : isForReadingAlone ? nil : .cannotCreate
            #expect(told == expected)
            #expect(!isLocked)
        }
        #expect(directory.names == ["db"])
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

    // MARK: Calls of the system that fail

    private func firstCall(_ name: String) throws -> Int {
        let count = CallWatch(directory.path)
        try UsageLock.shared(store, timeout: 0)?.release()
        let calls = count.endWithAll()
        return try #require(calls.firstIndex { $0.hasPrefix(name + " ") }, "\(calls)")
    }

    /// Nobody is left with a lock that nobody knows of, and the error says what did not happen.
    @Test(arguments: [false, true], [false, true])
    func whateverFailsNoLockIsLeft(isShared: Bool, isLeft: Bool) throws {
        func take() throws(DatabaseError) -> UsageLock? {
            guard isShared else { return try UsageLock.exclusive(store, timeout: 0) }
            return try UsageLock.shared(store, timeout: 0)
        }
        // As a process that was killed leaves it.
        func leave() throws { if isLeft { try directory.write("db-sealdb-lock", []) } }
        try leave()
        let count = CallWatch(directory.path)
        try take()?.release()
        let calls = count.endWithAll()
        #expect(calls.filter { $0.hasPrefix("lock ") }.count == 2, "\(calls)")
        for index in calls.indices {
            try leave()
            let watch = CallWatch(directory.path, failing: index...index, code: EIO)
            var lock: UsageLock?
            var told: DatabaseError?
            do throws(DatabaseError) {
                lock = try take()
            } catch {
                told = error
            }
            lock?.release()
            watch.end()
            #expect((lock == nil) == (told != nil), "\(calls[index])")
            if let told {
                #expect(told.reason == .cannotCreate, "\(calls[index]): \(told)")
                #expect(told.message.contains("Cannot lock \(store)-sealdb-lock"), "\(calls[index]): \(told)")
                #expect(told.message.contains("was not opened") == isShared, "\(calls[index]): \(told)")
            }
            #expect(filesOpen(below: directory) == [], "\(calls[index])")
            try UsageLock.exclusive(store, timeout: 0).release()
            #expect(directory.names == ["db"], "\(calls[index])")
        }
    }

    /// The last user removes the file just when somebody takes its lock, which is worth nothing then.
    @Test func aLockWhoseFileIsGoneIsTakenAgain() throws {
        let index = try firstCall("lstat")
        let watch = CallWatch(directory.path, failing: index...index, code: ENOENT)
        let lock = try UsageLock.shared(store, timeout: 0)
        let calls = watch.endWithAll()
        #expect(calls.filter { $0.hasPrefix("lock ") }.count == 2, "\(calls)")
        #expect(reason { () throws(DatabaseError) in try UsageLock.exclusive(store, timeout: 0) } == .busy)
        #expect(filesOpen(below: directory).count == 1)
        lock?.release()
        #expect(directory.names == ["db"])
    }

    /// Who refused it has gone by now; or it cannot be told who it is, and then somebody is at work.
    @Test(arguments: [EAGAIN, EACCES]) func aLockThatIsRefused(code: Int32) throws {
        let index = try firstCall("lock")
        let once = CallWatch(directory.path, failing: index...index, code: code)
        let lock = try UsageLock.shared(store, timeout: 0)
        once.end()
        #expect(lock != nil)
        lock?.release()
        #expect(directory.names == ["db"])
        let watch = CallWatch(directory.path, failing: index...index + 1, code: code)
        let error = #expect(throws: DatabaseError.self) { try UsageLock.shared(store, timeout: 0) }
        let calls = watch.endWithAll()
        #expect(calls.count > index + 1 && calls[index + 1].hasPrefix("getlock "), "\(calls)")
        #expect(error?.reason == .busy)
        #expect(error?.message.contains("by another process. It was not opened") == true, "\(error as Any)")
        #expect(filesOpen(below: directory) == [])
    }

    @Test func whoHasTheLockIsNamed() throws {
        let replacer = try UsageLock.exclusive(store, timeout: 0)
        let shared = #expect(throws: DatabaseError.self) { try UsageLock.shared(store, timeout: 0) }
        // Children that other tests start have a copy for a moment, and may be named too.
        #expect(shared?.message.contains("a new key or format by ") == true, "\(shared as Any)")
        #expect(shared?.message.contains("another connection of this process") == true, "\(shared as Any)")
        replacer.release()
        let user = try UsageLock.shared(store, timeout: 0)
        let exclusive = #expect(throws: DatabaseError.self) { try UsageLock.exclusive(store, timeout: 0) }
        #expect(exclusive?.message.contains("\(store) is open in ") == true, "\(exclusive as Any)")
        #expect(exclusive?.message.contains("another connection of this process") == true, "\(exclusive as Any)")
        #expect(user?.isOf(store) == true && user?.isOf(store + "2") == false)
        user?.release()
    }

    /// It is told before the work begins, and makes nothing.
    @Test func thePlaceIsLookedAtBeforehand() throws {
        try UsageLock.requirePlace(store)
        #expect(directory.names == ["db"])
        try directory.write("db-sealdb-lock", [])
        try UsageLock.requirePlace(store)
        try directory.write("db-sealdb-lock", [1])
        #expect(throws: DatabaseError.self) { try UsageLock.requirePlace(store) }
        // Whoever locks it leaves nothing of it open.
        for isShared in [true, false] {
            #expect(throws: DatabaseError.self) {
                if isShared {
                    _ = try UsageLock.shared(store, timeout: 0)
                } else {
                    _ = try UsageLock.exclusive(store, timeout: 0)
                }
            }
        }
        #expect(filesOpen(below: directory) == [])
        unlink(store + "-sealdb-lock")
        #expect(symlink("elsewhere", store + "-sealdb-lock") == 0)
        #expect(throws: DatabaseError.self) { try UsageLock.requirePlace(store) }
        // This has no bytes.
        unlink(store + "-sealdb-lock")
        #expect(mkfifo(store + "-sealdb-lock", 0o600) == 0)
        #expect(throws: DatabaseError.self) { try UsageLock.requirePlace(store) }
    }
}
