import Foundation
import Testing

@testable import SealedDB

/// `FMDatabasePool` and its delegate. A test for each member, named after it.
@Suite(.hangLimit)
struct FMDatabasePoolTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func pool() throws -> FMDatabasePool {
        let pool = FMDatabasePool(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        try pool.inDatabase { db in try db.executeUpdate("create table if not exists t (a)", values: nil) }
        return pool
    }

    @Test func initOpensNothing() {
        let path = directory.file("db")
        for pool in [
            FMDatabasePool(path: path), FMDatabasePool(url: URL(fileURLWithPath: path)),
            FMDatabasePool(path: path, flags: SQLITE_OPEN_READWRITE),
            FMDatabasePool(url: URL(fileURLWithPath: path), flags: SQLITE_OPEN_READWRITE, vfs: "unix"),
        ] {
            #expect(pool.path == path && pool.countOfOpenDatabases == 0)
        }
        #expect(directory.names == [])
        let pool = FMDatabasePool(path: path, flags: SQLITE_OPEN_READONLY, vfs: "unix")
        #expect(pool.openFlags == SQLITE_OPEN_READONLY && pool.vfsName == "unix")
        #expect(FMDatabasePool(path: nil).path == nil)
    }

    @Test func everyConnectionInMemoryIsItsOwn() {
        let pool = FMDatabasePool(path: nil)
        pool.inDatabase { outer in
            #expect(outer.executeStatements("create table t (a)"))
            pool.inDatabase { inner in #expect(!inner.tableExists("t")) }
        }
    }

    @Test func countsAndReleaseAllDatabases() throws {
        let pool = try pool()
        func counts() -> [UInt] {
            [pool.countOfCheckedInDatabases, pool.countOfCheckedOutDatabases, pool.countOfOpenDatabases]
        }
        #expect(counts() == [1, 0, 1])
        pool.inDatabase { outer in
            #expect(counts() == [0, 1, 1])
            #expect(outer.checkedOut)
            pool.inDatabase { inner in
                #expect(inner !== outer)
                #expect(counts() == [0, 2, 2])
            }
            #expect(counts() == [1, 1, 2])
            pool.releaseAllDatabases()
            #expect(counts() == [0, 0, 0])
            #expect(outer.isOpen)
        }
        // FMDB takes it back, although it was released.
        #expect(counts() == [0, 0, 0])
        pool.inDatabase { _ in }
        #expect(counts() == [1, 0, 1])
    }

    @Test func theConnectionLastReturnedIsLentFirst() throws {
        let pool = try pool()
        let first = Guarded<ObjectIdentifier?>(nil)
        pool.inDatabase { db in first.withLock { $0 = ObjectIdentifier(db) } }
        pool.inDatabase { db in #expect(first.withLock { $0 } == ObjectIdentifier(db)) }
        #expect(pool.countOfOpenDatabases == 1)
    }

    @Test func failedOpeningIsReported() throws {
        let pool = FMDatabasePool(path: directory.file("no/such/db"))
        var wasCalled = false
        #expect(pool.inDatabase { _ in wasCalled = true } is DatabaseError)
        #expect(pool.inTransaction { _, _ in wasCalled = true } is DatabaseError)
        // FMDB returns nil here, as if all were well.
        #expect(pool.inSavePoint { _, _ in wasCalled = true } is DatabaseError)
        #expect(throws: DatabaseError.self) { try pool.inDatabase { _ throws in wasCalled = true } }
        #expect(!wasCalled && pool.countOfOpenDatabases == 0)
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func wrongKeyIsReported() throws {
        _ = try pool()
        let other = FMDatabasePool(path: directory.file("db"), configuration: Configuration(key: try .testing(2)))
        #expect((other.inDatabase { _ in } as? DatabaseError)?.reason == .wrongKey)
        #expect(other.countOfOpenDatabases == 0)
    }

    // MARK: Limit

    @Test func callersWaitAtTheLimit() throws {
        let pool = try pool()
        pool.maximumNumberOfDatabasesToCreate = 2
        #expect(pool.maximumNumberOfDatabasesToCreate == 2)
        let most = Guarded((now: 0, most: 0, done: 0))
        DispatchQueue.concurrentPerform(iterations: 16) { _ in
            for _ in 0..<10 {
                let error = pool.inDatabase { db in
                    most.withLock { counts in
                        counts.now += 1
                        counts.most = max(counts.most, counts.now)
                    }
                    #expect((try? db.integers("select 1")) == [1])
                    most.withLock { counts in
                        counts.now -= 1
                        counts.done += 1
                    }
                }
                #expect(error == nil)
            }
        }
        let result = most.withLock { $0 }
        #expect(result.done == 160 && result.most <= 2)
        #expect(pool.countOfOpenDatabases <= 2 && pool.countOfCheckedOutDatabases == 0)
    }

    @Test func aWaitThatCouldNeverEndIsRefused() throws {
        let pool = try pool()
        pool.maximumNumberOfDatabasesToCreate = 1
        let error = #expect(throws: DatabaseError.self) {
            try pool.inDatabase { _ in try pool.inDatabase { db in try db.integers("select 1") } }
        }
        #expect(error?.reason == .misuse)
        #expect(pool.countOfCheckedOutDatabases == 0)
        // Two threads, each of which holds one and wants a second: one is refused, and the other then goes on.
        pool.maximumNumberOfDatabasesToCreate = 2
        let both = DispatchGroup()
        both.enter()
        both.enter()
        let outcomes = Guarded<[Bool]>([])
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            pool.inDatabase { _ in
                both.leave()
                both.wait()
                let inner = pool.inDatabase { _ in }
                outcomes.withLock { $0.append(inner == nil) }
            }
        }
        #expect(outcomes.withLock { $0.sorted { !$0 && $1 } } == [false, true])
    }

    @Test func aWaitMayEndInTime() throws {
        let pool = try pool()
        pool.maximumNumberOfDatabasesToCreate = 1
        pool.maximumWait = .zero
        let failure = Guarded<DatabaseError?>(nil)
        pool.inDatabase { _ in
            let thread = DispatchGroup()
            DispatchQueue.global().async(group: thread) {
                let error = pool.inDatabase { _ in } as? DatabaseError
                failure.withLock { $0 = error }
            }
            thread.wait()
        }
        #expect(failure.withLock { $0?.reason } == .busy)
        #expect(pool.inDatabase { _ in } == nil)
    }

    @Test func raisingTheLimitServesThoseWhoWait() throws {
        let pool = try pool()
        pool.maximumNumberOfDatabasesToCreate = 1
        let served = DispatchSemaphore(value: 0)
        pool.inDatabase { _ in
            DispatchQueue.global().async { pool.inDatabase { _ in served.signal() } }
            pool.maximumNumberOfDatabasesToCreate = 2
            // While the first connection is still lent.
            #expect(served.wait(timeout: .now() + 300) == .success)
        }
    }

    // MARK: Blocks

    @Test func transactionsCommitAndRollBack() throws {
        let pool = try pool()
        let forms = [
            pool.inTransaction, pool.inDeferredTransaction, pool.inImmediateTransaction, pool.inExclusiveTransaction,
            pool.inSavePoint,
        ]
        for form in forms {
            let failure = form { db, _ in
                #expect(db.executeUpdate("insert into t values (1)", withArgumentsIn: []))
            }
            #expect(failure == nil)
            let error = form { db, rollback in
                #expect(db.executeUpdate("insert into t values (2)", withArgumentsIn: []))
                rollback.pointee = true
            }
            #expect(error == nil)
        }
        #expect(try pool.inDatabase { db in try db.integers("select a from t") } == [1, 1, 1, 1, 1])
    }

    @Test func throwingFormsReturnValuesAndRollBack() throws {
        struct Failure: Error {}
        let pool = try pool()
        let count = try pool.inTransaction { db in
            try db.executeUpdate("insert into t values (1), (2)", values: nil)
            return Int(db.changes)
        }
        #expect(count == 2)
        #expect(throws: Failure.self) {
            try pool.inDeferredTransaction { db in
                try db.executeUpdate("delete from t", values: nil)
                throw Failure()
            }
        }
        #expect(try pool.inSavePoint { db in try db.integers("select a from t") } == [1, 2])
    }

    @Test func aFailedBeginIsReportedAndTheBlockNotCalled() throws {
        let pool = try pool()
        var wasCalled = false
        pool.inTransaction { _, _ in
            let error = pool.inTransaction { _, _ in wasCalled = true }
            #expect((error as? DatabaseError)?.reason == .busy)
        }
        #expect(!wasCalled)
    }

    @Test func whatABlockLeavesOpenEndsWithIt() throws {
        let pool = try pool()
        var escaped: FMResultSet?
        pool.inDatabase { db in
            #expect(db.beginTransaction())
            #expect(db.executeUpdate("insert into t values (1)", withArgumentsIn: []))
            escaped = db.executeQuery("select a from t", withArgumentsIn: [])
            #expect(escaped?.next() == true)
        }
        #expect(escaped?.next() == false)
        #expect(try pool.inDatabase { db in db.isInTransaction ? [-1] : try db.integers("select a from t") } == [])
    }

    @Test func aConnectionClosedInABlockIsReplaced() throws {
        let pool = try pool()
        pool.inDatabase { db in _ = db.close() }
        #expect(pool.countOfOpenDatabases == 0)
        #expect(try pool.inDatabase { db in try db.integers("select count(*) from t") } == [0])
    }

    @Test func theLogIsMovedIntoTheFile() throws {
        let pool = try pool()
        let sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) "
        try pool.inDatabase { db in
            try db.executeUpdate(sql + "insert into t select hex(zeroblob(500)) from n", values: nil)
        }
        let size = try #require(FileManager.default.attributesOfItem(atPath: directory.file("db"))[.size] as? Int)
        #expect(size > 4_000_000)
        pool.releaseAllDatabases()
        #expect(directory.names == ["db"])
    }

    // MARK: Delegate

    private final class Delegate: NSObject, FMDatabasePoolDelegate {
        var accepts = true
        var asked = 0
        var added = 0

        func databasePool(_ pool: FMDatabasePool, shouldAddDatabaseToPool database: FMDatabase) -> Bool {
            asked += 1
            // Touching the pool from here deadlocks in FMDB.
            #expect(pool.countOfCheckedOutDatabases == 1)
            database.maxBusyRetryTimeInterval = 7
            return accepts
        }

        func databasePool(_ pool: FMDatabasePool, didAdd database: FMDatabase) {
            added += 1
        }
    }

    private final class Indifferent: FMDatabasePoolDelegate {}

    @Test func delegateIsAskedAndTold() throws {
        let pool = try pool()
        pool.releaseAllDatabases()
        let delegate = Delegate()
        pool.delegate = delegate
        pool.inDatabase { db in #expect(db.maxBusyRetryTimeInterval == 7) }
        pool.inDatabase { _ in }
        #expect(delegate.asked == 2 && delegate.added == 1)
        delegate.accepts = false
        #expect(pool.inDatabase { _ in } is DatabaseError)
        #expect(pool.countOfOpenDatabases == 0)
        delegate.accepts = true
        #expect(pool.inDatabase { _ in } == nil)
        #expect(delegate.added == 2)
    }

    @Test func delegateIsNotRetained() throws {
        let pool = try pool()
        var delegate: Indifferent? = Indifferent()
        pool.delegate = delegate
        #expect(pool.delegate === delegate)
        #expect(pool.inDatabase { _ in } == nil)
        delegate = nil
        #expect(pool.delegate == nil)
        #expect(pool.inDatabase { _ in } == nil)
    }
}
