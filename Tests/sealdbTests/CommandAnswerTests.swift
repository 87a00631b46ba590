import Foundation
import SealedDB
import Testing

@testable import sealdb

/// What single commands answer where two answers are possible.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct CommandAnswerTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
    }

    // MARK: exec

    /// A query counts no changes, also not those of the statement before it.
    @Test(arguments: ["", "COMMIT; "]) func countsChanges(commit: String) throws {
        try sandbox.makeStore()
        let begin = commit.isEmpty ? "" : "BEGIN; "
        let sql = "INSERT INTO people (name) VALUES ('a'), ('b'); WITH n AS (SELECT 1) SELECT 7 FROM n; "
        let outcome = try sandbox.succeed("exec", "db", begin + sql + commit, "--key-file", "key")
        #expect(outcome.lines.last == "2", "\(outcome.output)")
    }

    /// What could not be shown was not stored either, or was.
    @Test func whatTheErrorSaysOfATransaction() throws {
        try sandbox.makeStore()
        // Two columns have one name, so that no statement can be made of the row.
        let sql = "INSERT INTO people (name) VALUES ('a') RETURNING name, name"
        func exec(_ sql: String) throws -> Outcome {
            try sandbox.sealdb("exec", "db", sql, "--key-file", "key", "--format", "insert", "--into", "t")
        }
        for outcome in [try exec(sql), try exec("BEGIN; \(sql); COMMIT")] {
            #expect(outcome.status == 65 && !outcome.error.contains("is stored"), "\(outcome)")
        }
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        let after = try exec("\(sql); BEGIN; COMMIT")
        #expect(after.status == 65 && after.error.contains("what it changed is stored"), "\(after)")
        #expect(try sandbox.census(keyFile: "key").output.hasPrefix("51,"))
    }

    // MARK: import

    /// How many rows went well is not what is asked for quietly.
    @Test func rejectedRowsInQuiet() throws {
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "--key-file", "key")
        try sandbox.write("rows.csv", "id\n1\n1\n2\n")
        let arguments = ["import", "db", "t", "rows.csv", "--append", "--key-file", "key", "--rejects", "bad.csv"]
        let quiet = try sandbox.run([Tool.sealdb] + arguments + ["--quiet"])
        #expect(quiet.status == 2 && quiet.output.isEmpty && quiet.error.contains("bad.csv"), "\(quiet)")
        try sandbox.succeed("exec", "db", "DELETE FROM t", "--key-file", "key")
        unlink(sandbox.path("bad.csv"))
        let told = try sandbox.run([Tool.sealdb] + arguments)
        #expect(told.status == 2 && told.output == "t: 2 rows imported\n", "\(told)")
    }

    // MARK: info, verify, recover, diff

    /// What the rest of a plaintext database says is not to be relied on.
    @Test func aPlaintextDatabaseThatWasCutOff() throws {
        let sql = "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(50000))"
        #expect(try sandbox.run(["sqlite3", "plain", sql]).status == 0)
        #expect(try sandbox.succeed("info", "plain").output.contains("tables"))
        try sandbox.truncate("plain", to: 20480)
        let text = try sandbox.succeed("info", "plain").output
        #expect(text.contains("plaintext") && text.contains("20480 bytes"), "\(text)")
        #expect(!text.contains("tables") && !text.contains("one of"), "\(text)")
    }

    /// Without codes nobody can tell that pages are as they were written.
    @Test func pagesWithoutCodes() throws {
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key", "--no-hmac")
        try sandbox.succeed("exec", "db", "CREATE TABLE t (a)", "--key-file", "key", "--no-hmac")
        let text = try sandbox.succeed("verify", "db", "--key-file", "key", "--no-hmac").output
        #expect(text.contains("not authenticated") && !text.contains("sound"), "\(text)")
    }

    /// The salt of a store with a plaintext header is one of its settings.
    @Test func recoveringAStoreWithAPlaintextHeader() throws {
        try sandbox.makeKey()
        let settings = [
            "--key-file", "key", "--plaintext-header-size", "32", "--salt", String(repeating: "0b", count: 16),
        ]
        func run(_ arguments: String...) throws -> Outcome { try sandbox.run([Tool.sealdb] + arguments + settings) }
        #expect(try run("create", "db").status == 0)
        #expect(try run("exec", "db", "CREATE TABLE t (a); INSERT INTO t VALUES (7)").status == 0)
        let outcome = try run("recover", "db", "saved")
        #expect(outcome.status == 0, "\(outcome)")
        let rows = try run("query", "saved", "SELECT a FROM t", "--no-header")
        #expect(rows.lines == ["7"], "\(rows)")
    }

    /// Each of two stores has a key of the ring, not both the same.
    @Test func storesWithTwoKeysOfARing() throws {
        try sandbox.succeed("keyring", "create", "ring", "a")
        for name in ["one", "two"] {
            try sandbox.succeed("create", name, "--key-ring", "ring")
            try sandbox.succeed("exec", name, "CREATE TABLE t (a); INSERT INTO t VALUES (7)", "--key-ring", "ring")
        }
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        try sandbox.succeed("rotate", "two", "--key-ring", "ring")
        for stores in [("one", "two"), ("two", "one")] {
            try sandbox.succeed("diff", stores.0, stores.1, "--key-ring", "ring")
        }
    }

    // MARK: Rings

    /// Of several retired keys, the one that opens the store is named.
    @Test func retiredKeys() throws {
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("create", "ofA", "--key-ring", "ring")
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        try sandbox.succeed("create", "ofB", "--key-ring", "ring")
        try sandbox.succeed("keyring", "add", "ring", "c", "--activate")
        for id in ["a", "b"] { try sandbox.succeed("keyring", "remove", "ring", id, "--yes") }
        for (store, id) in [("ofA", "a"), ("ofB", "b")] {
            let outcome = try sandbox.sealdb("keyring", "audit", "ring", store)
            #expect(outcome.status == 1 && outcome.output.contains("\(id), which is retired"), "\(outcome)")
        }
        try sandbox.makeKey("other")
        try sandbox.succeed("create", "strange", "--key-file", "other")
        #expect(try sandbox.sealdb("keyring", "audit", "ring", "strange").status == 77)
    }

    /// Names with a NUL after each are stores that are named.
    @Test func removingAKeyByAListOfStores() throws {
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("create", "db", "--key-ring", "ring")
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        try sandbox.write("list", "db\0")
        let remove = ["keyring", "remove", "ring", "a", "--from0", "list"]
        let refused = try sandbox.run([Tool.sealdb] + remove)
        #expect(refused.status == 75 && refused.error.contains("db has it"), "\(refused)")
        try sandbox.succeed("rotate", "db", "--key-ring", "ring")
        let done = try sandbox.run([Tool.sealdb] + remove)
        #expect(done.status == 0 && done.output.contains("a retired"), "\(done)")
    }

    // MARK: Batches

    /// Only what is due is planned.
    @Test func aPlanForAStoreThatIsAsItShouldBe() throws {
        try sandbox.makeStore()
        let plan = try sandbox.succeed("migrate", "db", "--key-file", "key", "--dry-run", "--json")
        #expect(plan.output.contains(#""status":"unchanged""#), "\(plan.output)")
    }

    /// What fails already when it is planned is no plan.
    @Test func aPlanThatFails() throws {
        try sandbox.makeStore()
        let first = try sandbox.contents("db").prefix(4096)
        let backup = ["backup", "db", "--into", "b", "--key-file", "key", "--keep-last", "1"]
        try sandbox.succeed("exec", "db", "CREATE TABLE later AS SELECT zeroblob(90000)", "--key-file", "key")
        try FileManager.default.createDirectory(atPath: sandbox.path("b"), withIntermediateDirectories: false)
        #expect(try sandbox.run([Tool.sealdb] + backup).status == 0)
        let plan = try sandbox.run([Tool.sealdb] + backup + ["--dry-run", "--json"])
        #expect(plan.status == 0 && plan.output.contains(#""status":"planned""#), "\(plan)")
        // An earlier state of the first page, by which the rest is not there.
        try sandbox.write("db", first + sandbox.contents("db").dropFirst(4096))
        let failed = try sandbox.run([Tool.sealdb] + backup + ["--dry-run", "--json"])
        #expect(failed.status == 2 && failed.output.contains(#""exitCode":2"#), "\(failed)")
        #expect(!failed.output.contains("planned"), "\(failed)")
    }

    /// A signal explains no other failure.
    @Test func failuresAfterASignal() {
        struct Other: Error {}
        let interrupted = DatabaseError(extendedCode: SQLITE_INTERRUPT, reason: .interrupted, message: "m")
        let damaged = DatabaseError(extendedCode: SQLITE_CORRUPT, reason: .damaged, message: "m")
        #expect(StoreOutcome(interrupted, isStopped: true) == .stopped)
        for outcome in [
            StoreOutcome(damaged, isStopped: true), StoreOutcome(Other(), isStopped: true),
            StoreOutcome(interrupted, isStopped: false),
        ] {
            guard case .failed = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
    }

    /// What the system does not tell is no lack of space.
    @Test(arguments: ["stat ", "statvfs "]) func spaceThatIsNotKnown(call: String) throws {
        var status = statvfs()
        try #require(statvfs(sandbox.directory, &status) == 0)
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        try sandbox.write("large", "x")
        try sandbox.truncate("large", to: free + free / 2)
        let directory = URL(fileURLWithPath: sandbox.directory).resolvingSymlinksInPath().path
        let stores = [try StoreItem(directory + "/large")]
        func check() -> Bool { (try? SpaceCheck.check(stores, jobs: 1, keepsOld: false)) != nil }
        let count = CallWatch(directory)
        #expect(!check())
        let calls = count.endWithAll()
        let index = try #require(calls.firstIndex { $0.hasPrefix(call) }, "\(calls)")
        let watch = CallWatch(directory, failing: index...index, code: EACCES)
        let isEnough = check()
        watch.end()
        #expect(isEnough)
    }

    /// A file system without locks has no run that holds one.
    @Test func aJournalWhoseLockIsNotKnown() throws {
        let directory = URL(fileURLWithPath: sandbox.directory).resolvingSymlinksInPath().path
        try sandbox.write("journal", "")
        let path = directory + "/journal"
        let count = CallWatch(directory)
        #expect(try !JournalFile.isInUse(path))
        let calls = count.endWithAll()
        let index = try #require(calls.firstIndex { $0.contains("lock") }, "\(calls)")
        let watch = CallWatch(directory, failing: index...index, code: ENOLCK)
        let result = Result { try JournalFile.isInUse(path) }
        watch.end()
        #expect(try !result.get())
    }

    /// The slots that a new data key would leave behind are named before.
    @Test func aPlanThatRemovesSlots() throws {
        for name in ["key", "new", "safe"] { try sandbox.makeKey(name) }
        let recovery = ["--slots", "--key-file", "key", "--recovery-key-file", "safe"]
        #expect(try sandbox.run([Tool.sealdb, "create", "db"] + recovery).status == 0)
        let arguments = ["rotate", "db", "--key-file", "key", "--new-key-file", "new", "--reencrypt", "--dry-run"]
        try sandbox.write("list", "db\n")
        let rest = Array(arguments.dropFirst(2))
        let outcome = try sandbox.run([Tool.sealdb, "rotate", "--from-file", "list", "--yes"] + rest)
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output.contains(/db: can be changed, .*; .*recovery/), "\(outcome)")
        let single = try sandbox.run([Tool.sealdb] + arguments + ["--yes"])
        #expect(single.status == 0 && single.output.contains(/slots: .*recovery/), "\(single)")
    }

    /// A key file that was replaced before proves nothing of a store that has got another key since.
    @Test func aStoreWithAnotherKeyThanItsKeyFile() throws {
        try sandbox.makeStore()
        for name in ["new", "third"] { try sandbox.makeKey(name) }
        let rotate = ["rotate", "db", "--key-file", "key", "--new-key-file", "new", "--replace-key-files"]
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
        // As if the new file had not been removed yet.
        try sandbox.write("new", try sandbox.contents("key"))
        let again = try sandbox.run([Tool.sealdb] + rotate)
        #expect(again.status == 0 && !sandbox.exists("new"), "\(again)")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "third")
        try sandbox.write("new", try sandbox.contents("key"))
        let outcome = try sandbox.run([Tool.sealdb] + rotate)
        #expect(outcome.status == 77, "\(outcome)")
        #expect(try sandbox.census(keyFile: "third").output == Sandbox.wholeStore)
    }

    /// A plan does not even write a log into the store that a process has left which was killed.
    @Test func aPlanForAStoreWhoseKeyFileWasReplaced() throws {
        try sandbox.makeStore(journalMode: "wal")
        try sandbox.makeKey("new")
        let rotate = ["rotate", "db", "--key-file", "key", "--new-key-file", "new", "--replace-key-files"]
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
        try sandbox.write("new", try sandbox.contents("key"))
        let service = try sandbox.connection()
        try service.executeUpdate("INSERT INTO people (name) VALUES ('a')", values: nil)
        let files = try ["db", "db-wal"].map { (name: $0, bytes: try sandbox.contents($0)) }
        service.close()
        for file in files { try sandbox.write(file.name, file.bytes) }
        let before = try sandbox.names()
        let plan = try sandbox.run([Tool.sealdb] + rotate + ["--dry-run"])
        #expect(plan.status == 0, "\(plan)")
        #expect(try sandbox.names() == before)
        for file in files { #expect(try sandbox.contents(file.name) == file.bytes, "\(file.name)") }
    }
}
