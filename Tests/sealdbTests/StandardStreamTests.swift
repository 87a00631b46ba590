import Foundation
import SealedDB
import Testing

/// Commands whose output is read late, or that have none.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct StandardStreamTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
    }

    private func shell(_ script: String) throws -> Outcome {
        try sandbox.run(["sh", "-c", script.replacingOccurrences(of: "sealdb", with: "'\(Tool.sealdb)'")])
    }

    private func hasFailed() throws -> Bool {
        guard sandbox.exists("errors") else { return false }
        return try !sandbox.contents("errors").isEmpty
    }

    // MARK: Onto the store itself

    /// What is printed would be written over the store, or behind it.
    @Test(arguments: [
        "query db 'SELECT * FROM people'", "exec db 'SELECT * FROM people'", "dump db", "schema db", "tables db",
        "info db",
        "verify db", "verify db --json", "diff db copy --sql", "diff copy db --sql", "backup db -",
        "shell db </dev/null",
        "slots list db", "rotate db --new-key-file key2 --dry-run", "export db --to postgresql://localhost/none",
    ])
    func ontoTheStore(_ command: String) throws {
        try sandbox.makeKey("key2")
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        let before = try sandbox.contents("db")
        // Where the message would be written over the store, nothing is said.
        for (redirection, isTold) in [
            ("1<>db", true), (">>db", true), (">>link", true), ("2>>db", false), ("2<>db", false), (">>db 2>&1", false),
        ] {
            let outcome = try shell("ln -sf db link; sealdb \(command) --key-file key \(redirection)")
            #expect(outcome.status == 64, "\(redirection): \(outcome)")
            #expect(try sandbox.contents("db") == before, "\(redirection)")
            let message = "is standard output, and would be destroyed"
            #expect(outcome.error.contains(message) == isTold, "\(redirection): \(outcome)")
        }
    }

    /// Its log, its slots, and what else a command needs.
    @Test(arguments: [
        ("query db 'SELECT 1' --key-file key", "db-wal"), ("query db 'SELECT 1' --key-file key", "db-shm"),
        ("query db 'SELECT 1' --key-file key", "db-journal"), ("query db 'SELECT 1' --key-file key", "db.slots"),
        ("query db 'SELECT 1' --key-file key", "db.slots.2"), ("query db 'SELECT 1' --key-file key", "key"),
        ("query db 'SELECT 1' --key-ring ring", "ring"), ("query db 'SELECT 1' --passphrase-file key", "key"),
        ("keyring list ring", "ring"), ("keyring add ring b", "ring"), ("keyring activate ring a", "ring"),
        ("keyring audit ring db", "ring"), ("keyring remove ring a", "ring"),
        ("status journal", "journal"), ("rotate db --key-file key --new-key-file key2 --journal journal", "journal"),
    ])
    func ontoWhatACommandNeeds(_ command: String, file: String) throws {
        try sandbox.makeKey("key2")
        try sandbox.succeed("keyring", "create", "ring", "a")
        if !sandbox.exists(file) { try sandbox.write(file, "") }
        let before = try sandbox.contents(file)
        let outcome = try shell("sealdb \(command) >>\(file)")
        #expect(outcome.status == 64, "\(outcome)")
        #expect(outcome.error.contains("is standard output, and would be destroyed"), "\(outcome)")
        #expect(try sandbox.contents(file) == before)
    }

    /// Whichever file it is, and however early something is printed: by wrong arguments, SQL, maps and configurations.
    @Test(arguments: [
        ("query db 'SELECT 1' --key-fil key 2<>db", "db"), ("query db 'SELECT 1' 2>>copy", "copy"),
        ("query db --help 1<>db", "db"), ("query db 'SELECT 1' --key-file key --config none 2<>db", "db"),
        ("exec db \"ATTACH 'copy' AS c; SELECT * FROM c.people\" --key-file key 1<>copy", "copy"),
        ("exec db \"ATTACH 'copy' AS c; SELECT * FROM c.people\" --key-file key >>copy", "copy"),
        ("restore - db --replace --key-file key <copy >>copy", "copy"), ("keygen - >>key2", "key2"),
        ("rotate --key-map map 1<>key2", "key2"), ("verify --key-map map >>key", "key"),
        ("rotate db --key-file key --new-key-template 'key-file:{dir}/key2' 1<>key2", "key2"),
        ("rotate db --key-file key --new-key-fd 3 3<key2 1<>key2", "key2"),
        ("query db 'SELECT 1' --key-file - <key >>key", "key"),
        ("verify db --config config 2>>ring", "ring"),
    ])
    func ontoAnyStoreOrKey(_ command: String, file: String) throws {
        try sandbox.makeKey("key2")
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        let directory = sandbox.directory
        for (name, text) in [
            ("map", "\(directory)/db\tkey-file:\(directory)/key\tkey-file:\(directory)/key2\n"),
            ("config", "[store \"\(directory)/db\"]\nkey-ring = \(directory)/ring\n"),
        ] {
            try sandbox.write(name, text)
            #expect(chmod(sandbox.path(name), 0o600) == 0)
        }
        let before = try [file, "db", "key"].map { try sandbox.contents($0) }
        let outcome = try shell("sealdb \(command)")
        #expect(outcome.status == 64, "\(outcome)")
        #expect(try [file, "db", "key"].map { try sandbox.contents($0) } == before)
        #expect(try sandbox.keys(opening: "db", of: ["key", "key2"]) == ["key"])
    }

    /// A passphrase looks like any text, and is known by where it is read.
    @Test func ontoAPassphrase() throws {
        try sandbox.write("words", "correct horse\n")
        #expect(chmod(sandbox.path("words"), 0o600) == 0)
        try sandbox.succeed("keyring", "create", "ring", "a", "--passphrase-file", "words")
        let outcome = try shell("sealdb query db 'SELECT 1' --key-ring ring >>words")
        #expect(outcome.status == 78 && outcome.error.contains("is the standard output of this process"), "\(outcome)")
        #expect(try sandbox.contents("words") == Data("correct horse\n".utf8))
    }

    /// Another file of the same name, and one that is read and written as a whole, are none of these.
    /// What lies in a repository has no name that a command knows.
    @Test func ontoARepository() throws {
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = WAL", "--key-file", "key")
        try sandbox.succeed("replicate", "db", "--to", "repo", "--key-file", "key", "--once")
        try sandbox.succeed("follow", "repo", "replica", "--once")
        // The name of a follower's file has the command's in it, which the shell gets by its path.
        #expect(rename(sandbox.path(".replica.sealdb-follow"), sandbox.path("followed")) == 0)
        for file in ["repo/repository", "repo/generations/00000001/snapshot-000000000000", "followed"] {
            let before = try sandbox.contents(file)
            let outcome = try shell("sealdb query db 'SELECT 1' --key-file key >>\(file)")
            #expect(outcome.status == 64 && outcome.error.contains("a part of a repository"), "\(outcome.error)")
            #expect(try sandbox.contents(file) == before)
        }
        try sandbox.write("notes", "SealedDB is here\n")
        #expect(try shell("sealdb query db 'SELECT 1' --key-file key >>notes").status == 0)
    }

    @Test func besideTheStore() throws {
        let outcome = try shell(
            """
            mkdir other && sealdb query db 'SELECT count(*) FROM people' --key-file key >>other/db 2>>other/db \
            && sealdb dump db --key-file key >db.sql && sealdb schema db --key-file key >>db.sql
            """
        )
        #expect(outcome.status == 0, "\(outcome)")
        #expect(try !sandbox.contents("other/db").isEmpty)
    }

    // MARK: Closed

    /// As by a daemon that has closed them: what is printed must not go into the file that is opened next.
    @Test(arguments: [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
    func closed(_ redirection: String) throws {
        // The lock file is there as long as somebody uses the store.
        var configuration = Configuration(keySource: .keyFile(sandbox.path("key")))
        configuration.createsFile = false
        let user = try DatabaseQueue(path: sandbox.path("db"), configuration: configuration)
        let select = "sealdb query db 'SELECT bio FROM people' --key-file key --format csv"
        let isToFail = redirection.split(separator: " ").contains(">&-")
        for (command, status) in [
            (select, isToFail ? 74 : 0),
            ("sealdb query db 'SELECT nothing' --key-file key", 65),
            ("sealdb exec db 'UPDATE people SET name = name' --key-file key", isToFail ? 74 : 0),
            ("sealdb import db t - --key-file key", redirection.contains("<&-") ? 74 : 65),
        ] as [(String, Int32)] {
            #expect(try shell("\(command) \(redirection)").status == status, "\(command) \(redirection)")
            #expect(try sandbox.contents("db-sealdb-lock").isEmpty)
        }
        user.close()
        try sandbox.makeKey("new-key")
        let rotation = "sealdb rotate db --key-file key --new-key-command '/bin/cat new-key' --journal journal"
        #expect(try shell("\(rotation) \(redirection)").status == (isToFail ? 74 : 0), "\(redirection)")
        for line in try sandbox.contents("journal").split(separator: UInt8(ascii: "\n")) {
            _ = try JSONSerialization.jsonObject(with: line)
        }
    }

    /// What was not written was not told.
    @Test(arguments: [
        "query db 'SELECT 1'", "exec db 'SELECT 1'", "tables db", "schema db", "dump db", "diff db db --sql", "info db",
        "verify db",
    ])
    func resultsThatCannotBeWritten(_ command: String) throws {
        #expect(try shell("sealdb \(command) --key-file key >/dev/full").status == 74)
    }

    @Test(arguments: [
        "doctor", "--version", "--help", "help rotate", "keyring list ring", "--generate-completion-script bash",
    ])
    func resultsOfNoStoreThatCannotBeWritten(_ command: String) throws {
        #expect(try sandbox.run([Tool.sealdb, "keyring", "create", "ring", "a"]).status == 0)
        #expect(try shell("sealdb \(command) >/dev/full").status == 74)
    }

    /// What was done stays done, and that nobody could be told is an error.
    @Test func changesThatCannotBeReported() throws {
        try sandbox.write("rows.csv", "a\n1\n")
        for (command, file) in [
            ("keygen other", "other"), ("keyring create ring a", "ring"), ("create fresh --key-file other", "fresh"),
            ("exec fresh 'CREATE TABLE t (a)' --key-file other", "fresh"),
            ("import fresh t rows.csv --append --key-file other", "fresh"),
            ("backup fresh copy --key-file other", "copy"),
            ("restore copy restored --key-file other", "restored"),
            ("rotate restored --key-file other --new-key-file key", "key"),
            ("decrypt restored plain --allow-plaintext --key-file key", "plain"),
            ("encrypt plain sealed --key-file key", "sealed"),
        ] {
            let outcome = try shell("sealdb \(command) >/dev/full")
            #expect(outcome.status == 74, "\(command): \(outcome.error)")
            #expect(outcome.error.contains("What the command has stored stays stored."), "\(command): \(outcome.error)")
            #expect(sandbox.exists(file), "\(command)")
        }
        let rows = try sandbox.run([
            Tool.sealdb, "query", "sealed", "SELECT a FROM t", "--key-file", "key", "--format", "csv",
        ])
        #expect(rows.output == "a\n1\n", "\(rows)")
    }

    /// Of a batch, this is told once, and not for each store.
    @Test func resultsOfABatchThatCannotBeWritten() throws {
        let outcome = try shell("cp db other; sealdb verify db other --key-file key >/dev/full")
        #expect(outcome.status == 74)
        #expect(outcome.error.split(separator: "\n").count == 1, "\(outcome.error)")
    }

    /// A status that nobody has read is no status.
    @Test(arguments: [(">/dev/full", 74), (">&-", 74), (">output", 0)] as [(String, Int32)])
    func statusOfABatch(_ redirection: String, status: Int32) throws {
        try sandbox.makeKey("new-key")
        let keys = ["--key-file", "key", "--new-key-file", "new-key"]
        #expect(try sandbox.run([Tool.sealdb, "rotate", "db", "--journal", "journal"] + keys).status == 0)
        for form in ["", " --json"] {
            let outcome = try shell("sealdb status journal\(form) \(redirection)")
            #expect(outcome.status == status, "\(form): \(outcome.error)")
        }
    }

    /// In a program of somebody else, too.
    @Test func aServiceWithClosedStreamsKeepsItsFilesAboveThem() throws {
        let probe = Tool.path("CipherProbe")
        let outcome = try sandbox.run(["sh", "-c", "mkdir made && '\(probe)' descriptors made 2>report <&- >&-"])
        #expect(outcome.status == 0)
        #expect(try String(decoding: sandbox.contents("report"), as: UTF8.self) == "true\n")
    }

    // MARK: Read late

    /// What is done is told as done, although a signal came before it could be told.
    @Test(arguments: [
        "exec db 'UPDATE people SET id = -id' --key-file key", "keygen new", "keyring create ring a",
        "create other --key-file key",
    ])
    func aSignalAfterTheCommit(_ arguments: String) throws {
        let path = sandbox.path("fifo")
        #expect(mkfifo(path, 0o600) == 0)
        let fifo = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(fifo) }
        var filling = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
        while write(fifo, &filling, filling.count) > 0 {}
        let child = try ChildProcess(
            ["sh", "-c", "exec '\(Tool.sealdb)' \(arguments)"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: path, error: sandbox.path("errors"))
        )
        if arguments.hasPrefix("exec") {
            var configuration = Configuration(keySource: .keyFile(sandbox.path("key")))
            configuration.busyTimeout = .seconds(60)
            let reader = Database(path: sandbox.path("db"), configuration: configuration)
            try reader.openVerified()
            while try reader.executeQuery("SELECT count(*) FROM people WHERE id < 0").scalar(Int.self) == 0,
                try !hasFailed()
            {
                sched_yield()
            }
        } else {
            let made = arguments.hasPrefix("create") ? "other" : arguments.hasPrefix("keygen") ? "new" : "ring"
            while !sandbox.exists(made), try !hasFailed() { sched_yield() }
        }
        kill(child.identifier, SIGTERM)
        // Now it can be told.
        while read(fifo, &filling, filling.count) > 0 {}
        let status = child.wait()
        #expect(status == 0, "\(status)")
    }

    /// By a signal that comes while others keep it waiting; the store is not locked by it any more.
    @Test func aStalledInput() throws {
        let path = sandbox.path("fifo")
        #expect(mkfifo(path, 0o600) == 0)
        let fifo = open(path, O_RDWR | O_CLOEXEC)
        defer { close(fifo) }
        let child = try ChildProcess(
            [Tool.sealdb, "import", "db", "t", "fifo", "--key-file", "key"],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("output"), error: sandbox.path("errors"))
        )
        var text = Array("a\n1\n".utf8)
        #expect(write(fifo, &text, text.count) == text.count)
        // It has read what there is, and waits for more.
        var left: Int32 = 1
        while left > 0 { #expect(ioctl(fifo, UInt(FIONREAD), &left) == 0) }
        kill(child.identifier, SIGTERM)
        #expect(child.wait() == 143)
        #expect(try String(decoding: sandbox.contents("errors"), as: UTF8.self).contains("Interrupted"))
        #expect(try sandbox.succeed("exec", "db", "CREATE TABLE t (a)", "--key-file", "key").status == 0)
    }

    @Test func aPipeIsNoDatabase() throws {
        #expect(mkfifo(sandbox.path("fifo"), 0o600) == 0)
        try sandbox.fail(65, "encrypt", "fifo", "new", "--key-file", "key")
        #expect(!sandbox.exists("new"))
    }

    /// Of a script that ends its transactions itself.
    @Test func rowsThatWereRolledBackAreNotCounted() throws {
        let update = "UPDATE people SET name = name WHERE id <= 7"
        let script = "\(update); BEGIN; \(update); ROLLBACK; BEGIN; \(update); COMMIT"
        #expect(try sandbox.succeed("exec", "db", script, "--key-file", "key").output == "14\n")
    }
}
