import Foundation
import Testing

@testable import SealedDB

/// What pages and their numbers are held in while a file is read or copied, and what the first bytes of a file say.
@Suite(.hangLimit)
struct PageMemoryTests {
    private static let failure = DatabaseError(extendedCode: SQLITE_IOERR_READ, message: "of the test")

    // MARK: Numbers

    /// A page that such a set forgets is not copied.
    @Test(arguments: 1...8) func aSetOfPages(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var set = PageSet()
        var model: Set<Int64> = []
        for step in 0..<200 {
            let start = Int64.random(in: 1...260, using: &random)
            let end = start + Int64.random(in: 0...140, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                set.insert(start)
                model.insert(start)
            case 2:
                set.insert(start...end)
                model.formUnion(start...end)
            case 3, 4:
                set.remove(start...end)
                model.subtract(start...end)
            default:
                // As when a store gets shorter.
                set.remove(end...Int64.max)
                model = model.filter { $0 < end }
            }
            #expect(set.count == Int64(model.count) && set.isEmpty == model.isEmpty, "step \(step)")
            #expect((0...500).allSatisfy { set.contains($0) == model.contains($0) }, "step \(step)")
            // Its runs are all that it has, in order.
            var found: [Int64] = []
            var next: Int64 = 1
            let limit = Int64.random(in: 1...100, using: &random)
            while found.count <= model.count, let run = set.run(from: next, limit: limit) {
                #expect(Int64(run.count) <= limit, "step \(step)")
                found += run
                next = run.upperBound + 1
            }
            #expect(found == model.sorted(), "step \(step)")
        }
    }

    @Test func runsOfPages() {
        var set = PageSet()
        #expect(set.run(from: 1, limit: 5) == nil)
        set.insert(60...70)
        set.insert(128)
        for (start, limit, run) in [
            (1, 4, 60...63), (1, 5, 60...64), (1, 11, 60...70), (60, .max, 60...70), (63, 1, 63...63), (64, 3, 64...66),
            (70, 9, 70...70), (71, 9, 128...128), (128, 2, 128...128),
        ] as [(Int64, Int64, ClosedRange<Int64>)] {
            #expect(set.run(from: start, limit: limit) == run, "from \(start), at most \(limit)")
        }
        #expect(set.run(from: 129, limit: 5) == nil)
        #expect(set.run(from: 100_000, limit: 5) == nil)
        // What is there already, or is not, is not counted again.
        set.insert(64)
        #expect(set.count == 12)
        set.remove(71...127)
        set.remove(500...600)
        #expect(set.count == 12)
        set.remove(0...60)
        #expect(set.count == 11 && !set.contains(60) && set.contains(61))
    }

    // MARK: Buffers

    /// What is read ahead is what will be wanted next, and nothing behind the end of the store.
    @Test func pagesThatAreReadAhead() throws {
        var ahead = ReadAhead(pageSize: 8192)
        var asked: [ClosedRange<Int64>] = []
        func read(_ number: Int64, broken: Int64 = 0) throws -> UInt8 {
            let page = try ahead.page(number, upTo: 20) { numbers, buffer throws(DatabaseError) in
                asked.append(numbers)
                for (index, number) in numbers.enumerated() {
                    for place in [0, 8191] { buffer[index * 8192 + place] = UInt8(number) }
                }
                if numbers.contains(broken) { throw Self.failure }
            }
            #expect(page.count == 8192 && page[8191] == page[0])
            return page[0]
        }
        for number in 1...20 as ClosedRange<Int64> { #expect(try read(number) == UInt8(number)) }
        #expect(asked == [1...8, 9...16, 17...20])
        // Out of order, nothing is known of what comes next.
        #expect(try read(5) == 5)
        #expect(asked.last == 5...5)
        #expect(try read(6) == 6)
        #expect(asked.last == 6...13)
        // A page that cannot be read does not keep the one before it from being read.
        #expect(try read(14, broken: 16) == 14)
        #expect(asked.suffix(2) == [14...20, 14...14])
        // What was left in the buffer by a read that failed is not taken for a page.
        #expect(throws: Self.failure) { try read(15, broken: 15) }
        #expect(asked.suffix(2) == [15...20, 15...15])
        for number in [15, 14] as [Int64] {
            #expect(throws: Self.failure) { try read(number, broken: number) }
            #expect(asked.last == number...number)
        }
        #expect(try read(14) == 14)
    }

    /// What a page that could not be read has left in its place is not taken for it, nor for the page that was there.
    @Test func aPlaceWhosePageCouldNotBeRead() throws {
        let pages = try KeptPages(pageSize: 4096) { $0 <= 4096 ? malloc($0) : nil }
        try #require(pages.count == 1)
        _ = try pages.keep(1) { $0.initializeMemory(as: UInt8.self, repeating: 1) }
        #expect(pages.page(1) != nil && pages.page(2) == nil)
        #expect(throws: Self.failure) {
            _ = try pages.keep(2) { page throws(DatabaseError) in
                page[0] = 2
                throw Self.failure
            }
        }
        #expect(pages.page(1) == nil && pages.page(2) == nil)
    }

    /// A page of zeros was never written, so no byte of it may be another.
    @Test func zeros() {
        var bytes = [UInt8](repeating: 0, count: 49)
        bytes[48] = 1
        func isZero() -> Bool { bytes.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: $0[..<48]).isZero } }
        #expect(isZero())
        for index in 0..<48 {
            bytes[index] = 1
            #expect(!isZero(), "byte \(index)")
            bytes[index] = 0
        }
        bytes = [UInt8](repeating: 7, count: 49)
        #expect(!isZero())
        #expect([UInt8](repeating: 0, count: 1).withUnsafeBytes { $0.isZero })
        #expect(UnsafeRawBufferPointer(start: nil, count: 0).isZero)
    }

    // MARK: The first bytes of a file

    /// SQLite keeps zeros from byte 72 to 91. A store whose header alone is plaintext has none there.
    @Test func whatIsPlaintext() {
        var header = StoreHeader.plaintextMagic + [UInt8](repeating: 1, count: 84)
        for index in 72..<92 { header[index] = 0 }
        #expect(StoreHeader.isPlaintext(header))
        for index in 72..<92 {
            header[index] = 1
            #expect(!StoreHeader.isPlaintext(header), "byte \(index)")
            #expect(!StoreHeader.isPlaintext(Array(header[..<92])), "byte \(index)")
            // Too little to look at.
            #expect(StoreHeader.isPlaintext(Array(header[..<91])), "byte \(index)")
            header[index] = 0
        }
        header[15] = 1
        #expect(!StoreHeader.isPlaintext(header))
        #expect(StoreHeader.isEmpty(fileSize: 0) && StoreHeader.isEmpty(fileSize: 1))
        #expect(!StoreHeader.isEmpty(fileSize: 2))
    }

    @Test(arguments: [(512, [2, 0]), (4096, [16, 0]), (65536, [0, 1])] as [(Int64, [UInt8])])
    func aPlaintextDatabaseThatWasCut(pageSize: Int64, stored: [UInt8]) {
        var header = StoreHeader.plaintextMagic + [UInt8](repeating: 0, count: 84)
        header.replaceSubrange(16..<18, with: stored)
        header[31] = 3
        // The count of pages is valid if both of these are the same.
        (header[25], header[93]) = (7, 7)
        #expect(!StoreHeader.isTruncatedPlaintext(header, fileSize: 3 * pageSize))
        #expect(StoreHeader.isTruncatedPlaintext(header, fileSize: 3 * pageSize - 1))
        header[93] = 6
        #expect(!StoreHeader.isTruncatedPlaintext(header, fileSize: pageSize))
        #expect(StoreHeader.isTruncatedPlaintext(Array(header.dropLast()), fileSize: 3 * pageSize))
    }

    @Test func whatLooksRandom() {
        var random = SeededGenerator(seed: 1)
        let bytes = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &random) }
        #expect(StoreHeader.looksRandom(bytes))
        #expect(StoreHeader.looksRandom(Array(bytes.prefix(512))))
        // Less says too little.
        #expect(!StoreHeader.looksRandom(Array(bytes.prefix(511))))
        #expect(!StoreHeader.looksRandom([UInt8](repeating: 0, count: 4096)))
        // A text, and half a page of zeros.
        #expect(!StoreHeader.looksRandom(Array(String(repeating: "just some text\n", count: 100).utf8)))
        #expect(!StoreHeader.looksRandom(Array(bytes.prefix(2048)) + [UInt8](repeating: 0, count: 2048)))
    }
}
