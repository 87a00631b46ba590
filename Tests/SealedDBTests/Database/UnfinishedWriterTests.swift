import Foundation
import SealedDB
import Testing

/// Outside a transaction, SQLite commits nothing until the last statement of a connection that writes has ended. Whatever
/// reports success before that could be undone with it.
@Suite(.hangLimit)
struct UnfinishedWriterTests {
    private let directory: TemporaryDirectory
    private let database: Database

    init() throws {
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("db"))
        try database.execute(
            script: "CREATE TABLE t (id INTEGER PRIMARY KEY, body); INSERT INTO t VALUES (1, zeroblob(8)), (2, 'x')"
        )
    }

    private func ids() throws -> [Int] {
        let other = Database(path: directory.file("db"), configuration: database.configuration)
        try other.openVerified()
        defer { other.close() }
        return try other.integers("SELECT id FROM t ORDER BY id")
    }

    enum Writer: CaseIterable, Sendable {
        case returning, prepared, blob
    }

    /// Begins to write, and returns what ends that.
    private func begin(_ writer: Writer) throws -> () throws -> Void {
        switch writer {
        case .returning:
            let rows = try database.executeQuery("UPDATE t SET body = body RETURNING id", values: nil)
            #expect(rows.next())
            return { try rows.closeWithError() }
        case .prepared:
            let rows = try database.prepare("UPDATE t SET body = body RETURNING id")
            #expect(rows.next())
            return { try rows.closeWithError() }
        case .blob:
            let blob = try database.openBlob(table: "t", column: "body", rowID: 1, isWritable: true)
            return { try blob.close() }
        }
    }

    /// Each way to write, or to begin a transaction whose end would take all of it back.
    private static let writes: [(name: String, call: @Sendable (Database) throws -> Void)] = [
        ("update", { try $0.executeUpdate("INSERT INTO t VALUES (9, 9)", values: nil) }),
        ("or rollback", { try $0.executeUpdate("INSERT OR ROLLBACK INTO t VALUES (1, 9)", values: nil) }),
        ("script", { try $0.execute(script: "INSERT INTO t VALUES (9, 9)") }),
        ("insert", { try $0.insert(["id": 9], into: "t") }),
        ("returning", { _ = try $0.executeQuery("INSERT INTO t VALUES (9, 9) RETURNING id").scalar(Int.self) }),
        ("blob", { try $0.openBlob(table: "t", column: "body", rowID: 2, isWritable: true).close() }),
        ("transaction", { db in try db.inTransaction { throw CancellationError() } }),
        ("savepoint", { db in try db.savepoint { throw CancellationError() } }),
        ("BEGIN", { try $0.execute(script: "BEGIN; INSERT INTO t VALUES (9, 9); ROLLBACK") }),
        ("beginTransaction", { db in if !db.beginTransaction() { throw db.lastError() } }),
        ("beginDeferredTransaction", { db in if !db.beginDeferredTransaction() { throw db.lastError() } }),
        ("schema", { try $0.execute(script: "CREATE TABLE u (a)") }),
        (
            "migration",
            { db in
                var migrator = Migrator()
                migrator.register("first", sql: "CREATE TABLE u (a)")
                try migrator.migrate(db)
            }
        ),
    ]

    @Test(arguments: Writer.allCases) func whatWouldNotBeStoredIsRefused(writer: Writer) throws {
        for (name, call) in UnfinishedWriterTests.writes {
            let end = try begin(writer)
            let error = #expect(throws: DatabaseError.self, "\(name)") { try call(database) }
            if name != "savepoint" {
                #expect(error?.reason == .locked && error?.message.contains("Nothing was executed") == true, "\(name)")
            }
            #expect(!database.isInTransaction, "\(name)")
            try end()
            #expect(try ids() == [1, 2], "\(name)")
        }
        try database.executeUpdate("INSERT INTO t VALUES (3, 3)", values: nil)
        #expect(try ids() == [1, 2, 3])
    }

    /// It is one of the connection's own, and its own transaction holds it.
    @Test(arguments: Writer.allCases) func withinATransactionAllOfItIsOne(writer: Writer) throws {
        try database.inTransaction {
            let end = try begin(writer)
            try database.executeUpdate("INSERT INTO t VALUES (3, 3)", values: nil)
            try end()
        }
        #expect(try ids() == [1, 2, 3])
        try database.executeUpdate("INSERT INTO t VALUES (4, 4)", values: nil)
        #expect(try ids() == [1, 2, 3, 4])
    }

    /// What only reads does not hold anything back.
    @Test func readersAreInNobodysWay() throws {
        let rows = try database.executeQuery("SELECT id FROM t", values: nil)
        #expect(rows.next())
        try database.executeUpdate("INSERT INTO t VALUES (3, 3)", values: nil)
        #expect(try ids() == [1, 2, 3])
        let end = try begin(.returning)
        #expect(try database.integers("SELECT count(*) FROM t") == [3])
        try end()
        rows.close()
    }

    /// FMDB's calls tell it by their result.
    @Test func theCallsOfFMDB() throws {
        let end = try begin(.returning)
        #expect(!database.executeUpdate("INSERT INTO t VALUES (3, 3)", withArgumentsIn: []))
        #expect(database.lastErrorCode() == SQLITE_LOCKED && database.hadError())
        #expect(!database.executeStatements("INSERT INTO t VALUES (3, 3)"))
        try end()
        #expect(database.executeUpdate("INSERT INTO t VALUES (3, 3)", withArgumentsIn: []))
        #expect(try ids() == [1, 2, 3])
    }
}
