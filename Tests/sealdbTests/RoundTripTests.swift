import Foundation
import Testing

/// What `query --format csv` writes is what `import` reads, in columns of every type.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct RoundTripTests {
    private static let types = ["", "INTEGER", "REAL", "NUMERIC", "TEXT", "BLOB"]
    private static let schema = types.enumerated().map { "c\($0) \($1)" }.joined(separator: ", ")

    private func makeStore(_ script: String) throws -> Sandbox {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
        try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: script)
        return sandbox
    }

    private func csv(_ sandbox: Sandbox, _ query: String) throws -> String {
        try sandbox.succeed("query", "db", query, "--key-file", "key", "--format", "csv").output
    }

    /// As SQL writes them.
    private static let texts = [
        "X''41''", "X''''", "x''41''", "X''4''", "42", "007", "1.10", "1e5", "Inf", "-Inf", "inf", "NaN", "NULL", "\\N",
        "true", " 42", "9223372036854775808", "a,b", "\"", "a\"b", "=1+1", "{\"$blob\":\"QQ==\"}", "日本", "0x10",
    ]
    private static let numbers = [
        "0", "-1", "9007199254740993", "9223372036854775807", "(-9223372036854775807 - 1)", "0.5", "-0.0", "1.0",
        "1e15",
        "1e300", "5e-324", "0.1 + 0.2", "1e999", "-1e999", "123456789012345678.0",
    ]

    private func value(_ generator: inout SeededGenerator) -> String {
        switch Int.random(in: 0..<5, using: &generator) {
        case 0: return "NULL"
        case 1:
            let digits = (0..<2 * Int.random(in: 0...5, using: &generator)).map { _ in
                String(Int.random(in: 0...15, using: &generator), radix: 16)
            }
            return "x'\(digits.joined())'"
        case 2: return "'\(Self.texts.randomElement(using: &generator) ?? "")'"
        case 3:
            let characters = (0..<4).map { _ in [9, 10, 13, 34, 39, 44, 65].randomElement(using: &generator) ?? 0 }
            return "char(\(characters.map(String.init).joined(separator: ", ")))"
        default: return Self.numbers.randomElement(using: &generator) ?? "0"
        }
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func csvKeepsEveryValue(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let rows = (0..<60).map { _ in
            "INSERT INTO a VALUES (\(Self.types.map { _ in value(&generator) }.joined(separator: ", ")));"
        }
        let tables = ["a", "b", "c"].map { "CREATE TABLE \($0) (\(Self.schema));" }
        let sandbox = try makeStore((tables + rows).joined())
        let written = try csv(sandbox, "SELECT * FROM a")
        try sandbox.write("rows.csv", written)
        try sandbox.succeed("import", "db", "b", "rows.csv", "--append", "--key-file", "key")
        try sandbox.succeed("import", "db", "c", "-", "--append", "--key-file", "key", input: written)
        let columns = Self.types.indices.map { "c\($0)" }
        let kinds = (columns.map { "typeof(\($0))" } + columns).joined(separator: ", ")
        for table in ["b", "c"] {
            #expect(try csv(sandbox, "SELECT \(kinds) FROM \(table)") == csv(sandbox, "SELECT \(kinds) FROM a"))
        }
        // In a new table, numbers may become texts. Blobs and NULL do not, and nothing becomes one.
        try sandbox.run([Tool.sealdb, "import", "db", "d", "rows.csv", "--key-file", "key"])
        try sandbox.succeed("import", "db", "e", "-", "--key-file", "key", input: written)
        let others = columns.map { "CASE WHEN typeof(\($0)) IN ('blob', 'null') THEN quote(\($0)) END" }
            .joined(separator: ", ")
        for table in ["d", "e"] {
            #expect(try csv(sandbox, "SELECT \(others) FROM \(table)") == csv(sandbox, "SELECT \(others) FROM a"))
        }
    }

    @Test(arguments: ["TEXT", "INTEGER", "REAL"])
    func blobsInAStrictTable(type: String) throws {
        let sandbox = try makeStore("CREATE TABLE t (ok ANY, other \(type)) STRICT;")
        try sandbox.write("rows.csv", "ok,other\nX'01',\nX'02',X'41'\n")
        let outcome = try sandbox.fail(65, "import", "db", "t", "rows.csv", "--append", "--key-file", "key")
        #expect(outcome.error.contains("line 3") && outcome.error.contains("t.other"), "\(outcome.error)")
        #expect(try csv(sandbox, "SELECT count(*) AS n FROM t") == "n\n0\n")
    }

    /// Quotes tell the text from the infinite number, also where all fields are in quotes.
    @Test func theTextInf() throws {
        let sandbox = try makeStore("CREATE TABLE t (n NUMERIC);")
        try sandbox.write("rows.csv", "n\nInf\n\"Inf\"\n\"-Inf\"\n-Inf\n")
        try sandbox.succeed("import", "db", "t", "rows.csv", "--append", "--key-file", "key")
        #expect(try csv(sandbox, "SELECT typeof(n) AS t FROM t") == "t\nreal\ntext\ntext\nreal\n")
        try sandbox.write("rows.csv", "n\n\"1.5\"\n\"Inf\"\n")
        try sandbox.succeed("import", "db", "new", "rows.csv", "--key-file", "key")
        #expect(try csv(sandbox, "SELECT typeof(n) AS t, n FROM new") == "t,n\ntext,\"1.5\"\ntext,\"Inf\"\n")
    }

    /// TSV has no quotes: there, the type of the column tells that it is no blob.
    @Test func blobsOfTSV() throws {
        let sandbox = try makeStore("CREATE TABLE t (a TEXT, b BLOB); INSERT INTO t VALUES ('X''41''', x'41');")
        let rows = try sandbox.succeed("query", "db", "SELECT * FROM t", "--key-file", "key", "--format", "tsv").output
        try sandbox.write("rows.tsv", rows)
        try sandbox.succeed("import", "db", "t", "rows.tsv", "--append", "--key-file", "key")
        #expect(try csv(sandbox, "SELECT count(*) AS n FROM (SELECT DISTINCT * FROM t)") == "n\n1\n")
    }
}
