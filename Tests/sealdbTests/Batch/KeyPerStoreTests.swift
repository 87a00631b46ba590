import Foundation
import Testing

/// A key of its own for each store.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct KeyPerStoreTests {
    private let sandbox: Sandbox

    /// Stores "a.db" and "b.db" under the key files "a.key" and "b.key", which are to have "a.new" and "b.new".
    init() throws {
        sandbox = try Sandbox()
        for name in ["a", "b"] {
            try sandbox.makeKey("\(name).key")
            try sandbox.makeKey("\(name).new")
            try sandbox.succeed("create", "\(name).db", "--key-file", "\(name).key")
        }
    }

    private func opens(_ store: String, _ keyFile: String) throws -> Bool {
        try sandbox.sealdb("query", store, "SELECT 1", "--key-file", keyFile).status == 0
    }

    private func expectNewKeys(_ outcome: Outcome, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(outcome.status == 0, "\(outcome.error)", sourceLocation: sourceLocation)
        for name in ["a", "b"] {
            #expect(try opens("\(name).db", "\(name).new"), sourceLocation: sourceLocation)
            #expect(try !opens("\(name).db", "\(name).key"), sourceLocation: sourceLocation)
        }
    }

    // MARK: Templates

    @Test(arguments: [
        ("key-file:{dir}/{stem}.key", "key-file:{stem}.new"),
        ("key-command:/bin/cat {stem}.key", "key-command:/bin/sh -c 'cat \"$0\"' \"{stem}.new\""),
    ])
    func templates(old: String, new: String) throws {
        let outcome = try sandbox.sealdb(
            "rotate",
            "a.db",
            "b.db",
            "--key-template",
            old,
            "--new-key-template",
            new,
            "--jobs",
            "2"
        )
        try expectNewKeys(outcome)
    }

    @Test func templateAndOneKey() throws {
        try sandbox.makeKey("all")
        try sandbox.succeed("rotate", "a.db", "b.db", "--key-template", "key-file:{stem}.key", "--new-key-file", "all")
        #expect(try opens("a.db", "all") && opens("b.db", "all"))
        try expectNewKeys(
            try sandbox.sealdb(
                "rotate",
                "a.db",
                "b.db",
                "--key-file",
                "all",
                "--new-key-template",
                "key-file:{stem}.new"
            )
        )
    }

    @Test func ringOfEachStore() throws {
        for name in ["a", "b"] {
            try sandbox.succeed("keyring", "create", "\(name).ring", "old", "--key-file", "\(name).key")
            try sandbox.succeed("keyring", "add", "\(name).ring", "new", "--key-file", "\(name).new", "--activate")
        }
        try expectNewKeys(try sandbox.sealdb("rotate", "a.db", "b.db", "--key-template", "key-ring:{dir}/{stem}.ring"))
    }

    @Test(arguments: [
        ["--key-template", "/etc/{stem}.key"], ["--key-template", "key-file:"], ["--key-template", "key-file:{steam}"],
        ["--key-template", "key-file:{stem"], ["--key-template", "key-command:cat {stem}.key"],
        ["--key-template", "key-command:/bin/cat '{stem}"], ["--key-template", "prompt:x"],
        ["--key-template", "key-file:a.key", "--key-file", "a.key"], ["--key-map", "m", "--key-file", "a.key"],
        ["--key-template", "key-file:a.key", "--key-map", "m"], ["--key-map", "m", "--new-key-file", "a.new"],
    ])
    func wrongUsage(options: [String]) throws {
        let outcome = try sandbox.run(
            [Tool.sealdb, "rotate", "a.db"] + options + (options[0] == "--key-map" ? [] : ["--new-key-file", "a.new"])
        )
        #expect(outcome.status == 64, "\(outcome.error)")
        #expect(try opens("a.db", "a.key"))
    }

    @Test func everyStoreNeedsANewKey() throws {
        let outcome = try sandbox.sealdb("rotate", "a.db", "b.db", "--key-template", "key-file:{stem}.key")
        #expect(outcome.status == 64 && outcome.error.contains("has no new key"), "\(outcome.error)")
        #expect(try opens("a.db", "a.key"))
    }

    // MARK: Maps

    private let map = """
        # old keys and new ones

        a.db\tkey-file:a.key\tkey-file:a.new
        ./b.db\tkey-file:b.key\tkey-file:b.new

        """

    @Test func mapNamesStoresAndKeys() throws {
        try sandbox.write("map", map)
        try expectNewKeys(try sandbox.sealdb("rotate", "--key-map", "map"))
    }

    @Test func mapForSomeStores() throws {
        try sandbox.write("map", map)
        try sandbox.succeed("rotate", sandbox.path("b.db"), "--key-map", "map")
        #expect(try opens("b.db", "b.new") && opens("a.db", "a.key"))
        try sandbox.succeed("create", "c.db", "--key-file", "a.key")
        let outcome = try sandbox.sealdb("rotate", "c.db", "--key-map", "map")
        #expect(outcome.status == 64 && outcome.error.contains("c.db"))
    }

    @Test(
        arguments: [
            ("a.db key-file:a.key\n", 64), ("a.db\tkey-file:a.key\tkey-file:a.new\tx\n", 64),
            ("a.db\ta.key\ta.new\n", 64),
            ("a.db\tkey-file:a.key\nlast\tx", 64),
            ("a.db\tkey-file:a.key\tkey-file:a.new\n./a.db\tkey-file:b\tkey-file:c\n", 64),
            ("a.db\tkey-file:a.key\n", 64), ("\n", 64), ("a\u{0}", 64),
        ] as [(String, Int32)]
    )
    func malformedMaps(text: String, status: Int32) throws {
        try sandbox.write("map", text)
        let outcome = try sandbox.sealdb("rotate", "--key-map", "map")
        #expect(outcome.status == status, "\(outcome.error)")
        #expect(try opens("a.db", "a.key"))
    }

    @Test func mapThatOthersMayChange() throws {
        try sandbox.write("map", map, mode: 0o620)
        try sandbox.fail(78, "rotate", "--key-map", "map")
        #expect(try opens("a.db", "a.key"))
        try sandbox.write("map", Data([0xff, 0x0a]))
        try sandbox.fail(65, "rotate", "--key-map", "map")
        try sandbox.fail(66, "rotate", "--key-map", "absent")
    }

    /// What a map says of a key never gets into a message.
    @Test func keysInAMapAreNotShown() throws {
        let secret = String(repeating: "5a", count: 32)
        try sandbox.write("map", "a.db\t\(secret)\tkey-file:a.new\n")
        let outcome = try sandbox.fail(64, "rotate", "--key-map", "map")
        #expect(!outcome.error.contains("5a5a") && outcome.error.contains("line 1"))
    }

    /// Who may write to the file decides which programs run, also where the shell has opened it.
    @Test func mapOnStandardInput() throws {
        try sandbox.write("map", map, mode: 0o622)
        let command = "exec \"$0\" rotate --key-map - -n"
        let open = try sandbox.run(["sh", "-c", "\(command) <map", Tool.sealdb])
        #expect(open.status == 78 && open.error.contains("may be changed by other users"), "\(open)")
        // What this user has sent through a pipe is this user's.
        let piped = try sandbox.run(["sh", "-c", "cat map | { \(command); }", Tool.sealdb])
        #expect(piped.status == 0, "\(piped.error)")
    }

    /// Of two sources, those are named that were given.
    @Test func twoSourcesAreNamed() throws {
        for (option, value) in [("--key-map", "map"), ("--key-template", "key-file:{stem}.key")] {
            let outcome = try sandbox.fail(64, "verify", "a.db", option, value, "--key-file", "a.key")
            #expect(outcome.error.contains("--key-file and \(option) exclude each other"), "\(outcome.error)")
        }
        let both = try sandbox.fail(64, "verify", "--key-map", "map", "--key-template", "key-file:{stem}.key")
        #expect(both.error.contains("--key-template and --key-map exclude each other"), "\(both.error)")
    }
}
