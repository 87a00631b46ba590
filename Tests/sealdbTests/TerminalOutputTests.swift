import Foundation
import SealedDB
import Testing

/// What commands show on a terminal, and what they ask there.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct TerminalOutputTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
    }

    private func terminal(_ arguments: [String]) throws -> Terminal {
        try Terminal(
            [Tool.sealdb] + arguments,
            directory: sandbox.directory,
            environment: ["TERM": "xterm", "NO_COLOR": "1"]
        )
    }

    @Test func noKeyIsShown() throws {
        let terminal = try terminal(["keygen", "-"])
        #expect(terminal.wait() == 64)
        #expect(terminal.transcript.contains("would show the key"), "\(terminal.transcript)")
        #expect(terminal.transcript.firstMatch(of: /[0-9a-f]{64}/) == nil)
    }

    /// To a pipe goes what the store holds.
    @Test func namesThatWouldControlTheTerminal() throws {
        try sandbox.makeStore()
        let name = "a\u{1b}[7mb"
        try sandbox.succeed("exec", "db", "CREATE TABLE \"\(name)\" (\n x\n)", "--key-file", "key")
        let schema = ["schema", "db", "--key-file", "key"]
        let terminal = try terminal(schema)
        #expect(terminal.wait() == 0)
        #expect(terminal.transcript.contains("[7mb") && !terminal.transcript.contains(name), "\(terminal.transcript)")
        #expect(try sandbox.run([Tool.sealdb] + schema).output.contains(name))
    }

    /// Another passphrase would not help.
    @Test func anErrorThatIsNotThePassphrases() throws {
        try sandbox.makeKey("new")
        try sandbox.succeed("create", "db", "--passphrase-fd", "0", input: "correct horse\n")
        let key = try Key.passphrase("correct horse")
        let database = Database(path: sandbox.path("db"), configuration: Configuration(key: key))
        try database.openVerified()
        defer { database.close() }
        try database.execute(script: "BEGIN EXCLUSIVE")
        let terminal = try terminal(["rotate", "db", "--prompt", "--new-key-file", "new", "--lock-wait", "0"])
        try terminal.expect(": ")
        terminal.type("correct horse\n")
        #expect(terminal.wait() == 75, "\(terminal.transcript)")
        #expect(!terminal.transcript.contains("Try again"), "\(terminal.transcript)")
    }

    @Test(arguments: [("yes\n", true), ("no\n", false)])
    func removingAKeyThatStoresMayHave(answer: String, isRemoved: Bool) throws {
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        let terminal = try terminal(["keyring", "remove", "ring", "a", "--keep", "0"])
        try terminal.expect("[yes/no]")
        terminal.type(answer)
        #expect(terminal.wait() == (isRemoved ? 0 : 64), "\(terminal.transcript)")
        #expect(try sandbox.succeed("keyring", "list", "ring").lines == (isRemoved ? [] : ["a"]) + ["b (active)"])
    }

    // MARK: Progress

    /// A store of 20 MB, whose rotation takes half a second by the rate.
    private func rotation() throws -> [String] {
        try sandbox.makeStore()
        try sandbox.makeKey("new")
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        let sql = "\(rows) INSERT INTO people (bio) SELECT zeroblob(4000) FROM n"
        try FileManager.default.copyItem(atPath: sandbox.path("db"), toPath: sandbox.path("small"))
        try sandbox.succeed("exec", "db", sql, "--key-file", "key")
        return ["rotate", "db", "small", "--key-file", "key", "--new-key-file", "new", "--max-rate", "40"]
    }

    @Test func linesAreDrawnAgain() throws {
        let terminal = try terminal(rotation())
        #expect(terminal.wait() == 0)
        let count = terminal.transcript.ranges(of: "0 of 2 stores").count
        #expect(count > 1, "\(terminal.transcript)")
    }

    /// A line that wraps could not be erased.
    @Test func linesFitTheTerminal() throws {
        let words = try rotation().joined(separator: " ")
        let terminal = try Terminal(
            ["/bin/sh", "-c", "stty cols 30; exec '\(Tool.sealdb)' \(words)"],
            directory: sandbox.directory,
            environment: ["TERM": "xterm", "NO_COLOR": "1"]
        )
        #expect(terminal.wait() == 0)
        let lines = terminal.transcript.split(whereSeparator: \.isNewline).map { line in
            line.replacing(/\u{1b}\[[0-9;]*[A-Za-z]/, with: "").replacing("\r", with: "")
        }.filter { $0.hasPrefix("0 of 2 stores") }
        #expect(!lines.isEmpty && lines.allSatisfy { $0.count == 29 }, "\(lines)")
    }

    @Test func linesOfALogAreFew() throws {
        let arguments = try rotation()
        let start = ContinuousClock.now
        let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--progress", "always"])
        let seconds = Int((ContinuousClock.now - start) / .seconds(1))
        #expect(outcome.status == 0, "\(outcome.error)")
        for phase in ["copy", "verify"] {
            let count = outcome.error.split(separator: "\n").count { $0.hasPrefix("db ") && $0.contains(phase) }
            #expect((2...2 + seconds).contains(count), "\(phase), \(seconds): \(outcome.error)")
        }
    }
}
