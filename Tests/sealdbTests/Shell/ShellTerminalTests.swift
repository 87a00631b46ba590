import Foundation
import Testing

/// The shell with somebody at it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ShellTerminalTests {
    private func store() throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        return sandbox
    }

    private func shell(
        _ sandbox: Sandbox,
        _ options: String...,
        environment: [String: String?] = [:]
    ) throws -> Terminal {
        let own: [String: String?] = [
            "TERM": "xterm", "HOME": sandbox.directory, "XDG_STATE_HOME": nil, "SEALDB_HISTORY": nil,
            "SWIFT_BACKTRACE": "enable=no",
        ]
        let terminal = try Terminal(
            [Tool.sealdb, "shell", "db", "--key-file", "key"] + options,
            directory: sandbox.directory,
            environment: own.merging(environment) { $1 }
        )
        try awaitPrompt(terminal, hasEditor: environment["LD_LIBRARY_PATH"] == nil)
        return terminal
    }

    /// The editor shows its prompt before it takes over the terminal.
    private func awaitPrompt(_ terminal: Terminal, _ prompt: String = "sealdb> ", hasEditor: Bool = true) throws {
        try terminal.expect(prompt)
        while hasEditor && terminal.isCooked { try #require(terminal.isRunning) }
    }

    /// Libraries that cannot be loaded stand in the way of the right ones.
    private func withoutEditor(_ sandbox: Sandbox) throws -> [String: String?] {
        for name in ["libedit.so.2", "libedit.so.0"] { try sandbox.write(name, "") }
        return ["LD_LIBRARY_PATH": sandbox.directory]
    }

    @Test func statementsAreRunAndKept() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox)
        terminal.type("SELECT id\nFROM people WHERE id = 43;\n")
        try terminal.expect("\r\n43\r\n")
        try awaitPrompt(terminal)
        terminal.type("SELECT 'a secret';\n")
        try terminal.expect("a secret\r\n")
        try awaitPrompt(terminal)
        terminal.type("SELECT nonsense;\n")
        try terminal.expect("no such column: nonsense")
        try awaitPrompt(terminal)
        terminal.type("\u{4}")
        #expect(terminal.wait() == 0, "\(terminal.transcript)")
        #expect(
            try sandbox.contents(".local/state/sealdb/history") == Data("SELECT id FROM people WHERE id = 43;\n".utf8)
        )
        #expect(try sandbox.mode(".local/state/sealdb/history") == 0o600)
        #expect(try sandbox.mode(".local/state/sealdb") == 0o700)

        // The arrow key brings it back in the next shell.
        let next = try shell(sandbox)
        next.type("\u{1b}[A\n")
        try next.expect("\r\n43\r\n")
        try awaitPrompt(next)
        next.type(".quit\n")
        #expect(next.wait() == 0)
    }

    @Test func tabCompletesNames() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox)
        terminal.type("SELECT count(*) AS n FROM peo\t;\n")
        try terminal.expect("\r\n50\r\n")
        try awaitPrompt(terminal)
        terminal.type(".ta\t\n")
        try terminal.expect("\r\npeople\r\n")
        terminal.send(SIGKILL)
        _ = terminal.wait()
    }

    @Test(arguments: [true, false])
    func interruptsEndTheStatementAndNotTheShell(hasEditor: Bool) throws {
        let sandbox = try store()
        let terminal = try shell(sandbox, environment: hasEditor ? [:] : withoutEditor(sandbox))
        terminal.type("SELECT nothing\u{3}")
        try terminal.expect("^C")
        try awaitPrompt(terminal, hasEditor: hasEditor)
        terminal.type(
            "INSERT INTO people(name) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c;\n"
        )
        // Before it runs, the terminal would drop the line.
        while !sandbox.exists("db-journal") { try #require(terminal.isRunning) }
        terminal.type("\u{3}")
        try terminal.expect("interrupted")
        try awaitPrompt(terminal, hasEditor: hasEditor)
        terminal.type("SELECT count(*) + 1000 FROM people;\n")
        try terminal.expect("1050")
        try awaitPrompt(terminal, hasEditor: hasEditor)
        terminal.type("\u{4}")
        #expect(terminal.wait() == 0)
    }

    @Test func anOpenTransactionIsNotLeftByMistake() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox)
        terminal.type("BEGIN; DELETE FROM people;\n")
        try awaitPrompt(terminal, "sealdb*> ")
        terminal.type("\u{4}")
        try terminal.expect("A transaction is open.")
        try awaitPrompt(terminal, "sealdb*> ")
        terminal.type(".quit\n")
        #expect(terminal.wait() == 65)
        #expect(terminal.transcript.contains("It was rolled back"))
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test func withoutAnEditor() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox, environment: withoutEditor(sandbox))
        terminal.type("SELECT 40 + 2 AS n;\n")
        try terminal.expect("\r\n42\r\n")
        try awaitPrompt(terminal, hasEditor: false)
        terminal.type("\u{4}")
        #expect(terminal.wait() == 0)
    }

    @Test func historyIsLeftOut() throws {
        let sandbox = try store()
        for (options, environment) in [(["--no-history"], [:]), ([], ["SEALDB_HISTORY": ""])]
            as [([String], [String: String?])]
        {
            let terminal =
                options.isEmpty
                ? try shell(sandbox, environment: environment)
                : try shell(sandbox, options[0], environment: environment)
            terminal.type("SELECT 1;\n.quit\n")
            #expect(terminal.wait() == 0)
        }
        #expect(!sandbox.exists(".local"))
    }

    @Test func aHistoryThatCannotBeKeptIsTold() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox, environment: ["SEALDB_HISTORY": "key/history"])
        terminal.type("SELECT 1;\nSELECT 2;\n.quit\n")
        #expect(terminal.wait() == 0)
        #expect(terminal.transcript.ranges(of: "The history is not kept in key/history").count == 1)
    }

    @Test func aHistoryThatOthersMayReadIsNotUsed() throws {
        let sandbox = try store()
        try sandbox.write("h", "SELECT 77;\n", mode: 0o644)
        let terminal = try shell(sandbox, environment: ["SEALDB_HISTORY": "h"])
        terminal.type("\u{1b}[A\nSELECT 1;\n.quit\n")
        #expect(terminal.wait() == 0)
        #expect(terminal.transcript.contains("is not used"))
        #expect(try sandbox.contents("h") == Data("SELECT 77;\n".utf8))
    }
}
