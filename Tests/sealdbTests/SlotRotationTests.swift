import Foundation
import Testing

/// `sealdb rotate` with stores that have slots: one and many, with and without a new data key.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct SlotRotationTests {
    private let sandbox: Sandbox
    private let keys = ["--key-file", "key", "--new-key-file", "new"]
    private let kept = ["--keep", "recovery=key-file:safe"]

    init() throws {
        sandbox = try Sandbox()
        for name in ["key", "new", "safe"] { try sandbox.makeKey(name) }
    }

    private func makeStore(_ name: String = "db", recovery: [String] = ["--recovery-key-file", "safe"]) throws {
        try run(["create", name, "--slots", "--key-file", "key"] + recovery)
        try sandbox.succeed("exec", name, "CREATE TABLE t (a); INSERT INTO t VALUES (7)", "--key-file", "key")
    }

    @discardableResult
    private func run(_ arguments: [String], _ status: Int32 = 0, location: SourceLocation = #_sourceLocation) throws
        -> Outcome
    {
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == status, "\(arguments): \(outcome.error)", sourceLocation: location)
        return outcome
    }

    private func objects(_ outcome: Outcome) throws -> [[String: Any]] {
        try outcome.lines.map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    private func opens(_ store: String, _ key: String) throws -> Bool {
        let outcome = try sandbox.run([Tool.sealdb, "query", store, "SELECT a FROM t", "--key-file", key])
        #expect([0, 77].contains(outcome.status), "\(outcome.error)")
        return outcome.status == 0 && outcome.lines.last == "7"
    }

    private func salt(_ store: String = "db") throws -> Data { try sandbox.contents(store).prefix(16) }

    @Test(arguments: ["delete", "wal"])
    func theSlotAndTheDataKey(mode: String) throws {
        try makeStore()
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = \(mode)", "--key-file", "key")
        let before = try salt()
        let plan = try run(["rotate", "db", "--reencrypt", "--dry-run"] + keys + kept)
        #expect(plan.output.contains("nothing was written") && !plan.output.contains("to be removed"))
        #expect(try salt() == before)
        let done = try run(["rotate", "db", "--reencrypt"] + keys + kept)
        #expect(done.output.hasPrefix("db: has the new key and a new data key, "))
        #expect(try salt() != before)
        #expect(try opens("db", "new") && opens("db", "safe") && !opens("db", "key"))
        let listed = try objects(try run(["slots", "list", "db", "--key-file", "new", "--json"]))[0]
        #expect((listed["slots"] as? [[String: Any]])?.compactMap { $0["label"] as? String } == ["recovery", "main"])
        try run(["verify", "db", "--key-file", "new"])
        #expect(try !sandbox.names().contains { $0.contains(".sealdb-") })
    }

    /// The same again after a slot was added, which it would remove.
    @Test func againAfterASlotWasAdded() throws {
        try makeStore()
        try sandbox.makeKey("late")
        try run(["rotate", "db", "--reencrypt"] + keys + kept)
        try run(["slots", "add", "db", "deputy", "--key-file", "new", "--new-key-file", "late"])
        let before = try (salt(), sandbox.contents("db.slots"))
        for arguments in [[], ["--yes"]] {
            let refused = try run(["rotate", "db", "--reencrypt"] + keys + kept + arguments, 77)
            #expect(refused.error.contains("deputy") && refused.error.contains("sealdb slots reencrypt"))
        }
        #expect(try (salt(), sandbox.contents("db.slots")) == before)
        #expect(try opens("db", "new") && opens("db", "late"))
    }

    @Test func otherSlotsAreNotRemovedUnasked() throws {
        try makeStore()
        let before = try (salt(), sandbox.contents("db.slots"))
        for arguments in [[], ["--dry-run"]] {
            let refused = try run(["rotate", "db", "--reencrypt"] + keys + arguments, 64)
            #expect(refused.error.contains("recovery") && refused.error.contains("--yes"))
        }
        #expect(try (salt(), sandbox.contents("db.slots")) == before)
        let plan = try run(["rotate", "db", "--reencrypt", "--dry-run", "--yes", "--json"] + keys)
        #expect(try objects(plan)[0]["removedSlots"] as? [String] == ["recovery"])
        try run(["rotate", "db", "--reencrypt", "--yes"] + keys)
        #expect(try opens("db", "new") && !opens("db", "safe") && !opens("db", "key"))
    }

    @Test func wrongUsage() throws {
        try makeStore()
        try sandbox.succeed("create", "plain", "--key-file", "key")
        let before = try sandbox.contents("plain")
        for arguments in [[], ["--dry-run"]] {
            let refused = try run(["rotate", "plain", "--reencrypt"] + keys + arguments, 64)
            #expect(refused.error.contains("no key slots") && refused.error.contains("whole store"))
        }
        #expect(try sandbox.contents("plain") == before)
        for arguments in [
            ["--yes"], kept, ["--reencrypt", "--keep", "safe"], ["--reencrypt", "--keep", "safe=what:x"],
            ["--reencrypt", "--keep-old"], ["--reencrypt", "--keep", "safe=wrap-command:age"],
        ] { try run(["rotate", "db"] + keys + arguments, 64) }
        try run(["rotate", "db", "--reencrypt", "--keep", "nobody=key-file:safe", "--yes"] + keys, 66)
        try run(["rotate", "db", "--reencrypt", "--keep", "recovery=key-file:new", "--yes"] + keys, 77)
        try run(["rotate", "db", "--reencrypt", "--yes", "--key-file", "new", "--new-key-file", "safe"], 77)
        #expect(try opens("db", "key") && opens("db", "safe"))
    }

    /// Key files that take the place of the old ones, as without slots.
    @Test func keyFiles() throws {
        try makeStore()
        let new = try sandbox.contents("new")
        try run(["rotate", "db", "--reencrypt", "--replace-key-files"] + keys + kept)
        #expect(try sandbox.contents("key") == new && sandbox.exists("key.old") && !sandbox.exists("new"))
        #expect(try opens("db", "key") && !opens("db", "key.old"))
    }

    /// Plan, journal, JSON, a failure, and the same command that goes on, with stores of both kinds.
    @Test(arguments: [false, true])
    func batches(reencrypts: Bool) throws {
        let names = ["s0", "s1", "s2", "s3"]
        for name in names { try makeStore(name) }
        let salts = try names.map { try salt($0) }
        let options = (reencrypts ? ["--reencrypt"] + kept : []) + keys + ["--jobs", "2", "--json"]
        let planned = try objects(try run(["rotate"] + names + options + ["--dry-run"]))
        #expect(planned.count { $0["status"] as? String == "planned" } == 4)
        #expect(try names.map { try salt($0) } == salts && !sandbox.exists("sealdb-rotate.journal"))
        // One that cannot be changed now.
        let whole = try ["s2.slots", "s2.slots.2"].map { ($0, try sandbox.contents($0)) }
        for (name, _) in whole { try sandbox.write(name, "what\n") }
        let failed = try objects(try run(["rotate"] + names + options + ["--continue-on-error"], 2))
        #expect(failed.count { $0["status"] as? String == "done" } == 3, "\(failed)")
        #expect(failed.count { $0["status"] as? String == "failed" } == 1)
        for (name, bytes) in whole { try sandbox.write(name, bytes) }
        #expect(try opens("s2", "key"))
        let status = try sandbox.run([Tool.sealdb, "status", "sealdb-rotate.journal"])
        #expect(status.status == 2 && status.output.contains("s2"))
        let resumed = try objects(try run(["rotate"] + names + options + ["--resume-only"]))
        #expect(resumed.count { $0["status"] as? String == "done" } == 1, "\(resumed)")
        #expect(resumed.count { $0["status"] as? String == "unchanged" } == 3)
        for (name, salt) in zip(names, salts) {
            #expect(try opens(name, "new") && opens(name, "safe") && !opens(name, "key"))
            #expect(try (self.salt(name) != salt) == reencrypts)
        }
    }

    /// A batch that would remove slots asks nobody: it is told so for each store.
    @Test func batchesRemoveNoSlotsUnasked() throws {
        try makeStore("s0", recovery: ["--no-recovery"])
        try makeStore("s1")
        let failed = try run(["rotate", "s0", "s1", "--reencrypt", "--continue-on-error"] + keys, 2)
        #expect(failed.error.contains("recovery"))
        #expect(try opens("s0", "new") && opens("s1", "key") && opens("s1", "safe"))
    }

    /// The keys of other slots may differ from store to store.
    @Test func keptSlotsOfTheirOwn() throws {
        for name in ["s0", "s1"] {
            try sandbox.makeKey("\(name).safe")
            try makeStore(name, recovery: ["--recovery-key-file", "\(name).safe"])
        }
        try run(["rotate", "s0", "s1", "--reencrypt", "--keep", "recovery=key-file:{dir}/{stem}.safe"] + keys)
        for name in ["s0", "s1"] { #expect(try opens(name, "\(name).safe") && opens(name, "new")) }
    }

    /// Of a store that is replaced, a second hard link would keep the old contents; and the slots lie beside one name only.
    @Test func hardLinks() throws {
        try makeStore()
        #expect(link(sandbox.path("db"), sandbox.path("second")) == 0)
        for command in [["rotate", "db"] + keys, ["rotate", "db", "--reencrypt"] + keys + kept] { try run(command, 78) }
        for name in ["db", "second"] {
            let outcome = try sandbox.run([Tool.sealdb, "exec", name, "DELETE FROM t", "--key-file", "key"])
            #expect(outcome.status != 0)
        }
        #expect(unlink(sandbox.path("second")) == 0)
        #expect(try opens("db", "key"))
        // A second name of a file of slots is another file after the next change.
        #expect(link(sandbox.path("db.slots"), sandbox.path("db.slots.copy")) == 0)
        let old = try sandbox.contents("db.slots")
        try run(["rotate", "db"] + keys)
        #expect(try sandbox.contents("db.slots.copy") == old && sandbox.contents("db.slots") != old)
        #expect(try opens("db", "new") && opens("db", "safe"))
    }
}
