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
}
