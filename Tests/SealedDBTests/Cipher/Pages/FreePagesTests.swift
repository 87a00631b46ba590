import Foundation
import Testing

@testable import SealedDB

/// Which lists of free pages are believed. Zeros in the place of a page that one wrongly calls free would pass for sound.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct FreePagesTests {
    private let cipher: PageCipher
    private static let size = 1024
    /// How many leaves a trunk has room for: a page without its 80 reserved bytes has 236 numbers, of which two are others.
    private static let room = 234

    init() throws {
        cipher = try PageCipher(
            key: SecretBytes(copying: [UInt8](0..<32)),
            salt: [UInt8](0..<16),
            parameters: CipherSettings(pageSize: Self.size).parameters
        )
    }

    private func bigEndian(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    /// The page as it is stored.
    private func sealed(_ contents: [UInt8], _ number: Int64) throws -> [UInt8] {
        var page = [UInt8](repeating: 0, count: Self.size)
        let contents = contents + [UInt8](repeating: 0, count: Self.size - contents.count)
        try contents.withUnsafeBytes { contents in
            try page.withUnsafeMutableBytes { try cipher.seal(contents, number: number, into: $0) }
        }
        return page
    }

    /// Which of these pages are leaves of a list.
    /// - Parameters:
    ///   - asked: the pages.
    ///   - trunks: by its number, what each says: the next trunk, its count of leaves, and the leaves.
    ///   - count: how many free pages the header states.
    ///   - first: the first trunk.
    ///   - pages: how many pages the store has.
    ///   - damaged: a page whose code is wrong.
    private func leaves(
        among asked: [Int64],
        _ trunks: [Int64: [UInt32]],
        count: UInt32,
        first: UInt32 = 2,
        pages: Int64 = 400,
        damaged: Int64? = nil
    ) throws -> [Int64] {
        var header = [UInt8](repeating: 0, count: 100)
        header[20] = UInt8(cipher.parameters.reservedBytes)
        header.replaceSubrange(32..<40, with: bigEndian(first) + bigEndian(count))
        var stored: [Int64: [UInt8]] = [1: try sealed(header, 1)]
        for (number, words) in trunks { stored[number] = try sealed(words.flatMap(bigEndian), number) }
        if let damaged { stored[damaged]?[100] ^= 1 }
        let file = stored
        let free = FreePages(pageCount: pages, cipher: cipher) { number, page in
            guard let bytes = file[number] else { return false }
            page.copyBytes(from: bytes)
            return true
        }
        return try asked.filter { try free.contains($0) }
    }

    private static let some: [Int64: [UInt32]] = [2: [3, 2, 10, 400], 3: [0, 1, 12]]
    private static let someLeaves: [Int64] = [10, 12, 400]

    /// Trunks are written, so they are none of the pages that may be zeros.
    @Test func theLeavesOfAList() throws {
        #expect(try leaves(among: Array(0...401), Self.some, count: 5) == Self.someLeaves)
        #expect(try leaves(among: Array(0...401), [:], count: 0, first: 0) == [])
    }

    @Test func aListThatIsNotWhole() throws {
        for count in [0, 1, 3, 4, 6] as [UInt32] {
            #expect(try leaves(among: Self.someLeaves, Self.some, count: count) == [], "\(count)")
        }
        for page in [1, 2, 3] as [Int64] {
            #expect(try leaves(among: Self.someLeaves, Self.some, count: 5, damaged: page) == [], "\(page)")
        }
        // The second trunk cannot be read.
        #expect(try leaves(among: Self.someLeaves, [2: [3, 2, 10, 400]], count: 5) == [])
        // Page 400 is not one of the store any more.
        #expect(try leaves(among: Self.someLeaves, Self.some, count: 5, pages: 399) == [])
    }

    /// The page that leads to the list, or a part of it, can be no leaf, and no page is free twice.
    @Test func leavesThatCanBeNone() throws {
        for leaf in [0, 1, 2, 401] as [UInt32] {
            let found = try leaves(among: [0, 1, 2, 10, 401], [2: [0, 2, 10, leaf]], count: 3)
            #expect(found == [], "\(leaf)")
        }
        #expect(try leaves(among: [10], [2: [0, 2, 10, 10]], count: 2) == [])
        #expect(try leaves(among: [2], [2: [0, 1, 2]], count: 2) == [])
        #expect(try leaves(among: [3, 10], [2: [3, 1, 3], 3: [0, 1, 10]], count: 4) == [])
    }

    /// SQLite uses neither the page of its locks nor those around it in another way.
    @Test func thePageOfTheLocks() throws {
        let lockPage = PageScan.lockPage(pageSize: Self.size)
        for leaf in lockPage - 1...lockPage + 1 {
            let found = try leaves(among: [leaf], [2: [0, 1, UInt32(leaf)]], count: 2, pages: lockPage + 1)
            #expect(found == (leaf == lockPage ? [] : [leaf]), "\(leaf)")
        }
    }

    @Test func asManyLeavesAsThereIsRoomFor() throws {
        let all = (3..<UInt32(Self.room + 4)).map { $0 }
        for count in [Self.room, Self.room + 1] {
            let trunk = [0, UInt32(count)] + all.prefix(count)
            let found = try leaves(among: [3, 100], [2: trunk], count: UInt32(count + 1))
            #expect(found == (count == Self.room ? [3, 100] : []), "\(count)")
        }
        // More than there are bytes in the page.
        #expect(try leaves(among: [3], [2: [0, .max, 3]], count: .max) == [])
    }
}
