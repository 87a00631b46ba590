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
        let lines = "-- History of sealdb shell\nSELECT id FROM people WHERE id = 43;\n"
        #expect(try sandbox.contents(".local/state/sealdb/history") == Data(lines.utf8))
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
        try sandbox.succeed("exec", "db", "CREATE TABLE pragma_table_info (name)", "--key-file", "key")
        let terminal = try shell(sandbox)
        terminal.type("SELECT count(*) AS n FROM peo\t")
        try terminal.expect("ple")
        terminal.type(";\n")
        try terminal.expect("\r\n50\r\n")
        try awaitPrompt(terminal)
        // Of columns, too.
        terminal.type("SELECT bi\t")
        try terminal.expect("o")
        terminal.type("IS NULL AS n FROM people WHERE id = 50;\n")
        try terminal.expect("\r\n0\r\n")
        try awaitPrompt(terminal)
        terminal.type(".ta\t")
        try terminal.expect("bles")
        terminal.type("\n")
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

    @Test func interruptsEndAFile() throws {
        let sandbox = try store()
        let line = "INSERT INTO people(name) VALUES ('x');\n"
        try sandbox.write("many.sql", "BEGIN;\n" + String(repeating: line, count: 300_000) + "COMMIT;\n")
        let terminal = try shell(sandbox)
        terminal.type(".read many.sql\n")
        while !sandbox.exists("db-journal") { try #require(terminal.isRunning) }
        terminal.type("\u{3}")
        try terminal.expect("nterrupted")
        try terminal.expect("sealdb")
        terminal.type("\nSELECT count(*) < 300000 AS isEnded FROM people;\n")
        try terminal.expect("      1\r\n")
        terminal.send(SIGKILL)
        _ = terminal.wait()
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    /// SQLite stores a statement that is closed after its first row.
    @Test func anInterruptNeverHidesWhatIsStored() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox)
        terminal.type(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000) INSERT INTO people(name) SELECT x FROM c RETURNING id;\n"
        )
        while !sandbox.exists("db-journal") { try #require(terminal.isRunning) }
        terminal.type("\u{3}")
        try awaitPrompt(terminal)
        terminal.type(".quit\n")
        #expect(terminal.wait() == 0)
        let isWhole = try sandbox.census(keyFile: "key").output == Sandbox.wholeStore
        #expect(terminal.transcript.contains("nterrupted") == isWhole, "\(terminal.transcript.suffix(300))")
    }

    @Test func quitEndsAFileWhateverIsOpen() throws {
        let sandbox = try store()
        try sandbox.write("q.sql", "BEGIN;\nDELETE FROM people;\n.quit\nCOMMIT;\n")
        let terminal = try shell(sandbox)
        terminal.type(".read q.sql\n")
        try awaitPrompt(terminal, "sealdb*> ")
        terminal.type("ROLLBACK;\n")
        try awaitPrompt(terminal)
        terminal.type(".quit\n")
        #expect(terminal.wait() == 0)
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test func theWarningIsNotForLater() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox)
        terminal.type("BEGIN;\n")
        try awaitPrompt(terminal, "sealdb*> ")
        for _ in 0..<2 {
            terminal.type(".quit\n")
            try terminal.expect("A transaction is open.")
            try awaitPrompt(terminal, "sealdb*> ")
            terminal.type("SELECT 1;\n")
            try awaitPrompt(terminal, "sealdb*> ")
        }
        terminal.type("COMMIT;\n")
        try awaitPrompt(terminal)
        terminal.type("\u{4}")
        #expect(terminal.wait() == 0)
    }

    /// A value could make the terminal answer, and the answer would be typed.
    @Test(arguments: ["csv", "tsv", "json", "jsonl", "insert t", "table", "line", "markdown"])
    func valuesDoNotControlTheTerminal(mode: String) throws {
        let sandbox = try store()
        let terminal = try shell(sandbox, environment: withoutEditor(sandbox))
        terminal.type(
            ".mode \(mode)\nSELECT 'a' || char(27) || '[6n' || char(8238) || char(155) || 'z' AS v, 'endmark' AS e;\n"
        )
        try terminal.expect("endmark' AS e;")
        try terminal.expect("endmark")
        terminal.send(SIGKILL)
        _ = terminal.wait()
        for scalar in ["\u{1b}", "\u{9b}", "\u{202e}"] as [Unicode.Scalar] {
            #expect(!terminal.transcript.unicodeScalars.contains(scalar), "\(mode)")
        }
    }

    @Test func aTabInAPastedTextIsKept() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox)
        terminal.type("UPDATE people SET name = 'a\tb', bio = 'peo\t' WHERE id = 1;\n")
        try awaitPrompt(terminal)
        terminal.type("SELECT hex(name) || hex(bio) AS h FROM people WHERE id = 1;\n")
        try terminal.expect("61096270656F09")
        terminal.send(SIGKILL)
        _ = terminal.wait()
    }

    @Test(arguments: [SIGTERM, SIGHUP])
    func signalsEndTheShellAndNothingElse(signal: Int32) throws {
        let sandbox = try store()
        let terminal = try shell(sandbox)
        terminal.type("BEGIN; DELETE FROM people;\n")
        try awaitPrompt(terminal, "sealdb*> ")
        terminal.send(signal)
        #expect(terminal.wait() != 0)
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test func aLineThatTheTerminalCutsIsRefused() throws {
        let sandbox = try store()
        let terminal = try shell(sandbox, environment: withoutEditor(sandbox))
        terminal.type("SELECT 'x';" + String(repeating: " ", count: 5000) + "\n")
        try terminal.expect("The terminal cuts lines")
        terminal.type(".quit\n")
        #expect(terminal.wait() == 0)
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
        // But for its mode it would be one.
        let lines = "-- History of sealdb shell\nSELECT 77;\n"
        try sandbox.write("h", lines, mode: 0o644)
        let terminal = try shell(sandbox, environment: ["SEALDB_HISTORY": "h"])
        terminal.type("\u{1b}[A\nSELECT 1;\n.quit\n")
        #expect(terminal.wait() == 0)
        #expect(terminal.transcript.contains("is not used: others may read it"))
        #expect(try sandbox.contents("h") == Data(lines.utf8))
    }
}
