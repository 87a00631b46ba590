import Foundation
import Testing

@testable import SealedDB

/// The first value comes at once, then one for each change, and no commit is missed.
@Suite(.hangLimit)
struct ValueObservationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func configuration() throws -> Configuration { Configuration(key: isEncrypting ? try .testing(1) : nil) }

    private static let schema = """
        CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT); CREATE TABLE other (a);
        CREATE TABLE bare (k PRIMARY KEY, v) WITHOUT ROWID; CREATE VIEW notes AS SELECT body FROM note;
        """

    private func queue() throws -> DatabaseQueue {
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration())
        try queue.write { db in try db.execute(script: SQL(raw: Self.schema)) }
        return queue
    }

    private func pool() throws -> DatabasePool {
        let pool = DatabasePool(path: directory.file("db"), configuration: try configuration())
        try pool.write { db in try db.execute(script: SQL(raw: Self.schema)) }
        return pool
    }

    private static func bodies(_ db: Database) throws -> [String] {
        try db.executeQuery("SELECT body FROM note ORDER BY id").all(String.self)
    }

    @Test func theFirstValueAndThenEachChange() async throws {
        let queue = try queue()
        var values = queue.observe(Self.bodies).makeAsyncIterator()
        #expect(try await values.next() == [])
        try await queue.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        #expect(try await values.next() == ["a"])
        try await queue.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('b')") }
        #expect(try await values.next() == ["a", "b"])
        // What is committed while nobody looks is one value.
        for _ in 0..<3 { try await queue.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('c')") } }
        #expect(try await values.next()?.count == 5)
        try await queue.write { db in try db.executeUpdate("DELETE FROM note") }
        #expect(try await values.next() == [])
    }

    @Test func neitherAnotherTableNorAnEqualValueIsTold() async throws {
        let queue = try queue()
        let (reads, values) = (Log<Void>(), Log<[String]>())
        let (hasFirst, hasEqual) = (Gate(), Gate())
        let observation = queue.observe { db in
            reads.add(())
            if reads.values.count == 3 { hasEqual.open() }
            return try Self.bodies(db)
        }
        let loop = Task {
            for try await value in observation {
                values.add(value)
                hasFirst.open()
                if value == ["a"] { return }
            }
        }
        await hasFirst.wait()
        try await queue.write { db in try db.executeUpdate("INSERT INTO other VALUES (1)") }
        try await queue.write { db in try db.execute(script: "INSERT INTO note VALUES (1, 'x'); DELETE FROM note") }
        await hasEqual.wait()
        try await queue.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        try await loop.value
        #expect(values.values == [[], ["a"]])
        // Twice at the beginning, and after each commit to the table.
        #expect(reads.values.count == 4)
    }

    @Test func eachLoopObservesOnItsOwn() async throws {
        let queue = try queue()
        let observation = queue.observe(Self.bodies)
        var (first, second) = (observation.makeAsyncIterator(), observation.makeAsyncIterator())
        #expect(try await first.next() == [])
        try await queue.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        #expect(try await second.next() == ["a"])
        #expect(try await first.next() == ["a"])
    }

    @Test func tablesOfEveryKind() async throws {
        let queue = try queue()
        try await queue.write { db in
            try db.execute(script: "CREATE VIRTUAL TABLE text USING fts5(body)")
        }
        var bare = queue.observe { db in try db.executeQuery("SELECT sum(v) FROM bare").scalar(Int.self) ?? 0 }
            .makeAsyncIterator()
        var count = queue.observe { db in try db.executeQuery("SELECT count(*) FROM note").scalar(Int.self) }
            .makeAsyncIterator()
        var qualified = queue.observe { db in
            try db.executeQuery("SELECT count(*) FROM main.note, main.sqlite_schema WHERE name = 'note'").scalar(
                Int.self
            )
        }.makeAsyncIterator()
        var view = queue.observe { db in try db.executeQuery("SELECT body FROM notes").all(String.self) }
            .makeAsyncIterator()
        var text = queue.observe { db in
            try db.executeQuery("SELECT rowid FROM text WHERE text MATCH 'word'").all(Int.self)
        }.makeAsyncIterator()
        #expect(try await bare.next() == 0)
        #expect(try await count.next() == 0)
        #expect(try await qualified.next() == 0)
        #expect(try await view.next() == [])
        #expect(try await text.next() == [])
        // Only the second time each loop waits for a change.
        for number in 1...2 {
            try await queue.write { db in
                try db.execute(
                    script: """
                        INSERT INTO bare VALUES (random(), 7); INSERT INTO note (body) VALUES ('x');
                        INSERT INTO text VALUES ('a word');
                        """
                )
            }
            #expect(try await bare.next() == 7 * number)
            #expect(try await count.next() == number)
            #expect(try await qualified.next() == number)
            #expect(try await view.next() == Array(repeating: "x", count: number))
            #expect(try await text.next() == Array(1...number))
        }
        // The view then reads another table.
        try await queue.write { db in
            try db.execute(script: "DROP VIEW notes; CREATE VIEW notes AS SELECT a AS body FROM other")
        }
        #expect(try await view.next() == [])
        try await queue.write { db in try db.executeUpdate("INSERT INTO other VALUES ('y')") }
        #expect(try await view.next() == ["y"])
    }

    @Test func blobsThatAreRead() async throws {
        let queue = try queue()
        try await queue.write { db in try db.executeUpdate("INSERT INTO note VALUES (1, x'61')") }
        var values = queue.observe { db in
            try db.openBlob(table: "note", column: "body", rowID: 1).read(count: 1)
        }.makeAsyncIterator()
        #expect(try await values.next() == Data([0x61]))
        try await queue.write { db in try db.executeUpdate("UPDATE note SET body = x'62'") }
        #expect(try await values.next() == Data([0x62]))
        try await queue.write { db in try db.executeUpdate("UPDATE note SET body = x'63'") }
        #expect(try await values.next() == Data([0x63]))
    }

    @Test func aBlockThatReadsOtherTablesLater() async throws {
        let pool = try pool()
        var values = pool.observe { db in
            let usesOther = try db.executeQuery("SELECT count(*) FROM note").scalar(Int.self) == 1
            return usesOther ? try db.executeQuery("SELECT a FROM other").all(String.self) : ["none"]
        }.makeAsyncIterator()
        #expect(try await values.next() == ["none"])
        try await pool.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        #expect(try await values.next() == [])
        try await pool.write { db in try db.executeUpdate("INSERT INTO other VALUES ('b')") }
        #expect(try await values.next() == ["b"])
    }

    @Test func statementsThatWereCached() async throws {
        let pool = try pool()
        // Each reader has the statement in its cache, whose tables nobody asked for.
        for _ in 0..<8 { _ = try await pool.read(Self.bodies) }
        var values = pool.observe(Self.bodies).makeAsyncIterator()
        #expect(try await values.next() == [])
        try await pool.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        #expect(try await values.next() == ["a"])
        try await pool.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('b')") }
        #expect(try await values.next() == ["a", "b"])
    }

    enum Writing: CaseIterable {
        case write, alone, inDatabase, inTransaction

        func callAsFunction(_ pool: DatabasePool, _ block: (Database) throws -> Void) throws {
            switch self {
            case .write: try pool.write(block)
            case .alone: try pool.write(alone: true, block)
            case .inDatabase: try pool.inDatabase(block)
            case .inTransaction: try pool.inTransaction(block)
            }
        }
    }

    /// The observation begins while a block runs, and reads the state before its commit.
    @Test(arguments: Writing.allCases) func aCommitOfABlockThatBeganEarlier(_ writing: Writing) async throws {
        let pool = try pool()
        let (hasBegun, mayEnd, hasEnded) = (Gate(), Gate(), Gate())
        // Not a task: it would hold one of the few threads that all tasks share.
        Thread.detachNewThread {
            #expect(throws: Never.self) {
                try writing(pool) { db in
                    if writing == .inDatabase { try db.run("BEGIN IMMEDIATE") }
                    try db.run("INSERT INTO note (body) VALUES ('a')")
                    hasBegun.open()
                    mayEnd.waitBlocking()
                    if writing == .inDatabase { try db.run("COMMIT") }
                }
            }
            hasEnded.open()
        }
        await hasBegun.wait()
        var values = pool.observe(Self.bodies).makeAsyncIterator()
        #expect(try await values.next() == [])
        mayEnd.open()
        #expect(try await values.next() == ["a"])
        await hasEnded.wait()
    }

    /// The observation begins in a hook that SQLite calls within COMMIT.
    @Test func anObserverThatComesWithinTheCommit() async throws {
        let pool = try pool()
        let found = Log<DatabaseChangeSequence>()
        try await pool.writeWithoutTransaction { db in
            db.commitHook = { found.add(pool.changes(in: ["note"])) }
        }
        try await pool.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        var changes = try #require(found.values.first).makeAsyncIterator()
        #expect(await changes.next()?.tables == ["note": .any])
    }

    @Test func manyWritersAndLoops() async throws {
        let pool = try pool()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let counts = pool.observe { db in
                        try db.executeQuery("SELECT count(*) FROM note").scalar(Int.self) ?? 0
                    }
                    var last = -1
                    for try await count in counts {
                        #expect(count > last)
                        last = count
                        if count == 100 { break }
                    }
                    #expect(last == 100)
                }
            }
            for writer in 0..<4 {
                group.addTask {
                    for number in 0..<25 {
                        if (writer + number) % 2 == 0 {
                            try await pool.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
                        } else {
                            try pool.inTransaction { db in try db.run("INSERT INTO note (body) VALUES ('b')") }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    // MARK: Ends

    @Test func endsAtAShutdown() async throws {
        for access in [try queue(), DatabasePool(path: directory.file("db"), configuration: try configuration())]
            as [any DatabaseAccess]
        {
            let observation =
                (access as? DatabaseQueue)?.observe(Self.bodies) ?? (access as! DatabasePool).observe(Self.bodies)
            let first = Gate()
            let loop = Task {
                var values: [[String]] = []
                for try await value in observation {
                    values.append(value)
                    first.open()
                }
                return values
            }
            await first.wait()
            await access.shutDown()
            #expect(try await loop.value == [[]])
            // One that begins later ends at once.
            for try await value in observation { Issue.record("\(value)") }
        }
    }

    @Test func endsWithItsTask() async throws {
        let queue = try queue()
        let first = Gate()
        let loop = Task {
            var values = 0
            for try await _ in queue.observe(Self.bodies) {
                values += 1
                first.open()
            }
            return values
        }
        await first.wait()
        loop.cancel()
        #expect(try await loop.value == 1)
        try await queue.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        #expect(try await queue.read(Self.bodies) == ["a"])
        let isObserved = try await queue.writeWithoutTransaction { db in db.connection?.isObserved }
        #expect(isObserved == false)
    }

    @Test func endsWithTheErrorOfARead() async throws {
        let queue = try queue()
        var values = queue.observe(Self.bodies).makeAsyncIterator()
        #expect(try await values.next() == [])
        try await queue.write { db in try db.executeUpdate("DROP VIEW notes") }
        try await queue.write { db in try db.executeUpdate("DROP TABLE note") }
        await #expect(throws: DatabaseError.self) { try await values.next() }
        #expect(try await values.next() == nil)
    }

    @Test(.enabled(if: isEncrypting, "rotation takes a key")) func goesOnAfterARotation() async throws {
        let pool = try pool()
        var values = pool.observe(Self.bodies).makeAsyncIterator()
        #expect(try await values.next() == [])
        try await pool.rotateKey(to: .testing(2))
        try await pool.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        #expect(try await values.next() == ["a"])
    }

    /// What a value depends on beside the rows of tables: how names are resolved, row ids that no column holds, settings.
    struct Dependence: Sendable, CustomTestStringConvertible {
        let read: String
        let change: String
        let values: [String]

        var testDescription: String { change }
    }

    private static let dependences: [Dependence] = [
        Dependence(
            read: "SELECT group_concat(rowid) FROM other",
            change: "VACUUM",
            values: ["2,3", "1,2"]
        ),
        Dependence(
            read: "SELECT a FROM aux.looking",
            change: "DROP VIEW aux.looking; CREATE VIEW aux.looking AS SELECT 9 AS a",
            values: ["8", "9"]
        ),
        Dependence(
            read: "SELECT a FROM looking",
            change: "DROP VIEW temp.looking; CREATE TEMP VIEW looking AS SELECT 9 AS a",
            values: ["7", "9"]
        ),
        Dependence(
            read: "SELECT max(a) FROM other",
            change: "CREATE TEMP TABLE other AS SELECT 99 AS a",
            values: ["6", "99"]
        ),
        Dependence(
            read: "SELECT count(*) FROM sqlite_temp_schema",
            change: "CREATE TEMP TABLE other AS SELECT 99 AS a",
            values: ["1", "2"]
        ),
        Dependence(
            read: "SELECT count(*) FROM temp.sqlite_master",
            change: "CREATE TEMP TABLE other AS SELECT 99 AS a",
            values: ["1", "2"]
        ),
        Dependence(
            read: "SELECT count(*) FROM pragma_table_info('p', 'aux')",
            change: "ALTER TABLE aux.p ADD COLUMN b",
            values: ["1", "2"]
        ),
        Dependence(
            read: "SELECT user_version FROM pragma_user_version",
            change: "PRAGMA user_version = 9",
            values: ["0", "9"]
        ),
        Dependence(
            read: "SELECT group_concat(name) FROM pragma_database_list",
            change: "ATTACH ':memory:' AS more",
            values: ["main,temp,aux", "main,temp,aux,more"]
        ),
    ]

    @Test(arguments: dependences)
    func whatIsNoRow(_ dependence: Dependence) async throws {
        let queue = try queue()
        try await queue.writeWithoutTransaction { db in
            try db.execute(
                script: """
                    ATTACH ':memory:' AS aux; CREATE TABLE aux.p (a); CREATE VIEW aux.looking AS SELECT 8 AS a;
                    CREATE TEMP VIEW looking AS SELECT 7 AS a; INSERT INTO other VALUES (4), (5), (6);
                    DELETE FROM other WHERE a = 4;
                    """
            )
        }
        var values = queue.observe { db in
            try db.executeQuery(SQL(raw: "SELECT CAST((\(dependence.read)) AS TEXT)")).scalar(String.self) ?? ""
        }.makeAsyncIterator()
        #expect(try await values.next() == dependence.values[0])
        try await queue.writeWithoutTransaction { db in try db.execute(script: SQL(raw: dependence.change)) }
        #expect(try await values.next() == dependence.values[1])
    }

    /// A block does not cause itself to be called.
    @Test func pragmasThatOnlyRead() async throws {
        let queue = try queue()
        let reads = Log<Void>()
        var values = queue.observe { db in
            reads.add(())
            _ = try db.executeQuery("PRAGMA table_info(note)").all([String: SQLValue].self)
            return try Self.bodies(db)
        }.makeAsyncIterator()
        #expect(try await values.next() == [])
        try await queue.write { db in try db.executeUpdate("INSERT INTO note (body) VALUES ('a')") }
        #expect(try await values.next() == ["a"])
        #expect(reads.values.count == 2)
    }

    /// Of these SQLite tells only the name, and they read whatever is in the file.
    @Test(arguments: [
        "PRAGMA foreign_key_check", "SELECT * FROM pragma_foreign_key_check", "PRAGMA Integrity_Check",
        "PRAGMA main.quick_check", "PRAGMA page_count", "SELECT * FROM pragma_freelist_count",
    ])
    func pragmasThatReadRows(sql: String) async throws {
        let reads = Log<Void>()
        let pool = try pool()
        var values = pool.observe { db in
            reads.add(())
            _ = try db.executeQuery(SQL(raw: sql)).all([String: SQLValue].self)
            return reads.values.count
        }.makeAsyncIterator()
        // It is read once more when it is known what is observed.
        #expect(try await values.next() == 1)
        #expect(try await values.next() == 2)
        for count in 3...4 {
            try await pool.write { db in try db.executeUpdate("INSERT INTO other VALUES (1)") }
            #expect(try await values.next() == count)
        }
    }
}
