import Logging
import Testing

@testable import SealedDB

/// When the log of a pool is moved into the file, and when it is to be emptied.
@Suite(.hangLimit)
struct LogKeeperTests {
    private let directory: TemporaryDirectory
    private let database: Database
    private let connection: Connection

    init() throws {
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.fill(rows: 3)
        connection = try #require(database.connection)
    }

    /// The calls that are to empty the log. They hold the keeper, which does not hold them.
    private final class Calls: Sendable {
        private let made = Guarded<[@Sendable (Bool) -> Void]>([])

        var count: Int { made.withLock { $0.count } }

        func add(_ done: @escaping @Sendable (Bool) -> Void) { made.withLock { $0.append(done) } }
        func answer(_ number: Int, _ isEmpty: Bool) { made.withLock { $0[number] }(isEmpty) }
    }

    private func keeper(maximumSize: Int) -> (keeper: LogKeeper, calls: Calls) {
        let keeper = LogKeeper(maximumSize: maximumSize, instruments: Instruments(path: nil))
        let calls = Calls()
        keeper.empty = { [weak calls] done in calls?.add(done) }
        return (keeper, calls)
    }

    /// Has the log be looked after when it has so many frames.
    private func look(_ keeper: LogKeeper, frames: Int32) {
        connection.walFrameCount = frames
        keeper.checkpoint(database)
    }

    @Test func nothingIsDoneForAShortLog() throws {
        let (keeper, calls) = keeper(maximumSize: 0)
        look(keeper, frames: LogKeeper.threshold - 1)
        #expect(connection.walFrameCount == LogKeeper.threshold - 1)
        #expect(database.beginTransaction())
        look(keeper, frames: 20_000)
        #expect(connection.walFrameCount == 20_000)
        #expect(database.rollback())
        #expect(calls.count == 0)
        look(keeper, frames: LogKeeper.threshold)
        #expect(connection.walFrameCount == 0)
        #expect(calls.count == 1)
    }

    /// It asks for a moment without readers once at a time, and after one that did not come only when the log has grown.
    @Test func aLogBeyondItsLimitIsEmptied() throws {
        let path = directory.file("db-wal")
        let size = try Int(FileSystem.status(path).st_size)
        let (keeper, calls) = keeper(maximumSize: size)
        look(keeper, frames: 2_000)
        #expect(calls.count == 1)
        look(keeper, frames: 2_000)
        #expect(calls.count == 1)
        calls.answer(0, false)
        look(keeper, frames: 2_000)
        #expect(calls.count == 1)
        try database.fill(rows: 500)
        #expect(try Int(FileSystem.status(path).st_size) > size + size / 4)
        look(keeper, frames: 2_000)
        #expect(calls.count == 2)
        calls.answer(1, true)
        look(keeper, frames: 2_000)
        #expect(calls.count == 3)
    }

    /// A disk that fills up is told of, with what it is full of.
    @Test func aLogThatCannotBeEmptiedIsTold() throws {
        let log = Log<String>()
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.journalMode = .wal
        configuration.logger = Logger(to: log)
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 3)
        let size = try Int(FileSystem.status(directory.file("db-wal")).st_size)
        let (keeper, calls) = keeper(maximumSize: size - 1)
        func told() -> [String] { log.values.filter { $0.contains("beyond its limit") } }
        for isEmpty in [true, false] {
            database.connection?.walFrameCount = LogKeeper.threshold
            keeper.checkpoint(database)
            try #require(calls.count == (isEmpty ? 1 : 2))
            calls.answer(calls.count - 1, isEmpty)
            #expect(told().count == (isEmpty ? 0 : 1), "\(log.values)")
        }
        let text = try #require(told().first)
        #expect(text.hasPrefix("warning "), "\(text)")
        #expect(text.contains("\"bytes\": \(size)") && text.contains("\"limit\": \(size - 1)"), "\(text)")
    }

    @Test func aShorterLogIsLeft() {
        let (keeper, calls) = keeper(maximumSize: 1 << 30)
        look(keeper, frames: 20_000)
        #expect(connection.walFrameCount == 0)
        #expect(calls.count == 0)
    }

    @Test func emptyingWaitsForNobody() throws {
        #expect(LogKeeper.emptyLog(of: database))
        #expect(try FileSystem.status(directory.file("db-wal")).st_size == 0)
        let reader = try Database.testing(directory.file("db"), journalMode: .wal)
        let rows = try reader.executeQuery("SELECT * FROM t", values: nil)
        #expect(rows.next())
        try database.executeUpdate("DELETE FROM t", values: nil)
        #expect(!LogKeeper.emptyLog(of: database))
        #expect(
            try connection.integer("PRAGMA busy_timeout")
                == Int64(database.configuration.busyTimeout / .milliseconds(1))
        )
        rows.close()
        #expect(LogKeeper.emptyLog(of: database))
    }

    /// Beside the pool's own checkpoints SQLite would make others, and the pool would not hear of commits.
    @Test func blocksDoNotSetCheckpoints() throws {
        let pool = DatabasePool(path: directory.file("db"))
        for pragma in [
            "wal_autocheckpoint = 1", "main.wal_autocheckpoint(0)", "WAL_AUTOCHECKPOINT = -1",
            "wal_autocheckpoint = ''",
        ] {
            try pool.inDatabase { db throws in
                let error = #expect(throws: DatabaseError.self) {
                    try db.executeUpdate("PRAGMA \(raw: pragma)", values: nil)
                }
                #expect(error?.message.contains("maximumLogSize") == true, "\(error?.message ?? "")")
            }
        }
        #expect(database.executeStatements("PRAGMA wal_autocheckpoint = 1"))
    }

    /// Whoever opens the connection again: a rotation, or a block that has closed it.
    @Test func everyConnectionThatIsOpenedLeavesTheLogToThePool() throws {
        let pool = DatabasePool(
            path: directory.file("pool"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        try pool.write { db in try db.fill(rows: 3) }
        if isEncrypting { try pool.rotateKey(to: .testing(2)) }
        try pool.writeWithoutTransaction { db in
            try db.fill(rows: 3)
            #expect(db.connection?.walFrameCount ?? 0 > 0)
            #expect(db.close() && db.open())
            #expect(throws: DatabaseError.self) { try db.executeUpdate("PRAGMA wal_autocheckpoint = 1", values: nil) }
            try db.fill(rows: 3)
            #expect(db.connection?.walFrameCount ?? 0 > 0)
        }
    }

    /// Nobody else would move the log of an attached file.
    @Test func theLogOfAnAttachedFileIsMoved() throws {
        let other = Database(path: directory.file("other"))
        #expect(other.open() && other.executeStatements("PRAGMA journal_mode = WAL; CREATE TABLE t (n)"))
        let pool = DatabasePool(path: directory.file("pool"))
        try pool.inDatabase { db throws in
            try db.executeUpdate("ATTACH ? AS other", values: [directory.file("other")])
            for _ in 0..<3 {
                try db.executeUpdate(
                    """
                    INSERT INTO other.t SELECT randomblob(4000) FROM
                        (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) SELECT i FROM n)
                    """,
                    values: nil
                )
            }
        }
        #expect(try FileSystem.status(directory.file("other-wal")).st_size < 2 * 1300 * 4200)
    }
}
