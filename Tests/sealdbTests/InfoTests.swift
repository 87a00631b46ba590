import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct InfoTests {
    private func json(_ outcome: Outcome) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any])
    }

    @Test func withoutAKey() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        let info = try json(try sandbox.succeed("info", "db", "--json"))
        #expect(info["fileKind"] as? String == "encrypted")
        #expect(info["fileSize"] as? Int == before.count)
        #expect(info["salt"] as? String == before.prefix(16).map { String(format: "%02x", $0) }.joined())
        #expect(info["details"] == nil)
        let text = try sandbox.succeed("info", "db").output
        #expect(text.contains("encrypted") && text.contains("\(before.count) bytes"))
        #expect(try sandbox.contents("db") == before)
    }

    @Test func withTheKey() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.succeed("exec", "db", "PRAGMA user_version = 12", "--key-file", "key")
        let before = try sandbox.contents("db")
        let info = try json(try sandbox.succeed("info", "db", "--json", "--key-file", "key"))
        let details = try #require(info["details"] as? [String: Any])
        #expect(details["userVersion"] as? Int == 12)
        #expect(details["pageSize"] as? Int == 4096)
        #expect(details["pageCount"] as? Int == before.count / 4096)
        #expect(details["tableCount"] as? Int == 1)
        #expect((details["journalMode"] as? String)?.lowercased() == "delete")
        let text = try sandbox.succeed("info", "db", "--key-file", "key").output
        #expect(text.contains("user version:") && text.contains("12"))
        #expect(text.contains(/format: +SQLCipher 4\n/))
        #expect(try sandbox.contents("db") == before)
    }

    @Test func otherFiles() throws {
        let sandbox = try Sandbox()
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        try sandbox.write("garbage", "not a database")
        try sandbox.write("empty", "")
        func kind(_ name: String) throws -> String? {
            try json(try sandbox.succeed("info", name, "--json"))["fileKind"] as? String
        }
        #expect(try kind("plain") == "plaintext")
        #expect(try kind("garbage") == "notADatabase")
        #expect(try kind("empty") == "emptyFile")
        #expect(try kind(".") == "directory")
    }

    @Test func siblings() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
        let other = try sandbox.connection()
        try other.executeUpdate("DELETE FROM people WHERE id = 1", values: nil)
        let info = try json(try sandbox.succeed("info", "db", "--json"))
        #expect((info["siblings"] as? [String])?.contains { $0.hasSuffix("-wal") } == true)
        other.close()
    }

    @Test func diagnoses() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let intact = try sandbox.contents("db")
        func finding(_ arguments: String...) throws -> [String: Any] {
            let outcome = try sandbox.run([Tool.sealdb, "info", "db", "--json"] + arguments)
            return try #require(try json(outcome)["diagnosis"] as? [String: Any])
        }
        #expect(try finding()["finding"] as? String == "encrypted")
        #expect((try finding()["possiblePageSizes"] as? [Int])?.contains(4096) == true)
        let opened = try finding("--key-file", "key")
        #expect(opened["finding"] as? String == "opens")
        #expect((opened["cipherSettings"] as? [String: Any])?["compatibility"] as? Int == 4)
        try sandbox.overwrite("db", at: 500, with: [1, 2, 3])
        let damaged = try sandbox.fail(65, "info", "db", "--key-file", "key")
        #expect(damaged.error.contains("the key is right, but the first page"))
        try sandbox.write("db", intact.dropLast(4096))
        #expect(try sandbox.fail(65, "info", "db", "--key-file", "key").error.contains("cut off"))
        try sandbox.write("db", Data(repeating: 65, count: 8192))
        #expect(try sandbox.fail(65, "info", "db", "--key-file", "key").error.contains("not a database"))
        #expect(try sandbox.succeed("info", "db").output.contains("not a database"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can be somebody else"))
    func withoutPermission() throws {
        let sandbox = try Sandbox()
        try sandbox.write("db", Data(count: 8192), mode: 0o000)
        let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
        let outcome = try sandbox.run(nobody + [Tool.sealdb, "info", "db"])
        // Which of the directories above keeps others out does not matter here.
        #expect(outcome.status == 66, "\(outcome.error)")
    }

    @Test func failures() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("other")
        try sandbox.fail(66, "info", "absent")
        try sandbox.fail(77, "info", "db", "--key-file", "other")
        #expect(!sandbox.exists("absent"))
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        try sandbox.fail(65, "info", "plain", "--key-file", "other")
    }
}
