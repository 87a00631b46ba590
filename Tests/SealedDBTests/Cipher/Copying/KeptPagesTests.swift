import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct KeptPagesTests {
    /// What was begun there is no page, neither the new one nor the one that was there.
    @Test func aPageThatFailsIsNotKeptAndTakesThePlaceOfAnother() throws {
        let kept = try KeptPages(pageSize: 1024)
        let other = 1 + Int64(kept.count)
        let first = try kept.keep(1) { $0.copyBytes(from: repeatElement(1, count: 1024)) }
        #expect(first.allSatisfy { $0 == 1 })
        #expect(kept.page(1) != nil && kept.page(other) == nil)
        #expect(throws: DatabaseError.self) {
            try kept.keep(other) { page throws(DatabaseError) in
                page.copyBytes(from: repeatElement(2, count: 512))
                throw .notOpen
            }
        }
        #expect(kept.page(1) == nil && kept.page(other) == nil)
        #expect(try kept.keep(1) { $0.copyBytes(from: repeatElement(3, count: 1024)) }.allSatisfy { $0 == 3 })
    }
}
