import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct QueryTests {
    private func makeEmptyStore() throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        return sandbox
    }

    private static let values = """
        SELECT 1 AS i, 2.5 AS r, 'a"b,c' AS t, NULL AS n, x'00ff' AS b, '' AS e, 1 AS i
        UNION ALL SELECT -20, 1e300 * 10, 'tab' || char(9, 10, 13, 92, 27) || 'é', NULL, x'', 'x', 2
        """

    private func query(_ sandbox: Sandbox, _ sql: String, _ options: String...) throws -> String {
        let outcome = try sandbox.run([Tool.sealdb, "query", "db", sql, "--key-file", "key"] + options)
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.output
    }

    @Test func namedParameters() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.write("text", "a=b\n")
        try sandbox.write("bytes", Data([0, 255]))
        let sql = "SELECT typeof(:a) || quote(:a) AS a, typeof(@b) || quote(@b) AS b, typeof($c) || quote($c) AS c"
        func values(_ options: String...) throws -> String {
            let outcome = try sandbox.run(
                [Tool.sealdb, "query", "db", sql, "--format", "tsv", "--no-header", "--key-file", "key"] + options
            )
            #expect(outcome.status == 0, "\(outcome.error)")
            return outcome.output
        }
        #expect(
            try values("--param", "a=40", "--param", "b=007", "--param", "c=x=y") == "integer40\ttext'007'\ttext'x=y'\n"
        )
        #expect(try values("--text", "a=40", "--int", "b=-7", "--real", "c=1") == "text'40'\tinteger-7\treal1.0\n")
        #expect(
            try values("--blob", "a=00fF", "--null-param", "b", "--text", "c=") == "blobX'00FF'\tnullNULL\ttext''\n"
        )
        #expect(
            try values("--text-file", "a=text", "--blob-file", "b=bytes", "--param", "c=")
                == "text'a=b\\n'\tblobX'00FF'\ttext''\n"
        )
        let missing = ["--int", "a=1", "--int", "b=1"]
        for wrong in [
            missing, missing + ["--int", "d=1"], missing + ["--int", "c=1", "--int", "d=1"],
            missing + ["--int", "c=1", "--text", "a=x"], missing + ["--int", "c=x"], missing + ["--int", "c"],
            missing + ["--int", "c=9223372036854775808"], missing + ["--real", "c=nan"], missing + ["--blob", "c=0"],
            missing + ["--blob", "c=0g"], missing + ["--int", "=1"], missing + ["--int", "c=1", "7"],
        ] {
            let outcome = try sandbox.run([Tool.sealdb, "query", "db", sql, "--key-file", "key"] + wrong)
            #expect(outcome.status == 64 && outcome.output.isEmpty, "\(wrong) \(outcome.error)")
        }
        try sandbox.fail(66, "query", "db", "SELECT :a", "--blob-file", "a=absent", "--key-file", "key")
        try sandbox.fail(64, "query", "db", "-", "--text-file", "a=-", "--key-file", "key", input: "SELECT :a")
        // The second one would find nothing left.
        for name in ["-", "/dev/stdin", "/dev/fd/0"] {
            let options = ["--text-file", "a=-", "--blob-file", "b=" + name, "--key-file", "key"]
            let outcome = try sandbox.run([Tool.sealdb, "query", "db", "SELECT :a, :b"] + options, input: "once")
            #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome.error)")
        }
        for number in ["1e400", "-1e400", "1e-400", "0.1e-999", "inf", "nan", "1x"] {
            try sandbox.fail(64, "query", "db", "SELECT :a", "--real", "a=" + number, "--key-file", "key")
        }
        try sandbox.succeed("query", "db", "SELECT :a", "--real", "a=0.0e9", "--key-file", "key")
        let input = try sandbox.sealdb(
            "exec",
            "db",
            "UPDATE people SET name = :a WHERE id = :b",
            "--text-file",
            "a=-",
            "--int",
            "b=1",
            "--key-file",
            "key",
            input: "from a pipe"
        )
        #expect(input.output == "1\n", "\(input.error)")
        // Several statements take no values.
        try sandbox.fail(64, "exec", "db", "SELECT :a; SELECT :a", "--int", "a=1", "--key-file", "key")
    }

    /// SQLite takes the first of two columns of one name, and drops the value of the other.
    @Test func insertsWithColumnsOfOneName() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let query = ["query", "db", "--format", "insert", "--into", "t", "--key-file", "key"]
        let outcome = try sandbox.run([Tool.sealdb] + query + ["SELECT 1 AS a, 2 AS A"])
        #expect(outcome.status == 65 && outcome.output.isEmpty, "\(outcome.error)")
        #expect(
            try sandbox.run([Tool.sealdb] + query + ["SELECT 1 AS a, 2 AS b"]).output
                == "INSERT INTO \"t\"(\"a\",\"b\") VALUES(1,2);\n"
        )
    }

    @Test func furtherFormats() throws {
        let sandbox = try makeEmptyStore()
        let sql = "SELECT 1 AS a, 'x|y\\' AS bc UNION ALL SELECT NULL, 'two' || char(10, 27) || 'lines'"
        #expect(
            try query(sandbox, sql, "--format", "jsonl")
                == "{\"a\":1,\"bc\":\"x|y\\\\\"}\n{\"a\":null,\"bc\":\"two\\n\\u001blines\"}\n"
        )
        #expect(
            try query(sandbox, sql, "--format", "line", "--null", "-")
                == " a = 1\nbc = x|y\\\n\n a = -\nbc = two\\n\\u{1b}lines\n"
        )
        #expect(
            try query(sandbox, sql, "--format", "markdown")
                == "| a | bc |\n|---|---|\n| 1 | x\\|y\\\\ |\n|  | two<br>\\\\u{1b}lines |\n"
        )
        #expect(
            try query(sandbox, "SELECT 1 AS a, x'0aFF' AS `b\"c`", "--format", "insert", "--into", "t")
                == "INSERT INTO \"t\"(\"a\",\"b\"\"c\") VALUES(1,X'0aff');\n"
        )
        // Equal to Swift, and two names.
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        let names = try query(sandbox, "SELECT 1 AS \(composed), 2 AS \(decomposed)", "--format", "jsonl")
        #expect(Array(names.utf8) == Array("{\"\(composed)\":1,\"\(decomposed)\":2}\n".utf8))
        #expect(try query(sandbox, "SELECT 1 AS a WHERE 0", "--format", "jsonl").isEmpty)
        try sandbox.fail(64, "query", "db", "SELECT 1", "--format", "insert", "--key-file", "key")
        try sandbox.fail(64, "query", "db", "SELECT 1", "--into", "t", "--key-file", "key")
    }

    @Test func headersAndNull() throws {
        let sandbox = try makeEmptyStore()
        let sql = "SELECT NULL AS a, '' AS b, 'none' AS c"
        #expect(try query(sandbox, sql, "--format", "csv", "--no-header", "--null", "none") == "none,,\"none\"\n")
        #expect(try query(sandbox, sql, "--format", "csv") == "a,b,c\n,\"\",none\n")
        #expect(try query(sandbox, "SELECT 0, NULL", "--format", "csv", "--no-header", "--null", "0") == "\"0\",0\n")
        #expect(try query(sandbox, sql, "--format", "tsv", "--no-header") == "\\N\t\tnone\n")
        #expect(try query(sandbox, sql, "--format", "tsv", "--no-header", "--null", "") == "\t\tnone\n")
        #expect(try query(sandbox, sql, "--no-header", "--null", "NULL") == "NULL    none\n")
    }

    /// What would be read as NULL, and is none, is not written.
    @Test func valuesThatReadAsNull() throws {
        let sandbox = try makeEmptyStore()
        for (format, value, null) in [
            ("tsv", "'none'", "none"), ("tsv", "7", "7"), ("tsv", "0.5", "0.5"), ("tsv", "x'00'", "X'00'"),
            ("csv", "x'00'", "X'00'"),
        ] {
            let options = ["--format", format, "--null", null, "--key-file", "key"]
            let outcome = try sandbox.run([Tool.sealdb, "query", "db", "SELECT 'first', NULL, \(value)"] + options)
            #expect(outcome.status == 65, "\(format) \(null): \(outcome)")
            #expect(outcome.error.contains("would be read as NULL"), "\(format) \(null): \(outcome)")
            let other = try sandbox.run([Tool.sealdb, "query", "db", "SELECT 'first', NULL, 'other'"] + options)
            #expect(other.status == 0, "\(format) \(null): \(other)")
        }
        // With its backslash escaped, a text is another one.
        let sql = "SELECT NULL, '\\N'"
        #expect(try query(sandbox, sql, "--format", "tsv", "--no-header", "--null", "\\N") == "\\N\t\\\\N\n")
        for (format, null) in [
            ("tsv", "a\tb"), ("tsv", "a\nb"), ("tsv", "\\t"), ("tsv", "\\\\"), ("csv", "a,b"), ("csv", "\""),
            ("csv", "\r"),
        ] {
            let options = ["--format", format, "--null", null, "--key-file", "key"]
            let outcome = try sandbox.run([Tool.sealdb, "query", "db", "SELECT NULL"] + options)
            #expect(outcome.status == 64 && outcome.output.isEmpty, "\(format) \(null): \(outcome)")
        }
    }

    /// What takes two columns on a terminal is counted so, and what joins another character not at all.
    @Test func wideCharacters() throws {
        let sandbox = try makeEmptyStore()
        let sql = "SELECT '日本' AS a, 1 AS n UNION ALL SELECT 'e' || char(769) || 'x', 2 UNION ALL SELECT '🙂', 3"
        #expect(try query(sandbox, sql) == "a     n\n----  -\n日本  1\ne\u{301}x    2\n🙂    3\n")
    }

    @Test func table() throws {
        let sandbox = try makeEmptyStore()
        let outcome = try sandbox.succeed("query", "db", QueryTests.values, "--key-file", "key")
        // Columns are as wide as their widest value.
        #expect(outcome.lines[0].split(separator: " ") == ["i", "r", "t", "n", "b", "e", "i"])
        #expect(outcome.lines[2].hasPrefix("  1     2.5  a\"b,c  "), "\(outcome.output)")
        #expect(outcome.lines[3].hasPrefix(#"-20  1e+301  tab\t\n\r\\u{1b}é  "#), "\(outcome.output)")
        #expect(!outcome.output.contains("\u{1b}"))
        #expect(outcome.lines.count == 4)
        #expect(!outcome.lines.contains { $0.hasSuffix(" ") })
    }

    @Test func csv() throws {
        let sandbox = try makeEmptyStore()
        let outcome = try sandbox.succeed("query", "db", QueryTests.values, "--format", "csv", "--key-file", "key")
        #expect(
            outcome.output == "i,r,t,n,b,e,i\n1,2.5,\"a\"\"b,c\",,X'00FF',\"\",1\n"
                + "-20,1e+301,\"tab\t\n\r\\\u{1b}é\",,X'',x,2\n"
        )
    }

    @Test func tsv() throws {
        let sandbox = try makeEmptyStore()
        let outcome = try sandbox.succeed("query", "db", QueryTests.values, "--format", "tsv", "--key-file", "key")
        #expect(
            outcome.output == "i\tr\tt\tn\tb\te\ti\n1\t2.5\ta\"b,c\t\\N\tX'00FF'\t\t1\n"
                + "-20\t1e+301\ttab\\t\\n\\r\\\\\u{1b}é\t\\N\tX''\tx\t2\n"
        )
    }

    @Test func json() throws {
        let sandbox = try makeEmptyStore()
        let outcome = try sandbox.succeed("query", "db", QueryTests.values, "--format", "json", "--key-file", "key")
        let rows = try #require(try JSONSerialization.jsonObject(with: outcome.outputData) as? [[String: Any]])
        #expect(rows.count == 2)
        #expect(rows[0]["i"] as? Int == 1 && rows[0]["i:1"] as? Int == 1)
        #expect(rows[0]["r"] as? Double == 2.5)
        #expect(rows[0]["t"] as? String == "a\"b,c")
        #expect(rows[0]["n"] is NSNull)
        #expect((rows[0]["b"] as? [String: String]) == ["$blob": "AP8="])
        #expect(rows[1]["t"] as? String == "tab\t\n\r\\\u{1b}é")
        #expect(!outcome.output.contains("\u{1b}"))
    }

    @Test func jsonOfNoRowsAndOfInfinity() throws {
        let sandbox = try makeEmptyStore()
        let none = try sandbox.succeed("query", "db", "SELECT 1 WHERE 0", "--format", "json", "--key-file", "key")
        #expect(none.output == "[]\n")
        let infinite = try sandbox.succeed(
            "query",
            "db",
            "SELECT 9e999 AS a, -9e999 AS b",
            "--format",
            "json",
            "--key-file",
            "key"
        )
        #expect(infinite.output == "[\n{\"a\":1e999,\"b\":-1e999}\n]\n")
        let text = try sandbox.succeed(
            "query",
            "db",
            "SELECT 9e999 AS a, -9e999 AS b",
            "--format",
            "csv",
            "--key-file",
            "key"
        )
        #expect(text.output == "a,b\nInf,-Inf\n")
    }

    @Test func longResultsAreStreamed() throws {
        let sandbox = try makeEmptyStore()
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n"
        for (format, count) in [("table", 100_002), ("csv", 100_001), ("tsv", 100_001), ("json", 100_002)] {
            let outcome = try sandbox.succeed("query", "db", sql, "--format", format, "--key-file", "key")
            #expect(outcome.lines.count == count)
        }
        // A reader that stops early ends it, as in any pipe, without a word.
        let outcome = try sandbox.run(
            ["sh", "-c", "\"$0\" query db \"$1\" --format csv --key-file key | head -n 2", Tool.sealdb, sql]
        )
        #expect(outcome.output == "i\n1\n")
        #expect(outcome.error.isEmpty)
    }

    @Test func resultThatCannotBeWritten() throws {
        let sandbox = try makeEmptyStore()
        let outcome = try sandbox.run(
            ["sh", "-c", "\"$0\" query db 'SELECT 1' --key-file key >/dev/full", Tool.sealdb]
        )
        #expect(outcome.status == 74)
        #expect(
            outcome.error
                == "sealdb: Cannot write the result: No space left on device. What the command has stored stays stored.\n"
        )
    }

    @Test func parameters() throws {
        let sandbox = try makeEmptyStore()
        let sql = "SELECT typeof(?) || ' ' || typeof(?) || ' ' || typeof(?) || ' ' || typeof(?) AS t"
        func types(_ parameters: String...) throws -> String? {
            try sandbox.run([Tool.sealdb, "query", "db", "--key-file", "key", sql, "--"] + parameters).lines.last
        }
        #expect(try types("1", "-1", "1.5", "-0.25") == "integer integer real real")
        #expect(try types("007", "1.10", "NULL", "") == "text text text text")
        #expect(try types("1e3", "9223372036854775808", "+1", "x") == "text text text text")
        let untyped = try sandbox.succeed("query", "db", "SELECT 1000 > ? AS t", "99", "--key-file", "key")
        #expect(untyped.lines.last == "1")
        let tooFew = try sandbox.fail(64, "query", "db", "SELECT ?, ?", "1", "--key-file", "key")
        #expect(!tooFew.error.isEmpty)
        try sandbox.fail(64, "query", "db", "SELECT 1", "1", "--key-file", "key")
    }

    @Test(arguments: [
        "INSERT INTO people (name) VALUES ('x')", "DELETE FROM people", "CREATE TABLE t (a)", "PRAGMA user_version = 5",
        "VACUUM", "WITH a AS (SELECT 1) DELETE FROM people", "DROP TABLE people",
    ])
    func refusesToWrite(sql: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let before = try sandbox.contents("db")
        let outcome = try sandbox.fail(64, "query", "db", sql, "--key-file", "key")
        #expect(outcome.error.contains("sealdb exec"), "\(outcome.error)")
        #expect(try sandbox.contents("db") == before)
        #expect(try sandbox.names() == ["db", "key"])
    }

    @Test func attachCreatesNothing() throws {
        let sandbox = try makeEmptyStore()
        let outcome = try sandbox.sealdb("query", "db", "ATTACH 'new.db' AS new", "--key-file", "key")
        #expect(outcome.status != 0)
        #expect(!sandbox.exists("new.db"))
    }

    @Test func keysInSQL() throws {
        let sandbox = try makeEmptyStore()
        for sql in ["PRAGMA rekey = 'secret'", "ATTACH 'x' AS x KEY 'secret'"] {
            for command in ["query", "exec"] {
                let outcome = try sandbox.fail(64, command, "db", sql, "--key-file", "key")
                #expect(!outcome.error.contains("secret"))
            }
        }
        try sandbox.succeed("query", "db", "SELECT 1", "--key-file", "key")
    }

    @Test func rejectedSQL() throws {
        let sandbox = try makeEmptyStore()
        for sql in ["SELEC 1", "SELECT * FROM absent", "SELECT nothing"] {
            try sandbox.fail(65, "query", "db", sql, "--key-file", "key")
        }
        for sql in ["", " ; -- nothing", "SELECT 1; SELECT 2"] {
            try sandbox.fail(64, "query", "db", sql, "--key-file", "key")
        }
        // An error after the first rows.
        let outcome = try sandbox.sealdb(
            "query",
            "db",
            "SELECT abs(x) FROM (SELECT 1 AS x UNION ALL SELECT -9223372036854775808)",
            "--format",
            "csv",
            "--key-file",
            "key"
        )
        #expect(outcome.status == 65 && outcome.error.contains("integer overflow"))
    }

    @Test func missingAndForeignFiles() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.fail(66, "query", "absent", "SELECT 1", "--key-file", "key")
        #expect(!sandbox.exists("absent"))
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        try sandbox.fail(65, "query", "plain", "SELECT 1", "--key-file", "key")
        try sandbox.write("garbage", "not a database")
        try sandbox.fail(65, "query", "garbage", "SELECT 1", "--key-file", "key")
        try sandbox.fail(65, "query", ".", "SELECT 1", "--key-file", "key")
        #expect(try sandbox.names() == ["garbage", "key", "plain"])
    }

    @Test func lockedStore() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let other = try sandbox.connection()
        try other.executeUpdate("BEGIN EXCLUSIVE", values: nil)
        try sandbox.fail(75, "query", "db", "SELECT count(*) FROM people", "--key-file", "key", "--lock-wait", "0")
        other.close()
        try sandbox.succeed("query", "db", "SELECT count(*) FROM people", "--key-file", "key", "--lock-wait", "0")
    }

    @Test(arguments: ["delete", "wal"])
    func readsBesideAWriter(journalMode: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: journalMode)
        let other = try sandbox.connection()
        try other.executeUpdate("BEGIN IMMEDIATE", values: nil)
        try other.executeUpdate("DELETE FROM people", values: nil)
        #expect(try sandbox.census(keyFile: "key").output == Sandbox.wholeStore)
        other.close()
    }

    @Test func damagedPage() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.overwrite("db", at: 2 * 4096 + 100, with: [1, 2, 3, 4, 5, 6, 7, 8])
        try sandbox.fail(
            65,
            "query",
            "db",
            "SELECT sum(length(bio)) FROM people",
            "--format",
            "json",
            "--key-file",
            "key"
        )
    }
}
