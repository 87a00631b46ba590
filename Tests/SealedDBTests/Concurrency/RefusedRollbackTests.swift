import Foundation
import Testing

@testable import SealedDB

/// A block of `write` that wants to roll back by SQL or a call is refused. What it wanted to undo must not be stored,
/// even if it has looked at the refusal and returns as if all were well.
@Suite(.hangLimit)
struct RefusedRollbackTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    enum Owner: CaseIterable, Sendable { case queue, pool }

    /// With an empty table `t`.
    private func access(_ owner: Owner, failsBlocks: Bool) throws -> any DatabaseAccess {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.failsBlocksAfterIgnoredErrors = failsBlocks
        let path = directory.file("db")
        let access: any DatabaseAccess =
            switch owner {
            case .queue: try DatabaseQueue(path: path, configuration: configuration)
            case .pool: DatabasePool(path: path, configuration: configuration)
            }
        try access.write { db in try db.run("CREATE TABLE t (n INTEGER PRIMARY KEY)") }
        return access
    }

    private static func stored(_ access: any DatabaseAccess) throws -> [Int] {
        try access.read { db in try db.integers("SELECT n FROM t ORDER BY n") }
    }

    private static let insertAndRollBack: @Sendable (Database) throws -> Int = { db in
        try db.run("INSERT INTO t VALUES (1)")
        #expect(!db.rollback())
        // Whoever looks has noticed it.
        #expect(db.lastErrorMessage() != "not an error")
        return 1
    }

    private func expectRefusal(_ error: DatabaseError?, _ location: SourceLocation = #_sourceLocation) {
        #expect(error?.reason == .misuse, "\(error as Any)", sourceLocation: location)
        #expect(error?.message.contains("cannot begin or end") == true, sourceLocation: location)
    }

    @Test(arguments: Owner.allCases, [true, false])
    func nothingIsStored(owner: Owner, failsBlocks: Bool) throws {
        let access = try access(owner, failsBlocks: failsBlocks)
        for alone in [false, true] {
            expectRefusal(
                #expect(throws: DatabaseError.self) {
                    try access.write(alone: alone, RefusedRollbackTests.insertAndRollBack)
                }
            )
            #expect(try RefusedRollbackTests.stored(access) == [])
        }
        // Nothing of it is left to the next block.
        try access.write { db in try db.run("INSERT INTO t VALUES (2)") }
        #expect(try RefusedRollbackTests.stored(access) == [2])
    }

    @Test(arguments: Owner.allCases, [true, false])
    func nothingIsStoredOfATask(owner: Owner, failsBlocks: Bool) async throws {
        let access = try access(owner, failsBlocks: failsBlocks)
        let block = RefusedRollbackTests.insertAndRollBack
        let error = await #expect(throws: DatabaseError.self) { try await access.write(block) }
        expectRefusal(error)
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [])
        try await access.write { db in try db.run("INSERT INTO t VALUES (2)") }
        #expect(try await access.read { db in try db.integers("SELECT n FROM t") } == [2])
    }

    /// By SQL it is no other than by the call. Other refusals undo nothing, and a savepoint only its part.
    @Test(arguments: Owner.allCases)
    func onlyTheWholeTransactionIsUndone(owner: Owner) throws {
        let access = try access(owner, failsBlocks: true)
        expectRefusal(
            #expect(throws: DatabaseError.self) {
                try access.write { db in
                    try db.run("INSERT INTO t VALUES (1)")
                    try? db.run("ROLLBACK")
                }
            }
        )
        #expect(try RefusedRollbackTests.stored(access) == [])
        try access.write { db in
            try db.run("INSERT INTO t VALUES (1)")
            #expect(!db.commit() && db.lastErrorMessage().contains("cannot begin or end"))
            try db.run("SAVEPOINT s")
            try db.run("INSERT INTO t VALUES (2)")
            try db.run("ROLLBACK TO s")
            try db.run("RELEASE s")
        }
        #expect(try RefusedRollbackTests.stored(access) == [1])
    }

    /// A block that only reads has nothing to undo.
    @Test(arguments: Owner.allCases)
    func readsReturnTheirValue(owner: Owner) throws {
        let access = try access(owner, failsBlocks: true)
        try access.write { db in try db.run("INSERT INTO t VALUES (7)") }
        let values = try access.read { db in
            let values = try db.integers("SELECT n FROM t")
            #expect(!db.rollback() && db.lastErrorMessage() != "not an error")
            return values
        }
        #expect(values == [7])
        // Nor is the next block of the connection to blame.
        try access.write { db in try db.run("INSERT INTO t VALUES (8)") }
        #expect(try RefusedRollbackTests.stored(access) == [7, 8])
    }
}
