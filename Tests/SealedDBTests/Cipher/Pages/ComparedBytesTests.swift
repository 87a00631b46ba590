import Foundation
import Testing

@testable import SealedDB

/// Which bytes of two files a comparison takes into account.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct ComparedBytesTests {
    private let directory: TemporaryDirectory
    private static let size = 4096

    init() throws {
        directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 300)
        try #require(store.close())
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2), oldFileSuffix: ".old").run()
    }

    private func problems() throws -> [String] {
        let scans = try [("db.old", 1 as UInt8), ("db", 2)].map { name, byte in
            let key = try Key.testing(byte)
            let connection = try StoreOpening(path: directory.file(name), key: key, takesLock: false).open()
            return PageScan(connection: connection, key: key, settings: .init())
        }
        defer { for scan in scans { scan.connection.close() } }
        let count = Int64(try directory.bytes("db").count / Self.size)
        return try PageComparison(source: scans[0], copy: scans[1], pageCount: count).problems { _ in }
    }

    /// The first and the last byte that SQLite sees, and those that may differ in the first page alone.
    @Test(arguments: [0, 18, 24, 40, 92, 4096 - 80 - 1]) func eachByteOfAPage(offset: Int) throws {
        #expect(try problems() == [])
        try directory.forge("db.old", page: 3) { $0[offset] ^= 1 }
        #expect(try problems() == ["page 3 differs from that of the store"])
    }

    /// What it holds may be right, and then nobody knows whether it is.
    @Test(arguments: [("db.old", "the store"), ("db", "the copy")])
    func aPageWithoutItsCode(name: String, words: String) throws {
        let place = 4 * Self.size - 1
        try directory.overwrite(name, at: place, with: [directory.bytes(name)[place] ^ 1])
        #expect(try problems() == ["page 4 of \(words) is damaged"])
    }
}
