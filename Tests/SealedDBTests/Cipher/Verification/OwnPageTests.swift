import Foundation
import Testing

@testable import SealedDB

/// By which pages a store and its journal are known to be of a key, before SQLite may write the journal into the store.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct OwnPageTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }
    private static let size = 4096
    /// The pages of the store.
    private let pages: [[UInt8]]

    init() throws {
        directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 100)
        try #require(store.close())
        let bytes = try Array(directory.bytes("db"))
        pages = stride(from: 0, to: bytes.count, by: Self.size).map { Array(bytes[$0..<$0 + Self.size]) }
    }

    /// A journal that would put back this page.
    private func journal(of number: UInt32, _ page: [UInt8]) -> [UInt8] {
        func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        let header = magic + [1, 77, UInt32(pages.count), 512, UInt32(Self.size)].flatMap(word)
        // https://www.sqlite.org/fileformat.html#the_rollback_journal
        let sum = stride(from: Self.size - 200, to: 0, by: -200).reduce(77) { $0 + UInt32(page[$1]) }
        return header + [UInt8](repeating: 0, count: 512 - header.count) + word(number) + page + word(sum)
    }

    private func hasOwnPage(
        _ pages: [[UInt8]],
        _ journal: [UInt8],
        _ settings: CipherSettings = .init()
    ) throws -> Bool {
        try directory.write("db", pages.flatMap { $0 })
        try directory.write("db-journal", journal)
        let journal = try #require(try RollbackJournal(ofStore: path))
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let recognition = StoreRecognition(connection: connection, key: try .testing(1), settings: settings)
        return try recognition.hasOwnPage(in: journal)
    }

    /// A crash can have torn all others.
    @Test func onePageIsEnough() throws {
        let torn = [UInt8](repeating: 9, count: Self.size)
        // Its salt stays, as the first part of a page that was torn.
        let first = [UInt8](pages[0].prefix(16) + torn.dropFirst(16))
        let none = [first] + [[UInt8]](repeating: torn, count: pages.count - 1)
        #expect(try !hasOwnPage(none, journal(of: 2, torn)))
        #expect(try hasOwnPage([pages[0]] + none.dropFirst(), journal(of: 2, torn)))
        #expect(try hasOwnPage([first] + pages.dropFirst(), journal(of: 2, torn)))
        #expect(try hasOwnPage(none, journal(of: 2, pages[1])))
        // Not as another page than it is.
        #expect(try !hasOwnPage(none, journal(of: 3, pages[1])))
    }

    /// Nothing tells there whose pages they are.
    @Test func pagesWithoutCodes() throws {
        let torn = [[UInt8]](repeating: [UInt8](repeating: 9, count: Self.size), count: 3)
        #expect(try hasOwnPage(torn, journal(of: 2, torn[0]), CipherSettings(usesHMAC: false)))
    }
}
