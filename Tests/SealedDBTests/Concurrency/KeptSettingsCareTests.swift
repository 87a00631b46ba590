import Foundation
import Testing

@testable import SealedDB

/// What becomes of settings that another connection cannot have, and of what no setting tells.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeptSettingsCareTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func queue() throws -> DatabaseQueue {
        var configuration = Configuration(key: try .testing(1))
        configuration.journalMode = .delete
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in try db.fill(rows: 50) }
        return queue
    }

    @Test func theLastRowIsKept() throws {
        let queue = try queue()
        try queue.inDatabase { db throws in
            try db.executeUpdate("INSERT INTO t VALUES (777, 'x')")
            #expect(db.lastInsertRowId == 777)
        }
        try queue.rotateKey(to: .testing(2))
        let last = try queue.inDatabase { (db) throws -> Int64 in db.lastInsertRowId }
        #expect(last == 777)
    }

    /// The store grows over it before it is opened anew, and the limit goes up with it.
    @Test func aLimitThatIsTooSmallByNow() throws {
        let store = try Database.testing(directory.file("db"))
        try store.fill(rows: 50)
        let limit = try store.integers("PRAGMA page_count")[0]
        #expect(try store.integers("PRAGMA max_page_count = \(limit)") == [limit])
        let settings = try ConnectionSettings(of: #require(store.connection))
        #expect(store.close())
        let other = try Database.testing(directory.file("db"))
        defer { other.close() }
        try other.fill(rows: 500)
        try settings.restore(on: #require(other.connection))
        #expect(try other.integers("PRAGMA max_page_count") == other.integers("PRAGMA page_count"))
    }

    /// A database in memory has a journal of its own kind.
    @Test func aJournalModeThatCannotBeRestored() throws {
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        defer { store.close() }
        let settings = try ConnectionSettings(of: #require(store.connection))
        let memory = try Database.testing(nil)
        defer { memory.close() }
        let connection = try #require(memory.connection)
        let error = #expect(throws: DatabaseError.self) { try settings.restore(on: connection) }
        #expect(error?.message.contains("and journal_mode could not be set") == true, "\(error as Any)")
    }

    /// A connection that does not answer may have something that would be lost with it.
    @Test func whatIsNotKnownMayBeThere() throws {
        let store = try Database.testing(directory.file("db"))
        let connection = try #require(store.connection)
        #expect(!connection.mayHaveTemporaries)
        #expect(store.close())
        #expect(connection.mayHaveTemporaries)
    }
}
