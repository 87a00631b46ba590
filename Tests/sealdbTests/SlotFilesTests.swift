import Foundation
import Testing

/// What the command does with the files of slots where a store goes another way, and where a disk fails.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct SlotFilesTests {
    private let sandbox: Sandbox
    private let files = FileManager.default
    private let slots = ["db.slots", "db.slots.2"]

    init() throws {
        sandbox = try Sandbox()
        for name in ["key", "other", "safe"] { try sandbox.makeKey(name) }
        try sandbox.succeed("create", "db", "--slots", "--key-file", "key", "--recovery-key-file", "safe")
        try sandbox.succeed("exec", "db", "CREATE TABLE t (a); INSERT INTO t VALUES (7)", "--key-file", "key")
    }

    private func reads(_ store: String, _ key: String, location: SourceLocation = #_sourceLocation) throws {
        let outcome = try sandbox.run(
            [Tool.sealdb, "query", store, "SELECT a FROM t", "--format", "csv", "--key-file", key]
        )
        #expect(outcome.lines.last == "7", "\(key): \(outcome.error)", sourceLocation: location)
    }

    private func move(_ name: String, to new: String) throws {
        try files.moveItem(atPath: sandbox.path(name), toPath: sandbox.path(new))
    }

    /// The slots of a store that was moved are all that opens it.
    @Test func nothingIsMadeBesideSlots() throws {
        try move("db", to: "moved")
        let before = try slots.map { try sandbox.contents($0) }
        try sandbox.fail(73, "create", "db", "--key-file", "other")
        try sandbox.fail(73, "create", "db", "--slots", "--no-recovery", "--key-file", "other")
        try sandbox.succeed("create", "plain", "--key-file", "other")
        try sandbox.succeed("decrypt", "plain", "clear", "--allow-plaintext", "--key-file", "other")
        try sandbox.fail(73, "encrypt", "clear", "db", "--key-file", "other")
        try sandbox.fail(73, "decrypt", "plain", "db", "--allow-plaintext", "--key-file", "other")
        try sandbox.fail(73, "backup", "plain", "db", "--key-file", "other")
        try sandbox.fail(73, "restore", "plain", "db", "--key-file", "other")
        try sandbox.fail(73, "recover", "plain", "db", "--key-file", "other")
        #expect(!sandbox.exists("db"))
        #expect(try slots.map { try sandbox.contents($0) } == before)
        try move("moved", to: "db")
        try reads("db", "safe")
        for name in ["db.slots", "db.slots.2"] {
            try files.removeItem(atPath: sandbox.path(name))
            try sandbox.fail(73, "create", name, "--key-file", "other")
            try sandbox.fail(73, "keygen", name)
        }
    }

    /// A pipe takes one file: so what goes through it has no slots, even under the key of one.
    @Test func pipes() throws {
        try sandbox.fail(64, "backup", "db", "-", "--key-file", "key")
        for key in ["other", "key"] {
            let outcome = try sandbox.run(
                [Tool.sealdb, "backup", "db", "-", "--key-file", "key", "--new-key-file", key]
            )
            #expect(outcome.status == 0, "\(outcome.error)")
            try outcome.outputData.write(to: URL(fileURLWithPath: sandbox.path("piped-\(key)")))
            try reads("piped-\(key)", key)
        }
        #expect(try !sandbox.names().contains { $0.hasPrefix("piped") && $0.hasSuffix("slots") })
    }

    /// What a store remembers of its slots means nothing elsewhere.
    @Test func dumpsAndDifferences() throws {
        let dump = try sandbox.succeed("dump", "db", "--key-file", "key").output
        #expect(!dump.contains("sealdb_slots") && dump.contains("CREATE TABLE t"))
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        try sandbox.succeed("slots", "rename", "db", "main", "x", "--key-file", "key")
        let difference = try sandbox.run([Tool.sealdb, "diff", "db", "copy", "--key-file", "key"])
        #expect(difference.status == 0, "\(difference.output) \(difference.error)")
    }

    /// The slots of a dated backup go with it, and what else has their name stays.
    @Test func datedBackups() throws {
        try files.createDirectory(atPath: sandbox.path("b"), withIntermediateDirectories: false)
        try sandbox.succeed("backup", "db", "--into", "b", "--keep-last", "1", "--key-file", "key")
        func names() throws -> [String] {
            try files.contentsOfDirectory(atPath: sandbox.path("b")).filter { $0.hasPrefix("db.") }.sorted()
        }
        let first = try names()
        #expect(first.count == 3 && first[1] == first[0] + ".slots" && first[2] == first[0] + ".slots.2")
        try reads("b/\(first[0])", "safe")
        try sandbox.succeed("create", "stranger", "--slots", "--no-recovery", "--key-file", "other")
        let stranger = try sandbox.contents("stranger.slots")
        try stranger.write(to: URL(fileURLWithPath: sandbox.path("b/\(first[2])")))
        try sandbox.succeed("backup", "db", "--into", "b", "--keep-last", "1", "--key-file", "key")
        let second = try names()
        #expect(second.count == 4 && second.first == first[2], "\(second)")
        #expect(try sandbox.contents("b/\(first[2])") == stranger)
        try reads("b/\(second[1])", "safe")
    }

    /// With the real programs, which scripts/setup installs: any of them holds a slot, and the recipe of the article opens the
    /// store without SealedDB.
    @Test func ageAndGPG() throws {
        func run(_ words: String...) throws -> Outcome {
            let outcome = try sandbox.run(words)
            #expect(outcome.status == 0, "\(words): \(outcome.error)")
            return outcome
        }
        func holds(_ label: String, _ wrap: String, _ unwrap: String) throws {
            let added = try run(
                Tool.sealdb,
                "slots",
                "add",
                "db",
                label,
                "--key-file",
                "key",
                "--new-wrap-command",
                wrap,
                "--new-unwrap-command",
                unwrap
            )
            #expect(added.output.contains("opened the store with it"))
            let query = try run(
                Tool.sealdb,
                "query",
                "db",
                "SELECT a FROM t",
                "--format",
                "csv",
                "--unwrap-command",
                unwrap
            )
            #expect(query.lines.last == "7")
        }
        _ = try run("/usr/bin/age-keygen", "-o", "id.txt")
        let identity = String(decoding: try sandbox.contents("id.txt"), as: UTF8.self)
        let line = try #require(identity.split(separator: "\n").first { $0.contains("public key: ") })
        let recipient = try #require(line.split(separator: " ").last)
        try holds("age", "/usr/bin/age -r \(recipient)", "/usr/bin/age -d -i \(sandbox.path("id.txt"))")
        let script = """
            key=$(sed -n '/^slot [0-9]* program /{n;s/^wrap [0-9]* program //p}' db.slots | base64 -d | age -d -i id.txt)
            printf "PRAGMA key = \\"x'%s'\\"; SELECT a FROM t;\\n" "$key" | sqlcipher -batch db
            """
        #expect(try run("/bin/sh", "-c", script).lines.last == "7")
        let home = sandbox.path("gpg")
        try files.createDirectory(
            atPath: home,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
        let gpg = "/usr/bin/gpg --homedir \(home) --batch --no-tty --quiet"
        _ = try run("/bin/sh", "-c", "\(gpg) --passphrase '' --quick-gen-key ops default default never")
        defer { _ = try? sandbox.run(["/usr/bin/gpgconf", "--homedir", home, "--kill", "gpg-agent"]) }
        try holds("gpg", "\(gpg) --trust-model always -e -r ops", "\(gpg) -d")
    }

    /// As long as it is not known which store a power failure leaves, the slots open the old one too.
    @Test func syncsThatFail() throws {
        let old = try sandbox.contents("db")
        let oldSlots = try slots.map { try sandbox.contents($0) }
        var unknown = 0
        for number in 1... {
            try old.write(to: URL(fileURLWithPath: sandbox.path("db")))
            for (name, bytes) in zip(slots, oldSlots) { try bytes.write(to: URL(fileURLWithPath: sandbox.path(name))) }
            let outcome = try sandbox.run(
                ["strace", "-f", "-qq", "-o", "trace", "-e", "inject=fsync:error=EIO:when=\(number)", Tool.sealdb]
                    + ["slots", "reencrypt", "db", "--key-file", "key", "--keep", "recovery=key-file:safe"]
            )
            let failed = try String(decoding: sandbox.contents("trace"), as: UTF8.self).contains("(INJECTED)")
            guard failed else {
                #expect(outcome.status == 0, "\(outcome.error)")
                break
            }
            for key in ["key", "safe"] { try reads("db", key) }
            guard outcome.status != 0, outcome.error.contains("after a power failure it may have the old") else {
                continue
            }
            unknown += 1
            #expect(outcome.error.contains("old and the new data key"), "\(outcome.error)")
            let new = try sandbox.contents("db")
            // As the power failure leaves it.
            try old.write(to: URL(fileURLWithPath: sandbox.path("db")))
            for key in ["key", "safe"] { try reads("db", key) }
            // Nor does a change forget the old data key whose own sync fails.
            try new.write(to: URL(fileURLWithPath: sandbox.path("db")))
            let change = try sandbox.run(
                ["strace", "-f", "-qq", "-o", "trace", "-e", "inject=fsync:error=EIO:when=1", Tool.sealdb]
                    + ["slots", "rename", "db", "main", "x", "--key-file", "key"]
            )
            #expect(change.status != 0 && change.error.contains("Both stay listed"), "\(change.error)")
            try old.write(to: URL(fileURLWithPath: sandbox.path("db")))
            for key in ["key", "safe"] { try reads("db", key) }
            try new.write(to: URL(fileURLWithPath: sandbox.path("db")))
            try sandbox.succeed("slots", "rename", "db", "main", "x", "--key-file", "key")
            #expect(
                try sandbox.contents("db.slots").split(separator: 0x0a).count { $0.starts(with: "data-key".utf8) } == 1
            )
            try reads("db", "safe")
        }
        #expect(unknown > 0)
    }
}
