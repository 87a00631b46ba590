import Foundation
import Testing

/// Stores that come from standard input, and go to standard output.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct PipeTests {
    private let sandbox: Sandbox
    /// The place of temporary files, to see what is left there.
    private let environment: [String: String?]

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
        let temporary = sandbox.path("tmp")
        try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
        environment = ["TMPDIR": temporary]
    }

    private func shell(_ script: String) throws -> Outcome {
        let tool = "sealdb() { '\(Tool.sealdb)' \"$@\"; }; set -o pipefail; "
        return try sandbox.run(["bash", "-c", tool + script], environment: environment)
    }

    private func leftovers() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: sandbox.path("tmp"))
    }

    @Test func aBackupGoesThroughAPipe() throws {
        let outcome = try shell(
            """
            sealdb backup db - --key-file key | sealdb restore - copy --key-file key \
            && sealdb diff db copy --key-file key && sealdb verify copy --key-file key --deep
            """
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output.hasPrefix("copy: restored "), "\(outcome.output)")
        #expect(try sandbox.mode("copy") == 0o600)
        #expect(try leftovers().isEmpty)
    }

    /// What comes behind a backup is not dropped without a word.
    @Test(arguments: ["printf x", "head -c 4096 /dev/zero", "head -c 12288 /dev/urandom", "cat db", "cat backup"])
    func somethingBehindABackup(_ command: String) throws {
        let outcome = try shell(
            "sealdb backup db backup --key-file key && (cat backup; \(command)) | sealdb restore - copy --key-file key"
        )
        #expect(outcome.status == 65, "\(outcome)")
        #expect(outcome.error.contains("standard input") && !sandbox.exists("copy"), "\(outcome)")
        #expect(try leftovers().isEmpty)
        #expect(try shell("cat backup | sealdb restore - copy --key-file key").status == 0)
    }

    /// It begins as a database in the clear does.
    @Test func aStoreWithAHeaderInTheClear() throws {
        let settings = "--plaintext-header-size 32 --salt \(String(repeating: "0b", count: 16))"
        let outcome = try shell(
            """
            sealdb create clear --key-file key \(settings) \
            && sealdb exec clear 'CREATE TABLE t (a); INSERT INTO t VALUES (7)' --key-file key \(settings) \
            && sealdb backup clear - --key-file key \(settings) | sealdb restore - copy --key-file key \(settings) \
            && sealdb query copy 'SELECT a FROM t' --key-file key \(settings)
            """
        )
        #expect(outcome.status == 0 && outcome.lines.last == "7", "\(outcome.output)\(outcome.error)")
        #expect(try sandbox.contents("copy").starts(with: Data("SQLite format 3\0".utf8)))
    }

    @Test func aBackupUnderAnotherKey() throws {
        try sandbox.makeKey("other")
        #expect(try shell("sealdb backup db - --key-file key --new-key-file other > copy").status == 0)
        #expect(try sandbox.keys(opening: "copy", of: ["key", "other"]) == ["other"])
    }

    /// Whoever reads the pipe gets a whole backup, or none.
    @Test func aBackupThatFailsWritesNothing() throws {
        try sandbox.overwrite("db", at: 5000, with: [1, 2, 3, 4])
        let outcome = try sandbox.run(
            [Tool.sealdb, "backup", "db", "-", "--key-file", "key"],
            environment: environment
        )
        #expect(outcome.status == 65 && outcome.outputData.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(try leftovers().isEmpty)
    }

    @Test func aPipeThatIsCutOffIsNotRestored() throws {
        let outcome = try shell(
            "sealdb backup db - --key-file key | head -c 6000 | sealdb restore - copy --key-file key"
        )
        #expect(outcome.status != 0)
        // The file in which it lies meanwhile is nobody's concern.
        #expect(outcome.error.contains("standard input") && !outcome.error.contains("sealdb-pipe"), "\(outcome.error)")
        #expect(!sandbox.exists("copy"))
        #expect(try leftovers().isEmpty)
        let full = try shell("sealdb backup db - --key-file key > /dev/full")
        #expect(full.status == 74, "\(full.error)")
        #expect(try leftovers().isEmpty)
    }

    /// What a process leaves that is killed, the next one removes; not what may belong to one that runs.
    @Test func whatAKilledProcessLeaves() throws {
        let names = [
            "sealdb-pipe-aaaaaaaaaa", "sealdb-pipe-bbbbbbbbbb", "sealdb-pipe-cccccccccc", "sealdb-pipe-else",
            "sealdb-pipe-production",
        ]
        for name in names {
            let path = sandbox.path("tmp/" + name)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            try sandbox.write("tmp/\(name)/store", "encrypted")
            // This one is a user's own.
            if name == names[4] { try sandbox.write("tmp/\(name)/plan", "of the user") }
            guard name != names[1] else { continue }
            let date = Date(timeIntervalSinceNow: -3600)
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
        }
        let held = open(sandbox.path("tmp/" + names[2]), O_RDONLY | O_DIRECTORY)
        defer { close(held) }
        #expect(held >= 0 && flock(held, LOCK_EX) == 0)
        #expect(try shell("sealdb backup db - --key-file key > copy").status == 0)
        #expect(try leftovers().sorted() == Array(names[1...]))
    }

    @Test func plaintextGoesToStandardOutputAndNowhereElse() throws {
        let outcome = try shell("sealdb decrypt db - --key-file key --allow-plaintext > plain")
        #expect(outcome.status == 0, "\(outcome.error)")
        let sql = "SELECT count(*), sum(id), sum(bio LIKE 'known plaintext %') FROM people; PRAGMA integrity_check;"
        let stock = try sandbox.run(["sqlite3", "-separator", ",", "plain", sql])
        #expect(stock.output == "50,1275,50\nok\n")
        #expect(try leftovers().isEmpty)
        let refused = try shell("sealdb decrypt db - --key-file key")
        #expect(refused.status == 64 && refused.outputData.isEmpty)
    }

    @Test func damagedStoresAreNotDecrypted() throws {
        try sandbox.overwrite("db", at: 5000, with: [1, 2, 3, 4])
        let outcome = try shell("sealdb decrypt db - --key-file key --allow-plaintext")
        #expect(outcome.status == 65 && outcome.outputData.isEmpty, "\(outcome.status)")
    }

    @Test func usage() throws {
        try sandbox.fail(64, "restore", "-", "copy", "--key-fd", "0")
        // A file of that name is meant by its path.
        #expect(try shell("sealdb backup db ./- --key-file key").status == 0)
        #expect(sandbox.exists("-"))
    }

    @Test(arguments: [["backup", "db", "-"], ["decrypt", "db", "-", "--allow-plaintext"]])
    func notToATerminal(_ arguments: [String]) throws {
        let terminal = try Terminal(
            [Tool.sealdb] + arguments + ["--key-file", "key"],
            directory: sandbox.directory,
            environment: environment
        )
        #expect(terminal.wait() == 64)
        #expect(terminal.transcript.contains("is a terminal"))
    }

    /// A reader that takes the first byte and no more: the backup waits for it, until a signal ends it.
    @Test(arguments: ["TERM", "INT", "HUP"])
    func aSignalEndsABackupThatNobodyReads(signal: String) throws {
        let sql = "INSERT INTO people (bio) SELECT hex(randomblob(3000)) FROM people"
        try sandbox.succeed("exec", "db", sql, "--key-file", "key")
        let outcome = try shell(
            """
            mkfifo pipe started ended
            ( exec 3<pipe; head -c 1 <&3 >first; echo >started; read -r <ended ) &
            # A shell has its children in the background ignore SIGINT.
            ( trap - INT; exec '\(Tool.sealdb)' backup db - --key-file key >pipe ) & backup=$!
            read -r <started
            kill -\(signal) $backup
            wait $backup
            echo "$?" >status
            echo >ended
            wait
            cat status
            """
        )
        let number = ["TERM": 143, "INT": 130, "HUP": 129][signal]!
        #expect(outcome.output == "\(number)\n", "\(outcome.error)")
        #expect(try leftovers().isEmpty)
        #expect(try sandbox.contents("first").count == 1)
    }

    /// Nothing is made before the key is there.
    @Test func aKeyThatDoesNotComeLeavesNothing() throws {
        let outcome = try shell("sealdb backup db - --key-command false > out; echo $?; cat < out")
        #expect(outcome.output != "0\n")
        #expect(try leftovers().isEmpty)
    }
}
