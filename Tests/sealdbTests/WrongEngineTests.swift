import Foundation
import Testing

/// With libsqlite3 ahead of libsqlcipher, keying does nothing and files are plaintext. Every command must refuse.
@Suite(.enabled(if: isEncrypting, "the plain build links libsqlite3"))
struct WrongEngineTests {
    private func preload(_ sandbox: Sandbox) throws -> [String: String?] {
        let directory = try sandbox.run(["pkg-config", "--variable=libdir", "sqlite3"]).lines.first
        return ["LD_PRELOAD": try #require(directory) + "/libsqlite3.so"]
    }

    @Test func everyCommandRefusesAndNoFileAppears() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("new")
        try sandbox.write("rows.csv", "a\n1\n")
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        let before = try (sandbox.names(), sandbox.contents("db"), sandbox.contents("plain"))
        let environment = try preload(sandbox)
        for arguments in [
            ["create", "fresh"], ["encrypt", "plain", "fresh"], ["import", "db", "t", "rows.csv"],
            ["query", "db", "SELECT 1"], ["query", "plain", "SELECT 1"], ["exec", "db", "CREATE TABLE t (a)"],
            ["exec", "plain", "CREATE TABLE u (a)"], ["info", "db"], ["verify", "db"],
            ["rotate", "db", "--new-key-file", "new"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-file", "key"], environment: environment)
            #expect(outcome.status == 78, "\(arguments): \(outcome.status) \(outcome.error)")
            #expect(outcome.error.contains("SQLCipher"))
        }
        #expect(try sandbox.names() == before.0)
        #expect(try sandbox.contents("db") == before.1)
        #expect(try sandbox.contents("plain") == before.2)
    }

    @Test func doctorFindsIt() throws {
        let sandbox = try Sandbox()
        for more in [[], ["--json"]] {
            let outcome = try sandbox.run([Tool.sealdb, "doctor"] + more, environment: try preload(sandbox))
            #expect(outcome.status == 78)
            #expect(outcome.error.contains("Failed: "))
            #expect(!outcome.output.isEmpty)
        }
    }
}
