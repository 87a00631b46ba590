import Foundation
import Testing

/// Commands that take a key find it in the configuration, for each store its own.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ConfigurationUseTests {
    private let sandbox: Sandbox
    private let environment: [String: String?]

    /// Stores `a.db`, `b.db` under keys of their own and `old/c` of SQLCipher 3 under a ring.
    init() throws {
        sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.path("old"), withIntermediateDirectories: false)
        environment = ["SEALDB_CONFIG": sandbox.path("c.conf")]
        try sandbox.makeKey("a.key")
        try sandbox.makeKey("b.key")
        try sandbox.succeed("keyring", "create", "ring", "one")
        try write("")
        for store in ["a.db", "b.db", "old/c"] { try run(0, "create", store) }
    }

    private func write(_ defaults: String) throws {
        try sandbox.write(
            "c.conf",
            """
            [defaults]
            \(defaults)
            [store "\(sandbox.path("*.db"))"]
            key-file = {dir}/{stem}.key
            [store "\(sandbox.path("old/*"))"]
            key-ring = \(sandbox.path("ring"))
            compatibility = 3
            """
        )
    }

    @discardableResult
    private func run(
        _ status: Int32,
        _ arguments: String...,
        input: String? = nil,
        location: SourceLocation = #_sourceLocation
    ) throws -> Outcome {
        let outcome = try sandbox.run([Tool.sealdb] + arguments, input: input, environment: environment)
        #expect(outcome.status == status, "\(arguments): \(outcome.error)", sourceLocation: location)
        return outcome
    }

    @Test func eachCommand() throws {
        try run(0, "exec", "a.db", "CREATE TABLE t (x); INSERT INTO t VALUES (7)")
        try run(0, "exec", "old/c", "CREATE TABLE t (x); INSERT INTO t VALUES (8)")
        #expect(try run(0, "query", "a.db", "SELECT x FROM t", "--format", "csv").output == "x\n7\n")
        #expect(try run(0, "shell", "old/c", input: "SELECT x FROM t;\n").output.contains("8"))
        #expect(try run(0, "tables", "a.db").output == "t\n" && run(0, "schema", "a.db").output.contains("CREATE"))
        #expect(try run(0, "dump", "old/c").output.contains(",8)"))
        try sandbox.write("rows.csv", "x\n9\n")
        try run(0, "import", "b.db", "t", "rows.csv")
        #expect(try run(1, "diff", "a.db", "old/c").output.contains("t"))
        #expect(try run(0, "info", "old/c").output.contains("active"))
        try run(0, "verify", "a.db", "b.db", "old/c")
        try FileManager.default.createDirectory(atPath: sandbox.path("copies"), withIntermediateDirectories: false)
        try run(0, "backup", "a.db", "b.db", "old/c", "--into", "copies")
        // The backup of another place has the key of its store.
        try run(0, "backup", "a.db", "copy")
        try run(0, "diff", "a.db", "copy")
        try run(0, "restore", "copy", "a.db", "--replace")
        try run(0, "recover", "a.db", "saved")
        try run(0, "decrypt", "a.db", "plain", "--allow-plaintext")
        try run(0, "encrypt", "plain", "old/d")
        try sandbox.succeed("query", "old/d", "SELECT x FROM t", "--key-ring", "ring", "--compatibility", "3")
        try run(0, "keyring", "add", "ring", "two", "--activate")
        try run(1, "keyring", "audit", "ring", "old/c")
        try run(0, "rotate", "old/c", "old/d")
        try run(0, "keyring", "audit", "ring", "old/c")
        try run(0, "rotate", "a.db", "--new-key-file", "b.key")
        try run(77, "query", "a.db", "SELECT 1")
        let migrated = try run(0, "migrate", "old/c")
        #expect(migrated.output.contains("c.conf says that it has SQLCipher 3: change that"), "\(migrated.output)")
        try run(78, "query", "old/c", "SELECT 1")
        let again = try run(0, "migrate", "old/c")
        #expect(again.output.contains("nothing was changed") && again.output.contains("c.conf says that it has"))
        #expect(try !run(0, "migrate", "b.db").output.contains("says that"))
    }

    @Test func whatOutranksIt() throws {
        // The command line, and the environment.
        try run(77, "query", "a.db", "SELECT 1", "--key-file", "b.key")
        let variables = environment.merging(["SEALDB_KEY_FILE": sandbox.path("b.key")]) { $1 }
        let query = [Tool.sealdb, "query", "a.db", "SELECT 1"]
        #expect(try sandbox.run(query, environment: variables).status == 77)
        #expect(try sandbox.run(query + ["--key-file", "a.key"], environment: variables).status == 0)
        let shown = try sandbox.run([Tool.sealdb, "config", "show", "a.db"], environment: variables)
        #expect(shown.output.contains("$SEALDB_KEY_FILE"), "\(shown.output)")
        try run(64, "query", "a.db", "SELECT 1", "--config", "/dev/null")
        try run(0, "verify", "a.db", "--key-template", "key-file:{dir}/{stem}.key")
        try run(0, "query", "old/c", "SELECT 1", "--compatibility", "3")
        try run(78, "query", "old/c", "SELECT 1", "--compatibility", "4")
        // Batches.
        try write("continue-on-error = yes")
        try run(2, "verify", "absent.db", "a.db")
        try run(66, "verify", "absent.db", "a.db", "--no-continue-on-error")
    }

    @Test func defaultsOfOptions() throws {
        let holder = try sandbox.connection("a.db", keyFile: "a.key")
        #expect(holder.beginExclusiveTransaction())
        try write("lock-wait = 0\nprogress = always")
        let outcome = try run(75, "exec", "a.db", "CREATE TABLE t (x)")
        #expect(!outcome.error.isEmpty)
        #expect(holder.rollback())
        holder.close()
        #expect(try run(0, "verify", "a.db").error.contains("%"))
        #expect(try run(0, "verify", "a.db", "--progress", "never").error.isEmpty)
        let shown = try run(0, "config", "show", "a.db").output
        #expect(shown.contains("0 (line 2)") && shown.contains("a.key (line 5)"), "\(shown)")
    }

    @Test func storesWithoutAKey() throws {
        let outside = try run(64, "verify", "elsewhere")
        #expect(outside.error.contains("no section of \(sandbox.path("c.conf")) is for it"), "\(outside.error)")
        try sandbox.write("c.conf", "[store \"\(sandbox.path("*"))\"]\nrotate-after = 1d\n")
        // No section has a key: then one is asked for, as without a file.
        #expect(try run(64, "query", "a.db", "SELECT 1").error.contains("A key is needed"))
        #expect(try run(0, "info", "a.db").output.contains("no key was given"))
    }

    @Test func rotationNeedsANewKey() throws {
        let outcome = try run(64, "rotate", "a.db")
        #expect(outcome.error.contains("has no new key"), "\(outcome.error)")
    }

    @Test func check() throws {
        let good = try run(0, "config", "check", "--json").output
        #expect(good.contains("key-file:\(sandbox.path("a.key"))") && good.contains(#""problems":[]"#), "\(good)")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: sandbox.path("b.key"))
        let bad = try run(78, "config", "check")
        #expect(bad.output.contains("problem: ") && bad.output.contains("chmod 600"), "\(bad.output)")
        try FileManager.default.removeItem(atPath: sandbox.path("ring"))
        #expect(try run(78, "config", "check").error.contains("2 problems"))
        // Arguments of programs can be secrets.
        try sandbox.write(
            "c.conf",
            "[store \"\(sandbox.path("*.db"))\"]\nkey-command = /bin/echo s3cret\n[store \"/x/*\"]\nkey-command = /no/such\n"
        )
        let command = try run(78, "config", "check").output
        #expect(command.contains("key-command:/bin/echo\n") && command.contains("/no/such cannot be run"), "\(command)")
        #expect(!command.contains("s3cret"))
        #expect(try !run(0, "config", "show", "a.db").output.contains("s3cret"))
    }
}
