import Foundation
import SealedDB
import Testing

/// `FMDatabase`: transactions and savepoints. A test for each member, named after it.
@Suite(.hangLimit)
struct FMDatabaseTransactionTests {
    private let directory: TemporaryDirectory
    private let db: FMDatabase

    init() throws {
        directory = try TemporaryDirectory()
        db = try Database.testing(directory.file("db"))
        #expect(db.executeStatements("create table t (a)"))
    }

    private func insert(_ value: Int) {
        #expect(db.executeUpdate("insert into t values (?)", withArgumentsIn: [value]))
    }

    @Test func beginTransactionIsExclusive() throws {
        #expect(db.beginTransaction())
        #expect(db.isInTransaction)
        #expect(try !otherCanRead())
        #expect(!db.beginTransaction())
        #expect(db.lastErrorMessage() == "cannot start a transaction within a transaction")
        insert(1)
        #expect(db.commit())
        #expect(!db.isInTransaction)
        #expect(try db.integers("select a from t") == [1])
    }

    @Test func kindsOfTransactions() throws {
        #expect(db.beginDeferredTransaction())
        #expect(try otherCanRead() && otherCanWrite())
        #expect(db.rollback())
        #expect(db.beginImmediateTransaction())
        #expect(try otherCanRead() && !otherCanWrite())
        #expect(db.rollback())
        #expect(db.beginExclusiveTransaction())
        #expect(try !otherCanRead())
        #expect(db.rollback())
    }

    private func other() throws -> FMDatabase {
        let other = try Database.testing(directory.file("db"))
        other.maxBusyRetryTimeInterval = 0
        return other
    }

    private func otherCanRead() throws -> Bool {
        do {
            return try other().executeQuery("select a from t", values: nil).nextWithError() || true
        } catch let error as DatabaseError where error.reason == .busy {
            return false
        }
    }

    private func otherCanWrite() throws -> Bool {
        let other = try other()
        let began = other.beginImmediateTransaction()
        #expect(began || (other.lastError() as? DatabaseError)?.reason == .busy)
        return began
    }

    @Test func commitAndRollbackWithoutTransaction() {
        #expect(!db.commit())
        #expect(db.lastErrorMessage() == "cannot commit - no transaction is active")
        #expect(!db.rollback())
        #expect(db.lastErrorMessage() == "cannot rollback - no transaction is active")
    }

    @Test func isInTransactionFollowsSQLite() {
        #expect(db.executeStatements("begin"))
        #expect(db.isInTransaction)
        #expect(db.executeStatements("commit"))
        #expect(!db.isInTransaction)
        #expect(db.executeStatements("savepoint s"))
        #expect(db.isInTransaction)
        #expect(db.executeStatements("release s"))
        #expect(db.executeStatements("create table u (a unique on conflict rollback); insert into u values (1)"))
        #expect(db.beginTransaction())
        #expect(!db.executeUpdate("insert into u values (1)", withArgumentsIn: []))
        #expect(!db.isInTransaction)
        #expect(db.beginTransaction())
        #expect(db.close())
        #expect(!db.isInTransaction)
    }

    @Test func savePointsByName() throws {
        let name = "it's a \"name\""
        try db.startSavePoint(withName: name)
        insert(1)
        try db.startSavePoint(withName: "inner")
        insert(2)
        try db.rollbackToSavePoint(withName: "inner")
        insert(3)
        try db.releaseSavePoint(withName: "inner")
        try db.releaseSavePoint(withName: name)
        #expect(try db.integers("select a from t") == [1, 3])
        for call in [db.releaseSavePoint(withName:), db.rollbackToSavePoint(withName:)] {
            let error = #expect(throws: DatabaseError.self) { try call("unknown") }
            #expect(error?.code == SQLITE_ERROR)
        }
    }

    @Test func inSavePoint() throws {
        let error = db.inSavePoint { rollback in
            insert(1)
            let inner = db.inSavePoint { rollback in
                insert(2)
                rollback.pointee = true
            }
            #expect(inner == nil)
            #expect(!rollback.pointee.boolValue)
        }
        #expect(error == nil)
        #expect(try db.integers("select a from t") == [1])
    }

    @Test func inSavePointReportsWhatFails() throws {
        var wasCalled = false
        let closed = FMDatabase()
        #expect(closed.inSavePoint { _ in wasCalled = true } != nil)
        #expect(!wasCalled)
        // The block cannot end the transaction, and the savepoint with it; nothing of it is kept all the same.
        let error = db.inSavePoint { _ in
            insert(1)
            #expect(!db.rollback())
        }
        #expect((error as? DatabaseError)?.reason == .misuse)
        #expect(!db.isInTransaction)
        #expect(try db.integers("select a from t") == [])
    }

    @Test func savepointThatThrows() throws {
        struct Failure: Error {}
        let result = try db.savepoint {
            insert(1)
            #expect(throws: Failure.self) {
                try db.savepoint {
                    insert(2)
                    throw Failure()
                }
            }
            return try db.savepoint { try db.integers("select a from t") }
        }
        #expect(result == [1])
        #expect(throws: Failure.self) {
            try db.savepoint {
                insert(3)
                #expect(db.close())
                throw Failure()
            }
        }
        #expect(db.open())
        #expect(try db.integers("select a from t") == [1])
    }
}
