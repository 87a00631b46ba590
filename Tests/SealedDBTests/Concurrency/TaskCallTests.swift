import Foundation
import Testing

@testable import SealedDB

/// Calls of `read` and `write` from tasks: cancellation, priorities, waiting, shutting down.
@Suite(.hangLimit)
struct TaskCallTests {
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
        configuration.maximumReaderCount = 2
        change(&configuration)
        let access: any DatabaseAccess & WriterOwner =
            switch kind {
            case .queue: try DatabaseQueue(path: directory.file("db"), configuration: configuration)
            case .pool: DatabasePool(path: directory.file("db"), configuration: configuration)
            }
        try access.write { db in try db.executeUpdate("CREATE TABLE t (n INTEGER PRIMARY KEY)", values: nil) }
        return access
    }

    /// Runs for ever, unless it is stopped.
    private static let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "

    /// Holds the writer until it is told to let go.
    private func hold(_ access: any DatabaseAccess, until release: Gate) async -> Task<Void, any Error> {
        let held = Gate()
        let holder = Task {
            try await access.writeWithoutTransaction { _ in
                held.open()
                release.waitBlocking()
            }
        }
        await held.wait()
        return holder
    }

    private func waiting(_ access: any DatabaseAccess & WriterOwner, atLeast count: Int) async {
        while access.sharedWriter.lane.waitingCount < count { await Task.yield() }
    }

    // MARK: Cancellation

    @Test(arguments: Kind.allCases)
    func cancelledBeforeTheCall(kind: Kind) async throws {
        let access = try access(kind)
        let called = Log<Int>()
        let cancelled = Gate()
        let task = Task {
            await cancelled.wait()
            try await access.write { _ in called.add(1) }
        }
        task.cancel()
        cancelled.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(called.values == [])
    }

    @Test(arguments: Kind.allCases)
    func cancelledWhileWaiting(kind: Kind) async throws {
        let access = try access(kind)
        let release = Gate()
        let holder = await hold(access, until: release)
        let called = Log<Int>()
        let tasks = (0..<10).map { number in
            Task { try await access.write { _ in called.add(number) } }
        }
        await waiting(access, atLeast: 10)
        for number in stride(from: 0, to: 10, by: 2) {
            tasks[number].cancel()
            // While the writer is still held: a cancelled call does not wait for its turn.
            await #expect(throws: CancellationError.self) { try await tasks[number].value }
        }
        #expect(access.sharedWriter.lane.waitingCount == 5)
        release.open()
        try await holder.value
        for number in stride(from: 1, to: 10, by: 2) { try await tasks[number].value }
        #expect(Set(called.values) == [1, 3, 5, 7, 9])
    }

    @Test(arguments: Kind.allCases, ["read", "write", "writeWithoutTransaction"])
    func cancelledWhileAStatementRuns(kind: Kind, call: String) async throws {
        let access = try access(kind)
        let started = Gate()
        let block: @Sendable (Database) throws -> Void = { db in
            if call != "read" { try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil) }
            started.open()
            _ = try db.integers(TaskCallTests.endless + "SELECT count(*) FROM n")
        }
        let task = Task {
            switch call {
            case "read": try await access.read(block)
            case "write": try await access.write(block)
            default: try await access.writeWithoutTransaction(block)
            }
        }
        await started.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let kept = call == "writeWithoutTransaction" ? [1] : []
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == kept)
    }

    /// It runs no statement that could be stopped.
    @Test(arguments: Kind.allCases, ["write", "inTransaction", "migration"])
    func cancelledWhileTheBlockComputes(kind: Kind, call: String) async throws {
        let access = try access(kind)
        let (started, cancelled) = (Gate(), Gate())
        let block: @Sendable (Database) throws -> Void = { db in
            try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
            started.open()
            cancelled.waitBlocking()
        }
        let task = Task {
            switch call {
            case "write": try await access.write(block)
            case "inTransaction":
                try await access.writeWithoutTransaction { db in try db.inTransaction { try block(db) } }
            default:
                var migrator = Migrator()
                migrator.register("a", block)
                _ = try await migrator.migrate(access)
            }
        }
        await started.wait()
        task.cancel()
        cancelled.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [])
    }

    @Test(arguments: Kind.allCases)
    func aCancelledBlocksOwnTransactionIsRolledBack(kind: Kind) async throws {
        let access = try access(kind)
        let started = Gate()
        let task = Task {
            try await access.writeWithoutTransaction { db in
                try db.executeUpdate("BEGIN", values: nil)
                try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                started.open()
                _ = try db.integers(TaskCallTests.endless + "SELECT count(*) FROM n")
            }
        }
        await started.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await access.write { db in try db.integers("SELECT n FROM t") } == [])
    }

    /// Only what was cut short is a cancellation. What else went wrong may say that data is damaged.
    @Test(arguments: Kind.allCases)
    func aCancellationHidesNoOtherError(kind: Kind) async throws {
        struct Failure: Error {}
        let access = try access(kind)
        let block: @Sendable (Database) throws -> Void = { _ in
            withUnsafeCurrentTask { task in task?.cancel() }
            #expect(Task.isCancelled)
            throw Failure()
        }
        await #expect(throws: Failure.self) { try await Task { try await access.write(block) }.value }
        await #expect(throws: Failure.self) { try await Task { try await access.writeWithoutTransaction(block) }.value }
        await #expect(throws: Failure.self) { try await Task { try await access.read(block) }.value }
    }

    @Test func cancelledWhileAStatementWrites() async throws {
        let access = try access(.queue)
        let started = Gate()
        let task = Task {
            try await access.write { db in
                started.open()
                db.executeUpdate(TaskCallTests.endless + "INSERT INTO t SELECT i FROM n", withArgumentsIn: [])
                // The failure was not looked at, and SQLite has rolled back: this would be committed at once.
                db.executeUpdate("INSERT INTO t VALUES (-1)", withArgumentsIn: [])
            }
        }
        await started.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [])
    }

    /// The statement of a block that shares its transaction must not take the others' work with it.
    @Test func cancelledInASharedTransaction() async throws {
        let access = try access(.queue)
        let release = Gate()
        let holder = await hold(access, until: release)
        let started = Gate()
        let cancelled = Gate()
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<3 {
            tasks.append(
                Task {
                    try await access.write { db in
                        try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                        guard number == 1 else { return }
                        started.open()
                        cancelled.waitBlocking()
                        // Long enough to be asked whether it goes on, and let finish.
                        try db.executeUpdate(
                            "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                                + "INSERT INTO t SELECT i FROM n",
                            values: nil
                        )
                        Issue.record("The next statement was not refused.")
                    }
                }
            )
            await waiting(access, atLeast: number + 1)
        }
        release.open()
        try await holder.value
        await started.wait()
        tasks[1].cancel()
        cancelled.open()
        try await tasks[0].value
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        try await tasks[2].value
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [0, 2])
    }

    @Test func aSharedBlocksRunningStatementIsLetFinish() async throws {
        let access = try access(.queue)
        let release = Gate()
        let holder = await hold(access, until: release)
        let steps = Log<Int>()
        let cancelled = Gate()
        let began = Gate()
        let first = Task {
            try await access.write { db in try db.executeUpdate("INSERT INTO t VALUES (0)", values: nil) }
        }
        await waiting(access, atLeast: 1)
        let second = Task {
            try await access.write { db in
                // Waits within the statement until the cancellation has arrived.
                db.makeFunctionNamed("pause", arguments: 0) { [unowned db] context, _, _ in
                    began.open()
                    cancelled.waitBlocking()
                    db.resultInt(1, context: context)
                }
                try db.executeUpdate(
                    "WITH RECURSIVE n(i) AS (SELECT pause() UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                        + "INSERT INTO t SELECT i FROM n",
                    values: nil
                )
                steps.add(1)
                _ = try db.integers("SELECT 1")
                steps.add(2)
            }
        }
        await waiting(access, atLeast: 2)
        release.open()
        try await holder.value
        await began.wait()
        second.cancel()
        cancelled.open()
        try await first.value
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(steps.values == [1])
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [0])
    }

    /// Whoever comes next is never hit by a cancellation that was meant for the one before.
    @Test(arguments: Kind.allCases)
    func aCancellationStopsItsOwnStatementOnly(kind: Kind) async throws {
        let access = try access(kind)
        for _ in 0..<200 {
            let victim = Task {
                try await access.write { db in
                    _ = try db.integers(
                        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
                            + "SELECT count(*) FROM n"
                    )
                }
            }
            let next = Task {
                try await access.write { db in
                    try db.integers(
                        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
                            + "SELECT count(*) FROM n"
                    )
                }
            }
            victim.cancel()
            do {
                try await victim.value
            } catch {
                #expect(error is CancellationError)
            }
            #expect(try await next.value == [3000])
        }
    }

    @Test func aWaitForAnotherConnectionsLockIsCancelled() async throws {
        let access = try access(.queue) { $0.busyTimeout = .seconds(3600) }
        let other = try Database.testing(directory.file("db"))
        #expect(other.beginImmediateTransaction())
        let begun = Gate()
        let task = Task {
            begun.open()
            try await access.write { _ in Issue.record("The lock was not kept.") }
        }
        await begun.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(other.rollback())
        try await access.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil) }
    }

    // MARK: Order

    @Test func higherPrioritiesGoFirst() async throws {
        let access = try access(.queue)
        let release = Gate()
        let holder = await hold(access, until: release)
        let order = Log<String>()
        var tasks: [Task<Void, any Error>] = []
        for (name, priority) in [
            ("background", TaskPriority.background), ("low", .low), ("medium", .medium), ("high", .high),
        ] {
            tasks.append(Task(priority: priority) { try await access.write { _ in order.add(name) } })
            await waiting(access, atLeast: tasks.count)
        }
        release.open()
        try await holder.value
        // From the highest to the lowest: whoever is awaited gets the priority of this task.
        for task in tasks.reversed() { try await task.value }
        #expect(order.values == ["high", "medium", "low", "background"])
    }

    @Test(arguments: Kind.allCases)
    func tenThousandTasksWaitWithoutThreads(kind: Kind) async throws {
        let access = try access(kind)
        let release = Gate()
        let holder = await hold(access, until: release)
        let before = threadCount()
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<10_000 {
                group.addTask {
                    try await access.write { db in
                        try db.executeUpdate("INSERT INTO t VALUES (?)", values: [number])
                        return 1
                    }
                }
            }
            await waiting(access, atLeast: 10_000)
            // Other tests have threads of their own meanwhile, by the hundred; ten thousand would show.
            #expect(threadCount() < before + 1000)
            release.open()
            return try await group.reduce(0, +)
        }
        try await holder.value
        #expect(sum == 10_000)
        #expect(try await access.read { db in try db.integers("SELECT count(*) FROM t") } == [10_000])
    }

    @Test(arguments: Kind.allCases)
    func waitingEndsInTime(kind: Kind) async throws {
        let access = try access(kind)
        switch access {
        case let queue as DatabaseQueue: queue.maximumWait = .zero
        case let pool as DatabasePool: pool.maximumWait = .zero
        default: Issue.record()
        }
        let release = Gate()
        let holder = await hold(access, until: release)
        let error = await #expect(throws: DatabaseError.self) { try await access.write { _ in } }
        #expect(error?.reason == .busy)
        let thread = Task.detached { () -> DatabaseError? in
            do {
                try { try access.write { _ in } }()
                return nil
            } catch {
                return error as? DatabaseError
            }
        }
        #expect(await thread.value?.reason == .busy)
        release.open()
        try await holder.value
        try await access.write { _ in }
    }

    // MARK: Statements that take too long

    @Test(arguments: [true, false])
    func statementsHaveALimit(isShared: Bool) async throws {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.statementTimeout = .milliseconds(50)
        if isShared {
            let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
            let error = await #expect(throws: DatabaseError.self) {
                try await queue.read { db in try db.integers(TaskCallTests.endless + "SELECT count(*) FROM n") }
            }
            #expect(error?.reason == .timedOut && error?.code == SQLITE_INTERRUPT)
            #expect(try await queue.read { db in try db.integers("SELECT 1") } == [1])
        } else {
            let database = Database(path: directory.file("db"), configuration: configuration)
            try database.openVerified()
            let error = #expect(throws: DatabaseError.self) {
                try database.integers(TaskCallTests.endless + "SELECT count(*) FROM n")
            }
            #expect(error?.reason == .timedOut)
            #expect(try database.integers("SELECT 1") == [1])
        }
    }

    /// SQLite reads the schema while it prepares the next one, which is nobody's statement.
    @Test(arguments: [true, false])
    func aLimitEndsWithItsStatement(isShared: Bool) async throws {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        // Time for short statements only: SQLite asks after a thousand steps.
        configuration.statementTimeout = .microseconds(1)
        configuration.journalMode = .wal
        let path = directory.file("db")
        func work(_ read: (String) throws -> [Int]) throws {
            #expect(try read("SELECT 1") == [1])
            let other = try Database.testing(path, journalMode: .wal)
            try other.inTransaction {
                for number in 0..<600 { try other.executeUpdate("CREATE TABLE t\(raw: number) (n)", values: nil) }
            }
            other.close()
            #expect(try read("SELECT count(*) FROM t599") == [0])
            #expect(throws: DatabaseError.self) { _ = try read(TaskCallTests.endless + "SELECT count(*) FROM n") }
            #expect(try read("SELECT 2") == [2])
        }
        if isShared {
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try work { sql in try queue.inDatabase { db in try db.integers(sql) } }
        } else {
            let database = Database(path: path, configuration: configuration)
            try database.openVerified()
            try work { sql in try database.integers(sql) }
        }
    }

    // MARK: Interrupting and shutting down

    @Test(arguments: Kind.allCases)
    func interruptStopsWhatRuns(kind: Kind) async throws {
        let access = try access(kind)
        let started = Gate()
        let task = Task {
            try await access.read { db in
                started.open()
                _ = try db.integers(TaskCallTests.endless + "SELECT count(*) FROM n")
            }
        }
        await started.wait()
        let failure = Log<DatabaseError>()
        let watcher = Task {
            do { try await task.value } catch { failure.add(error as! DatabaseError) }
        }
        // SQLite forgets an interrupt that comes before the statement.
        while failure.values.isEmpty {
            switch access {
            case let queue as DatabaseQueue: queue.interrupt()
            case let pool as DatabasePool: pool.interrupt()
            default: Issue.record()
            }
            await Task.yield()
        }
        await watcher.value
        #expect(failure.values.first?.code == SQLITE_INTERRUPT)
        #expect(try await access.read { db in try db.integers("SELECT 1") } == [1])
    }

    @Test(arguments: Kind.allCases)
    func shuttingDownWaits(kind: Kind) async throws {
        let access = try access(kind)
        let release = Gate()
        let holder = await hold(access, until: release)
        let late = Task {
            try await access.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil) }
        }
        await waiting(access, atLeast: 1)
        let shutdown = Task { await access.shutDown() }
        // New calls are refused while old ones are still waiting. The lane says so before anybody is waited for.
        while access.sharedWriter.lane.isRefusing == false { await Task.yield() }
        let early = await #expect(throws: DatabaseError.self) { try await access.write { _ in } }
        #expect(early?.reason == .shutDown)
        release.open()
        try await holder.value
        try await late.value
        await shutdown.value
        let refused = await #expect(throws: DatabaseError.self) { try await access.write { _ in } }
        #expect(refused?.reason == .shutDown)
        #expect(access.inDatabase { _ in } is DatabaseError)
        #expect(directory.names == ["db"])
        #expect(try Database.testing(directory.file("db")).integers("SELECT n FROM t") == [1])
    }

    @Test(arguments: Kind.allCases)
    func shuttingDownMayInterrupt(kind: Kind) async throws {
        let access = try access(kind)
        let started = Gate()
        let running = Task {
            try await access.write { db in
                try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                started.open()
                // Even who ignores errors comes to an end.
                db.executeUpdate(TaskCallTests.endless + "INSERT INTO t SELECT i + 1 FROM n", withArgumentsIn: [])
                _ = try db.integers("SELECT 1")
            }
        }
        await started.wait()
        let waiter = Task { try await access.write { _ in } }
        await waiting(access, atLeast: 1)
        await access.shutDown(interruptingAfter: .zero)
        await #expect(throws: DatabaseError.self) { try await running.value }
        let refused = await #expect(throws: DatabaseError.self) { try await waiter.value }
        #expect(refused?.reason == .shutDown)
        #expect(directory.names == ["db"])
        #expect(try Database.testing(directory.file("db")).integers("SELECT n FROM t") == [])
    }
}
