import Foundation
import Testing

@testable import SealedDB

/// Copies that SQLite made while the store was in use, when they are to take its place.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PreparedCopyTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
    }

    private func copied(_ database: Database) throws -> LiveCopy {
        let copy = try #require(try database.liveCopy(for: .testing(2)) as? LiveCopy)
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
        return copy
    }

    /// Otherwise what was written since would be lost.
    @Test func aCopyOfAStoreThatHasChangedSince() throws {
        let database = try Database.testing(path, journalMode: .delete)
        try database.fill(rows: 300)
        let copy = try copied(database)
        defer { copy.discard() }
        try database.run("INSERT INTO t (body) VALUES ('later')")
        #expect(try !copy.isCurrent())
        database.close()
    }

    /// Another one is made, for which all wait.
    @Test func aCopyThatIsDamagedIsNotTheStore() throws {
        let database = try Database.testing(path, journalMode: .delete)
        try database.fill(rows: 300)
        let copy = try copied(database)
        defer { copy.discard() }
        database.close()
        let name = String(copy.file.path.dropFirst(directory.path.count + 1))
        let place = 3 * 4096 - 1
        try directory.overwrite(name, at: place, with: [directory.bytes(name)[place] ^ 1])
        let replacement = StoreReplacement(
            path: path,
            old: Sealing(key: try .testing(1)),
            new: Sealing(key: try .testing(2)),
            busyTimeout: 1,
            words: .init(name: "The rotation", before: "unchanged", after: "has the new key")
        )
        _ = try replacement.run(with: copy, progress: nil)
        #expect(directory.namesOfFiles == ["db"])
        let store = try Database.testing(path, key: 2)
        #expect(try store.integers("SELECT count(*) FROM t") == [300])
        store.close()
        #expect(try IntegrityReport.verify(path: path, key: .testing(2)).isSound)
    }
}
