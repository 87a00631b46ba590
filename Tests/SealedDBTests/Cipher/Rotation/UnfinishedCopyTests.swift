import Foundation
import Testing

@testable import SealedDB

/// What is kept of a copy that is made while its store is in use: its lock, its size, and how often it begins anew.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct UnfinishedCopyTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws { directory = try TemporaryDirectory() }

    private func store(_ mode: Configuration.JournalMode, rows: Int) throws -> Database {
        let database = try Database.testing(path, journalMode: mode)
        try database.fill(rows: rows)
        return database
    }

    /// Whether nobody would be told that the store is in use, so that the unfinished file counted as a leftover.
    private var isFree: Bool {
        guard let lock = try? UsageLock.exclusive(path, timeout: 0) else { return false }
        lock.release()
        return true
    }

    /// Whoever uses the store closes it meanwhile. As long as the copy is not given up, its file is no leftover.
    @Test(arguments: [Configuration.JournalMode.wal, .delete]) func aStoreThatIsClosed(mode: Configuration.JournalMode)
        throws
    {
        let database = try store(mode, rows: 300)
        let copy = try database.liveCopy(for: .testing(2))
        #expect((copy is FollowedCopy) == (mode == .wal))
        #expect(!isFree)
        #expect(database.close())
        #expect(!isFree)
        copy.discard()
        #expect(isFree && directory.namesOfFiles == ["db"])
        // What is left of the copy is still there.
        #expect(!copy.needsRelief)
    }

    /// A copy that is complete needs no lock: the rotation that puts it in place takes its own.
    @Test(arguments: [Configuration.JournalMode.wal, .delete]) func aCopyThatIsComplete(mode: Configuration.JournalMode)
        throws
    {
        let database = try store(mode, rows: 300)
        let copy = try database.liveCopy(for: .testing(2))
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
        #expect(database.close())
        #expect(isFree)
        copy.discard()
    }

    /// A store that gets smaller meanwhile has a copy of its size, with no page behind the end.
    @Test func aStoreThatShrinks() throws {
        let database = try store(.wal, rows: 3000)
        defer { database.close() }
        let copy = try #require(try database.liveCopy(for: .testing(2)) as? FollowedCopy)
        defer { copy.discard() }
        while !copy.isNearlyComplete { try copy.advance() }
        let before = try FileSystem.status(copy.file.path).st_size
        try database.execute(script: "DELETE FROM t WHERE id > 100; VACUUM")
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
        let pages = try database.integers("PRAGMA page_count")[0]
        #expect(try FileSystem.status(copy.file.path).st_size == pages * 4096 && before > pages * 4096)
    }

    /// Everybody waits for the last sync, so that one has little to write.
    @Test func mostIsOnTheDiskBeforeTheEnd() throws {
        let database = try store(.wal, rows: 3000)
        defer { database.close() }
        let copy = try database.liveCopy(for: .testing(2))
        defer { copy.discard() }
        let watch = CallWatch(directory.path)
        while !copy.isNearlyComplete { try copy.advance() }
        let calls = watch.endWithAll()
        #expect(calls.contains { $0.hasPrefix("fsync .db.sealdb-") }, "\(calls)")
    }

    /// Each write of another connection has SQLite begin anew. After some of them the rest is copied while that waits.
    @Test func aCopyThatBeginsAnewAgainAndAgain() throws {
        let database = try store(.delete, rows: 30_000)
        defer { database.close() }
        let other = try Database.testing(path)
        defer { other.close() }
        let copy = try #require(try database.liveCopy(for: .testing(2)) as? LiveCopy)
        defer { copy.discard() }
        var rounds = 0
        while !copy.isNearlyComplete, rounds < 20 {
            try copy.advance()
            try copy.advance()
            try other.executeUpdate("UPDATE t SET body = 'x' || \(rounds) WHERE id = 1")
            rounds += 1
        }
        #expect((4...6).contains(rounds), "\(rounds)")
        #expect(copy.progress.totalPages - copy.progress.completedPages > 256)
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
    }
}
