import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct CreateTests {
    @Test func makesAnEncryptedFileForItsOwnerAlone() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        #expect(try sandbox.succeed("create", "db", "--key-file", "key").output == "db: new store\n")
        #expect(try sandbox.mode("db") == 0o600)
        #expect(try sandbox.names() == ["db", "key"])
        let contents = try sandbox.contents("db")
        #expect(contents.count == 4096)
        #expect(!contents.starts(with: Data("SQLite format 3".utf8)))
        try sandbox.succeed("verify", "db", "--key-file", "key")
    }

    @Test func neverOverwrites() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.write("db", "precious")
        try sandbox.fail(73, "create", "db", "--key-file", "key")
        #expect(try sandbox.contents("db") == Data("precious".utf8))
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("link"), withDestinationPath: "elsewhere")
        try sandbox.fail(73, "create", "link", "--key-file", "key")
        #expect(!sandbox.exists("elsewhere"))
    }

    @Test func cannotCreate() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.fail(73, "create", "no/such/directory/db", "--key-file", "key")
        try sandbox.fail(64, "create", "", "--key-file", "key")
    }

    /// SQLite gives these names a meaning of its own.
    @Test(arguments: [":memory:", "file:db?mode=memory"])
    func namesAreNames(name: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", name, "--key-file", "key")
        #expect(try sandbox.names() == [name, "key"].sorted())
        try sandbox.succeed("exec", name, "CREATE TABLE t (a)", "--key-file", "key")
        #expect(
            try sandbox.succeed("query", name, "SELECT name FROM sqlite_schema", "--key-file", "key").lines.last == "t"
        )
    }

    @Test func leavesNothingWhenTheDiskIsFull() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        let outcome = try sandbox.run(["prlimit", "--fsize=512", Tool.sealdb, "create", "db", "--key-file", "key"])
        #expect(outcome.status == 74, "\(outcome.error)")
        #expect(try sandbox.names() == ["key"])
    }
}
