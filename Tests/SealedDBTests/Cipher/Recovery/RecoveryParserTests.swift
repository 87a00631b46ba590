import Foundation
import Testing

@testable import SealedDB

/// The pages of a damaged store may hold anything.
@Suite(.hangLimit)
struct RecoveryParserTests {
    @Test(arguments: 0..<8)
    func anyBytesAreRead(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            var page = (0..<512).map { _ in UInt8.random(in: 0...255, using: &generator) }
            page[0] = [2, 5, 10, 13].randomElement(using: &generator)!
            page[3] = 0
            page[4] = UInt8.random(in: 0...40, using: &generator)
            for index in stride(from: 8, to: 100, by: 2) { page[index] &= 1 }
            guard let tree = TreePage(page, number: 2, usableSize: 432) else { continue }
            for cell in tree.cells {
                guard let payload = cell.payload else { continue }
                #expect(payload.local.count <= 432 && payload.local.count <= payload.size)
                _ = SalvagedRecord(payload.local)
            }
            #expect(tree.cells.count <= Int(page[4]))
        }
    }

    @Test func numbersOfEachLength() throws {
        let record = try #require(
            SalvagedRecord(
                [11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
                    + [0xff] + [0x7f, 0xff] + [0x80, 0, 0] + [0, 0, 0, 7] + [0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]
                    + [0x80, 0, 0, 0, 0, 0, 0, 0] + [0x3f, 0xf8, 0, 0, 0, 0, 0, 0]
            )
        )
        #expect(record.values.map(\.integer) == [-1, 32767, -8_388_608, 7, -2, .min, nil, 0, 1, nil])
        guard case .real(1.5) = record.values[6] else { return #expect(Bool(false), "not 1.5") }
        #expect(record.values[9].isNull)
    }

    @Test(
        arguments: [[], [0], [2], [2, 1], [2, 10, 0], [2, 1, 5, 6], [3, 1], [0xff], [2, 17, 1], [1, 0]] as [[UInt8]]
    )
    func bytesThatAreNoRecord(bytes: [UInt8]) {
        #expect(SalvagedRecord(bytes) == nil)
    }

    @Test func longNumbers() {
        var reader = ByteReader(
            [0x81, 0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80],
            from: 0
        )
        #expect(reader.varint() == 128)
        #expect(reader.varint() == 127)
        #expect(reader.varint() == -1)
        #expect(reader.varint() == nil)
        var outside = ByteReader([1, 2], from: 5)
        #expect(outside.bytes(0) == nil && outside.varint() == nil)
    }

    // MARK: Pages

    /// A leaf of a table with one cell: the size of its payload, a row id, and as many bytes as there is room for.
    private func leaf(_ kind: UInt8, payload: Int) -> TreePage? {
        var page = [UInt8](repeating: 0, count: 512)
        page[0] = kind
        page[4] = 1
        page[9] = 10
        let size = [UInt8(0x80 | payload >> 7), UInt8(payload & 0x7f)]
        let cell = size + (kind == 13 ? [1] : [])
        page.replaceSubrange(10..<10 + cell.count, with: cell)
        return TreePage(page, number: 2, usableSize: 512)
    }

    /// <https://www.sqlite.org/fileformat.html#b_tree_pages>, with a usable size of 512: X is 477 for a table and 102 for an
    /// index, M is 39, and K is M + (P - M) mod 508.
    @Test func payloadsThatGoOnElsewhere() throws {
        for (kind, payload, local) in [
            (13, 477, 477), (13, 478, 39), (13, 985, 477), (13, 986, 39), (13, 547, 39), (13, 548, 40),
            (10, 102, 102), (10, 103, 39), (10, 610, 102), (10, 611, 39),
        ] as [(UInt8, Int, Int)] {
            let page = try #require(leaf(kind, payload: payload))
            let found = try #require(page.cells.first?.payload, "\(kind) \(payload)")
            #expect(page.isWhole && found.size == payload && found.local.count == local, "\(kind) \(payload)")
            #expect((found.overflow == nil) == (local == payload), "\(kind) \(payload)")
        }
    }

    /// A cell that begins among the pointers, or ends behind the page, is none; the others are.
    @Test func cellsThatAreNone() throws {
        var page = [UInt8](repeating: 0, count: 512)
        page[0] = 13
        page[4] = 3
        // Behind three pointers; in the last of them; and with its last byte at the end of the page.
        for (index, offset) in [14, 13, 508].enumerated() {
            page[8 + 2 * index] = UInt8(offset >> 8)
            page[9 + 2 * index] = UInt8(offset & 255)
        }
        page.replaceSubrange(14..<18, with: [2, 7, 1, 1])
        page.replaceSubrange(508..<512, with: [2, 8, 1, 1])
        let tree = try #require(TreePage(page, number: 2, usableSize: 512))
        #expect(tree.cells.map(\.rowID) == [7, 8] && !tree.isWhole)
        // Its payload would have one byte more than there is.
        page[508] = 3
        #expect(TreePage(page, number: 2, usableSize: 512)?.cells.map(\.rowID) == [7])
        page[0] = 7
        #expect(TreePage(page, number: 2, usableSize: 512) == nil)
    }

    // MARK: Types

    /// <https://www.sqlite.org/datatype3.html#determination_of_column_affinity>, with its examples.
    @Test func affinitiesOfTypes() {
        for (type, affinity) in [
            ("bigint", .integer), ("int8", .integer), ("charint", .integer), ("floating point", .integer),
            ("varchar(255)", .text), ("clob", .text), ("text", .text), ("blob", .blob), ("", .blob), ("double", .real),
            ("float", .real), ("real", .real), ("decimal(10,5)", .numeric), ("string", .numeric), ("any", .numeric),
        ] as [(String, Affinity)] {
            #expect(Affinity(ofType: type, isStrict: false) == affinity, "\(type)")
        }
        #expect(Affinity(ofType: "any", isStrict: true) == .blob)
        #expect(Affinity(ofType: "real", isStrict: true) == .real)
    }

    // MARK: Reports

    /// Whatever is missing or not where it was is told by the exit status of the command.
    @Test func whatIsComplete() {
        typealias Report = StoreRecovery.Report
        func isComplete(
            damaged: [Int64] = [],
            _ tables: [Report.Table] = [],
            lost: Int = 0,
            problems: [String] = []
        ) -> Bool {
            Report(
                path: "db",
                recoveredPath: "new",
                pageCount: 9,
                damagedPages: damaged,
                tables: tables,
                lostAndFoundCount: lost,
                problems: problems
            ).isComplete
        }
        func table(_ pages: [Int64] = [], broken: Int = 0) -> Report.Table {
            .init(name: "t", rowCount: 3, lostPages: pages, brokenRowCount: broken)
        }
        #expect(isComplete([table(), table()]))
        #expect(!isComplete(damaged: [3], [table()]))
        #expect(!isComplete([table()], lost: 1) && !isComplete([table()], problems: ["one"]))
        #expect(!isComplete([table(), table([4])]) && !isComplete([table(broken: 1), table()]))
    }
}
