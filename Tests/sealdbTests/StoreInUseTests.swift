import Foundation
import SealedDB
import Testing

/// Two processes and one store.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct StoreInUseTests {
    private let sandbox: Sandbox
    private let rotate = ["rotate", "db", "--key-file", "key", "--new-key-file", "new", "--lock-wait", "0"]

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("new")
    }

    /// In rollback-journal mode an idle connection has no lock of SQLite.
    @Test(arguments: [[], ["--dry-run"]])
    func idleConnectionIsNotRotatedAway(more: [String]) throws {
        let service = try sandbox.connection()
        let outcome = try sandbox.run([Tool.sealdb] + rotate + more)
        #expect(outcome.status == 75, "\(outcome.error)")
        let command = try String(contentsOfFile: "/proc/self/comm", encoding: .utf8).dropLast()
        #expect(outcome.error.contains("is open in process \(getpid()) (\(command))"), "\(outcome.error)")
        #expect(try sandbox.names() == ["db", "db-sealdb-lock", "key", "new"])
        try service.executeUpdate("DELETE FROM people WHERE id = 1", values: nil)
        service.close()
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
        #expect(try sandbox.census(keyFile: "new").output == "49,1274,49\n")
        #expect(try sandbox.names() == ["db", "key", "new"])
    }

    @Test func allHoldersAreNamed() throws {
        let service = try sandbox.connection()
        let terminal = try Terminal(
            [Tool.sealdb, "rotate", "db", "--key-file", "key", "--new-prompt"],
            directory: sandbox.directory
        )
        try terminal.expect("New passphrase of db: ")
        service.close()
        // Nobody has it open while a passphrase is typed.
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
        terminal.type("x\n")
        try terminal.expect("again: ")
        terminal.type("x\n")
        #expect(terminal.wait() == 77)
    }

    @Test func connectionsOfOneProcessAreNamedOnce() throws {
        let connections = try [sandbox.connection(), sandbox.connection()]
        let outcome = try sandbox.run([Tool.sealdb] + rotate)
        #expect(outcome.status == 75)
        #expect(outcome.error.components(separatedBy: "process \(getpid()) (").count == 2, "\(outcome.error)")
        for connection in connections { connection.close() }
    }

    /// Stopped right behind the rename, when the last look for others is over. What they write goes to the old file.
    @Test func whoOpensTheOldFileThenIsToldOf() throws {
        let strace = "strace -f -qq -o trace -e trace=/rename -e inject=/rename:signal=STOP"
        let script = """
            \(strace) '\(Tool.sealdb)' \(rotate.joined(separator: " ")) --keep-old &
            until test -s trace && grep -q 'stopped by SIGSTOP' trace; do sleep 0.05; done
            exec 9<>db.old
            kill -CONT $(sed -n 's/ .*stopped by SIGSTOP.*//p' trace | head -n 1)
            wait $!
            """
        let outcome = try sandbox.run(["sh", "-c", script])
        #expect(outcome.status == 75, "\(outcome.error)")
        #expect(outcome.error.contains("may have opened the old file"), "\(outcome.error)")
        #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
    }

    /// The stock shell knows nothing of our lock, but SQLite's own ones have their owners too.
    @Test(arguments: ["delete", "wal"])
    func stockShellIsNamed(journalMode: String) throws {
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = \(journalMode)", "--key-file", "key")
        let shell = try Terminal(["sqlcipher", "db"], directory: sandbox.directory, environment: ["TERM": "dumb"])
        let key = String(decoding: try sandbox.contents("key").dropLast(), as: UTF8.self)
        shell.type("PRAGMA key = \"x'\(key)'\";\n")
        shell.type(journalMode == "wal" ? "SELECT count(*) FROM people;\n" : "BEGIN IMMEDIATE;\n")
        shell.type("SELECT 'rea' || 'dy';\n")
        try shell.expect("ready")
        for more in [[], ["--dry-run"]] where journalMode == "delete" || more.isEmpty {
            let outcome = try sandbox.run([Tool.sealdb] + rotate + more)
            #expect(outcome.status == 75, "\(outcome.error)")
            #expect(outcome.error.contains(#/is open in process [0-9]+ \(sqlcipher\)/#), "\(outcome.error)")
        }
        shell.type(".quit\n")
        _ = shell.wait()
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
    }

    /// Without any lock while it is idle, and without a journal that would make SQLite look at the file's name.
    @Test(arguments: [[], ["--dry-run"]])
    func idleShellIsNotRotatedAway(more: [String]) throws {
        let shell = try idleShell(["sqlcipher", "db"])
        let outcome = try sandbox.run([Tool.sealdb] + rotate + more)
        #expect(outcome.status == 75, "\(outcome.error)")
        #expect(outcome.error.contains(#/is open in process [0-9]+ \(sqlcipher\)/#), "\(outcome.error)")
        // What it is told is stored, is.
        shell.type("INSERT INTO people (bio) VALUES ('known plaintext');\nSELECT 'sto' || 'red';\n.quit\n")
        try shell.expect("stored")
        _ = shell.wait()
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
        #expect(try sandbox.census(keyFile: "new").output.hasPrefix("51,"))
    }

    private func idleShell(_ command: [String]) throws -> Terminal {
        let shell = try Terminal(command, directory: sandbox.directory, environment: ["TERM": "dumb"])
        let key = String(decoding: try sandbox.contents("key").dropLast(), as: UTF8.self)
        shell.type("PRAGMA key = \"x'\(key)'\";\nPRAGMA journal_mode = MEMORY;\nSELECT count(*) FROM people;\n")
        shell.type("SELECT 'rea' || 'dy';\n")
        try shell.expect("ready")
        return shell
    }

    /// As in a container that has this one file of the host: what stands beside it is another directory.
    @Test(.enabled(if: geteuid() == 0, "only root can mount"))
    func fileThatIsMountedAloneIsNotRotatedAway() throws {
        let script = "mkdir box && touch box/db && mount --bind db box/db && exec sqlcipher box/db"
        let shell = try idleShell(["unshare", "-m", "sh", "-c", script])
        let outcome = try sandbox.run([Tool.sealdb] + rotate)
        #expect(outcome.status == 75, "\(outcome.error)")
        #expect(outcome.error.contains("(sqlcipher)"), "\(outcome.error)")
        shell.type(".quit\n")
        _ = shell.wait()
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
        #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
    }

    /// Whoever is in the box finds the old file, and would have the old key for it: nothing can be written there.
    @Test(.enabled(if: geteuid() == 0, "only root can mount"))
    func fileThatStaysMountedWhenItIsRotatedIsUseless() throws {
        let key = String(decoding: try sandbox.contents("key").dropLast(), as: UTF8.self)
        let script = """
            mkdir box && touch box/db && mount --bind db box/db && \(Tool.sealdb) \(rotate.joined(separator: " ")) || exit 9
            \(Tool.sealdb) exec box/db "DELETE FROM people" --key-file key; echo "sealdb $?"
            sqlcipher box/db "PRAGMA key = \\"x'\(key)'\\"" "DELETE FROM people"; echo "shell $?"
            """
        let outcome = try sandbox.run(["unshare", "-m", "sh", "-c", script])
        #expect(outcome.output.contains("sealdb 66"), "\(outcome.output)\(outcome.error)")
        #expect(outcome.output.contains(#/shell [1-9]/#), "\(outcome.output)\(outcome.error)")
        #expect(outcome.error.contains("mount of a file that has been replaced"), "\(outcome.error)")
        #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
    }

    /// While the new key is asked for again.
    @Test func whoComesAtTheLastMomentIsSeen() throws {
        let key = String(decoding: try sandbox.contents("key").dropLast(), as: UTF8.self)
        try sandbox.writeProgram(
            "command",
            """
            #!/bin/sh
            cd '\(sandbox.directory)'
            if test -e asked; then
                printf '%s\\n' ".timeout 100000" "PRAGMA key = \\"x'\(key)'\\";" "PRAGMA journal_mode = MEMORY;" \\
                    "INSERT INTO people (bio) VALUES ('known plaintext');" > shell.sql
                setsid sqlcipher db < shell.sql > shell.out 2>&1 &
                while ! ls -l /proc/$!/fd 2> /dev/null | grep -q '/db$'; do :; done
            fi
            touch asked
            cat new
            """
        )
        let outcome = try sandbox.run(
            [Tool.sealdb, "rotate", "db", "--key-file", "key", "--new-key-command", sandbox.path("command")]
        )
        #expect(outcome.status == 75, "\(outcome.error)")
        #expect(outcome.error.contains("(sqlcipher)"), "\(outcome.error)")
        // It has what it was told is stored.
        while try !sandbox.census(keyFile: "key").output.hasPrefix("51,") {}
    }

    /// Root without its capabilities is told nothing by the kernel of files of others, nor of their processes.
    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func whereNobodyCanTellForceIsNeeded() throws {
        #expect(chown(sandbox.path("db"), 65534, 65534) == 0)
        let weak = ["setpriv", "--bounding-set=-lease,-sys_ptrace", "--inh-caps=-lease,-sys_ptrace"]
        // Of another user, so that it may not be looked into.
        let root = URL(fileURLWithPath: sandbox.directory).deletingLastPathComponent().path
        #expect(chmod(root, 0o755) == 0)
        let other = try Terminal(
            ["setpriv", "--reuid=65533", "--clear-groups", "sh", "-c", "echo rea\"\"dy; read line"],
            directory: "/"
        )
        try other.expect("ready")
        for more in [[], ["--dry-run"]] {
            let outcome = try sandbox.run(weak + [Tool.sealdb] + rotate + more)
            #expect(outcome.status == 75, "\(outcome.error)")
            #expect(outcome.error.contains("--force") && outcome.error.contains("process "), "\(outcome.error)")
        }
        let outcome = try sandbox.run(weak + [Tool.sealdb] + rotate + ["--force"])
        #expect(outcome.status == 0, "\(outcome.error)")
        other.type("\n")
        _ = other.wait()
    }

    /// Of two users of one group, each can open the lock file that the other made; who cannot does not get the store.
    @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
    func twoUsersOfOneGroup() throws {
        let root = URL(fileURLWithPath: sandbox.directory).deletingLastPathComponent().path
        #expect(chmod(root, 0o755) == 0)
        for (name, mode) in [("", 0o770), ("db", 0o660)] as [(String, mode_t)] {
            #expect(chown(sandbox.path(name), 65531, 65530) == 0 && chmod(sandbox.path(name), mode) == 0)
        }
        func user(_ id: Int) -> [String] {
            ["setpriv", "--reuid=\(id)", "--regid=\(id)", "--groups=65530", "--inh-caps=-all"]
        }
        let key = String(decoding: try sandbox.contents("key").dropLast(), as: UTF8.self)
        for id in [65531, 65532] {
            try sandbox.write("key\(id)", key + "\n", mode: 0o600)
            #expect(chown(sandbox.path("key\(id)"), uid_t(id), gid_t(id)) == 0)
        }
        let exec = ["exec", "db", "CREATE TABLE IF NOT EXISTS t (a)", "--key-file"]
        // Left by one who was killed.
        let script = "umask 077; : > db-sealdb-lock; chmod 660 db-sealdb-lock"
        #expect(try sandbox.run(user(65532) + ["sh", "-c", script]).status == 0)
        let refused = try sandbox.run(user(65531) + [Tool.sealdb] + exec + ["key65531"])
        #expect(refused.status == 73 && refused.error.contains("db-sealdb-lock"), "\(refused.error)")
        unlink(sandbox.path("db-sealdb-lock"))
        let killed = try sandbox.run(
            user(65532) + ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64"]
                + ["-e", "inject=pwrite64:signal=KILL", Tool.sealdb] + exec + ["key65532"]
        )
        #expect(killed.status != 0)
        var status = stat()
        #expect(stat(sandbox.path("db-sealdb-lock"), &status) == 0)
        #expect(status.st_gid == 65530 && status.st_mode & 0o777 == 0o660)
        // Of the one who was killed before anything was written, and SQLite gives it to no group.
        unlink(sandbox.path("db-journal"))
        let opened = try sandbox.run(user(65531) + [Tool.sealdb] + exec + ["key65531"])
        #expect(opened.status == 0, "\(opened.error)")
    }

    /// Whoever opens a store that is being rotated is told so, and by whom it is.
    @Test func storeBeingRotatedIsNotOpened() throws {
        let old = try KeySource.keyFile(sandbox.path("key")).key()
        let new = try KeySource.keyFile(sandbox.path("new")).key()
        var outcomes: [Outcome] = []
        try KeyRotation(path: sandbox.path("db"), from: old, to: new).run { progress in
            guard progress.phase == .verify, outcomes.isEmpty else { return }
            for store in ["query", "verify"] {
                let more = store == "query" ? ["SELECT 1"] : []
                outcomes.append(
                    try sandbox.run(
                        [Tool.sealdb, store, "db"] + more + ["--key-file", "key"]
                            + (store == "query" ? ["--lock-wait", "0"] : [])
                    )
                )
            }
            outcomes.append(try sandbox.run([Tool.sealdb] + rotate))
        }
        #expect(outcomes.map(\.status) == [75, 75, 75])
        #expect(outcomes[0].error.contains("by process \(getpid()) ("), "\(outcomes[0].error)")
        #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
        #expect(try sandbox.names() == ["db", "key", "new"])
    }

    /// A process that was killed has no lock any more; what it left is taken away.
    @Test func killedUserLeavesNothing() throws {
        let outcome = try sandbox.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", "inject=pwrite64:signal=KILL",
                Tool.sealdb, "exec", "db", "DELETE FROM people", "--key-file", "key",
            ]
        )
        #expect(outcome.status != 0)
        #expect(try sandbox.names().contains("db-sealdb-lock"))
        #expect(try sandbox.run([Tool.sealdb] + rotate).status == 0)
        #expect(try sandbox.census(keyFile: "new").output == Sandbox.wholeStore)
        #expect(try sandbox.names() == ["db", "key", "new"])
    }

    /// Readers of a directory in which they may not write do without a lock.
    @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
    func readOnlyDirectory() throws {
        for (name, mode) in [("", 0o755), ("db", 0o644), ("key", 0o600)] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: sandbox.path(name))
        }
        #expect(chown(sandbox.path("key"), 65534, 65534) == 0)
        let query = ["query", "db", "SELECT 1", "--key-file", "key"]
        let root = URL(fileURLWithPath: sandbox.directory).deletingLastPathComponent().path
        #expect(chmod(root, 0o755) == 0)
        let outcome = try sandbox.run(["setpriv", "--reuid=65534", "--clear-groups", Tool.sealdb] + query)
        #expect(outcome.status == 0, "\(outcome.error)")
        let rotation = try sandbox.run(
            ["setpriv", "--reuid=65534", "--clear-groups", Tool.sealdb, "rotate", "db", "--key-file", "key"]
                + ["--new-key-command", "/bin/false"]
        )
        #expect(rotation.status != 0)
        #expect(try sandbox.names() == ["db", "key", "new"])
    }
}
