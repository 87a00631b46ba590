import Foundation
import Testing

@testable import SealedDB

/// A log that somebody else writes to, while it is to be written without the key.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeylessLogLockTests {
    /// He is waited for, but not for ever.
    @Test func somebodyWhoWritesForLong() throws {
        let directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        defer { store.close() }
        try store.fill(rows: 3)
        let log = try KeylessLog(path: directory.file("db"), pageSize: 4096, busyTimeout: 0, newHeader: [], lock: nil)
        defer { log.close() }
        #expect(store.executeStatements("BEGIN IMMEDIATE"))
        var isCalled = false
        let error = #expect(throws: DatabaseError.self) { try log.whileNobodyWrites { _ in isCalled = true } }
        #expect(
            error?.code == SQLITE_BUSY && error?.message.contains("Somebody writes to") == true,
            "\(String(describing: error))"
        )
        #expect(!isCalled)
        #expect(store.executeStatements("COMMIT"))
        try log.whileNobodyWrites { _ in isCalled = true }
        #expect(isCalled)
    }
}
