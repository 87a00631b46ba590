import Foundation
import Testing

@testable import SealedDB

/// What rotations keep, find again and recognise.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeptStoreTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 300)
        database.close()
    }

    private func rotation(from old: UInt8 = 1, to new: UInt8 = 2, keeping suffix: String? = nil) throws -> KeyRotation {
        KeyRotation(
            path: directory.file("db"),
            from: try .testing(old),
            to: try .testing(new),
            oldFileSuffix: suffix
        )
    }

    private func count(_ name: String, key byte: UInt8) throws -> [Int] {
        try Database.testing(directory.file(name), key: byte).integers("SELECT count(*) FROM t")
    }

    private func reason(_ body: () throws -> Void) -> DatabaseError.Reason? {
        do {
            try body()
            return nil
        } catch {
            return (error as? DatabaseError)?.reason
        }
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func oldFile(mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        #expect(try database.integers("SELECT count(*) FROM t") == [300])
        database.close()
        try rotation(keeping: ".old").run()
        #expect(directory.names == ["db", "db.old"])
        #expect(try count("db", key: 2) == [300])
        #expect(try count("db.old", key: 1) == [300])
        #expect(reason { _ = try count("db.old", key: 2) } == .wrongKey)
        // Two files, neither of which is the other.
        try Database.testing(directory.file("db"), key: 2).executeUpdate("DELETE FROM t", values: nil)
        #expect(try count("db.old", key: 1) == [300])
    }

    @Test func nothingIsReplacedByTheOldFile() throws {
        try directory.write("db.old", [1])
        #expect(reason { try rotation(keeping: ".old").run() } == .alreadyExists)
        #expect(reason { _ = try rotation(keeping: ".old").plan() } == .alreadyExists)
        #expect(try count("db", key: 1) == [300])
        #expect(try directory.bytes("db.old") == Data([1]))
    }

    /// Killed right before the swap: the store has its second name already.
    @Test func secondNameOfAKilledRotation() throws {
        link(directory.file("db"), directory.file("db.old"))
        #expect(reason { try rotation().run() } == .hardLinked)
        #expect(reason { try rotation(keeping: ".older").run() } == .hardLinked)
        try rotation(keeping: ".old").run()
        #expect(directory.names == ["db", "db.old"])
        #expect(try count("db", key: 2) == [300])
        #expect(try count("db.old", key: 1) == [300])
    }

    @Test func oldNameIsFreeAgainAfterAFailure() throws {
        let error = #expect(throws: DatabaseError.self) {
            try rotation(keeping: ".old").run { progress in
                if progress.phase == .swap { throw CancellationError() }
            }
        }
        #expect(error?.reason == .interrupted)
        #expect(directory.names == ["db"])
        #expect(try count("db", key: 1) == [300])
    }

    /// It had to leave WAL mode for the copy, and was killed before it could go back.
    @Test func killedRotationOfAStoreInWALMode() throws {
        let left = try TemporaryFile.path(beside: directory.file("db"), mark: "wal")
        try directory.write(FileSystem.name(of: left), [1])
        try rotation().run()
        #expect(directory.names == ["db"])
        let database = try Database.testing(directory.file("db"), key: 2)
        let rows = try database.executeQuery("PRAGMA journal_mode", values: nil)
        #expect(rows.next() && rows.string(forColumnIndex: 0) == "wal")
    }

    @Test func failureLeavesTheJournalModeAsItWas() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        #expect(try database.integers("SELECT count(*) FROM t") == [300])
        database.close()
        for phase in [KeyRotation.Progress.Phase.copy, .verify, .sync, .swap] {
            #expect(throws: DatabaseError.self) {
                try rotation().run { if $0.phase == phase { throw CancellationError() } }
            }
            #expect(directory.names == ["db"], "\(phase)")
        }
        let again = try Database.testing(directory.file("db"))
        let rows = try again.executeQuery("PRAGMA journal_mode", values: nil)
        #expect(rows.next() && rows.string(forColumnIndex: 0) == "wal")
    }

    @Test func doneOrNot() throws {
        #expect(try !rotation().isDone())
        try rotation().run()
        #expect(try rotation().isDone())
        #expect(try rotation(from: 7).isDone())
        #expect(try !rotation(to: 3).isDone())
        try directory.write("db", Array("SQLite format 3\u{0}".utf8) + [UInt8](repeating: 0, count: 4080))
        #expect(reason { _ = try rotation().isDone() } == .plaintext)
        unlink(directory.file("db"))
        #expect(reason { _ = try rotation().isDone() } == .noSuchFile)
    }

    @Test func planTellsTheTime() throws {
        let plan = try rotation().plan()
        #expect(try #require(plan.estimatedSeconds) > 0)
        #expect(directory.names == ["db"])
    }

    @Test func aNameForTheOldFileThatTheSystemRefuses() throws {
        #expect(reason { try rotation(keeping: "." + String(repeating: "o", count: 253)).run() } == .cannotCreate)
        try Data().write(to: URL(fileURLWithPath: directory.file("db.old")))
        #expect(reason { try rotation(keeping: ".old").run() } == .alreadyExists)
        #expect(try count("db", key: 1) == [300])
    }
}
