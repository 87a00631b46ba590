import Foundation
import Testing

@testable import SealedDB

/// Blocks in which a call failed and nobody looked.
@Suite(.hangLimit)
struct IgnoredErrorTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A block that is kept or undone as a whole.
    enum Transaction: CaseIterable, Sendable {
        case queueWrite, queueTask, poolWrite, queueTransaction, poolSavepoint, transaction, savepoint, migration

        /// Whether it is `Database`'s own.
        var isOfDatabase: Bool { self == .transaction || self == .savepoint }
    }

    private func configuration() throws -> Configuration {
        Configuration(key: isEncrypting ? try .testing(1) : nil)
    }

    /// Runs the block in a store with a table `t`, and returns the error and what is in `t` afterwards.
    private func run(
        _ transaction: Transaction,
        failsBlocks: Bool = true,
        _ block: @escaping @Sendable (Database) throws -> Void
    ) async throws -> (error: (any Error)?, stored: [Int]) {
        var configuration = try configuration()
        configuration.failsBlocksAfterIgnoredErrors = failsBlocks
        let path = directory.file("\(UUID())")
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let pool = DatabasePool(path: path, configuration: configuration)
        try await queue.write { db in try db.executeUpdate("CREATE TABLE t (n INTEGER PRIMARY KEY)", values: nil) }
        var failure: (any Error)?
        do {
            switch transaction {
            case .queueWrite: try IgnoredErrorTests.write(queue, block)
            case .queueTask: try await queue.write(block)
            case .poolWrite: try await pool.write(block)
            case .queueTransaction: try queue.inTransaction { db throws in try block(db) }
            case .poolSavepoint: try pool.inSavePoint { db throws in try block(db) }
            case .transaction: try queue.inDatabase { db throws in try db.inTransaction { try block(db) } }
            case .savepoint: try queue.inDatabase { db throws in try db.savepoint { try block(db) } }
            case .migration:
                var migrator = Migrator()
                migrator.register("a", block)
                _ = try await migrator.migrate(queue)
            }
        } catch {
            failure = error
        }
        return (failure, try await queue.read { db in try db.integers("SELECT n FROM t ORDER BY n") })
    }

    private static func write(_ queue: DatabaseQueue, _ block: (Database) throws -> Void) throws {
        try queue.write(block)
    }

    /// Ways to fail without throwing.
    enum Failing: CaseIterable, Sendable {
        case update, named, script, query, namedQuery, next, step, binding, transaction, savepointFlag, number, header

        func run(_ db: Database) throws {
            switch self {
            case .update: db.executeUpdate("INSERT INTO t VALUES (1)", withArgumentsIn: [])
            case .named: db.executeUpdate("INSERT INTO t VALUES (:n)", withParameterDictionary: ["n": 1])
            case .script:
                db.executeStatements("INSERT INTO t VALUES (2); INSERT INTO t VALUES (1); INSERT INTO t VALUES (3)")
            case .query: db.executeQuery("SELECT * FROM absent", withArgumentsIn: [])
            case .namedQuery: db.executeQuery("SELECT :a", withParameterDictionary: ["b": 1])
            case .next:
                let rows = try #require(db.executeQuery("SELECT abs(-9223372036854775807 - 1)", withArgumentsIn: []))
                #expect(!rows.next())
            case .step:
                let rows = try db.prepare("INSERT INTO t VALUES (1)")
                #expect(!rows.step())
            case .binding:
                let rows = try db.prepare("INSERT INTO t VALUES (?)")
                #expect(!rows.bind(with: [1, 2]))
            case .transaction: db.beginTransaction()
            case .savepointFlag:
                db.inSavePoint { _ in db.executeUpdate("INSERT INTO t VALUES (1)", withArgumentsIn: []) }
            case .number: db.executeUpdate("INSERT INTO t VALUES (?)", withArgumentsIn: [1, 2, 3])
            case .header: db.applicationIDString = "too long"
            }
        }
    }

    @Test(arguments: Failing.allCases)
    func whatFailedUnnoticedFailsTheBlock(failing: Failing) async throws {
        for transaction in Transaction.allCases {
            let (error, stored) = try await run(transaction) { db in
                try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                try failing.run(db)
                // Succeeds, and so clears lastError().
                try db.executeUpdate("INSERT INTO t VALUES (4)", values: nil)
                #expect(!db.hadError())
            }
            let failure = error as? DatabaseError
            #expect(
                failure?.message.contains("nobody looked at its failure") == true,
                "\(transaction): \(error as Any)"
            )
            #expect(stored == [], "\(transaction)")
        }
    }

    @Test(arguments: Transaction.allCases)
    func whoLooksHasNoticed(transaction: Transaction) async throws {
        let looks: [@Sendable (Database) -> Void] = [
            { _ = $0.lastError() }, { #expect($0.hadError()) }, { #expect($0.lastErrorCode() == SQLITE_CONSTRAINT) },
            { #expect($0.lastExtendedErrorCode() == SQLITE_CONSTRAINT_PRIMARYKEY) },
            { #expect($0.lastErrorMessage() != "not an error") },
        ]
        for look in looks {
            let (error, stored) = try await run(transaction) { db in
                try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                db.executeUpdate("INSERT INTO t VALUES (1)", withArgumentsIn: [])
                look(db)
            }
            #expect(error == nil)
            #expect(stored == [1])
        }
    }

    @Test(arguments: Transaction.allCases)
    func whatWasThrownHasBeenNoticed(transaction: Transaction) async throws {
        let (error, stored) = try await run(transaction) { db in
            try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
            try? db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
            _ = try? db.executeQuery("SELECT abs(-9223372036854775807 - 1)", values: nil).nextWithError()
            do { try db.executeUpdate("INSERT INTO absent VALUES (1)") } catch is DatabaseError {}
        }
        #expect(error == nil)
        #expect(stored == [1])
    }

    @Test(arguments: Transaction.allCases)
    func whatASavepointTookBackDoesNotCount(transaction: Transaction) async throws {
        let (error, stored) = try await run(transaction) { db in
            try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
            db.inSavePoint { rollback in
                db.executeUpdate("INSERT INTO t VALUES (2)", withArgumentsIn: [])
                db.executeUpdate("INSERT INTO t VALUES (1)", withArgumentsIn: [])
                rollback.pointee = true
            }
            // Undone, and thrown.
            let error = #expect(throws: DatabaseError.self) {
                try db.savepoint {
                    db.executeUpdate("INSERT INTO t VALUES (2)", withArgumentsIn: [])
                    db.executeUpdate("INSERT INTO t VALUES (1)", withArgumentsIn: [])
                }
            }
            #expect(error?.code == SQLITE_CONSTRAINT)
        }
        #expect(error == nil)
        #expect(stored == [1])
    }

    /// Neither a savepoint that went well, nor one that did not, makes the block forget.
    @Test func savepointsKeepWhatHappenedBefore() async throws {
        for rollsBack in [false, true] {
            let (error, stored) = try await run(.queueWrite) { db in
                db.executeUpdate("INSERT INTO absent VALUES (1)", withArgumentsIn: [])
                db.inSavePoint { rollback in rollback.pointee = ObjCBool(rollsBack) }
                try db.savepoint { try db.executeUpdate("INSERT INTO t VALUES (2)", values: nil) }
                _ = try? db.savepoint { throw CancellationError() }
            }
            #expect((error as? DatabaseError)?.message.contains("no such table: absent") == true)
            #expect(stored == [])
        }
    }

    @Test(arguments: Transaction.allCases)
    func theSettingIsOffOnDemand(transaction: Transaction) async throws {
        let (error, stored) = try await run(transaction, failsBlocks: false) { db in
            db.executeStatements("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); INSERT INTO t VALUES (3)")
        }
        // A migration would be recorded as done.
        #expect((error != nil) == (transaction == .migration))
        #expect(stored == (transaction == .migration ? [] : [1]))
    }

    @Test func readsFailToo() async throws {
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration())
        let pool = DatabasePool(path: directory.file("db"), configuration: try configuration())
        for access in [queue, pool] as [any DatabaseAccess] {
            await #expect(throws: DatabaseError.self) {
                try await access.read { db in
                    let rows = db.executeQuery(
                        "SELECT CASE value WHEN 3 THEN abs(-9223372036854775807 - 1) ELSE value END FROM json_each('[1,2,3]')",
                        withArgumentsIn: []
                    )
                    var count = 0
                    while rows?.next() == true { count += 1 }
                    return count
                }
            }
        }
    }

    /// FMDB's own block calls are FMDB's, and nothing of one block is left to the next.
    @Test func blocksOfFMDBAreAsTheyWere() throws {
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration())
        let fail = { (db: Database) in
            _ = db.executeStatements("INSERT INTO t VALUES (1); INSERT INTO absent VALUES (1)")
        }
        try queue.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        #expect(queue.inTransaction { db, _ in fail(db) } == nil)
        #expect(queue.inSavePoint { db, _ in fail(db) } == nil)
        #expect(queue.inDatabase { db in fail(db) } == nil)
        try queue.write { db in try db.executeUpdate("INSERT INTO t VALUES (2)", values: nil) }
        try queue.inTransaction { db throws in try db.executeUpdate("INSERT INTO t VALUES (3)", values: nil) }
        #expect(try queue.read { db in try db.integers("SELECT n FROM t") } == [1, 1, 1, 2, 3])
    }

    /// Those who share the transaction keep what they did.
    @Test func othersOfASharedTransactionAreKept() async throws {
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration())
        try await queue.write { db in try db.executeUpdate("CREATE TABLE t (n INTEGER PRIMARY KEY)", values: nil) }
        let failed = await withTaskGroup(of: Bool.self) { group in
            for number in 1...40 {
                group.addTask {
                    do {
                        try await queue.write { db in
                            db.executeUpdate("INSERT INTO t VALUES (?)", withArgumentsIn: [number])
                            if number % 4 == 0 { db.executeStatements("nonsense") }
                        }
                        return false
                    } catch {
                        return true
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(failed == 10)
        let stored = try await queue.read { db in try db.integers("SELECT n FROM t ORDER BY n") }
        #expect(stored == (1...40).filter { $0 % 4 != 0 })
    }

    /// FMDB's calls give back their error, and nobody has to look at it.
    @Test func savepointsThatDoNotBegin() throws {
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration())
        try queue.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        let error = #expect(throws: DatabaseError.self) {
            try queue.write { db in
                try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                db.authorizer = { request in
                    if case .savepoint = request.action { .deny } else { .allow }
                }
                defer { db.authorizer = nil }
                db.inSavePoint { _ in Issue.record("There is no savepoint.") }
            }
        }
        #expect(error?.code == SQLITE_AUTH, "\(error as Any)")
        #expect(error?.message.contains("nobody looked at its failure") == true, "\(error as Any)")
        #expect(try queue.read { db in try db.integers("SELECT n FROM t") } == [])
    }

    // MARK: The next block

    private struct Own: Error {}

    /// A block that ends by an error of its own has left rows open whose end fails. That is not the next block's affair.
    @Test(arguments: [false, true])
    func theNextBlockIsNotBlamed(isOfPool: Bool) async throws {
        let path = directory.file("db")
        let queue = try DatabaseQueue(path: path, configuration: try configuration())
        let pool = DatabasePool(path: path, configuration: try configuration())
        func inDatabase(_ block: (Database) throws -> Void) throws {
            if isOfPool { try pool.inDatabase(block) } else { try queue.inDatabase(block) }
        }
        try inDatabase { db in
            try db.execute(
                script: """
                    CREATE TABLE t (n);
                    CREATE TABLE c (p REFERENCES absent (id) DEFERRABLE INITIALLY DEFERRED, n);
                    CREATE TABLE absent (id INTEGER PRIMARY KEY)
                    """
            )
        }
        #expect(throws: Own.self) {
            try inDatabase { db in
                try db.executeUpdate("PRAGMA foreign_keys = ON")
                let rows = try db.executeQuery("INSERT INTO c VALUES (7, 1) RETURNING n")
                #expect(try rows.nextWithError())
                throw Own()
            }
        }
        try inDatabase { db in try db.executeUpdate("INSERT INTO t VALUES (1)") }
        try inDatabase { db throws in
            #expect(try db.integers("SELECT n FROM t") == [1])
            #expect(try db.integers("SELECT count(*) FROM c") == [0])
        }
    }
}
