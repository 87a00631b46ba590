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

    /// Half of what somebody writes could be seen, and what is looked at could change.
    @Test func nobodyWritesWhatIsLookedAt() throws {
        let directory = try TemporaryDirectory()
        let key = isEncrypting ? try Key.testing(1) : nil
        var configuration = Configuration(key: key)
        configuration.busyTimeout = .zero
        let writer = Database(path: directory.file("db"), configuration: configuration)
        try writer.openVerified()
        try writer.fill(rows: 60)
        let opening = StoreOpening(path: directory.file("db"), key: key, busyTimeout: 0).forLooking
        #expect(writer.executeStatements("BEGIN EXCLUSIVE"))
        let error = #expect(throws: DatabaseError.self) { _ = try opening.open() }
        #expect(error?.reason == .busy && error?.message.contains("is locked by") == true, "\(error as Any)")
        #expect(writer.rollback())
        let view = try opening.open()
        #expect(writer.executeStatements("BEGIN IMMEDIATE; DELETE FROM t"))
        #expect(!writer.commit())
        #expect(writer.lastErrorCode() == SQLITE_BUSY)
        #expect(try view.integer("SELECT count(*) FROM t") == 60)
        view.close()
        #expect(writer.commit())
    }

    /// The stock shell in the middle of a transaction.
    @Test func whoElseHasItLockedIsNoFailure() throws {
        let directory = try TemporaryDirectory()
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        shell.arguments = ["sqlcipher", directory.file("db")]
        let (input, output) = (Pipe(), Pipe())
        (shell.standardInput, shell.standardOutput) = (input, output)
        try shell.run()
        input.fileHandleForWriting.write(Data("CREATE TABLE t (n); BEGIN EXCLUSIVE; SELECT 'locked';\n".utf8))
        #expect(output.fileHandleForReading.availableData == Data("locked\n".utf8))
        let error = #expect(throws: DatabaseError.self) { _ = try StoreLock(directory.file("db")) }
        #expect(error?.reason == .busy && error?.message.contains("Another connection has") == true)
        input.fileHandleForWriting.closeFile()
        shell.waitUntilExit(minutes: 10)
        try StoreLock(directory.file("db")).release()
    }

    /// Only that somebody else holds it makes a store one in use; and a lock that failed holds nothing.
    @Test func whatALockFailsBy() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("db", Array(repeating: 1, count: 4096))
        let count = CallWatch(directory.path)
        try StoreLock(path).release()
        let calls = count.endWithAll()
        let lock = try #require(calls.firstIndex(of: "lock db"), "\(calls)")
        let opening = try #require(calls.lastIndex(of: "open db"), "\(calls)")
        for (index, code, reason) in [
            (lock, EAGAIN, .busy), (lock, EACCES, .busy), (lock, ENOLCK, .ioError), (opening, EROFS, .notPermitted),
        ] as [(Int, Int32, DatabaseError.Reason)] {
            let watch = CallWatch(directory.path, failing: index...index, code: code)
            let error = #expect(throws: DatabaseError.self) { try StoreLock(path).release() }
            watch.end()
            #expect(error?.reason == reason, "\(code): \(error as Any)")
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { descriptor in
                // One that is closed meanwhile leads nowhere.
                let file = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + descriptor)
                return file?.hasPrefix(directory.path + "/") == true
            }
            #expect(open == [], "\(code)")
        }
        try StoreLock(path).release()
    }
}
