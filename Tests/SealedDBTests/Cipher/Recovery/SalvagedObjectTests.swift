import Testing

@testable import SealedDB

/// Single parts of what recovery reads.
@Suite(.hangLimit)
struct SalvagedObjectTests {
    private static func object(_ type: String, root: UInt8 = 2, _ sql: String) -> SalvagedObject? {
        var (types, body): ([UInt8], [UInt8]) = ([], [])
        func add(_ text: String) {
            let size = 13 + 2 * text.utf8.count
            types += size < 128 ? [UInt8(size)] : [UInt8(0x80 | size >> 7), UInt8(size & 127)]
            body += text.utf8
        }
        for text in [type, "t", "t"] { add(text) }
        types.append(1)
        body.append(root)
        add(sql)
        return SalvagedRecord([UInt8(types.count + 1)] + types + body).flatMap { SalvagedObject($0, .utf8) }
    }

    @Test(
        arguments: [
            ("table", "CREATE TABLE t (a)", true),
            ("table", "CREATE TABLE IF NOT EXISTS t (a)", true),
            ("table", "CREATE TABLE main.t (a)", true),
            ("table", "CREATE TABLE t AS SELECT 1", false),
            // Two words, and then a parenthesis.
            ("table", "CREATE TABLE t AS SELECT (1)", false),
            ("table", "CREATE VIEW t (a) AS SELECT 1", false),
            ("table", "CREATE TEMP TABLE t (a)", false),
            ("index", "CREATE INDEX t ON u (a)", true),
            ("index", "CREATE TABLE t (a)", false),
            ("view", "CREATE VIEW t AS SELECT 1", true),
            ("view", "CREATE TRIGGER t AFTER INSERT ON u BEGIN SELECT 1; END", false),
        ]
    )
    func statementsOfASchema(type: String, sql: String, isPlain: Bool) throws {
        let object = try #require(SalvagedObjectTests.object(type, sql))
        #expect(object.isPlain == isPlain && object.sql == sql && object.name == "t")
    }

    /// SQLite reads the statement up to there.
    @Test func aStatementWithNUL() throws {
        let object = try #require(SalvagedObjectTests.object("table", "CREATE TABLE t (a)\0 and more"))
        #expect(object.isPlain && object.sql == "CREATE TABLE t (a)")
    }

    /// Rows of tables may look like rows of a schema.
    @Test(arguments: ["DROP TABLE t", "", " CREATE TABLE t (a)", "INSERT INTO t VALUES (1)"])
    func whatIsNoStatementOfASchema(sql: String) {
        #expect(SalvagedObjectTests.object("table", sql) == nil)
    }

    /// SQLite leaves the least of all whole numbers in a column as it is, so that it can be told from others.
    /// <https://www.sqlite.org/datatype3.html#storage_classes_and_datatypes>
    @Test func numbersAtTheEnds() {
        for affinity in [Affinity.integer, .numeric] {
            #expect(affinity.changes(.real(-0x1p63 + 1024), .utf8) && affinity.changes(.real(0x1p63 - 1024), .utf8))
            #expect(!affinity.changes(.real(-0x1p63), .utf8) && !affinity.changes(.real(0x1p63), .utf8))
            #expect(!affinity.changes(.real(1.5), .utf8) && affinity.changes(.real(-0.0), .utf8))
        }
    }

    /// Nor is anything read before the bytes, or backwards.
    @Test func nothingIsReadOutside() {
        let bytes: [UInt8] = [1, 2, 3, 4, 5]
        var before = ByteReader(bytes[2...], from: 1)
        #expect(before.bytes(1) == nil && before.position == 1)
        var reader = ByteReader(bytes[2...], from: 3)
        #expect(reader.bytes(-1) == nil && reader.position == 3)
        #expect(reader.bytes(2).map(Array.init) == [4, 5] && reader.bytes(1) == nil)
    }

    /// A header of a database may name more bytes than a page has.
    @Test func aPageThatIsTooShort() {
        var page = [UInt8](repeating: 0, count: 512)
        page.replaceSubrange(0..<10, with: [13, 0, 0, 0, 1, 0, 0, 0, 2, 0])
        #expect(TreePage(page, number: 2, usableSize: 512)?.isWhole == false)
        #expect(TreePage(page, number: 2, usableSize: 513) == nil)
    }
}
