import Foundation
import Testing

@Suite(.enabled(if: isEncrypting, "the plain build takes no key"))
struct PromptTests {
    private func terminal(_ sandbox: Sandbox, _ arguments: String...) throws -> Terminal {
        try Terminal([Tool.sealdb] + arguments, directory: sandbox.directory, environment: ["TERM": "xterm"])
    }

    @Test func asksTwiceForANewPassphraseAndOnceForAnOldOne() throws {
        let sandbox = try Sandbox()
        let creating = try terminal(sandbox, "create", "db", "--prompt")
        try creating.expect("Passphrase for db: ")
        creating.type("correct horse\n")
        try creating.expect(": ")
        creating.type("correct horse\n")
        #expect(creating.wait() == 0, "\(creating.transcript)")
        // Nothing that was typed is shown.
        #expect(!creating.transcript.contains("horse"))

        let querying = try terminal(sandbox, "query", "db", "SELECT 40 + 2", "--prompt")
        try querying.expect("Passphrase of db: ")
        querying.type("correct horse\n")
        #expect(querying.wait() == 0)
        #expect(querying.transcript.contains("42"))
        try sandbox.succeed("query", "db", "SELECT 1", "--passphrase-fd", "0", input: "correct horse\n")
    }

    @Test func wrongPassphrase() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("create", "db", "--passphrase-fd", "0", input: "correct horse\n")
        let querying = try terminal(sandbox, "query", "db", "SELECT 40 + 2", "--prompt")
        try querying.expect(": ")
        querying.type("battery staple\n")
        #expect(querying.wait() == 77)
        #expect(!querying.transcript.contains("42"))
    }

    @Test func newPassphrasesThatDiffer() throws {
        let sandbox = try Sandbox()
        let creating = try terminal(sandbox, "create", "db", "--prompt")
        try creating.expect(": ")
        creating.type("correct horse\n")
        try creating.expect(": ")
        creating.type("correct house\n")
        #expect(creating.wait() != 0)
        #expect(!sandbox.exists("db"))
    }

    @Test func rotatesFromOnePassphraseToAnother() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("create", "db", "--passphrase-fd", "0", input: "old words\n")
        let rotating = try terminal(sandbox, "rotate", "db", "--prompt", "--new-prompt")
        try rotating.expect("Passphrase of db: ")
        rotating.type("old words\n")
        try rotating.expect("New passphrase of db: ")
        rotating.type("new words\n")
        try rotating.expect(": ")
        rotating.type("new words\n")
        #expect(rotating.wait() == 0, "\(rotating.transcript)")
        try sandbox.succeed("query", "db", "SELECT 1", "--passphrase-fd", "0", input: "new words\n")
        try sandbox.fail(77, "query", "db", "SELECT 1", "--passphrase-fd", "0", input: "old words\n")
    }

    @Test func withoutATerminal() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run(["setsid", "-w", Tool.sealdb, "create", "db", "--prompt"], input: "words\n")
        #expect([66, 78].contains(outcome.status), "\(outcome.status) \(outcome.error)")
        #expect(!sandbox.exists("db"))
    }
}
