import Foundation
import SealedDB
import Testing

/// Rows that replace others, and rows that cannot be stored.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ImportRejectTests {
    private func makeStore(_ script: String) throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        if !script.isEmpty { try sandbox.succeed("exec", "db", script, "--key-file", "key") }
        return sandbox
    }

    private func rows(_ sandbox: Sandbox, _ sql: String = "SELECT * FROM t ORDER BY 1, 2") throws -> [String] {
        try sandbox.succeed("query", "db", sql, "--format", "csv", "--no-header", "--key-file", "key").lines
    }

    private func importing(_ sandbox: Sandbox, _ options: String...) throws -> Outcome {
        try sandbox.run([Tool.sealdb, "import", "db", "t", "rows.csv", "--key-file", "key"] + options)
    }

    /// As long as a signal ends the command at once, it leaves no file. One that exists is refused before all else.
    @Test func theFileIsMadeLate() throws {
        let sandbox = try makeStore("CREATE TABLE t (a)")
        try sandbox.write("rows.csv", "a\n1\n")
        try sandbox.write("program", "test ! -e bad.csv && touch asked && cat key")
        let options = ["--append", "--rejects", "bad.csv", "--key-command", "/bin/sh \(sandbox.path("program"))"]
        let arguments = [Tool.sealdb, "import", "db", "t", "rows.csv"] + options
        let outcome = try sandbox.run(arguments)
        #expect(outcome.status == 0 && sandbox.exists("asked") && !sandbox.exists("bad.csv"), "\(outcome)")
        try FileManager.default.removeItem(atPath: sandbox.path("asked"))
        try sandbox.write("bad.csv", "")
        #expect(try sandbox.run(arguments).status == 73)
        #expect(!sandbox.exists("asked"))
    }

    /// Of a mark at the beginning of a file, readers take the first for none of the text.
    @Test(arguments: [
        ("tsv", nil, "\u{feff}\u{feff}x\t50\nok\t1\n", "'\u{feff}x'"),
        ("csv", nil, "\u{feff}\"\u{feff}x\",50\nok,1\n", "'\u{feff}x'"),
        ("csv", "\u{feff}N", "\u{feff}\u{feff}N,50\nok,1\n", "NULL"),
        ("tsv", "\u{feff}N", "\u{feff}\u{feff}N\t50\nok\t1\n", "NULL"),
    ])
    func marksOfRejectedRows(format: String, null: String?, text: String, value: String) throws {
        let sandbox = try makeStore("CREATE TABLE t (a, b INT CHECK (b < 10)); CREATE TABLE u (a, b)")
        try sandbox.write("rows", text)
        let options =
            ["--append", "--no-header", "--format", format, "--key-file", "key"] + (null.map { ["--null", $0] } ?? [])
        let import1 = try sandbox.run([Tool.sealdb, "import", "db", "t", "rows", "--rejects", "bad"] + options)
        #expect(import1.status == 2, "\(import1)")
        let import2 = try sandbox.run([Tool.sealdb, "import", "db", "u", "bad"] + options)
        #expect(import2.status == 0, "\(import2)")
        #expect(try rows(sandbox, "SELECT count(*) FROM u WHERE a IS \(value)") == ["1"])
    }

    @Test func rowsThatReplaceOthers() throws {
        let sandbox = try makeStore(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, code TEXT UNIQUE, n INT DEFAULT 5);
            INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)
            """
        )
        try sandbox.write("rows.csv", "ID,code\n2,z\n3,c\n")
        try sandbox.succeed("import", "db", "t", "rows.csv", "--upsert", "id", "--key-file", "key")
        #expect(try rows(sandbox) == ["1,a,1", "2,z,2", "3,c,5"])
        // A row that would take the place of another one by another column ends it, and nothing is stored.
        try sandbox.write("rows.csv", "id,code\n1,q\n2,c\n")
        let clash = try importing(sandbox, "--upsert", "id")
        #expect(clash.status == 65 && clash.error.contains("line 3"))
        #expect(try rows(sandbox) == ["1,a,1", "2,z,2", "3,c,5"])
        // Keys alone.
        try sandbox.write("rows.csv", "id\n3\n4\n")
        try sandbox.succeed("import", "db", "t", "rows.csv", "--upsert", "id", "--key-file", "key")
        #expect(try rows(sandbox).map(\.first) == ["1", "2", "3", "4"])
        try sandbox.write("rows.csv", "id,n\n1,7\n")
        for (keys, status) in [("n", 65), ("nothing", 64), ("", 64), ("id,id", 64)] as [(String, Int32)] {
            try sandbox.fail(status, "import", "db", "t", "rows.csv", "--upsert", keys, "--key-file", "key")
        }
        try sandbox.fail(65, "import", "db", "absent", "rows.csv", "--upsert", "id", "--key-file", "key")
    }

    @Test func rowsThatCannotBeStored() throws {
        let sandbox = try makeStore("CREATE TABLE t (a INTEGER NOT NULL UNIQUE, b TEXT CHECK (b <> 'bad'), c REAL)")
        let text = """
            a,b,c
            1,ok,1
            1,again,2
            2,bad,3
            3
            4,"x ""y"",
            z",9007199254740993
            5,fine,
            6,\u{fffd},6,7

            """
        try sandbox.write("rows.csv", text)
        // Without the option nothing is stored.
        #expect(try importing(sandbox, "--append").status == 65)
        #expect(try rows(sandbox).isEmpty)

        let outcome = try importing(sandbox, "--append", "--rejects", "bad.csv")
        #expect(outcome.status == 2 && outcome.output == "t: 2 rows imported\n")
        #expect(outcome.error.contains("line 3: ") && outcome.error.contains("5 rows were not imported"))
        // Where the input lies, so that a message shows no value.
        for value in ["again", "bad,", "fine"] { #expect(!outcome.error.contains(value)) }
        #expect(try rows(sandbox) == ["1,ok,1.0", "5,fine,"])
        #expect(try sandbox.mode("bad.csv") == 0o600)
        let rejected = String(decoding: try sandbox.contents("bad.csv"), as: UTF8.self)
        #expect(rejected == "a,b,c\n1,again,2\n2,bad,3\n3\n4,\"x \"\"y\"\",\nz\",9007199254740993\n6,\u{fffd},6,7\n")
        // It is not overwritten, and the rows that are mended can be imported.
        #expect(try importing(sandbox, "--append", "--rejects", "bad.csv").status == 73)
        #expect(try sandbox.contents("bad.csv") == Data(rejected.utf8))
        try sandbox.write("rows.csv", "a,b,c\n7,good,2\n")
        #expect(try importing(sandbox, "--append", "--rejects", "more.csv").status == 0)
        #expect(!sandbox.exists("more.csv"))
    }

    /// A file whose types are found by reading it: rows that do not count for the types are rejected, too.
    @Test func aNewTable() throws {
        let sandbox = try makeStore("")
        var text = Data("n\tm\n1\t\\N\n2\t3\t4\n".utf8)
        text += Data([0xff, 0x09, 0x31, 0x0a])
        try sandbox.write("rows.csv", text)
        let outcome = try importing(sandbox, "--format", "tsv", "--rejects", "bad.tsv")
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(try rows(sandbox, "SELECT typeof(n), typeof(m) FROM t") == ["integer,null"])
        #expect(try sandbox.contents("bad.tsv") == Data("n\tm\n2\t3\t4\n".utf8) + Data([0xff, 0x09, 0x31, 0x0a]))
        // NULL stays NULL in the file of rejected rows.
        try sandbox.write("rows.csv", "n,m\n\"-\",1,2\n-,1,2\n")
        let nulls = try importing(sandbox, "--append", "--null", "-", "--rejects", "bad.csv")
        #expect(nulls.status == 2)
        #expect(try sandbox.contents("bad.csv") == Data("n,m\n\"-\",1,2\n-,1,2\n".utf8))
    }

    /// A file that exists is somebody's, whatever it holds, and also if the import would reject nothing.
    @Test func aFileThatExistsIsKept() throws {
        let sandbox = try makeStore("CREATE TABLE t (a)")
        try sandbox.write("rows.csv", "a\n1\n")
        try sandbox.write("kept.csv", "precious")
        try FileManager.default.createSymbolicLink(
            atPath: sandbox.path("link.csv"),
            withDestinationPath: sandbox.path("kept.csv")
        )
        for name in ["kept.csv", "link.csv", "rows.csv", "db", "key"] {
            let before = try sandbox.contents(name)
            #expect(try importing(sandbox, "--append", "--rejects", name).status == 73, "\(name)")
            #expect(try sandbox.contents(name) == before, "\(name)")
        }
        #expect(try rows(sandbox, "SELECT * FROM t").isEmpty)
    }

    /// Nothing is left of a row that is rejected: else it would be stored twice when it is mended.
    @Test func whatTriggersHaveDoneIsUndone() throws {
        let sandbox = try makeStore(
            """
            CREATE TABLE t (a); CREATE TABLE seen (a);
            CREATE TRIGGER late AFTER INSERT ON t WHEN new.a = 'late' BEGIN SELECT RAISE(FAIL, 'too late'); END;
            CREATE TRIGGER early BEFORE INSERT ON t WHEN new.a = 'early'
            BEGIN INSERT INTO seen VALUES (new.a); SELECT RAISE(IGNORE); END;
            """
        )
        try sandbox.write("rows.csv", "a\n1\nlate\nearly\n2\n")
        let outcome = try importing(sandbox, "--append", "--text", "--rejects", "bad.csv")
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(try rows(sandbox, "SELECT * FROM t") == ["1", "2"])
        #expect(try rows(sandbox, "SELECT * FROM seen").isEmpty)
        #expect(try sandbox.contents("bad.csv") == Data("a\nlate\nearly\n".utf8))
    }

    /// What ends the transaction, or the file, ends the import.
    @Test func failuresThatAreNotOfARow() throws {
        let sandbox = try makeStore(
            """
            CREATE TABLE t (a); CREATE TRIGGER stop BEFORE INSERT ON t WHEN new.a = 'stop'
            BEGIN SELECT RAISE(ROLLBACK, 'stopped'); END;
            """
        )
        for text in ["a\n1\nstop\n2\n", "a\n1\n\"open\n"] {
            try sandbox.write("rows.csv", text)
            let outcome = try importing(sandbox, "--append", "--rejects", "bad.csv")
            #expect(outcome.status == 65)
            #expect(try rows(sandbox, "SELECT * FROM t").isEmpty)
            #expect(!sandbox.exists("bad.csv"))
        }
        let noDirectory = try importing(sandbox, "--append", "--rejects", "absent/bad.csv")
        #expect(noDirectory.status == 73)
        // The file of rejected rows cannot be written.
        try sandbox.write("rows.csv", "a\n" + String(repeating: "1,2\n", count: 100_000))
        let full = try sandbox.run([
            "sh", "-c",
            "ulimit -f 1; exec \(Tool.sealdb) import db t rows.csv --append --rejects bad.csv --key-file key",
        ])
        #expect(full.status == 74, "\(full.error)")
        #expect(try rows(sandbox, "SELECT * FROM t").isEmpty)
        #expect(!sandbox.exists("bad.csv"))
    }
}
