import Foundation
import Testing

/// The stock `sqlcipher` shell as the second opinion, both ways, with both forms of key.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct InteroperabilityTests {
    private struct Form: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let file: String
        /// What the shell's PRAGMA key takes.
        let pragma: String
        let options: [String]

        static let all = [
            Form(
                testDescription: "raw key",
                file: String(repeating: "0123456789abcdef", count: 4) + "\n",
                pragma: "\"x'\(String(repeating: "0123456789abcdef", count: 4))'\"",
                options: ["--key-file", "secret"]
            ),
            Form(
                testDescription: "passphrase",
                file: "It's a \"passphrase\", größer\n",
                pragma: "'It''s a \"passphrase\", größer'",
                options: ["--passphrase-file", "secret"]
            ),
        ]
    }

    private let rows = "name,size\nzürich,1\n\"a,b\",2.5\n"

    private func shell(_ sandbox: Sandbox, _ form: Form, _ sql: String) throws -> Outcome {
        let outcome = try sandbox.run(["sqlcipher", "db"], input: "PRAGMA key = \(form.pragma);\n\(sql)\n")
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        return outcome
    }

    @Test(arguments: 0..<2)
    func writtenHereReadThere(form index: Int) throws {
        let form = Form.all[index]
        let sandbox = try Sandbox()
        try sandbox.write("secret", form.file)
        try sandbox.write("rows.csv", rows)
        #expect(try sandbox.run([Tool.sealdb, "create", "db"] + form.options).status == 0)
        #expect(try sandbox.run([Tool.sealdb, "import", "db", "t", "rows.csv"] + form.options).status == 0)
        let outcome = try shell(sandbox, form, "SELECT name || '|' || size FROM t; PRAGMA cipher_integrity_check;")
        #expect(outcome.lines == ["ok", "zürich|1.0", "a,b|2.5"])
    }

    @Test(arguments: 0..<2)
    func writtenThereReadHere(form index: Int) throws {
        let form = Form.all[index]
        let sandbox = try Sandbox()
        try sandbox.write("secret", form.file)
        _ = try shell(sandbox, form, "CREATE TABLE t (name, size); INSERT INTO t VALUES ('zürich', 1), ('a,b', 2.5);")
        let outcome = try sandbox.run(
            [Tool.sealdb, "query", "db", "SELECT * FROM t", "--format", "csv"] + form.options
        )
        #expect(outcome.output == rows, "\(outcome.error)")
        #expect(try sandbox.run([Tool.sealdb, "verify", "db"] + form.options).status == 0)
    }

    @Test(arguments: 0..<2)
    func rotatedHereReadThere(form index: Int) throws {
        let form = Form.all[index]
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("secret", form.file)
        let options = form.options.map { $0.hasPrefix("--") ? "--new-" + $0.dropFirst(2) : $0 }
        let rotated = try sandbox.run([Tool.sealdb, "rotate", "db", "--key-file", "key"] + options)
        #expect(rotated.status == 0, "\(rotated.error)")
        let outcome = try shell(sandbox, form, "SELECT count(*), sum(id) FROM people; PRAGMA cipher_integrity_check;")
        #expect(outcome.lines == ["ok", "50|1275"])
    }
}
