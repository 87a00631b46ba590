import Foundation
import SealedDB
import Testing

@testable import sealdb

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ImportFailureTests {
    /// Text, its line, and a part of the reason.
    static let badTexts: [(String, Int, String)] = [
        ("", 1, "without even a header row"),
        ("a,b\n1,2\n3\n", 3, "expected 2 fields, found 1"),
        ("a,b\n1,2,3\n", 2, "expected 2 fields, found 3"),
        ("a,b\n1,2\n\n", 3, "the line is blank"),
        ("a,b\n\"x\ny\",2\n3\n", 4, "expected 2 fields, found 1"),
        ("a,b\n1,\"x\n", 2, "the quote opened here is never closed"),
        ("a,b\n\"x\"y,2\n", 2, "text after the closing quote of field 1"),
        ("a,b\n1,x\"y\n", 2, "a quote inside field 2"),
        ("a,b\n1,2\r3,4\n", 2, "a carriage return without a line feed"),
        ("a,b\n1,\0\n", 2, "a NUL byte"),
        ("a,,c\n1,2,3\n", 1, "column 2 of the header has no name"),
        ("a,b,A\n1,2,3\n", 1, "column 3 of the header has the name of one before it"),
    ]

    /// No name of SQLite holds one.
    @Test(arguments: [
        ("n.tsv", "a\\0b\tc\n1\t2\n", "column 1 of the header has a name with a NUL byte"),
        ("n.csv", "c,\"a\0b\"\n1,2\n", "NUL byte"),
        ("n.json", "{\"a\": 1, \"b\\u0000c\": 2}", "member 2 has a name with a NUL byte"),
    ])
    func namesWithNULBytes(file: String, text: String, reason: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        try sandbox.write(file, text)
        let outcome = try sandbox.fail(65, "import", "db", "new", file, "--key-file", "key")
        #expect(outcome.error.contains("\(file), line 1: ") && outcome.error.contains(reason), "\(outcome.error)")
        try checkUnchanged(sandbox, before)
    }

    private func checkUnchanged(_ sandbox: Sandbox, _ before: Data) throws {
        #expect(try sandbox.contents("db") == before)
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        #expect(
            try sandbox.succeed("query", "db", "SELECT count(*) AS n FROM sqlite_schema", "--key-file", "key").lines
                .last
                == "1"
        )
    }

    /// By somebody who writes to it, or empties it, while it is read.
    @Test(arguments: ["a\n1\n2\n3\n", "a\n1\n", "a\n1\n7\n"])
    func aFileThatChanges(text: String) throws {
        let sandbox = try Sandbox()
        let path = sandbox.path("rows.csv")
        try sandbox.write("rows.csv", "a\n1\n2\n")
        // The kernel's clock for files may tick in milliseconds.
        let attributes = [FileAttributeKey.modificationDate: Date(timeIntervalSinceNow: -60)]
        try FileManager.default.setAttributes(attributes, ofItemAtPath: path)
        let input = try InputFile(path: path)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.write(contentsOf: Data(text.utf8))
        try file.truncate(atOffset: UInt64(text.utf8.count))
        try file.close()
        let database = Database(path: nil)
        database.open()
        let importer = Importer(
            input: input,
            format: .csv,
            table: "t",
            appends: false,
            guessesTypes: true,
            progress: ProgressReporter(mode: .never)
        )
        let failure = #expect(throws: Failure.self) { try importer.run(on: database) }
        #expect(failure?.message.contains("changed while it was read") == true, "\(failure?.message ?? "")")
        #expect(!database.tableExists("t"))
    }

    @Test func badTextStopsWithLineAndReason() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        for (text, line, reason) in ImportFailureTests.badTexts {
            try sandbox.write("rows.csv", text)
            // As a file, which is surveyed first, and as a stream, which is found bad within the transaction.
            let asFile = try sandbox.fail(65, "import", "db", "rows", "rows.csv", "--key-file", "key")
            #expect(asFile.error.contains("rows.csv, line \(line): "), "\(asFile.error)")
            #expect(asFile.error.contains(reason), "\(asFile.error)")
            let asStream = try sandbox.fail(65, "import", "db", "rows", "-", "--key-file", "key", input: text)
            #expect(asStream.error.contains("standard input, line \(line): "), "\(asStream.error)")
            #expect(asStream.error.contains(reason), "\(asStream.error)")
        }
        try checkUnchanged(sandbox, before)
    }

    /// All or nothing, whatever the table says of conflicts.
    @Test(arguments: [
        "CREATE TABLE rows (a UNIQUE ON CONFLICT IGNORE, b)", "CREATE TABLE rows (a UNIQUE ON CONFLICT REPLACE, b)",
        """
        CREATE TABLE rows (a, b);
        CREATE TRIGGER once BEFORE INSERT ON rows WHEN EXISTS (SELECT * FROM rows WHERE a = NEW.a)
        BEGIN SELECT RAISE(IGNORE); END
        """,
    ])
    func rowsThatTheTableWouldLeaveOut(schema: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.succeed("exec", "db", "\(schema); INSERT INTO rows VALUES (1, 'kept')", "--key-file", "key")
        try sandbox.write("rows.csv", "a,b\n0,x\n1,lost\n2,y\n")
        let outcome = try sandbox.fail(65, "import", "db", "rows", "rows.csv", "--append", "--key-file", "key")
        #expect(outcome.error.contains("line 3"), "\(outcome.error)")
        let rows = try sandbox.succeed("query", "db", "SELECT * FROM rows", "--key-file", "key", "--format", "csv")
        #expect(rows.lines.dropFirst() == ["1,kept"])
    }

    @Test func invalidText() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        for bytes: [UInt8] in [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80]] {
            try sandbox.write("rows.csv", Data("a,b\n1,2\n3,x".utf8) + Data(bytes) + Data("\n".utf8))
            let outcome = try sandbox.fail(65, "import", "db", "rows", "rows.csv", "--key-file", "key")
            #expect(outcome.error.contains("rows.csv, line 3: field 2 is not valid UTF-8"), "\(outcome.error)")
        }
        try checkUnchanged(sandbox, before)
    }

    @Test func lateErrorUndoesManyRows() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        let text = "a,b\n" + String(repeating: "1,some text to fill pages with\n", count: 20_000) + "1\n"
        let outcome = try sandbox.fail(65, "import", "db", "rows", "-", "--key-file", "key", input: text)
        #expect(outcome.error.contains("line 20002: expected 2 fields, found 1"))
        #expect(try sandbox.names() == ["db", "key"])
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        #expect(try sandbox.succeed("verify", "db", "--key-file", "key").error.isEmpty)
        #expect(try sandbox.contents("db").count == before.count)
    }

    @Test func tooManyColumns() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("rows.csv", (1...2001).map { "c\($0)" }.joined(separator: ",") + "\n")
        let outcome = try sandbox.fail(65, "import", "db", "rows", "rows.csv", "--key-file", "key")
        #expect(outcome.error.contains("line 1: there are 2001 columns, but SQLite takes 2000"))
        try sandbox.write("rows.csv", (1...2000).map { "c\($0)" }.joined(separator: ",") + "\n")
        try sandbox.succeed("import", "db", "rows", "rows.csv", "--key-file", "key")
    }

    @Test func tableExists() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        try sandbox.write("rows.csv", "a\n1\n")
        for name in ["people", "PEOPLE"] {
            let outcome = try sandbox.fail(73, "import", "db", name, "rows.csv", "--key-file", "key")
            #expect(outcome.error.contains("--append"))
        }
        try checkUnchanged(sandbox, before)
    }

    @Test func appendingWhatDoesNotFit() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        try sandbox.write("rows.csv", "name,shoe_size\nx,1\n")
        let column = try sandbox.fail(65, "import", "db", "people", "rows.csv", "--append", "--key-file", "key")
        #expect(column.error.contains("no column shoe_size"))
        try sandbox.write("rows.csv", "id,name\n100,new\n7,again\n")
        let constraint = try sandbox.fail(65, "import", "db", "people", "rows.csv", "--append", "--key-file", "key")
        #expect(
            constraint.error.contains("rows.csv, line 3: UNIQUE constraint failed: people.id"),
            "\(constraint.error)"
        )
        try checkUnchanged(sandbox, before)
    }

    @Test func reservedTableName() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("rows.csv", "a\n1\n")
        try sandbox.fail(65, "import", "db", "sqlite_x", "rows.csv", "--key-file", "key")
    }

    @Test func missingFiles() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("rows.csv", "a\n1\n")
        try sandbox.fail(66, "import", "db", "rows", "absent.csv", "--key-file", "key")
        try sandbox.fail(66, "import", "db", "rows", ".", "--key-file", "key")
        try sandbox.fail(66, "import", "absent", "rows", "rows.csv", "--key-file", "key")
        #expect(try sandbox.names() == ["db", "key", "rows.csv"])
    }

    @Test func lockedStore() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("rows.csv", "a\n1\n")
        let other = try sandbox.connection()
        try other.executeUpdate("BEGIN IMMEDIATE", values: nil)
        try sandbox.fail(75, "import", "db", "rows", "rows.csv", "--key-file", "key", "--lock-wait", "0")
        other.close()
        try sandbox.succeed("import", "db", "rows", "rows.csv", "--key-file", "key", "--lock-wait", "0")
    }

    @Test(arguments: ["delete", "wal"])
    func fullDisk(journalMode: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: journalMode)
        try sandbox.write("rows.csv", "a\n" + String(repeating: "some text to fill pages with\n", count: 50_000))
        // Writes fail as they do on a full disk, from the 20th on.
        let outcome = try sandbox.run([
            "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
            "inject=pwrite64:error=ENOSPC:when=20+", Tool.sealdb, "import", "db", "rows", "rows.csv", "--key-file",
            "key",
        ])
        #expect(outcome.status == 74, "\(outcome.status) \(outcome.error)")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        let limited = try sandbox.run([
            "prlimit", "--fsize=400000", Tool.sealdb, "import", "db", "rows", "rows.csv", "--key-file", "key",
        ])
        #expect(limited.status == 74, "\(limited.status) \(limited.error)")
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        try sandbox.succeed("verify", "db", "--key-file", "key")
        try sandbox.succeed("import", "db", "rows", "rows.csv", "--key-file", "key")
    }

    @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
    func stoppedBySignal(signal: Int32, status: Int32) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("rows.csv", "a\n" + String(repeating: "some text to fill pages with\n", count: 100_000))
        let outcome = try sandbox.run([
            // The file is read twice, in twelve pieces: this is in the midst of the transaction.
            "strace", "-f", "-qq", "-o", "/dev/null", "-P", sandbox.path("rows.csv"), "-e", "trace=read", "-e",
            "inject=read:signal=\(signal):when=20", Tool.sealdb, "import", "db", "rows", "rows.csv", "--key-file",
            "key",
        ])
        #expect(outcome.status == status, "\(outcome.error)")
        #expect(outcome.error == "sealdb: Interrupted. Nothing was imported.\n")
        #expect(try sandbox.names() == ["db", "key", "rows.csv"])
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
    }

    @Test func killedHalfway() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("rows.csv", "a\n" + String(repeating: "some text to fill pages with\n", count: 100_000))
        let outcome = try sandbox.run([
            "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
            "inject=pwrite64:signal=KILL:when=500", Tool.sealdb, "import", "db", "rows", "rows.csv", "--key-file",
            "key",
        ])
        #expect(outcome.status == -SIGKILL || outcome.status == 137, "\(outcome.status) \(outcome.error)")
        #expect(sandbox.exists("db-journal"))
        // Even a command that only reads finds the store as it was before.
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        try sandbox.succeed("verify", "db", "--key-file", "key")
    }
}
