import Foundation
import Testing

@testable import SealedDB

/// Concurrent calls of `write`, which share transactions.
@Suite(.hangLimit)
struct SharedWriteTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    enum Kind: CaseIterable, Sendable { case queue, pool }

    private func access(
        _ kind: Kind,
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> any DatabaseAccess & WriterOwner {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        // A slow machine must not end a transaction.
        configuration.writeBatching.maximumDuration = .seconds(3600)
        change(&configuration)
        let access: any DatabaseAccess & WriterOwner =
            switch kind {
            case .queue: try DatabaseQueue(path: directory.file("db"), configuration: configuration)
            case .pool: DatabasePool(path: directory.file("db"), configuration: configuration)
            }
        try access.writeWithoutTransaction { db in
            try db.executeUpdate("PRAGMA foreign_keys = ON", values: nil)
            try db.executeUpdate("CREATE TABLE t (n INTEGER PRIMARY KEY)", values: nil)
            try db.executeUpdate(
                "CREATE TABLE c (n REFERENCES t DEFERRABLE INITIALLY DEFERRED)",
                values: nil
            )
        }
        return access
    }

    enum Caller: CaseIterable, Sendable {
        case task, thread

        /// A call of `write` by a task, or by a thread.
        func write(
            _ access: any DatabaseAccess,
            _ block: @escaping @Sendable (Database) throws -> Void
        ) async throws {
            switch self {
            case .task: try await access.write(block)
            case .thread:
                try await withCheckedThrowingContinuation { done in
                    Thread.detachNewThread { done.resume(with: Result { try access.write(block) }) }
                }
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func shareOneCommitInOrderOfArrival(kind: Kind) async throws {
        let access = try access(kind)
        let order = Log<Int>()
        let seen = Log<Int>()
        let commits = Log<Int>()
        let calls = (0..<20).map { number in
            { @Sendable () async throws -> Void in
                let before = try await access.write { db in
                    order.add(number)
                    seen.add(try db.integers("SELECT count(*) FROM t")[0])
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                    return number
                }
                commits.add(before)
            }
        }
        let tasks = try await behindABarrier(access, calls)
        for task in tasks { try await task.value }
        #expect(order.values == Array(0..<20))
        // Each sees those before it.
        #expect(seen.values == Array(0..<20))
        #expect(commits.values.count == 20)
        #expect(access.sharedWriter.commitCount == 1)
        #expect(try await access.read { db in try db.integers("SELECT count(*) FROM t") } == [20])
    }

    @Test(arguments: Kind.allCases, Caller.allCases)
    func aBlockThatThrowsIsUndoneAlone(kind: Kind, caller: Caller) async throws {
        struct Failure: Error {}
        let access = try access(kind)
        let calls = (0..<6).map { number in
            { @Sendable () async throws -> Void in
                try await caller.write(access) { db in
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                    if number % 2 == 0 { throw Failure() }
                }
            }
        }
        let tasks = try await behindABarrier(access, calls)
        for (number, task) in tasks.enumerated() {
            if number % 2 == 0 {
                await #expect(throws: Failure.self) { try await task.value }
            } else {
                try await task.value
            }
        }
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [1, 3, 5])
    }

    @Test(arguments: Caller.allCases)
    func aFailedCommitFailsThemAll(caller: Caller) async throws {
        let access = try access(.queue)
        // A reader elsewhere keeps a rollback journal's commit from finishing.
        try await access.writeWithoutTransaction { db in
            try db.executeUpdate("PRAGMA journal_mode = DELETE", values: nil)
            db.maxBusyRetryTimeInterval = 0
        }
        let other = try Database.testing(directory.file("db"))
        let reading = try other.executeQuery("SELECT 1 FROM sqlite_schema", values: nil)
        #expect(reading.next())
        let calls = (0..<3).map { number in
            { @Sendable () async throws -> Void in
                try await caller.write(access) { db in
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                }
            }
        }
        let tasks = try await behindABarrier(access, calls)
        for task in tasks {
            let error = await #expect(throws: DatabaseError.self) { try await task.value }
            #expect(error?.reason == .busy)
            #expect(error?.message.contains("could not be committed") == true)
        }
        reading.close()
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [])
        try await access.write { db in try db.executeUpdate("INSERT INTO t VALUES (7)", values: nil) }
    }

    @Test(arguments: Kind.allCases)
    func aViolatedForeignKeyFailsItsBlockAlone(kind: Kind) async throws {
        let access = try access(kind)
        let calls = (0..<3).map { number in
            { @Sendable () async throws -> Void in
                try await access.write { db in
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                    try db.executeUpdate("INSERT INTO c VALUES (?)", values: [number == 1 ? 99 : number])
                }
            }
        }
        let tasks = try await behindABarrier(access, calls)
        try await tasks[0].value
        let error = await #expect(throws: DatabaseError.self) { try await tasks[1].value }
        #expect(error?.extendedCode == 787)
        try await tasks[2].value
        #expect(try await access.read { db in try db.integers("SELECT n FROM c") } == [0, 2])
        // Alone it is the same error.
        let alone = await #expect(throws: DatabaseError.self) {
            try await access.write { db in try db.executeUpdate("INSERT INTO c VALUES (98)", values: nil) }
        }
        #expect(alone?.extendedCode == 787)
    }

    @Test(arguments: Kind.allCases, Caller.allCases)
    func aRolledBackTransactionFailsThoseBefore(kind: Kind, caller: Caller) async throws {
        let access = try access(kind)
        let calls = (0..<4).map { number in
            { @Sendable () async throws -> Void in
                try await caller.write(access) { db in
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                    if number == 2 { try db.executeUpdate("INSERT OR ROLLBACK INTO t VALUES (0)", values: nil) }
                }
            }
        }
        let tasks = try await behindABarrier(access, calls)
        for number in 0..<2 {
            let error = await #expect(throws: DatabaseError.self) { try await tasks[number].value }
            #expect(error?.message.contains("shared the transaction") == true)
            #expect(error?.code == SQLITE_CONSTRAINT)
        }
        let guilty = await #expect(throws: DatabaseError.self) { try await tasks[2].value }
        #expect(guilty?.message.contains("shared the transaction") == false)
        // The next one begins anew.
        try await tasks[3].value
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [3])
    }

    @Test func afterALostTransactionNothingMoreOfTheBlockIsExecuted() throws {
        let access = try access(.queue)
        let error = #expect(throws: DatabaseError.self) {
            try access.write { db in
                try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                // FMDB's style: the failure is not looked at.
                db.executeUpdate("INSERT OR ROLLBACK INTO t VALUES (1)", withArgumentsIn: [])
                db.executeUpdate("INSERT INTO t VALUES (2)", withArgumentsIn: [])
            }
        }
        // The first failure, which is the cause of all that followed.
        #expect(error?.extendedCode == SQLITE_CONSTRAINT_PRIMARYKEY)
        #expect(try access.read { db in try db.integers("SELECT n FROM t") } == [])
    }

    @Test(arguments: Kind.allCases)
    func aloneMeansAlone(kind: Kind) async throws {
        let access = try access(kind)
        let counts = Log<Int>()
        let calls = (0..<6).map { number in
            { @Sendable () async throws -> Void in
                try await access.write(alone: number == 2) { db in
                    counts.add(access.sharedWriter.commitCount)
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                }
            }
        }
        let tasks = try await behindABarrier(access, calls)
        for task in tasks { try await task.value }
        // 0 and 1 share, 2 is alone, 3 to 5 share.
        #expect(counts.values == [0, 0, 1, 2, 2, 2])
        #expect(access.sharedWriter.commitCount == 3)
    }

    @Test func limits() async throws {
        let byCount = try access(.queue) { $0.writeBatching.maximumCount = 4 }
        let insert = { @Sendable (access: any DatabaseAccess, number: Int) async throws -> Void in
            try await access.write { db in try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number]) }
        }
        let calls = (0..<10).map { number in { @Sendable () async throws -> Void in try await insert(byCount, number) }
        }
        for task in try await behindABarrier(byCount, calls) { try await task.value }
        #expect(byCount.sharedWriter.commitCount == 3)

        let other = try TemporaryDirectory()
        var configuration = Configuration()
        configuration.writeBatching.maximumDuration = .zero
        let byTime = try DatabaseQueue(path: other.file("db"), configuration: configuration)
        try await byTime.writeWithoutTransaction { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        let more = (0..<5).map { number in { @Sendable () async throws -> Void in try await insert(byTime, number) } }
        for task in try await behindABarrier(byTime, more) { try await task.value }
        #expect(byTime.writer.commitCount == 5)
    }

    @Test(arguments: Kind.allCases)
    func threadsShareCommitsToo(kind: Kind) async throws {
        let access = try access(kind)
        let held = Gate()
        let release = Gate()
        let threads = DispatchGroup()
        let outcomes = Log<Int>()
        Thread.detachNewThread {
            _ = try? access.writeWithoutTransaction { _ in
                held.open()
                release.waitBlocking()
            }
        }
        await held.wait()
        for number in 0..<16 {
            threads.enter()
            Thread.detachNewThread {
                let thread = pthread_self()
                let value = try? access.write { db in
                    #expect(thread == pthread_self())
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                    return number
                }
                if let value { outcomes.add(value) }
                threads.leave()
            }
        }
        while access.sharedWriter.lane.waitingCount < 16 { await Task.yield() }
        release.open()
        await withCheckedContinuation { done in threads.notify(queue: .global()) { done.resume() } }
        #expect(outcomes.values.sorted() == Array(0..<16))
        #expect(access.sharedWriter.commitCount == 1)
    }

    @Test(arguments: Kind.allCases)
    func blocksCannotEndTheirTransaction(kind: Kind) throws {
        let access = try access(kind)
        // Of one that is prepared already, too.
        try access.writeWithoutTransaction { db in #expect(db.beginTransaction() && db.commit()) }
        for sql in [
            "COMMIT", "end", " /* x */ ROLLBACK", "begin immediate", "ROLLBACK TRANSACTION", ";COMMIT",
            "\u{FEFF}COMMIT",
            "-- c\n;\u{FEFF}/**/END", " \u{b}ROLLBACK", "BEGIN EXCLUSIVE",
        ] {
            let error = #expect(throws: DatabaseError.self) {
                try access.write { db in
                    try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                    try db.executeUpdate(sql, values: nil)
                }
            }
            #expect(error?.reason == .misuse)
        }
        try access.write { db in
            // What a block that wanted to roll back has written is not kept: see RefusedRollbackTests.
            #expect(!db.commit() && !db.beginTransaction())
            #expect(!db.executeStatements("INSERT INTO t VALUES (5); COMMIT; INSERT INTO t VALUES (6)"))
            #expect(db.hadError())
            _ = try? db.savepoint {
                try db.executeUpdate("INSERT INTO t VALUES (7)", values: nil)
                throw CancellationError()
            }
            try db.startSavePoint(withName: "s")
            try db.executeUpdate("INSERT INTO t VALUES (8)", values: nil)
            try db.rollbackToSavePoint(withName: "s")
            try db.releaseSavePoint(withName: "s")
        }
        #expect(try access.read { db in try db.integers("SELECT n FROM t") } == [5])
        // FMDB's calls are as before.
        access.inDatabase { db in #expect(db.beginTransaction() && db.commit()) }
    }

    /// Not only when it is run: the error belongs to the line in which the statement stands.
    @Test(arguments: Kind.allCases)
    func blocksCannotPrepareTheEndOfTheirTransaction(kind: Kind) throws {
        let access = try access(kind)
        // The second time, it is prepared already.
        for number in 1...2 {
            try access.write { db in
                let error = #expect(throws: DatabaseError.self) { try db.prepare("COMMIT") }
                #expect(error?.reason == .misuse)
                try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
            }
            try access.writeWithoutTransaction { db in #expect(db.beginTransaction() && db.commit()) }
        }
        #expect(try access.read { db in try db.integers("SELECT n FROM t ORDER BY n") } == [1, 2])
    }

    @Test func readsSeeOneStateAndCannotWrite() throws {
        for kind in Kind.allCases {
            let own = try TemporaryDirectory()
            let path = own.file("db")
            let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
            let access: any DatabaseAccess =
                kind == .queue
                ? try DatabaseQueue(path: path, configuration: configuration)
                : DatabasePool(path: path, configuration: configuration)
            try access.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
            for sql in ["INSERT INTO t VALUES (1)", "CREATE TABLE u (n)", "PRAGMA user_version = 5", "COMMIT"] {
                let error = #expect(throws: DatabaseError.self) {
                    try access.read { db in try db.executeUpdate(sql, values: nil) }
                }
                #expect(error?.reason == .misuse, "\(sql)")
            }
            let other = try Database.testing(path)
            try access.read { db in
                #expect(try db.integers("SELECT count(*) FROM t") == [0])
                try other.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                #expect(try db.integers("SELECT count(*) FROM t") == [0])
            }
            #expect(try access.read { db in try db.integers("SELECT count(*) FROM t") } == [1])
            // And the connection can write again.
            try access.write { db in try db.executeUpdate("INSERT INTO t VALUES (2)", values: nil) }
        }
    }

    /// Kept open, it would swallow what others do next, and fail whoever needs a transaction of their own.
    @Test(arguments: Kind.allCases)
    func aTransactionThatIsLeftOpenIsRolledBackAndTold(kind: Kind) async throws {
        let access = try access(kind)
        let leave: @Sendable (Database) -> Void = { db in
            #expect(db.beginTransaction())
            #expect(db.executeUpdate("INSERT INTO t VALUES (1)", withArgumentsIn: []))
        }
        let returned = access.inDatabase { db in leave(db) } as? DatabaseError
        #expect(returned?.reason == .misuse && returned?.message.contains("left a transaction open") == true)
        let thrown = #expect(throws: DatabaseError.self) { try access.inDatabase { db throws in leave(db) } }
        #expect(thrown == returned)
        #expect(throws: DatabaseError.self) { try access.writeWithoutTransaction { db in leave(db) } }
        await #expect(throws: DatabaseError.self) { try await access.writeWithoutTransaction { db in leave(db) } }
        // An error of the block's own comes first.
        #expect(throws: CancellationError.self) {
            try access.inDatabase { db in
                leave(db)
                throw CancellationError()
            }
        }
        try await access.write { db in try db.executeUpdate("INSERT INTO t VALUES (2)", values: nil) }
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [2])
    }

    /// "Cancelled" would say that nothing is stored, which is not known of every commit that fails.
    @Test func aCancelledCallIsToldWhyTheCommitFailed() async throws {
        let access = try access(.queue)
        let path = directory.file("db")
        let (inSecond, cancelled) = (Gate(), Gate())
        let calls: [@Sendable () async throws -> Void] = [
            { try await access.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil) } },
            {
                try await access.write { _ in
                    inSecond.open()
                    cancelled.waitBlocking()
                    try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
                }
            },
        ]
        let tasks = try await behindABarrier(access, calls)
        await inSecond.wait()
        tasks[0].cancel()
        cancelled.open()
        for task in tasks {
            let error = await #expect(throws: DatabaseError.self) { try await task.value }
            #expect(error?.message.contains("could not be committed") == true)
        }
    }

    @Test(arguments: Caller.allCases)
    func anErrorOfABlockIsItsOwnWhenTheCommitFails(caller: Caller) async throws {
        struct Failure: Error {}
        let access = try access(.queue)
        try await access.writeWithoutTransaction { db in
            try db.executeUpdate("PRAGMA journal_mode = DELETE", values: nil)
            db.maxBusyRetryTimeInterval = 0
        }
        let other = try Database.testing(directory.file("db"))
        let reading = try other.executeQuery("SELECT 1 FROM sqlite_schema", values: nil)
        #expect(reading.next())
        let calls = (0..<4).map { number in
            { @Sendable () async throws -> Void in
                try await caller.write(access) { db in
                    try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                    if number == 1 { throw Failure() }
                }
            }
        }
        let tasks = try await behindABarrier(access, calls)
        for number in [0, 2, 3] {
            let error = await #expect(throws: DatabaseError.self) { try await tasks[number].value }
            #expect(error?.reason == .busy && error?.message.contains("could not be committed") == true)
        }
        await #expect(throws: Failure.self) { try await tasks[1].value }
        reading.close()
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [])
    }

    @Test(
        arguments: Kind.allCases,
        ["PRAGMA defer_foreign_keys = ON", "/* x */ pragma main.\"Defer_Foreign_Keys\"(1)"]
    )
    func deferredForeignKeysEndWithTheirBlock(kind: Kind, pragma: String) async throws {
        let access = try access(kind)
        try await access.write { db in
            try db.executeUpdate("CREATE TABLE d (n REFERENCES t)", values: nil)
        }
        let calls: [@Sendable () async throws -> Void] = [
            {
                try await access.write { db in
                    #expect(db.executeStatements(pragma))
                    // In any order within the block.
                    try db.executeUpdate("INSERT INTO d VALUES (1)", values: nil)
                    try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                }
            },
            {
                try await access.write { db in
                    let error = #expect(throws: DatabaseError.self) {
                        try db.executeUpdate("INSERT INTO d VALUES (2)", values: nil)
                    }
                    #expect(error?.extendedCode == SQLITE_CONSTRAINT_FOREIGNKEY)
                }
            },
        ]
        for task in try await behindABarrier(access, calls) { try await task.value }
        #expect(access.sharedWriter.commitCount == 2)
        try await access.writeWithoutTransaction { db in #expect(db.executeStatements(pragma)) }
        await #expect(throws: DatabaseError.self) {
            try await access.write { db in
                let error = #expect(throws: DatabaseError.self) {
                    try db.executeUpdate("INSERT INTO d VALUES (2)", values: nil)
                }
                throw try #require(error)
            }
        }
        #expect(try await access.read { db in try db.integers("SELECT n FROM d") } == [1])
    }

    /// A savepoint that a block leaves open is no part of the transactions of others, who may use its name.
    @Test(arguments: Kind.allCases, ["ROLLBACK TO x", "RELEASE x"])
    func aSavepointThatIsLeftOpen(kind: Kind, other: String) async throws {
        let access = try access(kind)
        let tasks = try await behindABarrier(
            access,
            [
                {
                    try await access.write { db in
                        try db.execute(script: "INSERT INTO t VALUES (1); SAVEPOINT x; INSERT INTO t VALUES (2)")
                    }
                },
                { try await access.write { db in try db.execute(script: "\(raw: other)") } },
                { try await access.write { db in try db.execute(script: "INSERT INTO t VALUES (3)") } },
            ]
        )
        try await tasks[0].value
        let error = await #expect(throws: DatabaseError.self) { try await tasks[1].value }
        #expect(error?.message.contains("no such savepoint: x") == true, "\(String(describing: error))")
        try await tasks[2].value
        #expect(try await access.read { db in try db.integers("SELECT n FROM t ORDER BY n") } == [1, 2, 3])
    }
}

/// What tests ask of a queue's or pool's writer.
protocol WriterOwner {
    var sharedWriter: Writer { get }
}

extension DatabaseQueue: WriterOwner {
    var sharedWriter: Writer { writer }
}

extension DatabasePool: WriterOwner {
    var sharedWriter: Writer { writer }
}

extension Database {
    func texts(_ sql: String) throws -> [String] {
        let rows = try executeQuery(sql, values: nil)
        var result: [String] = []
        while try rows.nextWithError() { result.append(rows.string(forColumnIndex: 0) ?? "NULL") }
        return result
    }
}
