import Testing

@testable import SealedDB

/// What counts as a page that the disk does not give, and what as an error.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PageFillTests {
    @Test func whereTheFileEnds() throws {
        let directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"))
        try store.fill(rows: 100)
        try #require(store.close())
        let connection = try StoreOpening(path: directory.file("db"), key: .testing(1), takesLock: false).open()
        let scan = PageScan(connection: connection, key: try .testing(1), settings: .init())
        let count = try PageTotals(of: connection).count
        let buffer = PageBuffer(pageSize: 4096, pageCount: 2)
        #expect(try scan.fill(buffer.pages(2), with: count - 1...count))
        #expect(try scan.fill(buffer.page(0), with: count...count))
        // Nothing of the buffer counts then: it may be of other pages.
        #expect(try !scan.fill(buffer.page(0), with: count + 1...count + 1))
        #expect(try !scan.fill(buffer.pages(2), with: count...count + 1))
        // That is no page that the disk does not give.
        #expect(connection.close())
        let error = #expect(throws: DatabaseError.self) { try scan.fill(buffer.page(0), with: 1...1) }
        #expect(error?.reason == .misuse, "\(error as Any)")
    }
}
