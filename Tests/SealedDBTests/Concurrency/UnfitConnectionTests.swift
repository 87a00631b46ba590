import Foundation
import Testing

@testable import SealedDB

/// The connection of a queue or pool is opened anew after an error that shows it to be of no use, and only where nothing is
/// lost with it.
@Suite(.hangLimit)
struct UnfitConnectionTests {
    enum Kind: CaseIterable, Sendable { case queue, pool }

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func access(_ kind: Kind) throws -> any DatabaseAccess & WriterOwner {
        let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        let path = directory.file("db")
        switch kind {
        case .queue: return try DatabaseQueue(path: path, configuration: configuration)
        case .pool: return DatabasePool(path: path, configuration: configuration)
        }
    }

    private static let codes = [
        SQLITE_CANTOPEN, SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_IOERR, SQLITE_READONLY_DBMOVED,
    ]

    /// Blocks that let out errors of something else than their connection.
    private func failElsewhere(_ access: any DatabaseAccess) {
        let error = #expect(throws: DatabaseError.self) {
            try access.writeWithoutTransaction { db in
                try db.executeUpdate("ATTACH ? AS o", values: [directory.file("no/such")])
            }
        }
        #expect(error?.code == SQLITE_CANTOPEN)
        for code in UnfitConnectionTests.codes {
            let error = DatabaseError(extendedCode: code, message: "of another store")
            #expect(throws: error) { try access.write { _ in throw error } }
            #expect(throws: error) { try access.writeWithoutTransaction { _ in throw error } }
            #expect(throws: error) { try access.read { _ in throw error } }
        }
    }

    /// A block in which SQLite says of its own connection what the code means.
    private func failItself(_ access: any DatabaseAccess, _ code: Int32 = SQLITE_CORRUPT) {
        let error = #expect(throws: DatabaseError.self) {
            try access.writeWithoutTransaction { db in try db.openConnection().check(code) }
        }
        #expect(error?.extendedCode == code)
    }

    @Test(arguments: [nil, "", ":memory:"] as [String?])
    func whatHasNoFileStays(path: String?) throws {
        let queue = try DatabaseQueue(path: path, configuration: Configuration())
        try queue.write { db in try db.fill(rows: 1000) }
        failElsewhere(queue)
        for code in UnfitConnectionTests.codes { failItself(queue, code) }
        #expect(try queue.read { db in try db.integers("SELECT count(*) FROM t") } == [1000])
    }

    @Test(arguments: Kind.allCases)
    func errorsOfSomethingElseCloseNothing(kind: Kind) throws {
        let access = try access(kind)
        try access.write { db in try db.fill(rows: 10) }
        failElsewhere(access)
        #expect(access.sharedWriter.isOpen)
        #expect(try access.read { db in try db.integers("SELECT count(*) FROM t") } == [10])
    }

    @Test(arguments: Kind.allCases)
    func itsOwnErrorsCloseIt(kind: Kind) throws {
        let access = try access(kind)
        try access.write { db in try db.fill(rows: 10) }
        for code in [SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_IOERR, SQLITE_READONLY_DBMOVED] {
            failItself(access, code)
            #expect(!access.sharedWriter.isOpen)
            #expect(try access.write { db in try db.integers("SELECT count(*) FROM t") } == [10])
        }
        failItself(access, SQLITE_CANTOPEN)
        #expect(access.sharedWriter.isOpen)
    }

    /// Also in a transaction, whether a block has it to itself or not.
    @Test(arguments: Kind.allCases, [true, false])
    func itsErrorsInTransactionsCloseIt(kind: Kind, isAlone: Bool) throws {
        let access = try access(kind)
        try access.write { db in try db.fill(rows: 10) }
        let error = #expect(throws: DatabaseError.self) {
            try access.write(alone: isAlone) { db in
                try db.fill(rows: 1)
                try db.openConnection().check(SQLITE_CORRUPT)
            }
        }
        #expect(error?.code == SQLITE_CORRUPT)
        #expect(!access.sharedWriter.isOpen)
        #expect(try access.read { db in try db.integers("SELECT count(*) FROM t") } == [10])
    }

    /// No block has an error then.
    @Test(arguments: Kind.allCases) func aCommitThatFailsClosesIt(kind: Kind) throws {
        let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        let failed = try FailedCall(
            "fdatasync db-wal",
            prepare: { directory in try Database.testing(directory.file("db"), journalMode: .wal).fill(rows: 3) },
            { directory in
                let path = directory.file("db")
                let access: any DatabaseAccess & WriterOwner =
                    kind == .queue
                    ? try DatabaseQueue(path: path, configuration: configuration)
                    : DatabasePool(path: path, configuration: configuration)
                // What it throws is for other tests.
                let isDone = (try? access.write { db in try db.fill(rows: 1) }) != nil
                #expect(access.sharedWriter.isOpen == isDone)
                return isDone
            }
        )
        #expect(failed.value == false)
    }

    @Test(arguments: Kind.allCases, [true, false])
    func whatWouldBeLostWithItKeepsItOpen(kind: Kind, isAttached: Bool) throws {
        let access = try access(kind)
        try access.writeWithoutTransaction { db in
            if isAttached {
                try db.attach(directory.file("x"), as: "x", key: isEncrypting ? try .testing(1) : nil)
            } else {
                try db.executeUpdate("CREATE TEMP TABLE x AS SELECT 7 AS a", values: nil)
            }
        }
        failElsewhere(access)
        failItself(access)
        try access.writeWithoutTransaction { db in
            if isAttached {
                try db.executeUpdate("CREATE TABLE x.y (a)", values: nil)
                try db.executeUpdate("DETACH x", values: nil)
            } else {
                #expect(try db.integers("SELECT a FROM temp.x") == [7])
                try db.executeUpdate("DROP TABLE temp.x", values: nil)
            }
        }
        failItself(access)
        #expect(!access.sharedWriter.isOpen)
    }

    @Test func lentConnectionsStay() throws {
        let pool = DatabasePool(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        pool.maximumNumberOfDatabasesToCreate = 1
        pool.inDatabase { db in #expect(db.executeStatements("CREATE TEMP TABLE x AS SELECT 7 AS a")) }
        for code in UnfitConnectionTests.codes {
            #expect(throws: DatabaseError.self) {
                try pool.inDatabase { _ throws in throw DatabaseError(extendedCode: code, message: "of another store") }
            }
        }
        #expect(try pool.inDatabase { db throws in try db.integers("SELECT a FROM temp.x") } == [7])
    }
}
