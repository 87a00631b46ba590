import Foundation
import Testing

/// Whatever stops a rotation: the store is as it was, under the old key, and nothing lies beside it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct RotateFailureTests {
    private let rotate = ["rotate", "db", "--key-file", "key", "--new-key-file", "new"]

    private func makeStoreAndNewKey(journalMode: String = "delete") throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: journalMode)
        try sandbox.makeKey("new")
        return sandbox
    }

    private func checkUnchanged(_ sandbox: Sandbox, _ more: [String] = []) throws {
        // A failure in WAL mode may leave the log, which belongs to the store: whoever only looks does not take it away.
        let names = try sandbox.names().filter { $0 != "db-wal" && $0 != "db-shm" }
        #expect(names == (["db", "key", "new"] + more).sorted())
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        #expect(try sandbox.census(keyFile: "new").status == 77)
        try sandbox.succeed("verify", "db", "--key-file", "key")
    }

    @Test func wrongKey() throws {
        let sandbox = try makeStoreAndNewKey()
        try sandbox.makeKey("other")
        try sandbox.fail(77, "rotate", "db", "--key-file", "other", "--new-key-file", "new")
        try checkUnchanged(sandbox, ["other"])
    }

    @Test func sameKey() throws {
        let sandbox = try makeStoreAndNewKey()
        let before = try sandbox.contents("db")
        let outcome = try sandbox.fail(64, "rotate", "db", "--key-file", "key", "--new-key-file", "key")
        #expect(outcome.error.contains("unchanged"))
        #expect(try sandbox.contents("db") == before)
    }

    @Test func missingFiles() throws {
        let sandbox = try makeStoreAndNewKey()
        try sandbox.fail(66, "rotate", "absent", "--key-file", "key", "--new-key-file", "new")
        try sandbox.fail(66, "rotate", "db", "--key-file", "absent", "--new-key-file", "new")
        try sandbox.fail(66, "rotate", "db", "--key-file", "key", "--new-key-file", "absent")
        try checkUnchanged(sandbox)
    }

    @Test func hardLink() throws {
        let sandbox = try makeStoreAndNewKey()
        try FileManager.default.linkItem(atPath: sandbox.path("db"), toPath: sandbox.path("twin"))
        for more in [[], ["--dry-run"]] {
            let outcome = try sandbox.run([Tool.sealdb] + rotate + more)
            #expect(outcome.status == 78, "\(outcome.error)")
        }
        // By that name somebody may have a log, so nobody reads either.
        #expect(try sandbox.census(keyFile: "key").status == 78)
        try FileManager.default.removeItem(atPath: sandbox.path("twin"))
        try checkUnchanged(sandbox)
    }

    /// A plan fails as the rotation would.
    @Test func somethingElseInPlaceOfTheLock() throws {
        let sandbox = try makeStoreAndNewKey()
        try sandbox.write("db-sealdb-lock", "mine")
        for more in [[], ["--dry-run"]] {
            let outcome = try sandbox.run([Tool.sealdb] + rotate + more)
            #expect(outcome.status == 73 && outcome.error.contains("no lock file"), "\(outcome)")
        }
        #expect(unlink(sandbox.path("db-sealdb-lock")) == 0)
        try checkUnchanged(sandbox)
    }

    /// What keeps the old file from getting its name is told as it is.
    @Test func aNameForTheOldFileThatIsTooLong() throws {
        let sandbox = try makeStoreAndNewKey()
        let outcome = try sandbox.run([Tool.sealdb] + rotate + ["--keep-old=." + String(repeating: "o", count: 253)])
        #expect(outcome.status != 0 && outcome.error.contains("too long"), "\(outcome)")
        #expect(!outcome.error.contains("exists"), "\(outcome)")
        try checkUnchanged(sandbox)
    }

    @Test func plaintextAndForeignFiles() throws {
        let sandbox = try makeStoreAndNewKey()
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        let before = try sandbox.contents("plain")
        try sandbox.fail(65, "rotate", "plain", "--key-file", "key", "--new-key-file", "new")
        try sandbox.fail(65, "rotate", ".", "--key-file", "key", "--new-key-file", "new")
        #expect(try sandbox.contents("plain") == before)
        try checkUnchanged(sandbox, ["plain"])
    }

    @Test func damagedPage() throws {
        let sandbox = try makeStoreAndNewKey()
        try sandbox.overwrite("db", at: 2 * 4096, with: [UInt8](repeating: 0xa5, count: 64))
        let before = try sandbox.contents("db")
        let outcome = try sandbox.run([Tool.sealdb] + rotate)
        #expect(outcome.status == 65, "\(outcome.error)")
        #expect(try sandbox.contents("db") == before)
        #expect(try sandbox.names() == ["db", "key", "new"])
    }

    @Test func writerHoldsTheLock() throws {
        let sandbox = try makeStoreAndNewKey()
        let other = try sandbox.connection()
        try other.executeUpdate("BEGIN IMMEDIATE", values: nil)
        for more in [[], ["--dry-run"]] {
            let outcome = try sandbox.run([Tool.sealdb] + rotate + ["--lock-wait", "0"] + more)
            #expect(outcome.status == 75, "\(outcome.error)")
        }
        other.close()
        try checkUnchanged(sandbox)
    }

    @Test func readerHasTheStoreOpen() throws {
        let sandbox = try makeStoreAndNewKey(journalMode: "wal")
        let other = try sandbox.connection()
        let rows = try other.executeQuery("SELECT count(*) FROM people", values: nil)
        #expect(try rows.nextWithError())
        let outcome = try sandbox.run([Tool.sealdb] + rotate + ["--lock-wait", "0"])
        #expect(outcome.status == 75, "\(outcome.error)")
        rows.close()
        other.close()
        try checkUnchanged(sandbox)
    }

    /// The pages of the copy are written at once. In WAL mode the log is emptied before.
    @Test(arguments: [("delete", 1), ("wal", 1), ("wal", 2), ("wal", 5), ("wal", 7)])
    func fullDisk(journalMode: String, when: Int) throws {
        let sandbox = try makeStoreAndNewKey(journalMode: journalMode)
        let outcome = try sandbox.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
                "inject=pwrite64:error=ENOSPC:when=\(when)+", Tool.sealdb,
            ] + rotate
        )
        #expect(outcome.status == 74, "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains("unchanged"), "\(outcome.error)")
        try checkUnchanged(sandbox)
    }

    /// SQLCipher's own check of a file whose size cannot be had does not end.
    @Test func failingFileStatus() throws {
        let sandbox = try makeStoreAndNewKey()
        let strace = ["strace", "-f", "-qq", "-e", "trace=newfstatat,fstat"]
        #expect(try sandbox.run(strace + ["-o", "trace", Tool.sealdb] + rotate).status == 0)
        let trace = String(decoding: try sandbox.contents("trace"), as: UTF8.self)
        let lines = trace.split(separator: "\n")
        let main = try #require(lines.first?.prefix { $0 != " " })
        let calls = lines.filter { $0.hasPrefix(main + " ") }
        try #require(calls.count > 30)
        var failures = 0
        for when in stride(from: calls.count - 24, through: calls.count, by: 2) {
            let isDone = try sandbox.census(keyFile: "new").status == 0
            let keys = isDone ? ["new", "key"] : ["key", "new"]
            // strace counts each system call by itself, and which of the two reads a status depends on the C library.
            let fault = ["newfstatat", "fstat"].flatMap { name in
                let before = calls.prefix(when - 1).count { $0.contains(" \(name)(") }
                return ["-e", "inject=\(name):error=EIO:when=\(before + 1)+"]
            }
            let outcome = try sandbox.run(
                ["timeout", "60"] + strace + ["-o", "/dev/null"] + fault + [Tool.sealdb]
                    + ["rotate", "db", "--key-file", keys[0], "--new-key-file", keys[1]]
            )
            if outcome.status != 0 { failures += 1 }
            #expect(![124, 137].contains(outcome.status), "\(when): \(outcome.error)")
            #expect(try sandbox.names().filter { $0.hasPrefix(".") } == [], "\(when)")
            let opening = try keys.filter { try sandbox.census(keyFile: $0).output == Sandbox.wholeStore }
            #expect(opening.count == 1, "\(when): \(outcome.status) \(outcome.error)")
            if outcome.status == 0 { #expect(opening == [keys[1]]) }
        }
        #expect(failures > 3)
    }

    @Test func fileSizeLimit() throws {
        let sandbox = try makeStoreAndNewKey()
        let outcome = try sandbox.run(["prlimit", "--fsize=16384", Tool.sealdb] + rotate)
        #expect(outcome.status == 74, "\(outcome.error)")
        try checkUnchanged(sandbox)
    }

    @Test(arguments: ["fsync", "fdatasync", "rename,renameat,renameat2", "fchmod", "fchown"])
    func failingCall(call: String) throws {
        let sandbox = try makeStoreAndNewKey()
        let outcome = try sandbox.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(call):error=EIO",
                Tool.sealdb,
            ] + rotate
        )
        // Not every call is made; one that fails must not go unnoticed, nor be taken for something else.
        if outcome.status == 0 {
            #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
        } else {
            #expect([74, 78].contains(outcome.status), "\(outcome.status) \(outcome.error)")
            let opens = try ["key", "new"].filter { try sandbox.census(keyFile: $0).output == Sandbox.wholeStore }
            #expect(opens.count == 1)
        }
    }

    @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
    func signalsStopItCleanly(signal: Int32, status: Int32) throws {
        let sandbox = try makeStoreAndNewKey()
        // The signal comes while the copy is written.
        let outcome = try sandbox.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
                "inject=pwrite64:signal=\(signal):when=1", Tool.sealdb,
            ] + rotate
        )
        #expect(outcome.status == status, "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains("unchanged"))
        try checkUnchanged(sandbox)
    }

    /// Fails or alters a system call of the rotation.
    private func rotate(_ sandbox: Sandbox, injecting fault: String) throws -> Outcome {
        let call = String(fault.prefix { $0 != ":" })
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(fault)"]
        return try sandbox.run(strace + [Tool.sealdb] + rotate)
    }

    @Test(arguments: [
        ("fsync:error=EIO:when=1", 74), ("fsync:error=EIO:when=2", 74), ("rename:error=EIO", 74),
        ("fchmod:error=EPERM", 78),
        // Blocks of 4096 bytes, and none of them free.
        ("statfs:poke_exit=@arg2=00000000000000000010000000000000ff0000000000000000000000000000000000000000000000", 74),
    ])
    func failedCall(fault: String, status: Int32) throws {
        for journalMode in ["delete", "wal"] {
            let sandbox = try makeStoreAndNewKey(journalMode: journalMode)
            let outcome = try rotate(sandbox, injecting: fault)
            #expect(outcome.status == status, "\(outcome.status) \(outcome.error)")
            #expect(outcome.error.contains("unchanged"), "\(outcome.error)")
            try checkUnchanged(sandbox)
            let info = try sandbox.succeed("info", "db", "--key-file", "key", "--json")
            #expect(info.output.contains("\"journalMode\":\"\(journalMode)\""), "\(info.output)")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func ownerCannotBeKept() throws {
        let sandbox = try makeStoreAndNewKey()
        #expect(chown(sandbox.path("db"), 65534, 65534) == 0)
        let outcome = try rotate(sandbox, injecting: "fchown:error=EPERM")
        #expect(outcome.status == 78, "\(outcome.error)")
        #expect(outcome.error.contains("unchanged"))
        try checkUnchanged(sandbox)
    }

    /// The new key cannot be made to last, or its name, so it is not used.
    @Test(arguments: [2, 3])
    func newKeyCannotBeSynced(_ number: Int) throws {
        let sandbox = try makeStoreAndNewKey()
        let outcome = try rotate(sandbox, injecting: "fsync:error=EIO:when=\(number)")
        #expect(outcome.status == 74, "\(outcome.error)")
        #expect(outcome.error.contains("unchanged under the old key"))
        #expect(outcome.error.contains("The key could not be read again"))
        try checkUnchanged(sandbox)
    }

    /// The only failure after the swap: the message must not claim that nothing changed.
    @Test func directoryCannotBeSyncedAfterTheSwap() throws {
        let sandbox = try makeStoreAndNewKey()
        let outcome = try rotate(sandbox, injecting: "fsync:error=EIO:when=5")
        #expect(outcome.status == 74)
        #expect(outcome.error.contains("now has the new contents and key"))
        #expect(!outcome.error.contains("unchanged"))
        #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
        #expect(try sandbox.census(keyFile: "key").status == 77)
    }
}
