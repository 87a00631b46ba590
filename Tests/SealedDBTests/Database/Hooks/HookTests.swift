import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct HookTests {
    private struct Veto: Error, Equatable {}
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// What hooks note down, on the one thread that a test has.
    private final class Notes {
        var lines: [String] = []
    }

    @Test func updatesAreTold() throws {
        let database = Database(path: nil)
        var changes: [RowChange] = []
        database.updateHook = { changes.append($0) }
        #expect(database.open())
        try database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        try database.run("ATTACH ':memory:' AS other")
        try database.run("CREATE TABLE other.u (a)")
        #expect(changes.isEmpty)
        try database.run("INSERT INTO t VALUES (7, 'x')")
        try database.run("UPDATE t SET id = 8")
        try database.run("DELETE FROM t WHERE id = 8")
        try database.run("INSERT INTO u VALUES (1)")
        #expect(changes.map(\.rowID) == [7, 8, 8, 1])
        #expect(changes.map(\.operation) == [.insert, .update, .delete, .insert])
        #expect(changes.map(\.table) == ["t", "t", "t", "u"])
        #expect(changes.map(\.database) == ["main", "main", "main", "other"])
        database.updateHook = nil
        try database.run("INSERT INTO t VALUES (9, 'x')")
        #expect(changes.count == 4)
    }

    @Test func commitsAndRollbacksAreTold() throws {
        let database = try Database.testing(nil)
        let notes = Notes()
        database.commitHook = { notes.lines.append("commit") }
        database.rollbackHook = { notes.lines.append("rollback") }
        try database.fill(rows: 2)
        #expect(notes.lines == ["commit", "commit"])
        #expect(database.beginImmediateTransaction())
        try database.fill(rows: 1)
        #expect(database.rollback())
        #expect(notes.lines == ["commit", "commit", "rollback"])
        #expect(throws: Veto.self) {
            try database.inTransaction {
                try database.fill(rows: 1)
                throw Veto()
            }
        }
        #expect(notes.lines.last == "rollback" && notes.lines.count == 4)
    }

    @Test func aCommitCanBeRefused() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 1)
        database.commitHook = { throw Veto() }
        #expect(database.beginImmediateTransaction())
        try database.run("INSERT INTO t (body) VALUES ('x')")
        #expect(!database.commit())
        let error = database.lastError() as? DatabaseError
        #expect(error?.underlyingError is Veto && error?.reason == .closureFailed)
        #expect(error?.extendedCode == SQLITE_CONSTRAINT_COMMITHOOK && error?.code == SQLITE_CONSTRAINT)
        #expect(error?.message.contains("rolled back") == true)
        #expect(!database.isInTransaction)
        let own = DatabaseError(extendedCode: SQLITE_FULL, message: "quota")
        database.commitHook = { throw own }
        #expect(throws: own) { try database.run("INSERT INTO t (body) VALUES ('x')") }
        #expect(throws: own) { try database.inTransaction { try database.run("INSERT INTO t (body) VALUES ('x')") } }
        database.commitHook = nil
        #expect(try database.integers("SELECT count(*) FROM t") == [1])
    }

    @Test func hooksComeBackAndAreDropped() throws {
        var database: Database? = try Database.testing(directory.file("db"))
        let notes = Notes()
        var watched: Watched
        do {
            let token = Token()
            watched = Watched(token)
            database!.updateHook = { [token] _ in withExtendedLifetime(token) { notes.lines.append("update") } }
        }
        database!.commitHook = { notes.lines.append("commit") }
        database!.authorizer = { request in
            if case .function("upper") = request.action { return .deny }
            return .allow
        }
        database!.setProgressHandler(interval: 1) {
            notes.lines.append("progress")
            return true
        }
        #expect(database!.close() && database!.open())
        try database!.fill(rows: 1)
        #expect(Set(notes.lines) == ["update", "commit", "progress"])
        #expect(throws: DatabaseError.self) { try database!.value("SELECT upper('a')") }
        #expect(watched.isAlive)
        database!.updateHook = nil
        #expect(!watched.isAlive)
        do {
            let token = Token()
            watched = Watched(token)
            database!.rollbackHook = { [token] in withExtendedLifetime(token) {} }
        }
        database = nil
        #expect(!watched.isAlive)
    }

    @Test func progressCanStopAStatement() throws {
        let database = try Database.testing(nil)
        var calls = 0
        database.setProgressHandler(interval: 100) {
            calls += 1
            return calls < 10
        }
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        let error = #expect(throws: DatabaseError.self) { try database.value(endless) }
        #expect(error?.code == SQLITE_INTERRUPT && error?.reason == .interrupted && calls == 10)
        database.removeProgressHandler()
        #expect(try database.value("SELECT 1") == 1)
        #expect(calls == 10)
    }

    @Test func authorizerAllowsDeniesAndIgnores() throws {
        let database = try Database.testing(nil)
        try database.run("CREATE TABLE t (open, hidden)")
        try database.run("INSERT INTO t VALUES ('a', 'b')")
        database.shouldCacheStatements = true
        #expect(try database.rows("SELECT open, hidden FROM t") == [["a", "b"]])
        database.authorizer = { request in
            switch request.action {
            case .read("t", "hidden"): .ignore
            case .delete, .attach, .pragma: .deny
            default: .allow
            }
        }
        #expect(try database.rows("SELECT open, hidden FROM t") == [["a", nil]])
        let error = #expect(throws: DatabaseError.self) { try database.run("DELETE FROM t") }
        #expect(error?.code == SQLITE_AUTH)
        #expect(throws: DatabaseError.self) { try database.run("ATTACH ':memory:' AS x") }
        #expect(throws: DatabaseError.self) { try database.value("PRAGMA user_version") }
        // One is in use while the authorizer goes, another one stands on a row, and the one above is in the cache.
        let prepared = try database.prepare("SELECT hidden FROM t")
        let running = try database.prepare("SELECT hidden AS h FROM t")
        #expect(running.next() && running.columnIndexIsNull(0))
        database.authorizer = nil
        #expect(try database.rows("SELECT open, hidden FROM t") == [["a", "b"]])
        #expect(prepared.next() && prepared.string(forColumnIndex: 0) == "b")
        running.close()
        prepared.close()
        #expect(try database.rows("SELECT hidden AS h FROM t") == [["b"]])
        #expect(try database.rows("SELECT hidden FROM t") == [["b"]])
    }

    @Test func actionsAreTyped() throws {
        let database = try Database.testing(nil)
        var requests: [AuthorizationRequest] = []
        database.authorizer = { request in
            requests.append(request)
            return .allow
        }
        func actions(_ sql: String) throws -> [AuthorizerAction] {
            requests = []
            #expect(database.executeStatements(sql), "\(database.lastError())")
            return requests.map(\.action)
        }
        #expect(try actions("CREATE TABLE t (a, b)").contains(.createTable("t")))
        #expect(try actions("CREATE INDEX i ON t (a)").contains(.createIndex("i", table: "t")))
        #expect(try actions("CREATE TEMP TABLE u (a)").contains(.createTemporaryTable("u")))
        #expect(try actions("CREATE VIEW v AS SELECT a FROM t").contains(.createView("v")))
        #expect(try actions("SELECT b FROM t") == [.select, .read(table: "t", column: "b")])
        #expect(requests.last?.database == "main" && requests.last?.source == nil)
        #expect(try actions("SELECT a FROM v").contains(.read(table: "t", column: "a")))
        #expect(requests.contains { $0.source == "v" })
        #expect(try actions("INSERT INTO t VALUES (1, 2)").contains(.insert(table: "t")))
        #expect(try actions("UPDATE t SET b = 3").contains(.update(table: "t", column: "b")))
        #expect(
            try actions("BEGIN; SAVEPOINT s; ROLLBACK TO s; RELEASE s; COMMIT") == [
                .transaction("BEGIN"), .savepoint("BEGIN", name: "s"), .savepoint("ROLLBACK", name: "s"),
                .savepoint("RELEASE", name: "s"), .transaction("COMMIT"),
            ]
        )
        #expect(try actions("PRAGMA user_version = 5") == [.pragma("user_version", argument: "5")])
        #expect(try actions("PRAGMA user_version") == [.pragma("user_version", argument: nil)])
        #expect(try actions("ATTACH ':memory:' AS x; DETACH x").contains(.attach(path: ":memory:")))
        #expect(try actions("ALTER TABLE t ADD COLUMN c").contains(.alterTable("t")))
        #expect(try actions("SELECT abs(1)").contains(.function("abs")))
        #expect(
            try actions("WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i FROM n) SELECT i FROM n")
                .contains(.recursiveSelect)
        )
        #expect(
            try actions("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END").contains(
                .createTrigger("g", table: "t")
            )
        )
        #expect(try actions("REINDEX i").contains(.reindex("i")))
        #expect(try actions("ANALYZE t").contains(.analyze(table: "t")))
        #expect(
            try actions("CREATE VIRTUAL TABLE f USING fts5(a)").contains(.createVirtualTable("f", module: "fts5"))
        )
        #expect(try actions("DROP TABLE f").contains(.dropVirtualTable("f", module: "fts5")))
        #expect(
            try actions("DROP TRIGGER g; DROP VIEW v; DROP INDEX i; DROP TABLE t; DROP TABLE u").filter {
                [
                    .dropTrigger("g", table: "t"), .dropView("v"), .dropIndex("i", table: "t"), .dropTable("t"),
                    .dropTemporaryTable("u"),
                ].contains($0)
            }.count == 5
        )
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func authorizerDoesNotSeeKeys() throws {
        let database = Database(path: nil)
        #expect(database.open())
        var seen: [AuthorizerAction] = []
        database.authorizer = { request in
            seen.append(request.action)
            return .deny
        }
        for pragma in ["key", "rekey", "HexKey"] {
            #expect(!database.executeStatements("PRAGMA \(raw: pragma) = 'hush'"))
        }
        #expect(seen.count == 3)
        #expect(!"\(seen)".contains("hush"))
    }

    @Test func hooksMayNotUseTheirDatabase() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 1)
        let prepared = try database.prepare("SELECT 1")
        let blob = try database.openBlob(table: "t", column: "body", rowID: 1)
        var refusals = 0
        let tries = { [unowned database] in
            let uses: [() throws -> Void] = [
                { _ = try database.value("SELECT 1") }, { _ = try prepared.nextWithError() },
                { _ = try blob.read(count: 1) }, { try database.addFunction("f") { _ in 1 } },
                { try database.openBlob(table: "t", column: "body", rowID: 1).close() },
                { try database.backup(to: database) }, { try database.addTokenizer("x") { _ in SimpleTokenizer() } },
            ]
            for use in uses {
                let error = #expect(throws: DatabaseError.self) { try use() }
                #expect(error?.code == SQLITE_MISUSE && error?.message.contains("hook") == true)
                refusals += 1
            }
            #expect(!database.close())
            // Ends when the hook is over.
            _ = try? database.prepare("SELECT 2")
        }
        database.updateHook = { _ in tries() }
        try database.run("INSERT INTO t (body) VALUES ('x')")
        database.updateHook = nil
        database.commitHook = { tries() }
        try database.run("INSERT INTO t (body) VALUES ('x')")
        database.commitHook = nil
        database.rollbackHook = { tries() }
        #expect(database.beginImmediateTransaction())
        try database.run("INSERT INTO t (body) VALUES ('x')")
        #expect(database.rollback())
        database.rollbackHook = nil
        database.authorizer = { _ in
            tries()
            return .allow
        }
        #expect(try database.value("SELECT 2") == 2)
        database.authorizer = nil
        database.setProgressHandler(interval: 1) {
            tries()
            return true
        }
        #expect(try database.value("SELECT 2") == 2)
        database.removeProgressHandler()
        #expect(refusals >= 5 * 7)
        try blob.close()
        prepared.close()
        #expect(database.close() && database.open())
        #expect(try database.integers("SELECT count(*) FROM t") == [3])
    }

    @Test func settingAHookWithinItselfIsHarmless() throws {
        let database = try Database.testing(nil)
        var calls = 0
        database.updateHook = { [unowned database] _ in
            calls += 1
            database.updateHook = nil
        }
        try database.fill(rows: 3)
        #expect(calls == 1)
    }
}
