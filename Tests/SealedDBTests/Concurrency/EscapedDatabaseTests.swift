import Foundation
import Testing

@testable import SealedDB

/// What leaves the block that it was given to is not used together with the next block.
@Suite(.hangLimit)
struct EscapedDatabaseTests {
    /// A use of a database.
    enum Use: String, CaseIterable, Codable, Sendable {
        case update, typedUpdate, query, script, prepare, rowID, isInTransaction, isOpen, lastError, table, begin,
            savepoint
        case function, hook, dates, configuration, blob, version, keyID, needsRotation, cache, observation, close

        func run(_ db: Database) throws {
            switch self {
            case .update: db.executeUpdate("SELECT 1", withArgumentsIn: [])
            case .typedUpdate: try db.executeUpdate("SELECT \(1)")
            case .query: db.executeQuery("SELECT 1", withArgumentsIn: [])
            case .script: db.executeStatements("SELECT 1")
            case .prepare: try db.prepare("SELECT 1")
            case .rowID: _ = db.lastInsertRowId
            case .isInTransaction: _ = db.isInTransaction
            case .isOpen: _ = db.isOpen
            case .lastError: _ = db.lastErrorMessage()
            case .table: _ = db.tableExists("t")
            case .begin: db.beginTransaction()
            case .savepoint: try db.savepoint {}
            case .function: db.makeFunctionNamed("f", arguments: 0) { _, _, _ in }
            case .hook: db.commitHook = {}
            case .dates: db.setDateFormat(nil)
            case .configuration: _ = db.configuration
            case .blob: _ = try db.openBlob(table: "t", column: "n", rowID: 1)
            case .version: _ = db.userVersion
            case .keyID: _ = db.keyID
            case .needsRotation: _ = db.needsRotation
            case .cache: db.clearCachedStatements()
            case .observation: _ = db.changes(in: ["t"])
            case .close: db.close()
            }
        }
    }

    /// Who lent the database.
    enum Lender: String, CaseIterable, Codable, Sendable {
        case queue, droppedQueue, read, write, inDatabase, task

        func leaked(_ path: String) async throws -> Database {
            nonisolated(unsafe) var leaked: Database?
            let pool = DatabasePool(path: path)
            switch self {
            case .queue, .droppedQueue:
                var queue: DatabaseQueue? = try DatabaseQueue(path: path, configuration: Configuration())
                queue?.inDatabase { leaked = $0 }
                if self == .queue { EscapedDatabaseTests.kept.add(queue!) }
                queue = nil
            case .read: try await pool.read { leaked = $0 }
            case .write: try await pool.write { leaked = $0 }
            case .inDatabase: pool.inDatabase { leaked = $0 }
            case .task:
                let queue = try DatabaseQueue(path: path, configuration: Configuration())
                try await queue.write { leaked = $0 }
                EscapedDatabaseTests.kept.add(queue)
            }
            EscapedDatabaseTests.kept.add(pool)
            return leaked!
        }
    }

    /// What a block got from its database.
    enum Part: String, CaseIterable, Codable, Sendable {
        case next, column, typedColumn, names, bind, statement, blob, blobCount

        func run(_ rows: ResultSet, _ prepared: ResultSet, _ blob: Blob) throws {
            switch self {
            case .next: _ = rows.next()
            case .column: _ = rows.long(forColumnIndex: 0)
            case .typedColumn: _ = try rows.value(Int.self, forColumnIndex: 0)
            case .names: _ = rows.columnName(for: 0)
            case .bind: _ = prepared.bind(with: [1])
            case .statement: rows.statement?.reset()
            case .blob: _ = try blob.read(count: 1)
            case .blobCount: _ = blob.count
            }
        }
    }

    /// Queues and pools that live on.
    fileprivate static let kept = Log<any DatabaseAccess>()

    private func expectRemedy(_ errors: [UInt8]?) {
        let text = String(decoding: errors ?? [], as: UTF8.self)
        #expect(text.contains("outside of the block") && text.contains("Return values from the block"), "\(text)")
    }

    #if compiler(>=6.3)
        @Test(.awaitsProcess, arguments: Use.allCases)
        func usesAfterTheBlockEndTheProcess(use: Use) async {
            let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                [use = use as Use] in
                let leaked = try await Lender.queue.leaked(":memory:")
                try use.run(leaked)
            }
            expectRemedy(result?.standardErrorContent)
        }

        @Test(.awaitsProcess, arguments: Lender.allCases)
        func whoeverLentIt(lender: Lender) async throws {
            let directory = try TemporaryDirectory()
            let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                [lender = lender as Lender, path = directory.file("db") as String] in
                let leaked = try await lender.leaked(path)
                try leaked.executeUpdate("CREATE TABLE t (n)", values: nil)
            }
            expectRemedy(result?.standardErrorContent)
        }

        /// While the block still runs, on another thread.
        @Test(.awaitsProcess, arguments: Part.allCases)
        func partsOnAnotherThreadEndTheProcess(part: Part) async {
            let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                [part = part as Part] in
                let queue = try DatabaseQueue(path: nil, configuration: Configuration())
                try queue.inDatabase { db in
                    try db.executeUpdate("CREATE TABLE t (n)", values: nil)
                    try db.executeUpdate("INSERT INTO t VALUES (x'0102')", values: nil)
                    nonisolated(unsafe) let rows = try db.executeQuery("SELECT 1", values: nil)
                    nonisolated(unsafe) let prepared = try db.prepare("SELECT ?")
                    nonisolated(unsafe) let blob = try db.openBlob(table: "t", column: "n", rowID: 1)
                    #expect(rows.next())
                    let done = DispatchSemaphore(value: 0)
                    Thread.detachNewThread {
                        try? part.run(rows, prepared, blob)
                        done.signal()
                    }
                    done.wait()
                }
            }
            expectRemedy(result?.standardErrorContent)
        }
    #endif

    /// What has ended is harmless anywhere, and interrupting is meant for others.
    @Test func whatHasEndedMayBeAnywhere() async throws {
        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
        nonisolated(unsafe) var parts: (db: Database, rows: ResultSet, blob: Blob)?
        try queue.inDatabase { db in
            try db.executeUpdate("CREATE TABLE t (n)", values: nil)
            try db.executeUpdate("INSERT INTO t VALUES (x'0102')", values: nil)
            let rows = try db.executeQuery("SELECT n FROM t", values: nil)
            #expect(rows.next())
            parts = (db, rows, try db.openBlob(table: "t", column: "n", rowID: 1))
        }
        let (db, rows, blob) = try #require(parts)
        #expect(!rows.next() && rows.data(forColumnIndex: 0) == nil && rows.columnCount == 0 && rows.parentDB == nil)
        rows.close()
        #expect(blob.count == 0)
        #expect(throws: DatabaseError.self) { try blob.read(count: 1) }
        try blob.close()
        #expect(db.interrupt())
        // In the next block it is the same database again.
        try queue.inDatabase { next throws in
            #expect(next === db)
            #expect(try db.integers("SELECT count(*) FROM t") == [1])
        }
    }
}
