import Foundation
import Testing

/// Keys, names and files of a kind that does not belong where they were given.
@Suite(.hangLimit)
struct MisplacedNamesTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.makeKey("new")
    }

    // MARK: Keys by the names of a store's files

    @Test(.enabled(if: isEncrypting, "the plain build takes no key"), arguments: ["-journal", "-wal", "-shm"])
    func aKeyBesideANewStore(ending: String) throws {
        try sandbox.succeed("keygen", "db\(ending)")
        let key = try sandbox.contents("db\(ending)")
        let names = try sandbox.names()
        let outcome = try sandbox.run([Tool.sealdb, "create", "db", "--key-file", "key"])
        #expect(outcome.status == 73 && outcome.error.contains("db\(ending)"), "\(outcome.error)")
        #expect(try sandbox.contents("db\(ending)") == key)
        #expect(try sandbox.names() == names)
    }

    /// Before the store is opened: the index of a store with a log is overwritten by whoever opens it first.
    @Test(.enabled(if: isEncrypting, "the plain build takes no key"), arguments: ["-journal", "-wal", "-shm"])
    func aKeyBesideAStore(ending: String) throws {
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = WAL", "--key-file", "key")
        let key = try sandbox.contents("key")
        try key.write(to: URL(fileURLWithPath: sandbox.path("db\(ending)")))
        for call in [
            ["query", "db", "SELECT 1"], ["exec", "db", "CREATE TABLE u (a)"], ["verify", "db"],
            ["backup", "db", "copy"],
            ["rotate", "db", "--new-key-file", "new"], ["dump", "db"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + call + ["--key-file", "key"])
            #expect(outcome.status != 0 && outcome.error.contains("db\(ending)"), "\(call): \(outcome.error)")
            #expect(try sandbox.contents("db\(ending)") == key, "\(call)")
        }
        try FileManager.default.removeItem(atPath: sandbox.path("db\(ending)"))
        try sandbox.succeed("verify", "db", "--key-file", "key")
    }

    // MARK: Keys in lists

    /// Runs the call, and expects that nothing shows the key, and that no file was made.
    private func expectUnshown(
        _ call: [String],
        _ key: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let names = try sandbox.names()
        let outcome = try sandbox.run([Tool.sealdb] + call)
        #expect(outcome.status == 64, "\(call): \(outcome.status)", sourceLocation: sourceLocation)
        #expect(
            outcome.error.contains("holds what may be a key"),
            "\(call): another error",
            sourceLocation: sourceLocation
        )
        let shown = (outcome.output + outcome.error).lowercased()
        #expect(!shown.contains(key.lowercased()), "\(call)", sourceLocation: sourceLocation)
        // Such as sealdb-rotate.journal.
        #expect(try sandbox.names() == names, "\(call)", sourceLocation: sourceLocation)
    }

    @Test(arguments: [
        [], ["--dry-run"], ["--continue-on-error"], ["--json"], ["--jobs", "2"], ["--journal", "j"], ["--keep-old"],
    ])
    func aKeyFileForTheListOfARotation(options: [String]) throws {
        let key = String(decoding: try sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        try #require(key.count == 64)
        let keys = ["--key-file", "key", "--new-key-file", "new"]
        try expectUnshown(["rotate", "--from-file", "key"] + keys + options, key)
        // Beside stores that are right, too.
        try expectUnshown(["rotate", "db", "--from-file", "key"] + keys + options, key)
        // Without a key that is a wrong call anyway, which does not show it either.
        let bare = try sandbox.run([Tool.sealdb, "rotate", "--from-file", "key"] + options)
        #expect(bare.status == 64 && !(bare.output + bare.error).contains(key))
        #expect(try sandbox.names() == ["key", "new"])
    }

    @Test(arguments: [[], ["--deep"], ["--continue-on-error"], ["--json"], ["--quiet"]])
    func aKeyFileForTheListOfAVerification(options: [String]) throws {
        let key = String(decoding: try sandbox.contents("key"), as: UTF8.self).trimmingCharacters(in: .newlines)
        try #require(key.count == 64)
        try expectUnshown(["verify", "--from-file", "key", "--key-file", "key"] + options, key)
        let bare = try sandbox.run([Tool.sealdb, "verify", "--from-file", "key"] + options)
        #expect(bare.status == 64 && !(bare.output + bare.error).contains(key))
    }

    /// With and without the salt, and in the form that SQLCipher's shell takes.
    @Test(arguments: [64, 96], [false, true])
    func everyFormOfAKey(count: Int, isLiteral: Bool) throws {
        let digits = String(String(repeating: "0aF", count: 32).prefix(count))
        let key = isLiteral ? "x'\(digits)'" : digits
        try sandbox.write("list", "db\n\(key)\n")
        try sandbox.write("list0", "db\0\(key)\0")
        try sandbox.write("map", "# stores\n\(key)\tkey-file:key\tkey-file:new\n")
        let keys = ["--key-file", "key"]
        for command in [["rotate", "--new-key-file", "new"], ["verify"]] {
            try expectUnshown(command + ["--from-file", "list"] + keys, digits)
            try expectUnshown(command + ["--from0", "list0"] + keys, digits)
        }
        for command in ["rotate", "verify"] { try expectUnshown([command, "--key-map", "map"], digits) }
    }

    // MARK: Directories

    /// Swift would repair its name, and so show, and note in journals, that of another one.
    @Test func aWorkingDirectoryWhoseNameIsNotText() throws {
        let name = Array((sandbox.directory + "/d").utf8) + [0xff, 0]
        func withName(_ body: (UnsafePointer<CChar>) -> Int32) -> Int32 {
            name.withUnsafeBufferPointer { bytes in
                bytes.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
            }
        }
        try #require(withName { mkdir($0, 0o700) } == 0)
        let script = #"cd "$(printf "$0")" && exec "$@""#
        let calls = [
            ["keygen", "made"], ["keygen", "../made"], ["verify", "../db", "--key-file", "../key"], ["doctor"],
        ]
        for call in calls {
            let outcome = try sandbox.run(["/bin/sh", "-c", script, #"d\377"#, Tool.sealdb] + call)
            #expect(outcome.status == 64 && outcome.output.isEmpty, "\(call): \(outcome.output)\(outcome.error)")
            #expect(outcome.error.contains("working directory is not UTF-8"), "\(call): \(outcome.error)")
        }
        // It is empty.
        #expect(withName { rmdir($0) } == 0)
        #expect(try sandbox.names() == ["key", "new"])
        // With another name of the directory the call is right.
        #expect(mkdir(sandbox.path("é"), 0o700) == 0)
        let outcome = try sandbox.run(["/bin/sh", "-c", script, "é", Tool.sealdb, "keygen", "made"])
        #expect(outcome.status == 0 && sandbox.exists("é/made"), "\(outcome.error)")
    }

    // MARK: Files of another kind

    @Test(.enabled(if: isEncrypting, "the plain build takes no key"))
    func aPipeIsNotReplacedByABackup() throws {
        try sandbox.succeed("create", "db", "--key-file", "key")
        try #require(mkfifo(sandbox.path("pipe"), 0o600) == 0)
        var before = stat()
        #expect(lstat(sandbox.path("pipe"), &before) == 0)
        for options in [["--replace"], ["--replace", "--force"]] {
            let call = [Tool.sealdb, "restore", "db", "pipe", "--key-file", "key"] + options
            let outcome = try sandbox.run(call)
            #expect(outcome.status == 65 && outcome.output.isEmpty, "\(outcome.output)\(outcome.error)")
            #expect(outcome.error.contains("is not a regular file"), "\(outcome.error)")
            var after = stat()
            #expect(lstat(sandbox.path("pipe"), &after) == 0)
            #expect(after.st_ino == before.st_ino && after.st_mode & S_IFMT == S_IFIFO)
            #expect(try sandbox.names() == ["db", "key", "new", "pipe"])
        }
    }

    /// The other name would keep the ring without the new key.
    @Test(arguments: [
        ["add", "ring", "c"], ["activate", "ring", "b"], ["remove", "ring", "b", "--yes", "--keep", "0"],
    ])
    func aKeyRingWithASecondName(call: [String]) throws {
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("keyring", "add", "ring", "b")
        try FileManager.default.linkItem(atPath: sandbox.path("ring"), toPath: sandbox.path("twin"))
        let before = try sandbox.contents("ring")
        let outcome = try sandbox.run([Tool.sealdb, "keyring"] + call)
        #expect(outcome.status == 78 && outcome.output.isEmpty, "\(outcome.output)\(outcome.error)")
        #expect(outcome.error.contains("2 hard links"), "\(outcome.error)")
        #expect(try sandbox.contents("ring") == before && sandbox.contents("twin") == before)
        var status = stat()
        #expect(lstat(sandbox.path("ring"), &status) == 0 && status.st_nlink == 2)
        #expect(try sandbox.names() == ["key", "new", "ring", "twin"])
        #expect(unlink(sandbox.path("twin")) == 0)
        #expect(try sandbox.run([Tool.sealdb, "keyring"] + call).status == 0)
        #expect(try sandbox.contents("ring") != before)
    }
}
