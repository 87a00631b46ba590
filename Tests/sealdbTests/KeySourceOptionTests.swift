import Foundation
import Testing

/// The sources of keys beside files and prompts, and the environment.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct KeySourceOptionTests {
    private static let answer = ["query", "db", "SELECT 40 + 2", "--format", "csv"]

    private func expectAnswer(
        _ sandbox: Sandbox,
        _ arguments: String...,
        environment: [String: String?] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let outcome = try sandbox.run(
            [Tool.sealdb] + KeySourceOptionTests.answer + arguments,
            environment: environment
        )
        #expect(outcome.status == 0 && outcome.lines.last == "42", "\(outcome.error)", sourceLocation: sourceLocation)
    }

    // MARK: Commands

    @Test func keysFromStandardInputAndDescriptors() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let key = String(decoding: try sandbox.contents("key"), as: UTF8.self)
        for path in ["-", "/dev/stdin", "/dev/fd/0"] {
            let outcome = try sandbox.succeed(
                "query",
                "db",
                "SELECT 1 AS a",
                "--key-file",
                path,
                "--format",
                "csv",
                input: key
            )
            #expect(outcome.output == "a\n1\n")
        }
        try sandbox.fail(64, "query", "db", "-", "--key-file", "-", input: key)
        try sandbox.fail(64, "exec", "db", "--file", "-", "--key-fd", "0", input: key)
        // Not the number of a descriptor, and no file.
        try sandbox.fail(66, "query", "db", "SELECT 1", "--key-file", "/dev/fd/+0", input: key)
        try sandbox.fail(64, "query", "db", "SELECT :a", "--text-file", "a=-", "--key-file", "/dev/fd/0", input: key)
        try sandbox.fail(64, "query", "db", "SELECT 1", "--key-file", "/dev/fd/1", input: key)
        let made = try sandbox.succeed("keygen", "-")
        #expect(made.output.utf8.count == 65 && made.output.hasSuffix("\n") && !sandbox.exists("-"))
        try sandbox.succeed("create", "other", "--key-file", "-", input: made.output)
        try sandbox.succeed("create", "third", "--passphrase-file", "/dev/fd/0", input: "open sesame")
        try sandbox.succeed("query", "third", "SELECT 1", "--passphrase-file", "-", input: "open sesame\n")
        #expect(try sandbox.sealdb("keygen", "-").output != made.output)
        let full = try sandbox.run(["sh", "-c", "\(Tool.sealdb) keygen - > /dev/full"])
        #expect(full.status == 74, "\(full.error)")
    }

    @Test func keyAndPassphraseCommands() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.write("pass phrase", "correct horse\n")
        let key = sandbox.path("key")
        try sandbox.succeed("create", "db", "--key-command", "/bin/cat \(key)")
        try expectAnswer(sandbox, "--key-file", "key")
        let words = "/bin/cat '\(sandbox.path("pass phrase"))'"
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-passphrase-command", words)
        try expectAnswer(sandbox, "--passphrase-command", words)
        try expectAnswer(sandbox, "--passphrase-file", "pass phrase")
        try sandbox.succeed("rotate", "db", "--passphrase-command", words, "--new-key-command", "/bin/cat \(key)")
        try expectAnswer(sandbox, "--key-file", "key")
    }

    @Test func failingCommands() throws {
        let sandbox = try Sandbox()
        let failed = try sandbox.run(
            [Tool.sealdb, "create", "db", "--passphrase-command", "/bin/sh -c 'echo hint >&2; echo hush; exit 4'"]
        )
        #expect(failed.status == 69)
        // What the command says to people passes through.
        #expect(failed.error.hasPrefix("hint\nsealdb: The key command /bin/sh ended with exit status 4."))
        #expect(!failed.error.contains("hush") && failed.output.isEmpty)
        try sandbox.fail(66, "create", "db", "--key-command", "/no/such/program")
        try sandbox.fail(65, "create", "db", "--key-command", "/bin/echo short")
        try sandbox.fail(69, "create", "db", "--key-command", "/bin/cat /dev/zero")
        #expect(try sandbox.names() == [])
    }

    /// Who ignores the ends of children hands that on to what it starts.
    @Test func startedWhereChildrenAreIgnored() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let arguments = ["create", "db", "--key-command", "/bin/cat \(sandbox.path("key"))"]
        let outcome = try sandbox.run(["env", "--ignore-signal=CHLD", Tool.sealdb] + arguments)
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    @Test func commandsGetNoEnvironment() throws {
        let sandbox = try Sandbox()
        let command = "/bin/sh -c 'env > seen; echo correct horse'"
        let outcome = try sandbox.run(
            [Tool.sealdb, "create", "db", "--passphrase-command", command],
            environment: ["VAULT_TOKEN": "hush", "HOME": "/home/me", "PATH": "/evil", "LD_LIBRARY_PATH": "/evil"]
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        let seen = String(decoding: try sandbox.contents("seen"), as: UTF8.self)
        #expect(seen.contains("HOME=/home/me\n"))
        #expect(!seen.contains("hush") && !seen.contains("evil"), "\(seen)")
    }

    // MARK: Descriptors

    @Test func keyDescriptors() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.makeKey("new")
        let text = """
            "$0" create db --key-fd 3 3<key && "$0" rotate db --key-fd 3 --new-key-fd 4 3<key 4<new \
            && "$0" verify db --key-fd 0 <new
            """
        let outcome = try sandbox.run(["sh", "-c", text, Tool.sealdb])
        #expect(outcome.status == 0 && outcome.output.contains("sound"), "\(outcome.error)")
        try sandbox.fail(66, "verify", "db", "--key-fd", "77")
    }

    // MARK: Credentials

    @Test func credentials() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.write("words", "correct horse\n", mode: 0o400)
        let environment = ["CREDENTIALS_DIRECTORY": sandbox.directory]
        func run(_ arguments: String...) throws -> Outcome {
            try sandbox.run([Tool.sealdb] + arguments, environment: environment)
        }
        #expect(try run("create", "db", "--key-credential", "key").status == 0)
        try expectAnswer(sandbox, "--key-file", "key")
        #expect(
            try run("rotate", "db", "--key-credential", "key", "--new-passphrase-credential", "words").status == 0
        )
        try expectAnswer(sandbox, "--passphrase-credential", "words", environment: environment)
        #expect(try run("rotate", "db", "--passphrase-file", "words", "--new-key-credential", "key").status == 0)
        #expect(try run("verify", "db", "--key-credential", "absent").status == 66)
        for name in ["../key", "", ".."] { #expect(try run("verify", "db", "--key-credential", name).status == 65) }
        let none = try sandbox.run(
            [Tool.sealdb, "verify", "db", "--key-credential", "key"],
            environment: ["CREDENTIALS_DIRECTORY": nil]
        )
        #expect(none.status == 66 && none.error.contains("CREDENTIALS_DIRECTORY is not set"))
    }

    // MARK: Environment

    @Test func filesNamedByTheEnvironment() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("other")
        try expectAnswer(sandbox, environment: ["SEALDB_KEY_FILE": "key"])
        try expectAnswer(sandbox, environment: ["SEALDB_KEY_FILE": "key", "SEALDB_KEY_RING": ""])
        // Options count more.
        try expectAnswer(sandbox, "--key-file", "key", environment: ["SEALDB_KEY_FILE": "other"])
        let wrong = try sandbox.run([Tool.sealdb, "verify", "db"], environment: ["SEALDB_KEY_FILE": "other"])
        #expect(wrong.status == 77)
        let two = try sandbox.run(
            [Tool.sealdb, "verify", "db"],
            environment: ["SEALDB_KEY_FILE": "key", "SEALDB_PASSPHRASE_FILE": "words"]
        )
        #expect(two.status == 64)
        #expect(two.error.contains("SEALDB_KEY_FILE and SEALDB_PASSPHRASE_FILE exclude each other"))
        // It never gives a new key.
        let none = try sandbox.run(
            [Tool.sealdb, "rotate", "db", "--key-file", "key"],
            environment: ["SEALDB_KEY_FILE": "other"]
        )
        #expect(none.status == 64 && none.error.contains("A new key is needed"))
        try sandbox.write("words", "correct horse\n")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-passphrase-file", "words")
        try expectAnswer(sandbox, environment: ["SEALDB_PASSPHRASE_FILE": "words"])
        // The secret itself is not taken for a name that happens to exist, nor shown.
        let secret = try sandbox.run(
            [Tool.sealdb, "verify", "db"],
            environment: ["SEALDB_PASSPHRASE": "correct horse"]
        )
        #expect(secret.status == 64 && !secret.error.contains("horse"))
    }

    // MARK: Several processes

    /// The commands that change a store never make one of an empty file, whoever comes first.
    @Test func processesThatFindAnEmptyFileAtOnce() throws {
        let sandbox = try Sandbox()
        try sandbox.write("words", "correct horse\n")
        try sandbox.write("db", "")
        let text = """
            for i in 1 2 3 4; do
                "$0" exec db "CREATE TABLE t$i (a)" --passphrase-file words --lock-wait 60 &
                all="$all $!"
            done
            for one in $all; do wait $one; [ $? -eq 65 ] || exit 1; done
            """
        let outcome = try sandbox.run(["sh", "-c", text, Tool.sealdb])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try sandbox.names() == ["db", "words"])
        #expect(try sandbox.contents("db").isEmpty)
    }
}
