import Foundation
import Testing

@testable import SealedDB

/// What recovery saves of a log or journal in which bytes were changed.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct SalvageTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Two transactions in a log, of three frames together, which a checkpoint has written to the file, too.
    private func makeLogThatIsInTheFile(settings: CipherSettings = .init()) throws -> [UInt8] {
        var configuration = Configuration(key: try .testing(1))
        (configuration.cipherSettings, configuration.journalMode) = (settings, .wal)
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0;
                CREATE TABLE account (id INTEGER PRIMARY KEY, balance); INSERT INTO account VALUES (1, 100), (2, 0);
                CREATE TABLE ledger (id INTEGER PRIMARY KEY, sum); INSERT INTO ledger VALUES (1, 100);
                PRAGMA wal_checkpoint(TRUNCATE);
                UPDATE account SET balance = 5 WHERE id = 2;
                BEGIN; UPDATE account SET balance = 10 WHERE id = 1; UPDATE ledger SET sum = 190; COMMIT;
                PRAGMA wal_checkpoint(PASSIVE);
                """
        )
        try directory.keep("db", "db-wal", of: database)
        let log = try [UInt8](directory.bytes("db-wal"))
        try #require(log.count == SalvageTests.start(ofFrame: 3))
        return log
    }

    /// The first transaction, without the second one, would be older than the file.
    @Test(arguments: ["whole", "page", "commit", "salts", "gap", "noise", "checksum", "cut off"])
    func aLogThatIsInTheFile(damage: String) throws {
        var log = try makeLogThatIsInTheFile()
        let second = SalvageTests.start(ofFrame: 1)
        switch damage {
        case "page": log[second + 24 + 100] ^= 1
        case "commit": log[SalvageTests.start(ofFrame: 2) + 24 + 100] ^= 1
        case "salts": log[second + 9] ^= 1
        case "gap": log.replaceSubrange(second..<(second + 4000), with: [UInt8](repeating: 0, count: 4000))
        case "noise":
            var generator = SeededGenerator(seed: 7)
            for index in second..<(second + 2000) { log[index] = .random(in: 0...255, using: &generator) }
        case "checksum":
            log[SalvageTests.start(ofFrame: 0) + 18] ^= 1
            log[second + 24 + 100] ^= 1
        case "cut off": log.removeLast(2000)
        default: break
        }
        try directory.write("db-wal", log)
        let store = try directory.bytes("db")
        if damage != "whole" {
            try expectNobodyOpens(directory.file("db"))
            #expect(throws: DatabaseError.self) {
                try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true)
            }
            #expect(throws: DatabaseError.self) {
                try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
            }
            #expect(try LogDamage.lostTransactions(ofStore: directory.file("db")) == 1)
            #expect(try directory.bytes("db") == store && [UInt8](directory.bytes("db-wal")) == log)
        }
        let saved = try recovered()
        defer { saved.close() }
        #expect(try saved.integers("SELECT balance FROM account ORDER BY id") == [10, 5])
        #expect(try saved.integers("SELECT sum FROM ledger") == [190])
    }

    /// A checkpoint that was cut off has written the pages up to one, in the order of their numbers. Behind that the log is newer,
    /// whatever else is damaged.
    @Test(arguments: [0, 4, 12, 25, 40], [1, 14, 27])
    func aCheckpointThatWasCutOff(lastPage: Int, block: Int) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, state, filling);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
                INSERT INTO t SELECT i, 'old', zeroblob(3000) FROM n;
                PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        let old = try directory.bytes("db")
        // Neither in the order of pages, nor against it.
        for id in 1...30 { try database.executeUpdate("UPDATE t SET state = 'new' WHERE id = \(id * 7 % 31)") }
        var log = try [UInt8](directory.bytes("db-wal"))
        _ = try database.checkpoint(.passive)
        let new = try directory.bytes("db")
        database.close()
        try #require(old.count == new.count && log.count == SalvageTests.start(ofFrame: 30))
        let cut = min(lastPage * 4096, new.count)
        try directory.write("db", new[..<cut] + old[cut...])
        // It reaches over two frames, so that one does not tell its page.
        let start = SalvageTests.start(ofFrame: block) / 4096 * 4096
        log.replaceSubrange(start..<(start + 4096), with: [UInt8](repeating: 0, count: 4096))
        try directory.write("db-wal", log)
        let saved = try recovered()
        defer { saved.close() }
        #expect(try saved.integers("SELECT count(*) FROM t") == [30])
        #expect(try saved.integers("SELECT count(*) FROM t WHERE state = 'new'")[0] >= 28)
    }

    /// Each version of the first page begins with the salt, which proves nothing.
    @Test func theNewestFirstPageOfALog() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE u (a); PRAGMA wal_checkpoint(TRUNCATE);
                CREATE TABLE t (a); CREATE TABLE v (a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);
                INSERT INTO t VALUES (3);
                """
        )
        try directory.keep("db", "db-wal", of: database)
        var log = try [UInt8](directory.bytes("db-wal"))
        let starts = stride(from: 32, to: log.count, by: SalvageTests.frameSize)
        let last = try #require(Array(starts).last { BigEndian.number(log[$0...].prefix(4)) == 1 })
        log[last + 24 + 2000] ^= 1
        try directory.write("db-wal", log)
        let saved = try recovered()
        defer { saved.close() }
        #expect(try saved.integers("SELECT a FROM t") == [1, 2, 3])
    }

    /// SQLite puts the pages of the journal back, and reads those of the log over them.
    @Test func aJournalBesideALog() throws {
        let path = directory.file("db")
        var database = try Database.testing(path, journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO t SELECT i, 'old ' || hex(randomblob(50)) FROM n; CREATE TABLE u (a);
                PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO u VALUES (7);
                """
        )
        let (file, log) = try (directory.bytes("db"), directory.bytes("db-wal"))
        database.close()
        try directory.write("db", file)
        database = try Database.testing(path, journalMode: .delete)
        try database.spillChanges()
        try database.execute(script: "BEGIN; UPDATE t SET a = 'new'")
        try directory.keep("db", "db-journal", of: database)
        try directory.write("db-wal", log)
        let saved = try recovered()
        defer { saved.close() }
        #expect(try saved.integers("SELECT count(*) FROM t WHERE a LIKE 'old %'") == [400])
        #expect(try saved.integers("SELECT a FROM u") == [7])
    }

    private func recovered() throws -> Database {
        _ = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        return try Database.testing(directory.file("new"))
    }

    // MARK: Logs

    private static let frameSize = 24 + 4096

    /// The store of 30 transactions in a log, which were acknowledged.
    private func makeLog() throws -> [UInt8] {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, a); PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        for id in 1...30 { try database.executeUpdate("INSERT INTO t VALUES (\(id), hex(randomblob(500)))") }
        try directory.keep("db", "db-wal", of: database)
        return try [UInt8](directory.bytes("db-wal"))
    }

    /// The same log, as a machine of the other byte order would write it.
    private func bigEndian(_ log: [UInt8]) -> [UInt8] {
        var log = log
        log[3] = 0x83
        var sum = LogChecksum(isBigEndian: true)
        sum.add(log[..<24])
        log.replaceSubrange(24..<32, with: sum.bytes)
        for start in stride(from: 32, to: log.count, by: SalvageTests.frameSize) {
            sum.add(log[start..<(start + 8)])
            sum.add(log[(start + 24)..<(start + SalvageTests.frameSize)])
            log.replaceSubrange((start + 16)..<(start + 24), with: sum.bytes)
        }
        return log
    }

    /// Bytes of a log that are changed: zeros, or another bit in each.
    struct Damage: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let ranges: [Range<Int>]
        let clears: Bool
        /// How many of the 30 rows may be lost: a page has at most four.
        let losses: Int
    }

    private static func start(ofFrame index: Int) -> Int { 32 + index * frameSize }

    private static let damages: [Damage] = [
        Damage(testDescription: "no header", ranges: [0..<32], clears: true, losses: 0),
        Damage(testDescription: "a header of other bits", ranges: [0..<32], clears: false, losses: 0),
        Damage(testDescription: "another byte order", ranges: [3..<4], clears: false, losses: 0),
        Damage(testDescription: "a block", ranges: [40960..<45056], clears: true, losses: 4),
        Damage(
            testDescription: "the sector of a frame's header",
            ranges: [start(ofFrame: 10) / 512 * 512..<start(ofFrame: 10) / 512 * 512 + 512],
            clears: true,
            losses: 4
        ),
        Damage(
            testDescription: "salts of a frame",
            ranges: [start(ofFrame: 10) + 9..<start(ofFrame: 10) + 10],
            clears: false,
            losses: 0
        ),
        Damage(
            testDescription: "a number of pages",
            ranges: [start(ofFrame: 10) + 7..<start(ofFrame: 10) + 8],
            clears: true,
            losses: 0
        ),
        Damage(
            testDescription: "a number of pages, and the next page",
            ranges: [
                start(ofFrame: 10) + 7..<start(ofFrame: 10) + 8, start(ofFrame: 11) + 1000..<start(ofFrame: 11) + 1001,
            ],
            clears: false,
            losses: 4
        ),
        Damage(
            testDescription: "a checksum and its page",
            ranges: [start(ofFrame: 10) + 16..<start(ofFrame: 10) + 116],
            clears: true,
            losses: 4
        ),
        Damage(
            testDescription: "two checksums",
            ranges: [10, 11].map { start(ofFrame: $0) + 17..<start(ofFrame: $0) + 18 },
            clears: false,
            losses: 0
        ),
        Damage(
            testDescription: "a checksum, and the next page",
            ranges: [
                start(ofFrame: 10) + 18..<start(ofFrame: 10) + 19,
                start(ofFrame: 11) + 1000..<start(ofFrame: 11) + 1001,
            ],
            clears: false,
            losses: 4
        ),
        Damage(
            testDescription: "salts and checksum",
            ranges: [start(ofFrame: 10) + 8..<start(ofFrame: 10) + 24],
            clears: false,
            losses: 0
        ),
    ]

    @Test(arguments: damages, [false, true]) func aLog(damage: Damage, isBigEndian: Bool) throws {
        var log = try makeLog()
        if isBigEndian { log = bigEndian(log) }
        for index in damage.ranges.joined() { log[index] = damage.clears ? 0 : log[index] ^ 1 }
        try Data(log).write(to: URL(fileURLWithPath: directory.file("db-wal")))
        let database = try recovered()
        defer { database.close() }
        let rows = try database.integers("SELECT id FROM t ORDER BY id")
        #expect(rows.count >= 30 - damage.losses && Set(rows).isSubset(of: 1...30), "\(rows)")
    }

    /// Behind the frames of a log that began anew stand older ones, which continue each other's checksums.
    @Test(arguments: [true, false]) func aLogThatBeganAnew(hasOlderDamage: Bool) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v, filling);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8)
                INSERT INTO t SELECT i, 0, zeroblob(3000) FROM n; PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        for value in [1, 2, 3] {
            for id in 1...8 { try database.executeUpdate("UPDATE t SET v = \(value) WHERE id = \(id)") }
        }
        _ = try database.checkpoint(.restart)
        for id in 1...8 { try database.executeUpdate("UPDATE t SET v = 5 WHERE id = \(id)") }
        try directory.keep("db", "db-wal", of: database)
        var log = try [UInt8](directory.bytes("db-wal"))
        let salts = log[16..<24]
        let starts = Array(stride(from: 32, to: log.count, by: SalvageTests.frameSize))
        let older = try #require(starts.first { log[($0 + 8)..<($0 + 16)] != salts })
        try #require(older == SalvageTests.start(ofFrame: 8) && starts.count == 24)
        log[SalvageTests.start(ofFrame: 2) + 18] ^= 1
        if hasOlderDamage { log[older + 1000] ^= 1 }
        try directory.write("db-wal", log)
        let saved = try recovered()
        defer { saved.close() }
        #expect(try saved.integers("SELECT v FROM t") == Array(repeating: 5, count: 8))
    }

    /// Without codes nothing tells which frames are whole. But what the file has is not undone.
    @Test func aLogWithoutCodesThatIsInTheFile() throws {
        let settings = CipherSettings(usesHMAC: false)
        var log = try makeLogThatIsInTheFile(settings: settings)
        log[SalvageTests.start(ofFrame: 1) + 24 + 100] ^= 1
        try directory.write("db-wal", log)
        _ = try StoreRecovery(
            path: directory.file("db"),
            key: .testing(1),
            cipherSettings: settings,
            to: directory.file("new")
        ).run()
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let saved = Database(path: directory.file("new"), configuration: configuration)
        try saved.openVerified()
        defer { saved.close() }
        #expect(try saved.integers("SELECT balance FROM account ORDER BY id") == [10, 5])
        #expect(try saved.integers("SELECT sum FROM ledger") == [190])
    }

    // MARK: Journals

    /// Behind the records of a transaction stand those of an earlier one, with older pages.
    @Test func aJournalThatIsKept() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.execute(
            script: """
                PRAGMA journal_mode = PERSIST; CREATE TABLE t (id INTEGER PRIMARY KEY, state, filling);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
                INSERT INTO t SELECT i, 'first', hex(randomblob(1800)) FROM n;
                UPDATE t SET state = 'second';
                """
        )
        try database.spillChanges()
        try database.execute(script: "BEGIN; UPDATE t SET state = 'third' WHERE id <= 20")
        try directory.keep("db", "db-journal", of: database)
        var journal = try [UInt8](directory.bytes("db-journal"))
        // The first page; behind the parts of the transaction stands more.
        let count = journal[8..<12].reduce(0) { $0 << 8 | Int($1) }
        try #require((1..<20).contains(count) && journal.count > 512 + 55 * 4104)
        journal[512 + 2000] ^= 1
        try Data(journal).write(to: URL(fileURLWithPath: directory.file("db-journal")))
        let saved = try recovered()
        defer { saved.close() }
        #expect(try saved.integers("SELECT count(*) FROM t WHERE state = 'first'") == [0])
        #expect(try saved.integers("SELECT count(*) FROM t WHERE state = 'second'")[0] >= 58)
    }

    /// The header is no header any more, or the checksum of a record is wrong. But the transaction was cut off, and its records are
    /// there.
    @Test(arguments: [0, 512 + 2 * 4104 + 4100]) func aJournalWithoutAChecksum(place: Int) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.execute(
            script: """
                CREATE TABLE t (id INTEGER PRIMARY KEY, a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO t SELECT i, 'old ' || hex(randomblob(50)) FROM n;
                """
        )
        try database.spillChanges(pageCount: 10)
        try database.execute(script: "BEGIN; UPDATE t SET a = 'new ' || substr(a, 5)")
        try directory.keep("db", "db-journal", of: database)
        var journal = try [UInt8](directory.bytes("db-journal"))
        let count = journal[8..<12].reduce(0) { $0 << 8 | Int($1) }
        try #require(count > 3 && journal.count > 512 + 4 * 4104)
        journal[place] ^= 1
        try Data(journal).write(to: URL(fileURLWithPath: directory.file("db-journal")))
        let saved = try recovered()
        defer { saved.close() }
        #expect(try saved.integers("SELECT count(*) FROM t WHERE a LIKE 'old %'") == [400])
    }
}
