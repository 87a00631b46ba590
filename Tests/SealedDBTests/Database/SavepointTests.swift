import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct SavepointTests {
    private struct Failure: Error {}

    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (x)", values: nil)
    }

    /// The outermost savepoint is a transaction, which ends with it: else all that follows would wait for a COMMIT.
    @Test func outermostEndsItsTransaction() throws {
        try database.savepoint { try database.executeUpdate("INSERT INTO t VALUES (1)", values: nil) }
        #expect(!database.isInTransaction)
        #expect(throws: Failure.self) {
            try database.savepoint {
                try database.executeUpdate("INSERT INTO t VALUES (2)", values: nil)
                throw Failure()
            }
        }
        #expect(!database.isInTransaction)
        #expect(database.inSavePoint { $0.pointee = true } == nil)
        #expect(!database.isInTransaction)
        #expect(try database.integers("SELECT x FROM t") == [1])
    }

    @Test func innerOneLeavesTheTransactionAsItIs() throws {
        try database.inTransaction {
            try database.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
            #expect(throws: Failure.self) {
                try database.savepoint {
                    try database.executeUpdate("INSERT INTO t VALUES (2)", values: nil)
                    throw Failure()
                }
            }
            #expect(database.isInTransaction)
            try database.executeUpdate("INSERT INTO t VALUES (3)", values: nil)
        }
        #expect(try database.integers("SELECT x FROM t ORDER BY x") == [1, 3])
    }

    private func insert(_ value: Int) throws {
        try database.executeUpdate("INSERT INTO t VALUES (?)", values: [value])
    }

    /// What it committed would be told to be undone.
    @Test(arguments: ["COMMIT; BEGIN", "END; BEGIN EXCLUSIVE", "ROLLBACK; BEGIN", "BEGIN", "COMMIT"])
    func blocksCannotEndTheirTransaction(script: String) throws {
        func block() throws {
            try insert(1)
            #expect(!database.executeStatements(script))
            #expect((database.lastError() as? DatabaseError)?.reason == .misuse)
            #expect(database.isInTransaction)
            try insert(2)
            throw Failure()
        }
        #expect(throws: Failure.self) { try database.inTransaction { try block() } }
        #expect(throws: Failure.self) { try database.savepoint { try block() } }
        #expect(throws: Failure.self) { try database.savepoint { try database.savepoint { try block() } } }
        #expect(!database.isInTransaction)
        #expect(try database.integers("SELECT x FROM t").isEmpty)
        // Elsewhere they are as in FMDB.
        #expect(database.beginTransaction() && database.commit())
        #expect(database.executeStatements("BEGIN; ROLLBACK"))
    }

    @Test func callsInBlocksCannotEndTheirTransaction() throws {
        try database.inTransaction {
            try insert(1)
            #expect(!database.commit() && !database.beginTransaction() && database.hadError())
            try insert(2)
        }
        #expect(try database.integers("SELECT x FROM t") == [1, 2])
        #expect(database.beginTransaction())
        #expect(throws: DatabaseError.self) {
            try database.savepoint {
                try insert(3)
                // Looked at, and still not turned into a commit.
                #expect(!database.rollback() && database.hadError())
            }
        }
        #expect(database.isInTransaction && database.commit())
        #expect(try database.integers("SELECT x FROM t") == [1, 2])
    }

    /// In FMDB's blocks nobody may look at the failure.
    @Test func aRollbackInABlockIsNotTurnedIntoACommit() throws {
        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
        queue.inDatabase { db in #expect(db.executeStatements("CREATE TABLE t (x)")) }
        func block(_ db: Database) {
            #expect(db.executeUpdate("INSERT INTO t VALUES (1)", withArgumentsIn: []))
            db.rollback()
            #expect(db.executeUpdate("INSERT INTO t VALUES (2)", withArgumentsIn: []))
        }
        let inTransaction = queue.inTransaction { db, _ in block(db) }
        let inSavePoint = queue.inSavePoint { db, _ in block(db) }
        for error in [inTransaction, inSavePoint] { #expect((error as? DatabaseError)?.reason == .misuse) }
        #expect(try queue.read { db in try db.integers("SELECT x FROM t") } == [])
    }

    /// What the block wrote is not committed because it could not be taken back.
    @Test func changesThatCannotBeTakenBackAreNotKept() throws {
        database.authorizer = { request in
            if case .savepoint("ROLLBACK", _) = request.action { .deny } else { .allow }
        }
        #expect(throws: Failure.self) {
            try database.savepoint {
                try database.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                throw Failure()
            }
        }
        database.authorizer = nil
        #expect(!database.isInTransaction)
        #expect(try database.integers("SELECT x FROM t").isEmpty)
    }

    /// Where not even the transaction can be rolled back, it ends with the connection.
    @Test func transactionsThatCannotBeRolledBackAreNotKept() throws {
        let directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"))
        try database.executeUpdate("CREATE TABLE t (x)", values: nil)
        database.authorizer = { request in
            if case .transaction("ROLLBACK") = request.action { .deny } else { .allow }
        }
        #expect(throws: Failure.self) {
            try database.inTransaction {
                try database.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                throw Failure()
            }
        }
        #expect(!database.isInTransaction)
        #expect(!database.executeStatements("COMMIT"))
        let other = try Database.testing(directory.file("db"))
        #expect(try other.integers("SELECT x FROM t").isEmpty)
    }
}
