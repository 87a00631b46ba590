import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct PromptTests {
    private func terminal(_ sandbox: Sandbox, _ arguments: String...) throws -> Terminal {
        try terminal(sandbox, arguments)
    }

    private func terminal(_ sandbox: Sandbox, _ arguments: [String]) throws -> Terminal {
        // Swift's own handler of SIGQUIT prints where the program is, and lets it go on.
        let environment = ["TERM": "xterm", "SWIFT_BACKTRACE": "enable=no"]
        return try Terminal([Tool.sealdb] + arguments, directory: sandbox.directory, environment: environment)
    }

    @Test func asksTwiceForANewPassphraseAndOnceForAnOldOne() throws {
        let sandbox = try Sandbox()
        let creating = try terminal(sandbox, "create", "db", "--prompt")
        try creating.expect("Passphrase for db: ")
        creating.type("correct horse\n")
        try creating.expect(": ")
        creating.type("correct horse\n")
        #expect(creating.wait() == 0, "\(creating.transcript)")
        // Nothing that was typed is shown.
        #expect(!creating.transcript.contains("horse"))

        let querying = try terminal(sandbox, "query", "db", "SELECT 40 + 2", "--prompt")
        try querying.expect("Passphrase of db: ")
        querying.type("correct horse\n")
        #expect(querying.wait() == 0)
        #expect(querying.transcript.contains("42"))
        try sandbox.succeed("query", "db", "SELECT 1", "--passphrase-fd", "0", input: "correct horse\n")
    }

    @Test func wrongPassphrase() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("create", "db", "--passphrase-fd", "0", input: "correct horse\n")
        for command in [["query", "db", "SELECT 40 + 2"], ["verify", "db"]] {
            let failing = try terminal(sandbox, command + ["--prompt"])
            for attempt in 1...3 {
                if attempt > 1 { try failing.expect("Try again") }
                try failing.expect("Passphrase of db: ")
                failing.type("battery staple\n")
            }
            #expect(failing.wait() == 77)
            #expect(!failing.transcript.contains("42") && !failing.transcript.contains("sound"))
            // It is asked for again.
            let succeeding = try terminal(sandbox, command + ["--prompt"])
            try succeeding.expect(": ")
            succeeding.type("battery staple\n")
            try succeeding.expect("Try again")
            try succeeding.expect("Passphrase of db: ")
            succeeding.type("correct horse\n")
            #expect(succeeding.wait() == 0)
            #expect(succeeding.transcript.contains("42") || succeeding.transcript.contains("sound"))
        }
    }

    @Test func newPassphrasesThatDiffer() throws {
        let sandbox = try Sandbox()
        let creating = try terminal(sandbox, "create", "db", "--prompt")
        try creating.expect(": ")
        creating.type("correct horse\n")
        try creating.expect(": ")
        creating.type("correct house\n")
        #expect(creating.wait() != 0)
        #expect(!sandbox.exists("db"))
    }

    @Test func rotatesFromOnePassphraseToAnother() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("create", "db", "--passphrase-fd", "0", input: "old words\n")
        let rotating = try terminal(sandbox, "rotate", "db", "--prompt", "--new-prompt")
        try rotating.expect("Passphrase of db: ")
        rotating.type("old words\n")
        try rotating.expect("New passphrase of db: ")
        rotating.type("new words\n")
        try rotating.expect(": ")
        rotating.type("new words\n")
        #expect(rotating.wait() == 0, "\(rotating.transcript)")
        try sandbox.succeed("query", "db", "SELECT 1", "--passphrase-fd", "0", input: "new words\n")
        try sandbox.fail(77, "query", "db", "SELECT 1", "--passphrase-fd", "0", input: "old words\n")
    }

    @Test func withoutATerminal() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run(["setsid", "-w", Tool.sealdb, "create", "db", "--prompt"], input: "words\n")
        #expect([66, 78].contains(outcome.status), "\(outcome.status) \(outcome.error)")
        #expect(!sandbox.exists("db"))
    }

    // MARK: Signals

    /// At once, without Return, and with a terminal that shows what is typed.
    @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM, SIGXCPU])
    func signalsEndAPrompt(_ signal: Int32) throws {
        let sandbox = try Sandbox()
        let creating = try terminal(sandbox, "create", "db", "--prompt")
        try creating.expect("Passphrase for db: ")
        #expect(!creating.isEchoing)
        creating.type("half a passph")
        creating.send(signal)
        #expect(creating.wait() == -signal, "\(creating.transcript)")
        #expect(creating.isEchoing)
        #expect(!creating.transcript.contains("passph"))
        #expect(try sandbox.names().isEmpty)
    }

    @Test(arguments: [("\u{3}", SIGINT), ("\u{1c}", SIGQUIT)])
    func keysEndAPrompt(_ key: String, _ signal: Int32) throws {
        let sandbox = try Sandbox()
        let creating = try terminal(sandbox, "create", "db", "--prompt")
        try creating.expect("Passphrase for db: ")
        creating.type("half\u{7f}" + key)
        #expect(creating.wait() == -signal, "\(creating.transcript)")
        #expect(creating.isEchoing)
        // At the second question too.
        let again = try terminal(sandbox, "create", "db", "--prompt")
        try again.expect(": ")
        again.type("words\n")
        try again.expect("again: ")
        again.type("wor" + key)
        #expect(again.wait() == -signal)
        #expect(again.isEchoing)
        #expect(try sandbox.names().isEmpty)
    }

    /// A signal that was ignored from the start stays so.
    @Test func aSignalThatIsIgnored() throws {
        let sandbox = try Sandbox()
        let creating = try Terminal(
            ["sh", "-c", "trap '' HUP; exec \(Tool.sealdb) create db --prompt"],
            directory: sandbox.directory,
            environment: ["TERM": "xterm"]
        )
        try creating.expect("Passphrase for db: ")
        creating.send(SIGHUP)
        creating.type("words\n")
        try creating.expect("again: ")
        creating.type("words\n")
        #expect(creating.wait() == 0, "\(creating.transcript)")
    }

    /// Ctrl-Z gives the terminal back as it was; the question comes again, for all that was typed before is forgotten.
    @Test func stoppedAndContinued() throws {
        let sandbox = try Sandbox()
        let shell = try Terminal(
            ["bash", "-mc", "\(Tool.sealdb) create db --prompt; stty -a; echo stopped; fg; echo status $?"],
            directory: sandbox.directory,
            environment: ["TERM": "xterm"]
        )
        try shell.expect("Passphrase for db: ")
        shell.type("forgotten\u{1a}")
        try shell.expect("stopped")
        #expect(shell.transcript.contains(" echo "))
        try shell.expect("Passphrase for db: ")
        #expect(!shell.isEchoing)
        shell.type("words\n")
        try shell.expect("again: ")
        shell.type("words\n")
        try shell.expect("status 0")
        #expect(shell.wait() == 0)
        #expect(shell.isEchoing)
        try sandbox.succeed("query", "db", "SELECT 1", "--passphrase-fd", "0", input: "words\n")
    }
}
