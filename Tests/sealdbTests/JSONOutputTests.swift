import Foundation
import Testing

/// The objects of `--json` and `--progress json`, against the page that documents them.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct JSONOutputTests {
    private let sandbox: Sandbox
    /// The members of each kind of object, and of the result of each command.
    private let kinds: [String: Set<String>]
    private let commands: [String: Set<String>]

    init() throws {
        sandbox = try Sandbox()
        let package = #filePath.components(separatedBy: "/Tests/")[0]
        let page = "\(package)/Sources/SealedDB/SealedDB.docc/CommandOutput.md"
        let lines = try String(contentsOfFile: page, encoding: .utf8).split(separator: "\n")
        var kinds: [String: Set<String>] = [:]
        var commands: [String: Set<String>] = [:]
        for line in lines where line.hasPrefix("| `") {
            let cells = line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
            func words(_ cell: Substring) -> [String] {
                cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                    .filter { $0.offset % 2 == 1 }.map { String($0.element) }
            }
            let name = words(cells[0])[0]
            if cells.count == 3 { kinds[name] = Set(words(cells[2])) } else { commands[name] = Set(words(cells[1])) }
        }
        (self.kinds, self.commands) = (kinds, commands)
        try sandbox.makeStore()
        try sandbox.makeKey("other")
    }

    private func objects(_ text: String, _ location: SourceLocation = #_sourceLocation) throws -> [[String: Any]] {
        try text.split(separator: "\n").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(object, "\(line)", sourceLocation: location)
        }
    }

    /// Runs a command with `--json`, and compares what it prints with the page.
    /// - Returns: the result, without the members that every one has.
    @discardableResult
    private func run(
        _ status: Int32,
        _ result: String,
        _ path: String?,
        _ arguments: String...,
        location: SourceLocation = #_sourceLocation
    ) throws -> [String: Any] {
        try run(status, result, path, arguments, location: location)
    }

    @discardableResult
    private func run(
        _ status: Int32,
        _ result: String,
        _ path: String?,
        _ arguments: [String],
        location: SourceLocation = #_sourceLocation
    ) throws -> [String: Any] {
        let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--json"])
        #expect(outcome.status == status, "\(arguments): \(outcome.error)", sourceLocation: location)
        let objects = try objects(outcome.output, location)
        var last = try #require(objects.last, sourceLocation: location)
        for object in objects {
            let kind = try #require(object["kind"] as? String, sourceLocation: location)
            var known = try #require(kinds[kind], "\(kind)", sourceLocation: location)
            if kind == "result" { known.formUnion(try #require(commands[arguments[0]], sourceLocation: location)) }
            let unknown = Set(object.keys).subtracting(known).subtracting(["kind"])
            #expect(unknown.isEmpty, "\(arguments): \(unknown)", sourceLocation: location)
        }
        #expect(objects.filter { $0["kind"] as? String == "result" }.count == 1, sourceLocation: location)
        #expect(last["status"] as? String == result, "\(arguments): \(last)", sourceLocation: location)
        #expect(last["exitCode"] as? Int == Int(status), sourceLocation: location)
        #expect(last["path"] as? String == path.map { sandbox.path($0) }, "\(last)", sourceLocation: location)
        #expect((last["message"] != nil) == ["failed", "partial"].contains(result), sourceLocation: location)
        for member in ["kind", "path", "status", "exitCode", "message"] { last[member] = nil }
        return last
    }

    /// What fails before any store is looked at is the failure of the one that was named, or of none.
    @Test func aKeyThatIsNotThere() throws {
        for (stores, path) in [(["db"], "db"), (["db", "new"], nil)] as [([String], String?)] {
            for command in ["verify", "rotate"] {
                let new = command == "rotate" ? ["--new-key-file", "other"] : []
                try run(66, "failed", path, [command] + stores + ["--key-file", "gone"] + new)
            }
        }
    }

    @Test func eachCommandThatGoesWell() throws {
        let key = ["--key-file", "key"]
        func expect(_ result: [String: Any], _ members: String..., location: SourceLocation = #_sourceLocation) {
            #expect(Set(members).isSubset(of: result.keys), "\(result)", sourceLocation: location)
        }
        try run(0, "done", "new.key", "keygen", "new.key")
        try run(0, "done", "new", "create", "new", key[0], key[1])
        let sql = "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, x'00') RETURNING a, b"
        #expect(try run(0, "done", "new", "exec", "new", sql, key[0], key[1])["changeCount"] as? Int == 1)
        try sandbox.write("rows.csv", "a,b\n1,2\n3\n")
        let imported = try run(
            2,
            "partial",
            "new",
            "import",
            "new",
            "u",
            "rows.csv",
            "--rejects",
            "bad",
            key[0],
            key[1]
        )
        #expect(imported["rowCount"] as? Int == 1 && imported["rejectedCount"] as? Int == 1)
        expect(try run(0, "done", "db", "backup", "db", "copy", key[0], key[1]), "backupPath", "pageCount")
        let restored = try run(0, "done", "new", "restore", "copy", "new", "--replace", key[0], key[1])
        expect(restored, "pageCount", "replacedPath")
        expect(try run(0, "done", "db", "verify", "db", key[0], key[1]), "isSound", "damagedPages")
        expect(try run(0, "done", "db", "info", "db", key[0], key[1]), "fileKind", "details", "diagnosis")
        expect(try run(0, "done", "db", "info", "db"), "fileKind", "salt")
        let rotation = ["rotate", "copy", "--key-file", "key", "--new-key-file", "other"]
        expect(
            try run(
                0,
                "planned",
                "copy",
                rotation[0],
                rotation[1],
                "-n",
                rotation[2],
                rotation[3],
                rotation[4],
                rotation[5]
            ),
            "neededSpace"
        )
        for status in ["done", "unchanged"] {
            try run(0, status, "copy", rotation[0], rotation[1], rotation[2], rotation[3], rotation[4], rotation[5])
        }
        try run(0, "unchanged", "db", "migrate", "db", key[0], key[1])
        for (status, more) in [("planned", ["-n"]), ("done", [])] {
            let arguments = ["migrate", "new", "--new-page-size", "8192", key[0], key[1]] + more
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--json"])
            let last = try #require(try objects(outcome.output).last)
            #expect(last["status"] as? String == status && last["to"] != nil)
        }
        let decrypted = try run(0, "done", "db", "decrypt", "db", "plain", "--allow-plaintext", key[0], key[1])
        expect(decrypted, "plaintextPath", "pageCount")
        expect(try run(0, "done", "again", "encrypt", "plain", "again", key[0], key[1]), "pageCount")
        expect(try run(0, "same", "db", "diff", "db", "again", key[0], key[1]), "otherPath", "differenceCount")
        try sandbox.succeed("exec", "again", "DELETE FROM people WHERE id < 9", "--key-file", "key")
        #expect(try run(1, "different", "db", "diff", "db", "again", key[0], key[1])["differenceCount"] as? Int == 1)
        expect(try run(0, "done", "db", "recover", "db", "saved", key[0], key[1]), "tables", "problems")
        expect(try run(0, "done", nil, "doctor"), "sqliteVersion", "checks")
        for arguments in [
            ["create", "ring", "a"], ["add", "ring", "b"], ["activate", "ring", "b"],
            ["remove", "ring", "a", "--yes"], ["reinstate", "ring", "a"],
        ] {
            let result = try run(0, "done", "ring", ["keyring"] + arguments)
            #expect(result["keyID"] as? String == arguments[2])
        }
        #expect(try run(0, "done", "ring", "keyring", "list", "ring")["active"] as? String == "b")
        try sandbox.succeed("rotate", "db", "again", "--key-file", "key", "--new-key-file", "other")
        let status = try run(0, "done", "sealdb-rotate.journal", "status", "sealdb-rotate.journal")
        expect(status, "runs", "lastExitCode", "replacing")
        try sandbox.makeKey("next")
        let replacement = ["--key-file", "other", "--new-key-file", "next", "--replace-key-files"]
        expect(try run(0, "done", "db", ["rotate", "db"] + replacement), "keyFile", "formerKeyFile", "pageCount")
        let dated = ["backup", "db", "--into", ".", "--keep-last", "1", "--key-file", "other"]
        expect(try run(0, "done", "db", dated), "backupPath", "pageCount", "kept", "removed", "untouched")
        expect(try run(0, "planned", "db", dated + ["-n"]), "backupPath", "kept", "removed", "untouched")
    }

    @Test func configurationAndStatus() throws {
        let directory = sandbox.directory
        try sandbox.write(
            "c.conf",
            "[defaults]\nstate-directory = \(directory)/state\n[store \"\(directory)/db\"]\nkey-file = {dir}/key\n"
        )
        let checked = try run(0, "done", "c.conf", "config", "check", "c.conf")
        #expect(Set(checked.keys) == ["sections", "problems"])
        let shown = try run(0, "done", "db", "config", "show", "db", "--config", "c.conf")
        #expect(Set(shown.keys) == ["configuration", "pattern", "settings"])
        try sandbox.write("bad.conf", "colour = red")
        try run(78, "failed", "bad.conf", "config", "check", "bad.conf")
        try run(78, "failed", nil, "verify", "db", "--config", "bad.conf")
        try sandbox.succeed("verify", "db", "--config", "c.conf")
        try sandbox.succeed("backup", "db", "copy", "--config", "c.conf")
        let outcome = try sandbox.succeed("status", "--all", "--json", "--config", "c.conf")
        let result = try #require(try objects(outcome.output).first)
        let known = try #require(commands["status"]?.union(kinds["result"] ?? []))
        #expect(Set(result.keys).subtracting(known) == ["kind"], "\(result)")
        #expect(Set(["keyChangedAt", "verifiedAt", "backedUpAt", "due"]).isSubset(of: result.keys), "\(result)")
    }

    @Test func eachCommandThatFails() throws {
        try sandbox.write("junk", "no store")
        try sandbox.makeKey("third")
        let key = ["--key-file", "key"]
        try run(73, "failed", "key", "keygen", "key")
        try run(73, "failed", "db", "create", "db", key[0], key[1])
        try run(65, "failed", "db", "exec", "db", "SELEC", key[0], key[1])
        try run(66, "failed", "db", "import", "db", "t", "absent.csv", key[0], key[1])
        try run(73, "failed", "db", "backup", "db", "junk", key[0], key[1])
        try run(73, "failed", "db", "restore", "junk", "db", key[0], key[1])
        try run(65, "failed", "new", "restore", "junk", "new", key[0], key[1])
        try run(65, "failed", "junk", "verify", "junk", key[0], key[1])
        try run(77, "failed", "db", "info", "db", "--key-file", "other")
        try run(77, "failed", "db", "rotate", "db", "--key-file", "other", "--new-key-file", "third")
        try run(77, "failed", "db", "migrate", "db", "--key-file", "other")
        try run(77, "failed", "db", "decrypt", "db", "plain", "--allow-plaintext", "--key-file", "other")
        try run(65, "failed", "new", "encrypt", "junk", "new", key[0], key[1])
        try run(77, "failed", "db", "diff", "db", "db", "--key-file", "other")
        try run(77, "failed", "db", "recover", "db", "saved", "--key-file", "other")
        try run(66, "failed", "ring", "keyring", "add", "ring", "b")
        try run(66, "failed", "ring", "keyring", "list", "ring")
        try run(66, "failed", "absent", "status", "absent")
        // A key that cannot be had: nothing was opened.
        try run(66, "failed", "db2", "create", "db2", "--key-file", "absent")
    }

    /// Every member that the page names is one that something prints; else the page would promise too much.
    @Test func damageIsAResult() throws {
        try sandbox.overwrite("db", at: 5000, with: [1, 2, 3, 4])
        let damaged = try run(65, "failed", "db", "verify", "db", "--key-file", "key")
        #expect(damaged["damagedPages"] as? [Int] == [2])
        let saved = try run(2, "partial", "db", "recover", "db", "saved", "--key-file", "key")
        #expect(saved["damagedPages"] as? [Int] == [2])
    }

    @Test func standardErrorHasJSONAlone() throws {
        for arguments in [
            ["verify", "db", "--key-file", "key"],
            ["verify", "db", "absent", "--key-file", "key", "--continue-on-error"],
            ["verify", "db", "--key-file", "other"], ["rotate", "db", "--key-file", "other", "--new-key-file", "key"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--progress", "json"])
            let objects = try objects(outcome.error)
            #expect(outcome.status == 0 || objects.contains { $0["kind"] as? String == "message" }, "\(outcome.error)")
            for object in objects {
                let kind = try #require(object["kind"] as? String)
                let known = try #require(kinds[kind])
                #expect(Set(object.keys).subtracting(known).subtracting(["kind"]).isEmpty, "\(object)")
            }
        }
    }

    @Test func quietIsQuiet() throws {
        for arguments in [
            ["keygen", "k"], ["create", "c", "--key-file", "k"],
            ["exec", "c", "CREATE TABLE t (a)", "--key-file", "k"],
            ["verify", "db", "--key-file", "key"], ["backup", "db", "b", "--key-file", "key"],
            ["verify", "db", "b", "--key-file", "key"], ["rotate", "b", "--key-file", "key", "--new-key-file", "k"],
            ["diff", "c", "c", "--key-file", "k"], ["recover", "c", "s", "--key-file", "k"],
            ["decrypt", "c", "p", "--key-file", "k", "--allow-plaintext"], ["encrypt", "p", "e", "--key-file", "k"],
            ["restore", "b", "r", "--key-file", "k"], ["migrate", "c", "--key-file", "k"],
            ["keyring", "create", "ring", "a"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["-q"])
            #expect(outcome.status == 0 && outcome.output.isEmpty && outcome.error.isEmpty, "\(arguments): \(outcome)")
        }
        // Rows are what was asked for, and what is wrong is told.
        #expect(try sandbox.succeed("exec", "c", "SELECT 7 AS n", "--key-file", "k", "-q").output.contains("7"))
        #expect(try sandbox.sealdb("diff", "c", "db", "--key-file", "k", "--other-key-file", "key", "-q").status == 1)
        try sandbox.overwrite("db", at: 5000, with: [1, 2, 3, 4])
        #expect(try sandbox.sealdb("verify", "db", "--key-file", "key", "-q").output.hasPrefix("page 2: damaged\n"))
        try sandbox.fail(64, "verify", "db", "--key-file", "key", "-q", "--json")
        try sandbox.fail(64, "backup", "db", "-", "--key-file", "key", "--json")
        try sandbox.fail(64, "keygen", "-", "--json")
    }
}
