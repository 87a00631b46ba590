import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct ChangesTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Observes the changes of a database in memory, one by one: what was committed must be there without waiting, so a
    /// marker is committed to `marker` after each act, and everything before it belongs to the act.
    private final class Watch {
        let database: Database
        private var iterator: DatabaseChangeSequence.AsyncIterator
        private var marker: Int64 = 0

        init(_ database: Database, _ tables: Set<String>) throws {
            self.database = database
            try database.run("CREATE TABLE IF NOT EXISTS marker (id INTEGER PRIMARY KEY)")
            iterator = database.changes(in: tables.union(["marker"])).makeAsyncIterator()
        }

        /// What the act has committed; `nil` for nothing.
        func changes(_ act: () throws -> Void) async throws -> [String: ChangedRows]? {
            try act()
            marker += 1
            try database.run("INSERT INTO marker VALUES (?)", [marker])
            var tables = try #require(await iterator.next()).tables
            #expect(tables.removeValue(forKey: "marker") == .some([marker]))
            return tables.isEmpty ? nil : tables
        }

        func changes(_ sql: String) async throws -> [String: ChangedRows]? {
            try await changes {
                #expect(database.executeStatements(sql), "\(database.lastError())")
            }
        }
    }

    private func database(_ path: String? = nil) throws -> Database {
        let database = try Database.testing(path)
        try database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)")
        try database.run("CREATE TABLE other (a)")
        try database.run("CREATE TABLE bare (k PRIMARY KEY, v) WITHOUT ROWID")
        return database
    }

    @Test func rowsOfOneStatement() async throws {
        let watch = try Watch(database(), ["t"])
        #expect(try await watch.changes("INSERT INTO t VALUES (1, 'a'), (2, 'b')") == ["t": .some([1, 2])])
        #expect(try await watch.changes("UPDATE t SET a = 'c' WHERE id = 2") == ["t": .some([2])])
        #expect(try await watch.changes("UPDATE t SET a = 'c' WHERE id = 99") == nil)
        #expect(try await watch.changes("INSERT OR IGNORE INTO t VALUES (1, 'a')") == nil)
        #expect(try await watch.changes("INSERT INTO other VALUES (1)") == nil)
        #expect(try await watch.changes("SELECT * FROM t") == nil)
        #expect(try await watch.changes("DELETE FROM t WHERE id = 1") == ["t": .some([1])])
    }

    @Test func transactions() async throws {
        let watch = try Watch(database(), ["t", "other"])
        #expect(
            try await watch.changes("BEGIN; INSERT INTO t VALUES (1, 'a'); INSERT INTO other VALUES (0); COMMIT")
                == ["t": .some([1]), "other": .some([1])]
        )
        #expect(try await watch.changes("BEGIN; INSERT INTO t VALUES (2, 'b'); ROLLBACK") == nil)
        #expect(try await watch.changes("SAVEPOINT s; INSERT INTO t VALUES (3, 'c'); RELEASE s") == ["t": .some([3])])
        #expect(try await watch.changes("BEGIN; SAVEPOINT s; ROLLBACK TO s; COMMIT") == nil)
        // More may be told, never less.
        #expect(
            try await watch.changes("BEGIN; SAVEPOINT s; INSERT INTO t VALUES (4, 'd'); ROLLBACK TO s; COMMIT")
                == ["t": .some([4])]
        )
        #expect(
            try await watch.changes(
                """
                BEGIN; SAVEPOINT s; INSERT INTO t VALUES (4, 'd'); ROLLBACK TO s; INSERT INTO t VALUES (5, 'e'); COMMIT
                """
            ) == ["t": .some([4, 5])]
        )
    }

    @Test func failedStatements() async throws {
        let watch = try Watch(database(), ["t"])
        _ = try await watch.changes("INSERT INTO t VALUES (1, 'a')")
        let fails = { (sql: String) in { #expect(throws: DatabaseError.self) { try watch.database.run(sql) } } }
        #expect(try await watch.changes { _ = fails("INSERT INTO t VALUES (2, 'b'), (1, 'x')")() } == nil)
        #expect(
            try await watch.changes { _ = fails("INSERT OR FAIL INTO t VALUES (2, 'b'), (1, 'x')")() } == [
                "t": .some([2])
            ]
        )
        #expect(try await watch.changes { _ = fails("INSERT OR ROLLBACK INTO t VALUES (3, 'c'), (1, 'x')")() } == nil)
        watch.database.commitHook = { throw CancellationError() }
        let database = watch.database
        #expect(
            try await watch.changes {
                _ = fails("INSERT INTO t VALUES (4, 'd')")()
                database.commitHook = nil
            } == nil
        )
        #expect(try database.integers("SELECT id FROM t") == [1, 2])
    }

    /// What SQLite's update hook keeps quiet about.
    @Test func changesThatNoHookTells() async throws {
        let watch = try Watch(database(), ["t", "bare"])
        #expect(try await watch.changes("INSERT INTO bare VALUES ('a', 1)") == ["bare": .any])
        #expect(try await watch.changes("UPDATE bare SET v = 2 WHERE k = 'none'") == nil)
        #expect(try await watch.changes("UPDATE bare SET v = 2") == ["bare": .any])
        #expect(try await watch.changes("DELETE FROM bare") == ["bare": .any])
        #expect(try await watch.changes("DELETE FROM bare") == nil)
        _ = try await watch.changes("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        #expect(try await watch.changes("DELETE FROM t") == ["t": .any])
        #expect(try await watch.changes("BEGIN; INSERT INTO bare VALUES ('b', 1); ROLLBACK") == nil)
        // A displaced row is not listed, but its table is.
        _ = try await watch.changes("INSERT INTO t VALUES (1, 'a')")
        #expect(try await watch.changes("REPLACE INTO t VALUES (2, 'a')") == ["t": .some([2])])
        #expect(try await watch.changes("DROP TABLE bare") == ["bare": .any])
        #expect(try await watch.changes("ALTER TABLE t ADD COLUMN b DEFAULT 5") == ["t": .any])
        #expect(try await watch.changes("CREATE TABLE bare AS SELECT 1 AS k") == ["bare": .any])
        #expect(try await watch.changes("CREATE TABLE IF NOT EXISTS bare (k); DROP TABLE IF EXISTS absent") == nil)
    }

    @Test func statementsThatReturnRows() async throws {
        let watch = try Watch(database(), ["t", "bare"])
        let database = watch.database
        let told = try await watch.changes {
            _ = try database.rows("INSERT INTO t VALUES (1, 'a'), (2, 'b') RETURNING id")
        }
        #expect(told == ["t": .some([1, 2])])
        #expect(
            try await watch.changes { _ = try database.rows("INSERT INTO bare VALUES ('a', 1) RETURNING k") }
                == ["bare": .any]
        )
        for ends in [true, false] {
            let told = try await watch.changes {
                var rows: ResultSet? = try database.executeQuery(
                    "INSERT INTO bare VALUES ('b' || ?, 1), ('c' || ?, 1) RETURNING k",
                    values: [ends, ends]
                )
                #expect(rows!.next())
                if ends { rows!.close() }
                rows = nil
            }
            #expect(told == ["bare": .any])
        }
    }

    @Test func triggersAndForeignKeys() async throws {
        let database = try database()
        try database.run("CREATE TABLE log (id INTEGER PRIMARY KEY, a)")
        try database.run("CREATE TABLE child (t REFERENCES t ON DELETE CASCADE, PRIMARY KEY (t)) WITHOUT ROWID")
        try database.run("PRAGMA foreign_keys = ON")
        try database.run(
            """
            CREATE TRIGGER g AFTER INSERT ON t BEGIN
            INSERT INTO bare VALUES (new.a, 1); INSERT INTO log (a) VALUES (new.a); END
            """
        )
        let watch = try Watch(database, ["t", "bare", "log", "child"])
        #expect(
            try await watch.changes("INSERT INTO t VALUES (1, 'a')")
                == ["t": .some([1]), "bare": .any, "log": .some([1])]
        )
        #expect(try await watch.changes("INSERT INTO child VALUES (1)") == ["child": .any])
        let cascade = try await watch.changes("DELETE FROM t WHERE id = 1")
        #expect(cascade == ["t": .some([1]), "child": .any])
        // Emptied by a trigger that has also put a row in: the row alone would be too little.
        try database.run(
            "CREATE TRIGGER h AFTER UPDATE ON t BEGIN INSERT INTO log (a) VALUES ('new'); DELETE FROM log; END"
        )
        try database.run("INSERT INTO t VALUES (2, 'b')")
        let told = try await watch.changes("UPDATE t SET a = 'c'")
        #expect(told == ["t": .some([2]), "log": .some([1, 2, 3]), "bare": .any])
    }

    @Test func statementsKeptFromBefore() async throws {
        for caches in [false, true] {
            let database = try database()
            database.shouldCacheStatements = caches
            let insert = "INSERT INTO bare VALUES (?, 1)"
            try database.run(insert, [-1])
            let prepared = try database.prepare(insert)
            let watch = try Watch(database, ["bare"])
            for number in 0..<6 {
                let told = try await watch.changes {
                    if number.isMultiple(of: 2) {
                        try database.run(insert, [number])
                    } else {
                        #expect(prepared.bind(with: [number]) && prepared.step())
                    }
                }
                #expect(told == ["bare": .any])
            }
            // Somebody else begins and ends observing.
            do { _ = database.changes(in: ["t"]) }
            #expect(try await watch.changes { try database.run(insert, [7]) } == ["bare": .any])
            try database.run("ALTER TABLE bare ADD COLUMN w")
            _ = try await watch.changes("SELECT 1")
            #expect(try await watch.changes("INSERT INTO bare VALUES (8, 1, 1)") == ["bare": .any])
        }
    }

    @Test func fullTextTables() async throws {
        let database = try database()
        try database.run("CREATE VIRTUAL TABLE five USING fts5(body)")
        try database.run("CREATE VIRTUAL TABLE four USING fts4(body)")
        let watch = try Watch(database, ["five", "four"])
        for table in ["five", "four"] {
            #expect(try await watch.changes("INSERT INTO \(table) VALUES ('one two')") == [table: .any])
            #expect(try await watch.changes("UPDATE \(table) SET body = 'three'") == [table: .any])
            #expect(try await watch.changes("SELECT * FROM \(table) WHERE \(table) MATCH 'three'") == nil)
            #expect(try await watch.changes("DELETE FROM \(table)") == [table: .any])
        }
    }

    @Test func changesWithinFunctions() async throws {
        let database = try database()
        try database.addFunction("inserting", argumentCount: 2) { [unowned database] arguments in
            try database.run("INSERT INTO \(arguments.text(at: 0)!) VALUES (?, 1)", [arguments.integer(at: 1)])
            return 1
        }
        let watch = try Watch(database, ["t", "bare"])
        #expect(try await watch.changes("SELECT inserting('bare', 1)") == ["bare": .any])
        #expect(try await watch.changes("SELECT inserting('t', 5)") == ["t": .some([5])])
        #expect(
            try await watch.changes("INSERT INTO t SELECT 7, inserting('bare', 2) + 1") == [
                "t": .some([7]), "bare": .any,
            ]
        )
    }

    @Test func blobsWrittenByThemselves() async throws {
        let database = try database()
        try database.run("INSERT INTO t VALUES (1, 'a')")
        try database.run("CREATE TABLE b (v)")
        try database.run("INSERT INTO b VALUES (zeroblob(4)), (zeroblob(4))")
        let watch = try Watch(database, ["b"])
        #expect(
            try await watch.changes {
                let blob = try database.openBlob(table: "B", column: "v", rowID: 1, isWritable: true)
                try blob.write([1])
                try blob.reopen(rowID: 2)
                _ = try blob.read(count: 1)
                try blob.close()
            } == ["b": .some([1])]
        )
    }

    @Test func namesAreSQLs() async throws {
        let database = try database()
        try database.run("CREATE TEMP TABLE \"Ä t\" (a)")
        let watch = try Watch(database, ["T", "absent"])
        #expect(try await watch.changes("INSERT INTO t VALUES (1, 'a')") == ["T": .some([1])])
        #expect(try await watch.changes("CREATE TABLE Absent (a); INSERT INTO absent VALUES (1)") == ["absent": .any])
        var temporary = database.changes(in: ["Ä T"], database: "TEMP").makeAsyncIterator()
        try database.run("INSERT INTO temp.\"Ä t\" VALUES (1)")
        #expect(await temporary.next()?.tables == ["Ä T": .some([1])])
    }

    @Test func manyRowsAreNotListed() async throws {
        let watch = try Watch(database(), ["other"])
        let insert =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %) INSERT INTO other SELECT i FROM n"
        #expect(
            try await watch.changes(insert.replacing("%", with: "1000")) == ["other": .some(Set(1...1000))]
        )
        #expect(try await watch.changes(insert.replacing("%", with: "1001")) == ["other": .any])
    }

    @Test func commitsArriveTogetherWhileNobodyLooks() async throws {
        let database = try database()
        var changes = database.changes(in: ["t", "other"]).makeAsyncIterator()
        for id in 1...500 { try database.run("INSERT INTO t VALUES (?, ?)", [id, id]) }
        try database.run("INSERT INTO other VALUES (1)")
        #expect(await changes.next()?.tables == ["t": .some(Set(1...500)), "other": .some([1])])
        for id in 501...1600 { try database.run("INSERT INTO t VALUES (?, ?)", [id, id]) }
        #expect(await changes.next()?.tables == ["t": .any])
    }

    @Test func hooksOfTheCallerStay() async throws {
        let database = try database()
        var lines: [String] = []
        database.updateHook = { lines.append("update \($0.rowID)") }
        database.commitHook = { lines.append("commit") }
        database.rollbackHook = { lines.append("rollback") }
        database.authorizer = { request in request.action == .delete(table: "other") ? .deny : .allow }
        let watch = try Watch(database, ["t", "bare"])
        lines = []
        #expect(try await watch.changes("INSERT INTO t VALUES (5, 'a')") == ["t": .some([5])])
        #expect(lines == ["update 5", "commit", "update 1", "commit"])
        #expect(throws: DatabaseError.self) { try database.run("DELETE FROM other") }
        database.updateHook = nil
        database.authorizer = nil
        #expect(try await watch.changes("INSERT INTO bare VALUES ('a', 1); DELETE FROM other") == ["bare": .any])
    }

    @Test func aBusyCommitIsToldWhenItSucceeds() async throws {
        let path = directory.file("db")
        let database = try database(path)
        let reader = try Database.testing(path)
        database.maxBusyRetryTimeInterval = 0
        var changes = database.changes(in: ["t", "other"]).makeAsyncIterator()
        #expect(reader.beginDeferredTransaction())
        #expect(try reader.integers("SELECT count(*) FROM t") == [0])
        #expect(database.beginDeferredTransaction())
        try database.run("INSERT INTO t VALUES (1, 'a')")
        #expect(!database.commit() && database.lastErrorCode() == SQLITE_BUSY)
        #expect(database.isInTransaction && reader.commit())
        try database.run("INSERT INTO t VALUES (2, 'b')")
        #expect(database.commit())
        #expect(await changes.next()?.tables == ["t": .some([1, 2])])
    }

    @Test func observingWithinATransaction() async throws {
        let database = try database()
        #expect(database.beginImmediateTransaction())
        try database.run("INSERT INTO t VALUES (1, 'a')")
        var changes = database.changes(in: ["t"]).makeAsyncIterator()
        #expect(database.commit())
        #expect(await changes.next()?.tables == ["t": .any])
        try database.run("INSERT INTO t VALUES (2, 'b')")
        #expect(await changes.next()?.tables == ["t": .some([2])])
    }

    // MARK: Life

    @Test func endsWithItsSequence() throws {
        let database = try database()
        var changes: DatabaseChangeSequence? = database.changes(in: ["t"])
        try database.run("INSERT INTO t VALUES (1, 'a')")
        #expect(changes != nil && database.connection?.isObserved == true)
        changes = nil
        try database.run("INSERT INTO t VALUES (2, 'b')")
        #expect(database.connection?.isObserved == false)
    }

    @Test func endsWithTheDatabaseAndWithItsTask() async throws {
        var database: Database? = try database()
        let changes = database!.changes(in: ["t"])
        try database!.run("INSERT INTO t VALUES (1, 'a')")
        database = nil
        var seen: [DatabaseChanges] = []
        for await change in changes { seen.append(change) }
        #expect(seen.map(\.tables) == [["t": .some([1])]])

        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
        let task = Task { [changes = queue.changes(in: ["t"])] in
            for await _ in changes {}
            return true
        }
        task.cancel()
        #expect(await task.value)
        // Observation has ended, and the queue goes on.
        try queue.inDatabase { db in try db.run("CREATE TABLE t (a)") }
    }

    @Test func queueTellsOfAllThatIsCommittedLater() async throws {
        let queue = try DatabaseQueue(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        try queue.inDatabase { db in try db.run("CREATE TABLE t (id INTEGER PRIMARY KEY)") }
        var changes: DatabaseChangeSequence.AsyncIterator?
        try queue.inDatabase { db in
            // From within a block too: it does not wait.
            changes = queue.changes(in: ["t"]).makeAsyncIterator()
            try db.run("INSERT INTO t VALUES (1)")
        }
        // The block began before the observation, so its rows are not listed.
        #expect(await changes?.next()?.tables == ["t": .any])
        try queue.inTransaction { db in try db.run("INSERT INTO t VALUES (2)") }
        #expect(await changes?.next()?.tables == ["t": .some([2])])
        queue.close()
        try queue.inTransaction { db in try db.run("INSERT INTO t VALUES (3)") }
        #expect(await changes?.next()?.tables == ["t": .some([3])])
        if isEncrypting { try await queue.rotateKey(to: .testing(2)) }
        try queue.inTransaction { db in try db.run("INSERT INTO t VALUES (4)") }
        #expect(await changes?.next()?.tables == ["t": .some([4])])
        // A result set that the block leaves open commits when the block ends.
        try queue.inDatabase { db in
            let rows = try db.executeQuery("INSERT INTO t VALUES (5), (6) RETURNING id", values: nil)
            #expect(rows.next())
        }
        #expect(await changes?.next()?.tables == ["t": .some([5, 6])])
    }

    @Test func poolTellsOfAllItsConnections() async throws {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.busyTimeout = .seconds(10)
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try pool.inDatabase { db in try db.run("CREATE TABLE t (id INTEGER PRIMARY KEY)") }
        var changes = pool.changes(in: ["t"]).makeAsyncIterator()
        try pool.inDatabase { first in
            try first.run("INSERT INTO t VALUES (1)")
            try pool.inDatabase { second in try second.run("INSERT INTO t VALUES (2)") }
        }
        #expect(await changes.next()?.tables == ["t": .some([1, 2])])
        pool.releaseAllDatabases()
        try pool.inDatabase { db in try db.run("INSERT INTO t VALUES (3)") }
        #expect(await changes.next()?.tables == ["t": .some([3])])
    }

    @Test func theSchemaIsATableToo() async throws {
        let watch = try Watch(database(), ["sqlite_schema"])
        let all: [String: ChangedRows] = ["sqlite_schema": .any]
        let statements = [
            "CREATE TABLE made (a)", "ALTER TABLE made ADD COLUMN b", "CREATE INDEX i ON made (a)",
            "CREATE VIEW v AS SELECT a FROM made", "CREATE TRIGGER r AFTER INSERT ON made BEGIN SELECT 1; END",
            "DROP TRIGGER r", "DROP VIEW v", "DROP INDEX i", "DROP TABLE made",
        ]
        for sql in statements { #expect(try await watch.changes(sql) == all, "\(sql)") }
        #expect(try await watch.changes("INSERT INTO t VALUES (1, 'a')") == nil)
    }

    @Test func manyWritersAndObservers() async throws {
        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
        try queue.inDatabase { db in try db.run("CREATE TABLE t (id INTEGER PRIMARY KEY)") }
        let observers = (0..<4).map { _ in queue.changes(in: ["t"]) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for changes in observers {
                group.addTask {
                    var seen: Set<Int64> = []
                    for await change in changes {
                        if case .some(let rows)? = change.tables["t"] { seen.formUnion(rows) }
                        if seen.count == 400 { break }
                    }
                    #expect(seen == Set(1...400))
                }
            }
            for writer in 0..<4 {
                group.addTask {
                    for number in 1...100 {
                        try queue.inDatabase { db in try db.run("INSERT INTO t VALUES (?)", [writer * 100 + number]) }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    // MARK: Ends

    /// Ends a statement or blob outside of a step, with no call after it that would tell of the commit.
    @Test func whatAnEndCommits() throws {
        let database = try database()
        try database.run("CREATE TABLE b (v)")
        try database.run("INSERT INTO b VALUES (zeroblob(4))")
        let names = [TableName("t", in: "main"): "t", TableName("b", in: "main"): "b", TableName.anything: "any"]
        let observer = ChangeObserver(names: names, continuation: AsyncStream.makeStream(of: Void.self).continuation)
        database.additions.hooks.changes.hub.add(observer)
        database.refreshObservation()
        // Of what was committed before.
        _ = observer.take()
        let insert = "INSERT INTO t (id) VALUES (?), (? + 1) RETURNING id"
        func begun(_ id: Int) throws -> ResultSet {
            let rows = try database.executeQuery(insert, values: [id, id])
            #expect(rows.next() && observer.take() == nil)
            return rows
        }
        func expect(
            _ told: [String: ChangedRows]?,
            _ location: SourceLocation = #_sourceLocation,
            after act: () throws -> Void
        ) rethrows {
            try act()
            #expect(observer.take() == told, sourceLocation: location)
        }
        func rows(_ ids: Int64...) -> [String: ChangedRows] { ["t": .some(Set(ids)), "any": .any] }

        try expect(rows(1, 2)) { _ = try begun(1) }
        try expect(rows(3, 4)) { try begun(3).close() }
        try expect(rows(5, 6)) { drop(try begun(5)) }
        let prepared = try database.prepare("INSERT INTO t (id) VALUES (?) RETURNING id")
        #expect(prepared.bind(with: [7]) && prepared.next() && observer.take() == nil)
        expect(rows(7)) { #expect(prepared.bind(with: [8])) }
        expect(nil) { prepared.close() }

        // In a transaction, only its end commits.
        #expect(database.beginTransaction())
        try expect(nil) { try begun(9).close() }
        expect(rows(9, 10)) { #expect(database.commit()) }

        func blob() throws -> Blob { try database.openBlob(table: "b", column: "v", rowID: 1, isWritable: true) }
        let written: [String: ChangedRows] = ["b": .some([1]), "any": .any]
        try expect(written) { try blob().write([1]) }
        let moved = try blob()
        try moved.write([2])
        expect(written) { #expect(throws: DatabaseError.self) { try moved.reopen(rowID: 99) } }

        // Of a table that nobody observes.
        let other = try database.executeQuery("INSERT INTO other VALUES (1) RETURNING a", values: nil)
        #expect(other.next() && observer.take() == nil)
        expect(["any": .any]) { other.close() }
    }

    /// Releases the last reference on another thread.
    private func drop(_ rows: consuming ResultSet) {
        nonisolated(unsafe) let handed = Unmanaged.passRetained(rows)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            handed.release()
            done.signal()
        }
        done.wait()
    }
}
