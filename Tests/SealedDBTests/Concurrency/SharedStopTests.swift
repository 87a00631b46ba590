import Foundation
import Testing

@testable import SealedDB

/// Who is stopped in a transaction that others share: a statement that reads is, and one that writes is not, whichever statement
/// was started last.
@Suite(.hangLimit)
struct SharedStopTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func queue() throws -> DatabaseQueue {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.writeBatching.maximumDuration = .seconds(3600)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in try db.execute(script: "CREATE TABLE t (n INTEGER PRIMARY KEY)") }
        return queue
    }

    private static let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i IN (1, -1)"

    /// The endless query was begun before the row was inserted.
    @Test(arguments: [true, false]) func aQueryThatGoesOnAfterAnInsert(shutsDown: Bool) async throws {
        let queue = try queue()
        let goesOn = Gate()
        let tasks = try await behindABarrier(
            queue,
            [
                { _ = try await queue.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)") } },
                {
                    _ = try await queue.write { db in
                        let rows = try db.executeQuery(SQL(raw: SharedStopTests.endless))
                        guard try rows.nextWithError() else { return }
                        try db.executeUpdate("INSERT INTO t VALUES (2)")
                        goesOn.open()
                        while try rows.nextWithError() {}
                    }
                },
            ]
        )
        await goesOn.wait()
        if shutsDown {
            await queue.shutDown(interruptingAfter: .zero)
        } else {
            tasks[1].cancel()
        }
        await #expect(throws: (any Error).self) { try await tasks[1].value }
        // It has done nothing wrong.
        try await tasks[0].value
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        if !shutsDown { #expect(try await queue.read { db in try db.integers("SELECT n FROM t") } == [1]) }
        #expect(try database.integers("SELECT n FROM t") == [1])
    }

    /// The insertion gives its rows while the call is cancelled.
    @Test func rowsOfAnInsertThatAreReadAfterAQuery() async throws {
        let queue = try queue()
        let (waits, cancelled) = (Gate(), Gate())
        let tasks = try await behindABarrier(
            queue,
            [
                { _ = try await queue.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)") } },
                {
                    _ = try await queue.write { db in
                        let rows = try db.executeQuery(
                            """
                            INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
                            SELECT i FROM n RETURNING n
                            """
                        )
                        guard try rows.nextWithError() else { return }
                        _ = try db.integers("SELECT count(*) FROM t")
                        waits.open()
                        cancelled.waitBlocking()
                        while try rows.nextWithError() {}
                    }
                },
            ]
        )
        await waits.wait()
        tasks[1].cancel()
        cancelled.open()
        await #expect(throws: (any Error).self) { try await tasks[1].value }
        try await tasks[0].value
        #expect(try await queue.read { db in try db.integers("SELECT n FROM t") } == [1])
    }

    /// Nobody of the transaction is acknowledged yet, so that a shutdown loses nothing that was.
    @Test func aShutdownStopsWhatWrites() async throws {
        let queue = try queue()
        let runs = Gate()
        let tasks = try await behindABarrier(
            queue,
            [
                { _ = try await queue.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)") } },
                {
                    _ = try await queue.write { db in
                        try db.addFunction("runs", argumentCount: 0) { _ in
                            runs.open()
                            return 1
                        }
                        try db.executeUpdate(
                            SQL(raw: "INSERT INTO t SELECT count(runs()) FROM (\(SharedStopTests.endless))")
                        )
                    }
                },
            ]
        )
        await runs.wait()
        await queue.shutDown(interruptingAfter: .zero)
        for task in tasks { await #expect(throws: (any Error).self) { try await task.value } }
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try database.integers("SELECT n FROM t") == [])
    }
}
