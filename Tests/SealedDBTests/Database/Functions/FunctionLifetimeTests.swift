import Foundation
import SealedDB
import Testing

/// When closures are dropped, what they may do to the database that calls them, and how they come back.
@Suite(.hangLimit)
struct FunctionLifetimeTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Adds something that captures a new token, and watches it.
    private func watch(_ body: (Token) throws -> Void) rethrows -> Watched {
        let token = Token()
        try body(token)
        return Watched(token)
    }

    private func add(_ name: String, to database: Database) throws -> Watched {
        try watch { token in
            try database.addFunction(name) { [token] _ in withExtendedLifetime(token) { 1 } }
        }
    }

    @Test func droppedWhenReplacedRemovedOrRefused() throws {
        let database = try Database.testing(nil)
        let first = try add("f", to: database)
        #expect(first.isAlive)
        let second = try add("F", to: database)
        #expect(!first.isAlive && second.isAlive)
        try database.removeFunction("f")
        #expect(!second.isAlive)
        var refused: Watched?
        #expect(throws: DatabaseError.self) {
            refused = try watch { token in
                try database.addFunction("", { [token] _ in withExtendedLifetime(token) { 1 } })
            }
        }
        #expect(refused?.isAlive != true)
    }

    @Test func aCollationThatIsReplacedIsDropped() throws {
        let database = try Database.testing(nil)
        func add(_ name: String) throws -> Watched {
            try watch { token in
                try database.addCollation(name) { [token] first, second in
                    withExtendedLifetime(token) { first < second ? .orderedAscending : .orderedSame }
                }
            }
        }
        let first = try add("c")
        #expect(first.isAlive)
        let second = try add("C")
        #expect(!first.isAlive && second.isAlive)
    }

    @Test func keptUntilTheDatabaseIsDropped() throws {
        var database: Database? = try Database.testing(directory.file("db"))
        let function = try add("f", to: database!)
        let block = watch { token in
            database!.makeFunctionNamed("b", arguments: 0) { [token] _, _, _ in withExtendedLifetime(token) {} }
        }
        let collation = try watch { token in
            try database!.addCollation("c") { [token] first, second in
                withExtendedLifetime(token) { first < second ? .orderedAscending : .orderedSame }
            }
        }
        let hook = watch { token in database!.updateHook = { [token] _ in withExtendedLifetime(token) {} } }
        let tokenizer = try watch { token in
            try database!.addTokenizer("tok") { [token] _ in withExtendedLifetime(token) { SimpleTokenizer() } }
        }
        let all = [function, block, collation, hook, tokenizer]
        #expect(database!.close())
        #expect(all.allSatisfy { $0.isAlive })
        #expect(database!.open())
        #expect(try database!.value("SELECT f()") == 1)
        let rows = try database!.executeQuery("SELECT f()", values: nil)
        #expect(rows.next())
        rows.close()
        database = nil
        #expect(all.allSatisfy { !$0.isAlive })
    }

    @Test func comeBackWithEveryOpening() throws {
        struct Count: SQLAggregate {
            var count = 0
            mutating func step(_ arguments: borrowing FunctionArguments) { count += 1 }
            func finalize() -> SQLValue { SQLValue(count) }
        }
        let queue = try DatabaseQueue(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        try queue.inDatabase { db in
            try db.addFunction("f") { _ in 1 }
            try db.addAggregate("counted", Count.self)
            try db.addCollation("backwards") { second, first in first.compare(second) }
            try db.addTokenizer("words") { _ in SimpleTokenizer() }
            try db.run("CREATE VIRTUAL TABLE search USING fts5(body, tokenize = 'words')")
        }
        let check = { () throws in
            try queue.inDatabase { db in
                #expect(try db.value("SELECT f()") == 1)
                #expect(try db.value("SELECT counted(1) FROM (VALUES (1), (2))") == 2)
                let rows = try db.rows("SELECT column1 FROM (VALUES ('a'), ('b')) ORDER BY column1 COLLATE backwards")
                #expect(rows == [["b"], ["a"]])
                try db.run("INSERT INTO search VALUES ('It''s HERE')")
                #expect(try db.value("SELECT count(*) > 0 FROM search WHERE search MATCH 'here'") == 1)
            }
        }
        try check()
        queue.close()
        try check()
        queue.inDatabase { db in _ = db.close() }
        try check()
        guard isEncrypting else { return }
        try queue.rotateKey(to: .testing(2))
        try check()
    }

    // MARK: Re-entrancy

    @Test func functionsRunStatementsOnTheirDatabase() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 10)
        try database.run("CREATE TABLE log (id)")
        try database.addFunction("logged", argumentCount: 1) { [unowned database] arguments in
            try database.run("INSERT INTO log VALUES (?)", [arguments.integer(at: 0)])
            return try database.value("SELECT count(*) FROM t WHERE id <= ?", [arguments.integer(at: 0)]) ?? nil
        }
        #expect(try database.rows("SELECT logged(id) FROM t").map { $0[0] } == (1...10).map { SQLValue($0) })
        #expect(try database.value("SELECT count(*) FROM log") == 10)
        try database.addFunction("factorial", argumentCount: 1) { [unowned database] arguments in
            let n = arguments.integer(at: 0)
            if n < 2 { return 1 }
            return try database.value("SELECT ? * factorial(?)", [n, n - 1]) ?? nil
        }
        #expect(try database.value("SELECT factorial(20)") == 2_432_902_008_176_640_000)
    }

    @Test func theCallingDatabaseCannotBeClosedOrRekeyed() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 3)
        try database.addFunction("closing") { [unowned database] _ in
            #expect(!database.close())
            #expect(
                database.lastErrorCode() == SQLITE_MISUSE && database.lastErrorMessage().contains("within a function")
            )
            if isEncrypting {
                #expect(!database.setKey("other"))
                #expect(!database.rekey("other"))
                #expect(throws: DatabaseError.self) { try database.rotateKey(to: .testing(2)) }
            }
            return SQLValue(database.isOpen)
        }
        #expect(try database.rows("SELECT closing() FROM t") == [[1], [1], [1]])
        #expect(database.close() && database.open())
        #expect(try database.integers("SELECT count(*) FROM t") == [3])
    }

    @Test func theCallingStatementIsLeftAlone() throws {
        for caches in [false, true] {
            let database = try Database.testing(nil)
            database.shouldCacheStatements = caches
            try database.fill(rows: 3)
            nonisolated(unsafe) var rows: ResultSet?
            try database.addFunction("f", argumentCount: 1) { _ in
                let error = #expect(throws: DatabaseError.self) { try rows?.nextWithError() ?? false }
                #expect(error?.message.contains("calls itself") == true)
                return 1
            }
            rows = try database.prepare("SELECT f(id) FROM t")
            #expect(rows!.next() && rows!.next())
            // Closed from within, it ends when the function has returned.
            try database.addFunction("g") { [unowned database] _ in
                database.closeOpenResultSets()
                return 1
            }
            rows = try database.executeQuery("SELECT g() FROM t", values: nil)
            #expect(!rows!.next())
            #expect(!database.hasOpenResultSets)
            rows = try database.executeQuery("INSERT INTO t (body) SELECT g() RETURNING id", values: nil)
            #expect(!rows!.next())
            rows = nil
            #expect(try database.integers("SELECT count(*) FROM t") == [4])
            #expect(database.close())
        }
    }

    /// SQLite would report success for rows that are not in the file.
    @Test(arguments: [
        "INSERT INTO t (body) SELECT undo() FROM t", "INSERT INTO t (body) VALUES (undo())",
        "UPDATE t SET body = undo()",
        "DELETE FROM t WHERE undo()", "INSERT INTO t (body) SELECT undone() FROM t",
    ])
    func aWritingStatementFailsWhenAFunctionRollsBack(_ sql: String) throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 2)
        try database.addFunction("undo") { [unowned database] _ in SQLValue(database.rollback()) }
        database.makeFunctionNamed("undone", arguments: 0) { [unowned database] context, _, _ in
            database.resultInt(database.rollback() ? 1 : 0, context: context)
        }
        #expect(database.beginImmediateTransaction())
        try database.run("INSERT INTO t (body) VALUES ('gone')")
        let error = #expect(throws: DatabaseError.self) { try database.run(sql) }
        #expect(error?.message.contains("rolled back the transaction") == true)
        #expect(!database.isInTransaction)
        #expect(try database.integers("SELECT count(*) FROM t WHERE body LIKE 'secret%'") == [2])
        // A transaction that the function itself began, within a statement that had one of its own.
        try database.addFunction("undo") { [unowned database] _ in
            _ = database.beginDeferredTransaction()
            return SQLValue(database.rollback())
        }
        #expect(throws: DatabaseError.self) { try database.run(sql.replacing("undone", with: "undo")) }
        let seen = try database.integers("SELECT count(*) FROM t")
        #expect(seen == [2])
        #expect(database.close() && database.open())
        #expect(try database.integers("SELECT count(*) FROM t") == seen)
        try database.run("INSERT INTO t (body) VALUES ('later')")
        #expect(try database.value("PRAGMA integrity_check") == "ok")
    }

    @Test func aReadingStatementGoesOnWhenAFunctionEndsTheTransaction() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 2)
        try database.addFunction("undo") { [unowned database] _ in SQLValue(database.rollback()) }
        #expect(database.beginImmediateTransaction())
        try database.run("INSERT INTO t (body) VALUES ('gone')")
        #expect(try database.value("SELECT undo()") == 1)
        #expect(try database.integers("SELECT count(*) FROM t") == [2])
    }
}
