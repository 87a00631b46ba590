import Foundation
import Testing

@testable import SealedDB

/// What a call leaves as it is, and what it tells of others.
@Suite(.hangLimit)
struct SurroundingsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var key: Key? { get throws { isEncrypting ? try .testing(1) : nil } }

    // MARK: Attached stores

    /// To attach a file that is there writes nothing into it.
    @Test func theVersionOfAStoreThatIsAttached() throws {
        let other = try Database.testing(directory.file("other"))
        try other.execute(script: "CREATE TABLE t (a); PRAGMA user_version = 7")
        other.close()
        let before = try directory.bytes("other")
        let main = try Database.testing(directory.file("main"))
        try main.attach(directory.file("other"), as: "other", key: key)
        #expect(try main.integers("PRAGMA other.user_version") == [7])
        try main.detach("other")
        #expect(try directory.bytes("other") == before)
    }

    /// As a process leaves it that is killed within a transaction.
    @Test func aStoreWithATransactionToBeUndone() throws {
        let other = try Database.testing(directory.file("other"), journalMode: .delete)
        try other.fill(rows: 300)
        try other.spillChanges()
        try other.execute(script: "BEGIN; UPDATE t SET body = 'changed' || body")
        try directory.keep("other", "other-journal", of: other)
        let main = try Database.testing(directory.file("main"))
        try main.attach(directory.file("other"), as: "other", key: key)
        #expect(try main.integers("SELECT count(*) FROM other.t WHERE body LIKE 'secret row %'") == [300])
        try main.executeUpdate("DELETE FROM other.t WHERE id > 10")
        #expect(try main.integers("SELECT count(*) FROM other.t") == [10])
    }

    // MARK: Statements

    /// A limit that is not reached is not blamed.
    @Test func interruptedBesideALimit() throws {
        var configuration = Configuration(key: try key)
        configuration.statementTimeout = .seconds(3600)
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        database.makeFunctionNamed("stop", arguments: 0) { [unowned database] _, _, _ in database.interrupt() }
        let error = #expect(throws: DatabaseError.self) {
            _ = try database.integers(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE stop() IS NOT NULL"
            )
        }
        #expect(error?.code == SQLITE_INTERRUPT && error?.reason != .timedOut, "\(error as Any)")
    }

    private struct Failing: SQLAggregate {
        struct Refused: Error {}
        static let calls = Log<String>()

        mutating func step(_ arguments: borrowing FunctionArguments) throws { throw Refused() }

        func finalize() throws -> SQLValue {
            Self.calls.add("finalize")
            return 1
        }
    }

    /// What has failed has no result to be computed.
    @Test func anAggregateThatHasFailed() throws {
        let database = try Database.testing(nil)
        try database.addAggregate("failing", argumentCount: 1, Failing.self)
        try database.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)")
        #expect(throws: DatabaseError.self) { _ = try database.integers("SELECT failing(a) FROM t") }
        #expect(Failing.calls.values == [])
        #expect(try database.integers("SELECT failing(a) FROM t WHERE a > 5") == [1])
    }
}
