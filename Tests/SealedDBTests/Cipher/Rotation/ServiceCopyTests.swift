import Foundation
import Testing

@testable import SealedDB

/// Copies that are made while a store is in use: when they end, and what they leave if they cannot go on.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct ServiceCopyTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
    }

    /// A store with so many pages at least, and one row on each.
    private func store(
        pages: Int = 8,
        _ mode: Configuration.JournalMode,
        settings: CipherSettings = .init()
    ) throws -> Database {
        var configuration = Configuration(key: try .testing(1))
        configuration.journalMode = mode
        configuration.cipherSettings = settings
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        try database.executeUpdate("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, body BLOB)", values: nil)
        try grow(database, by: pages)
        return database
    }

    private func grow(_ database: Database, by pages: Int) throws {
        try database.executeUpdate(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
            INSERT INTO t (body) SELECT zeroblob(2500) FROM n
            """,
            values: [pages]
        )
    }

    private func followed(_ database: Database) throws -> FollowedCopy {
        try #require(try database.liveCopy(for: .testing(2)) as? FollowedCopy)
    }

    private func live(_ database: Database) throws -> LiveCopy {
        try #require(try database.liveCopy(for: .testing(2)) as? LiveCopy)
    }

    // MARK: By the log

    /// So many pages are left that everybody would wait. But it never ends otherwise.
    @Test func aFollowedCopyThatDoesNotGetAhead() throws {
        let database = try store(pages: 1200, .wal)
        defer { database.close() }
        let copy = try followed(database)
        defer { copy.discard() }
        copy.pagesInRound = 1
        try copy.advance()
        #expect(!copy.isNearlyComplete)
        #expect(try !copy.isCloseEnough())
        for _ in 2...16 { try copy.advance() }
        #expect(copy.progress.totalPages - copy.progress.completedPages > 1024)
        #expect(copy.isNearlyComplete)
        #expect(try copy.isCloseEnough())
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
    }

    @Test func aFollowedCopyThatIsCompletedAtOnce() throws {
        let database = try store(.wal)
        defer { database.close() }
        let copy = try followed(database)
        defer { copy.discard() }
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
    }

    /// What is told is why it could not begin.
    @Test func aFollowedCopyThatCannotBegin() throws {
        let database = try store(.wal)
        defer { database.close() }
        let connection = try #require(database.connection)
        let copy = try followed(database)
        defer { copy.discard() }
        let watch = CallWatch(directory.path, failing: 0...Int.max - 1)
        let error = #expect(throws: DatabaseError.self) { try copy.complete(connection) }
        watch.end()
        #expect(error?.reason == .ioError, "\(error as Any)")
        #expect(try !copy.isCurrent())
    }

    /// What cannot be read for a moment can be read later.
    @Test func aFollowedCopyWhoseNextLookFails() throws {
        let database = try store(.wal)
        defer { database.close() }
        let copy = try followed(database)
        defer { copy.discard() }
        try copy.advance()
        // A commit, so that there is something to look at.
        try grow(database, by: 1)
        let count = CallWatch(directory.path)
        #expect(try copy.isCloseEnough())
        let calls = count.endWithAll()
        var failures = 0
        for index in calls.indices {
            try grow(database, by: 1)
            let watch = CallWatch(directory.path, failing: index...index)
            let result = Result { try copy.isCloseEnough() }
            watch.end()
            if case .failure = result { failures += 1 }
            #expect(throws: Never.self, "\(calls[index])") { try copy.isCloseEnough() }
        }
        #expect(failures > 0, "\(calls)")
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
    }

    // MARK: By SQLite

    /// Without codes, no page is known not to be authentic.
    @Test func aLiveCopyOfPagesWithoutCodes() throws {
        let database = try store(.delete, settings: CipherSettings(usesHMAC: false))
        defer { database.close() }
        let copy = try live(database)
        defer { copy.discard() }
        #expect(!copy.needsRelief)
        while !copy.isNearlyComplete { try copy.advance() }
        try copy.complete(#require(database.connection))
        #expect(try copy.isCurrent())
    }

    /// Whoever has a VFS of their own has it made so of a store in WAL mode.
    @Test func aLiveCopyOfAStoreWithALog() throws {
        let database = try store(.wal)
        defer { database.close() }
        let connection = try #require(database.connection)
        let copy = try LiveCopy(of: connection, path: path, Sealing(key: .testing(1)), Sealing(key: .testing(2)))
        defer { copy.discard() }
        try copy.advance()
        try copy.complete(connection)
        #expect(try copy.isCurrent())
    }

    @Test func aLiveCopyThatDoesNotGetAhead() throws {
        let database = try store(pages: 400, .delete)
        defer { database.close() }
        let copy = try live(database)
        defer { copy.discard() }
        let pages = try #require(try database.connection?.integer("PRAGMA page_count"))
        for step in 1...2 * pages / 64 + 16 {
            #expect(!copy.isNearlyComplete, "\(step)")
            try copy.advance()
            try grow(database, by: 100)
        }
        #expect(copy.progress.totalPages - copy.progress.completedPages > 256)
        #expect(copy.isNearlyComplete)
    }

    /// SQLCipher is not asked for a page that is not authentic. It goes on when it is alone.
    @Test func aLiveCopyBeforeADamagedPage() throws {
        try store(pages: 600, .delete).close()
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        var byte: UInt8 = 0
        let offset = off_t(99 * 4096 + 100)
        #expect(pread(descriptor, &byte, 1, offset) == 1)
        byte ^= 1
        #expect(pwrite(descriptor, &byte, 1, offset) == 1)
        close(descriptor)
        let database = try store(pages: 0, .delete)
        defer { database.close() }
        let copy = try live(database)
        defer { copy.discard() }
        try copy.advance()
        #expect(!copy.isNearlyComplete)
        try copy.advance()
        #expect(copy.progress.totalPages - copy.progress.completedPages > 256)
        #expect(copy.isNearlyComplete)
        try copy.complete(#require(database.connection))
        #expect(try !copy.isCurrent())
        #expect(directory.namesOfFiles == ["db"])
    }

    /// Each call fails once. What was begun is closed and removed, and the store goes on.
    @Test func aLiveCopyThatCannotBegin() throws {
        let database = try store(.delete)
        defer { database.close() }
        let count = CallWatch(directory.path)
        try live(database).discard()
        let calls = count.endWithAll()
        let open = filesOpen(below: directory).sorted()
        var failures = 0
        for index in calls.indices {
            let watch = CallWatch(directory.path, failing: index...index)
            let result = Result { try database.liveCopy(for: .testing(2)) }
            let failed = watch.end(describing: index)
            guard case .failure = result else {
                // It is closed with its last reference.
                try result.get().discard()
                continue
            }
            failures += 1
            let comment: Comment = "\(failed ?? "nothing")"
            // What could not be removed is removed by the next one.
            guard failed?.hasPrefix("unlink") != true else { continue }
            #expect(directory.namesOfFiles == ["db"], comment)
            #expect(filesOpen(below: directory).sorted() == open, comment)
            #expect(try database.integers("SELECT count(*) FROM t") == [8], comment)
        }
        #expect(failures > 3, "\(calls)")
    }

    // MARK: Rotations

    private static func prepare(_ directory: TemporaryDirectory, _ mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 10)
        database.close()
    }

    private static func rotation(_ directory: TemporaryDirectory) throws -> KeyRotation {
        KeyRotation(path: directory.file("db"), from: try .testing(1), to: try .testing(2))
    }

    @Test func aStoreThatMayNotBeWrittenTo() throws {
        let call = try FailedCall("access db", EACCES, prepare: { try Self.prepare($0, .delete) }) { directory in
            try Self.rotation(directory).plan().pageCount
        }
        #expect(call.error?.reason == .notPermitted, "\(call.error as Any)")
        #expect(call.error?.message.contains("cannot be written to") == true)
    }

    /// Somebody else has removed it just then.
    @Test func aJournalThatIsGoneAlready() throws {
        let call = try FailedCall("unlink db-journal", ENOENT, prepare: { try Self.prepare($0, .persist) }) {
            directory in
            try Self.rotation(directory).run().pageCount
        }
        #expect(call.error == nil)
        try Database.testing(call.directory.file("db"), key: 2).close()
        let other = try FailedCall("unlink db-journal", EPERM, prepare: { try Self.prepare($0, .persist) }) {
            directory in
            try Self.rotation(directory).run().pageCount
        }
        #expect(other.error?.message.contains("Cannot remove") == true, "\(other.error as Any)")
        try Database.testing(other.directory.file("db"), key: 1).close()
    }
}
