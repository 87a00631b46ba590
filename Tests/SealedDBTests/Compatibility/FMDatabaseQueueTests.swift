import Foundation
import Testing

@testable import SealedDB

/// `FMDatabaseQueue`. A test for each member, named after it.
@Suite(.hangLimit)
struct FMDatabaseQueueTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func queue() throws -> FMDatabaseQueue {
        let queue = try #require(FMDatabaseQueue(path: directory.file("db")))
        queue.inDatabase { db in _ = db.executeStatements("create table if not exists t (a)") }
        // A new file without a key gets its WAL mode at the second opening.
        queue.close()
        return queue
    }

    @Test func initOpensOrIsNil() throws {
        let path = directory.file("db")
        #expect(FMDatabaseQueue(path: nil)?.path == nil)
        #expect(FMDatabaseQueue(path: path, flags: SQLITE_OPEN_READWRITE) == nil)
        #expect(FMDatabaseQueue(path: directory.file("no/such/db")) == nil)
        #expect(FMDatabaseQueue(url: URL(fileURLWithPath: path))?.path == path)
        #expect(directory.names == ["db"])
        #expect(FMDatabaseQueue(url: URL(fileURLWithPath: path), flags: SQLITE_OPEN_READWRITE) != nil)
        let byURL = FMDatabaseQueue(url: URL(fileURLWithPath: path), flags: SQLITE_OPEN_READWRITE, vfs: "unix")
        #expect(byURL?.path == path && byURL?.vfsName == "unix")
        let withoutVFS = FMDatabaseQueue(
            url: URL(fileURLWithPath: path),
            flags: SQLITE_OPEN_READWRITE,
            vfs: "no such VFS"
        )
        #expect(withoutVFS == nil)
        let memory = FMDatabaseQueue()
        #expect(memory.path == nil)
        memory.inDatabase { db in #expect(db.executeStatements("CREATE TABLE t (a)")) }
        let queue = try #require(FMDatabaseQueue(path: path, flags: SQLITE_OPEN_READWRITE, vfs: "unix"))
        #expect(queue.openFlags == SQLITE_OPEN_READWRITE && queue.vfsName == "unix")
        #expect(FMDatabaseQueue(path: path, flags: SQLITE_OPEN_READWRITE, vfs: "no such VFS") == nil)
    }

    @Test func flagsHoldForEveryOpening() throws {
        _ = try queue()
        let queue = try #require(FMDatabaseQueue(path: directory.file("db"), flags: SQLITE_OPEN_READONLY))
        for _ in 0..<2 {
            queue.inDatabase { db in
                #expect(!db.executeUpdate("insert into t values (1)", withArgumentsIn: []))
                #expect(db.lastErrorCode() == SQLITE_READONLY)
            }
            queue.close()
        }
    }

    @Test func inDatabaseReturnsValuesAndThrows() throws {
        struct Failure: Error {}
        let queue = try queue()
        let sum: Int = try queue.inDatabase { db in try db.integers("select 1 + 1")[0] }
        #expect(sum == 2)
        #expect(throws: Failure.self) { try queue.inDatabase { _ in throw Failure() } }
        // Still usable.
        #expect(queue.inDatabase { _ in } == nil)
    }

    @Test func transactionsOfEveryKind() throws {
        let queue = try queue()
        for form in [
            queue.inTransaction, queue.inDeferredTransaction, queue.inImmediateTransaction,
            queue.inExclusiveTransaction, queue.inSavePoint,
        ] {
            let kept = form { db, _ in
                #expect(db.isInTransaction)
                #expect(db.executeUpdate("insert into t values (1)", withArgumentsIn: []))
            }
            let undone = form { db, rollback in
                #expect(db.executeUpdate("insert into t values (2)", withArgumentsIn: []))
                rollback.pointee = true
            }
            #expect(kept == nil && undone == nil)
        }
        #expect(try queue.inDatabase { db in try db.integers("select a from t") } == [1, 1, 1, 1, 1])
    }

    @Test func throwingTransactionsOfEveryKind() throws {
        struct Failure: Error {}
        let queue = try queue()
        let insert = "insert into t values (1)"
        try queue.inTransaction { db in try db.executeUpdate(insert, values: nil) }
        try queue.inDeferredTransaction { db in try db.executeUpdate(insert, values: nil) }
        try queue.inImmediateTransaction { db in try db.executeUpdate(insert, values: nil) }
        try queue.inExclusiveTransaction { db in try db.executeUpdate(insert, values: nil) }
        try queue.inSavePoint { db in try db.executeUpdate(insert, values: nil) }
        #expect(throws: Failure.self) {
            try queue.inSavePoint { db in
                try db.executeUpdate(insert, values: nil)
                throw Failure()
            }
        }
        #expect(try queue.inDatabase { db in try db.integers("select a from t") } == [1, 1, 1, 1, 1])
    }

    @Test func failedBeginIsReportedAndTheBlockNotCalled() throws {
        let queue = try queue()
        let other = try #require(FMDatabaseQueue(path: directory.file("db")))
        other.inDatabase { db in db.maxBusyRetryTimeInterval = 0 }
        let wasCalled = Guarded(false)
        queue.inTransaction { _, _ in
            let error = other.inTransaction { _, _ in wasCalled.withLock { $0 = true } }
            #expect((error as? DatabaseError)?.reason == .busy)
            #expect(throws: DatabaseError.self) {
                try other.inTransaction { _ in wasCalled.withLock { $0 = true } }
            }
        }
        #expect(!wasCalled.withLock { $0 })
    }

    @Test func checkpoint() throws {
        let queue = try queue()
        let form: (Int32) -> String = { "insert into t values (\($0))" }
        queue.inDatabase { db in _ = db.executeStatements(form(1)) }
        try queue.checkpoint(.passive)
        queue.inDatabase { db in _ = db.executeStatements(form(2)) }
        try queue.checkpoint(.full, name: "main")
        queue.inDatabase { db in _ = db.executeStatements(form(3)) }
        var frames: Int32 = -7
        var moved: Int32 = -7
        try queue.checkpoint(.restart, name: nil, logFrameCount: &frames, checkpointCount: &moved)
        #expect(frames > 0 && moved == frames)
        #expect(throws: DatabaseError.self) { try queue.checkpoint(.full, name: "unknown") }
    }

    @Test func interruptFromAnotherThread() throws {
        let queue = try queue()
        let isRunning = DispatchSemaphore(value: 0)
        let code = Guarded<Int32>(0)
        let done = DispatchGroup()
        DispatchQueue.global().async(group: done) {
            queue.inDatabase { db in
                db.makeFunctionNamed("started", arguments: 0) { _, _, _ in isRunning.signal() }
                let endless =
                    "with recursive n(i) as (select started() union all select 1 from n) select count(*) from n"
                _ = db.executeUpdate(endless, withArgumentsIn: [])
                code.withLock { $0 = db.lastErrorCode() }
            }
        }
        isRunning.wait()
        queue.interrupt()
        done.wait()
        #expect(code.withLock { $0 } == SQLITE_INTERRUPT)
        // Nothing runs, or nothing is open: no effect.
        queue.interrupt()
        queue.close()
        queue.interrupt()
        #expect(queue.inDatabase { _ in } == nil)
    }

    @Test func closeAndReopen() throws {
        let queue = try queue()
        queue.close()
        queue.close()
        queue.inDatabase { db in
            #expect(db.tableExists("t"))
            // Closed in the middle of a block.
            #expect(db.close())
            #expect(!db.tableExists("t"))
        }
        queue.inDatabase { db in #expect(db.tableExists("t")) }
    }

    #if compiler(>=6.2)
        /// FMDB hangs in all of these, but for the first in a debug build.
        @Test(.awaitsProcess) func nestedCallsOfEveryKindTrap() async {
            await #expect(processExitsWith: .failure) {
                nest { queue in queue.inDatabase { _ in } }
            }
            await #expect(processExitsWith: .failure) {
                nest { queue in queue.inDeferredTransaction { _, _ in } }
            }
            await #expect(processExitsWith: .failure) {
                nest { queue in queue.inSavePoint { _, _ in } }
            }
            await #expect(processExitsWith: .failure) {
                nest { queue in
                    queue.close()
                    return nil
                }
            }
        }
    #endif

    @Test func nestedThrowingCallsThrow() throws {
        let queue = try queue()
        #expect(!queue.isInsideBlock)
        queue.inDatabase { _ in
            #expect(queue.isInsideBlock)
            let calls: [() throws -> Void] = [
                { try queue.inDatabase { _ throws in } }, { try queue.inTransaction { _ in } },
                { try queue.inSavePoint { _ in } }, { try queue.checkpoint(.passive) },
            ]
            for call in calls {
                let error = #expect(throws: DatabaseError.self, performing: call)
                #expect(error?.reason == .misuse && error?.message.contains("same queue") == true)
            }
        }
    }
}

/// Ends the process by a nested call; if it does not, the process ends well, and the test fails.
private func nest(_ call: (FMDatabaseQueue) -> (any Error)?) {
    let queue = FMDatabaseQueue(path: nil)!
    queue.inDatabase { _ in _ = call(queue) }
}
