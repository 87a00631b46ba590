import Foundation
import Testing

/// A key that could not be read again is given to no store.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct KeyConfirmationTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
        // Prints 64 digits, other ones each time.
        try sandbox.writeProgram("fresh-key", "#!/bin/sh\nod -An -N32 -tx1 /dev/urandom | tr -d ' \\n'\n")
        try sandbox.writeProgram("same-key", "#!/bin/sh\nprintf %064d 7\n")
    }

    private func expectUnchanged(_ more: [String] = []) throws {
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        #expect(Set(try sandbox.names()) == Set(["db", "key", "fresh-key", "same-key"] + more))
    }

    private func expectRefused(_ status: Int32, _ arguments: String..., leaving more: [String] = []) throws {
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == status, "\(arguments): \(outcome.error)")
        #expect(outcome.error.contains("Another key was read"), "\(arguments): \(outcome.error)")
        #expect(outcome.error.contains("\(sandbox.path("fresh-key"))"), "\(arguments): \(outcome.error)")
        try expectUnchanged(more)
    }

    /// The swap removes it, or the next who opens the store.
    @Test(arguments: ["-shm", "-wal", "-journal"])
    func aKeyWithTheNameOfWhatBelongsToTheStore(ending: String) throws {
        let name = "db" + ending
        try sandbox.fail(73, "keygen", name)
        try sandbox.fail(73, "keyring", "create", name, "first")
        try sandbox.fail(73, "backup", "db", name, "--key-file", "key")
        try sandbox.fail(73, "create", name, "--key-file", "key")
        try sandbox.fail(73, "decrypt", "db", name, "--key-file", "key", "--allow-plaintext")
        try expectUnchanged()
        try sandbox.makeKey("new-key")
        try FileManager.default.moveItem(atPath: sandbox.path("new-key"), toPath: sandbox.path(name))
        let outcome = try sandbox.sealdb("rotate", "db", "--key-file", "key", "--new-key-file", name)
        #expect(outcome.status != 0)
        #expect(try sandbox.contents(name).count >= 64)
        try FileManager.default.moveItem(atPath: sandbox.path(name), toPath: sandbox.path("new-key"))
        try expectUnchanged(["new-key"])
    }

    @Test func aCommandThatPrintsAnotherKeyEachTime() throws {
        let fresh = sandbox.path("fresh-key")
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        let more = ["plain", "copy", "copy.key"]
        try sandbox.makeKey("copy.key")
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key", "--new-key-file", "copy.key")
        try expectRefused(69, "rotate", "db", "--key-file", "key", "--new-key-command", fresh, leaving: more)
        try expectRefused(69, "create", "new", "--key-command", fresh, leaving: more)
        try expectRefused(69, "encrypt", "plain", "new", "--key-command", fresh, leaving: more)
        try expectRefused(69, "backup", "db", "new", "--key-file", "key", "--new-key-command", fresh, leaving: more)
    }

    /// Its name is in the directory; a power failure could take it away.
    @Test func theDirectoryOfAKeyFileIsSynced() throws {
        try FileManager.default.createDirectory(atPath: sandbox.path("keys"), withIntermediateDirectories: false)
        try sandbox.makeKey("keys/new")
        let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=openat,fsync,rename"]
        let keys = ["--key-file", "key", "--new-key-file", "keys/new"]
        #expect(try sandbox.run(strace + [Tool.sealdb, "rotate", "db"] + keys).status == 0)
        let calls = String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n")
        let swap = try #require(calls.lastIndex { $0.contains("rename(") })
        for name in ["keys", "keys/new"] {
            // What is done next with the descriptor of the file that was opened.
            let isSynced = calls[..<swap].indices.contains { index in
                guard calls[index].contains("\(name)\", "), let number = calls[index].split(separator: " ").last else {
                    return false
                }
                let next = calls[(index + 1)..<swap].first {
                    $0.contains("sync(\(number))") || $0.hasSuffix(" = \(number)")
                }
                return next?.contains("sync(") ?? false
            }
            #expect(isSynced, "\(name)")
        }
    }

    @Test func aCommandThatPrintsTheSameKey() throws {
        let same = sandbox.path("same-key")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-command", same)
        try sandbox.succeed("create", "new", "--key-command", same)
        try sandbox.succeed("verify", "db", "new", "--key-command", same)
    }

    /// Each store of a batch by itself: the source may change between two.
    @Test func aBatchStopsAtTheStoreWhoseKeyIsNotThere() throws {
        try sandbox.succeed("backup", "db", "db2", "--key-file", "key")
        let counter = sandbox.path("count")
        // The same for the first reading and the first store.
        try sandbox.writeProgram(
            "late-key",
            "#!/bin/sh\nprintf x >>\(counter)\n[ $(wc -c <\(counter)) -le 2 ] && printf %064d 7 || printf %064d 8\n"
        )
        let outcome = try sandbox.run(
            [Tool.sealdb, "rotate", "db", "db2", "--key-file", "key", "--new-key-command", sandbox.path("late-key")]
        )
        #expect(outcome.status == 69, "\(outcome.error)")
        #expect(outcome.error.contains("db2: "))
        try sandbox.succeed("verify", "db", "--key-command", sandbox.path("same-key"))
        try sandbox.succeed("verify", "db2", "--key-file", "key")
    }

    @Test func aRingNamesAFileThatIsSynced() throws {
        try sandbox.makeKey("other")
        let traced = try sandbox.run(
            ["strace", "-f", "-e", "trace=fsync,rename,renameat2", "-y", Tool.sealdb]
                + ["keyring", "create", "ring", "a", "--key-file", "other"]
        )
        #expect(traced.status == 0, "\(traced.error)")
        let calls = traced.error.split(separator: "\n")
        let key = try #require(calls.firstIndex { $0.contains("fsync(") && $0.contains("/other>") })
        let ring = try #require(calls.firstIndex { $0.contains("rename") && $0.contains("ring") })
        #expect(key < ring)
    }
}
