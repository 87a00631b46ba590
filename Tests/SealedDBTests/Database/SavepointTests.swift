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
