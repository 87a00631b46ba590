import Foundation
import Testing

@testable import SealedDB

/// What is left beside a store when its log was open without the key.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeylessLogCareTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        try store.fill(rows: 30)
        try directory.keep("db", "db-wal", of: store)
    }

    private func open(_ lock: UsageLock? = nil) throws -> KeylessLog {
        let header = Array(try directory.bytes("db-wal").prefix(32))
        return try KeylessLog(path: path, pageSize: 4096, busyTimeout: 0, newHeader: header, lock: lock)
    }

    /// Which frames are moved into the store, and when, is for whoever has the key.
    @Test func closingMovesNothingIntoTheStore() throws {
        let files = try [directory.bytes("db"), directory.bytes("db-wal")]
        let log = try open()
        #expect(try log.position().frameCount > 0)
        #expect(log.close())
        #expect(try [directory.bytes("db"), directory.bytes("db-wal")] == files)
        #expect(try Database.testing(path).integers("SELECT count(*) FROM t") == [30])
    }

    @Test func theLockIsHeldAsLongAsItIsOpen() throws {
        let lock = try UsageLock.shared(path, timeout: 0)
        let log = try open(lock)
        #expect(throws: DatabaseError.self) { try UsageLock.exclusive(path, timeout: 0) }
        #expect(log.close())
        try UsageLock.exclusive(path, timeout: 0).release()
    }

    /// A log that somebody reads stays as it is.
    @Test func aLogThatIsReadIsNotEmptied() throws {
        let log = try open()
        defer { log.close() }
        let reader = try Database.testing(path)
        defer { reader.close() }
        #expect(reader.beginDeferredTransaction())
        #expect(try reader.integers("SELECT count(*) FROM t") == [30])
        let bytes = try directory.bytes("db-wal")
        #expect(try !log.empty())
        #expect(try directory.bytes("db-wal") == bytes)
        #expect(reader.rollback())
        #expect(try log.empty())
        #expect(try directory.bytes("db-wal").isEmpty)
    }

    /// A disk that fails is not somebody who reads.
    @Test func aLogThatCannotBeEmptied() throws {
        let files = try ["db", "db-wal"].map { (name: $0, bytes: try directory.bytes($0)) }
        func opened() throws -> KeylessLog {
            for file in files { try directory.write(file.name, file.bytes) }
            return try open()
        }
        var log = try opened()
        let all = CallWatch(directory.path)
        #expect(try log.empty())
        let write = try #require(all.endWithAll().firstIndex(of: "pwrite db"))
        #expect(log.close())
        unlink(directory.file("db-shm"))
        log = try opened()
        defer { log.close() }
        let failing = CallWatch(directory.path, failing: write...write)
        let error = #expect(throws: DatabaseError.self) { try log.empty() }
        #expect(failing.end(describing: write) == "pwrite db")
        #expect(error?.reason == .ioError, "\(error as Any)")
        #expect(try log.empty())
    }

    /// What is told to others must be there after a power failure.
    @Test func whatIsSyncedIsTheLog() throws {
        let log = try open()
        defer { log.close() }
        let watch = CallWatch(directory.path)
        try log.synchronize()
        let calls = watch.endWithAll()
        #expect(calls.contains { ["fsync db-wal", "fdatasync db-wal"].contains($0) }, "\(calls)")
        // An error of it is not left out either.
        let failing = CallWatch(directory.path, failing: 0...0)
        #expect(throws: DatabaseError.self) { try log.synchronize() }
        failing.end()
    }

    /// Without a header SQLite opens none, and what failed is the reason.
    @Test func aLogThatCannotBeBegun() throws {
        try #require(Database.testing(path).close())
        let header = try header()
        func begin() throws {
            let log = try KeylessLog(path: path, pageSize: 4096, busyTimeout: 0, newHeader: header, lock: nil)
            log.close()
        }
        let all = CallWatch(directory.path)
        try begin()
        let calls = all.endWithAll()
        // SQLite opens it after that.
        let last = try #require(calls.firstIndex(of: "pwrite db-wal"), "\(calls)")
        let steps = calls[...last].indices.filter { ["pwrite db-wal", "open db-wal"].contains(calls[$0]) }
        for step in steps {
            unlink(directory.file("db-wal"))
            unlink(directory.file("db-shm"))
            let failing = CallWatch(directory.path, failing: step...step, code: ENOSPC)
            let error = #expect(throws: DatabaseError.self, "\(calls[step])") { try begin() }
            #expect(failing.end(describing: step) == calls[step])
            #expect(error?.message.contains("No space left") == true, "\(calls[step]): \(error as Any)")
        }
        #expect(try Database.testing(path).integers("SELECT count(*) FROM t") == [30])
    }

    /// More than SQLite reads at once.
    @Test func whatTheFileHasIsRead() throws {
        try #require(Database.testing(path).close())
        let bytes = try Array(directory.bytes("db"))
        try directory.write("db", bytes + [UInt8](repeating: 7, count: 200_000))
        let log = try KeylessLog(path: path, pageSize: 4096, busyTimeout: 0, newHeader: header(), lock: nil)
        defer { log.close() }
        var found = [UInt8](repeating: 1, count: bytes.count + 300_000)
        let count = try found.withUnsafeMutableBytes { try log.read(at: 0, into: $0) }
        #expect(count == bytes.count + 200_000)
        #expect(Array(found[..<bytes.count]) == bytes)
        #expect(found[bytes.count..<count].allSatisfy { $0 == 7 })
    }

    /// That of another store's log, which has one.
    private func header() throws -> [UInt8] {
        let store = try Database.testing(directory.file("other"), journalMode: .wal)
        defer { store.close() }
        try store.fill(rows: 1)
        return Array(try directory.bytes("other-wal").prefix(32))
    }
}
