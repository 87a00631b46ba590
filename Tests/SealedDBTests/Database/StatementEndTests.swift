import Foundation
import Testing

@testable import SealedDB

/// Outside a transaction SQLite commits a statement with its end, and can refuse to: with a success that is reported
/// before, an id is handed out of a row that does not exist.
@Suite(.hangLimit)
struct StatementEndTests {
    /// Why a commit fails.
    enum Obstacle: CaseIterable {
        case busy, hook, foreignKey

        var code: Int32 {
            switch self {
            case .busy: SQLITE_BUSY
            case .hook: SQLITE_CONSTRAINT_COMMITHOOK
            case .foreignKey: SQLITE_CONSTRAINT_FOREIGNKEY
            }
        }
    }

    private struct Refused: Error {}

    /// A database whose commits fail for one reason, until it is taken away.
    final class Subject {
        let directory: TemporaryDirectory
        let database: Database
        private let reader: Database
        private let obstacle: Obstacle

        init(_ obstacle: Obstacle) throws {
            self.obstacle = obstacle
            directory = try TemporaryDirectory()
            var configuration = try Database.testing(directory.file("db")).configuration
            configuration.statementCacheCapacity = 16
            database = Database(path: directory.file("db"), configuration: configuration)
            reader = try Database.testing(directory.file("db"))
            try database.openVerified()
            #expect(
                database.executeStatements(
                    """
                    CREATE TABLE parent (id INTEGER PRIMARY KEY);
                    CREATE TABLE t (id INTEGER PRIMARY KEY, p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
                    PRAGMA foreign_keys = ON;
                    """
                )
            )
            switch obstacle {
            case .busy:
                database.maxBusyRetryTimeInterval = 0
                try reader.executeUpdate("BEGIN")
                _ = try reader.integers("SELECT count(*) FROM t")
            case .hook: database.commitHook = { throw Refused() }
            case .foreignKey: break
            }
        }

        /// Inserts a row, and two others that a caller of the first does not ask for.
        var insertion: String {
            let parent = obstacle == .foreignKey ? "4711" : "NULL"
            return "INSERT INTO t (p) VALUES (\(parent)), (NULL), (?) RETURNING id, id + 1 AS p"
        }

        func count() throws -> Int { try database.integers("SELECT count(*) FROM t")[0] }

        func remove() throws {
            switch obstacle {
            case .busy: #expect(reader.commit())
            case .hook: database.commitHook = nil
            case .foreignKey: try database.executeUpdate("INSERT INTO parent VALUES (4711)")
            }
        }
    }

    private struct Row: Decodable { let id, p: Int }

    /// Every call that runs a statement and throws.
    private static let throwing: [(name: String, run: @Sendable (Database, String) throws -> Void)] = [
        ("scalar", { db, sql in _ = try db.executeQuery(sql, Int?.none).scalar(Int.self) }),
        ("first column", { db, sql in _ = try db.executeQuery(sql, Int?.none).first(Int.self) }),
        ("first tuple", { db, sql in _ = try db.executeQuery(sql, Int?.none).first((Int, Int).self) }),
        ("first Decodable", { db, sql in _ = try db.executeQuery(sql, Int?.none).first(Row.self) }),
        ("first of SQL", { db, sql in _ = try db.executeQuery(SQL(raw: sql), Int?.none).first(Int.self) }),
        ("all columns", { db, sql in _ = try db.executeQuery(sql, Int?.none).all(Int.self) }),
        ("all tuples", { db, sql in _ = try db.executeQuery(sql, Int?.none).all((Int, Int).self) }),
        ("all Decodable", { db, sql in _ = try db.executeQuery(sql, Int?.none).all(Row.self) }),
        (
            "first by closure",
            { db, sql in _ = try db.executeQuery(sql, Int?.none).first { (id: Int, p: Int) in id + p } }
        ),
        ("all by closure", { db, sql in _ = try db.executeQuery(sql, Int?.none).all { (id: Int) in id } }),
        ("each by closure", { db, sql in try db.executeQuery(sql, Int?.none).forEach { (_: Int) in } }),
        ("dictionary", { db, sql in _ = try db.executeQuery(sql, Int?.none).dictionary((Int, Int).self) }),
        (
            "keyed",
            { db, sql in let _: [Int: Row] = try db.executeQuery(sql, Int?.none).dictionary(Row.self, keyedBy: "id") }
        ),
        ("int", { db, sql in _ = try db.intForQuery(sql, Int?.none) }),
        ("long", { db, sql in _ = try db.longForQuery(sql, Int?.none) }),
        ("bool", { db, sql in _ = try db.boolForQuery(sql, Int?.none) }),
        ("double", { db, sql in _ = try db.doubleForQuery(sql, Int?.none) }),
        ("string", { db, sql in _ = try db.stringForQuery(sql, Int?.none) }),
        ("data", { db, sql in _ = try db.dataForQuery(sql, Int?.none) }),
        ("date", { db, sql in _ = try db.dateForQuery(sql, Int?.none) }),
        ("update", { db, sql in try db.executeUpdate(sql, Int?.none) }),
        (
            "to the end",
            { db, sql in
                let rows = try db.executeQuery(sql, Int?.none)
                while try rows.nextWithError() {}
            }
        ),
        (
            "closed set",
            { db, sql in
                let rows = try db.executeQuery(sql, Int?.none)
                #expect(try rows.nextWithError())
                try rows.closeWithError()
            }
        ),
        (
            "closed rows",
            { db, sql in
                let rows = try db.executeQuery(sql, Int?.none).rows(Int.self)
                #expect(try rows.next() != nil)
                try rows.closeWithError()
            }
        ),
        (
            "bound again",
            { db, sql in
                let set = try db.prepare(sql)
                try set.bind(Int?.none)
                #expect(try !set.stepWithError())
                defer { #expect(throws: DatabaseError.self) { try set.stepWithError() } }
                try set.bind(Int?.none)
            }
        ),
        ("Connection.text", { db, sql in _ = try db.connection?.text(sql.replacing("?", with: "NULL")) }),
        ("Connection.integer", { db, sql in _ = try db.connection?.integer(sql.replacing("?", with: "NULL")) }),
    ]

    @Test(arguments: Obstacle.allCases)
    func callsThatThrow(obstacle: Obstacle) throws {
        for (name, run) in StatementEndTests.throwing {
            let subject = try Subject(obstacle)
            // The second time the statement comes from the cache.
            for attempt in 1...2 {
                let error = #expect(throws: DatabaseError.self, "\(name), \(attempt)") {
                    try run(subject.database, subject.insertion)
                }
                #expect(error?.extendedCode == obstacle.code, "\(name), \(attempt): \(error as Any)")
                #expect(subject.database.hadError() || name.hasPrefix("Connection"), "\(name), \(attempt)")
                #expect(try subject.count() == 0, "\(name), \(attempt)")
            }
            try subject.remove()
            guard name != "bound again" else { continue }
            try run(subject.database, subject.insertion)
            #expect(try subject.count() == 3, "\(name)")
            #expect(subject.database.takeUnnoticedFailure() == nil, "\(name)")
        }
    }

    /// Every way to end an execution on its first row that has nowhere to throw to.
    private static let silent: [(name: String, end: @Sendable (Database, String) throws -> Void)] = [
        (
            "closed",
            { db, sql in
                let rows = try #require(db.executeQuery(sql, withArgumentsIn: [NSNull()]))
                if rows.next() { rows.close() }
            }
        ),
        (
            "statement closed",
            { db, sql in
                let rows = try #require(db.executeQuery(sql, withArgumentsIn: [NSNull()]))
                if rows.next() { rows.statement?.close() }
            }
        ),
        (
            "dropped",
            { db, sql in
                let rows = db.executeQuery(sql, withArgumentsIn: [NSNull()])
                #expect(rows?.next() == true)
            }
        ),
        (
            "rows closed",
            { db, sql in
                let rows = try db.executeQuery(sql, Int?.none).rows(Int.self)
                if try rows.next() != nil { rows.close() }
            }
        ),
        (
            "reset",
            { db, sql in
                let set = try db.prepare(sql)
                if set.bind(with: [NSNull()]), set.next() { set.statement?.reset() }
            }
        ),
        (
            "all closed",
            { db, sql in
                let rows = try #require(db.executeQuery(sql, withArgumentsIn: [NSNull()]))
                if rows.next() { db.closeOpenResultSets() }
            }
        ),
    ]

    @Test(arguments: Obstacle.allCases)
    func endsThatCannotThrow(obstacle: Obstacle) throws {
        for (name, end) in StatementEndTests.silent {
            let subject = try Subject(obstacle)
            let db = subject.database
            for attempt in 1...2 {
                try end(db, subject.insertion)
                #expect(db.hadError(), "\(name), \(attempt)")
                #expect(db.lastExtendedErrorCode() == obstacle.code, "\(name), \(attempt): \(db.lastError())")
                // It was shown.
                #expect(db.takeUnnoticedFailure() == nil, "\(name), \(attempt)")
                try end(db, subject.insertion)
                // It was not.
                #expect(db.takeUnnoticedFailure()?.extendedCode == obstacle.code, "\(name), \(attempt)")
                #expect(try subject.count() == 0, "\(name), \(attempt)")
            }
            try subject.remove()
            try end(db, subject.insertion)
            #expect(!db.hadError(), "\(name): \(db.lastError())")
            #expect(db.takeUnnoticedFailure() == nil, "\(name)")
            #expect(try subject.count() == 3, "\(name)")
        }
    }

    @Test(arguments: Obstacle.allCases)
    func boundAgain(obstacle: Obstacle) throws {
        let subject = try Subject(obstacle)
        let set = try subject.database.prepare(subject.insertion)
        #expect(set.bind(with: [NSNull()]) && set.next())
        #expect(!set.bind(with: [NSNull()]))
        #expect(subject.database.lastExtendedErrorCode() == obstacle.code)
        // Not with the values of the former execution.
        #expect(!set.next())
        #expect(subject.database.lastErrorMessage().contains("could not be bound"))
        #expect(try subject.count() == 0)
        try subject.remove()
        #expect(set.bind(with: [NSNull()]) && set.next())
        try set.closeWithError()
        #expect(try subject.count() == 3)
    }

    /// The row cannot be read, and is not stored either.
    @Test(arguments: Obstacle.allCases)
    func readAsAnotherType(obstacle: Obstacle) throws {
        let subject = try Subject(obstacle)
        let error = #expect(throws: DatabaseError.self) {
            try subject.database.executeQuery(subject.insertion, Int?.none).scalar(Data.self)
        }
        #expect(error?.reason == .typeMismatch)
        #expect(subject.database.takeUnnoticedFailure()?.extendedCode == obstacle.code)
        #expect(try subject.count() == 0)
    }

    @Test(arguments: Obstacle.allCases)
    func closedWithTheDatabase(obstacle: Obstacle) throws {
        let subject = try Subject(obstacle)
        let rows = try subject.database.executeQuery(subject.insertion, Int?.none)
        #expect(rows.next())
        #expect(!subject.database.close())
        #expect(!subject.database.isOpen)
        #expect(subject.database.lastExtendedErrorCode() == obstacle.code)
        #expect(subject.database.open())
        #expect(try subject.count() == 0)
    }

    /// Dropped on a thread that is not in the gate, a statement ends when the owner of the gate comes by.
    @Test func droppedElsewhere() throws {
        let subject = try Subject(.busy)
        let database = Database(
            path: subject.directory.file("db"),
            configuration: subject.database.configuration,
            gate: ThreadGate()
        )
        database.enter()
        defer { database.leave() }
        try database.openVerified()
        database.maxBusyRetryTimeInterval = 0
        var rows: ResultSet? = try database.executeQuery(subject.insertion, Int?.none)
        #expect(rows?.next() == true)
        database.leave()
        rows = nil
        database.enter()
        #expect(database.lastErrorCode() == SQLITE_BUSY)
        #expect(try database.integers("SELECT count(*) FROM t") == [0])
    }

    /// What is written to a blob is committed when it is closed.
    @Test func blobs() throws {
        let database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE b (id INTEGER PRIMARY KEY, v)")
        try database.executeUpdate("INSERT INTO b VALUES (1, x'0000')")
        database.commitHook = { throw Refused() }
        var blob: Blob? = try database.openBlob(table: "b", column: "v", rowID: 1, isWritable: true)
        try blob?.write(Data([1, 2]))
        blob = nil
        #expect(database.lastExtendedErrorCode() == SQLITE_CONSTRAINT_COMMITHOOK)
        #expect(try database.executeQuery("SELECT v FROM b").scalar(Data.self) == Data([0, 0]))
    }

    /// Within a transaction nothing is committed by a statement's end, and nothing is to be told of it.
    @Test func withinATransaction() throws {
        let subject = try Subject(.foreignKey)
        #expect(subject.database.beginTransaction())
        let rows = try subject.database.executeQuery(subject.insertion, Int?.none)
        #expect(rows.next())
        rows.close()
        #expect(!subject.database.hadError())
        #expect(!subject.database.commit())
        #expect(subject.database.rollback())
    }

    /// What returns rows while it goes on is done when its value is there.
    @Test func writesAllOfIt() throws {
        let database = try Database.testing(nil)
        try database.executeUpdate("PRAGMA auto_vacuum = INCREMENTAL", values: nil)
        try database.executeUpdate("CREATE TABLE t (a)")
        try database.executeUpdate("INSERT INTO t VALUES (zeroblob(100000))")
        try database.executeUpdate("DELETE FROM t")
        #expect(try database.integers("PRAGMA freelist_count")[0] > 5)
        // Its rows have no columns.
        _ = try database.connection?.integer("PRAGMA incremental_vacuum")
        #expect(try database.integers("PRAGMA freelist_count") == [0])
    }

    /// A query that only reads is not run further than it is asked for.
    @Test func readsNoMoreThanItIsAskedFor() throws {
        let database = try Database.testing(nil)
        var calls = 0
        try database.addFunction("counted", argumentCount: 1) { _ in
            calls += 1
            return .integer(Int64(calls))
        }
        let sql: SQL = "SELECT counted(value) FROM json_each('[1,2,3,4]')"
        #expect(try database.executeQuery(sql).scalar(Int.self) == 1)
        #expect(try database.executeQuery(sql).first(Int.self) == 2)
        #expect(try database.intForQuery(sql) == 3)
    }

    /// What a block of a queue leaves on a row ends with the block, and fails it.
    @Test func blocksThatEndOnARow() throws {
        let directory = try TemporaryDirectory()
        let queue = try DatabaseQueue(
            path: directory.file("db"),
            configuration: Database.testing(directory.file("db")).configuration
        )
        let sql: SQL = "INSERT INTO t (a) VALUES (1) RETURNING id"
        try queue.write { db in try db.executeUpdate("CREATE TABLE t (id INTEGER PRIMARY KEY, a)") }
        queue.inDatabase { db in db.commitHook = { throw Refused() } }
        for isDropped in [true, false] {
            var kept: ResultSet?
            let blocks: [((Database) throws -> Int) throws -> Int] = [
                { block in try queue.inDatabase { db in try block(db) } },
                { block in try queue.writeWithoutTransaction { db in try block(db) } },
                { block in
                    var id = 0
                    let outcome = queue.inDatabase { (db: Database) -> Void in id = (try? block(db)) ?? 0 }
                    if let outcome { throw outcome }
                    return id
                },
            ]
            for (number, block) in blocks.enumerated() {
                let error = #expect(throws: DatabaseError.self, "\(number), \(isDropped)") {
                    _ = try block { db in
                        let rows = try db.executeQuery(sql)
                        #expect(try rows.nextWithError())
                        if !isDropped { kept = rows }
                        return rows.long(forColumnIndex: 0)
                    }
                }
                #expect(error?.extendedCode == SQLITE_CONSTRAINT_COMMITHOOK, "\(number), \(isDropped)")
                withExtendedLifetime(kept) {}
            }
        }
        // Of this one nobody is told again.
        try queue.inDatabase { db in
            let rows = try db.executeQuery(sql)
            #expect(rows.next())
            rows.close()
            #expect(db.hadError())
        }
        #expect(try queue.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } == 0)
    }
}
