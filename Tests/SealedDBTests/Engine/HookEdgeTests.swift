import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// Functions, collations, tokenizers and hooks that fail, stop early or move from one connection to the next.
@Suite(.hangLimit)
struct HookEdgeTests {
    private let directory: TemporaryDirectory
    private let database: Database

    init() throws {
        directory = try TemporaryDirectory()
        database = Database(path: directory.file("db"))
        try database.openVerified()
    }

    private final class Token {}

    // MARK: Collations

    @Test func aCollationThatIsNotReplacedIsReleased() throws {
        try database.addCollation("c") { _, _ in .orderedSame }
        try database.executeUpdate("CREATE TABLE t (a)")
        try database.executeUpdate("INSERT INTO t VALUES ('a'), ('b')")
        let rows = try database.executeQuery("SELECT * FROM t WHERE a = 'x' COLLATE c")
        #expect(rows.next())
        weak var released: Token?
        do {
            let token = Token()
            released = token
            let error = #expect(throws: DatabaseError.self) {
                try database.addCollation("c") { _, _ in
                    withExtendedLifetime(token) { .orderedSame }
                }
            }
            #expect(error?.code == SealedDB.SQLITE_BUSY)
        }
        #expect(released == nil)
        rows.close()
    }

    /// By bytes, so that equal texts are equal, and others have an order.
    @Test func unknownCollationsCompareBytes() throws {
        let connection = try #require(database.connection)
        connection.acceptUnknownCollations()
        try connection.run("CREATE TABLE t (a)")
        try connection.run("INSERT INTO t VALUES ('b'), ('a'), ('B'), ('aa'), ('')")
        #expect(try connection.texts("SELECT a FROM t ORDER BY a COLLATE nosuch") == ["", "B", "a", "aa", "b"])
        #expect(try connection.texts("SELECT a FROM t WHERE a = 'b' COLLATE nosuch") == ["b"])
    }

    /// SQLite allows none of this before a hook has returned.
    @Test func aHookRemovesNothing() throws {
        try database.addFunction("f", argumentCount: 0) { _ in 1 }
        try database.addCollation("c") { _, _ in .orderedSame }
        var errors: [DatabaseError?] = []
        database.commitHook = { [unowned database] in
            errors = [
                #expect(throws: DatabaseError.self) { try database.removeFunction("f", argumentCount: 0) },
                #expect(throws: DatabaseError.self) { try database.removeCollation("c") },
            ]
        }
        try database.executeUpdate("CREATE TABLE t (a)")
        #expect(errors.map { $0?.reason } == [.misuse, .misuse], "\(errors)")
        database.commitHook = nil
        #expect(try database.executeQuery("SELECT f() + ('a' = 'b' COLLATE c)").scalar(Int.self) == 2)
        try database.removeFunction("f", argumentCount: 0)
        try database.removeCollation("c")
    }

    // MARK: Tokenizers

    private struct Tokenizer: FTS5Tokenizer {
        let range: Range<Int>
        var body: () throws -> Void = {}

        func tokenize(
            _ text: UnsafeBufferPointer<UInt8>,
            for purpose: TokenizationPurpose,
            into tokens: borrowing TokenSink
        ) throws {
            try body()
            try tokens.append("a", range: range)
        }
    }

    @Test func theNameOfATokenizer() throws {
        for name in ["", "a\0b"] {
            let error = #expect(throws: DatabaseError.self) {
                try database.addTokenizer(name) { _ in Tokenizer(range: 0..<1) }
            }
            #expect(error?.reason == .misuse)
        }
    }

    @Test(arguments: [-1..<1, 0..<4, -5 ..< -2]) func aTokenThatIsNotInTheText(range: Range<Int>) throws {
        try database.addTokenizer("own") { _ in Tokenizer(range: range) }
        try database.executeUpdate("CREATE VIRTUAL TABLE t USING fts5 (a, tokenize = 'own')")
        let error = #expect(throws: DatabaseError.self) { try database.executeUpdate("INSERT INTO t VALUES ('abc')") }
        #expect(error?.code == SealedDB.SQLITE_RANGE, "\(String(describing: error))")
        #expect(try database.integers("SELECT count(*) FROM t") == [0])
    }

    /// Nothing is reported as stored that is not.
    @Test func aTokenizerThatRollsBack() throws {
        try database.addTokenizer("own") { [unowned database] _ in
            Tokenizer(range: 0..<1) { if database.isInTransaction { database.rollback() } }
        }
        try database.executeUpdate("CREATE VIRTUAL TABLE t USING fts5 (a, tokenize = 'own')")
        #expect(database.beginTransaction())
        let error = #expect(throws: DatabaseError.self) { try database.executeUpdate("INSERT INTO t VALUES ('abc')") }
        #expect(error == .lostTransaction, "\(String(describing: error))")
        #expect(!database.isInTransaction)
    }

    // MARK: Hooks

    /// The connection that the hooks have left does not take them from the next one.
    @Test func hooksThatHaveMoved() throws {
        let flags = SealedDB.SQLITE_OPEN_READWRITE | SealedDB.SQLITE_OPEN_CREATE
        let former = try Connection(path: directory.file("a"), flags: flags)
        let present = try Connection(path: directory.file("b"), flags: flags)
        defer { present.close() }
        let hooks = Hooks()
        hooks.attach(to: former)
        hooks.attach(to: present)
        former.close()
        var count = 0
        hooks.update = { _ in count += 1 }
        try present.run("CREATE TABLE t (a)")
        try present.run("INSERT INTO t VALUES (1)")
        #expect(count == 1)
    }

    /// What is dropped in a hook, where SQLite allows no call, ends later.
    @Test func statementsThatAreDroppedInAHook() throws {
        let connection = try #require(database.connection)
        connection.setCacheCapacity(4)
        try connection.run("CREATE TABLE t (a)")
        try connection.run("SELECT 1")
        let dropped = try connection.prepare("PRAGMA user_version")
        func count() -> Int {
            var (count, statement) = (0, sqlite3_next_stmt(connection.handle, nil))
            while let present = statement {
                count += 1
                statement = sqlite3_next_stmt(connection.handle, present)
            }
            return count
        }
        var counts: [Int] = []
        let hooks = database.additions.hooks
        hooks.update = { _ in
            counts.append(count())
            dropped.close()
            let cached = Result { try connection.prepare("SELECT 1") }
            counts.append(count())
            if case .success(let statement) = cached { statement.close() }
        }
        try connection.run("INSERT INTO t VALUES (1)")
        #expect(counts.count == 2 && counts.first == counts.last)
        hooks.update = nil
        connection.endOrphans()
        #expect(count() < counts[0])
    }

    /// A result set that is closed while its statement runs is none any more.
    @Test func closingAResultSetFromItsStatement() throws {
        var rows: ResultSet?
        var isOpen: [Bool] = []
        try database.addFunction("stop", argumentCount: 0) { [unowned database] _ in
            isOpen.append(database.hasOpenResultSets)
            rows?.close()
            isOpen.append(database.hasOpenResultSets)
            return .null
        }
        rows = try database.executeQuery("SELECT stop()")
        _ = rows?.next()
        #expect(isOpen == [true, false])
        rows = nil
    }

    private func observer(_ table: String, in schema: String = "main") -> ChangeObserver {
        let (_, continuation) = AsyncStream.makeStream(of: Void.self)
        return ChangeObserver(names: [TableName(table, in: schema): table], continuation: continuation)
    }

    private func observe(_ observers: [ChangeObserver]) throws -> Connection {
        let hooks = database.additions.hooks
        for observer in observers { hooks.changes.hub.add(observer) }
        hooks.refreshObservation()
        return try #require(database.connection)
    }

    @Test func statisticsOfOneSchema() throws {
        #expect(database.executeStatements("CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1)"))
        #expect(database.executeStatements("ATTACH ':memory:' AS o; CREATE TABLE o.t (a); CREATE INDEX o.i ON t (a)"))
        #expect(database.executeStatements("INSERT INTO o.t VALUES (1); ANALYZE"))
        let (own, other) = (observer("sqlite_stat1"), observer("sqlite_stat1", in: "o"))
        let connection = try observe([own, other])
        _ = (own.take(), other.take())
        try connection.run("ANALYZE main")
        #expect(own.take() != nil)
        #expect(other.take() == nil)
    }

    /// SQLite compiles it once more within its step.
    @Test func attachingTwiceCompiled() throws {
        try database.executeUpdate("CREATE TABLE t (a)")
        let observer = observer("t")
        let connection = try observe([observer])
        _ = observer.take()
        let statement = try connection.prepare("ATTACH ':memory:' AS o")
        defer { statement.close() }
        database.additions.hooks.install()
        #expect(try !statement.step())
        #expect(observer.take() == nil)
        try connection.run("INSERT INTO t VALUES (1)")
        #expect(observer.take() != nil)
    }

    @Test func observingWhatHasEnded() async throws {
        let hub = ChangeHub()
        hub.finish()
        var iterator = DatabaseChangeSequence(tables: ["t"], database: "main", hub: hub).makeAsyncIterator()
        #expect(await iterator.next() == nil)
    }

    /// A limit of time does not keep changes from being told.
    @Test func changesOfStatementsWithALimit() async throws {
        var configuration = Configuration()
        configuration.statementTimeout = .seconds(600)
        let queue = try DatabaseQueue(path: directory.file("queue"), configuration: configuration)
        // SQLite itself tells nobody of rows of such a table.
        try await queue.write { db in try db.executeUpdate("CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID") }
        var changes = queue.changes(in: ["t"]).makeAsyncIterator()
        try await queue.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)") }
        await queue.shutDown()
        #expect(await changes.next()?.tables["t"] == .any)
    }
}
