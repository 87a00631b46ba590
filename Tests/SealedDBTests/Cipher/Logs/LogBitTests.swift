import Foundation
import Testing

@testable import SealedDB

/// Single bits of a log that were changed. The two words of a checksum are sums of 32 bits, which lose what is carried out of
/// them: a changed bit may leave one of them as it was.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct LogBitTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func open(_ settings: CipherSettings) throws -> Database {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        configuration.journalMode = .wal
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        return database
    }

    private func put(_ file: Data, _ log: [UInt8]) throws {
        for name in ["db", "db-wal", "db-shm", "new"] { unlink(directory.file(name)) }
        try directory.write("db", file)
        try directory.write("db-wal", Data(log))
    }

    /// The last transaction has written the first page, and the file has it: SQLite would put back an older one. The header of
    /// the store is in clear, so that versions of this page are alike in part.
    @Test(arguments: [1024, 4096]) func theLastPageWithAHeaderInClear(pageSize: Int) throws {
        let database = try open(CipherSettings(pageSize: pageSize, plaintextHeaderSize: 32, salt: Array(1...16)))
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); PRAGMA wal_checkpoint(TRUNCATE);
                PRAGMA user_version = 1; PRAGMA user_version = 2; PRAGMA user_version = 3;
                """
        )
        _ = try database.checkpoint(.passive)
        try directory.keep("db", "db-wal", of: database)
        let (file, log) = (try directory.bytes("db"), try [UInt8](directory.bytes("db-wal")))
        try #require(log.count == 32 + 3 * (24 + pageSize))
        // Behind a changed word, the number of words decides which of the two sums keeps which bits.
        for word in [16, 200] + (pageSize / 4 - 40..<pageSize / 4 - 22) {
            for bit in [0, 13, 29, 30, 31] {
                var damaged = log
                damaged[log.count - pageSize + 4 * word + bit / 8] ^= 1 << (bit % 8)
                try put(file, damaged)
                let error = #expect(throws: DatabaseError.self, "word \(word), bit \(bit)") {
                    try LogDamage.requireNone(ofStore: directory.file("db"))
                }
                #expect(error?.message.contains("the file has pages of it") == true, "word \(word), bit \(bit)")
            }
        }
    }

    /// A checksum is changed, and not the numbers of its frame.
    @Test(arguments: [1024, 2048, 4096, 8192], [false, true])
    func theChecksumOfAFrame(pageSize: Int, isInFile: Bool) throws {
        let settings = CipherSettings(pageSize: pageSize)
        let database = try open(settings)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v, body);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
                INSERT INTO t SELECT i, 0, randomblob(\(pageSize * 6 / 10)) FROM n;
                PRAGMA wal_checkpoint(TRUNCATE);
                UPDATE t SET v = 1 WHERE id = 1; UPDATE t SET v = 2 WHERE id = 2; UPDATE t SET v = 3 WHERE id = 3;
                UPDATE t SET v = 4 WHERE id = 4;
                """
        )
        var expected = [1, 2, 3, 4]
        if isInFile {
            try database.executeUpdate("UPDATE t SET v = v + 10")
            _ = try database.checkpoint(.passive)
            expected = [11, 12, 13, 14]
        }
        try directory.keep("db", "db-wal", of: database)
        let (file, log) = (try directory.bytes("db"), try [UInt8](directory.bytes("db-wal")))
        for place in [16, 19, 20, 23] {
            for mask in [0x80, 0x40, 0x01] as [UInt8] {
                var damaged = log
                damaged[32 + 24 + pageSize + place] ^= mask
                try put(file, damaged)
                #expect(try recovered(settings) == expected, "byte \(place), mask \(mask)")
            }
        }
    }

    /// No code covers the salt or the header in clear of the first page, nor what SQLCipher 3 reserves and does not use.
    @Test(arguments: [false, true])
    func whatNoCodeCovers(isInFile: Bool) throws {
        for (settings, places) in [
            (CipherSettings(), [0, 3, 15]),
            (CipherSettings(plaintextHeaderSize: 32, salt: Array(1...16)), [0, 17, 27, 31]),
            (CipherSettings(compatibility: .sqlCipher3, pageSize: 4096), [2, 4085, 4095]),
        ] {
            try put(Data(), [])
            let database = try open(settings)
            try database.execute(
                script: """
                    PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0);
                    PRAGMA wal_checkpoint(TRUNCATE);
                    UPDATE t SET v = 1; CREATE TABLE a (x); INSERT INTO a VALUES (1); UPDATE t SET v = 2; UPDATE t SET v = 3;
                    """
            )
            if isInFile { _ = try database.checkpoint(.passive) }
            try directory.keep("db", "db-wal", of: database)
            let (file, log) = (try directory.bytes("db"), try [UInt8](directory.bytes("db-wal")))
            try #require(log[32 + 24 + 4096 + 3] == 1)
            for place in places {
                var damaged = log
                damaged[32 + 24 + 4096 + 24 + place] ^= 1
                try put(file, damaged)
                #expect(throws: DatabaseError.self, "byte \(place)") {
                    try LogDamage.requireNone(ofStore: directory.file("db"))
                }
                #expect(try recovered(settings) == [3], "byte \(place)")
            }
        }
    }

    /// The log has page counts of when the database was larger than the file is now.
    @Test(arguments: ["PRAGMA user_version = 1", "VACUUM"]) func aStoreThatHasBecomeSmaller(shrinking: String) throws {
        let database = try open(CipherSettings())
        try database.execute(
            script: """
                PRAGMA auto_vacuum = FULL; VACUUM; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v, body);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
                INSERT INTO t SELECT i, 0, randomblob(2500) FROM n;
                CREATE TABLE large (body);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
                INSERT INTO large SELECT randomblob(2500) FROM n;
                PRAGMA wal_checkpoint(TRUNCATE);
                UPDATE t SET v = 1 WHERE id = 1; UPDATE t SET v = 2 WHERE id = 2; UPDATE t SET v = 3 WHERE id = 3;
                DELETE FROM large; \(raw: shrinking); UPDATE t SET v = v + 10;
                """
        )
        _ = try database.checkpoint(.passive)
        try directory.keep("db", "db-wal", of: database)
        let (file, log) = (try directory.bytes("db"), try [UInt8](directory.bytes("db-wal")))
        try #require(file.count < log.count && file.count < 20 * 4096)
        for frame in 0..<3 {
            for place in [4, 6, 7, 16, 23] {
                var damaged = log
                damaged[32 + frame * (24 + 4096) + place] ^= 1
                try put(file, damaged)
                #expect(try recovered(CipherSettings()) == [11, 12, 13, 10], "frame \(frame), byte \(place)")
            }
        }
    }

    private func recovered(_ settings: CipherSettings) throws -> [Int?] {
        let new = directory.file("new")
        let key = try Key.testing(1)
        _ = try StoreRecovery(path: directory.file("db"), key: key, cipherSettings: settings, to: new).run()
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        let saved = Database(path: new, configuration: configuration)
        try saved.openVerified()
        defer { saved.close() }
        return try saved.integers("SELECT v FROM t ORDER BY id")
    }

    /// SQLite counts salts up, by one for each log, or draws new ones.
    @Test func theAgeOfSalts() {
        func header(_ salt: [UInt8]) -> LogFrameHeader {
            LogFrameHeader(([0, 0, 0, 1, 0, 0, 0, 0] + salt + [UInt8](repeating: 7, count: 12))[...])
        }
        let salts: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        for (first, isNewer) in [
            ([1, 2, 3, 4], false), ([1, 2, 3, 5], true), ([1, 2, 3, 20], true), ([1, 2, 3, 21], false),
            ([1, 3, 3, 3], false), ([1, 2, 3, 3], false),
        ] as [([UInt8], Bool)] {
            #expect(header(first).mayBeNewer(thanLogOf: salts[...]) == isNewer, "\(first)")
        }
        for (first, isOlder) in [
            ([1, 2, 3, 4], false), ([1, 2, 3, 3], true), ([1, 1, 3, 5], true), ([1, 1, 3, 4], false),
            ([1, 2, 3, 5], false),
        ] as [([UInt8], Bool)] {
            #expect(header(first).mayBeOlder(thanLogOf: salts[...]) == isOlder, "\(first)")
        }
    }
}
