import Foundation
import Testing

@testable import SealedDB

/// Which failures may have come after the moment of a commit, by SQLite's code and the journal of the store.
@Suite(.hangLimit)
struct CommitMomentTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let afterCrash = "may be stored, now or after a crash"
    private static let mayBeStored = "may be stored: what"
    private static let isStored = "The transaction is stored"
    private static let journalWasRemoved = "may be stored: somebody else had removed its journal"

    /// What is said of some codes in a journal mode; `nil` if they come before the moment.
    struct Row: Sendable, CustomTestStringConvertible {
        let mode: String
        let text: String?
        let codes: [ResultCode]

        var testDescription: String { "\(mode), \(text ?? "nothing")" }
    }

    private static let rows = [
        Row(
            mode: "wal",
            text: afterCrash,
            codes: [
                .SQLITE_IOERR_SHMSIZE, .SQLITE_IOERR_SHMMAP, .SQLITE_IOERR_FSYNC, .SQLITE_IOERR_UNLOCK, .SQLITE_NOMEM,
            ]
        ),
        Row(
            mode: "wal",
            text: nil,
            codes: [
                .SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_WRITE, .SQLITE_IOERR_LOCK, .SQLITE_FULL,
                .SQLITE_BUSY, .SQLITE_CONSTRAINT,
            ]
        ),
        Row(
            mode: "delete",
            text: mayBeStored,
            codes: [
                .SQLITE_IOERR_RDLOCK, .SQLITE_IOERR_UNLOCK, .SQLITE_IOERR_FSTAT, .SQLITE_IOERR_TRUNCATE,
                .SQLITE_IOERR_DELETE,
            ]
        ),
        Row(mode: "delete", text: journalWasRemoved, codes: [.SQLITE_IOERR_DELETE_NOENT]),
        Row(
            mode: "delete",
            text: nil,
            codes: [
                .SQLITE_IOERR_READ, .SQLITE_IOERR_WRITE, .SQLITE_IOERR_FSYNC, .SQLITE_IOERR_LOCK,
                .SQLITE_NOMEM, .SQLITE_FULL, .SQLITE_BUSY,
            ]
        ),
        Row(
            mode: "truncate",
            text: mayBeStored,
            codes: [.SQLITE_IOERR_FSYNC, .SQLITE_IOERR_WRITE, .SQLITE_IOERR_TRUNCATE]
        ),
        Row(mode: "truncate", text: nil, codes: [.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_NOMEM]),
        Row(
            mode: "persist",
            text: mayBeStored,
            codes: [.SQLITE_IOERR_FSYNC, .SQLITE_IOERR_WRITE, .SQLITE_IOERR_TRUNCATE]
        ),
        Row(mode: "persist", text: nil, codes: [.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_NOMEM]),
    ]

    private func database(_ mode: String) throws -> Database {
        let database = try Database.testing(directory.file("db"))
        #expect(try database.value("PRAGMA journal_mode = \(mode)") == .text(mode))
        try database.run("CREATE TABLE t (n)")
        return database
    }

    @Test(arguments: rows)
    func whatEachCodeSays(row: Row) throws {
        let database = try database(row.mode)
        defer { database.close() }
        #expect(try database.value("PRAGMA locking_mode") == .text("normal"))
        let connection = try #require(database.connection)
        for code in row.codes {
            let said = connection.stateAfterMoment(code.rawValue)
            if let text = row.text {
                #expect(said?.contains(text) == true, "\(code): \(said ?? "nothing")")
            } else {
                #expect(said == nil, "\(code)")
            }
        }
    }

    /// Without memory the mode may be impossible to ask for, and then nobody can say that nothing is kept.
    @Test func aModeThatCannotBeAskedFor() throws {
        let database = try database("delete")
        let connection = try #require(database.connection)
        #expect(connection.stateAfterMoment(ResultCode.SQLITE_NOMEM.rawValue) == nil)
        database.close()
        #expect(connection.stateAfterMoment(ResultCode.SQLITE_NOMEM.rawValue)?.contains("may be stored") == true)
        #expect(connection.stateAfterMoment(ResultCode.SQLITE_BUSY.rawValue) == nil)
    }

    /// The end of the journal is the moment, whoever removed it.
    @Test(arguments: ["COMMIT", "END", "RELEASE s"])
    func aJournalThatSomebodyRemoves(end: String) throws {
        let database = try database("delete")
        defer { database.close() }
        try database.run(end.hasPrefix("RELEASE") ? "SAVEPOINT s" : "BEGIN")
        try database.run("INSERT INTO t VALUES (7)")
        unlink(directory.file("db-journal"))
        let error = #expect(throws: DatabaseError.self) { try database.run(end) }
        #expect(error?.mayBeStored == true)
        #expect(error?.message.contains(Self.journalWasRemoved) == true, "\(String(describing: error))")
        database.close()
        #expect(try Database.testing(directory.file("db")).integers("SELECT n FROM t") == [7])
    }

    /// What is rolled back is not said to be stored, and neither is what is still open.
    @Test(arguments: ["ROLLBACK", "ROLLBACK TO s", "RELEASE nothing"])
    func whatCommitsNothing(end: String) throws {
        let database = try database("delete")
        defer { database.close() }
        try database.attach(directory.file("other"), as: "o", key: isEncrypting ? try Key.testing(1) : nil)
        try database.run("BEGIN")
        try database.run("SAVEPOINT s")
        try database.run("INSERT INTO t VALUES (7)")
        unlink(directory.file("db-journal"))
        do {
            try database.run(end)
        } catch let error as DatabaseError {
            #expect(!error.mayBeStored && !error.message.contains("stored"), "\(error)")
        }
        let error = #expect(throws: DatabaseError.self) { try database.releaseSavePoint(withName: "nothing") }
        #expect(error?.mayBeStored == false, "\(String(describing: error))")
    }

    /// By FMDB's calls and in blocks.
    @Test func aJournalThatSomebodyRemovesFromBlocks() throws {
        let database = try database("delete")
        defer { database.close() }
        let blocks: [() throws -> Void] = [
            { try database.savepoint { try self.insertWithoutJournal(database) } },
            { try database.inTransaction { try self.insertWithoutJournal(database) } },
        ]
        for block in blocks {
            let error = #expect(throws: DatabaseError.self) { try block() }
            #expect(error?.mayBeStored == true, "\(String(describing: error))")
            // The savepoint may be open still.
            _ = database.rollback()
        }
        let failure = database.inSavePoint { _ in #expect(throws: Never.self) { try insertWithoutJournal(database) } }
        #expect((failure as? DatabaseError)?.mayBeStored == true, "\(String(describing: failure))")
    }

    private func insertWithoutJournal(_ database: Database) throws {
        try database.run("INSERT INTO t VALUES (7)")
        unlink(directory.file("db-journal"))
    }

    /// SQLite syncs the directory when the journal is gone.
    @Test(arguments: ["wal", "delete", "truncate", "persist"])
    func aDirectoryThatCouldNotBeSynced(mode: String) throws {
        let database = try database(mode)
        defer { database.close() }
        let connection = try #require(database.connection)
        let said = connection.stateAfterMoment(ResultCode.SQLITE_IOERR_DIR_FSYNC.rawValue)
        #expect(said?.contains(CommitMomentTests.isStored) == true, "\(said ?? "nothing")")
    }

    /// Each file has a log of its own.
    @Test func logsOfSeveralFiles() throws {
        let database = try database("wal")
        defer { database.close() }
        let other = directory.file("other")
        try database.attach(other, as: "o", key: isEncrypting ? try Key.testing(1) : nil)
        let connection = try #require(database.connection)
        let said = connection.stateAfterMoment(ResultCode.SQLITE_IOERR_SHMSIZE.rawValue)
        #expect(said?.contains("one of them may be stored") == true, "\(said ?? "nothing")")
        #expect(connection.stateAfterMoment(ResultCode.SQLITE_IOERR_WRITE.rawValue) == nil)
    }
}
