import Foundation
import SealedDB
import Testing

/// What may be a secret and was given in the wrong place is not shown, and not stored.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct SecretArgumentTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey()
    }

    @Test(arguments: ["--key-fd", "--passphrase-fd", "--new-key-fd", "--new-passphrase-fd"])
    func aSecretInPlaceOfADescriptor(option: String) throws {
        let isNew = option.contains("new")
        let arguments = ["rotate", "db"] + (isNew ? ["--key-file", "key"] : ["--new-key-file", "key"])
        for form in [[option, "hunter2"], ["\(option)=hunter2"], [option, "99999999999999999999"]] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + form)
            #expect(outcome.status == 64, "\(outcome.error)")
            #expect(outcome.error.contains("\(option) takes the number of a descriptor"), "\(outcome.error)")
            #expect(!(outcome.error + outcome.output).contains("hunter2"), "\(outcome.error)")
        }
    }

    /// A name of 64 digits is a key, as far as anybody can tell.
    @Test func aKeyInPlaceOfAStore() throws {
        let key = String(repeating: "0a", count: 32)
        for arguments in [["create", key], ["query", key, "SELECT 1"], ["info", key], ["backup", key, "copy"]] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-file", "key"])
            #expect(outcome.status == 64, "\(arguments[0]): \(outcome.error)")
            #expect(!(outcome.error + outcome.output).contains(key), "\(arguments[0]): \(outcome.error)")
            #expect(outcome.error.contains("form of a raw key"), "\(arguments[0]): \(outcome.error)")
        }
        #expect(try sandbox.names() == ["key"])
        // That is a name all the same.
        try sandbox.succeed("create", "./\(key)", "--key-file", "key")
    }

    /// Wherever it stands, no message shows it, and no file gets it as its name.
    @Test(arguments: ["0a", "0A"], [32, 48])
    func aKeyAsAnyOtherArgument(byte: String, count: Int) throws {
        let key = String(repeating: byte, count: count)
        try sandbox.succeed("keyring", "create", "ring", "a")
        let lines = [
            ["keyring", "add", "ring", key], ["keyring", "activate", "ring", key], ["keyring", "remove", "ring", key],
            ["keyring", "reinstate", "ring", key], ["keyring", "remove", "ring", "a", "--keep", key],
            ["rotate", "db", "--key-file", "key", "--new-key-file", "key2", "--jobs", key],
            ["rotate", "db", "--key-file", "key", "--new-key-file", "key2", "--journal", key],
            ["rotate", "db", "--key-file", "key", "--new-key-file", "key2", "--replace-key-files=\(key)"],
            ["rotate", "db", "--key-file", "key", "--new-key-file", "key2", "--max-rate=\(key)"],
            ["rotate", "--from-file", key, "--key-ring", "ring"], ["rotate", "db", "--key-map", key],
            ["doctor", key], ["config", key], ["slots", key], ["slots", "import", "db", key, "--key-file", "key"],
            ["info", "db", "--config", key], ["verify", "db", "--page-size", key],
        ]
        for arguments in lines {
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status == 64, "\(arguments): \(outcome.error)")
            #expect(outcome.error.contains("form of a raw key"), "\(arguments): \(outcome.error)")
            #expect(!(outcome.error + outcome.output).contains(key), "\(arguments): \(outcome.error)")
        }
        #expect(try sandbox.names() == ["key", "ring"])
        // A digest is data.
        try sandbox.succeed("create", "db", "--key-file", "key")
        #expect(try sandbox.succeed("query", "db", "SELECT ?", key, "--key-file", "key").output.contains(key))
    }

    /// Nor beside SQL, where it may be data, in a variable, or with the x of a blob whose quotes the shell took.
    @Test(arguments: ["0a", "0A"], ["", "x", "a="]) func aKeyThatAMessageWouldName(byte: String, prefix: String) throws
    {
        let key = String(repeating: byte, count: 32)
        let given = prefix + key
        try sandbox.succeed("create", "db", "--key-file", "key")
        for arguments in [
            ["query", "db", "SELECT 1", "--config", given], ["query", "db", "SELECT 1", "--lock-wait", given],
            ["exec", "db", "SELECT 1", "--text-file", "b=\(given)"],
            ["exec", "db", "SELECT 1", "--blob-file", "b=\(given)"],
            ["shell", "db", "--config", given], ["query", "db", "--file", given], ["query", given, "SELECT 1"],
            ["query", "db", given], ["query", "db", "SELECT 1", "--int", "b=\(given)"],
            ["query", "db", "SELECT 1", "--format", given], ["info", "db", "--key-file=\(given)"],
            ["exec", "db", "SELECT 1", "--json", "--file", given],
        ] {
            for environment in [[:], ["SEALDB_CONFIG": given]] as [[String: String?]] {
                let keyFile = arguments[0] == "info" ? [] : ["--key-file", "key"]
                let outcome = try sandbox.run([Tool.sealdb] + arguments + keyFile, environment: environment)
                #expect(outcome.status != 0, "\(arguments): \(outcome.error)")
                #expect(!(outcome.error + outcome.output).contains(key), "\(arguments): \(outcome)")
            }
        }
        for name in ["SEALDB_CONFIG", "SEALDB_KEY_FILE", "SEALDB_KEY_RING", "SEALDB_PASSPHRASE_FILE"] {
            let outcome = try sandbox.run([Tool.sealdb, "query", "db", "SELECT 1"], environment: [name: given])
            #expect(outcome.status != 0, "\(name): \(outcome.error)")
            #expect(!(outcome.error + outcome.output).contains(key), "\(name): \(outcome)")
        }
        for arguments in [
            ["create", "0x\(key)", "--key-file", "key"], ["create", "key=\(key)", "--key-file", "key"],
            ["keygen", "key: \(key)"],
            ["backup", "db", "x'\(key)", "--key-file", "key"],
            ["query", "db", "SELECT 1/\(key)x", "--key-file", "key"],
            ["query", "db", "SELECT 1 FROM [a/\(key)]", "--key-file", "key"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status != 0, "\(arguments): \(outcome.error)")
            #expect(!(outcome.error + outcome.output).contains(key), "\(arguments): \(outcome)")
        }
        for kind in ["key-credential", "passphrase-credential"] {
            try sandbox.write("config", "[store \"\(sandbox.directory)/db\"]\n\(kind) = \(key)\n")
            #expect(chmod(sandbox.path("config"), 0o600) == 0)
            for arguments in [["config", "check", "config"], ["config", "show", "db", "--config", "config"]] {
                let outcome = try sandbox.run([Tool.sealdb] + arguments)
                #expect(outcome.status == 78, "\(arguments): \(outcome.error)")
                #expect(!(outcome.error + outcome.output).contains(key), "\(arguments): \(outcome)")
            }
        }
        // In a path it is a name.
        let named = try sandbox.run([Tool.sealdb, "info", "\(sandbox.directory)/none/\(key)"])
        #expect(named.error.contains(key), "\(named)")
    }

    @Test(arguments: ["s3://key:hunter2@bucket/x", "s3://key:hunter2", "S3://hunter2@bucket"])
    func aSecretInAnAddress(address: String) throws {
        for arguments in [
            ["replicate", "db", "--to", address, "--key-file", "key"], ["snapshots", address],
            ["restore", "--from", address, "copy"], ["follow", address, "copy"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status != 0 && !outcome.error.isEmpty, "\(arguments): \(outcome)")
            #expect(!(outcome.error + outcome.output).contains("hunter2"), "\(arguments): \(outcome)")
        }
    }

    @Test(arguments: ["--prompt", "--new-prompt", "--other-prompt"])
    func aPassphraseForAPrompt(option: String) throws {
        let command = option == "--other-prompt" ? ["diff", "db", "db2"] : ["rotate", "db"]
        let outcome = try sandbox.run([Tool.sealdb] + command + ["\(option)=hunter2"])
        #expect(outcome.status == 64, "\(outcome.error)")
        #expect(outcome.error.contains("\(option) takes no value"), "\(outcome.error)")
        #expect(!(outcome.error + outcome.output).contains("hunter2"), "\(outcome.error)")
        // Behind this it is a name.
        let name = try sandbox.run([Tool.sealdb, "info", "--", "\(option)=x"])
        #expect(name.status == 66, "\(name.error)")
    }

    @Test func aKeyInPlaceOfACommand() throws {
        let key = String(repeating: "0a", count: 32)
        for arguments in [[key], ["help", key], [key, "db"]] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status == 64, "\(outcome.error)")
            #expect(outcome.error.contains("name of a command has the form of a raw key"), "\(outcome.error)")
            #expect(!(outcome.error + outcome.output).contains(key), "\(outcome.error)")
        }
    }

    /// The directory for temporary files may be on any disk.
    @Test func aDatabaseInTheClearIsNotStoredOnTheWay() throws {
        let plain = Database(path: sandbox.path("plain"))
        try plain.openVerified()
        try plain.executeUpdate("CREATE TABLE t (a)")
        plain.close()
        /// Whether a file was made to hold what came from standard input.
        func isStored(_ input: String, status: Int32) throws -> Bool {
            let strace = "strace -f -o trace -e trace=mkdir,mkdirat \(Tool.sealdb) restore - db --key-file key"
            let outcome = try sandbox.run(["/bin/sh", "-c", "\(input) | \(strace)"])
            #expect(outcome.status == status, "\(outcome.error)")
            let trace = String(decoding: try sandbox.contents("trace"), as: UTF8.self)
            #expect(trace.contains("exited with"), "\(trace)")
            return trace.contains("sealdb-pipe-")
        }
        #expect(try !isStored("cat plain", status: 65))
        #expect(try isStored("printf 'SQLite format'", status: 65))
        #expect(try sandbox.names() == ["key", "plain", "trace"])
    }
}
