import Foundation
import Testing

@testable import SealedDB

/// Journals whose records are authentic, put together as no transaction of SQLite leaves them: headers that were
/// changed, and what stands behind them.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct HandmadeJournalTests {
    private let directory: TemporaryDirectory
    private let cipher: PageCipher
    private var path: String { directory.file("db") }
    private static let size = 1024
    private static let salt = [UInt8](1...16)
    private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    init() throws {
        directory = try TemporaryDirectory()
        cipher = try PageCipher(
            key: [UInt8](repeating: 1, count: 32).withUnsafeBytes { try SecretBytes(copying: $0) },
            salt: Self.salt,
            parameters: CipherSettings(pageSize: Self.size).parameters
        )
    }

    private func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

    private func page(_ number: Int64, _ contents: [UInt8]) throws -> [UInt8] {
        var page = [UInt8](repeating: 0, count: Self.size)
        try contents.withUnsafeBytes { contents in
            try page.withUnsafeMutableBytes { try cipher.seal(contents, number: number, into: $0) }
        }
        return page
    }

    private func page(_ number: Int64, fill: UInt8 = 7) throws -> [UInt8] {
        try page(number, [UInt8](repeating: fill, count: Self.size))
    }

    /// A first page that counts so many.
    private func firstPage(count: UInt32) throws -> [UInt8] {
        var contents = StoreHeader.plaintextMagic + [UInt8](repeating: 0, count: Self.size - 16)
        contents.replaceSubrange(28..<32, with: word(count))
        return try page(1, contents)
    }

    private func record(_ number: Int64, _ page: [UInt8], nonce: UInt32 = 77) -> [UInt8] {
        word(UInt32(number)) + page + word(nonce &+ RollbackJournal.checksum(ofPage: page[...]))
    }

    /// A part of a journal, in sectors of 512 bytes.
    /// - Parameter count: the number of its records, as its header says; `nil` for that of the records.
    private func part(
        _ records: [[UInt8]],
        pageCount: UInt32,
        nonce: UInt32 = 77,
        count: UInt32? = nil
    ) -> [UInt8] {
        var bytes =
            Self.magic + [count ?? UInt32(records.count), nonce, pageCount, 512, UInt32(Self.size)].flatMap(word)
        bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
        bytes += records.joined()
        return bytes + [UInt8](repeating: 0, count: (512 - bytes.count % 512) % 512)
    }

    private func originals() throws -> [Int64: Int64] {
        let contents = try #require(try FileReader(path + "-journal"))
        return try JournalRecords(contents: contents, cipher: cipher).originals(sectorSize: 512)
    }

    // MARK: Records

    /// The first record of a page is the one that SQLite puts back.
    @Test func aPageThatComesTwice() throws {
        let records = try [record(2, page(2, fill: 1)), record(3, page(3)), record(2, page(2, fill: 9))]
        try directory.write("db-journal", part(records, pageCount: 9))
        #expect(try originals() == [2: 516, 3: 516 + 1032])
    }

    /// Behind a part that does not say how many records it has.
    enum Follower: CaseIterable { case more, repeated, ofAnotherSize }

    @Test(arguments: Follower.allCases) func whatFollowsAPartWithoutACount(follower: Follower) throws {
        let first = part([record(2, try page(2)), record(3, try page(3))], pageCount: 9, count: .max)
        let records = try (follower == .repeated ? [3, 4] : [4, 5]).map { record($0, try page($0), nonce: 99) }
        let second = part(records, pageCount: follower == .ofAnotherSize ? 8 : 9, nonce: 99)
        try directory.write("db-journal", first + second)
        #expect(try originals().keys.sorted() == (follower == .more ? [2, 3, 4, 5] : [2, 3]))
    }

    /// A header that is lost may have been one of an earlier transaction: its records tell, if they have a page again.
    @Test(arguments: [false, true]) func aPartWithoutAHeader(repeats: Bool) throws {
        let first = part([record(2, try page(2)), record(3, try page(3))], pageCount: 9)
        let records = try (repeats ? [3, 5] : [4, 5]).map { record($0, try page($0), nonce: 99) }
        var second = part(records, pageCount: 9, nonce: 99)
        for index in 0..<28 { second[index] = UInt8(index + 100) }
        try directory.write("db-journal", first + second)
        #expect(try originals().keys.sorted() == (repeats ? [2, 3] : [2, 3, 4, 5]))
    }

    // MARK: Damage

    /// - Returns: why the journal is refused; `nil` if it is not.
    private func refusal(_ store: [[UInt8]], _ journal: [UInt8]) throws -> DatabaseError? {
        try directory.write("db", store.joined())
        try directory.write("db-journal", journal)
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        do throws(DatabaseError) {
            try JournalDamage.requireNone(ofStore: path, cipher: cipher, store: connection)
            return nil
        } catch {
            return error
        }
    }

    @Test func aSoundOne() throws {
        let first = try firstPage(count: 3)
        let store = [first, try page(2), try page(3)]
        #expect(try refusal(store, part([record(1, first), record(2, try page(2))], pageCount: 3)) == nil)
    }

    /// A header that says that there were no pages would empty the store.
    @Test func noPagesBefore() throws {
        let first = try firstPage(count: 3)
        let store = [first, try page(2), try page(3)]
        let error = try refusal(store, part([record(1, first), record(2, try page(2))], pageCount: 0))
        #expect(error?.message.contains("it says that the store had 0 pages, which had 3") == true, "\(error as Any)")
    }

    /// A record of a page that the store did not have is of an older transaction.
    @Test func aPageThatWasNotThere() throws {
        let first = try firstPage(count: 2)
        let records = try [record(1, first), record(2, page(2)), record(5, page(5))]
        #expect(try refusal([first, try page(2)], part(records, pageCount: 2)) == nil)
    }

    /// The first page of the store is not authentic, and what it says counts for nothing.
    @Test func aFirstPageThatWasChanged() throws {
        var first = try firstPage(count: 9)
        first[Self.size - 1] ^= 1
        let record = record(2, try page(2))
        #expect(try refusal([first, try page(2)], part([record], pageCount: 2)) == nil)
        let sound = try refusal([try firstPage(count: 9), try page(2)], part([record], pageCount: 2))
        #expect(sound?.message.contains("it says that the store had 2 pages, which had 9") == true, "\(sound as Any)")
    }

    /// Of the first page, the salt is covered by no code.
    @Test(arguments: [false, true]) func theSaltInTheJournal(isChanged: Bool) throws {
        let first = try firstPage(count: 2)
        var original = first
        if isChanged { original[3] ^= 1 }
        var broken = record(2, try page(2))
        broken[4 + 624] ^= 1
        // The second record was not written whole. That does not matter if the store still has all pages.
        let error = try refusal([first, try page(2)], part([record(1, original), broken], pageCount: 2))
        #expect((error?.message.contains("the record at byte") == true) == isChanged, "\(error as Any)")
    }

    // MARK: Salts

    /// Each may cost a derivation, and a log that somebody has written could have any number of them.
    @Test func saltsOfALog() throws {
        var log = [UInt8](repeating: 0, count: 32)
        for index in 1...9 as ClosedRange<UInt8> {
            // The second one comes twice, and the third is that of another page.
            let salt = [UInt8](repeating: index == 3 ? 2 : index, count: 16)
            log += word(index == 4 ? 2 : 1) + [UInt8](repeating: 0, count: 20) + salt
            log += [UInt8](repeating: 0, count: Self.size - 16)
        }
        try directory.write("db-wal", log)
        let salts = try LogOverlay.salts(beside: path, pageSize: Self.size)
        #expect(salts.map { $0[0] } == [1, 2, 5, 6] && salts.allSatisfy { $0.count == 16 })
    }

    /// A transaction that was not committed is none.
    @Test(arguments: [0, 2] as [UInt32]) func aLogWithoutACommit(count: UInt32) throws {
        let log =
            [UInt8](repeating: 9, count: 32) + word(2) + word(count) + [UInt8](repeating: 5, count: 16) + (try page(2))
        try directory.write("db-wal", log)
        try directory.write("db", firstPage(count: 2) + page(2))
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let overlay = try LogOverlay(salvagedLogOf: path, cipher: cipher, store: connection)
        #expect(overlay?.pageCount == (count > 0 ? 2 : nil))
    }

    // MARK: What is saved

    private func frame(_ number: UInt32, committing count: UInt32, _ page: [UInt8]) -> [UInt8] {
        word(number) + word(count) + [UInt8](repeating: 5, count: 16) + page
    }

    /// Of damaged frames, those of a page that no store has, and those behind the last commit, are no newer versions.
    @Test func damagedFramesThatDoNotCount() throws {
        let noise = [UInt8](repeating: 3, count: Self.size)
        let log = frame(0, committing: 0, noise) + frame(2, committing: 2, try page(2)) + frame(1, committing: 0, noise)
        try directory.write("db-wal", [UInt8](repeating: 9, count: 32) + log)
        try directory.write("db", firstPage(count: 2) + page(2))
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let overlay = try #require(try LogOverlay(salvagedLogOf: path, cipher: cipher, store: connection))
        #expect(overlay.pageNumbers == [2] && overlay.pageCount == 2 && overlay.outdatedPages == [])
    }

    /// Without a header and a first page, the store has as many pages as its file.
    @Test func aJournalWithoutAHeader() throws {
        var first = try firstPage(count: 9)
        first[Self.size - 1] ^= 1
        try directory.write("db", first + page(2))
        let noise = [UInt8](repeating: 3, count: 512)
        try directory.write("db-journal", noise + record(2, try page(2)))
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let hot = try LogOverlay(salvagedJournalOf: path, cipher: cipher, store: connection, isHot: true)
        #expect(hot?.pageNumbers == [2] && hot?.pageCount == 2)
        // Nothing says that it is to be put back.
        #expect(try LogOverlay(salvagedJournalOf: path, cipher: cipher, store: connection, isHot: false) == nil)
        try directory.write("db-journal", part([record(2, try page(2))], pageCount: 2))
        let other = try LogOverlay(salvagedJournalOf: path, cipher: cipher, store: connection, isHot: false)
        #expect(other?.pageNumbers == [2])
    }
}
