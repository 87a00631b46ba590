import Foundation
import SealedDB
import Testing

/// Looking never writes: not to the store, and not beside it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct LookingTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey("new")
    }

    static let looks = [
        ["info", "db", "--key-file", "key"], ["info", "db"], ["verify", "db", "--key-file", "key"],
        ["verify", "db", "--key-file", "key", "--deep"], ["doctor"],
        ["rotate", "db", "--key-file", "key", "--new-key-file", "new", "--dry-run"],
        // Has its new key already.
        ["rotate", "db", "--key-file", "new", "--new-key-file", "key", "--dry-run"],
        ["migrate", "db", "--key-file", "key", "--new-page-size", "8192", "--dry-run"],
        ["migrate", "db", "--key-file", "key"],
    ]

    /// Names, sizes, times and contents.
    private func snapshot(without suffix: String? = nil) throws -> [String: String] {
        var result: [String: String] = [:]
        for name in try sandbox.names() where suffix.map({ !name.hasSuffix($0) }) ?? true {
            var status = stat()
            #expect(lstat(sandbox.path(name), &status) == 0)
            let bytes = try sandbox.contents(name)
            result[name] =
                "\(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec) "
                + "\(bytes.hashValue)"
        }
        var directory = stat()
        #expect(stat(sandbox.path(""), &directory) == 0)
        result["."] = "\(directory.st_mtim.tv_sec).\(directory.st_mtim.tv_nsec)"
        return result
    }

    private func lookAndCompare(without suffix: String? = nil, status: Int32 = 0) throws {
        for command in LookingTests.looks {
            let before = try snapshot(without: suffix)
            let outcome = try sandbox.run([Tool.sealdb] + command)
            let isPlan = command.contains("--dry-run") && command[3] == "key"
            #expect(outcome.status == (isPlan ? status : 0), "\(command): \(outcome.output)\(outcome.error)")
            #expect(try snapshot(without: suffix) == before, "\(command)")
        }
    }

    @Test(arguments: ["delete", "wal"])
    func storeThatNobodyUses(journalMode: String) throws {
        try sandbox.makeStore(journalMode: journalMode)
        try lookAndCompare()
        let info = try sandbox.succeed("info", "db", "--key-file", "key").output
        let line = info.split(separator: "\n").first { $0.hasPrefix("journal mode:") }
        #expect(line?.hasSuffix(journalMode) == true, "\(info)")
    }

    /// A log of a service that is at work, with changes that are not in the file, and one that is all in the file.
    @Test(arguments: [true, false])
    func logOfAService(isInFile: Bool) throws {
        try sandbox.makeStore(journalMode: "wal")
        let service = try sandbox.connection()
        try service.executeUpdate("PRAGMA wal_autocheckpoint = 0", values: nil)
        try service.executeUpdate("DELETE FROM people WHERE id = 1", values: nil)
        if isInFile { #expect(service.executeStatements("PRAGMA wal_checkpoint(PASSIVE)")) }
        try lookAndCompare(without: "-shm", status: 75)
        let log = try sandbox.contents("db-wal")
        #expect(log.count > 4096)
        let verified = try sandbox.succeed("verify", "db", "--key-file", "key", "--deep")
        #expect(verified.output.contains("sound"))
        // What is told is true of file and log.
        try service.executeUpdate("PRAGMA user_version = 77", values: nil)
        #expect(try sandbox.succeed("info", "db", "--key-file", "key").output.contains("77"))
        service.close()
    }

    /// A frame that is committed, and not as it was written, is damage like any other.
    @Test func damagedFrameOfTheLog() throws {
        try sandbox.makeStore(journalMode: "wal")
        let service = try sandbox.connection()
        try service.executeUpdate("PRAGMA wal_autocheckpoint = 0", values: nil)
        try service.executeUpdate("DELETE FROM people WHERE id = 1", values: nil)
        // With the checksums that the log then has: anybody can compute them.
        var log = try sandbox.contents("db-wal")
        log[32 + 24 + 100] ^= 1
        try sandbox.write("db-wal", Forged.log(log))
        let outcome = try sandbox.run([Tool.sealdb, "verify", "db", "--key-file", "key"])
        #expect(outcome.status == 65, "\(outcome.output)\(outcome.error)")
        service.close()
    }

    /// Amid what is written to the file: in WAL mode that is the checkpoint when the command ends.
    private func killWhileWriting(_ mode: String, when: Int) throws {
        let call = "pwrite64"
        try sandbox.makeStore(journalMode: mode)
        let sql = "PRAGMA cache_size = 1; UPDATE people SET bio = bio || 'x'"
        let outcome = try sandbox.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)",
                "-e", "inject=\(call):signal=KILL:when=\(when)", Tool.sealdb, "exec", "db", sql, "--key-file", "key",
            ]
        )
        #expect(outcome.status != 0)
        unlink(sandbox.path("db-sealdb-lock"))
    }

    /// What a killed process leaves is looked at as SQLite would read it.
    @Test func hotJournal() throws {
        try killWhileWriting("delete", when: 30)
        #expect(try sandbox.contents("db-journal").count > 4096)
        try lookAndCompare()
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    /// SQLite looks into the journals of the other files before it removes the one of all.
    @Test func aTransactionOverSeveralFilesThatWasCutOff() throws {
        try sandbox.makeStore()
        try sandbox.write("other", sandbox.contents("db"))
        let sql = "ATTACH 'other' AS o; BEGIN; UPDATE people SET bio = 'x'; UPDATE o.people SET bio = 'x'; COMMIT"
        let call = "unlink"
        let outcome = try sandbox.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)",
                "-e", "inject=\(call):signal=KILL:when=1", Tool.sealdb, "exec", "db", sql, "--key-file", "key",
            ]
        )
        #expect(outcome.status != 0)
        #expect(try sandbox.names().filter { $0.contains("-mj") || $0.hasSuffix("-journal") }.count == 3)
        for store in ["db", "other"] {
            #expect(try sandbox.census(keyFile: "key", store: store).output == Sandbox.wholeStore)
        }
        #expect(try sandbox.names().allSatisfy { !$0.contains("-mj") && !$0.hasSuffix("-journal") })
    }

    @Test func logOfAKilledProcess() throws {
        try killWhileWriting("wal", when: 24)
        #expect(try sandbox.names().contains("db-wal"))
        try lookAndCompare()
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"), arguments: ["delete", "wal", "log"])
    func directoryThatMayNotBeWrittenTo(state: String) throws {
        if state == "log" { try killWhileWriting("wal", when: 24) } else { try sandbox.makeStore(journalMode: state) }
        unlink(sandbox.path("db-shm"))
        if state == "log" { #expect(chmod(sandbox.path("db-wal"), 0o644) == 0) }
        let root = URL(fileURLWithPath: sandbox.directory).deletingLastPathComponent().path
        #expect(chmod(root, 0o755) == 0 && chmod(sandbox.path(""), 0o755) == 0 && chmod(sandbox.path("db"), 0o644) == 0)
        #expect(chown(sandbox.path("key"), 65534, 65534) == 0)
        let before = try snapshot()
        for command in LookingTests.looks where command[0] == "info" || command[0] == "verify" {
            let outcome = try sandbox.run(["setpriv", "--reuid=65534", "--clear-groups", Tool.sealdb] + command)
            #expect(outcome.status == 0, "\(command): \(outcome.error)")
        }
        func run(_ arguments: String...) throws -> Outcome {
            let tool = ["setpriv", "--reuid=65534", "--clear-groups", Tool.sealdb]
            return try sandbox.run(tool + arguments + ["--key-file", "key"])
        }
        let query = try run("query", "db", "SELECT count(*) FROM people", "--format", "csv", "--no-header")
        #expect(query.output == "50\n", "\(query.error)")
        #expect(try run("tables", "db").output == "people\n")
        #expect(try run("dump", "db").lines.count { $0.hasPrefix("INSERT") } == 50)
        let image = try run("decrypt", "db", "-", "--allow-plaintext").outputData
        #expect(image.starts(with: Data("SQLite format 3".utf8)))
        // Whoever wants to write is told where and why not.
        let refused = try run("exec", "db", "DELETE FROM people")
        let message = state == "delete" ? "db: attempt to write" : "db cannot be read here"
        #expect(refused.status != 0 && refused.error.contains(message), "\(refused.error)")
        #expect(try snapshot() == before)
    }

    /// Backups on media that cannot be written to are there to be read.
    @Test(.enabled(if: geteuid() == 0, "only root can mount"), arguments: ["delete", "wal", "log", "journal"])
    func readOnlyMedium(state: String) throws {
        switch state {
        case "log": try killWhileWriting("wal", when: 24)
        case "journal": try killWhileWriting("delete", when: 30)
        default: try sandbox.makeStore(journalMode: state)
        }
        unlink(sandbox.path("db-shm"))
        let count = "SELECT count(*) FROM people WHERE bio LIKE 'known plaintext %'"
        let commands = [
            "query disk/db \"\(count)\" --format csv", "verify disk/db --deep", "info disk/db",
            "backup disk/db copy", "restore disk/db restored", "verify copy", "verify restored",
            "query copy \"\(count)\" --format csv", "query restored \"\(count)\" --format csv",
        ]
        let lines = commands.map { "echo '# \($0.prefix(12))'; '\(Tool.sealdb)' \($0) --key-file key || exit 1" }
        let script = """
            mkdir disk && mount -t tmpfs tmpfs disk && cp db* disk/ && mount -o remount,ro disk || exit 99
            \(lines.joined(separator: "\n"))
            '\(Tool.sealdb)' exec disk/db 'DELETE FROM people' --key-file key; test $? -ne 0
            """
        let outcome = try sandbox.run(["unshare", "-m", "sh", "-c", script])
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.error)")
        #expect(outcome.lines.filter { $0 == "50" }.count == 3, "\(outcome.output)")
    }

    /// Others may write to the file system, but nobody has the store open who would keep the index of its log.
    @Test(.enabled(if: geteuid() == 0, "only root can mount")) func aMountThatIsReadOnly() throws {
        try killWhileWriting("wal", when: 24)
        let script = """
            mkdir disk && cp db* disk/ && mount --bind disk disk && mount -o remount,ro,bind disk || exit 99
            test -e disk/db-shm && '\(Tool.sealdb)' restore disk/db restored --key-file key || exit 98
            '\(Tool.sealdb)' backup disk/db copy --key-file key
            """
        let outcome = try sandbox.run(["unshare", "-m", "sh", "-c", script])
        #expect(outcome.status == 66, "\(outcome.status) \(outcome.output)\(outcome.error)")
        #expect(
            outcome.error.contains("Nothing was copied") && outcome.error.contains("`sealdb restore`"),
            "\(outcome.error)"
        )
        #expect(!FileManager.default.fileExists(atPath: sandbox.path("copy")))
    }
}

/// A log whose checksums are right.
private enum Forged {
    static func log(_ log: Data) -> Data {
        var bytes = [UInt8](log)
        func word(_ offset: Int) -> UInt32 {
            let word = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
            return bytes[3] & 1 == 1 ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
        }
        var sum: (UInt32, UInt32) = (0, 0)
        func add(_ range: Range<Int>) {
            for offset in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
                sum.0 &+= word(offset) &+ sum.1
                sum.1 &+= word(offset + 4) &+ sum.0
            }
        }
        let pageSize = Int(bytes[10]) << 8 | Int(bytes[11])
        add(0..<24)
        for frame in stride(from: 32, to: bytes.count - 23 - pageSize, by: 24 + pageSize) {
            add(frame..<frame + 8)
            add(frame + 24..<frame + 24 + pageSize)
            for (index, part) in [sum.0, sum.1].enumerated() {
                for byte in 0..<4 {
                    bytes[frame + 16 + index * 4 + byte] = UInt8(truncatingIfNeeded: part >> (24 - 8 * byte))
                }
            }
        }
        return Data(bytes)
    }
}
