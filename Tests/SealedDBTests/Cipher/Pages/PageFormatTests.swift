import Foundation
import Testing

@testable import SealedDB

/// What the headers of pages and journals say, also where somebody has changed them.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct PageFormatTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    // MARK: The first page

    /// The first page of a store with this page size, and what decrypts it.
    private func firstPage(_ pageSize: Int) throws -> (page: [UInt8], cipher: PageCipher) {
        let settings = CipherSettings(pageSize: pageSize)
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 3)
        #expect(database.close())
        let page = Array(try directory.bytes("db").prefix(pageSize))
        let parameters = settings.parameters
        let salt = Array(page[..<16])
        let secret = try Key.testing(1).encryptionKey(salt: salt, by: parameters.keyDerivation)
        return (page, try PageCipher(key: secret, salt: salt, parameters: parameters))
    }

    /// The page with other bytes in its decrypted header, at these offsets from 16 to 31. In CBC the first block is
    /// decrypted and combined with the initialisation vector, which is not encrypted.
    private func page(_ page: [UInt8], _ parameters: CipherParameters, changing changes: [Int: UInt8]) -> [UInt8] {
        var page = page
        let vector = page.count - parameters.reservedBytes
        for (offset, change) in changes { page[vector + offset - 16] ^= change }
        return page
    }

    /// Each part of the header counts: an arbitrary key gives a header in which some of them fit by chance.
    @Test(arguments: [1024, 4096, 65536]) func aHeaderThatFits(pageSize: Int) throws {
        let (original, cipher) = try firstPage(pageSize)
        let parameters = CipherSettings(pageSize: pageSize).parameters
        #expect(try cipher.decryptsHeader(original))
        // The size of pages, the two versions (1 to 3, or 1 to 0), and the three constants.
        for (offset, change) in [(16, 0x20), (17, 0x02), (18, 2), (18, 1), (19, 2), (19, 1), (21, 1), (22, 1), (23, 1)]
        {
            let changed = page(original, parameters, changing: [offset: UInt8(change)])
            #expect(try !cipher.decryptsHeader(changed), "byte \(offset)")
        }
        // 80 reserved bytes are 16, or 208.
        #expect(try !cipher.decryptsHeader(page(original, parameters, changing: [20: 0x40])))
        #expect(try cipher.decryptsHeader(page(original, parameters, changing: [20: 0x80])))
        // Version 1 is 2: a store in WAL mode.
        #expect(try cipher.decryptsHeader(page(original, parameters, changing: [18: 3, 19: 3])))
        #expect(try cipher.writeVersion(original) == 1)
        #expect(try cipher.writeVersion(page(original, parameters, changing: [18: 3])) == 2)
        #expect(try !cipher.decryptsHeader(Array(original.dropLast())))
    }

    @Test func aCountOfPages() throws {
        let (original, cipher) = try firstPage(4096)
        let parameters = CipherSettings().parameters
        let count = Int64(try directory.bytes("db").count / 4096)
        #expect(try cipher.declaredPageCount(original) == count)
        // Of an old SQLite, which has changed the store and left the count as it was.
        #expect(try cipher.declaredPageCount(page(original, parameters, changing: [27: 1])) == nil)
        #expect(try cipher.declaredPageCount(page(original, parameters, changing: [31: UInt8(count)])) == nil)
        #expect(try cipher.declaredPageCount(Array(original.dropLast())) == nil)
    }

    // MARK: Journals

    /// A journal with this header, and with what follows its first sector.
    private func journal(pageSize: UInt32 = 4096, sectorSize: UInt32 = 512, end: [UInt8] = []) throws
        -> RollbackJournal?
    {
        var bytes: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        for number in [0, 7, 3, sectorSize, pageSize] as [UInt32] { bytes += bigEndian(number) }
        bytes += [UInt8](repeating: 0, count: 512 - bytes.count) + end
        try directory.write("db-journal", bytes)
        return try RollbackJournal(ofStore: directory.file("db"))
    }

    private func bigEndian(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    @Test func sizesThatSQLiteAccepts() throws {
        for size in [512, 1024, 65536] as [UInt32] { #expect(try journal(pageSize: size) != nil, "\(size)") }
        for size in [0, 1, 256, 513, 131_072] as [UInt32] { #expect(try journal(pageSize: size) == nil, "\(size)") }
        for size in [32, 4096, 65536] as [UInt32] { #expect(try journal(sectorSize: size) != nil, "\(size)") }
        for size in [0, 16, 33, 131_072] as [UInt32] { #expect(try journal(sectorSize: size) == nil, "\(size)") }
    }

    /// As many as are asked for, and none that is torn. By them a store is told from another.
    @Test func theFirstPagesOfAJournal() throws {
        let records = (1...3 as ClosedRange<UInt8>).flatMap { number in
            bigEndian(UInt32(number)) + [UInt8](repeating: number, count: 512) + bigEndian(0)
        }
        let whole = try #require(try journal(pageSize: 512, end: records))
        for limit in 0...4 {
            let found = whole.pages(atMost: limit)
            #expect(found.map { $0.number } == Array([1, 2, 3].prefix(limit)), "\(limit)")
            for page in found { #expect(page.bytes == [UInt8](repeating: UInt8(page.number), count: 512)) }
        }
        let torn = try #require(try journal(pageSize: 512, end: Array(records.dropLast())))
        #expect(torn.pages(atMost: 9).map { $0.number } == [1, 2])
    }

    /// The end of a journal that names a super-journal.
    private func naming(_ name: [UInt8], count: UInt32? = nil, sum: UInt32? = nil) -> [UInt8] {
        let right = name.reduce(0 as UInt32) { $0 &+ UInt32(bitPattern: Int32(Int8(bitPattern: $1))) }
        let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        return name + bigEndian(count ?? UInt32(name.count)) + bigEndian(sum ?? right) + magic
    }

    /// A journal whose super-journal is gone belongs to a transaction that was committed: its pages are not put back.
    @Test func theSuperJournalThatIsNamed() throws {
        let gone = Array(directory.file("db-mj1A2B3C9D4").utf8)
        #expect(try journal(end: naming(gone))?.hasLostSuperJournal() == true)
        // What SQLite does not take for a name is none. It reads none of more than 512 bytes.
        let long = [UInt8](repeating: UInt8(ascii: "/"), count: 512 - gone.count) + gone
        #expect(try journal(end: naming(long))?.hasLostSuperJournal() == true)
        let others = [
            [], naming(gone, sum: 1), naming(gone, count: 0), naming([]), naming([0] + gone.dropFirst()),
            naming(gone, count: 1 << 20), naming([UInt8(ascii: "/")] + long), Array(naming(gone).dropLast()),
        ]
        for (index, end) in others.enumerated() {
            #expect(try journal(end: end)?.hasLostSuperJournal() == false, "\(index)")
        }
        // Longer than all that stands before it.
        #expect(try journal(end: naming(gone, count: 900))?.hasLostSuperJournal() == false)
        // As long as that, which SQLite takes for a name, too.
        _ = try journal()
        let header = Array(try directory.bytes("db-journal"))
        #expect(try journal(end: Array(naming(header).dropFirst(512)))?.hasLostSuperJournal() == true)
        // It is there: the transaction was not committed.
        try directory.write("db-mj1A2B3C9D4", [])
        #expect(try journal(end: naming(gone))?.hasLostSuperJournal() == false)
        try journal(end: naming(gone))?.requireSafeSuperJournal()
        // A file that is no super-journal: SQLite would delete it.
        let victim = Array(try directory.write("victim", [1]).utf8)
        let error = #expect(throws: DatabaseError.self) { try journal(end: naming(victim))?.requireSafeSuperJournal() }
        #expect(error?.reason == .unsafeJournal)
    }
}
