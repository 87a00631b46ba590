import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// A place of a log or journal that the disk cannot read: recovery does without what stands there.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct BadSectorTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func recover(spoiling offset: Int64, of file: String) throws -> (report: StoreRecovery.Report, rows: [Int])
    {
        let place = failing_calls_spoil(directory.file(file), offset)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        let report = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        let database = try Database.testing(directory.file("new"))
        defer { database.close() }
        return (report, try database.integers("SELECT id FROM t ORDER BY id"))
    }

    /// In the header, the first frame's header, its page, another frame, and the last page.
    private static let placesOfLog: [Int64] = [0, 20, 40, 65, 28875, 29372, -1]

    @Test(arguments: placesOfLog)
    func ofALog(offset: Int64) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.execute(
            script:
                """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, a);
                PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        for id in 1...30 { try database.executeUpdate("INSERT INTO t VALUES (\(id), hex(randomblob(500)))") }
        try directory.keep("db", "db-wal", of: database)
        let size = Int64(try directory.bytes("db-wal").count)
        let (report, rows) = try recover(spoiling: offset < 0 ? size - 9 : offset, of: "db-wal")
        #expect(report.problems.contains { $0.contains("A part of the log cannot be read") }, "\(report)")
        // A page holds at most four rows, and each other page comes again later.
        #expect(rows.count >= 26 && rows.allSatisfy((1...30).contains), "\(report)")
    }

    /// In the header, the first record, another one, and the checksum of one.
    private static let placesOfJournal: [Int64] = [0, 516, 17828, 41548]

    @Test(arguments: placesOfJournal)
    func ofAJournal(offset: Int64) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.execute(
            script: """
                CREATE TABLE t (id INTEGER PRIMARY KEY, a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO t SELECT i, 'old ' || hex(randomblob(50)) FROM n;
                PRAGMA cache_size = 10; BEGIN; UPDATE t SET a = 'new ' || substr(a, 5);
                """
        )
        try directory.keep("db", "db-journal", of: database)
        let size = Int64(try directory.bytes("db-journal").count)
        try #require(size > 512 + 10 * 4104)
        let (report, rows) = try recover(spoiling: offset, of: "db-journal")
        #expect(report.problems.contains { $0.contains("The journal is damaged") }, "\(report)")
        #expect(rows.count >= 350, "\(report)")
        guard offset > 0 else { return }
        let saved = try Database.testing(directory.file("new"))
        defer { saved.close() }
        #expect(try saved.integers("SELECT count(*) FROM t WHERE a LIKE 'old %'")[0] >= 350, "\(report)")
    }

    /// The header and the first frame stand in one sector.
    @Test func ofTheBeginningOfALog() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, a);
                PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        for id in 1...30 { try database.executeUpdate("INSERT INTO t VALUES (\(id), hex(randomblob(500)))") }
        try directory.keep("db", "db-wal", of: database)
        let second = failing_calls_spoil(directory.file("db-wal"), 45)
        try #require(second >= 0)
        defer { failing_calls_mend(second) }
        #expect(try recover(spoiling: 20, of: "db-wal").rows.count >= 26)
    }

    /// What a power failure has cut off stays behind the end of the log, when another transaction takes the place of its beginning.
    @Test(arguments: [true, false]) func whatStandsBehindTheEndOfALog(isUnreadable: Bool) throws {
        let path = directory.file("db")
        func add(_ sql: SQL) throws -> Data {
            let database = try Database.testing(path, journalMode: .wal)
            try database.execute(script: sql)
            let log = try directory.bytes("db-wal")
            try directory.keep("db", "db-wal", of: database)
            return log
        }
        _ = try add(
            """
            PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE u (v, filling);
            INSERT INTO u VALUES ('old', zeroblob(3000)), ('old', zeroblob(3000)); PRAGMA wal_checkpoint(TRUNCATE);
            INSERT INTO t VALUES (1, 1)
            """
        )
        let before = try (store: directory.bytes("db"), log: directory.bytes("db-wal"))
        let cutOff = try add("PRAGMA wal_autocheckpoint = 0; UPDATE u SET v = 'lost'")
        for (name, bytes) in [("db", before.store), ("db-wal", before.log)] {
            try bytes.write(to: URL(fileURLWithPath: directory.file(name)))
        }
        unlink(path + "-shm")
        var log = try add("PRAGMA wal_autocheckpoint = 0; UPDATE u SET v = 'new' WHERE rowid = 1")
        try #require(log.starts(with: before.log) && cutOff.count > log.count && log.count > before.log.count)
        log += cutOff[log.count...]
        if !isUnreadable { log[32 + 24 + 500] ^= 1 }
        try log.write(to: URL(fileURLWithPath: path + "-wal"))
        unlink(path + "-shm")

        let place = failing_calls_spoil(path + "-wal", isUnreadable ? 32 + 24 + 500 : Int64.max)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        _ = try StoreRecovery(path: path, key: .testing(1), to: directory.file("new")).run()
        let saved = try Database.testing(directory.file("new"))
        defer { saved.close() }
        #expect(try saved.executeQuery("SELECT v FROM u ORDER BY rowid").all(String.self) == ["new", "old"])
    }
}
