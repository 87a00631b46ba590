import Foundation
import Testing

@testable import SealedDB

/// Journals and logs as anybody can write them, made byte by byte.
@Suite(.hangLimit)
struct JournalParserTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }
    private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    init() throws {
        directory = try TemporaryDirectory()
        try directory.write("db", [UInt8](repeating: 0, count: 1024))
    }

    private func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

    /// A part of a journal with pages of 512 bytes, in sectors of 512.
    private func part(_ records: [(number: UInt32, fill: UInt8)], pageCount: UInt32) -> [UInt8] {
        var bytes = JournalParserTests.magic + [UInt32(records.count), 77, pageCount, 512, 512].flatMap(word)
        bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
        for record in records {
            // The sum of the bytes at 312 and 112.
            bytes +=
                word(record.number) + [UInt8](repeating: record.fill, count: 512) + word(77 + 2 * UInt32(record.fill))
        }
        return bytes
    }

    private func end(naming name: [UInt8], count: UInt32? = nil) -> [UInt8] {
        let sum = name.reduce(0 as UInt32) { $0 &+ UInt32(bitPattern: Int32(Int8(bitPattern: $1))) }
        return word(9) + name + word(count ?? UInt32(name.count)) + word(sum) + JournalParserTests.magic
    }

    private func records() throws -> [Int64] {
        var numbers: [Int64] = []
        try #require(try RollbackJournal(ofStore: path)).forEachRecord { number, _ in numbers.append(number) }
        return numbers
    }

    /// SQLite puts the first record of a page back.
    @Test func aPageThatComesTwice() throws {
        try directory.write("db-journal", part([(1, 5), (2, 6), (1, 9)], pageCount: 2))
        #expect(try records() == [1, 2, 1])
        let overlay = try #require(try LogOverlay(journalOf: path))
        #expect(overlay.pageNumbers == [1, 2] && overlay.hasFirstPage)
        #expect(try overlay.bytes(ofPage: 1, from: 0, count: 512) == [UInt8](repeating: 5, count: 512))
        #expect(try overlay.bytes(ofPage: 2, from: 0, count: 512) == [UInt8](repeating: 6, count: 512))
    }

    /// What a journal puts back is in the pages below a log, too.
    @Test func aFirstPageBelow() throws {
        try directory.write("db-journal", part([(2, 6)], pageCount: 2))
        let above = try #require(try LogOverlay(journalOf: path))
        try directory.write("db-journal", part([(1, 5)], pageCount: 2))
        let below = try LogOverlay(journalOf: path)
        #expect(!above.hasFirstPage && above.over(below).hasFirstPage && !above.over(nil).hasFirstPage)
    }

    /// SQLite writes no record of the page of its locks, and reads none that stands behind one.
    @Test func thePageOfTheLocks() throws {
        let lockPage = UInt32(PageScan.lockPage(pageSize: 512))
        try directory.write("db-journal", part([(1, 5), (lockPage, 6), (2, 7)], pageCount: lockPage + 9))
        #expect(try records() == [1])
        try directory.write("db-journal", part([(1, 5), (lockPage - 1, 6), (2, 7)], pageCount: lockPage + 9))
        #expect(try records() == [1, Int64(lockPage) - 1, 2])
    }

    /// Without it the transaction over several files was committed, and nothing is put back.
    @Test func theJournalOfSeveralFiles() throws {
        let name = directory.file("db-mj12345678")
        try directory.write("db-journal", part([(1, 5)], pageCount: 2) + end(naming: Array(name.utf8)))
        #expect(try LogOverlay(journalOf: path) == nil)
        try directory.write("db-mj12345678", [1])
        #expect(try LogOverlay(journalOf: path)?.pageNumbers == [1])
    }

    /// A name that would begin before the file.
    @Test(arguments: [0, 44, 500, 513, 0xffff_ffff] as [UInt32]) func aNameThatIsTooLong(count: UInt32) throws {
        let header = part([], pageCount: 2).prefix(28)
        try directory.write("db-journal", header + end(naming: [], count: count).suffix(16))
        let journal = try #require(try RollbackJournal(ofStore: path))
        #expect(try !journal.hasLostSuperJournal())
    }

    // MARK: Logs

    @Test(
        arguments: [
            ([0x37, 0x7f, 0x06, 0x82], [0, 0, 16, 0], true), ([0x37, 0x7f, 0x06, 0x83], [0, 1, 0, 0], true),
            ([0x37, 0x7f, 0x07, 0x82], [0, 0, 16, 0], false), ([0, 0, 0, 0], [0, 0, 16, 0], false),
            ([0x37, 0x7f, 0x06, 0x82], [0, 0, 0, 0], false), ([0x37, 0x7f, 0x06, 0x82], [0, 1, 0, 1], false),
            ([0x37, 0x7f, 0x06, 0x82], [0, 0, 1, 255], false),
        ] as [([UInt8], [UInt8], Bool)]
    )
    func headersOfLogs(magic: [UInt8], pageSize: [UInt8], isLog: Bool) throws {
        try directory.write("db-wal", magic + [0, 0x2d, 0xe2, 0x18] + pageSize + [UInt8](repeating: 0, count: 20))
        #expect((WriteAheadLog(ofStore: path) != nil) == isLog)
    }

    // MARK: Pages

    /// What SQLite says of a file that it cannot read without a key.
    @Test func readsWithoutAKey() {
        func reason(_ code: Int32, _ header: [UInt8]) -> DatabaseError.Reason {
            StoreHeader.diagnoseWithoutKey(DatabaseError(extendedCode: code, message: "from SQLite"), header: header)
                .reason
        }
        #expect(reason(SQLITE_NOTADB, Array(1...16)) == .keyRequired)
        #expect(
            reason(SQLITE_BUSY, Array(1...16)) != .keyRequired && reason(SQLITE_IOERR, Array(1...16)) != .keyRequired
        )
        #expect(
            reason(SQLITE_NOTADB, []) != .keyRequired
                && reason(SQLITE_NOTADB, StoreHeader.plaintextMagic) != .keyRequired
        )
    }

    @Test func bytesThatAreTheSame() {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        #expect(none.hasSameBytes(as: none, count: 0))
        [1, 2, 3, 4].withUnsafeBytes { bytes in
            #expect(none.hasSameBytes(as: bytes, count: 0) && bytes.hasSameBytes(as: bytes, count: bytes.count))
        }
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: [0, 1, 1023, 1025, 2048])
    func contentsOfWhatIsNoPage(count: Int) throws {
        let key = try [UInt8](repeating: 1, count: 32).withUnsafeBytes { try SecretBytes(copying: $0) }
        let parameters = CipherSettings(pageSize: 1024).parameters
        let cipher = try PageCipher(key: key, salt: [UInt8](repeating: 2, count: 16), parameters: parameters)
        #expect(try cipher.contents([UInt8](repeating: 3, count: count)[...], number: 2) == nil)
        #expect(try cipher.contents([UInt8](repeating: 3, count: 1024)[...], number: 2)?.count == 1024 - 80)
    }

    /// What a disk has lost is the same on each place, and no sign that two pages were written at one time.
    @Test(arguments: [0, 1, 2, 3, 4]) func whatTwoPagesShare(kinds: Int) {
        func page(_ seed: UInt8) -> [UInt8] { (0..<64).map { UInt8(truncatingIfNeeded: $0 * 7) &+ seed } }
        var (one, other) = (page(0), page(100))
        #expect(!LogOverlay.shareCiphertext(one, other, from: 0))
        // Two words with so many kinds of bytes, and one more.
        for index in 16..<32 {
            let byte = UInt8(index % (kinds + 1))
            (one[index], other[index]) = (byte, byte)
        }
        #expect(LogOverlay.shareCiphertext(one, other, from: 0) == (kinds == 4))
        #expect(!LogOverlay.shareCiphertext(one, other, from: 24))
    }
}
