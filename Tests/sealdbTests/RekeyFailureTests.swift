import Foundation
import Testing

/// SQLCipher's own change of the key, in place, amid calls of the system that fail: what is told of the store is what is so.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct RekeyFailureTests {
    @Test(arguments: [
        ("delete", "pwrite64", "The store is whole under the old key"),
        ("delete", "fdatasync", "The store is whole under the old key"),
        ("wal", "fdatasync", "The store is whole under the old key"),
        ("wal", "ftruncate", "The store has the new key"),
    ])
    func theKeyIsTheOneThatIsTold(mode: String, call: String, state: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: mode)
        try sandbox.makeKey("new")
        let whole = try sandbox.contents("db")
        var told: [String] = []
        for when in ["1", "3", "3+", "4+", "6"] {
            try sandbox.removeAll(but: ["key", "new"])
            try sandbox.write("db", whole)
            let outcome = try sandbox.run(
                [
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):error=EIO:when=\(when)", Tool.path("FaultSubject"), "rekey", "db",
                    "--key-file", "key", "--new-key-file", "new",
                ]
            )
            let opening = try ["key", "new"].filter { try sandbox.census(keyFile: $0).output == Sandbox.wholeStore }
            if outcome.status == 0 || outcome.error.contains("has the new key") {
                #expect(opening == ["new"], "\(when): \(outcome.error)")
            } else if outcome.error.contains("has one of the two keys") {
                #expect(opening.count == 1, "\(when): \(outcome.error)")
            } else {
                // It says so, or had not begun.
                #expect(opening == ["key"], "\(when): \(outcome.error)")
            }
            told.append(outcome.error)
        }
        #expect(told.contains { $0.contains(state) }, "\(told)")
    }
}
