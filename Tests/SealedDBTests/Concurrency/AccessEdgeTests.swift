import Foundation
import Testing

@testable import SealedDB

/// Transactions that do not end as they should, stores that are replaced, and calls that come while others end.
@Suite(.hangLimit)
struct AccessEdgeTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func configuration() throws -> Configuration {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.journalMode = .wal
        return configuration
    }

    private func store() throws -> Database { try Database.testing(path, journalMode: .wal) }

    /// Has every statement of the connection stopped until the one that is returned has ended.
    private static func obstruct(_ db: Database) throws -> Statement {
        let statement = try #require(db.connection).prepare("VALUES (1), (2)")
        #expect(try statement.step())
        db.connection?.interrupt()
        return statement
    }

    // MARK: Kinds of transactions

    /// What others can do meanwhile. An exclusive transaction keeps them from reading only where there is no log.
    @Test(arguments: [false, true]) func kindsOfTransactions(isOfPool: Bool) throws {
        var configuration = try configuration()
        configuration.journalMode = .delete
        configuration.busyTimeout = .zero
        let access: any DatabaseAccess =
            isOfPool
            ? DatabasePool(path: path, configuration: configuration)
            : try DatabaseQueue(path: path, configuration: configuration)
        try access.write { db in try db.fill(rows: 1) }
        let other = Database(path: path, configuration: configuration)
        try other.openVerified()
        func others() -> [Bool] {
            let reads = (try? other.integers("SELECT count(*) FROM t")) != nil
            let writes = other.beginImmediateTransaction()
            if writes { #expect(other.rollback()) }
            return [reads, writes]
        }
        let (deferred, immediate, exclusive) = ([true, true], [true, false], [false, false])
        #expect(try access.inDeferredTransaction { _ in others() } == deferred)
        #expect(try access.inTransaction { _ in others() } == immediate)
        #expect(try access.inImmediateTransaction { _ in others() } == immediate)
        #expect(try access.inExclusiveTransaction { _ in others() } == exclusive)
        // As in FMDB, where a transaction without a name is an exclusive one.
        var found: [[Bool]] = []
        for error in [
            access.inDeferredTransaction { _, _ in found.append(others()) },
            access.inImmediateTransaction { _, _ in found.append(others()) },
            access.inExclusiveTransaction { _, _ in found.append(others()) },
            access.inTransaction { _, _ in found.append(others()) },
        ] {
            #expect(error == nil)
        }
        #expect(found == [deferred, immediate, exclusive, exclusive])
    }

    /// The library itself takes back what a part has done. After that the block may not end its transaction either.
    @Test(arguments: [false, true]) func partsThatFail(isOfPool: Bool) throws {
        struct Failure: Error {}
        let access: any DatabaseAccess =
            isOfPool
            ? DatabasePool(path: path, configuration: try configuration())
            : try DatabaseQueue(path: path, configuration: configuration())
        try access.write { db in
            try db.fill(rows: 1)
            #expect(throws: Failure.self) {
                try db.savepoint {
                    try db.fill(rows: 3)
                    throw Failure()
                }
            }
            for sql in ["COMMIT", "BEGIN"] {
                let error = #expect(throws: DatabaseError.self) { try db.run(sql) }
                #expect(error?.reason == .misuse, "\(sql): \(error as Any)")
            }
            #expect(db.isInTransaction)
        }
        #expect(try access.read { db in try db.integers("SELECT count(*) FROM t") } == [1])
    }

    // MARK: Transactions that cannot be ended

    /// Closing the connection ends them.
    @Test func aBlockOfReadWhoseTransactionCannotEnd() throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try db.fill(rows: 3) }
        var statements: [Statement] = []
        try queue.read { db in statements.append(try Self.obstruct(db)) }
        #expect(try queue.read { db in try db.integers("SELECT count(*) FROM t") } == [3])
        try queue.write { db in try db.fill(rows: 1) }
        #expect(try queue.read { db in try db.integers("SELECT count(*) FROM t") } == [4])
    }

    @Test func aBlockOfWriteThatCannotBeRolledBack() throws {
        struct Failure: Error {}
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try db.fill(rows: 3) }
        var statements: [Statement] = []
        #expect(throws: Failure.self) {
            try queue.write { db in
                try db.fill(rows: 1)
                statements.append(try Self.obstruct(db))
                throw Failure()
            }
        }
        #expect(try queue.read { db in try db.integers("SELECT count(*) FROM t") } == [3])
        try queue.write { db in try db.fill(rows: 1) }
        #expect(try queue.read { db in try db.integers("SELECT count(*) FROM t") } == [4])
    }

    @Test func aTransactionLeftOpenThatCannotBeRolledBack() throws {
        let db = try store()
        defer { db.close() }
        try db.fill(rows: 3)
        #expect(db.beginTransaction())
        try db.fill(rows: 1)
        let statement = try Self.obstruct(db)
        db.rollBackWhatIsOpen()
        #expect(!db.isOpen)
        statement.close()
        #expect(try store().integers("SELECT count(*) FROM t") == [3])
    }

    // MARK: Stores that are replaced

    /// Puts another store in the place of the one that is open.
    /// - Parameter withLog: whether it has a log of its own, which takes the place of the present one.
    private func replace(withLog: Bool = false) throws {
        let other = try Database.testing(directory.file("other"), journalMode: .wal)
        try other.fill(rows: 7)
        if withLog {
            try directory.write("db-wal", directory.bytes("other-wal"))
        } else {
            #expect(other.executeStatements("PRAGMA wal_checkpoint(TRUNCATE)"))
        }
        try directory.write("copy", directory.bytes("other"))
        #expect(rename(directory.file("copy"), path) == 0)
        other.close()
    }

    @Test func anEmptyLogIsNobodys() throws {
        let db = try store()
        defer { db.close() }
        try db.fill(rows: 3)
        #expect(db.executeStatements("PRAGMA wal_checkpoint(TRUNCATE)"))
        try #require(try directory.bytes("db-wal").isEmpty)
        try replace()
        try db.closeIfReplaced()
        #expect(!db.isOpen)
        try db.reopen()
        #expect(try db.integers("SELECT count(*) FROM t") == [7])
    }

    /// It belongs to the store that came with it.
    @Test func theLogOfTheNewFile() throws {
        let db = try store()
        defer { db.close() }
        try db.fill(rows: 3)
        try replace(withLog: true)
        try db.closeIfReplaced()
        #expect(!db.isOpen)
    }

    @Test func aTransactionOfAFileThatWasReplaced() throws {
        let db = try store()
        defer { db.close() }
        try db.fill(rows: 3)
        #expect(db.executeStatements("PRAGMA wal_checkpoint(TRUNCATE)"))
        #expect(db.beginTransaction())
        try replace()
        try db.closeIfReplaced()
        #expect(db.isOpen && db.isInTransaction)
        #expect(db.rollback())
    }

    /// It is closed even if nothing of it can be read any more.
    @Test func aReplacedFileWhoseSettingsCannotBeRead() throws {
        let db = try store()
        defer { db.close() }
        try db.fill(rows: 3)
        #expect(db.executeStatements("PRAGMA wal_checkpoint(TRUNCATE)"))
        // Known from here on, so that SQLite is not asked.
        #expect(try #require(db.connection).mainFileHasMoved() == false)
        try replace()
        let statement = try Self.obstruct(db)
        #expect(throws: DatabaseError.self) { try db.closeIfReplaced() }
        #expect(!db.isOpen)
        statement.close()
    }

    /// What ends with a connection of a file that was replaced is told to its next block, and not lost without a word.
    @Test func temporaryTablesOfAnIdleConnection() throws {
        let pool = DatabasePool(path: path, configuration: try configuration())
        try pool.write { db in try db.fill(rows: 3) }
        try pool.inDatabase { db in try db.executeUpdate("CREATE TEMP TABLE x (a)") }
        try pool.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
        try replace()
        // Whether it can go on depends on the log, which the idle connection has open.
        _ = try? pool.write { db in try db.fill(rows: 1) }
        let error = #expect(throws: DatabaseError.self) { try pool.inDatabase { db in try db.integers("SELECT 1") } }
        #expect(error?.message.contains("put another file in the place") == true, "\(String(describing: error))")
        #expect(try pool.inDatabase { db in try db.integers("SELECT count(*) FROM t") }[0] >= 7)
    }

    // MARK: Backups

    @Test func aBackupThatEndsByItself() async throws {
        struct Failure: Error {}
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try await queue.write { db in try db.fill(rows: 300) }
        let copy = directory.file("copy")
        await #expect(throws: CancellationError.self) {
            try await queue.backup(to: copy) { _ in throw CancellationError() }
        }
        let error = await #expect(throws: DatabaseError.self) {
            try await queue.backup(to: copy) { _ in throw Failure() }
        }
        #expect(error?.underlyingError is Failure, "\(String(describing: error))")
        #expect(!directory.names.contains("copy"))
        try await queue.backup(to: copy)
        #expect(directory.names.contains("copy"))
    }

    // MARK: Observations

    /// What a block throws ends the observation with that error, whatever it is.
    @Test func aBlockThatThrowsWhatACancellationThrows() async throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        let values = queue.observe { _ -> Int in throw CancellationError() }
        await #expect(throws: CancellationError.self) { for try await _ in values {} }
    }

    // MARK: Snapshots

    /// A shutdown that has begun waits for the blocks that run, and for no snapshot that they take.
    @Test func aSnapshotWhileThePoolShutsDown() async throws {
        let pool = DatabasePool(path: path, configuration: try configuration())
        try await pool.write { db in try db.fill(rows: 3) }
        let (isInside, begins) = (Gate(), Gate())
        let ended = Log<Bool>()
        let thread = Thread {
            try? pool.inDatabase { _ in
                isInside.open()
                begins.waitBlocking()
                let snapshot = try pool.snapshot()
                let count = try? snapshot.read { db in try db.integers("SELECT count(*) FROM t") }
                ended.add(count == nil)
                snapshot.close()
            }
        }
        thread.start()
        await isInside.wait()
        let shutdown = Task { await pool.shutDown() }
        while !pool.reception.look({ $0.isRefusing(0) }) { await Task.yield() }
        begins.open()
        await shutdown.value
        #expect(ended.values == [true])
    }

    // MARK: Opening

    /// Counts the looks at a limit, and opens a gate at one of them.
    private final class Limit: Sendable {
        private let looks = Guarded(0)
        let gate = Gate()

        func look() -> Double? {
            let count = looks.withLock { looks in
                looks += 1
                return looks
            }
            if count == 2 { gate.open() }
            return 1000
        }
    }

    // @unchecked: each database is used by one thread after another.
    private struct Databases: @unchecked Sendable {
        let first: Database
        let second: Database
    }

    /// Who has waited for a moment goes on waiting until its time is over.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func theFirstOpeningTakesItsTime() async throws {
        let (limit, asked) = (Limit(), Gate())
        let opening = Opening(flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs: nil) { limit.look() }
        let slow = Configuration(
            keySource: .closure {
                asked.open()
                limit.gate.waitBlocking()
                return try .testing(1)
            }
        )
        let databases = Databases(
            first: Database(path: path, configuration: slow),
            second: Database(path: path, configuration: Configuration(key: try .testing(1)))
        )
        let outcomes = Log<Bool>()
        let done = (Gate(), Gate())
        Thread {
            outcomes.add((try? opening.open(databases.first)) != nil)
            done.0.open()
        }.start()
        await asked.wait()
        Thread {
            outcomes.add((try? opening.open(databases.second)) != nil)
            // Nobody waits for it any more.
            limit.gate.open()
            done.1.open()
        }.start()
        await done.0.wait()
        await done.1.wait()
        #expect(outcomes.values == [true, true])
        databases.first.close()
        databases.second.close()
    }
}
