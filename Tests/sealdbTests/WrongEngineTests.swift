import Foundation
import SealedDB
import Testing

/// With libsqlite3 ahead of libsqlcipher, keying does nothing and files are plaintext. Every command must refuse.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build links libsqlite3"))
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

    /// Where keys are refused, none is fetched, and nobody is asked for one.
    @Test func noKeyIsFetchedForARotation() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("new")
        try sandbox.writeProgram("fetch", "#!/bin/sh\necho >>fetched; cat new\n")
        let command = [Tool.sealdb, "rotate", "db", "--key-file", "key", "--new-key-command", sandbox.path("fetch")]
        let outcome = try sandbox.run(command, environment: try preload(sandbox))
        #expect(outcome.status == 78, "\(outcome.error)")
        #expect(!sandbox.exists("fetched"))
        #expect(try sandbox.run(command).status == 0)
        #expect(sandbox.exists("fetched"))
    }

    @Test func doctorFindsIt() throws {
        let sandbox = try Sandbox()
        for more in [[], ["--json"]] {
            let outcome = try sandbox.run([Tool.sealdb, "doctor"] + more, environment: try preload(sandbox))
            #expect(outcome.status == 78)
            #expect(outcome.error.contains("Failed: "))
            // The build is not to blame.
            #expect(!outcome.output.contains("PlainSQLite"))
            #expect(!outcome.output.isEmpty)
        }
    }

    /// An update of libsqlcipher: the installed one with another source id, as each release of SQLite has its own.
    @Test func anUpdatedLibraryIsTaken() throws {
        let sandbox = try Sandbox()
        let engine = EngineInfo.current()
        let installed = try #require(engine.checks.first { $0.name == "object" }?.detail)
        var library = try Data(contentsOf: URL(fileURLWithPath: installed))
        let updated = String(engine.sourceID.dropLast(8)) + "00c0ffee"
        let place = try #require(library.range(of: Data(engine.sourceID.utf8)))
        library.replaceSubrange(place, with: Data(updated.utf8))
        let directory = sandbox.path("updated")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        let name = URL(fileURLWithPath: installed).lastPathComponent
        try library.write(to: URL(fileURLWithPath: "\(directory)/\(name)"))
        try sandbox.makeStore()
        let environment = ["LD_LIBRARY_PATH": directory]
        let doctor = try sandbox.run([Tool.sealdb, "doctor"], environment: environment)
        #expect(doctor.status == 0)
        #expect(doctor.output.contains(updated))
        let query = try sandbox.run(
            [Tool.sealdb, "query", "db", "SELECT 7 * 6", "--key-file", "key"],
            environment: environment
        )
        #expect(query.status == 0)
        #expect(query.output.contains("42"))
    }
}
