import Foundation
import SealedDB
import Testing

/// By a second name of a store's file, its log is not found: who reads by that name would get old contents.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct SecondNamesTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
    }

    /// Makes a store "db" whose log takes the rows 1 to 5 away, as a service leaves it that was killed.
    private func makeStoreWithLog() throws {
        try sandbox.makeStore(journalMode: "wal")
        let service = try sandbox.connection()
        for id in 1...5 { try service.executeUpdate("DELETE FROM people WHERE id = \(id)") }
        let files = try ["db", "db-wal"].map { (name: $0, bytes: try sandbox.contents($0)) }
        service.close()
        try sandbox.removeAll(but: ["key"])
        for file in files { try sandbox.write(file.name, file.bytes) }
    }

    private func link(_ name: String, to second: String) throws {
        try FileManager.default.linkItem(atPath: sandbox.path(name), toPath: sandbox.path(second))
    }

    private func readers(of name: String) -> [[String]] {
        [
            ["query", name, "SELECT count(*) AS n FROM people"], ["dump", name], ["verify", name],
            ["verify", name, "--pages-only"], ["decrypt", name, "-", "--allow-plaintext"],
            ["decrypt", name, "x", "--allow-plaintext"], ["restore", name, "y"],
        ].map { $0 + ["--key-file", "key"] }
    }

    @Test func nobodyReadsThroughAHardLink() throws {
        try makeStoreWithLog()
        try link("db", to: "h")
        let files = (try sandbox.contents("db"), try sandbox.contents("db-wal"))
        // By its own name the file is refused, too: who writes by the other one leaves the log there.
        for name in ["h", "db"] {
            for call in readers(of: name) {
                let outcome = try sandbox.run([Tool.sealdb] + call)
                #expect(outcome.status == 78 && outcome.output.isEmpty, "\(call): \(outcome.output)\(outcome.error)")
                #expect(outcome.error.contains("2 hard links"), "\(call): \(outcome.error)")
                // Nothing was made, such as an empty log of the second name, or its index.
                #expect(try sandbox.names() == ["db", "db-wal", "h", "key"], "\(call)")
                #expect(try sandbox.contents("db") == files.0 && sandbox.contents("db-wal") == files.1, "\(call)")
            }
        }
        #expect(unlink(sandbox.path("h")) == 0)
        for call in readers(of: "db") {
            let outcome = try sandbox.run([Tool.sealdb] + call)
            #expect(outcome.status == 0, "\(call): \(outcome.error)")
        }
        // With what stands in the log.
        for store in ["db", "y"] {
            #expect(try sandbox.census(keyFile: "key", store: store).output == "45,1260,45\n", "\(store)")
        }
    }

    @Test func aPlaintextDatabaseWithAHardLinkIsNotEncrypted() throws {
        try sandbox.makeKey()
        let script = "CREATE TABLE t (a); INSERT INTO t VALUES (7);"
        #expect(try sandbox.run(["sqlite3", "plain"], input: script).status == 0)
        try link("plain", to: "h")
        let before = try sandbox.contents("plain")
        for name in ["h", "plain"] {
            let outcome = try sandbox.fail(78, "encrypt", name, "new", "--key-file", "key")
            #expect(outcome.error.contains("2 hard links"), "\(outcome.error)")
            #expect(try sandbox.names() == ["h", "key", "plain"])
            #expect(try sandbox.contents("plain") == before)
        }
        #expect(unlink(sandbox.path("h")) == 0)
        try sandbox.succeed("encrypt", "plain", "new", "--key-file", "key")
        #expect(try sandbox.succeed("query", "new", "SELECT a FROM t", "--key-file", "key").lines.last == "7")
    }
}
