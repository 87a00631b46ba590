import Foundation
import SealedDB
import Testing

@testable import sealdb

/// Backups with dates in their names, and which of them stay.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct DatedBackupTests {
    private let sandbox: Sandbox
    private let files = FileManager.default

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
        try files.createDirectory(atPath: sandbox.path("b"), withIntermediateDirectories: false)
    }

    private func backup(_ more: String..., tool: [String] = [Tool.sealdb]) throws -> Outcome {
        try sandbox.run(tool + ["backup", "db", "--into", "b", "--key-file", "key"] + more)
    }

    /// Backups of these times, whichever time it is, as runs of the command have noted them.
    private func makeBackups(_ stamps: String..., pageCount: Int64 = 3) throws {
        if !sandbox.exists("one") { try sandbox.succeed("backup", "db", "one", "--key-file", "key") }
        let claim = try #require(try claim())
        let mark = try StoreMark(path: sandbox.path("db"))
        for stamp in stamps {
            let path = sandbox.path("b/db.\(stamp)")
            try files.copyItem(atPath: sandbox.path("one"), toPath: path)
            try claim.add(BackupClaim.Entry(path: path, store: mark, pageCount: pageCount))
        }
    }

    private func claim() throws -> BackupClaim? {
        try BackupClaim.take(sandbox.path("b"), StoreItem(sandbox.path("db")), isLooking: false)
    }

    /// The names of backups, without that of this year, which is the new one.
    private func names() throws -> [String] {
        let all = try files.contentsOfDirectory(atPath: sandbox.path("b")).sorted()
        return all.filter { $0 != ".db.sealdb-backups" }
    }

    private func newOnes() throws -> [String] { try names().filter { $0 > "db.2025" && $0 < "db.2900" } }

    // MARK: Making

    @Test func aBackupThatCanBeRestored() throws {
        let outcome = try backup("--keep-last", "2")
        #expect(outcome.status == 0, "\(outcome.error)")
        let name = try #require(try names().first)
        #expect(try names() == [name] && BackupStamp(ofName: name, store: "db") != nil)
        #expect(outcome.output.hasPrefix("\(sandbox.path("b/" + name)): backup of "))
        try sandbox.succeed("restore", "b/\(name)", "new", "--key-file", "key")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == Sandbox.wholeStore)
        #expect(try backup("--dated").status == 0)
        #expect(try names().count == 2)
        #expect(try backup("--keep-last", "1").status == 0)
        #expect(try names().count == 1 && names() != [name])
    }

    @Test func theRulesDecide() throws {
        try makeBackups(
            "2024-03-09T08.00.00Z",
            "2024-03-10T08.00.00Z",
            "2024-03-10T20.00.00Z",
            "2024-04-01T00.00.00Z",
            "2023-12-31T23.59.59Z"
        )
        let plan = try backup("--keep-daily", "3", "--keep-yearly", "9", "--dry-run")
        #expect(plan.status == 0 && plan.error.isEmpty, "\(plan.error)")
        #expect(try names().count == 5)
        let planned = plan.lines.filter { $0.hasSuffix("would be removed") }
        let outcome = try backup("--keep-daily", "3", "--keep-yearly", "9")
        #expect(outcome.status == 0, "\(outcome.error)")
        let removed = outcome.lines.filter { $0.hasSuffix(": removed") }
        #expect(Set(removed) == Set(planned.map { $0.replacing("would be removed", with: "removed") }))
        #expect(removed.count == 2)
        #expect(
            try names().dropLast() == ["db.2023-12-31T23.59.59Z", "db.2024-03-10T20.00.00Z", "db.2024-04-01T00.00.00Z"]
        )
        #expect(plan.output.contains("\(sandbox.path("b/db.2023-12-31T23.59.59Z")): would be kept: yearly\n"))
        #expect(plan.output.contains("\(sandbox.path("b/db.2024-04-01T00.00.00Z")): would be kept: daily, yearly\n"))
    }

    @Test func jsonTellsAll() throws {
        try makeBackups("2024-01-01T00.00.00Z", "2024-01-02T00.00.00Z", "2999-01-01T00.00.00Z")
        try sandbox.write("b/db.2020-01-01T00.00.00Z", "mine")
        let outcome = try backup("--keep-last", "2", "--json")
        let object = try #require(try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any])
        #expect(object["removed"] as? [String] == [sandbox.path("b/db.2024-01-01T00.00.00Z")])
        let kept = try #require(object["kept"] as? [[String: Any]])
        #expect(kept.map { $0["reasons"] as? [String] } == [["later"], ["last"], ["last"]])
        #expect(kept[1]["path"] as? String == object["backupPath"] as? String)
        let untouched = (object["untouched"] as? [[String: String]])?.first
        #expect(untouched?["path"] == sandbox.path("b/db.2020-01-01T00.00.00Z"))
        let known: Set = [
            "kind", "path", "status", "exitCode", "backupPath", "pageCount", "kept", "removed", "untouched",
        ]
        #expect(Set(object.keys) == known)
    }

    // MARK: What stays

    /// Nothing that is not certainly one of these backups is removed, or counts as one.
    @Test func filesThatAreNone() throws {
        try makeBackups("2024-01-02T00.00.00Z", "2024-01-01T00.00.00Z")
        let one = try sandbox.contents("one")
        let others = [
            "db.2024-02-30T00.00.00Z", "db.2024-05-01T00.00.00", "db.2024-05-01T00:00:00Z",
            "db.2024-05-01T00.00.00Z.gz",
            "adb.2024-05-01T00.00.00Z", "db2.2024-05-01T00.00.00Z", "db.2024-05-01T24.00.00Z", "db", "db.2024-05-01",
        ]
        for name in others { try sandbox.write("b/\(name)", one) }
        // Not noted, and with the name of a backup, but of a plaintext database, a text, an empty file, a link, a directory, one that is cut
        // off, and one that somebody has written to.
        try sandbox.succeed("decrypt", "db", "b/db.2024-05-01T00.00.01Z", "--allow-plaintext", "--key-file", "key")
        try sandbox.write("b/db.2024-05-01T00.00.02Z", String(repeating: "x", count: 5000))
        try sandbox.write("b/db.2024-05-01T00.00.03Z", "")
        try files.createSymbolicLink(atPath: sandbox.path("b/db.2024-05-01T00.00.04Z"), withDestinationPath: "../one")
        try files.createDirectory(
            atPath: sandbox.path("b/db.2024-05-01T00.00.05Z"),
            withIntermediateDirectories: false
        )
        try sandbox.write("b/db.2024-05-01T00.00.06Z", one.prefix(8192))
        try sandbox.write("b/db.2024-05-01T00.00.07Z", one)
        try sandbox.write("b/db.2024-05-01T00.00.07Z-wal", "something")
        let before = try names()
        let outcome = try backup("--keep-last", "2")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("db.2024-05-01T00.00.01Z") && outcome.error.contains("is not noted"))
        #expect(outcome.error.contains("it is not a regular file"), "\(outcome.error)")
        let new = try newOnes()
        #expect(new.count == 1)
        #expect(try Set(names()) == Set(before).subtracting(["db.2024-01-01T00.00.00Z"]).union(new))
    }

    /// The key of the store was changed since: nobody can tell whether what the key at hand does not open is still needed.
    @Test func backupsUnderAnOlderKey() throws {
        try makeBackups("2024-01-01T00.00.00Z", "2024-01-02T00.00.00Z")
        try sandbox.makeKey("next")
        try sandbox.succeed("rotate", "db", "--key-file", "key", "--new-key-file", "next")
        let outcome = try sandbox.sealdb("backup", "db", "--into", "b", "--key-file", "next", "--keep-last", "1")
        #expect(outcome.status == 0 && outcome.error.contains("2 files, such as"), "\(outcome.error)")
        #expect(try names().count == 3)
    }

    /// Another store has taken the name, under the same key.
    @Test func backupsOfAnotherStore() throws {
        #expect(try backup("--keep-last", "1").status == 0)
        let before = try names()
        try files.moveItem(atPath: sandbox.path("db"), toPath: sandbox.path("moved"))
        for log in ["-wal", "-shm"] where sandbox.exists("db" + log) {
            try files.removeItem(atPath: sandbox.path("db" + log))
        }
        try sandbox.succeed("create", "db", "--key-file", "key")
        for _ in 1...2 {
            let outcome = try backup("--keep-last", "1")
            #expect(outcome.status == 0 && outcome.error.contains("one of another store"), "\(outcome.error)")
        }
        #expect(try names().filter(before.contains) == before && names().count == 2)
    }

    /// What was written to since, lies there unlisted, or is open in a process.
    @Test func backupsThatChanged() throws {
        try makeBackups("2024-01-01T00.00.00Z", "2024-01-02T00.00.00Z", "2024-01-03T00.00.00Z", "2024-01-04T00.00.00Z")
        try sandbox.overwrite("b/db.2024-01-01T00.00.00Z", at: 5000, with: [1, 2, 3, 4])
        try files.removeItem(atPath: sandbox.path("b/db.2024-01-02T00.00.00Z"))
        try files.copyItem(atPath: sandbox.path("one"), toPath: sandbox.path("b/db.2024-01-02T00.00.00Z"))
        let user = open(sandbox.path("b/db.2024-01-03T00.00.00Z"), O_RDWR | O_CLOEXEC)
        #expect(user >= 0)
        defer { close(user) }
        let outcome = try backup("--keep-last", "1")
        #expect(outcome.status == 0 && outcome.error.contains("a process has it open"), "\(outcome.error)")
        #expect(outcome.error.contains("was changed since it was made"), "\(outcome.error)")
        #expect(try names().dropLast() == (1...3).map { "db.2024-01-0\($0)T00.00.00Z" })
    }

    /// A damaged backup makes no sound one go.
    @Test func aDamagedBackupDoesNotCount() throws {
        try makeBackups("2024-01-01T00.00.00Z", "2024-01-02T00.00.00Z", "2024-01-03T00.00.00Z")
        let damaged = sandbox.path("b/db.2024-01-03T00.00.00Z")
        var status = stat()
        #expect(stat(damaged, &status) == 0)
        try sandbox.overwrite("b/db.2024-01-03T00.00.00Z", at: 5000, with: [1, 2, 3, 4])
        // As on a disk that forgets.
        #expect(utimensat(AT_FDCWD, damaged, [status.st_atim, status.st_mtim], 0) == 0)
        let outcome = try backup("--keep-last", "2")
        #expect(
            outcome.status == 0 && outcome.error.contains("03T00.00.00Z has the name of a backup, but it is damaged")
        )
        #expect(try names().dropLast() == ["db.2024-01-02T00.00.00Z", "db.2024-01-03T00.00.00Z"])
    }

    /// A store that suddenly holds next to nothing makes no backup go, until somebody says that it may.
    @Test func aStoreThatWasEmptied() throws {
        try makeBackups("2024-01-01T00.00.00Z", "2024-01-02T00.00.00Z", pageCount: 1000)
        for _ in 1...2 {
            let outcome = try backup("--keep-last", "1")
            #expect(outcome.status == 2 && outcome.error.contains("--allow-smaller"), "\(outcome)")
        }
        #expect(try names().count == 4)
        #expect(try backup("--keep-last", "2", "--allow-smaller").status == 0)
        #expect(try backup("--keep-last", "2").status == 0)
        #expect(try names().count == 2 && newOnes().count == 2)
    }

    /// A directory that cannot be read to its end is not one with fewer files.
    @Test func aDirectoryThatCannotBeRead() throws {
        try makeBackups("2024-01-01T00.00.00Z", "2024-01-02T00.00.00Z")
        let before = try names()
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", sandbox.path("b"), "-e", "trace=getdents64"]
        let outcome = try backup(
            "--keep-last",
            "1",
            tool: strace + ["-e", "inject=getdents64:error=EIO:when=2+", Tool.sealdb]
        )
        #expect(outcome.status == 73 && outcome.error.contains("Cannot read the directory"), "\(outcome)")
        #expect(try names() == before)
    }

    /// Were the clock right, these would be the newest: they are neither removed nor make others go.
    @Test func theClockWentBackwards() throws {
        try makeBackups("2999-01-01T00.00.00Z", "2999-01-02T00.00.00Z", "2024-01-01T00.00.00Z")
        let outcome = try backup("--keep-last", "2")
        #expect(outcome.status == 0)
        #expect(outcome.error.contains("2 backups, such as") && outcome.error.contains("Is the clock right?"))
        #expect(try names().count == 4 && names().first == "db.2024-01-01T00.00.00Z")
    }

    // MARK: Failures

    @Test func nothingIsRemovedIfTheBackupFails() throws {
        try makeBackups("2024-01-01T00.00.00Z", "2024-01-02T00.00.00Z")
        let before = try names()
        try sandbox.makeKey("other")
        try sandbox.fail(77, "backup", "db", "--into", "b", "--key-file", "other", "--keep-last", "1")
        for call in ["fsync", "renameat2", "pwrite64"] {
            let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)"]
            let outcome = try backup(
                "--keep-last",
                "1",
                tool: strace + ["-e", "inject=\(call):error=EIO:when=1+", Tool.sealdb]
            )
            #expect([73, 74].contains(outcome.status), "\(call): \(outcome.status) \(outcome.error)")
            #expect(try names().filter { before.contains($0) } == before, "\(call)")
            for name in try newOnes() { try files.removeItem(atPath: sandbox.path("b/\(name)")) }
        }
        let sound = try sandbox.contents("db")
        try sandbox.overwrite("db", at: 5000, with: [1, 2, 3, 4])
        try sandbox.fail(65, "backup", "db", "--into", "b", "--key-file", "key", "--keep-last", "1")
        #expect(try names() == before)
        try sandbox.write("db", sound)
        #expect(try backup("--keep-last", "1").status == 0)
        #expect(try names().count == 1)
    }

    @Test func whatCannotBeRemovedIsTold() throws {
        try makeBackups("2024-01-01T00.00.00Z")
        let old = sandbox.path("b/db.2024-01-01T00.00.00Z")
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", old, "-e", "trace=unlink"]
        let outcome = try backup("--keep-last", "1", tool: strace + ["-e", "inject=unlink:error=EPERM", Tool.sealdb])
        #expect(outcome.status == 74 && outcome.error.contains("is complete, but not all old ones are removed"))
        #expect(outcome.error.contains(old), "\(outcome.error)")
        #expect(try names().count == 2)
    }

    /// A kill leaves a file whose name no later backup has: the next run removes it all the same.
    @Test func whatAKillLeaves() throws {
        try makeBackups("2024-01-01T00.00.00Z")
        #expect(try backup("--dated").status == 0)
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2"]
        let killed = try backup(
            "--keep-last",
            "1",
            tool: strace + ["-e", "inject=renameat2:signal=KILL:when=1", Tool.sealdb]
        )
        #expect(killed.status != 0)
        #expect(try names().contains { $0.hasPrefix(".db.2") && $0.contains("Z.sealdb-") })
        #expect(try names().contains("db.2024-01-01T00.00.00Z"))
        #expect(try backup("--keep-last", "1").status == 0)
        let left = try names()
        #expect(left.count == 1, "\(left)")
    }

    // MARK: One name, one store

    @Test func anotherStoreOfThatName() throws {
        #expect(try backup("--keep-last", "1").status == 0)
        let before = try names()
        try files.createDirectory(atPath: sandbox.path("o"), withIntermediateDirectories: false)
        try files.copyItem(atPath: sandbox.path("db"), toPath: sandbox.path("o/db"))
        let outcome = try sandbox.fail(73, "backup", "o/db", "--into", "b", "--key-file", "key", "--keep-last", "1")
        #expect(outcome.error.contains("are those of \(sandbox.path("db"))"))
        try sandbox.fail(64, "backup", "o/db", "db", "--into", "b", "--key-file", "key", "--dated")
        #expect(try names() == before)
        // A store that has moved.
        try files.removeItem(atPath: sandbox.path("b/.db.sealdb-backups"))
        try sandbox.succeed("backup", "o/db", "--into", "b", "--key-file", "key", "--keep-last", "1")
        // Somebody else's file, and one that a kill cut off.
        try sandbox.write("b/.db.sealdb-backups", "notes\n")
        try sandbox.fail(65, "backup", "db", "--into", "b", "--key-file", "key", "--dated")
        #expect(try sandbox.contents("b/.db.sealdb-backups") == Data("notes\n".utf8))
        try sandbox.write("b/.db.sealdb-backups", "{\"store\":\"/")
        #expect(try backup("--dated").status == 0)
    }

    /// A claim without a list makes nothing go, and neither does one of another machine, or one that others may write.
    @Test func claimsOfOthers() throws {
        try makeBackups("2024-01-01T00.00.00Z")
        let path = "b/.db.sealdb-backups"
        let lines = String(decoding: try sandbox.contents(path), as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 3)
        try sandbox.write(path, "\(lines[0])\n{\"machine\":\"1\"}\n\(lines[2])\n")
        let other = try sandbox.fail(73, "backup", "db", "--into", "b", "--key-file", "key", "--dated")
        #expect(other.error.contains("machine"))
        try sandbox.write(path, "\(lines[0])\nx\n\(lines[2])\n")
        try sandbox.fail(65, "backup", "db", "--into", "b", "--key-file", "key", "--dated")
        #expect(try names().count == 1)
        try sandbox.write(path, String(lines[0]).replacing("\"version\":2", with: "\"version\":1") + "\n")
        #expect(try backup("--keep-last", "1").status == 0)
        #expect(try names().count == 2)
        #expect(try backup("--keep-last", "1").status == 0)
        #expect(try names().count == 2 && names().first == "db.2024-01-01T00.00.00Z")
        try files.setAttributes([.posixPermissions: 0o666], ofItemAtPath: sandbox.path(path))
        try sandbox.fail(78, "backup", "db", "--into", "b", "--key-file", "key", "--keep-last", "1")
        #expect(try names().count == 2)
    }

    @Test func oneRunAtATime() throws {
        #expect(try backup("--keep-last", "1").status == 0)
        let descriptor = open(sandbox.path("b/.db.sealdb-backups"), O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        // F_OFD_SETLK, as the command locks.
        #expect(fcntl(descriptor, 37, &lock) == 0)
        let outcome = try backup("--keep-last", "1")
        #expect(outcome.status == 75 && outcome.error.contains("Another run"), "\(outcome.error)")
        #expect(try names().count == 1)
    }

    @Test func severalStores() throws {
        for name in ["x.db", "y.db"] { try files.copyItem(atPath: sandbox.path("db"), toPath: sandbox.path(name)) }
        for _ in 0..<2 {
            let outcome = try sandbox.sealdb(
                "backup",
                "x.db",
                "y.db",
                "--into",
                "b",
                "--key-file",
                "key",
                "--keep-last",
                "1",
                "--jobs",
                "2"
            )
            #expect(outcome.status == 0, "\(outcome.error)")
        }
        let kept = try names().filter { !$0.hasPrefix(".") }
        #expect(kept.count == 2 && kept[0].hasPrefix("x.db.") && kept[1].hasPrefix("y.db."), "\(kept)")
    }

    @Test(arguments: [
        ["backup", "db", "copy", "--keep-last", "1"], ["backup", "db", "copy", "--dry-run"],
        ["backup", "db", "--into", "b", "--dry-run"], ["backup", "db", "--into", "b", "--keep-daily", "0"],
        ["backup", "db", "--into", "b", "--keep-daily", "-1"], ["backup", "db", "--into", "b", "--keep-weekly", "x"],
    ])
    func wrongUsage(arguments: [String]) throws {
        let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-file", "key"])
        #expect(outcome.status == 64, "\(outcome.error)")
        #expect(try names() == [])
    }

    /// A page that the disk did not write is authentic, and what is behind it is not found any more. A restore refuses such a
    /// backup, so nothing is removed in its favour.
    @Test func aStoreThatIsNotSound() throws {
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = DELETE", "--key-file", "key")
        try sandbox.succeed("exec", "db", "CREATE TABLE later (a)", "--key-file", "key")
        let before = try sandbox.contents("db")
        let rows =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
            + "INSERT INTO later SELECT hex(zeroblob(50)) FROM n"
        try sandbox.succeed("exec", "db", rows, "--key-file", "key")
        #expect(try backup("--keep-last", "1").status == 0)
        let sound = try newOnes()
        #expect(sound.count == 1)
        // The root of the table is the last page of that time.
        var bytes = try sandbox.contents("db")
        let place = before.count - 4096..<before.count
        bytes.replaceSubrange(place, with: before[place])
        try bytes.write(to: URL(fileURLWithPath: sandbox.path("db")))
        #expect(try sandbox.sealdb("verify", "db", "--key-file", "key").status == 65)
        let plan = try backup("--keep-last", "1", "--dry-run")
        #expect(plan.status == 2 && plan.error.contains("No old one would be removed"), "\(plan.error)")
        #expect(try newOnes() == sound)
        let outcome = try backup("--keep-last", "1")
        #expect(outcome.status == 2 && outcome.error.contains("No old one was removed"), "\(outcome.error)")
        #expect(outcome.error.contains("never used"), "\(outcome.error)")
        #expect(try newOnes().count == 2 && newOnes().contains(sound[0]))
        try sandbox.succeed("restore", "b/\(sound[0])", "new", "--key-file", "key")
        #expect(try sandbox.census(keyFile: "key", store: "new").output == Sandbox.wholeStore)
    }

    /// A first page of an earlier state, or a commit that was cut off behind: nothing is removed in favour of what may be too little.
    @Test func aStoreThatMayLackSomething() throws {
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = DELETE", "--key-file", "key")
        let first = try sandbox.contents("db").prefix(4096)
        try sandbox.succeed("exec", "db", "CREATE TABLE later AS SELECT zeroblob(90000)", "--key-file", "key")
        #expect(try backup("--keep-last", "1").status == 0)
        let old = try newOnes()
        try sandbox.write("db", first + sandbox.contents("db").dropFirst(4096))
        for options in [["--keep-last", "1", "--dry-run"], ["--keep-last", "1", "--allow-smaller"]] {
            let outcome = try sandbox.run([Tool.sealdb, "backup", "db", "--into", "b", "--key-file", "key"] + options)
            #expect(outcome.status == 2 && outcome.error.contains("may lack what was stored last"), "\(outcome.error)")
            #expect(try newOnes().contains(old[0]), "\(options)")
        }
    }
}
