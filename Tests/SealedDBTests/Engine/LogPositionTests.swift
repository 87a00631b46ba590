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
            movedCount: isWholeInFile ? frames : 0,
            attemptedCount: isWholeInFile ? frames : 0
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

    /// While frames are moved into the file, or after an attempt that failed, the counts differ.
    @Test(arguments: [0, 2, 5] as [Int64], [0, 2, 5] as [Int64])
    func filesThatSQLiteLeftAlone(moved: Int64, attempted: Int64) {
        func position(_ moved: Int64, _ attempted: Int64, salts: [UInt8] = [1]) -> LogPosition {
            LogPosition(
                changeCount: 1,
                frameCount: 5,
                pageCount: 3,
                salts: salts,
                checksum: [1],
                isBigEndian: false,
                movedCount: moved,
                attemptedCount: attempted
            )
        }
        let first = position(moved, attempted)
        let isWhole = moved == 5
        #expect(first.hasSameFile(as: first) == (isWhole || moved == attempted))
        #expect(first.hasSameFile(as: position(moved, attempted, salts: [2])) == isWhole)
        #expect(first.hasSameFile(as: position(moved, attempted + 1)) == isWhole)
        #expect(first.hasSameFile(as: position(moved + 1, attempted)) == isWhole)
        #expect(first.hasSameFile(as: position(moved + 1, attempted + 1)) == isWhole)
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
