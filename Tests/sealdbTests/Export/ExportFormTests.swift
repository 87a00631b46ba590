import Foundation
import SealedDB
import Testing

@testable import sealdb

/// Values and statements in the forms that PostgreSQL takes.
@Suite(.hangLimit)
struct ExportFormTests {
    private func date(_ text: String) -> DateForm? { Array(text.utf8).withUnsafeBytes { DateForm($0) } }

    @Test func datesThatPostgreSQLHoldsExactly() throws {
        #expect(try #require(date("2000-01-01")).days == 0)
        #expect(try #require(date("1999-12-31")).days == -1)
        #expect(try #require(date("0001-01-01")).days == -730_119)
        #expect(try #require(date("9999-12-31")).days == 2_921_939)
        #expect(try #require(date("2024-02-29")).days == 8825)
        let moment = try #require(date("2000-01-02 00:00:01.25"))
        #expect(moment.kind == .timestamp && moment.microseconds == 86_401_250_000)
        for zoned in ["2000-01-02T02:00:01+02:00", "2000-01-01T23:30:01-00:30", "2000-01-02 00:00:01Z"] {
            let moment = try #require(date(zoned))
            #expect(moment.kind == .timestampWithZone && moment.microseconds == 86_401_000_000, "\(zoned)")
        }
        #expect(try #require(date("2000-01-01 00:00:00.000001")).microseconds == 1)
    }

    @Test(arguments: [
        "0000-01-01", "2023-02-29", "1900-02-29", "2023-13-01", "2023-00-10", "2023-04-31", "2023-1-01", "12:00",
        "2023-01-01 24:00", "2023-01-01 12:60", "2023-01-01 12:00:60", "2023-01-01 12:00:00.", "2023-01-01 ",
        "2023-01-01 12:00:00.1234567", "2023-01-01 12:00+15:00", "2023-01-01x12:00", "2023-01-01 12:00 Z", "now",
    ])
    func textsThatAreNoDatesThere(_ text: String) {
        #expect(date(text) == nil)
    }

    private func numeric(_ value: Double, _ limits: NumericLimits? = nil) -> [Int16] {
        let buffer = ByteBuffer(capacity: 16)
        DecimalForm(value).add(to: buffer, limits: limits)
        let bytes = Array(buffer.bytes.dropFirst(4))
        return stride(from: 0, to: bytes.count, by: 2).map { Int16(bytes[$0]) << 8 | Int16(bytes[$0 + 1]) }
    }

    /// The count of groups, the weight of the first, the sign, the decimals, and the groups of four digits.
    @Test func decimalNumbers() {
        #expect(numeric(0) == [0, 0, 0, 0])
        #expect(numeric(-0.0) == [0, 0, 0, 0])
        #expect(numeric(1) == [1, 0, 0, 0, 1])
        #expect(numeric(-12345.5) == [3, 1, 0x4000, 1, 1, 2345, 5000])
        #expect(numeric(0.0001) == [1, -1, 0, 4, 1])
        #expect(numeric(0.00001) == [1, -2, 0, 5, 1000])
        #expect(numeric(100_000_000) == [1, 2, 0, 0, 1])
        #expect(numeric(1.25, NumericLimits(precision: 10, scale: 4)) == [2, 0, 0, 4, 1, 2500])
        let limits = NumericLimits(precision: 4, scale: 2)!
        #expect(DecimalForm(99.99).fits(limits) && !DecimalForm(100.0).fits(limits) && !DecimalForm(0.001).fits(limits))
        #expect(DecimalForm(Int64.min).fits(NumericLimits(precision: 19, scale: 0)!))
    }

    @Test func rowsInPartsOfAnySize() throws {
        let row = ByteBuffer(capacity: 16)
        CopiedRow.begin(3, in: row)
        let text = Array("a\tb\n\\.\n".utf8)
        #expect(text.withUnsafeBytes { CopiedRow.add(.text($0), as: .text, to: row) })
        #expect(CopiedRow.add(.null, as: .bigint, to: row))
        #expect(CopiedRow.add(.integer(-1), as: .bigint, to: row))
        let one = Array(row.bytes)
        let stream = CopiedRow.header + one + one + CopiedRow.trailer
        for size in [1, 2, 3, 7, 19, 20, stream.count] {
            var (rows, found) = (CopiedRows(), 0)
            for start in stride(from: 0, to: stream.count, by: size) {
                #expect(!rows.isComplete)
                try stream[start..<min(stream.count, start + size)].withUnsafeBytes { bytes in
                    try rows.read(bytes) {
                        found += 1
                        #expect($0.elementsEqual(one))
                    }
                }
            }
            #expect(rows.isComplete && found == 2)
        }
        for wrong in [Array("PGCOPY\r\n\u{1}\u{1}\u{1}\u{1}         ".utf8), stream + [0, 0]] {
            var rows = CopiedRows()
            #expect(throws: Failure.self) { try wrong.withUnsafeBytes { try rows.read($0) { _ in } } }
        }
        #expect(!CopiedRow.add(.real(1), as: .bigint, to: row))
        #expect(!text.withUnsafeBytes { CopiedRow.add(.text($0), as: .timestamp, to: row) })
        #expect(!CopiedRow.add(.real(.infinity), as: .numeric(nil), to: row))
    }

    private func digest(_ rows: [String]) throws -> RowDigest {
        var digest = RowDigest()
        for row in rows { try Array(row.utf8).withUnsafeBytes { try digest.add($0) } }
        return digest
    }

    @Test func aDigestKnowsItsRowsInAnyOrder() throws {
        let rows = ["a", "b", "c", "c"]
        #expect(try digest(rows) == digest(rows.reversed()))
        for others in [
            ["a", "b", "c"], ["a", "b"], ["a", "b", "d", "d"], ["a", "a", "b", "c"], ["ab", "", "c", "c"],
        ] {
            #expect(try digest(others) != digest(rows))
        }
        // The sum carries: without that, two halves could change places.
        #expect(try digest(["a"]).text.count == 64)
        if isEncrypting {
            #expect(try digest(["abc"]).text.hasPrefix("ad1500f2"), "SHA-256 of abc, from its end")
        }
    }

    private static let columns: [ExactText: PortableExpression.Column] = [
        ExactText(name: "n"): .init(name: "n", type: .bigint, isBinary: true),
        ExactText(name: "t"): .init(name: "T", type: .text, isBinary: true),
        ExactText(name: "nocase"): .init(name: "nocase", type: .text, isBinary: false),
        ExactText(name: "flag"): .init(name: "flag", type: .boolean, isBinary: true),
        ExactText(name: "day"): .init(name: "day", type: .date, isBinary: true),
    ]

    @Test(arguments: [
        ("n > 0", "\"n\" > 0"),
        ("n == -1 OR n <> 2 AND NOT n IS NULL", "\"n\" = -1 OR \"n\" <> 2 AND NOT \"n\" IS NULL"),
        ("t IN ('a', 'it''s\\')", "\"T\" IN ('a', 'it''s\\')"), ("t < 'x'", "\"T\" < 'x' COLLATE \"C\""),
        ("flag IN (0, 1)", "\"flag\" IN (FALSE, TRUE)"), ("flag", "\"flag\""), ("1 = flag", "TRUE = \"flag\""),
        ("(n > 1) AND ((n) < 3)", "(\"n\" > 1) AND (\"n\" < 3)"), ("nocase NOTNULL", nil),
        ("length(t) <= 5", "char_length(\"T\") <= 5"), ("n NOT BETWEEN 1 AND 5", "\"n\" NOT BETWEEN 1 AND 5"),
        ("n", nil), ("t LIKE 'a%'", nil), ("n = '1'", nil), ("t = 1", nil), ("t > \"nothing\"", nil),
        ("n + 1 > 0", nil),
        ("nocase = 'a'", nil), ("day > '2000-01-01'", nil), ("lower(t) = 'a'", nil), ("n > 0x10", nil),
        ("flag > 0", nil),
        ("n > 99999999999999999999", nil), ("n IN (SELECT 1)", nil), ("1 = 1 = 1", nil), ("n > 0 n", nil), ("", nil),
        ("n = 1; DROP TABLE x", nil), ("length(n) = 1", nil), ("t COLLATE NOCASE = 'a'", nil), ("n IS 1", nil),
    ])
    func conditions(_ text: String, _ expected: String?) {
        #expect(PortableExpression.condition(SQLPart.all(of: text), columns: Self.columns) == expected)
        let deep = String(repeating: "(", count: 5000) + "n > 0" + String(repeating: ")", count: 5000)
        #expect(PortableExpression.condition(SQLPart.all(of: deep), columns: Self.columns) == nil)
    }

    @Test func defaults() {
        func translated(_ text: String, _ type: TargetType) -> String? { ColumnDefault.translated(text, as: type) }
        #expect(translated("-5", .bigint) == "-5" && translated("(+ 5)", .bigint) == "5")
        #expect(translated("5", .text) == "'5'" && translated("'it''s\\'", .text) == "'it''s\\'")
        #expect(translated("1", .boolean) == "TRUE" && translated("2", .boolean) == nil)
        #expect(translated("x'00Ff'", .bytea) == "'\\x00Ff'" && translated("x'00'", .text) == nil)
        #expect(translated("1e400", .double) == nil && translated("1.5e3", .double) == "1.5e3")
        #expect(translated("NULL", .date) == "NULL" && translated("'2000-01-01'", .date) == "'2000-01-01'")
        #expect(translated("'soon'", .date) == nil && translated("'2000-01-01 10:00'", .date) == nil)
        #expect(translated("(random())", .bigint) == nil && translated("(1 + 1)", .bigint) == nil)
        #expect(translated("CURRENT_TIMESTAMP", .bigint) == nil && translated("\"x\"", .text) == nil)
    }

    @Test func namesAreCutWithinCharacters() {
        var taken: Set<String> = ["t_pkey"]
        #expect(TargetName.free("t", "_pkey", taken: &taken) == "t_pkey1")
        #expect(TargetName.free("t", "_pkey", taken: &taken) == "t_pkey2")
        let long = TargetName.free(String(repeating: "é", count: 40), "_key", taken: &taken)
        #expect(long.utf8.count == 62 && long.hasSuffix("é_key"))
        #expect(TargetName.problem(of: "") != nil && TargetName.problem(of: String(repeating: "x", count: 63)) == nil)
        #expect(TargetName.problem(of: String(repeating: "é", count: 32)) != nil)
    }

    @Test(arguments: [
        ("", DeclaredType.any), ("INT", .integer), ("BIGINT UNSIGNED", .integer), ("VARCHAR(20)", .text),
        ("bool", .boolean),
        ("CLOB", .text), ("DOUBLE PRECISION", .real), ("FLOATING POINT", .integer), ("STRING", .any), ("Date", .date),
        ("TIMESTAMP  WITH TIME ZONE", .dateTime), ("BLOB", .blob), ("NUMERIC", .numeric(nil)),
        ("DECIMAL(5,9)", .numeric(nil)),
        ("decimal( 10 , 2 )", .numeric(NumericLimits(precision: 10, scale: 2))), ("DECIMAL(2", .numeric(nil)),
    ])
    func declaredTypes(_ text: String, _ expected: DeclaredType) {
        #expect(DeclaredType(text) == expected)
    }
}
