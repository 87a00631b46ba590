import Testing

@testable import SealedDB

/// When the log of a pool is moved into the file, and when readers are waited for so that it can begin anew.
@Suite(.hangLimit)
struct LogKeeperTests {
    private let directory: TemporaryDirectory
    private let database: Database
    private let connection: Connection
    private let keeper = LogKeeper()

    private enum Answer { case nothing, passive, restart }

    init() throws {
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.fill(rows: 3)
        connection = try #require(database.connection)
    }

    /// What is done about a log of so many frames. Whoever waits for readers sets a time for that, and then the usual one.
    private func answer(to frames: Int32) throws -> Answer {
        connection.setBusyTimeout(seconds: 77)
        connection.walFrameCount = frames
        keeper.checkpointIfDue(database)
        if connection.walFrameCount == frames { return .nothing }
        #expect(connection.walFrameCount == 0)
        let wait = try connection.integer("PRAGMA busy_timeout")
        if wait == 77_000 { return .passive }
        #expect(wait == Int64(database.configuration.busyTimeout * 1000))
        return .restart
    }

    @Test func nothingIsDoneForAShortLog() throws {
        #expect(try answer(to: LogKeeper.threshold - 1) == .nothing)
        #expect(try answer(to: LogKeeper.threshold) == .passive)
        #expect(database.beginTransaction())
        #expect(try answer(to: 20_000) == .nothing)
        #expect(database.rollback())
        #expect(try answer(to: 20_000) == .restart)
    }

    /// Readers who stay are not waited for at each commit, but time and again; once the log has begun anew, all begins anew.
    @Test func readersAreWaitedForNowAndThen() throws {
        #expect(try answer(to: 9_999) == .passive)
        #expect(try answer(to: 10_000) == .restart)
        #expect(try answer(to: 10_001) == .passive)
        #expect(try answer(to: 14_999) == .passive)
        #expect(try answer(to: 15_000) == .restart)
        #expect(try answer(to: 19_999) == .passive)
        #expect(try answer(to: 20_000) == .restart)
        #expect(try answer(to: 5_000) == .passive)
        #expect(try answer(to: 10_000) == .restart)
    }
}
