import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct BackupTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
    }

    @Test func whileTheStoreIsInUse() throws {
        let other = try sandbox.connection()
        #expect(other.beginImmediateTransaction())
        try other.executeUpdate("DELETE FROM people", values: nil)
        let outcome = try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        #expect(outcome.output.hasPrefix("copy: backup of "))
        #expect(other.rollback())
        other.close()
        #expect(try sandbox.names() == ["copy", "db", "key"])
        #expect(try sandbox.census(keyFile: "key", store: "copy").output == Sandbox.wholeStore)
        try sandbox.succeed("verify", "copy", "--key-file", "key", "--deep")
    }

    @Test func underAKeyOfItsOwn() throws {
        try sandbox.makeKey("other")
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key", "--new-key-file", "other")
        #expect(try sandbox.census(keyFile: "other", store: "copy").output == Sandbox.wholeStore)
        try sandbox.fail(77, "verify", "copy", "--key-file", "key")
    }

    @Test func backupRefusals() throws {
        try sandbox.makeKey("other")
        try sandbox.fail(73, "backup", "db", "key", "--key-file", "key")
        try sandbox.fail(77, "backup", "db", "copy", "--key-file", "other")
        try sandbox.fail(66, "backup", "absent", "copy", "--key-file", "key")
        #expect(try sandbox.names() == ["db", "key", "other"])
    }

    /// Nobody is asked for a passphrase that is not meant.
    @Test func restoreNeedsAKey() throws {
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        for more in [[], ["--replace"], ["--key-file", "key", "--key-stdin"]] {
            let outcome = try sandbox.run([Tool.sealdb, "restore", "copy", "db"] + more)
            #expect(outcome.status == 64, "\(more): \(outcome.status) \(outcome.error)")
        }
        #expect(try sandbox.names() == ["copy", "db", "key"])
    }

    /// A service may make the store while the key is fetched and the backup is checked.
    @Test func restoreReplacesNothingThatComesMeanwhile() throws {
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        let new = sandbox.path("new")
        let fetch = try sandbox.writeProgram(
            "fetch",
            "#!/bin/sh\ncp '\(sandbox.path("db"))' '\(new)' && cat '\(sandbox.path("key"))'\n"
        )
        let before = try sandbox.contents("db")
        try sandbox.fail(73, "restore", "copy", "new", "--key-command", fetch)
        #expect(try sandbox.contents("new") == before)
        #expect(try sandbox.names() == ["copy", "db", "fetch", "key", "new"])
    }

    @Test func restoreKeepsWhatWasThere() throws {
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        try sandbox.succeed("exec", "db", "DELETE FROM people WHERE id > 10", "--key-file", "key")
        try sandbox.fail(73, "restore", "copy", "db", "--key-file", "key")
        let outcome = try sandbox.succeed("restore", "copy", "db", "--key-file", "key", "--replace")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        let kept = try #require(try sandbox.names().first { $0.hasPrefix("db.replaced-") })
        #expect(outcome.output.contains(kept))
        #expect(try sandbox.census(keyFile: "key", store: kept).output == "10,55,10\n")
    }

    @Test func restoreRefusals() throws {
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        let other = try sandbox.connection()
        _ = try other.executeQuery("SELECT 1 FROM people", values: nil).nextWithError()
        try sandbox.fail(75, "restore", "copy", "db", "--key-file", "key", "--replace")
        other.close()
        let before = try sandbox.contents("db")
        try sandbox.overwrite("copy", at: 2 * 4096 + 9, with: [1, 2, 3])
        try sandbox.fail(65, "restore", "copy", "db", "--key-file", "key", "--replace")
        try sandbox.fail(65, "restore", "copy", "fresh", "--key-file", "key")
        #expect(try sandbox.contents("db") == before)
        #expect(try sandbox.names() == ["copy", "db", "key"])
    }

    /// Killed at every call that changes a directory, a restore leaves a whole store under the store's name: the old one
    /// or the new one.
    @Test func restoreKilled() throws {
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        try sandbox.succeed("exec", "db", "DELETE FROM people WHERE id > 10", "--key-file", "key")
        let original = try sandbox.contents("db")
        func restore(_ strace: [String]) throws -> Outcome {
            try sandbox.run(
                ["strace", "-f", "-qq"] + strace
                    + [Tool.sealdb, "restore", "copy", "db", "--key-file", "key", "--replace"]
            )
        }
        #expect(try restore(["-o", "trace"]).status == 0)
        let trace = String(decoding: try sandbox.contents("trace"), as: UTF8.self)
        var results = ["50,1275,50\n": 0, "10,55,10\n": 0]
        for call in ["rename", "link", "unlink", "fsync"] {
            let count = trace.split(separator: "\n").filter { $0.contains(" \(call)(") }.count
            for number in stride(from: 1, through: count, by: 1) {
                try sandbox.removeAll(but: ["key", "copy"])
                try sandbox.write("db", original)
                _ = try restore(["-o", "/dev/null", "-e", "inject=\(call):signal=KILL:when=\(number)"])
                let census = try sandbox.census(keyFile: "key")
                #expect(results[census.output] != nil, "\(call) \(number): \(census.output)\(census.error)")
                results[census.output, default: 0] += 1
            }
        }
        #expect(results.values.allSatisfy { $0 > 0 }, "\(results)")
    }
}
