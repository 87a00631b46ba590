import Foundation
import Testing

@testable import SealedDB

/// Files that are no store are not moved away for one.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RestoreTargetTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("backup"))
        try database.fill(rows: 5)
        database.close()
    }

    private func restore(to name: String) throws -> StoreRestore.Report {
        try StoreRestore(backupPath: directory.file("backup"), key: .testing(1), to: directory.file(name)).run()
    }

    @Test(arguments: ["raw", "digits", "notes"]) func anotherFile(kind: String) throws {
        let bytes: [UInt8] =
            switch kind {
            case "raw": (0..<32).map { $0 &* 73 }
            case "digits": Array(String(repeating: "0123456789abcdef", count: 4).utf8)
            // As long as a page.
            default: Array(String(repeating: "To do: buy milk\n", count: 32).utf8)
            }
        try directory.write("file", bytes)
        let error = #expect(throws: DatabaseError.self) { try self.restore(to: "file") }
        #expect(error?.reason == .notADatabase, "\(error as Any)")
        #expect(error?.message.contains("is no store") == true && error?.message.contains("is unchanged") == true)
        #expect(try directory.bytes("file") == Data(bytes))
        #expect(directory.names == ["backup", "file"])
    }

    @Test(arguments: [".slots", ".slots.2", "-wal", "-journal", "-sealdb-lock"])
    func aFileOfAnotherStore(ending: String) throws {
        let other = try Database.testing(directory.file("other"))
        try other.fill(rows: 1)
        other.close()
        let bytes = [UInt8](repeating: 0xa5, count: 512)
        try directory.write("other" + ending, bytes)
        let error = #expect(throws: DatabaseError.self) { try self.restore(to: "other" + ending) }
        #expect(error?.reason == .cannotCreate && error?.message.contains("belongs to") == true, "\(error as Any)")
        #expect(try directory.bytes("other" + ending) == Data(bytes))
        #expect(directory.names == ["backup", "other", "other" + ending])
    }

    /// What a store has become, however damaged or cut off, is replaced.
    @Test(arguments: [0, 512, 4096, 5000]) func aDamagedStore(size: Int) throws {
        try directory.write("db", [UInt8](repeating: 0, count: size))
        let replaced = try #require(try restore(to: "db").replacedPath)
        #expect(try Data(contentsOf: URL(fileURLWithPath: replaced)).count == size)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try database.integers("SELECT count(*) FROM t") == [5])
    }

    /// SQLite takes no notice of an empty log beside a store that has none.
    @Test func anEmptyFileInPlaceOfALog() throws {
        try directory.write("backup-wal", [])
        let path = directory.file("backup")
        try StoreBackup(path: path, key: .testing(1), to: directory.file("copy")).run()
        try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
        for (name, key) in [("copy", 1), ("backup", 2)] as [(String, UInt8)] {
            let database = try Database.testing(directory.file(name), key: key)
            defer { database.close() }
            #expect(try database.integers("SELECT count(*) FROM t") == [5])
        }
    }
}
