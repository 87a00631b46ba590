import Foundation
import Testing

/// What holds for every command that has `--json`, which ``allAreHere()`` counts.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct EveryCommandTests {
    /// A command that goes well, and one that fails once it knows its file.
    private struct Case {
        let name: String
        let goesWell: String?
        let fails: String?
        let path: String
        var status: Int32 = 66

        /// - Parameter name: the command's words.
        init(_ name: String, _ goesWell: String?, fails: String?, _ path: String, _ status: Int32 = 66) {
            (self.name, self.goesWell, self.fails, self.path, self.status) = (name, goesWell, fails, path, status)
        }
    }

    /// In the order in which they run.
    private static let cases: [Case] = [
        Case("keygen", "new", fails: "key", "key", 73),
        Case("keyring create", "ring a --key-file key", fails: "ring a", "ring", 73),
        Case("keyring add", "ring b", fails: "ring b", "ring", 65),
        Case("keyring activate", "ring b", fails: "ring c", "ring", 65),
        Case("keyring audit", "ring db", fails: "ring gone", "gone"),
        Case("keyring remove", "ring a --yes", fails: "ring x --yes", "ring", 65),
        Case("keyring reinstate", "ring a", fails: "ring x", "ring", 65),
        Case("keyring list", "ring", fails: "gone", "gone"),
        Case("create", "slotted --key-file key", fails: "db --key-file key", "db", 73),
        Case(
            "slots init",
            "slotted --key-file key --recovery-key-file recovery --label a",
            fails: "gone --key-file key --recovery-key-file recovery",
            "gone"
        ),
        Case(
            "slots add",
            "slotted b --key-file key --new-key-file other",
            fails: "db b --key-file key --new-key-file other",
            "db"
        ),
        Case("slots list", "slotted", fails: "db", "db"),
        Case("slots rename", "slotted b c --key-file key", fails: "db b c --key-file key", "db"),
        Case("slots test", "slotted --key-file key", fails: "db --key-file key", "db"),
        // Standard output takes the text itself.
        Case("slots export", nil, fails: nil, ""),
        Case("slots import", "slotted text --key-file key", fails: "slotted rows.csv --key-file key", "slotted", 65),
        Case("slots remove", "slotted c --key-file key --yes", fails: "db c --key-file key --yes", "db"),
        Case("slots reencrypt", "slotted --key-file key --yes", fails: "db --key-file key", "db"),
        Case("import", "db t rows.csv --key-file key", fails: "db t gone --key-file key", "db"),
        Case("diff", "db db --key-file key", fails: "gone db --key-file key", "gone"),
        Case("info", "db", fails: "gone", "gone"),
        Case("verify", "db --key-file key", fails: "gone --key-file key", "gone"),
        Case(
            "rotate",
            "copied --key-file key --new-key-file other",
            fails: "gone --key-file key --new-key-file other",
            "gone"
        ),
        Case("status", "journal", fails: "gone", "gone"),
        Case("migrate", "db --key-file key", fails: "gone --key-file key", "gone"),
        Case("backup", "db backup --key-file key", fails: "gone backup2 --key-file key", "gone"),
        Case("restore", "backup restored --key-file key", fails: "gone restored2 --key-file key", "restored2"),
        Case("recover", "db recovered --key-file key", fails: "gone recovered2 --key-file key", "gone"),
        Case(
            "decrypt",
            "db plain --key-file key --allow-plaintext",
            fails: "gone plain2 --key-file key --allow-plaintext",
            "gone"
        ),
        Case("encrypt", "plain sealed --key-file key", fails: "gone sealed2 --key-file key", "sealed2"),
        Case(
            "replicate",
            "logged --to repository --once --key-file key",
            fails: "gone --to repository --once --key-file key",
            "gone"
        ),
        Case("snapshots", "repository", fails: "gone", "gone"),
        Case("follow", "repository followed --once", fails: "gone followed2 --once", "followed2"),
        Case("export", nil, fails: "gone --to postgres:///gone --key-file key", "gone", 78),
        Case("doctor", "", fails: nil, ""),
        Case("config check", "sealdb.conf", fails: "gone", "gone", 78),
        Case("config show", "db --config sealdb.conf", fails: nil, ""),
        Case("exec", "db VACUUM --key-file key", fails: "db REINDEX\tgone --key-file key", "db", 65),
    ]

    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
        for key in ["other", "recovery"] { try sandbox.makeKey(key) }
        try sandbox.write("rows.csv", "a\n1\n")
        try sandbox.write("sealdb.conf", "[store \"\(sandbox.directory)/db\"]\nkey-file = {dir}/key\n")
        for name in ["copied", "batched", "logged"] {
            try FileManager.default.copyItem(atPath: sandbox.path("db"), toPath: sandbox.path(name))
        }
        try sandbox.succeed("exec", "logged", "PRAGMA journal_mode = wal", "--key-file", "key")
        let rotation = ["--key-file", "key", "--new-key-file", "other", "--journal", "journal"]
        #expect(try sandbox.run([Tool.sealdb, "rotate", "batched"] + rotation).status == 0)
    }

    private func arguments(_ one: Case, _ text: String) -> [String] {
        one.name.components(separatedBy: " ")
            + text.split(separator: " ").map { $0.replacingOccurrences(of: "\t", with: " ") } + ["--json"]
    }

    @Test func allAreHere() throws {
        let help = try sandbox.run([Tool.sealdb, "--experimental-dump-help"])
        let dump = try #require(try JSONSerialization.jsonObject(with: help.outputData) as? [String: Any])
        var names: Set<String> = []
        func look(_ command: [String: Any], _ path: [String]) throws {
            for one in command["subcommands"] as? [[String: Any]] ?? [] {
                try look(one, path + [#require(one["commandName"] as? String)])
            }
            let options = (command["arguments"] as? [[String: Any]] ?? []).compactMap { $0["valueName"] as? String }
            if options.contains("json") { names.insert(path.joined(separator: " ")) }
        }
        try look(#require(dump["command"] as? [String: Any]), [])
        let known = Set(EveryCommandTests.cases.map(\.name))
        #expect(names.subtracting(known).isEmpty && known.subtracting(names).isEmpty)
        #expect(known.count == EveryCommandTests.cases.count)
    }

    /// A result that nobody could be told is an error.
    @Test func resultsThatCannotBeWritten() throws {
        for one in EveryCommandTests.cases {
            if one.name == "slots import" {
                let slots = try sandbox.succeed("slots", "export", "slotted", "--key-file", "key").output
                try sandbox.write("text", slots)
            }
            guard let text = one.goesWell else { continue }
            let command = arguments(one, text)
            let outcome = try sandbox.run(["sh", "-c", "exec \"$0\" \"$@\" >/dev/full", Tool.sealdb] + command)
            #expect(outcome.status == 74, "\(command): \(outcome.error)")
            #expect(outcome.error.contains("Cannot write the result"), "\(command): \(outcome.error)")
        }
    }

    /// What failed is told in the form that was asked for, with the file that it is about.
    @Test func failures() throws {
        try sandbox.succeed("keyring", "create", "ring", "b")
        try sandbox.succeed("create", "slotted", "--key-file", "key")
        for one in EveryCommandTests.cases {
            guard let text = one.fails else { continue }
            let command = arguments(one, text)
            let outcome = try sandbox.run([Tool.sealdb] + command)
            #expect(outcome.status == one.status, "\(command): \(outcome.error)")
            let result = try #require(
                try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any],
                "\(command): \(outcome)"
            )
            #expect(result["status"] as? String == "failed", "\(command)")
            #expect(result["exitCode"] as? Int == Int(one.status), "\(command)")
            #expect(result["path"] as? String == sandbox.path(one.path), "\(command)")
            #expect((result["message"] as? String)?.isEmpty == false, "\(command)")
        }
    }
}
