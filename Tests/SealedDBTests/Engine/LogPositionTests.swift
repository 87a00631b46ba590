import Foundation
import Testing

@testable import SealedDB

/// Where a log ends, as rotations and shippers compare it.
@Suite(.hangLimit)
struct LogPositionTests {
    private func position(
        changes: UInt32 = 1,
        frames: Int64 = 2,
        pages: Int64 = 3,
        salts: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8],
        checksum: [UInt8] = [8, 7, 6, 5, 4, 3, 2, 1],
        isWholeInFile: Bool = false
    ) -> LogPosition {
        LogPosition(
            changeCount: changes,
            frameCount: frames,
            pageCount: pages,
            salts: salts,
            checksum: checksum,
            isBigEndian: false,
            isWholeInFile: isWholeInFile
        )
    }

    /// Each of these alone tells that something was committed meanwhile; a checkpoint commits nothing.
    @Test func endsThatAreNotTheSame() {
        let end = position()
        #expect(end.hasSameEnd(as: end))
        #expect(end.hasSameEnd(as: position(changes: 9, isWholeInFile: true)))
        #expect(!end.hasSameEnd(as: position(frames: 3)))
        #expect(!end.hasSameEnd(as: position(salts: [1, 2, 3, 4, 5, 6, 7, 9])))
        #expect(!end.hasSameEnd(as: position(checksum: [8, 7, 6, 5, 4, 3, 2, 2])))
    }

    private func end(_ connection: Connection) throws -> LogPosition? {
        try connection.snapshot { () throws(DatabaseError) -> LogPosition? in
            _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
            return try connection.logPosition()
        }
    }

    @Test func theEndFollowsCommitsAndCheckpoints() throws {
        let directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.fill(rows: 100)
        let connection = try #require(database.connection)
        let first = try #require(try end(connection))
        #expect(first.frameCount > 0 && !first.isWholeInFile)
        #expect(try connection.integer("PRAGMA page_count") == first.pageCount)
        // As the header of each frame of the log has them.
        let log = Array(try directory.bytes("db-wal"))
        #expect(first.salts == Array(log[16..<24]))
        let last = 32 + (Int(first.frameCount) - 1) * (24 + 4096)
        #expect(first.checksum == Array(log[last + 16..<last + 24]))
        let same = try #require(try end(connection))
        #expect(first.hasSameEnd(as: same))
        _ = try connection.checkpoint(.passive, schema: "main")
        let moved = try #require(try end(connection))
        #expect(moved.isWholeInFile && moved.hasSameEnd(as: first))
        try database.fill(rows: 1)
        let later = try #require(try end(connection))
        #expect(!later.isWholeInFile && !later.hasSameEnd(as: first))
    }

    /// To ask for its index would make one beside the store.
    @Test func aStoreWithoutALogHasNoEnd() throws {
        let directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.fill(rows: 3)
        let connection = try #require(database.connection)
        #expect(try end(connection) == nil)
        #expect(directory.namesOfFiles == ["db"])
    }

    // MARK: Bytes of the file

    @Test func bytesUpToTheEndOfTheFile() throws {
        let directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.fill(rows: 3)
        let connection = try #require(database.connection)
        let file = Array(try directory.bytes("db"))
        let size = Int64(file.count)
        #expect(try connection.fileSize() == size)
        #expect(try connection.fileBytes(at: size - 3, count: 10) == Array(file.suffix(3)))
        #expect(try connection.fileBytes(at: size, count: 10) == [])
        #expect(try connection.fileBytes(at: size + 1, count: 10) == [])
        #expect(try connection.fileBytes(at: 5, count: 7) == Array(file[5..<12]))
        var buffer = [UInt8](repeating: 0xaa, count: 10)
        let got = try buffer.withUnsafeMutableBytes { try connection.readFile(at: size - 3, into: $0) }
        #expect(got == 3 && Array(buffer.prefix(3)) == Array(file.suffix(3)))
        let none = try buffer.withUnsafeMutableBytes { try connection.readFile(at: size, into: $0) }
        #expect(none == 0)
    }
}
