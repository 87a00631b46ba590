import Foundation
import SealedDB
import Testing

/// Calls of the system that fail, one after the other: what is told of the store is what is so.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct FailedCallTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
    }

    /// Runs the command with the call failing from the given time on, or only then.
    private func run(_ arguments: [String], failing call: String, when: String) throws -> Outcome {
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)"]
        return try sandbox.run(strace + ["-e", "inject=\(call):error=EIO:when=\(when)", Tool.sealdb] + arguments)
    }

    /// The script commits by itself, outside of a transaction of the command's own.
    @Test(arguments: ["delete", "truncate", "persist", "wal"], ["fdatasync", "ftruncate"])
    func whatIsStoredIsToldSo(mode: String, call: String) throws {
        try sandbox.succeed("exec", "db", "PRAGMA auto_vacuum = 1; VACUUM", "--key-file", "key")
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = \(mode)", "--key-file", "key")
        let whole = try sandbox.contents("db")
        let script = "PRAGMA journal_mode = \(mode); DELETE FROM people WHERE id > 10"
        var failures = 0
        for when in 1...12 {
            try sandbox.removeAll(but: ["key", "db"])
            try sandbox.write("db", whole)
            let outcome = try run(["exec", "db", script, "--key-file", "key"], failing: call, when: "\(when)")
            let count = try sandbox.succeed(
                "query",
                "db",
                "SELECT count(*) FROM people",
                "--key-file",
                "key",
                "--format",
                "csv"
            ).lines.last
            if outcome.status == 0 {
                #expect(count == "10")
                continue
            }
            failures += 1
            #expect(outcome.status == 74, "\(when): \(outcome.error)")
            #expect(["10", "50"].contains(count), "\(when): \(count ?? "")")
            // Which the exit code alone denies.
            let isTold = outcome.error.contains("may be stored") || outcome.error.contains("is stored")
            if count == "10" { #expect(isTold, "\(when): \(outcome.error)") }
        }
        if call != "ftruncate" || mode == "truncate" { #expect(failures > 0) }
    }

    /// The registers of a crash, and the memory at which they point, may hold a key.
    @Test(arguments: ["SEGV", "BUS", "ILL", "TRAP", "FPE", "ABRT"])
    func aCrashPrintsNoMemory(signal: String) throws {
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"]
        let outcome = try sandbox.run(
            strace + ["-e", "inject=fdatasync:signal=\(signal)", Tool.sealdb]
                + ["exec", "db", "DELETE FROM people", "--key-file", "key"],
            environment: ["SWIFT_BACKTRACE": "enable=yes,swift-backtrace=\(try backtracer())"]
        )
        #expect(outcome.status != 0)
        #expect(outcome.output + outcome.error == "", "\(outcome)")
    }

    /// The toolchain's program that prints a crash. A command with a static runtime does not find it by itself, and would
    /// say so.
    private func backtracer() throws -> String {
        struct Target: Decodable {
            struct Paths: Decodable { let runtimeResourcePath: String }
            let paths: Paths
        }
        let target = try sandbox.run(["swiftc", "-print-target-info"])
        let runtime = try JSONDecoder().decode(Target.self, from: target.outputData).paths.runtimeResourcePath
        let found = ["linux/swift-backtrace", "swift-backtrace"]
            .map { "\(runtime)/../../libexec/swift/\($0)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
        return try #require(found, "No swift-backtrace beside \(runtime)")
    }

    /// Who cannot wait is told what may be left.
    @Test func aSecondSignalSaysWhatMayBeLeft() throws {
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64"]
        let outcome = try sandbox.run(
            strace + ["-e", "inject=pwrite64:signal=INT", Tool.sealdb]
                + ["decrypt", "db", "plain", "--key-file", "key", "--allow-plaintext"]
        )
        #expect(outcome.status == 130)
        #expect(outcome.error.contains("second signal") && outcome.error.contains("plaintext"), "\(outcome)")
        #expect(!sandbox.exists("plain"))
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        try sandbox.succeed("decrypt", "db", "plain", "--key-file", "key", "--allow-plaintext")
        #expect(try sandbox.names() == ["db", "key", "plain"])
    }

    private static let readers = [
        ["query", "db", "SELECT sum(length(bio)) FROM people", "--key-file", "key", "--format", "csv"],
        ["verify", "db", "--key-file", "key"],
        ["backup", "db", "copy", "--key-file", "key"],
        ["rotate", "db", "--key-file", "key", "--new-key-file", "new"],
    ]

    /// What the disk does not give is not what somebody changed, be it in the file, the log or the copy.
    @Test(arguments: ["delete", "wal"], readers)
    func aReadThatFailsIsNoDamage(mode: String, command: [String]) throws {
        try sandbox.makeKey("new")
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = \(mode)", "--key-file", "key")
        var store = [("db", try sandbox.contents("db"))]
        if mode == "wal" {
            let service = try sandbox.connection()
            try service.executeUpdate("PRAGMA wal_autocheckpoint = 0", values: nil)
            try service.executeUpdate("UPDATE people SET bio = bio || ''", values: nil)
            store.append(("db-wal", try sandbox.contents("db-wal")))
            service.close()
        }
        var failures = 0
        for when in 1...40 {
            try sandbox.removeAll(but: ["key", "new"])
            for (name, bytes) in store { try sandbox.write(name, bytes) }
            let outcome = try run(command, failing: "pread64", when: "\(when)")
            // The loader reads, too.
            if outcome.status == 0 || outcome.status == 127 { continue }
            failures += 1
            #expect(outcome.status == 74, "\(when): \(outcome.status) \(outcome.error)")
            #expect(!outcome.error.contains("damaged"), "\(when): \(outcome.error)")
            #expect(!outcome.error.contains("did not verify"), "\(when): \(outcome.error)")
            let key = outcome.error.contains("The store has the new key") ? "new" : "key"
            #expect(try sandbox.census(keyFile: key).output == Sandbox.wholeStore)
        }
        #expect(failures > 3)
    }

    /// Found to have the new key already, it has that for good, or it is not said. The keys are elsewhere, because their
    /// directory is synced by itself.
    @Test func aStoreThatHasTheNewKeyIsSynced() throws {
        try sandbox.makeKey("new")
        let directory = sandbox.path("stores")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        #expect(rename(sandbox.path("db"), directory + "/db") == 0)
        let command = [Tool.sealdb, "rotate", "stores/db", "--key-file", "key", "--new-key-file", "new"]
        #expect(try sandbox.run(command).status == 0)
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", directory, "-e", "trace=fsync"]
        let outcome = try sandbox.run(strace + ["-e", "inject=fsync:error=EIO"] + command)
        #expect(outcome.status == 74 && !outcome.output.contains("already"), "\(outcome)")
        let again = try sandbox.run(command)
        #expect(again.status == 0 && again.output.contains("already"), "\(again)")
    }

    /// Who asked for the old file gets it, or the store stays as it is.
    @Test(arguments: ["link", "rename", "fsync"])
    func anOldFileThatCannotBeKept(call: String) throws {
        try sandbox.makeKey("new")
        let before = try sandbox.contents("db")
        let command = ["rotate", "db", "--key-file", "key", "--new-key-file", "new", "--keep-old"]
        let outcome = try run(command, failing: call, when: "1+")
        #expect(outcome.status != 0 && outcome.error.contains("unchanged"), "\(outcome)")
        #expect(try sandbox.contents("db") == before)
        #expect(try sandbox.names() == ["db", "key", "new"])
    }

    /// Whatever fails of putting a backup in place, no copy of it is left beside the store.
    @Test(arguments: ["link", "rename", "fsync"], 1...3)
    func aFailedRestoreLeavesNoCopy(call: String, when: Int) throws {
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        let before = try sandbox.contents("db")
        let command = ["restore", "copy", "db", "--key-file", "key", "--replace"]
        let outcome = try run(command, failing: call, when: "\(when)")
        // There may be no such call.
        if when == 1 { #expect(outcome.status != 0, "\(outcome)") }
        let names = try sandbox.names()
        #expect(!names.contains { $0.contains(".sealdb-") }, "\(names)")
        if outcome.error.contains("is unchanged") {
            #expect(try sandbox.contents("db") == before)
            #expect(names == ["copy", "db", "key"])
        }
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    /// The new ring took the old one's place, which could then not be looked at: what is told is what is so, whether the old
    /// one could be put back or not.
    @Test(arguments: [true, false])
    func aRingThatCannotBeSeenInPlace(isPutBack: Bool) throws {
        try sandbox.succeed("keyring", "create", "ring", "first")
        let before = try sandbox.contents("ring")
        let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=rename,newfstatat"]
        let command = [Tool.sealdb, "keyring", "add", "ring", "second"]
        #expect(try sandbox.run(strace + command).status == 0)
        let calls = String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n")
        let swap = try #require(calls.firstIndex { $0.contains(" rename(") })
        let count = calls[..<swap].count { $0.contains(" newfstatat(") }
        #expect(calls.count > swap + 1)
        for when in count + 1...count + calls.count - swap - 1 {
            try sandbox.write("ring", before)
            let rename = isPutBack ? [] : ["-e", "inject=rename:error=EIO:when=2"]
            let stat = ["-e", "inject=newfstatat:error=EIO:when=\(when)"]
            let outcome = try sandbox.run(strace + rename + stat + command)
            // Which of the two calls failed says how.
            #expect([66, 74].contains(outcome.status), "\(outcome)")
            let isUnchanged = try sandbox.contents("ring") == before
            #expect(isUnchanged == isPutBack && outcome.error.contains("is unchanged") == isPutBack, "\(outcome)")
            #expect(try sandbox.names().contains { $0.hasPrefix(".ring.sealdb-") } == !isPutBack)
            try sandbox.removeAll(but: ["key", "db"])
        }
    }

    // MARK: A backup from one database to another

    private func makeDatabases() throws {
        try sandbox.removeAll(but: [])
        #expect(try sandbox.run([Tool.path("CipherProbe"), "fill", "."]).output == "true\ntrue\n")
    }

    /// Of the file or directory at the path, the given calls are to fail.
    private func backup(path: String, injecting injection: String) throws -> String {
        let call = injection.prefix { $0 != ":" }
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path, "-e", "trace=\(call)"]
        return try sandbox.run(strace + ["-e", "inject=\(injection)", Tool.path("CipherProbe"), "backup", "."]).output
    }

    private func tables(of name: String, key byte: UInt8) throws -> String? {
        let key = try [UInt8](repeating: byte, count: 32).withUnsafeBytes { try Key.raw($0) }
        let database = Database(path: sandbox.path(name), configuration: Configuration(key: key))
        try database.openVerified()
        defer { database.close() }
        return try database.executeQuery("SELECT name FROM sqlite_schema WHERE type = 'table'").scalar(String.self)
    }

    /// The system says that it is written, and the file does not have it. What SQLite keeps of it in memory tells nothing.
    @Test(arguments: [2, 3, 4, 10, 20, 30, 40])
    func aWriteThatIsLost(when: Int) throws {
        try makeDatabases()
        let path = sandbox.path("destination")
        let told = try backup(path: path, injecting: "pwrite64:retval=4096:when=\(when)")
        #expect(told.contains("The destination has the copy") || told.contains("is not to be used"), "\(told)")
    }

    /// Of a page that holds no rows: yesterday's page of the free list, whose code is right.
    @Test func aWriteOfTheFreeListThatIsLost() throws {
        try makeDatabases()
        func open(_ name: String, key byte: UInt8) throws -> Database {
            let key = try [UInt8](repeating: byte, count: 32).withUnsafeBytes { try Key.raw($0) }
            let database = Database(path: sandbox.path(name), configuration: Configuration(key: key))
            try database.openVerified()
            return database
        }
        // Both have such a page at the same place, with other pages in it.
        for (name, key, count) in [("source", 1, 200), ("destination", 2, 390)] as [(String, UInt8, Int)] {
            let database = try open(name, key: key)
            #expect(database.executeStatements("DELETE FROM of_\(raw: name) WHERE rowid <= \(raw: count)"))
            #expect(try database.executeQuery("PRAGMA freelist_count").scalar(Int.self) ?? 0 > 3)
            #expect(database.close())
        }
        let path = sandbox.path("destination")
        let pages = try sandbox.contents("source").count / 4096
        var refused = 0
        let whole = try sandbox.contents("destination")
        for when in 1...pages {
            try sandbox.write("destination", whole)
            let told = try backup(path: path, injecting: "pwrite64:retval=4096:when=\(when)")
            if told != "done\n" {
                refused += 1
                continue
            }
            // What was lost there is of no use: a page of the free list that nothing points to.
            let database = try open("destination", key: 2)
            defer { database.close() }
            #expect(try database.executeQuery("PRAGMA integrity_check").scalar(String.self) == "ok", "\(when)")
            #expect(try database.executeQuery("SELECT count(*) FROM of_source").scalar(Int.self) == 200, "\(when)")
        }
        #expect(refused > 10)
    }

    /// With rollback journals the deletion of the journal is the commit, and the directory is synced after it.
    @Test func aDirectoryThatCannotBeSynced() throws {
        var replaced = 0
        for when in 1...4 {
            try makeDatabases()
            let told = try backup(path: sandbox.directory, injecting: "fdatasync:error=EIO:when=\(when)")
            let isNew = try tables(of: "destination", key: 2) == "of_source"
            if told == "done\n" {
                #expect(isNew)
                continue
            }
            #expect(told.contains("as it was before") == !isNew, "\(when): \(told)")
            if isNew { replaced += 1 }
        }
        #expect(replaced > 0)
    }
}
