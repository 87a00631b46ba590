import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// What the connections of a pool may not do to each other.
@Suite(.hangLimit)
struct PoolPromiseTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    private static let pages =
        "INSERT INTO t SELECT randomblob(3000) FROM (WITH RECURSIVE n(i) AS "
        + "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n)"

    private func pool(_ change: (inout Configuration) -> Void = { _ in }) throws -> DatabasePool {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        change(&configuration)
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try pool.write { db in try db.run("CREATE TABLE t (n)") }
        return pool
    }

    /// Reads until it is told to end.
    private func reader(_ pool: DatabasePool, until release: Gate) async -> Task<Void, any Error> {
        let reading = Gate()
        let task = Task {
            try await pool.read { db in
                _ = try db.integers("SELECT count(*) FROM t")
                reading.open()
                release.waitBlocking()
            }
        }
        await reading.wait()
        return task
    }

    // MARK: Barriers

    @Test func aSlowReaderAndABarrierStopNobody() async throws {
        let pool = try pool()
        let release = Gate()
        let reader = await reader(pool, until: release)
        let barrier = Task { try await pool.barrier { db in try db.integers("SELECT count(*) FROM t")[0] } }
        while !pool.reception.look({ $0.isBarred }) { await Task.yield() }
        for number in 0..<20 {
            try await pool.write { db in try db.run("INSERT INTO t VALUES (?)", [number]) }
            #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [number + 1])
            #expect(pool.inDatabase { _ in } == nil)
        }
        release.open()
        try await reader.value
        #expect(try await barrier.value == 20)
    }

    @Test func aBarrierEndsAtItsLimitAndItsCancellation() async throws {
        let pool = try pool()
        let release = Gate()
        let reader = await reader(pool, until: release)
        let late = await #expect(throws: DatabaseError.self) {
            try await pool.barrier(waitingAtMost: .milliseconds(5)) { _ in }
        }
        #expect(late?.reason == .busy)
        let thread = #expect(throws: DatabaseError.self) { try pool.barrier(waitingAtMost: .milliseconds(5)) { _ in } }
        #expect(thread?.reason == .busy)
        let cancelled = Task { try await pool.barrier { _ in } }
        while !pool.reception.look({ $0.isBarred }) { await Task.yield() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        // The reader is still at work.
        try await pool.write { db in try db.run("INSERT INTO t VALUES (1)") }
        #expect(!pool.reception.look { $0.isBarred })
        release.open()
        try await reader.value
        #expect(try await pool.barrier { db in try db.integers("SELECT n FROM t") } == [1])
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aRotationBehindASlowReaderIsCancelled() async throws {
        let pool = try pool()
        let release = Gate()
        let reader = await reader(pool, until: release)
        let key = try Key.testing(2)
        let rotation = Task { try await pool.rotateKey(to: key) }
        while !pool.reception.look({ $0.isBarred }) { await Task.yield() }
        try await pool.write { db in try db.run("INSERT INTO t VALUES (1)") }
        rotation.cancel()
        await #expect(throws: CancellationError.self) { _ = try await rotation.value }
        release.open()
        try await reader.value
        #expect(try await pool.read { db in try db.integers("SELECT n FROM t") } == [1])
    }

    // MARK: Hangs

    @Test func aDelegateMayWriteWhileABlockBorrows() async throws {
        final class Delegate: DatabasePoolDelegate, Sendable {
            let called = Gate()

            func databasePool(_ pool: DatabasePool, shouldAddDatabaseToPool database: Database) -> Bool {
                called.open()
                // Within a block of write it is refused.
                _ = try? pool.write { db in try db.run("INSERT INTO t VALUES (1)") }
                return true
            }
        }
        let pool = try pool()
        let delegate = Delegate()
        pool.delegate = delegate
        let inside = Gate()
        async let writing: Void = onThread {
            try pool.write { _ in
                inside.open()
                delegate.called.waitBlocking()
                if let error = pool.inDatabase({ _ in }) { throw error }
            }
        }
        await inside.wait()
        let error = try await onThread { pool.inDatabase { _ in } != nil }
        try await writing
        #expect(!error)
        withExtendedLifetime(delegate) {}
    }

    @Test func aCircleAtTheLimitsIsRefused() async throws {
        let pool = try pool { $0.maximumReaderCount = 1 }
        pool.maximumNumberOfDatabasesToCreate = 1
        let (reading, lent) = (Gate(), Gate())
        async let first: (any Error)? = onThread {
            try pool.read { _ in
                reading.open()
                lent.waitBlocking()
                return pool.inDatabase { _ in }
            }
        }
        async let second: (any Error)? = onThread {
            pool.inDatabase { _ in
                lent.open()
                reading.waitBlocking()
                try? pool.read { _ in }
            }
            // What the block's call threw is looked at below.
            return nil
        }
        _ = try await second
        if let refused = try await first as? DatabaseError {
            #expect(refused.reason == .misuse && refused.message.contains("inDatabase"))
        }
        #expect(pool.inDatabase { _ in } == nil)
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [0])
    }

    @Test func aPrepareClosureMayAskThePool() async throws {
        let box = Log<DatabasePool>()
        let pool = try pool { configuration in
            configuration.prepare = { _ in
                guard let pool = box.values.first else { return }
                // Refused where it would wait for itself; never waits for another's opening.
                _ = try? pool.read { _ in }
            }
        }
        let other = DatabasePool(path: directory.file("other"), configuration: try preparing(box))
        box.add(other)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { _ = try await other.read { db in try db.integers("SELECT 1") } }
                group.addTask { try await onThread { if let error = other.inDatabase({ _ in }) { throw error } } }
            }
            try await group.waitForAll()
        }
        _ = pool
    }

    private func preparing(_ box: Log<DatabasePool>) throws -> Configuration {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.maximumReaderCount = 1
        configuration.prepare = { _ in _ = try? box.values.first?.read { _ in } }
        return configuration
    }

    // MARK: Shutting down

    @Test func aShutdownStopsStatementsOfFMDBsCalls() async throws {
        let pool = try pool()
        let started = Gate()
        async let failed: Bool = onThread {
            pool.inDatabase { db in
                started.open()
                #expect(throws: DatabaseError.self) {
                    try db.integers(PoolPromiseTests.endless + "SELECT count(*) FROM n")
                }
            } == nil
        }
        await started.wait()
        await pool.shutDown(interruptingAfter: .zero)
        _ = try await failed
        #expect(directory.names == ["db"])
    }

    @Test func anUnhurriedShutdownLetsBlocksNest() async throws {
        let pool = try pool()
        let (started, ending) = (Gate(), Gate())
        let writing = Task {
            try await pool.write { db in
                try db.run("INSERT INTO t VALUES (1)")
                started.open()
                ending.waitBlocking()
                return try pool.read { db in try db.integers("SELECT count(*) FROM t")[0] }
            }
        }
        await started.wait()
        async let shutdown: Void = pool.shutDown()
        while !pool.sharedWriter.lane.isRefusing { await Task.yield() }
        ending.open()
        #expect(try await writing.value == 0)
        await shutdown
        #expect(try Database.testing(directory.file("db")).integers("SELECT n FROM t") == [1])
    }

    // MARK: Memory

    @Test func memoryIsGivenBack() async throws {
        let pool = try pool()
        try await pool.write { db in try db.run(PoolPromiseTests.pages, [100]) }
        @Sendable func cacheSize(_ db: Database) throws -> Int32 {
            var (current, highest): (Int32, Int32) = (0, 0)
            let handle = try db.openConnection().handle
            #expect(sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_USED, &current, &highest, 0) == 0)
            return current
        }
        let caches = Log<Int32>()
        pool.inDatabase { db in
            #expect(throws: Never.self) {
                #expect(try db.integers("SELECT count(*) FROM t WHERE n > x''") == [100])
                caches.add(try cacheSize(db))
            }
        }
        let release = Gate()
        let reader = await reader(pool, until: release)
        #expect(pool.countOfOpenDatabases == 3)
        // One that is in use keeps what it has. All stay open, and so the store stays in use.
        pool.releaseMemory()
        #expect(pool.countOfOpenDatabases == 3)
        release.open()
        try await reader.value
        pool.inDatabase { db in #expect(throws: Never.self) { caches.add(try cacheSize(db)) } }
        #expect(caches.values[1] < caches.values[0] / 4)
        #expect(try await pool.write { db in try db.integers("SELECT count(*) FROM t") } == [100])

        let queue = try DatabaseQueue(path: directory.file("queue"), configuration: Configuration())
        try await queue.write { db in
            try db.run("CREATE TABLE t (n)")
            try db.run(PoolPromiseTests.pages, [100])
        }
        let before = try await queue.writeWithoutTransaction { db in try cacheSize(db) }
        queue.releaseMemory()
        #expect(try await queue.writeWithoutTransaction { db in try cacheSize(db) } < before / 4)
    }

    @Test func givingMemoryBackLosesNothing() throws {
        let pool = try pool()
        pool.inDatabase { db in #expect(db.executeStatements("CREATE TEMP TABLE x (a); PRAGMA cache_size = -777")) }
        pool.releaseMemory()
        try pool.inDatabase { db throws in #expect(try db.integers("SELECT count(*) FROM x") == [0]) }
        try pool.inDatabase { db throws in #expect(try db.integers("PRAGMA cache_size") == [-777]) }

        let memory = DatabasePool(path: nil)
        memory.inDatabase { db in #expect(db.executeStatements("CREATE TABLE t (a); INSERT INTO t VALUES (1)")) }
        memory.releaseMemory()
        try memory.inDatabase { db throws in #expect(try db.integers("SELECT count(*) FROM t") == [1]) }
    }

    /// Those that are there already do not go round it.
    @Test func aLimitThatIsLoweredHolds() throws {
        let pool = try pool()
        func nest(_ depth: Int) -> (any Error)? {
            var inner: (any Error)?
            let outer = pool.inDatabase { _ in if depth > 1 { inner = nest(depth - 1) } }
            return outer ?? inner
        }
        #expect(nest(4) == nil)
        pool.maximumNumberOfDatabasesToCreate = 2
        #expect(nest(2) == nil)
        #expect((nest(3) as? DatabaseError)?.reason == .misuse)
    }

    // MARK: Calls for all connections

    /// The one that writes is one of those that are interrupted.
    @Test func aWriterIsInterrupted() throws {
        let pool = try pool()
        let error = #expect(throws: DatabaseError.self) {
            try pool.write { db in
                db.makeFunctionNamed("stop", arguments: 0) { _, _, _ in pool.interrupt() }
                try db.run("SELECT stop() FROM t")
                // Finite, so that the test ends also if nothing stops it.
                let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
                _ = try db.integers(long + "SELECT count(*) FROM n WHERE i > 1 OR stop() IS NULL")
            }
        }
        #expect(error?.reason == .interrupted, "\(error as Any)")
    }

    /// Nobody can close them then. When the barrier ends, they are closed, and not when somebody needs one some time.
    @Test func connectionsThatAreReleasedDuringABarrier() async throws {
        let pool = try pool()
        @Sendable func releaseAll() {
            let done = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                pool.releaseAllDatabases()
                done.signal()
            }
            done.wait()
        }
        func openSome() throws {
            #expect(pool.inDatabase { _ in } == nil)
            try pool.read { db in _ = try db.integers("SELECT count(*) FROM t") }
            #expect(pool.countOfOpenDatabases > 0)
        }
        try openSome()
        try await onThread { try pool.barrier { _ in releaseAll() } }
        #expect(pool.countOfOpenDatabases == 0)
        try openSome()
        try await pool.barrier { _ in releaseAll() }
        #expect(pool.countOfOpenDatabases == 0)
    }

    // MARK: The log and the lock

    /// An hour is what it would take if a checkpoint waited for the reader.
    @Test func noCallWaitsForReadersToMoveTheLog() async throws {
        let pool = try pool { $0.busyTimeout = .seconds(3600) }
        let release = Gate()
        let reader = await reader(pool, until: release)
        for _ in 0..<3 {
            let error = pool.inDatabase { db in
                #expect(throws: Never.self) { try db.run(PoolPromiseTests.pages, [1500]) }
            }
            #expect(error == nil)
            try await pool.write { db in try db.run(PoolPromiseTests.pages, [1500]) }
        }
        release.open()
        try await reader.value
    }

    @Test func theLogIsBoundedUnderReadersThatOverlap() async throws {
        let limit = 4 << 20
        let pool = try pool {
            $0.maximumLogSize = limit
            $0.maximumReaderCount = 3
        }
        let stop = StopFlag()
        let log = directory.file("db-wal")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    while !stop.isSet {
                        try await pool.read { db in
                            _ = try db.integers("SELECT count(*) FROM t")
                            // Lets the reads overlap. Nothing waits for it.
                            usleep(3000)
                            _ = try db.integers("SELECT count(*) FROM t")
                        }
                    }
                }
            }
            // Readers that overlap never leave it a moment; so it goes on until the log was emptied some times.
            var (largest, emptied) = (0, 0)
            var last = 0
            var written = 0
            while emptied < 3, written < 400 {
                try await pool.write { db in
                    try db.run("DELETE FROM t")
                    try db.run(PoolPromiseTests.pages, [300])
                }
                written += 1
                let size = (try? Int(FileSystem.status(log).st_size)) ?? 0
                if size < last / 2 { emptied += 1 }
                largest = max(largest, size)
                last = size
            }
            stop.set()
            try await group.waitForAll()
            #expect(emptied >= 3, "largest: \(largest), written: \(written)")
        }
    }

    /// Five seconds for all of them, not five for each: of 300 seconds, a slow machine takes less than half.
    @Test func busyTimeoutsDoNotAddUp() async throws {
        let pool = try pool { $0.busyTimeout = .seconds(5) }
        let other = try Database.testing(directory.file("db"))
        #expect(other.beginImmediateTransaction())
        // By threads: tasks could wait for those of other tests.
        let seconds = try await onThread {
            let start = DispatchTime.now().uptimeNanoseconds
            let callers = DispatchGroup()
            for _ in 0..<60 {
                callers.enter()
                Thread.detachNewThread {
                    let error = #expect(throws: DatabaseError.self) { try pool.write { _ in } }
                    #expect(error?.reason == .busy)
                    callers.leave()
                }
            }
            callers.wait()
            return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        }
        #expect(seconds < 150)
        #expect(other.rollback())
        try await pool.write { _ in }
    }

    /// FMDB's writers let `write` in, although each of them asks again at once. How often is measured by the benchmarks.
    @Test func writersOfBothKindsTakeTurns() async throws {
        let pool = try pool { $0.busyTimeout = .seconds(60) }
        let stop = StopFlag()
        let begun = Gate()
        func fmdb() async throws {
            try await onThread {
                while !stop.isSet {
                    pool.inDatabase { db in
                        #expect(throws: Never.self) { try db.run("INSERT INTO t VALUES (1)") }
                    }
                    begun.open()
                }
            }
        }
        async let first: Void = fmdb()
        async let second: Void = fmdb()
        await begun.wait()
        try await onThread {
            for _ in 0..<200 { try pool.write { db in try db.run("INSERT INTO t VALUES (2)") } }
        }
        stop.set()
        try await first
        try await second
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t WHERE n = 2") } == [200])
    }

    // MARK: The first opening

    /// A key source that uses the pool would wait for itself.
    @Test(.enabled(if: isEncrypting, "needs a key source"))
    func aKeySourceThatUsesThePool() throws {
        let inner = Log<DatabaseError?>()
        let used = Guarded<DatabasePool?>(nil)
        var configuration = Configuration(
            keySource: .closure {
                let pool = used.withLock { $0 }
                let calls: [(DatabasePool) throws -> Void] = [
                    { try $0.read { _ in } }, { try $0.write { _ in } },
                    { try $0.inDatabase { (_: Database) throws in } },
                ]
                if let pool {
                    for call in calls {
                        do { try call(pool) } catch { inner.add(error as? DatabaseError) }
                    }
                }
                return try .testing(1)
            }
        )
        configuration.maximumReaderCount = 1
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        used.withLock { $0 = pool }
        try pool.write { db in try db.run("CREATE TABLE t (n)") }
        // The source is asked again before the file is made.
        #expect(inner.values.count >= 3)
        for error in inner.values { #expect(error?.reason == .misuse, "\(String(describing: error))") }
        #expect(inner.values.filter { $0?.message.contains("waits for it") == true }.count >= 2, "\(inner.values)")
        used.withLock { $0 = nil }
        #expect(try pool.read { db in try db.integers("SELECT count(*) FROM t") } == [0])
    }

    /// The same from a task of the key source's own.
    @Test(.enabled(if: isEncrypting, "needs a key source"))
    func anAsynchronousKeySourceThatUsesThePool() async throws {
        let inner = Log<DatabaseError?>()
        let used = Guarded<DatabasePool?>(nil)
        let configuration = Configuration(
            keySource: .asyncClosure(timeout: .seconds(3600)) {
                if let pool = used.withLock({ $0 }) {
                    do { try await pool.read { _ in } } catch { inner.add(error as? DatabaseError) }
                }
                return try .testing(1)
            }
        )
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        used.withLock { $0 = pool }
        try await pool.write { db in try db.run("CREATE TABLE t (n)") }
        used.withLock { $0 = nil }
        #expect(!inner.values.isEmpty)
        for error in inner.values {
            #expect(error?.message.contains("waits for it") == true, "\(String(describing: error))")
        }
    }

    /// Whoever waits for the first opening has a limit, and is told of a shutdown.
    @Test(.enabled(if: isEncrypting, "needs a key source"), arguments: [true, false])
    func theFirstOpeningLasts(isShutDown: Bool) async throws {
        let (asked, goOn) = (Gate(), Gate())
        let configuration = Configuration(
            keySource: .closure {
                asked.open()
                goOn.waitBlocking()
                return try .testing(1)
            }
        )
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        let first = Task { try await pool.write { db in try db.run("CREATE TABLE t (n)") } }
        await asked.wait()
        if isShutDown {
            let second = Task { try await pool.read { _ in } }
            while pool.reception.look({ $0.heldCount(.readers) }) == 0 { await Task.yield() }
            let end = Task { await pool.shutDown(interruptingAfter: .zero) }
            let error = await #expect(throws: DatabaseError.self) { try await second.value }
            #expect(error?.code == SealedDB.SQLITE_INTERRUPT, "\(String(describing: error))")
            goOn.open()
            // It was stopped before its block began, or it was in time.
            _ = await first.result
            await end.value
        } else {
            pool.maximumWait = .milliseconds(10)
            let error = await #expect(throws: DatabaseError.self) { try await pool.read { _ in } }
            #expect(error?.reason == .busy, "\(String(describing: error))")
            #expect(error?.message.contains("first connection") == true, "\(String(describing: error))")
            goOn.open()
            try await first.value
            #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [0])
        }
    }
}
