import Foundation
import Testing

/// A file that is no store does not get a name that belongs to one.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct StoreNamesTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
    }

    /// Runs the call, and expects this exit code, a message that tells why, and no file that was not there.
    private func expectRefused(
        _ arguments: [String],
        input: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let names = try sandbox.names()
        let outcome = try sandbox.run([Tool.sealdb] + arguments, input: input)
        #expect(outcome.status == 73, "\(arguments): \(outcome.error)", sourceLocation: sourceLocation)
        #expect(
            outcome.error.contains("is the name of a file that belongs to"),
            "\(outcome.error)",
            sourceLocation: sourceLocation
        )
        #expect(try sandbox.names() == names, sourceLocation: sourceLocation)
    }

    @Test(arguments: ["db-journal", "db-wal", "./db-shm", "db.slots", "db.slots.2"])
    func rejectedRows(name: String) throws {
        try sandbox.makeStore()
        try sandbox.write("in.csv", "a\n1\n2,3\n")
        let call = ["import", "db", "t", "in.csv", "--key-file", "key", "--rejects"]
        try expectRefused(call + [name])
        let count = "SELECT count(*) AS n FROM sqlite_schema WHERE name = 't'"
        #expect(try sandbox.succeed("query", "db", count, "--key-file", "key").lines.last == "0")
        // But for the name it would be done.
        #expect(try sandbox.run([Tool.sealdb] + call + ["bad.csv"]).status == 2)
        #expect(try sandbox.contents("bad.csv") == Data("a\n2,3\n".utf8))
    }

    /// The old file would be taken for the slots of the store, and the new one not open any more.
    @Test(arguments: [".slots", ".slots.2"])
    func theOldFileOfARotation(ending: String) throws {
        try sandbox.makeStore()
        try sandbox.makeKey("new")
        let call = ["rotate", "db", "--key-file", "key", "--new-key-file", "new", "--keep-old=\(ending)"]
        for more in [[], ["--dry-run"]] {
            try expectRefused(call + more)
            #expect(try sandbox.names() == ["db", "key", "new"])
            #expect(try sandbox.keys(opening: "db") == ["key"])
        }
    }

    @Test(arguments: [".slots", ".slots.2"])
    func theJournalOfABatch(ending: String) throws {
        let stores = try sandbox.makeFleet(2)
        let call = ["rotate"] + stores + ["--key-file", "key", "--new-key-file", "new", "--journal", "s01\(ending)"]
        for more in [[], ["--dry-run"]] {
            try expectRefused(call + more)
            for store in stores { #expect(try sandbox.keys(opening: store) == ["key"]) }
        }
    }

    @Test(arguments: ["db.slots", "db.slots.2", "./db-wal"])
    func theTextForPrometheus(name: String) throws {
        try sandbox.makeStore()
        try expectRefused(["status", "--stores", "db", "--key-file", "key", "--prometheus", name])
        #expect(try sandbox.keys(opening: "db", of: ["key"]) == ["key"])
    }

    /// Of any store, not only of those that the shell has open.
    @Test(arguments: ["db.slots", "db.slots.2", "other-journal", "./other-wal", "../work/other-shm", "other.slots"])
    func whatTheShellWrites(name: String) throws {
        try sandbox.makeStore()
        try FileManager.default.copyItem(atPath: sandbox.path("db"), toPath: sandbox.path("other"))
        for command in [".output", ".once"] {
            try expectRefused(["shell", "db", "--key-file", "key"], input: "\(command) \(name)\nSELECT 1;\n")
        }
        for store in ["db", "other"] { #expect(try sandbox.keys(opening: store, of: ["key"]) == ["key"]) }
    }

    @Test(arguments: ["other-wal", "other-journal", "other-shm", "other.slots", "other.slots.2"])
    func aCopyThatFollows(name: String) throws {
        try sandbox.makeStore(journalMode: "wal")
        try FileManager.default.copyItem(atPath: sandbox.path("db"), toPath: sandbox.path("other"))
        try sandbox.succeed("replicate", "db", "--to", "repo", "--key-file", "key", "--once")
        // Nor does what the follower keeps stay, such as ".other-wal.sealdb-follow".
        try expectRefused(["follow", "repo", name, "--once"])
        try sandbox.succeed("follow", "repo", "copy", "--once")
        #expect(try sandbox.names().contains(".copy.sealdb-follow"))
        #expect(try sandbox.keys(opening: "other", of: ["key"]) == ["key"])
    }

    /// The log of the very store that the repository is of.
    @Test func aCopyThatFollowsUnderTheNameOfItsLog() throws {
        try sandbox.makeStore(journalMode: "wal")
        try sandbox.succeed("replicate", "db", "--to", "repo", "--key-file", "key", "--once")
        let hasLog = sandbox.exists("db-wal")
        try expectRefused(["follow", "repo", "db-wal", "--once"])
        #expect(sandbox.exists("db-wal") == hasLog && !sandbox.exists(".db-wal.sealdb-follow"))
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }
}
