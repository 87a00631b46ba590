import Foundation
import Testing

@testable import sealdb

/// What `sealdb status` says of stores, and from where it knows.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct StoreStatusTests {
    private let sandbox: Sandbox
    private let environment: [String: String?]

    init() throws {
        sandbox = try Sandbox()
        environment = ["SEALDB_CONFIG": sandbox.path("c.conf")]
        try configure("state-directory = \(sandbox.path("state"))")
        try sandbox.makeKey("a.key")
        try run(0, "create", "a.db")
    }

    private func configure(_ defaults: String) throws {
        try sandbox.write(
            "c.conf",
            "[defaults]\n\(defaults)\n[store \"\(sandbox.path("*.db"))\"]\nkey-file = {dir}/{stem}.key\n"
        )
    }

    @discardableResult
    private func run(
        _ status: Int32,
        _ arguments: String...,
        location: SourceLocation = #_sourceLocation
    ) throws -> Outcome {
        let outcome = try sandbox.run([Tool.sealdb] + arguments, environment: environment)
        #expect(outcome.status == status, "\(arguments): \(outcome)", sourceLocation: location)
        return outcome
    }

    /// The result of `status` for `a.db`.
    private func status(_ code: Int32, location: SourceLocation = #_sourceLocation) throws -> [String: Any] {
        let line = try #require(try run(code, "status", "--stores", "a.db", "--json", location: location).lines.first)
        return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    private func setDate(_ name: String, daysAgo days: Double) throws {
        let date = Date().addingTimeInterval(-days * 86400)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: sandbox.path(name))
    }

    @Test func whatIsNoted() throws {
        var found = try status(0)
        #expect(found["keyAgeSource"] as? String == "record")
        #expect(found["verifiedAt"] == nil && found["backedUpAt"] == nil)
        try run(0, "verify", "a.db", "--deep")
        try run(0, "backup", "a.db", "copy")
        found = try status(0)
        #expect(found["isSound"] as? Bool == true && found["isDeep"] as? Bool == true && found["verifiedAt"] != nil)
        #expect(found["backupPath"] as? String == StoreItem.identity(of: sandbox.path("copy")))
        #expect(try sandbox.mode("state") == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: sandbox.path("state")) {
            #expect(try sandbox.mode("state/" + name) == 0o600)
        }
        // A store that is another one now has a key of unknown age, but not younger than the key file.
        try run(0, "restore", "copy", "a.db", "--replace")
        try setDate("a.key", daysAgo: 10)
        found = try status(0)
        #expect(found["keyAgeSource"] as? String == "keyFile")
        try sandbox.makeKey("new.key")
        try run(0, "rotate", "a.db", "--new-key-file", "new.key")
        try FileManager.default.removeItem(atPath: sandbox.path("a.key"))
        try FileManager.default.moveItem(atPath: sandbox.path("new.key"), toPath: sandbox.path("a.key"))
        #expect(try status(0)["keyAgeSource"] as? String == "record")
        // Somebody has rotated it without the command.
        try sandbox.makeKey("third")
        try sandbox.succeed("rotate", "a.db", "--key-file", "a.key", "--new-key-file", "third", "--config", "/dev/null")
        try FileManager.default.removeItem(atPath: sandbox.path("a.key"))
        try FileManager.default.moveItem(atPath: sandbox.path("third"), toPath: sandbox.path("a.key"))
        #expect(try status(0)["keyAgeSource"] as? String == "keyFile")
    }

    /// Nothing more is noted than was looked at.
    @Test func whatAVerificationWas() throws {
        try run(0, "verify", "a.db", "--pages-only")
        #expect(try status(0)["verifiedAt"] == nil)
        try run(0, "verify", "a.db")
        let found = try status(0)
        #expect(found["verifiedAt"] != nil && found["isSound"] as? Bool == true, "\(found)")
        #expect(found["isDeep"] as? Bool == false, "\(found)")
    }

    /// From then on its key has an age.
    @Test func aStoreThatWasEncrypted() throws {
        #expect(try sandbox.run(["sqlite3", "plain", "CREATE TABLE t (a)"]).status == 0)
        try sandbox.makeKey("b.key")
        try run(0, "encrypt", "plain", "b.db")
        let line = try #require(try run(0, "status", "--stores", "b.db", "--json").lines.first)
        #expect(line.contains(#""keyAgeSource":"record""#), "\(line)")
    }

    @Test func aStoreThatIsNamedTwice() throws {
        let lines = try run(0, "status", "--stores", "a.db", "./a.db").lines
        #expect(lines.count == 2 && lines.last?.hasPrefix("1 store: 1 examined") == true, "\(lines)")
    }

    /// What is due of the others does not make up for a store that is missing.
    @Test func aStoreIsDueAndAnotherOneLost() throws {
        let path = StoreItem.identity(of: sandbox.path("main.db"))
        let sections = [path, sandbox.path("*.db")].map { "[store \"\($0)\"]\nkey-file = {dir}/a.key\n" }.joined()
        let defaults = "[defaults]\nstate-directory = \(sandbox.path("state"))\nverify-after = 7d\n"
        try sandbox.write("c.conf", defaults + sections)
        let outcome = try run(2, "status", "--all")
        #expect(outcome.output.contains("due: verification") && outcome.error.contains("main.db: "), "\(outcome)")
    }

    @Test func whatIsDue() throws {
        let limits = "verify-after = 7d\nbackup-after = 1d\nrotate-after = 9d"
        try configure("state-directory = \(sandbox.path("state"))\n\(limits)")
        #expect(try status(1)["due"] as? [String] == ["verification", "backup"])
        try run(0, "verify", "a.db")
        try run(0, "backup", "a.db", "copy")
        #expect(try status(0)["due"] as? [String] == [])
        // Without the record, what is known of the key is the time of its file.
        let names = try FileManager.default.contentsOfDirectory(atPath: sandbox.path("state"))
        for name in names where name.hasSuffix(".key") {
            try FileManager.default.removeItem(atPath: sandbox.path("state/" + name))
        }
        #expect(try status(0)["needsRotation"] as? Bool == false)
        try setDate("a.key", daysAgo: 10)
        let found = try status(1)
        #expect(found["due"] as? [String] == ["rotation"] && found["needsRotation"] as? Bool == true)
    }

    /// What was done with a store is not said of another file that has its name.
    @Test func recordsOfAnotherFile() throws {
        try configure("state-directory = \(sandbox.path("state"))\nverify-after = 7d\nbackup-after = 1d")
        try run(0, "verify", "a.db")
        try run(0, "backup", "a.db", "copy")
        // The command itself makes the new file from all pages of the old one.
        try sandbox.makeKey("new.key")
        try run(0, "rotate", "a.db", "--new-key-file", "new.key")
        try FileManager.default.removeItem(atPath: sandbox.path("a.key"))
        try FileManager.default.moveItem(atPath: sandbox.path("new.key"), toPath: sandbox.path("a.key"))
        #expect(try status(0)["remarks"] as? [String] == [])
        try FileManager.default.moveItem(atPath: sandbox.path("copy"), toPath: sandbox.path("moved"))
        var found = try status(1)
        #expect(found["due"] as? [String] == ["backup"] && found["backedUpAt"] == nil)
        #expect((found["remarks"] as? [String])?.first?.contains("cannot be examined") == true)
        try FileManager.default.moveItem(atPath: sandbox.path("moved"), toPath: sandbox.path("copy"))
        try run(0, "create", "other", "--key-file", "a.key")
        try sandbox.write("a.db", try sandbox.contents("other"))
        found = try status(1)
        #expect(found["due"] as? [String] == ["verification", "backup"] && found["verifiedAt"] == nil)
        #expect((found["remarks"] as? [String])?.count == 3)
        try run(0, "verify", "a.db")
        #expect(try status(1)["due"] as? [String] == ["backup"])
        try FileManager.default.removeItem(atPath: sandbox.path("a.db"))
        try run(0, "create", "a.db")
        #expect(try status(1)["remarks"] as? [String] == [])
    }

    /// What is said to have been done at a time to come was done at an unknown one.
    @Test func timesToCome() throws {
        try configure("state-directory = \(sandbox.path("state"))\nverify-after = 7d")
        try run(0, "verify", "a.db")
        let names = try FileManager.default.contentsOfDirectory(atPath: sandbox.path("state"))
        let name = try "state/" + #require(names.first { $0.hasSuffix(".verification") })
        let record = String(decoding: try sandbox.contents(name), as: UTF8.self)
        try sandbox.write(name, record.replacing(/"time":"[0-9]{4}/, with: "\"time\":\"2999"))
        let found = try status(1)
        #expect(found["due"] as? [String] == ["verification"])
        #expect((found["remarks"] as? [String])?.first?.contains("later than the clock") == true)
    }

    /// A store that a section names and that is gone is missed; also one behind a link that is still there.
    @Test func storesThatAreLost() throws {
        let path = StoreItem.identity(of: sandbox.path("main.db"))
        let sections = [path, sandbox.path("*.db")].map { "[store \"\($0)\"]\nkey-file = {dir}/a.key\n" }
        try sandbox.write("c.conf", sections.joined())
        let lost = try run(2, "status", "--all", "--prometheus", "out.prom")
        #expect(lost.output.contains("a.db: ") && lost.error.contains("main.db: "), "\(lost)")
        let samples = try PrometheusTests.samples(String(decoding: sandbox.contents("out.prom"), as: UTF8.self))
        #expect(samples["sealdb_store_up"]?[path] == 0)
        #expect(try run(78, "config", "check").output.contains("main.db cannot be found"))
        try run(0, "create", "main.db")
        try run(0, "status", "--all")
        try FileManager.default.createSymbolicLink(
            atPath: sandbox.path("gone.db"),
            withDestinationPath: "/no/such/file"
        )
        let link = try run(2, "status", "--all", "--prometheus", "out.prom")
        #expect(link.output.contains("a.db: ") && link.error.contains("gone.db is a link"), "\(link)")
        let unseen = try PrometheusTests.samples(String(decoding: sandbox.contents("out.prom"), as: UTF8.self))
        #expect(unseen["sealdb_status_unseen_places"] == ["": 1])
        try run(78, "config", "check")
    }

    @Test func damageIsRemembered() throws {
        try run(0, "exec", "a.db", "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(9000))")
        try sandbox.overwrite("a.db", at: 9000, with: [1, 2, 3, 4])
        try run(65, "verify", "a.db")
        let found = try status(1)
        #expect(found["isSound"] as? Bool == false && found["due"] as? [String] == ["verification"])
    }

    @Test func ringsAndStoresThatFail() throws {
        try sandbox.succeed("keyring", "create", "ring", "one")
        try sandbox.succeed("create", "r", "--key-ring", "ring")
        try sandbox.succeed("keyring", "add", "ring", "two", "--activate")
        let due = try run(1, "status", "--stores", "r", "--key-ring", "ring")
        #expect(due.output.contains("age of the key unknown") && due.output.contains("due: rotation"), "\(due.output)")
        try sandbox.write("b.db", "no store")
        try sandbox.makeKey("b.key")
        let all = try run(2, "status", "--all", "--prometheus", "out.prom")
        #expect(all.output.contains("a.db: ") && all.error.contains("b.db: "), "\(all)")
        let samples = try PrometheusTests.samples(String(decoding: sandbox.contents("out.prom"), as: UTF8.self))
        let directory = StoreItem.identity(of: sandbox.directory)
        #expect(samples["sealdb_store_up"]?[directory + "/a.db"] == 1)
        #expect(samples["sealdb_store_up"]?[directory + "/b.db"] == 0)
        #expect(try sandbox.mode("out.prom") == 0o644)
        #expect(try sandbox.names().filter { $0.hasPrefix(".") } == [])
    }

    /// Nothing but a file of its own is replaced.
    @Test func aFileOfSomebodyElse() throws {
        let before = try sandbox.contents("a.db")
        try sandbox.write("text", "# HELP other 1\n")
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("link"), withDestinationPath: "new.prom")
        for name in ["a.db", "text", "link", "."] {
            let outcome = try run(73, "status", "--all", "--prometheus", name)
            #expect(outcome.output.isEmpty && outcome.error.contains("It was not changed"), "\(outcome)")
        }
        #expect(try sandbox.contents("a.db") == before)
        try sandbox.write("new.prom", "")
        for _ in 1...2 { try run(0, "status", "--all", "--prometheus", "new.prom") }
        #expect(try !sandbox.contents("new.prom").isEmpty)
        try run(73, "status", "--all", "--prometheus", "no/such/directory/x.prom")
    }

    @Test func usage() throws {
        try run(64, "status")
        try run(64, "status", "--all", "--stores", "a.db")
        try run(64, "status", "journal", "--prometheus", "x")
        try run(66, "status", "--all", "--config", "/dev/null")
        try sandbox.write("c.conf", "[store \"\(sandbox.path("none/*"))\"]\nkey-ring = /r\n")
        try run(66, "status", "--all")
    }

    @Test func recordsThatCannotBeBelieved() throws {
        let state = sandbox.path("state")
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: state).first)
        try sandbox.write("state/" + name, "{}")
        try run(2, "status", "--all")
        try sandbox.write("state/" + name, "{}", mode: 0o666)
        #expect(try run(2, "status", "--all").error.contains("changed by other users"))
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: state)
        #expect(try run(2, "status", "--all").error.contains("may be written to by other users"))
        // What was done is done, and it is told that it was not noted.
        let verified = try run(0, "verify", "a.db")
        #expect(verified.error.contains("was not noted"), "\(verified.error)")
        #expect(try run(78, "config", "check").output.contains("may be written to by other users"))
    }
}
