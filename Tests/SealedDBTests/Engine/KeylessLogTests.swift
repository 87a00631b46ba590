import Foundation
import Testing

@testable import SealedDB

/// A log that is written without the key, as a follower does it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeylessLogTests {
    /// A closed store that had a log, and what that log began with.
    @discardableResult
    private static func make(_ directory: TemporaryDirectory) throws -> [UInt8] {
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        try store.fill(rows: 3)
        let header = Array(try directory.bytes("db-wal").prefix(32))
        try #require(store.close())
        try #require(directory.names == ["db"])
        return header
    }

    private static func open(_ directory: TemporaryDirectory, _ header: [UInt8]) throws -> KeylessLog {
        try KeylessLog(path: directory.file("db"), pageSize: 4096, busyTimeout: 0, newHeader: header, lock: nil)
    }

    /// A file that is empty, or has another mode than the store, is not left for those who open the store next.
    @Test(arguments: ["open db-wal", "fchmod db-wal"]) func aLogThatCannotBeBegunIsNotLeft(call: String) throws {
        let header = try Self.make(TemporaryDirectory())
        let failed = try FailedCall(call, prepare: { _ = try Self.make($0) }) { directory -> Void in
            let log = try Self.open(directory, header)
            log.close()
        }
        #expect(failed.error?.message.contains("was not opened, and is as it was") == true, "\(failed.error as Any)")
        #expect(!failed.directory.names.contains("db-wal"))
        #expect(failed.open == [])
        let database = try Database.testing(failed.directory.file("db"))
        #expect(try database.integers("SELECT count(*) FROM t") == [3])
    }

    @Test func aLogThatIsBegunIsTheStores() throws {
        let directory = try TemporaryDirectory()
        let header = try Self.make(directory)
        #expect(chmod(directory.file("db"), 0o640) == 0)
        let log = try Self.open(directory, header)
        #expect(try FileSystem.status(directory.file("db-wal")).st_mode & 0o777 == 0o640)
        #expect(try log.size() == 32)
        #expect(try log.position().frameCount == 0)
        log.close()
    }
}
