import Foundation
import Testing

@testable import SealedDB

/// SQLite rolls a transaction back in the middle of a block, which does not look, and goes on: nothing of it is kept.
@Suite(.hangLimit)
struct LostTransactionTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private struct Failure: Error {}

    /// Half of a transfer, what makes SQLite roll back, and the other half.
    private static func transfer(_ db: Database, _ end: String) {
        _ = db.executeStatements("UPDATE account SET amount = amount - 70 WHERE id = 1")
        _ = db.executeStatements(end)
        _ = db.executeStatements("UPDATE account SET amount = amount + 70 WHERE id = 2")
        try? db.executeUpdate("UPDATE account SET amount = amount + 70 WHERE id = 2", values: nil)
    }

    enum Call: CaseIterable {
        case transaction, savepoint, fmdbSavepoint, nested
        case queueTransaction, fmdbQueueTransaction, fmdbQueueTransactionRolledBack, fmdbQueueSavepoint, queueWrite,
            fmdbPoolTransaction, migration
    }

    private func run(_ call: Call, _ configuration: Configuration, _ end: String) throws {
        let path = directory.file("db")
        func transfer(_ db: Database) { Self.transfer(db, end) }
        switch call {
        case .queueTransaction, .fmdbQueueTransaction, .fmdbQueueTransactionRolledBack, .fmdbQueueSavepoint,
            .queueWrite:
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { queue.close() }
            switch call {
            case .queueTransaction: try? queue.inTransaction { db in transfer(db) }
            case .fmdbQueueTransaction: queue.inTransaction { db, _ in transfer(db) }
            case .fmdbQueueTransactionRolledBack:
                queue.inTransaction { db, rollback in
                    transfer(db)
                    rollback.pointee = true
                }
            case .fmdbQueueSavepoint: _ = queue.inSavePoint { db, _ in transfer(db) }
            default: try? queue.write { db in transfer(db) }
            }
        case .fmdbPoolTransaction:
            let pool = DatabasePool(path: path, configuration: configuration)
            defer { pool.releaseAllDatabases() }
            pool.inTransaction { db, _ in transfer(db) }
        default:
            let db = Database(path: path, configuration: configuration)
            try db.openVerified()
            defer { db.close() }
            switch call {
            case .transaction: try? db.inTransaction { transfer(db) }
            case .savepoint: try? db.savepoint { transfer(db) }
            case .fmdbSavepoint: _ = db.inSavePoint { _ in transfer(db) }
            case .nested: try? db.inTransaction { try db.savepoint { transfer(db) } }
            default:
                var migrator = Migrator()
                migrator.register("transfer") { db in Self.transfer(db, end) }
                _ = try? migrator.migrate(db)
            }
        }
    }

    @Test(
        arguments: Call.allCases,
        ["INSERT OR ROLLBACK INTO account VALUES (1, 0)", "UPDATE account SET amount = -1 WHERE id = 1"]
    )
    func nothingOfTheBlockIsKept(call: Call, end: String) throws {
        var configuration = Configuration(key: isEncrypting ? try Key.testing(1) : nil)
        configuration.failsBlocksAfterIgnoredErrors = false
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        #expect(
            database.executeStatements(
                """
                CREATE TABLE account (id INTEGER PRIMARY KEY, amount);
                INSERT INTO account VALUES (1, 100), (2, 0);
                CREATE TRIGGER negative BEFORE UPDATE ON account WHEN NEW.amount < 0 BEGIN SELECT RAISE(ROLLBACK, 'no'); END;
                """
            )
        )
        database.close()
        try run(call, configuration, end)
        let after = try Database.testing(directory.file("db"))
        defer { after.close() }
        #expect(try after.integers("SELECT amount FROM account ORDER BY id") == [100, 0])
    }
}
