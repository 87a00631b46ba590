import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// What a recovery is given: the path, the salt, and what stands beside the file.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RecoveryInputTests {
    private let directory: TemporaryDirectory
    private static let withoutCodes = CipherSettings(usesHMAC: false)
    private static let frameSize = 24 + 4096

    init() throws { directory = try TemporaryDirectory() }

    private func open(
        _ name: String = "db",
        _ mode: Configuration.JournalMode? = nil,
        _ settings: CipherSettings = .init()
    ) throws -> Database {
        var configuration = Configuration(key: try .testing(1))
        (configuration.cipherSettings, configuration.journalMode) = (settings, mode)
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        return database
    }

    private func recovery(_ settings: CipherSettings = .init(), salt: [UInt8]? = nil) throws -> StoreRecovery {
        StoreRecovery(
            path: directory.file("db"),
            key: try .testing(1),
            cipherSettings: settings,
            salt: salt,
            to: directory.file("new")
        )
    }

    private func saved(_ sql: String, _ settings: CipherSettings = .init()) throws -> [Int] {
        let database = try open("new", nil, settings)
        defer { database.close() }
        return try database.integers(sql)
    }

    @Test func aDirectory() throws {
        try FileManager.default.createDirectory(atPath: directory.file("db"), withIntermediateDirectories: false)
        let error = #expect(throws: DatabaseError.self) { try recovery().run() }
        #expect(error?.reason == .notRegularFile && error?.message.contains("Nothing was recovered") == true)
        #expect(directory.names == ["db"])
    }

    /// Somebody is in a transaction, with a rollback journal: the file may change at any moment.
    @Test func aStoreThatSomebodyWrites() throws {
        let database = try open("db", .delete)
        try database.fill(rows: 10)
        try database.execute(script: "BEGIN IMMEDIATE")
        let error = #expect(throws: DatabaseError.self) { try recovery().run() }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        #expect(!directory.names.contains("new"))
        try database.execute(script: "ROLLBACK")
        database.close()
        #expect(try recovery().run().isComplete)
    }

    /// With another salt no page of a store that opens is known.
    @Test func theSaltOfAnotherStore() throws {
        let database = try open()
        try database.fill(rows: 10)
        database.close()
        let error = #expect(throws: DatabaseError.self) { try recovery(salt: Array(1...16)).run() }
        #expect(error?.reason == .wrongKey, "\(String(describing: error))")
        #expect(error?.message.hasPrefix("No page of") == true, "\(String(describing: error))")
        let salt = try Array(directory.bytes("db").prefix(16))
        #expect(try recovery(salt: salt).run().isComplete)
    }

    @Test(arguments: [0, 15, 17]) func noSalt(count: Int) throws {
        let database = try open()
        try database.fill(rows: 10)
        database.close()
        let error = #expect(throws: DatabaseError.self) {
            try recovery(salt: [UInt8](repeating: 1, count: count)).run()
        }
        #expect(error?.reason == .unusableSettings, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["db"])
    }

    // MARK: Logs

    /// The file has only noise, also in the place of its salt, and the log has each page.
    @Test func everythingIsInTheLog() throws {
        let database = try open("db", .wal)
        try database.execute(script: "PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)")
        try directory.keep("db", "db-wal", of: database)
        var generator = SeededGenerator(seed: 1)
        let size = try directory.bytes("db").count
        try directory.write("db", (0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) })
        let report = try recovery().run()
        #expect(report.tables.map(\.rowCount) == [2], "\(report)")
    }

    /// A page in the log is not the store's, and the checksums are right: anybody can write such a log.
    @Test func aPageOfTheLogThatIsNotTheStores() throws {
        let database = try open("db", .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); CREATE TABLE u (a); INSERT INTO t VALUES (1);
                INSERT INTO u VALUES (1); PRAGMA wal_checkpoint(TRUNCATE); BEGIN; INSERT INTO t VALUES (2);
                INSERT INTO u VALUES (2); COMMIT;
                """
        )
        try directory.keep("db", "db-wal", of: database)
        var log = try [UInt8](directory.bytes("db-wal"))
        try #require(log.count == 32 + 2 * RecoveryInputTests.frameSize)
        log[32 + 24 + 1000] ^= 1
        var sum = LogChecksum(isBigEndian: log[3] == 0x83, after: log[24..<32])
        for start in stride(from: 32, to: log.count, by: RecoveryInputTests.frameSize) {
            sum.add(log[start..<(start + 8)])
            sum.add(log[(start + 24)..<(start + RecoveryInputTests.frameSize)])
            log.replaceSubrange((start + 16)..<(start + 24), with: sum.bytes)
        }
        try directory.write("db-wal", log)
        let report = try recovery().run()
        #expect(
            report.problems == ["1 of 2 pages of the log or journal are damaged. Those of the file were used."],
            "\(report)"
        )
        #expect(try saved("SELECT max((SELECT count(*) FROM t), (SELECT count(*) FROM u))") == [2])
        #expect(try saved("SELECT min((SELECT count(*) FROM t), (SELECT count(*) FROM u))") == [1])
    }

    /// Without codes nothing tells whose pages a log has. No more pages than it has can stand behind those of the file,
    /// but for that of SQLite's locks.
    @Test(arguments: [3, 4, 5, 1000]) func aPageBehindTheEnd(number: Int) throws {
        let database = try open("db", .delete, RecoveryInputTests.withoutCodes)
        try database.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        database.close()
        let size = try directory.bytes("db").count
        try #require(size == 2 * 4096)
        var log: [UInt8] = [0x37, 0x7f, 0x06, 0x82, 0, 0x2d, 0xe2, 0x18, 0, 0, 0x10, 0] + [UInt8](1...12)
        var sum = LogChecksum(isBigEndian: false)
        sum.add(log[...])
        log += sum.bytes
        let count = [0, 0, UInt8(number >> 8), UInt8(number & 255)]
        let header: [UInt8] = count + count
        let page = [UInt8](repeating: 7, count: 4096)
        sum.add(header[...])
        sum.add(page[...])
        log += header + log[16..<24] + sum.bytes + page
        try directory.write("db-wal", log)
        let report = try recovery(RecoveryInputTests.withoutCodes).run()
        #expect(report.pageCount == (number <= 4 ? Int64(number) : 2), "\(report)")
        #expect(report.tables.map(\.rowCount) == [1])
    }

    /// Nothing else tells which pages of the rest are whole.
    @Test func aLogWithoutCodesThatCannotBeRead() throws {
        let database = try open("db", .wal, RecoveryInputTests.withoutCodes)
        try database.execute(script: "PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)")
        try directory.keep("db", "db-wal", of: database)
        let place = failing_calls_spoil(directory.file("db-wal"), 32 + 24 + 100)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        let error = #expect(throws: DatabaseError.self) { try recovery(RecoveryInputTests.withoutCodes).run() }
        #expect(error?.code == SQLITE_IOERR, "\(String(describing: error))")
        #expect(!directory.names.contains("new"))
    }

    // MARK: Journals

    /// The journal of a transaction that was cut off is sound, though its pages have no codes.
    @Test func aJournalWithoutCodes() throws {
        let database = try open("db", .delete, RecoveryInputTests.withoutCodes)
        try database.execute(
            script: """
                CREATE TABLE t (id INTEGER PRIMARY KEY, a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO t SELECT i, 'old ' || hex(randomblob(50)) FROM n;
                """
        )
        try database.spillChanges()
        try database.execute(script: "BEGIN; UPDATE t SET a = 'new ' || substr(a, 5)")
        try directory.keep("db", "db-journal", of: database)
        let report = try recovery(RecoveryInputTests.withoutCodes).run()
        #expect(report.isComplete, "\(report)")
        let old = try saved("SELECT count(*) FROM t WHERE a LIKE 'old %'", RecoveryInputTests.withoutCodes)
        #expect(old == [400])
    }

    /// A journal of another key is left out, and told.
    @Test func theJournalOfAnotherKey() throws {
        let other = try Database.testing(directory.file("other"), key: 2, journalMode: .delete)
        try other.fill(rows: 300)
        try other.spillChanges()
        try other.execute(script: "BEGIN; UPDATE t SET body = body || 'x'")
        try directory.keep("other", "other-journal", of: other)
        let database = try open("db", .delete)
        try database.fill(rows: 30)
        database.close()
        try directory.write("db-journal", directory.bytes("other-journal"))
        let report = try recovery().run()
        #expect(report.problems.contains { $0.hasPrefix("The journal is damaged") }, "\(report)")
        #expect(report.tables.map(\.rowCount) == [30] && report.damagedPages == [], "\(report)")
    }

    /// Nothing tells that the transaction was cut off, so the file is taken as it is.
    @Test func aJournalWhoseHeaderCannotBeRead() throws {
        let database = try open("db", .delete)
        try database.execute(
            script: """
                CREATE TABLE t (id INTEGER PRIMARY KEY, a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO t SELECT i, 'old ' || hex(randomblob(50)) FROM n;
                """
        )
        try database.spillChanges()
        try database.execute(script: "BEGIN; UPDATE t SET a = 'new ' || substr(a, 5)")
        try directory.keep("db", "db-journal", of: database)
        let place = failing_calls_spoil(directory.file("db-journal"), 0)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        let report = try recovery().run()
        #expect(report.problems.contains { $0.hasPrefix("The journal is damaged") }, "\(report)")
        #expect(try saved("SELECT count(*) FROM t WHERE a LIKE 'new %'")[0] > 100)
    }
}
