import Foundation
import Testing

@testable import SealedDB

/// Files that are moved, and files that somebody writes to, while a connection has them open.
@Suite(.hangLimit)
struct MovedStoreTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// In WAL mode SQLite would commit to a log beside a name that is another file's.
    @Test(arguments: [Configuration.JournalMode.wal, .delete], [false, true])
    func nothingIsCommittedToAFileWithoutItsName(mode: Configuration.JournalMode, isReplaced: Bool) throws {
        let other = try Database.testing(directory.file("other"))
        try other.fill(rows: 7)
        #expect(other.close())
        let store = try Database.testing(path, journalMode: mode)
        try store.fill(rows: 3)
        #expect(store.beginTransaction())
        try store.run("INSERT INTO t (body) VALUES ('lost')")
        #expect(rename(path, directory.file("moved")) == 0)
        if isReplaced { #expect(rename(directory.file("other"), path) == 0) }
        let error = #expect(throws: DatabaseError.self) { try store.run("COMMIT") }
        #expect(error?.extendedCode == SQLITE_READONLY_DBMOVED, "\(error as Any)")
        #expect(error?.reason == (isReplaced ? .sqlite : .noSuchFile), "\(error as Any)")
        #expect(error?.message.contains("was moved, removed or replaced while it was open") == true)
        #expect(!store.isInTransaction)
        store.close()
    }

    /// What is looked at without a key is not looked at while a page may be written in part.
    @Test func aFileThatSomebodyWritesTo() throws {
        let store = try Database.testing(path, journalMode: .delete)
        defer { store.close() }
        store.maxBusyRetryTimeInterval = 0
        try store.fill(rows: 3)
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READWRITE)
        defer { connection.close() }
        func look() throws -> Bool {
            try connection.whileNobodyWrites { () throws(DatabaseError) -> Bool? in
                #expect(!store.beginExclusiveTransaction())
                return true
            } ?? false
        }
        #expect(try look())
        #expect(store.beginImmediateTransaction())
        #expect(try !look())
        #expect(store.rollback())
        #expect(store.beginExclusiveTransaction())
        #expect(try !look())
        #expect(store.rollback())
        #expect(try look())
        // The lock is given back.
        #expect(store.beginExclusiveTransaction() && store.rollback())
    }
}
