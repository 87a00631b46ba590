import Testing

@testable import SealedDB

/// What is told of a structure that cannot be read.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StructureCareTests {
    @Test func aPageThatIsDamaged() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("db")
        let store = try Database.testing(path, journalMode: .delete)
        try store.fill(rows: 300)
        #expect(store.close())
        func problem() throws -> String? {
            let connection = try StoreOpening(path: path, key: .testing(1)).open()
            defer { connection.close() }
            return try StructureCheck(connection: connection).pageProblem {}
        }
        #expect(try problem() == nil)
        var bytes = try directory.bytes("db")
        bytes[9 * 4096 + 100] ^= 1
        try directory.write("db", bytes)
        #expect(try problem() != nil)
    }
}
