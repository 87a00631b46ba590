import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ImportTests {
    private func makeEmptyStore() throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        return sandbox
    }

    private func query(_ sandbox: Sandbox, _ sql: String, format: String = "csv") throws -> String {
        try sandbox.succeed("query", "db", sql, "--key-file", "key", "--format", format).output
    }

    @Test func typesFollowTheData() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write(
            "rows.csv",
            """
            id,size,score,code,version,note,empty
            1,900,1.5,007,1.10,"a ""quoted"", long
            note",
            2,,2,08,1.2,,
            """
        )
        let outcome = try sandbox.succeed("import", "db", "rows", "rows.csv", "--key-file", "key")
        #expect(outcome.output == "rows: 2 rows imported\n")
        // Columns of numbers that are texts are told, once each.
        #expect(outcome.error.components(separatedBy: "became TEXT").count == 3, "\(outcome.error)")
        #expect(outcome.error.contains("column code") && outcome.error.contains("--types version=REAL"))
        #expect(
            try query(sandbox, "SELECT type FROM pragma_table_info('rows')")
                == "type\nINTEGER\nINTEGER\nREAL\nTEXT\nTEXT\nTEXT\nTEXT\n"
        )
        #expect(
            try query(sandbox, "SELECT * FROM rows")
                == """
                id,size,score,code,version,note,empty
                1,900,1.5,007,1.10,"a ""quoted"", long
                note",
                2,,2.0,08,"1.2",,

                """
        )
        #expect(try query(sandbox, "SELECT count(*) AS n FROM rows WHERE size IS NULL") == "n\n1\n")
    }

    @Test func filesWithoutAHeader() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "1,a\n2,b\n")
        func run(_ options: String...) throws -> Outcome {
            try sandbox.run([Tool.sealdb, "import", "db", "t", "rows.csv", "--key-file", "key"] + options)
        }
        #expect(try run("--no-header").status == 64)
        #expect(try run("--no-header", "--append").status == 64)
        #expect(try run("--no-header", "--columns", "id").status == 65)
        for columns in ["", "id,", "id,ID", "id,name,more"] {
            #expect(try run("--columns", columns).status != 0)
        }
        #expect(try query(sandbox, "SELECT count(*) AS n FROM sqlite_schema") == "n\n0\n")
        #expect(try run("--no-header", "--columns", "id,name").output == "t: 2 rows imported\n")
        #expect(try run("--no-header", "--append").output == "t: 2 rows imported\n")
        #expect(try run("--no-header", "--append", "--columns", "name,id").output == "t: 2 rows imported\n")
        // Other names than the header's.
        #expect(try run("--append", "--columns", "id,name").output == "t: 1 row imported\n")
        #expect(
            try query(sandbox, "SELECT typeof(id) || id AS id, name FROM t")
                == "id,name\ninteger1,a\ninteger2,b\ninteger1,a\ninteger2,b\ntexta,\"1\"\ntextb,\"2\"\ninteger2,b\n"
        )
    }

    @Test func typesThatAreSaid() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "id,price,code\n1,9.50,7\n2,100.00,8\n")
        func run(_ options: String...) throws -> Outcome {
            try sandbox.run([Tool.sealdb, "import", "db", "t", "rows.csv", "--key-file", "key"] + options)
        }
        for wrong in ["", "id", "id=", "=TEXT", "id=TEXT,ID=REAL", "id=TEXT=TEXT", "other=TEXT"] {
            #expect(try run("--types", wrong).status == 64, "\(wrong)")
        }
        #expect(try run("--types", "id=TEXT", "--append").status == 64)
        #expect(try run("--types", "id=TEXT", "--text").status == 64)
        #expect(try query(sandbox, "SELECT count(*) AS n FROM sqlite_schema") == "n\n0\n")
        #expect(try run("--types", "PRICE=real,code=TEXT").status == 0)
        #expect(
            try query(
                sandbox,
                "SELECT typeof(id), typeof(price), typeof(code), price < 50 AS less FROM t",
                format: "tsv"
            )
                == "typeof(id)\ttypeof(price)\ttypeof(code)\tless\ninteger\treal\ttext\t1\ninteger\treal\ttext\t0\n"
        )
    }

    @Test func otherDelimiters() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "a;b\n\"1;2\";3,4\n")
        try sandbox.succeed("import", "db", "t", "rows.csv", "--delimiter", ";", "--key-file", "key")
        #expect(try query(sandbox, "SELECT * FROM t") == "a,b\n1;2,\"3,4\"\n")
        for wrong in ["", ";;", "\"", "\n", "é"] {
            try sandbox.fail(64, "import", "db", "u", "rows.csv", "--delimiter", wrong, "--key-file", "key")
        }
        try sandbox.fail(
            64,
            "import",
            "db",
            "u",
            "rows.csv",
            "--format",
            "tsv",
            "--delimiter",
            ";",
            "--key-file",
            "key"
        )
    }

    /// What query writes, import reads back as the same values.
    @Test(arguments: [("csv", ""), ("csv", "NULL"), ("csv", "1"), ("tsv", "\\N")])
    func nullsAndEmptyTexts(format: String, null: String) throws {
        let sandbox = try makeEmptyStore()
        let sql = """
            CREATE TABLE t (a TEXT, b TEXT); INSERT INTO t VALUES (NULL, ''), ('', NULL), ('NULL', 'null'), ('1', NULL);
            INSERT INTO t VALUES (NULL, 'a,"b' || char(9, 10, 13) || '\\N\\');
            """
        try sandbox.succeed("exec", "db", sql, "--key-file", "key")
        let options = ["--format", format, "--null", null, "--key-file", "key"]
        let rows = try sandbox.run([Tool.sealdb, "query", "db", "SELECT * FROM t"] + options)
        try sandbox.write("rows", rows.output)
        let outcome = try sandbox.run([Tool.sealdb, "import", "db", "u", "rows", "--text"] + options)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try query(sandbox, "SELECT count(*) AS n FROM (SELECT * FROM t EXCEPT SELECT * FROM u)") == "n\n0\n")
        #expect(try query(sandbox, "SELECT count(*) AS n FROM u WHERE a IS NULL OR b IS NULL") == "n\n4\n")
    }

    /// With its backslash escaped, what stands for NULL is a text.
    @Test(arguments: [
        ("\\N", "\\N\t\\\\N\n\\\\N\t\\N\n", "1,1\n"), (nil, "\\N\t\\\\N\n\\\\N\t\\N\n", "1,1\n"),
        ("\\N", "\\N\t\\\\N\r\n\\\\N\t\\N\r\n", "1,1\n"), ("a\\b", "a\\b\ta\\\\b\nx\tx\n", "1,0\n"),
        ("N", "N\t\\N\n\\\\N\tN", "1,1\n"),
    ])
    func nullsWithEscapes(null: String?, text: String, counts: String) throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.tsv", text)
        let options = ["--no-header", "--columns", "a,b", "--key-file", "key"] + (null.map { ["--null", $0] } ?? [])
        let outcome = try sandbox.run([Tool.sealdb, "import", "db", "t", "rows.tsv"] + options)
        #expect(outcome.status == 0, "\(outcome.error)")
        let sql = "SELECT sum(a IS NULL), sum(b IS NULL) FROM t"
        let found = try sandbox.succeed("query", "db", sql, "--no-header", "--format", "csv", "--key-file", "key")
        #expect(found.output == counts)
    }

    /// A name is no value.
    @Test(arguments: ["csv", "tsv"]) func aColumnWithTheNameOfNull(format: String) throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows", "id\tname\nid\tx\n".replacing("\t", with: format == "csv" ? "," : "\t"))
        let outcome = try sandbox.run(
            [Tool.sealdb, "import", "db", "t", "rows", "--format", format, "--null", "id", "--key-file", "key"]
        )
        #expect(outcome.status == 0, "\(outcome)")
        #expect(try query(sandbox, "SELECT id IS NULL AS n, name FROM t") == "n,name\n1,x\n")
    }

    /// A quote that a combining mark follows is no quote to Swift, but it is one to SQLite.
    @Test func namesThatWouldEndTheirQuotes() throws {
        let sandbox = try makeEmptyStore()
        let name = "a\"\u{301}, x AS (1/0)); DROP TABLE people; --"
        try sandbox.write("rows.csv", "\"\(name.replacing("\"\u{301}", with: "\"\"\u{301}"))\",b\n1,2\n")
        try sandbox.succeed("import", "db", name, "rows.csv", "--key-file", "key")
        let names = try query(
            sandbox,
            "SELECT hex(name) AS n FROM sqlite_schema UNION ALL SELECT hex(name) FROM pragma_table_info((SELECT name FROM sqlite_schema))"
        )
        let hex = name.utf8.map { String(format: "%02X", $0) }.joined()
        #expect(names == "n\n\(hex)\n\(hex)\n\"62\"\n")
    }

    @Test func everythingAsText() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "n\n1\n")
        try sandbox.succeed("import", "db", "rows", "rows.csv", "--text", "--key-file", "key")
        #expect(try query(sandbox, "SELECT typeof(n) AS t FROM rows") == "t\ntext\n")
    }

    @Test func tabsByExtensionAndByOption() throws {
        let sandbox = try makeEmptyStore()
        let text = "name\tpath\nq\"uote\tC:\\\\x\\ty\nnothing\t\\N\n"
        try sandbox.write("rows.tsv", text)
        try sandbox.write("rows.txt", text)
        try sandbox.succeed("import", "db", "a", "rows.tsv", "--key-file", "key")
        try sandbox.succeed("import", "db", "b", "rows.txt", "--format", "tsv", "--key-file", "key")
        let rows = #"[{"name":"q\"uote","path":"C:\\x\ty"},{"name":"nothing","path":null}]"#
        for table in ["a", "b"] {
            #expect(try query(sandbox, "SELECT * FROM \(table)", format: "json").replacing("\n", with: "") == rows)
        }
    }

    @Test func standardInputIsText() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.succeed("import", "db", "rows", "-", "--key-file", "key", input: "n\r\n1\r\n2")
        #expect(try query(sandbox, "SELECT n, typeof(n) AS t FROM rows") == "n,t\n\"1\",text\n\"2\",text\n")
    }

    @Test func headerAlone() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "a,b\n")
        #expect(
            try sandbox.succeed("import", "db", "rows", "rows.csv", "--key-file", "key").output
                == "rows: 0 rows imported\n"
        )
        #expect(try query(sandbox, "SELECT * FROM rows") == "a,b\n")
    }

    @Test func namesNeedNoCare() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "select,\"a \"\"b\"\"\",été;--\n1,2,3\n")
        let table = "t\"; DROP TABLE x; --"
        try sandbox.succeed("import", "db", table, "rows.csv", "--key-file", "key")
        #expect(
            try query(sandbox, "SELECT * FROM \"t\"\"; DROP TABLE x; --\"") == "select,\"a \"\"b\"\"\",été;--\n1,2,3\n"
        )
    }

    /// The script's table of what becomes of each kind of value is the one in the documentation.
    @Test func tableOfRoundTrips() throws {
        let sandbox = try Sandbox()
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let script = root.appendingPathComponent("scripts/round-trips").path
        let outcome = try sandbox.run(["/bin/bash", script], environment: ["SEALDB": Tool.sealdb])
        #expect(outcome.status == 0, "\(outcome.error)")
        let page = root.appendingPathComponent("Sources/SealedDB/SealedDB.docc/CommandRoundTrips.md")
        #expect(try String(contentsOf: page, encoding: .utf8).contains(outcome.output), "\(outcome.output)")
    }

    @Test(arguments: ["csv", "tsv"])
    func roundTrip(format: String) throws {
        let sandbox = try makeEmptyStore()
        let text = "line 1\nline 2, \"quoted\"\ttab\\backslash\r\n é日本 "
        try sandbox.succeed("exec", "db", "CREATE TABLE a (i INTEGER, r REAL, t TEXT)", "--key-file", "key")
        try sandbox.succeed("exec", "db", "INSERT INTO a VALUES (-7, ?, ?)", "0.1", text, "--key-file", "key")
        try sandbox.succeed("exec", "db", "INSERT INTO a VALUES (2, 1e300, '')", "--key-file", "key")
        let first = try query(sandbox, "SELECT * FROM a", format: format)
        try sandbox.write("rows.\(format)", first)
        try sandbox.succeed("import", "db", "b", "rows.\(format)", "--key-file", "key")
        #expect(try query(sandbox, "SELECT * FROM b", format: format) == first)
        #expect(try query(sandbox, "SELECT count(*) AS n FROM a JOIN b USING (t)") == "n\n2\n")
    }

    /// Readers take the first one of a file for none of the text.
    @Test(arguments: ["csv", "tsv"], [true, false]) func byteOrderMarksOfTexts(format: String, hasHeader: Bool) throws {
        let sandbox = try makeEmptyStore()
        let header = hasHeader ? [] : ["--no-header"]
        let columns = hasHeader ? [] : ["--columns", "\u{feff}c"]
        try sandbox.succeed("exec", "db", "CREATE TABLE a (\"\u{feff}c\" TEXT)", "--key-file", "key")
        let rows = "INSERT INTO a VALUES (char(65279) || 'one'), (char(65279, 65279)), ('two')"
        try sandbox.succeed("exec", "db", rows, "--key-file", "key")
        let query = ["query", "db", "SELECT * FROM a", "--format", format] + header + ["--key-file", "key"]
        try sandbox.write("rows.\(format)", sandbox.run([Tool.sealdb] + query).output)
        let load = ["import", "db", "b", "rows.\(format)"] + header + columns + ["--key-file", "key"]
        let outcome = try sandbox.run([Tool.sealdb] + load)
        #expect(outcome.status == 0, "\(outcome.error)")
        let differing = "SELECT count(*) AS n FROM (SELECT * FROM a EXCEPT SELECT * FROM b)"
        #expect(try self.query(sandbox, differing) == "n\n0\n")
        let name = "SELECT hex(name) AS h FROM pragma_table_info('b')"
        #expect(try self.query(sandbox, name) == "h\nEFBBBF63\n")
    }

    /// Only what begins the whole output begins with a mark that readers take away.
    @Test func byteOrderMarksOfASecondResult() throws {
        let sandbox = try makeEmptyStore()
        let sql = "SELECT char(65279) || 'a' AS t; SELECT char(65279) || 'b' AS t"
        let outcome = try sandbox.run(
            [Tool.sealdb, "exec", "db", sql, "--no-header", "--format", "tsv", "--key-file", "key"]
        )
        #expect(
            outcome.output.unicodeScalars.starts(with: "\u{feff}\u{feff}a\n\u{feff}b\n".unicodeScalars),
            "\(outcome)"
        )
    }

    @Test(arguments: ["csv", "tsv"]) func aByteOrderMarkThatStandsForNull(format: String) throws {
        let sandbox = try makeEmptyStore()
        let sql = "SELECT NULL AS t UNION ALL SELECT 'x' UNION ALL SELECT NULL"
        let null = ["--no-header", "--format", format, "--null", "\u{feff}N", "--key-file", "key"]
        let rows = try sandbox.run([Tool.sealdb, "query", "db", sql] + null).output
        try sandbox.write("rows.\(format)", rows)
        let load = ["import", "db", "b", "rows.\(format)", "--no-header", "--columns", "t", "--null", "\u{feff}N"]
        let outcome = try sandbox.run([Tool.sealdb] + load + ["--key-file", "key"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try query(sandbox, "SELECT count(*) AS n FROM b WHERE t IS NULL") == "n\n2\n", "\(rows)")
    }

    /// In the statement, SQLite's name for the new row would stand for the table's own.
    @Test func anUpsertIntoATableNamedExcluded() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.succeed("exec", "db", "CREATE TABLE excluded (b, id INTEGER PRIMARY KEY)", "--key-file", "key")
        for rows in ["id,b\n1,old\n", "id,b\n1,new\n2,more\n"] {
            try sandbox.write("rows.csv", rows)
            try sandbox.succeed("import", "db", "excluded", "rows.csv", "--upsert", "id", "--key-file", "key")
        }
        #expect(try query(sandbox, "SELECT id, b FROM excluded") == "id,b\n1,new\n2,more\n")
    }

    @Test func appends() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.succeed(
            "exec",
            "db",
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, size INT, extra DEFAULT 'x')",
            "--key-file",
            "key"
        )
        try sandbox.write("rows.csv", "NAME,size\n007,\n,12\n")
        try sandbox.succeed("import", "db", "t", "rows.csv", "--append", "--key-file", "key")
        try sandbox.succeed("import", "db", "t", "rows.csv", "--append", "--key-file", "key")
        #expect(
            try query(sandbox, "SELECT * FROM t")
                == "id,name,size,extra\n1,007,,x\n2,,12,x\n3,007,,x\n4,,12,x\n"
        )
        try sandbox.succeed("import", "db", "fresh", "rows.csv", "--append", "--key-file", "key")
    }

    /// Where a column makes a number of the text, it is the same number.
    @Test func appendsNoOtherNumbers() throws {
        let sandbox = try makeEmptyStore()
        let schema = "CREATE TABLE t (i INTEGER, r REAL, n NUMERIC, b)"
        try sandbox.succeed("exec", "db", schema, "--key-file", "key")
        for (name, value) in [
            ("i", "9223372036854775809"), ("i", "1e400"), ("r", "9007199254740993"), ("n", "12345678901234567.89"),
        ] {
            try sandbox.write("rows.csv", "\(name)\n1\n\(value)\n")
            let outcome = try sandbox.fail(65, "import", "db", "t", "rows.csv", "--append", "--key-file", "key")
            #expect(outcome.error.contains("line 3"), "\(outcome.error)")
            #expect(!outcome.error.contains(value), "\(outcome.error)")
        }
        try sandbox.write("rows.csv", "i,r,n,b\n007,1.10,9007199254740993,9223372036854775809\nx,y,z,1e400\n")
        try sandbox.succeed("import", "db", "t", "rows.csv", "--append", "--key-file", "key")
        #expect(
            try query(sandbox, "SELECT * FROM t")
                == "i,r,n,b\n7,1.1,9007199254740993,9223372036854775809\nx,y,z,1e400\n"
        )
    }

    @Test func progressOnRequest() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "a\n" + String(repeating: "x\n", count: 1000))
        let outcome = try sandbox.succeed(
            "import",
            "db",
            "rows",
            "rows.csv",
            "--progress",
            "always",
            "--key-file",
            "key"
        )
        #expect(outcome.output == "rows: 1000 rows imported\n")
        #expect(outcome.error.contains("import     99%"))
        #expect(!outcome.error.contains("\r") && !outcome.error.contains("\u{1b}"))
    }

    @Test func noPlaintextInTheFile() throws {
        let sandbox = try makeEmptyStore()
        try sandbox.write("rows.csv", "secret_column\n" + String(repeating: "known plaintext\n", count: 2000))
        try sandbox.succeed("import", "db", "secret_table", "rows.csv", "--key-file", "key")
        let contents = try sandbox.contents("db")
        for text in ["known plaintext", "secret_column", "secret_table", "CREATE TABLE", "SQLite format"] {
            #expect(contents.range(of: Data(text.utf8)) == nil)
        }
    }
}
