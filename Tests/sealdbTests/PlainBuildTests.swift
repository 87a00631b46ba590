import Foundation
import Testing

/// What the build without a cipher does with keys: nothing at all.
@Suite(.hangLimit, .enabled(if: !isEncrypting, "for the plain build alone"))
struct PlainBuildTests {
    @Test func commandsThatTakeAKeyRefuse() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.makeKey("new")
        try sandbox.write("rows.csv", "a\n1\n")
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        let before = try (sandbox.names(), sandbox.contents("plain"))
        for arguments in [
            ["create", "fresh"], ["encrypt", "plain", "fresh"], ["import", "plain", "t2", "rows.csv"],
            ["query", "plain", "SELECT 1"], ["exec", "plain", "CREATE TABLE u (a)"], ["info", "plain"],
            ["verify", "plain"], ["rotate", "plain", "--new-key-file", "new"], ["migrate", "plain"],
            ["backup", "plain", "fresh"], ["restore", "plain", "fresh"],
            ["decrypt", "plain", "fresh", "--allow-plaintext"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-file", "key"])
            #expect(outcome.status == 78, "\(arguments): \(outcome.status) \(outcome.error)")
            #expect(outcome.output.isEmpty)
            #expect(outcome.error.hasPrefix("sealdb: This build of sealdb has no encryption"))
        }
        #expect(try sandbox.names() == before.0)
        #expect(try sandbox.contents("plain") == before.1)
    }

    @Test func infoWithoutAKey() throws {
        let sandbox = try Sandbox()
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        #expect(try sandbox.succeed("info", "plain").output.contains("plaintext"))
        try sandbox.fail(66, "info", "absent")
    }
}
