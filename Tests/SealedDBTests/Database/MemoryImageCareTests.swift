import Foundation
import Testing

@testable import SealedDB

/// What a database in memory is compared with when it becomes a file, and what becomes of the file that was there.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct MemoryImageCareTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("store") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func memory(rows: Int) throws -> Database {
        let memory = try Database.testing(nil)
        try memory.fill(rows: rows)
        return memory
    }

    /// A load that fails could not be undone.
    @Test func aDatabaseWithoutAJournalIsNotReplaced() throws {
        let store = try Database.testing(path)
        try store.fill(rows: 3)
        store.close()
        let memory = try memory(rows: 8)
        #expect(try memory.value("PRAGMA journal_mode = OFF") == "off")
        let error = #expect(throws: DatabaseError.self) { try memory.load(fromFile: path) }
        #expect(error?.reason == .unsupported, "\(error as Any)")
        #expect(try memory.integers("SELECT count(*) FROM t") == [8])
    }

    /// A file that is damaged does not take the place of one that is not.
    @Test func aStructureThatIsDamagedIsNotSaved() throws {
        let memory = try memory(rows: 300)
        try memory.save(toFile: path)
        let before = try directory.bytes("store")
        try memory.run("CREATE TABLE other (a)")
        try memory.run("PRAGMA writable_schema = ON")
        // Two tables have the same pages.
        try memory.run(
            """
            UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 't')
            WHERE name = 'other'
            """
        )
        try memory.run("PRAGMA writable_schema = RESET")
        let error = #expect(throws: DatabaseError.self) { try memory.save(toFile: path) }
        #expect(error?.reason == .unverified, "\(error as Any)")
        #expect(try directory.bytes("store") == before)
        #expect(directory.names == ["store"])
    }

    /// A power failure brings back the old file unless the directory is synced, too. And whoever has opened the old file at the
    /// last moment must not find a database there.
    @Test func whatFollowsTheSwap() throws {
        try memory(rows: 8).save(toFile: path)
        let memory = try memory(rows: 9)
        let watch = CallWatch(directory.path)
        try memory.save(toFile: path)
        let calls = watch.endWithAll()
        let swap = try #require(calls.firstIndex { $0 == "rename store" })
        let sync = try #require(calls[swap...].firstIndex { $0.hasPrefix("fsync") }, "\(calls)")
        #expect(calls[sync...].contains { $0.hasPrefix("pwrite") }, "\(calls)")
    }
}
