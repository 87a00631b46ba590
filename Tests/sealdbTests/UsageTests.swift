import SealedDB
import Testing

@Suite(.hangLimit)
struct UsageTests {
    static let commands = [
        "keygen", "keyring", "create", "encrypt", "import", "query", "exec", "shell", "tables", "schema", "dump",
        "diff", "info",
        "verify", "rotate", "recover", "doctor", "status", "config", "export",
    ]

    @Test func version() throws {
        let sandbox = try Sandbox()
        let lines = try sandbox.succeed("--version").lines
        let engine = EngineInfo.current()
        #expect(lines.first == "sealdb \(EngineInfo.version)")
        #expect(lines.dropFirst().first == "SQLite \(engine.sqliteVersion)")
        #expect(lines.last == "SQLCipher \(engine.cipherVersion ?? "none (plain build)")")
    }

    @Test func helpListsTheCommandsAndExitCodes() throws {
        let sandbox = try Sandbox()
        let help = try sandbox.succeed("--help").output
        for command in UsageTests.commands { #expect(help.contains("  \(command) ")) }
        for code in [64, 65, 66, 69, 70, 73, 74, 75, 77, 78] { #expect(help.contains("\(code)")) }
        #expect(try sandbox.succeed().output == help)
    }

    @Test(arguments: commands)
    func helpShowsAnExample(command: String) throws {
        let sandbox = try Sandbox()
        #expect(try sandbox.succeed(command, "--help").output.contains("  sealdb \(command)"))
    }

    @Test(arguments: [
        ("qeury", "Did you mean 'query'?"), ("verfy", "Did you mean 'verify'?"), ("rotates", "Did you mean 'rotate'?"),
        ("frobnicate", "'sealdb --help' lists them."), ("que\u{301}ry", "Did you mean 'query'?"),
    ])
    func commandsThatDoNotExist(name: String, advice: String) throws {
        let sandbox = try Sandbox()
        for arguments in [[name, "db"], ["help", name]] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status == 64 && outcome.output.isEmpty)
            #expect(outcome.error.contains("There is no command '\(name)'. \(advice)"), "\(outcome.error)")
        }
    }

    @Test(arguments: [
        ["nonsense"], ["query"], ["query", "db"], ["rotate"], ["keygen", "a", "b"], ["query", "--no-such-option"],
        ["query", "db", "SELECT 1", "--key-file", "k", "--format", "xml"],
        ["query", "db", "SELECT 1", "--key-file", "k", "--lock-wait", "-1"],
        ["verify", "db", "--key-file", "k", "--progress", "sometimes"],
        ["import", "db", "", "f.csv", "--key-file", "k"],
    ])
    func wrongArguments(_ arguments: [String]) throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == 64)
        #expect(outcome.output.isEmpty)
        #expect(outcome.error.hasPrefix("sealdb: "))
        #expect(outcome.error.contains("Usage: sealdb"))
    }

    /// Swift would repair such a value, and so name another file.
    @Test(arguments: ["SEALDB_KEY_FILE", "SEALDB_CONFIG", "TMPDIR", "CREDENTIALS_DIRECTORY"])
    func variablesThatAreNotText(name: String) throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run(["sh", "-c", "export \(name)=$(printf 'x\\377'); exec \(Tool.sealdb) doctor"])
        #expect(outcome.status == 64 && outcome.error.contains("variable \(name) is not UTF-8"), "\(outcome.error)")
    }
}
