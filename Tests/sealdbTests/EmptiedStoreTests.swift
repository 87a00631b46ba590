import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct EmptiedStoreTests {
    static let commands = [
        ["query", "SELECT 1"], ["exec", "CREATE TABLE t (a)"], ["verify"], ["verify", "--deep"], ["info"],
        ["rotate", "--new-key-file", "new"], ["rotate", "--new-key-file", "new", "--dry-run"], ["migrate"],
        ["migrate", "--dry-run"], ["backup", "copy"], ["decrypt", "plain", "--allow-plaintext"],
    ]

    @Test(arguments: commands)
    func everyCommandSaysSo(command: [String]) throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.makeKey("new")
        try sandbox.write("db", "")
        for store in ["db", "/dev/null"] {
            let arguments = [command[0], store] + command.dropFirst() + ["--key-file", "key"]
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status == 65, "\(outcome.output)\(outcome.error)")
            #expect(outcome.error.contains(store == "db" ? "is empty" : "not a regular file"), "\(outcome.error)")
        }
        #expect(try sandbox.names() == ["db", "key", "new"])
        #expect(try sandbox.contents("db").isEmpty)
    }

    /// One such store does not take the others of a batch with it.
    @Test(arguments: [[], ["--dry-run"]])
    func batchGoesOn(more: [String]) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("new")
        try sandbox.write("empty", "")
        let outcome = try sandbox.run(
            [Tool.sealdb, "rotate", "empty", "db", "--key-file", "key", "--new-key-file", "new", "--continue-on-error"]
                + more
        )
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(outcome.output.contains(more.isEmpty ? "1 changed" : "1 to change"), "\(outcome.output)")
        #expect(try sandbox.contents("empty").isEmpty)
    }
}
