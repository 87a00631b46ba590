import Foundation
import Testing

/// JSON and what CSV says by its quotes, through the command.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct JSONImportTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
    }

    private func query(_ sql: String) throws -> String {
        try sandbox.succeed("query", "db", sql, "--key-file", "key", "--format", "tsv", "--no-header").output
    }

    private func importing(_ file: String, _ options: String..., input: String? = nil) throws -> Outcome {
        try sandbox.run([Tool.sealdb, "import", "db", "t", file, "--key-file", "key"] + options, input: input)
    }

    private static let columns = "SELECT group_concat(name || ' ' || type) FROM pragma_table_info('t')"

    @Test func membersBecomeColumns() throws {
        try sandbox.write(
            "rows.jsonl",
            """
            {"id":1,"name":"a","price":9.50,"mixed":1}
            {"id":2,"price":100.00,"mixed":"1","tags":["x"],"data":{"$blob":"AP8="}}
            {"name":null,"price":1e999,"mixed":1.5,"id":3}

            """
        )
        #expect(try importing("rows.jsonl").output == "t: 3 rows imported\n")
        #expect(
            try query(JSONImportTests.columns)
                == "id INTEGER,name TEXT,price REAL,mixed ,tags TEXT,data BLOB\n"
        )
        #expect(
            try query("SELECT id, name, price, typeof(mixed), tags, data FROM t")
                == "1\ta\t9.5\tinteger\t\\N\t\\N\n2\t\\N\t100.0\ttext\t[\"x\"]\tX'00FF'\n3\t\\N\tInf\treal\t\\N\t\\N\n"
        )
        // It exists now.
        #expect(try importing("rows.jsonl").status == 73)
        #expect(try importing("rows.jsonl", "--append").status == 0)
        #expect(try query("SELECT count(*) FROM t") == "6\n")
    }

    @Test func anArrayFromStandardInput() throws {
        let array = "[{\"a\":1,\"b\":\"x\"},{\"b\":\"y\"}]"
        #expect(try importing("-", "--format", "json", input: array).output == "t: 2 rows imported\n")
        #expect(try query("SELECT typeof(a), b FROM t") == "integer\tx\nnull\ty\n")
        // What is read once must have all columns in its first object.
        let late = try importing("-", "--format", "jsonl", "--append", input: "{\"a\":1}\n{\"c\":1}\n")
        #expect(late.status == 65 && late.error.contains("line 2: no object before has the member c"), "\(late.error)")
        let objects = "{\"a\":1}\n{\"b\":\"z\"}"
        let wanted = try importing("-", "--format", "jsonl", "--append", "--columns", "b", input: objects)
        #expect(wanted.status == 0, "\(wanted.error)")
        #expect(try query("SELECT count(*), count(a), count(b) FROM t") == "4\t1\t3\n")
    }

    @Test func tablesThatExist() throws {
        let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, r REAL, s TEXT CHECK (s <> 'bad'), b)"
        try sandbox.succeed("exec", "db", schema, "--key-file", "key")
        try sandbox.write("rows.json", "[{\"id\":1,\"n\":\"007\",\"r\":2,\"s\":3,\"b\":\"4\"}]")
        #expect(try importing("rows.json", "--append").status == 0)
        #expect(try query("SELECT n, typeof(r), typeof(s), typeof(b) FROM t") == "7\treal\ttext\ttext\n")
        try sandbox.write("rows.json", "[{\"id\":1,\"s\":\"new\"},{\"id\":2,\"s\":\"z\"}]")
        #expect(try importing("rows.json", "--upsert", "id").status == 0)
        #expect(try query("SELECT id, n, s FROM t") == "1\t7\tnew\n2\t\\N\tz\n")
        // Digits are not lost in silence.
        for (member, value) in [("r", "9007199254740993"), ("n", "9223372036854775808"), ("n", "\"1e400\"")] {
            try sandbox.write("rows.json", "{\"id\":9,\"\(member)\":\(value)}")
            let outcome = try importing("rows.json", "--append")
            #expect(outcome.status == 65 && outcome.error.contains("line 1"), "\(value): \(outcome.error)")
        }
        try sandbox.write("rows.jsonl", "{\"id\":3,\n \"s\":\"bad\"}\n{\"id\":4,\"s\":\"good\"}\n")
        let outcome = try importing("rows.jsonl", "--append", "--rejects", "bad.jsonl")
        #expect(outcome.status == 2 && outcome.error.contains("line 1: "), "\(outcome.error)")
        #expect(String(decoding: try sandbox.contents("bad.jsonl"), as: UTF8.self) == "{\"id\":3,  \"s\":\"bad\"}\n")
        #expect(try query("SELECT count(*) FROM t") == "3\n")
    }

    /// What the file does not say of a row is not overwritten.
    @Test func membersThatAreMissing() throws {
        let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, note TEXT)"
        try sandbox.succeed("exec", "db", schema, "--key-file", "key")
        try sandbox.succeed("exec", "db", "INSERT INTO t VALUES (1, 'ann', 'precious')", "--key-file", "key")
        try sandbox.write("rows.jsonl", "{\"id\":1,\"name\":\"Ann\"}\n{\"id\":2,\"note\":\"new\"}\n")
        let outcome = try importing("rows.jsonl", "--upsert", "id")
        let message = "line 1: the object has no member note"
        #expect(outcome.status == 65 && outcome.error.contains(message), "\(outcome.error)")
        #expect(try query("SELECT * FROM t") == "1\tann\tprecious\n")
        try sandbox.write("rows.jsonl", "{\"id\":1,\"note\":null}\n{\"note\":\"no key\"}\n")
        #expect(try importing("rows.jsonl", "--upsert", "id").status == 65)
        let partly = try importing("rows.jsonl", "--upsert", "id", "--rejects", "bad.jsonl")
        #expect(partly.status == 2, "\(partly.error)")
        #expect(try query("SELECT * FROM t") == "1\tann\t\\N\n")
        #expect(String(decoding: try sandbox.contents("bad.jsonl"), as: UTF8.self) == "{\"note\":\"no key\"}\n")
    }

    @Test(arguments: ["9007199254740993.0", "1e400", "-1e-400", "12345678901234567890.0"])
    func numbersThatARealDoesNotHold(number: String) throws {
        try sandbox.write("rows.json", "{\"n\":\(number)}")
        let outcome = try importing("rows.json")
        #expect(outcome.status == 65 && outcome.error.contains("a REAL would lose digits"), "\(outcome.error)")
        #expect(try query("SELECT count(*) FROM sqlite_schema") == "0\n")
        #expect(try importing("rows.json", "--types", "n=TEXT").status == 0)
        #expect(try query("SELECT n, typeof(n) FROM t") == "\(number)\ttext\n")
    }

    /// SQLite would write a REAL into a column of texts with 15 digits.
    @Test func numbersInColumnsOfTexts() throws {
        try sandbox.write("rows.json", "{\"n\":0.30000000000000004}\n{\"n\":123456789.123456789}\n")
        #expect(try importing("rows.json", "--types", "n=TEXT").status == 0)
        #expect(try query("SELECT n FROM t") == "0.30000000000000004\n123456789.123456789\n")
    }

    @Test func escapesThatJSONDoesNotHave() throws {
        try sandbox.write("rows.json", #"{"a":["\uZZZZ"]}"#)
        let outcome = try importing("rows.json")
        #expect(outcome.status == 65 && outcome.error.contains("four hexadecimal digits"), "\(outcome.error)")
    }

    @Test func wrongUsage() throws {
        try sandbox.write("rows.json", "{\"a\":1}")
        for options in [["--no-header"], ["--null", "x"], ["--delimiter", ";"], ["--types", "b=TEXT"]] {
            let outcome = try sandbox.run(
                [Tool.sealdb, "import", "db", "t", "rows.json", "--key-file", "key"] + options
            )
            #expect(outcome.status == 64, "\(options): \(outcome.error)")
        }
        for text in ["", "{}", "[]", "[1]", "{\"a\":1"] {
            try sandbox.write("rows.json", text)
            #expect(try importing("rows.json").status == 65, "\(text)")
        }
        #expect(try query("SELECT count(*) FROM sqlite_schema") == "0\n")
    }

    /// A number in quotes is a text where other fields have none, and a number where all have.
    @Test(arguments: [
        ("n,z\n1,\"01\"\n2,\"2\"\n", "n INTEGER,z TEXT"), ("\"n\",\"z\"\n\"1\",\"2\"\n", "n INTEGER,z INTEGER"),
        ("n,z\n\"1\",x\n", "n TEXT,z TEXT"), ("n,z\nX'00ff',\"X'00'\"\n", "n BLOB,z TEXT"),
        ("n,z\nX'0',X'00\n", "n TEXT,z TEXT"), ("n,z\n1e+300,Inf\n1.5,-2\n", "n REAL,z REAL"),
    ])
    func quotesOfCSV(text: String, types: String) throws {
        try sandbox.write("rows.csv", text)
        #expect(try importing("rows.csv").status == 0)
        #expect(try query(JSONImportTests.columns) == types + "\n")
    }

    /// Numbers that become texts are told at once, with what makes them numbers.
    @Test func numbersThatCompareAsTexts() throws {
        try sandbox.write("rows.csv", "price,code\n9.50,a\n100.00,b\n")
        let outcome = try importing("rows.csv")
        #expect(outcome.status == 0 && outcome.error.contains("--types price=REAL"), "\(outcome.error)")
        #expect(!outcome.error.contains("code"))
        try sandbox.succeed("exec", "db", "DROP TABLE t", "--key-file", "key")
        #expect(try importing("rows.csv", "--types", "price=REAL").error.isEmpty)
        #expect(try query("SELECT count(*) FROM t WHERE price < 50") == "1\n")
    }
}
