import Foundation
import Testing

@Suite(.hangLimit)
struct KeyOptionTests {
    /// All commands that take a key, without one.
    static let commands: [[String]] = [
        ["create", "db"], ["encrypt", "plain", "db"], ["import", "db", "t", "f.csv"], ["query", "db", "SELECT 1"],
        ["exec", "db", "SELECT 1"], ["verify", "db"], ["rotate", "db", "--new-key-file", "new"],
    ]

    @Test(arguments: commands)
    func noKey(_ arguments: [String]) throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == 64)
        for option in [
            "--key-file", "--key-credential", "--key-command", "--key-fd", "--key-ring", "--passphrase-file",
            "--passphrase-credential", "--passphrase-command", "--passphrase-fd", "--prompt",
        ] {
            #expect(outcome.error.contains(option))
        }
        #expect(try sandbox.names() == [])
    }

    /// What was given in place of the name of a file is not shown, and not kept.
    @Test func aKeyInPlaceOfAName() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let digits = String(repeating: "0a", count: 32)
        try sandbox.write("map", "db key-file:\(digits)\n")
        try sandbox.write("db", "")
        let outcomes = [
            try sandbox.sealdb("query", "db", "SELECT 1", "--key-file", digits),
            try sandbox.run(
                [Tool.sealdb, "query", "db", "SELECT 1"],
                environment: ["SEALDB_KEY_FILE": digits]
            ),
            try sandbox.sealdb("query", "db", "SELECT 1", "--key-ring", digits),
            try sandbox.sealdb("keygen", digits),
            try sandbox.sealdb("keyring", "create", "ring", digits),
            try sandbox.sealdb("keyring", "create", "ring", "a", "--key-file", digits),
            try sandbox.sealdb(
                "rotate",
                "db",
                "--key-map",
                "map",
                "--new-key-file",
                "key",
                "--journal",
                "journal"
            ),
        ]
        for outcome in outcomes {
            #expect(outcome.status != 0)
            #expect(!(outcome.output + outcome.error).contains("0a0a"), "\(outcome)")
        }
        for name in try sandbox.names() where name != "map" {
            #expect(try sandbox.contents(name).range(of: Data("0a0a".utf8)) == nil, "\(name)")
        }
        #expect(try !sandbox.names().contains { $0.contains("0a0a") || $0 == "ring" })
    }

    @Test(arguments: commands + [["info", "db"]])
    func twoKeys(_ arguments: [String]) throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-file", "k", "--passphrase-file", "p"])
        #expect(outcome.status == 64)
        #expect(outcome.error.contains("--key-file and --passphrase-file exclude each other"))
    }

    @Test func everyPairOfSourcesExcludesEachOther() throws {
        let sandbox = try Sandbox()
        let sources = [
            ["--key-file", "k"], ["--key-credential", "c"], ["--key-command", "/bin/true"], ["--key-fd", "3"],
            ["--key-ring", "r"], ["--passphrase-file", "p"], ["--passphrase-credential", "c"],
            ["--passphrase-command", "/bin/true"], ["--passphrase-fd", "0"], ["--prompt"],
        ]
        for (index, first) in sources.enumerated() {
            for second in sources.dropFirst(index + 1) {
                let outcome = try sandbox.run([Tool.sealdb, "create", "db"] + second + first)
                #expect(outcome.status == 64)
                #expect(outcome.error.contains("\(first[0]) and \(second[0]) exclude each other"))
            }
        }
    }

    @Test func aBackupTakesOneNewKeyAtMost() throws {
        let sandbox = try Sandbox()
        for (more, reason) in [
            (["--new-key-file", "n", "--new-prompt"], "--new-key-file and --new-prompt exclude each other"),
            (["--new-key-fd", "2"], "--new-key-fd takes the number of a descriptor that is open for reading"),
            (["--new-key-command", "relative"], "--new-key-command takes the absolute path of a program"),
        ] {
            let outcome = try sandbox.run([Tool.sealdb, "backup", "db", "copy", "--key-file", "k"] + more)
            #expect(outcome.status == 64 && outcome.error.contains(reason), "\(outcome.error)")
        }
        #expect(try sandbox.names() == [])
    }

    @Test func rotateTakesExactlyOneNewKey() throws {
        let sandbox = try Sandbox()
        let none = try sandbox.fail(64, "rotate", "db", "--key-file", "k")
        #expect(none.error.contains("--new-key-file, --new-key-credential, --new-key-command, "))
        let two = try sandbox.fail(64, "rotate", "db", "--key-file", "k", "--new-key-file", "n", "--new-prompt")
        #expect(two.error.contains("--new-key-file and --new-prompt exclude each other"))
        for (old, new) in [
            ("--passphrase-fd", "--new-passphrase-fd"), ("--key-fd", "--new-passphrase-fd"),
            ("--key-fd", "--new-key-fd"),
        ] {
            let same = try sandbox.fail(64, "rotate", "db", old, "3", new, "3")
            #expect(same.error.contains("\(old) and \(new) name the same descriptor"))
        }
    }

    @Test func descriptorsThatCannotBeMeant() throws {
        let sandbox = try Sandbox()
        for descriptor in ["-1", "1", "2", "x"] {
            try sandbox.fail(64, "create", "db", "--passphrase-fd=\(descriptor)")
            try sandbox.fail(64, "create", "db", "--key-fd=\(descriptor)")
        }
        try sandbox.fail(64, "import", "db", "t", "-", "--passphrase-fd", "0", input: "a\n")
        try sandbox.fail(64, "import", "db", "t", "-", "--key-fd", "0", input: "a\n")
    }

    @Test(arguments: ["", "cat key", "./cat key", "'/bin/cat key", "/bin/cat key\\"])
    func commandsThatCannotBeMeant(command: String) throws {
        let sandbox = try Sandbox()
        for option in ["--key-command", "--passphrase-command"] {
            let outcome = try sandbox.fail(64, "create", "db", option, command)
            #expect(outcome.error.contains("\(option) takes the absolute path of a program"))
        }
    }
}

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct KeySourceTests {
    @Test func missingKeyFile() throws {
        let sandbox = try Sandbox()
        for option in ["--key-file", "--passphrase-file"] {
            try sandbox.fail(66, "create", "db", option, "absent")
        }
        try sandbox.fail(78, "create", "db", "--key-file", ".")
        #expect(try sandbox.names() == [])
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o644, 0o620, 0o610])
    func keyFileOpenToOthers(mode: Int) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: sandbox.path("key"))
        try sandbox.fail(78, "create", "db", "--key-file", "key")
        try sandbox.write("passphrase", "correct horse\n", mode: mode)
        try sandbox.fail(78, "create", "db", "--passphrase-file", "passphrase")
        #expect(!sandbox.exists("db"))
    }

    @Test func keyFileBehindASymbolicLink() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey("real")
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("key"), withDestinationPath: "real")
        try sandbox.fail(78, "create", "db", "--key-file", "key")
        #expect(!sandbox.exists("db"))
    }

    @Test(arguments: [
        "", "\n", "abc\n", String(repeating: "a", count: 63), String(repeating: "a", count: 65),
        String(repeating: "g", count: 64), String(repeating: "a", count: 64) + "\n\n",
        " " + String(repeating: "a", count: 64), String(repeating: "a", count: 64) + "\r\n",
    ])
    func malformedKeyFile(text: String) throws {
        let sandbox = try Sandbox()
        try sandbox.write("key", text)
        let outcome = try sandbox.fail(65, "create", "db", "--key-file", "key")
        #expect(text.count < 3 || !outcome.error.contains(text.prefix(16)))
        #expect(!sandbox.exists("db"))
    }

    @Test func emptyPassphrase() throws {
        let sandbox = try Sandbox()
        for text in ["", "\n"] {
            try sandbox.write("passphrase", text)
            try sandbox.fail(65, "create", "db", "--passphrase-file", "passphrase")
        }
        #expect(!sandbox.exists("db"))
    }

    @Test func rawBytesAndHexDigitsAreTheSameKey() throws {
        let sandbox = try Sandbox()
        let bytes = (0..<32).map { UInt8($0 * 7) }
        try sandbox.write("raw", Data(bytes))
        try sandbox.write("hex", bytes.map { String(format: "%02X", $0) }.joined())
        try sandbox.succeed("create", "db", "--key-file", "raw")
        try sandbox.succeed("query", "db", "SELECT 1", "--key-file", "hex")
    }

    @Test func passphraseFromFileAndDescriptorAreTheSameKey() throws {
        let sandbox = try Sandbox()
        try sandbox.write("passphrase", "correct horse\n")
        try sandbox.succeed("create", "db", "--passphrase-file", "passphrase")
        try sandbox.succeed("query", "db", "SELECT 1", "--passphrase-fd", "0", input: "correct horse")
        let outcome = try sandbox.run(
            ["sh", "-c", "exec \"$0\" query db 'SELECT 7' --passphrase-fd 5 --format csv 5<passphrase", Tool.sealdb]
        )
        #expect(outcome.status == 0 && outcome.lines.last == "7", "\(outcome.error)")
        try sandbox.fail(77, "query", "db", "SELECT 1", "--passphrase-fd", "0", input: "correct horse ")
    }

    @Test func descriptorThatIsNotOpen() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.fail(66, "create", "db", "--passphrase-fd", "77")
        #expect(outcome.error.contains("77"))
        #expect(!sandbox.exists("db"))
    }

    @Test func wrongKeyPrintsOneLine() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("other")
        try sandbox.makeKey("third")
        try sandbox.write("rows.csv", "a\n1\n")
        let before = try sandbox.contents("db")
        for arguments in [
            ["query", "db", "SELECT 1"], ["exec", "db", "CREATE TABLE t (a)"], ["import", "db", "t", "rows.csv"],
            ["info", "db"], ["verify", "db"], ["rotate", "db", "--new-key-file", "third"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-file", "other"])
            #expect(outcome.status == 77, "\(arguments): \(outcome.error)")
            #expect(outcome.output.isEmpty)
            #expect(outcome.error.hasPrefix("sealdb: "))
            #expect(outcome.error.count { $0 == "\n" } == 1 && outcome.error.hasSuffix("\n"), "\(outcome.error)")
        }
        #expect(try sandbox.contents("db") == before)
    }
}
