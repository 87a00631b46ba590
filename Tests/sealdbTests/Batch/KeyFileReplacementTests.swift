import Foundation
import Testing

/// Rotations after which the new key file has the name of the old one.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct KeyFileReplacementTests {
    private let sandbox: Sandbox
    private let templates = [
        "--key-template", "key-file:{stem}.key", "--new-key-template", "key-file:{stem}.new", "--replace-key-files",
    ]

    init() throws {
        sandbox = try Sandbox()
    }

    /// A store under "NAME.key" that is to have "NAME.new"; what these files hold.
    private func make(_ name: String) throws -> (old: Data, new: Data) {
        try sandbox.makeKey("\(name).key")
        try sandbox.makeKey("\(name).new")
        try sandbox.succeed("create", "\(name).db", "--key-file", "\(name).key")
        return (try sandbox.contents("\(name).key"), try sandbox.contents("\(name).new"))
    }

    private func rotate(_ more: String...) throws -> Outcome {
        try sandbox.run([Tool.sealdb, "rotate", "a.db", "--key-file", "a.key", "--new-key-file", "a.new"] + more)
    }

    private func opens(_ store: String, _ keyFile: String) throws -> Bool {
        try sandbox.sealdb("query", store, "SELECT 1", "--key-file", keyFile).status == 0
    }

    private func expectReplaced(
        _ name: String,
        _ keys: (old: Data, new: Data),
        former: String = ".old",
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(try sandbox.contents("\(name).key") == keys.new, sourceLocation: sourceLocation)
        #expect(try sandbox.contents("\(name).key\(former)") == keys.old, sourceLocation: sourceLocation)
        #expect(!sandbox.exists("\(name).new"), sourceLocation: sourceLocation)
        #expect(try opens("\(name).db", "\(name).key"), sourceLocation: sourceLocation)
    }

    // MARK: One store

    @Test func theNewKeyTakesTheOldPlace() throws {
        let keys = try make("a")
        guard chmod(sandbox.path("a.key"), 0o400) == 0 else { throw CocoaError(.fileWriteUnknown) }
        let plan = try rotate("--replace-key-files", "--dry-run")
        #expect(plan.status == 0 && plan.output.contains("a.key.old"), "\(plan.error)")
        #expect(try sandbox.names() == ["a.db", "a.key", "a.new"])
        let outcome = try rotate("--replace-key-files")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output.contains("\(sandbox.path("a.key")) holds the new key now"))
        try expectReplaced("a", keys)
        #expect(try sandbox.names() == ["a.db", "a.key", "a.key.old"])
        #expect(try sandbox.mode("a.key") == 0o400)
        // The next time needs another name for the old key.
        try sandbox.makeKey("a.new")
        let second = (old: keys.new, new: try sandbox.contents("a.new"))
        let taken = try rotate("--replace-key-files")
        #expect(taken.status == 73 && taken.error.contains("Move it away"), "\(taken.error)")
        #expect(try opens("a.db", "a.key") && sandbox.contents("a.key.old") == keys.old)
        #expect(try rotate("--replace-key-files=.2026").status == 0)
        try expectReplaced("a", second, former: ".2026")
    }

    @Test func inOtherDirectoriesAndWithJSON() throws {
        let keys = try make("a")
        for name in ["old", "new"] {
            try FileManager.default.createDirectory(atPath: sandbox.path(name), withIntermediateDirectories: false)
        }
        try FileManager.default.moveItem(atPath: sandbox.path("a.key"), toPath: sandbox.path("old/k"))
        try FileManager.default.moveItem(atPath: sandbox.path("a.new"), toPath: sandbox.path("new/k"))
        let outcome = try sandbox.succeed(
            "rotate",
            "a.db",
            "--key-file",
            "old/k",
            "--new-key-file",
            "new/k",
            "--replace-key-files",
            "--json"
        )
        let json = try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any]
        #expect(json?["keyFile"] as? String == sandbox.path("old/k"))
        #expect(json?["formerKeyFile"] as? String == sandbox.path("old/k.old"))
        #expect(try sandbox.contents("old/k") == keys.new && sandbox.contents("old/k.old") == keys.old)
        #expect(!sandbox.exists("new/k"))
    }

    // MARK: What is refused

    /// Before anything is rotated, whatever would be in the way at the end.
    @Test func refusals() throws {
        let keys = try make("a")
        let links = FileManager.default
        func refuse(
            _ status: Int32,
            _ words: String,
            _ arguments: [String],
            location: SourceLocation = #_sourceLocation
        )
            throws
        {
            for more in [["--dry-run"], []] {
                let outcome = try sandbox.run(
                    [Tool.sealdb, "rotate", "a.db", "--replace-key-files"] + arguments + more
                )
                #expect(outcome.status == status, "\(outcome.error)", sourceLocation: location)
                #expect(outcome.error.contains(words), "\(outcome.error)", sourceLocation: location)
                #expect(try sandbox.contents("a.key") == keys.old, sourceLocation: location)
                #expect(try opens("a.db", "a.key"), sourceLocation: location)
            }
        }
        let files = ["--key-file", "a.key", "--new-key-file", "a.new"]
        try refuse(64, "both the old and the new", ["--key-file", "a.key", "--new-key-file", "./a.key"])
        try refuse(64, "cannot take the place", ["--key-file", "a.key", "--new-key-command", "/bin/cat a.new"])
        try refuse(64, "cannot take the place", ["--key-command", "/bin/cat a.key", "--new-key-file", "a.new"])
        try refuse(64, "cannot take the place", ["--key-file", "a.key", "--new-passphrase-file", "a.new"])
        try refuse(64, "is in no file", ["--key-file", "a.key", "--new-prompt"])
        try refuse(66, "a.none", ["--key-file", "a.key", "--new-key-file", "a.none"])
        try sandbox.succeed("keyring", "create", "ring", "one")
        try refuse(64, "key ring ring", ["--key-file", "a.key", "--new-key-ring", "ring"])
        try refuse(64, "key ring ring", ["--key-ring", "ring"])
        try links.createSymbolicLink(atPath: sandbox.path("link"), withDestinationPath: "a.key")
        try refuse(78, "symbolic links", ["--key-file", "link", "--new-key-file", "a.new"])
        try refuse(78, "symbolic links", ["--key-file", "a.new", "--new-key-file", "link"])
        for name in ["a.key", "a.new"] {
            try links.linkItem(atPath: sandbox.path(name), toPath: sandbox.path("second"))
            try refuse(78, "2 hard links", files)
            try links.removeItem(atPath: sandbox.path("second"))
        }
        try sandbox.makeKey("a.key.old")
        let other = try sandbox.contents("a.key.old")
        try refuse(73, "does not hold the key", files)
        #expect(try sandbox.contents("a.key.old") == other)
        try sandbox.write("a.key.old", "notes\n")
        try refuse(73, "does not hold the key", files)
        try links.removeItem(atPath: sandbox.path("a.key.old"))
        try sandbox.write("a.copy", keys.old)
        try refuse(64, "the same key", ["--key-file", "a.key", "--new-key-file", "a.copy"])
        try sandbox.fail(64, "rotate", "a.db", "--replace-key-files=", "--key-file", "a.key", "--new-key-file", "a.new")
        try sandbox.fail(
            64,
            "rotate",
            "a.db",
            "--replace-key-files=/x",
            "--key-file",
            "a.key",
            "--new-key-file",
            "a.new"
        )
        #expect(try rotate("--replace-key-files").status == 0)
        try expectReplaced("a", keys)
    }

    /// A file can have only one part in a batch.
    @Test func filesOfSeveralStores() throws {
        for name in ["a", "b"] { _ = try make(name) }
        for map in [
            "a.db\tkey-file:a.key\tkey-file:a.new\nb.db\tkey-file:b.key\tkey-file:a.new\n",
            "a.db\tkey-file:a.key\tkey-file:a.new\nb.db\tkey-file:a.key\tkey-file:b.new\n",
            "a.db\tkey-file:a.key\tkey-file:b.key\nb.db\tkey-file:b.key\tkey-file:b.new\n",
            "a.db\tkey-file:a.key\tkey-file:a.new\nb.db\tkey-file:a.key.old\tkey-file:b.new\n",
        ] {
            try sandbox.write("map", map)
            let outcome = try sandbox.sealdb("rotate", "--key-map", "map", "--replace-key-files")
            #expect(outcome.status == 64 && outcome.error.contains("more than one part"), "\(outcome.error)")
        }
        #expect(try opens("a.db", "a.key") && opens("b.db", "b.key"))
        #expect(!sandbox.exists("sealdb-rotate.journal"))
    }

    /// Who may not write there learns it before anything is rotated. Root may write everywhere.
    @Test(.enabled(if: geteuid() == 0, "needs root, to become another user"))
    func directoriesAndFilesOfOthers() throws {
        let keys = try make("a")
        let mine = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Tool.sealdb]
        try FileManager.default.createDirectory(atPath: sandbox.path("keys"), withIntermediateDirectories: false)
        for name in ["a.key", "a.new"] {
            try FileManager.default.moveItem(atPath: sandbox.path(name), toPath: sandbox.path("keys/\(name)"))
            guard chown(sandbox.path("keys/\(name)"), 65534, 65534) == 0 else { throw CocoaError(.fileWriteUnknown) }
        }
        let parent = (sandbox.directory as NSString).deletingLastPathComponent
        for path in [sandbox.directory, sandbox.path("a.db")] {
            guard chown(path, 65534, 65534) == 0 else { throw CocoaError(.fileWriteUnknown) }
        }
        guard chmod(parent, 0o755) == 0, chmod(sandbox.path("keys"), 0o755) == 0 else {
            throw CocoaError(.fileWriteUnknown)
        }
        // Whether this user can run the command where it was built is not known.
        guard try sandbox.run(mine + ["--version"]).status == 0 else { return }
        let arguments = ["rotate", "a.db", "--key-file", "keys/a.key", "--new-key-file", "keys/a.new"]
        let outcome = try sandbox.run(mine + arguments + ["--replace-key-files"])
        #expect(outcome.status == 73 && outcome.error.contains("cannot write to"), "\(outcome.error)")
        // One that cannot be read cannot be synced.
        #expect(chmod(sandbox.path("keys"), 0o733) == 0)
        let unread = try sandbox.run(mine + arguments + ["--replace-key-files"])
        #expect(unread.status == 73 && unread.error.contains("cannot read"), "\(unread.error)")
        #expect(try sandbox.contents("keys/a.key") == keys.old)
        #expect(try sandbox.run(mine + ["query", "a.db", "SELECT 1", "--key-file", "keys/a.key"]).status == 0)
    }

    // MARK: Interruptions

    /// Killed at each call that changes a directory, and run again.
    @Test(arguments: ["link", "rename", "renameat2", "unlink"])
    func killedAndRunAgain(call: String) throws {
        let keys = try make("a")
        let store = try sandbox.contents("a.db")
        var kills = 0
        for number in 1...12 {
            try sandbox.removeAll(but: [])
            try sandbox.write("a.db", store)
            try sandbox.write("a.key", keys.old)
            try sandbox.write("a.new", keys.new)
            let command = [
                Tool.sealdb, "rotate", "a.db", "--key-file", "a.key", "--new-key-file", "a.new", "--replace-key-files",
            ]
            let inject = ["-e", "trace=\(call)", "-e", "inject=\(call):signal=KILL:when=\(number)"]
            let outcome = try sandbox.run(["strace", "-f", "-qq", "-o", "/dev/null"] + inject + command)
            if outcome.status == 0 { break }
            kills += 1
            let held = try ["a.key", "a.key.old", "a.new"].filter { sandbox.exists($0) }.map {
                try sandbox.contents($0)
            }
            #expect(held.contains(keys.old) && held.contains(keys.new), "\(call) \(number)")
            #expect(try opens("a.db", "a.key") || opens("a.db", "a.new"), "\(call) \(number)")
            let again = try sandbox.run(command)
            // If only the last step was done, there is no new key file any more, and that is told.
            let isTold = again.status == 66 && again.error.contains("there is nothing to do")
            #expect(again.status == 0 || isTold, "\(call) \(number): \(again.error)")
            try expectReplaced("a", keys)
            if !isTold { #expect(try sandbox.names() == ["a.db", "a.key", "a.key.old"], "\(call) \(number)") }
        }
        if call != "renameat2" { #expect(kills > 0, "\(call)") }
    }

    /// A batch with a key file for each store: the same command goes on, wherever it was.
    @Test(arguments: ["link", "rename", "unlink", "fsync"])
    func aBatchGoesOn(call: String) throws {
        var keys: [String: (old: Data, new: Data)] = [:]
        for name in ["a", "b", "c"] { keys[name] = try make(name) }
        let command = [Tool.sealdb, "rotate", "a.db", "b.db", "c.db"] + templates
        var runs = 0
        for number in [3, 5, 8, 2, 1] {
            let inject = ["-e", "trace=\(call)", "-e", "inject=\(call):signal=KILL:when=\(number)"]
            let outcome = try sandbox.run(["strace", "-f", "-qq", "-o", "/dev/null"] + inject + command)
            if outcome.status == 0 { break }
            runs += 1
            for (name, keys) in keys {
                let files = ["\(name).key", "\(name).key.old", "\(name).new"].filter { sandbox.exists($0) }
                let held = try files.map { try sandbox.contents($0) }
                #expect(held.contains(keys.old) && held.contains(keys.new), "\(name) \(call) \(number)")
                #expect(try opens("\(name).db", "\(name).key") || opens("\(name).db", "\(name).new"))
            }
        }
        #expect(runs > 0)
        if sandbox.exists("a.new") || sandbox.exists("b.new") || sandbox.exists("c.new") {
            let outcome = try sandbox.run(command)
            #expect(outcome.status == 0, "\(outcome.error)")
        } else {
            // All is in place, but perhaps not recorded.
            _ = try sandbox.run(command)
        }
        for (name, keys) in keys { try expectReplaced(name, keys) }
        #expect(try sandbox.sealdb("status", "sealdb-rotate.journal").status == 0)
    }

    /// The old key stays where the first run began to keep it, though the ending is the day and another one has come.
    @Test(arguments: ["link", "fsync", "unlink"])
    func aBatchGoesOnWithAnotherEnding(call: String) throws {
        var reached: Set<[String]> = []
        for number in 1...8 {
            try sandbox.removeAll(but: [])
            let keys = try make("a")
            func command(_ ending: String) -> [String] {
                [
                    Tool.sealdb, "rotate", "a.db", "--journal", "log", "--key-file", "a.key", "--new-key-file", "a.new",
                    "--replace-key-files=\(ending)",
                ]
            }
            let inject = [
                "-P", sandbox.path("a.key"), "-P", sandbox.path("a.new"), "-P", sandbox.path("a.key.first"), "-e",
                "trace=\(call)", "-e", "inject=\(call):signal=KILL:when=\(number)",
            ]
            let strace = ["strace", "-f", "-qq", "-o", "/dev/null"] + inject
            guard try sandbox.run(strace + command(".first")).status != 0 else { break }
            let hasBegun = try String(decoding: sandbox.contents("log"), as: UTF8.self).contains("\"replacing\"")
            if hasBegun { reached.insert(try sandbox.names()) }
            let former = hasBegun ? "a.key.first" : "a.key.second"
            let again = try sandbox.run(command(".second"))
            #expect(again.status == 0, "\(call) \(number): \(again.error)")
            #expect(try sandbox.contents("a.key") == keys.new && opens("a.db", "a.key"))
            #expect(try sandbox.contents(former) == keys.old, "\(call) \(number)")
            #expect(try sandbox.names() == ["a.db", "a.key", former, "log"], "\(call) \(number)")
        }
        #expect(!reached.isEmpty, "\(call)")
    }

    /// The journal tells of what was cut off, and of what it was.
    @Test func statusTellsOfIt() throws {
        for name in ["a", "b"] { _ = try make(name) }
        let command = [Tool.sealdb, "rotate", "a.db", "b.db"] + templates
        let inject = ["-e", "trace=link", "-e", "inject=link:signal=KILL:when=1"]
        let outcome = try sandbox.run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-P", sandbox.path("a.key")] + inject + command
        )
        #expect(outcome.status != 0)
        let status = try sandbox.sealdb("status", "sealdb-rotate.journal")
        #expect(status.status == 2)
        #expect(
            status.output.contains(
                "\(sandbox.path("a.db")): has the new key; \(sandbox.path("a.new")) is taking the place of "
                    + sandbox.path("a.key")
            ),
            "\(status.output)"
        )
        let json = try sandbox.sealdb("status", "sealdb-rotate.journal", "--json")
        let object = try JSONSerialization.jsonObject(with: json.outputData) as? [String: Any]
        let replacing = (object?["replacing"] as? [[String: String]])?.first
        #expect(replacing?["keyFile"] == sandbox.path("a.key") && replacing?["newKeyFile"] == sandbox.path("a.new"))
        #expect(try sandbox.run(command).status == 0)
        #expect(try sandbox.sealdb("status", "sealdb-rotate.journal").status == 0)
        // When all is done, a new key file is needed.
        let again = try sandbox.run(command)
        #expect(again.status == 66 && again.error.contains("does not exist"), "\(again.error)")
    }

    // MARK: One key file for several stores

    @Test func aSharedFileWaitsForAllStores() throws {
        let stores = try sandbox.makeFleet(3)
        let keys = (old: try sandbox.contents("key"), new: try sandbox.contents("new"))
        try FileManager.default.copyItem(atPath: sandbox.path("s02"), toPath: sandbox.path("whole"))
        try sandbox.write("s02", "no store")
        let command =
            [Tool.sealdb, "rotate"] + stores
            + [
                "--key-file", "key", "--new-key-file", "new", "--replace-key-files", "--continue-on-error", "--jobs",
                "2",
            ]
        let outcome = try sandbox.run(command)
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("key is not replaced, because these stores may still have its key: s02"))
        #expect(try sandbox.contents("key") == keys.old && sandbox.contents("new") == keys.new)
        #expect(!sandbox.exists("key.old"))
        try FileManager.default.removeItem(atPath: sandbox.path("s02"))
        try FileManager.default.moveItem(atPath: sandbox.path("whole"), toPath: sandbox.path("s02"))
        let again = try sandbox.run(command)
        #expect(again.status == 0, "\(again.error)")
        #expect(again.lines.filter { $0.contains("holds the new key now") }.count == 1, "\(again.output)")
        #expect(try sandbox.contents("key") == keys.new && sandbox.contents("key.old") == keys.old)
        #expect(!sandbox.exists("new"))
        for store in stores { #expect(try opens(store, "key")) }
    }

    /// The store has its new key, and its file cannot be replaced: that is told, and the same command completes it.
    @Test func theReplacementFails() throws {
        let keys = try make("a")
        let command = [
            Tool.sealdb, "rotate", "a.db", "--key-file", "a.key", "--new-key-file", "a.new", "--replace-key-files",
        ]
        let inject = ["-P", sandbox.path("a.key"), "-e", "trace=link", "-e", "inject=link:error=EIO"]
        let outcome = try sandbox.run(["strace", "-f", "-qq", "-o", "/dev/null"] + inject + command)
        #expect(outcome.status == 73, "\(outcome.error)")
        #expect(outcome.error.contains("It has the new key, but \(sandbox.path("a.new")) has not taken the place"))
        #expect(try opens("a.db", "a.new") && sandbox.contents("a.key") == keys.old)
        #expect(try sandbox.run(command).status == 0)
        try expectReplaced("a", keys)
    }
}
