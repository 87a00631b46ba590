import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StoreDiagnosisTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func write(_ name: String, _ bytes: some Sequence<UInt8>) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: directory.file(name)))
    }

    private func finding(
        _ name: String = "db",
        key: Key? = nil,
        settings: CipherSettings = .init()
    ) throws -> StoreDiagnosis.Finding {
        try StoreDiagnosis.examine(path: directory.file(name), key: key, cipherSettings: settings).finding
    }

    private func openingError(_ key: Key?, settings: CipherSettings = .init()) throws -> DatabaseError {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        return try #require(#expect(throws: DatabaseError.self) { try database.openVerified() })
    }

    /// Every way of opening must leave the file as it is, and say the same.
    private func expect(
        _ expected: StoreDiagnosis.Finding,
        opening reason: DatabaseError.Reason,
        _ key: Key,
        settings: CipherSettings = .init(),
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let before = try directory.bytes("db")
        let names = directory.names
        #expect(try finding(key: key, settings: settings) == expected, sourceLocation: sourceLocation)
        let error = try openingError(key, settings: settings)
        #expect(error.reason == reason, "\(error)", sourceLocation: sourceLocation)
        #expect(error.message.contains("It was not changed."), sourceLocation: sourceLocation)
        #expect(try directory.bytes("db") == before, sourceLocation: sourceLocation)
        #expect(directory.names == names, sourceLocation: sourceLocation)
    }

    @Test(arguments: FixtureFormat.all, FixtureKey.allCases)
    func everyFormatIsRecognised(format: FixtureFormat, key: FixtureKey) throws {
        try format.make(directory.file("db"), key: key)
        let before = try directory.bytes("db")
        #expect(try finding(key: key.key(), settings: format.settings) == .opens)
        if !format.isAuthenticated { #expect(try finding(key: key.key()) == .wrongKey) }
        let diagnosis = try StoreDiagnosis.examine(
            path: directory.file("db"),
            key: key.key(),
            allowsUnauthenticated: !format.isAuthenticated
        )
        #expect(diagnosis.isAuthenticated == format.isAuthenticated)
        #expect(
            diagnosis.explanation.contains("the key is right")
                == (diagnosis.finding != .opens && format.isAuthenticated)
        )
        #expect(diagnosis.explanation.contains("is not authenticated") != format.isAuthenticated)
        let isCurrent = format.testDescription == "SQLCipher 4"
        // For a raw key the number of rounds makes no difference.
        let isSame = isCurrent || (format.testDescription == "few rounds" && key != .passphrase)
        let isOlder = FixtureFormat.olderFormats.contains { $0.testDescription == format.testDescription }
        #expect(diagnosis.finding == (isSame ? .opens : isOlder ? .olderFormat : .otherSettings))
        // The settings found are those that open it.
        var configuration = Configuration(key: try key.key())
        configuration.cipherSettings = try #require(diagnosis.cipherSettings)
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        #expect(try database.integers("SELECT count(*) FROM t") == [40])
        database.close()
        #expect(try directory.bytes("db") == before)
        #expect(try finding() == .encrypted)
        #expect(try finding(key: .testing(9)) == .wrongKey)
    }

    @Test(arguments: FixtureFormat.olderFormats.filter(\.isAuthenticated), FixtureKey.allCases)
    func openingNamesTheOlderFormat(format: FixtureFormat, key: FixtureKey) throws {
        try format.make(directory.file("db"), key: key)
        try expect(.olderFormat, opening: .olderFormat, key.key())
        #expect(try openingError(key.key()).message.contains("SQLCipher"))
    }

    /// The commands of the documentation make a store of SQLCipher 4 from it.
    @Test(arguments: FixtureFormat.prereleases, FixtureKey.allCases)
    func openingNamesThePrerelease(format: FixtureFormat, key: FixtureKey) throws {
        try format.make(directory.file("db"), key: key)
        try expect(.prereleaseFormat, opening: .olderFormat, key.key())
        let diagnosis = try StoreDiagnosis.examine(path: directory.file("db"), key: key.key())
        #expect(diagnosis.cipherSettings == nil && diagnosis.explanation.contains("sqlcipher_export"))
        #expect(try finding(key: .testing(9)) == .wrongKey)
        let migration = StoreMigration(path: directory.file("db"), key: try key.key())
        #expect(#expect(throws: DatabaseError.self) { try migration.run() }?.reason == .olderFormat)

        try StockShell.run(
            directory.file("db"),
            """
            \(key.pragma) \(format.pragmas)
            SELECT count(*) FROM sqlite_schema;
            PRAGMA cipher_hmac_salt_mask = "x'3a'";
            ATTACH '\(directory.file("new"))' AS new KEY \(key.pragma.dropFirst("PRAGMA key = ".count).dropLast());
            SELECT sqlcipher_export('new');
            """
        )
        let database = Database(path: directory.file("new"), configuration: Configuration(key: try key.key()))
        try database.openVerified()
        #expect(try database.integers("SELECT count(*) FROM t") == [40])
        #expect(try finding("new", key: key.key()) == .opens)
    }

    @Test(arguments: FixtureFormat.oddSettings.filter { $0.testDescription != "few rounds" && $0.isAuthenticated })
    func openingNamesOtherSettings(format: FixtureFormat) throws {
        try format.make(directory.file("db"), key: .raw)
        try expect(.otherSettings, opening: .otherSettings, .testing(0x5a))
        // What costs a derivation is left to an explicit examination, and the error says so.
        #expect(try openingError(.passphrase("wrong")).message.contains("sealdb info"))
    }

    /// A store of the current format has nothing to be converted to.
    @Test func openingOneOfTheUsualSettingsWithOthers() throws {
        try Database.testing(directory.file("db")).fill(rows: 300)
        var settings = CipherSettings()
        settings.pageSize = 8192
        try expect(.otherSettings, opening: .otherSettings, .testing(1), settings: settings)
        let message = try openingError(.testing(1), settings: settings).message
        #expect(message.contains("has the cipher settings of SQLCipher 4, not those given"))
        #expect(message.hasSuffix("Open it with these settings."))
    }

    /// Somebody without the key drops the authentication codes, puts each IV where a format without them has it, and
    /// exchanges pages.
    @Test func storeThatWasTurnedIntoOneWithoutAuthentication() throws {
        try Database.testing(directory.file("db")).fill(rows: 300)
        var bytes = try [UInt8](directory.bytes("db"))
        for start in stride(from: 0, to: bytes.count, by: 4096) {
            let iv = bytes[start + 4016..<start + 4032]
            bytes.replaceSubrange(start + 4080..<start + 4096, with: iv)
        }
        let (third, fourth) = (bytes[8192..<12288], bytes[12288..<16384])
        bytes.replaceSubrange(8192..<16384, with: fourth + third)
        try write("db", bytes)
        let key = try Key.testing(1)
        try expect(.wrongKey, opening: .wrongKey, key)
        let path = directory.file("db")
        let error = #expect(throws: DatabaseError.self) { try StoreMigration(path: path, key: key).run() }
        #expect(error?.reason == .wrongKey && error?.message.contains("without page authentication") == true)
        let diagnosis = try StoreDiagnosis.examine(path: path, key: key, allowsUnauthenticated: true)
        #expect(diagnosis.finding == .otherSettings && !diagnosis.isAuthenticated)
        #expect(diagnosis.explanation.contains("is not authenticated"))
        let report = try IntegrityReport.verify(path: path, key: key, cipherSettings: .init(usesHMAC: false))
        #expect(!report.isAuthenticated)
        #expect(try directory.bytes("db") == Data(bytes))
    }

    @Test func wrongKey() throws {
        try Database.testing(directory.file("db")).fill(rows: 30)
        try expect(.wrongKey, opening: .wrongKey, .testing(2))
        try expect(.wrongKey, opening: .wrongKey, .passphrase("p"))
    }

    @Test func plaintext() throws {
        let plain = Database(path: directory.file("db"))
        plain.open()
        try plain.fill(rows: 30)
        plain.close()
        try expect(.plaintext, opening: .plaintext, .testing(1))
        #expect(try finding() == .opens)
        try write("db", directory.bytes("db").dropLast(4096))
        #expect(try finding() == .truncated)
    }

    @Test func truncated() throws {
        try Database.testing(directory.file("db")).fill(rows: 300)
        let whole = try directory.bytes("db")
        for size in [whole.count - 1, whole.count - 4096, 4096, 5000] {
            try write("db", whole.prefix(size))
            try expect(.truncated, opening: .truncated, .testing(1))
        }
        // Less than one page proves nothing.
        try write("db", whole.prefix(2000))
        try expect(.wrongKey, opening: .wrongKey, .testing(1))
        try write("db", whole.prefix(100))
        try expect(.notADatabase, opening: .notADatabase, .testing(1))
    }

    @Test func damagedFirstPageIsNotAWrongKey() throws {
        try Database.testing(directory.file("db")).fill(rows: 300)
        var bytes = try directory.bytes("db")
        bytes[200] ^= 1
        try write("db", bytes)
        try expect(.damagedFirstPage, opening: .damaged, .testing(1))
        try expect(.wrongKey, opening: .wrongKey, .testing(2))
    }

    /// The salt in the first page is part of every page's key, so that nothing can be told any more without it.
    @Test func damagedSaltLooksLikeAWrongKey() throws {
        try Database.testing(directory.file("db")).fill(rows: 300)
        var bytes = try directory.bytes("db")
        bytes[3] ^= 1
        try write("db", bytes)
        try expect(.wrongKey, opening: .wrongKey, .testing(1))
    }

    @Test func otherDamagedPagesAreNamed() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 300)
        // A schema of several pages, of which opening reads all.
        let name = String(repeating: "c", count: 400)
        for number in 0..<60 { try database.executeUpdate("CREATE TABLE t\(raw: number) (\(raw: name))", values: nil) }
        database.close()
        var bytes = try directory.bytes("db")
        let damaged = try (2...bytes.count / 4096).first { number in
            var trial = bytes
            trial[(number - 1) * 4096 + 100] ^= 1
            try write("db", trial)
            return (try? Database.testing(directory.file("db"))) == nil
        }
        let number = try #require(damaged, "no page but the first matters to opening")
        bytes[(number - 1) * 4096 + 100] ^= 1
        try write("db", bytes)
        try expect(.damaged, opening: .damaged, .testing(1))
        #expect(try openingError(.testing(1)).message.contains("page \(number) is"))
        let diagnosis = try StoreDiagnosis.examine(path: directory.file("db"), key: .testing(1))
        #expect(diagnosis.damagedPages == [Int64(number)])
    }

    @Test func notADatabase() throws {
        try write("db", Data("just some text".utf8))
        try expect(.notADatabase, opening: .notADatabase, .testing(1))
        try write("db", (0..<8192).map { UInt8($0 % 64 + 48) })
        try expect(.notADatabase, opening: .notADatabase, .testing(1))
        #expect(try finding() == .notADatabase)
        // Of random bytes nobody can tell.
        try write("db", (0..<8192).map { _ in UInt8.random(in: 0...255) })
        try expect(.wrongKey, opening: .wrongKey, .testing(1))
        let diagnosis = try StoreDiagnosis.examine(path: directory.file("db"), key: nil)
        #expect(diagnosis.finding == .encrypted)
        #expect(diagnosis.possiblePageSizes == [512, 1024, 2048, 4096, 8192])
    }

    /// Whatever it begins with, and whatever is beside it.
    @Test func whatIsShorterThanAPage() throws {
        let magic = Array("SQLite format 3\0".utf8)
        for bytes in [magic + [UInt8](repeating: 0x55, count: 300), (0..<300).map { UInt8($0 * 167 % 256) }] {
            for log in [[], [1]] as [[UInt8]] {
                try write("db", bytes)
                try write("db-wal", log)
                #expect(try finding() == .notADatabase)
                #expect(try finding(key: .testing(1)) == .notADatabase)
            }
        }
    }

    /// As SQLite's own: a file that is no database for this key, or one that is damaged.
    @Test func theCodeOfTheError() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 300)
        database.close()
        let whole = try directory.bytes("db")
        func code(key: UInt8 = 1) throws -> Int32 {
            try StoreDiagnosis.examine(path: directory.file("db"), key: .testing(key)).error.code
        }
        #expect(try code(key: 2) == SQLITE_NOTADB)
        try write("db", whole.dropLast(4096))
        #expect(try finding(key: .testing(1)) == .truncated)
        #expect(try code() == SQLITE_CORRUPT)
        var damaged = whole
        damaged[5000] ^= 1
        try write("db", damaged)
        #expect(try finding(key: .testing(1)) == .damaged)
        #expect(try code() == SQLITE_CORRUPT)
        damaged[200] ^= 1
        try write("db", damaged)
        #expect(try finding(key: .testing(1)) == .damagedFirstPage)
        #expect(try code() == SQLITE_NOTADB)
    }

    @Test func otherKindsOfFiles() throws {
        try write("db", [])
        #expect(try finding(key: .testing(1)) == .emptyFile)
        #expect(try StoreDiagnosis.examine(path: directory.path, key: nil).finding == .directory)
        #expect(try StoreDiagnosis.examine(path: "/dev/null", key: nil).finding == .notRegularFile)
        let error = #expect(throws: DatabaseError.self) { try finding("absent") }
        #expect(error?.reason == .noSuchFile)
    }

    /// The log of a store must not be moved into it by somebody with the wrong key.
    @Test func wrongKeyLeavesTheLogAlone() throws {
        let owner = try Database.testing(directory.file("owned"), journalMode: .wal)
        try owner.fill(rows: 30)
        for suffix in ["", "-wal"] { try write("db\(suffix)", directory.bytes("owned\(suffix)")) }
        let before = try (directory.bytes("db"), directory.bytes("db-wal"))
        #expect(try openingError(.testing(2)).reason == .wrongKey)
        #expect(try openingError(.testing(2)).message.contains("-wal"))
        #expect(try directory.bytes("db") == before.0)
        #expect(try directory.bytes("db-wal") == before.1)
        let right = try Database.testing(directory.file("db"))
        #expect(try right.integers("SELECT count(*) FROM t") == [30])
        right.close()
        owner.close()
        #expect(directory.names == ["db", "owned"])
    }

    /// A hot journal is rolled back for its owner, and left alone for everybody else.
    @Test(arguments: [false, true])
    func wrongKeyLeavesAHotJournalAlone(firstPageIsTorn: Bool) throws {
        let owner = try Database.testing(directory.file("owned"))
        try owner.fill(rows: 2000)
        #expect(owner.beginImmediateTransaction())
        try owner.spillChanges()
        try owner.executeUpdate("UPDATE t SET body = body || 'x'", values: nil)
        for suffix in ["", "-journal"] { try write("db\(suffix)", directory.bytes("owned\(suffix)")) }
        #expect(owner.rollback())
        owner.close()
        if firstPageIsTorn {
            var bytes = try directory.bytes("db")
            bytes.replaceSubrange(2048..<4096, with: Data(count: 2048))
            try write("db", bytes)
        }
        let before = try (directory.bytes("db"), directory.bytes("db-journal"))
        let error = try openingError(.testing(2))
        #expect(error.reason == .wrongKey)
        #expect(error.message.contains("-journal"))
        #expect(try directory.bytes("db") == before.0)
        #expect(try directory.bytes("db-journal") == before.1)
        let right = try Database.testing(directory.file("db"))
        #expect(try right.integers("SELECT count(*) FROM t WHERE body LIKE '%x'") == [0])
        #expect(try right.integers("SELECT count(*) FROM t") == [2000])
        right.close()
        #expect(!directory.names.contains("db-journal"))
    }

    /// The first page was being written when the power failed; the log has it whole.
    @Test(arguments: [Configuration.JournalMode.wal, .delete])
    func tornFirstPageThatALogHolds(mode: Configuration.JournalMode) throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = .sqlCipher3
        configuration.journalMode = mode
        let owner = Database(path: directory.file("owned"), configuration: configuration)
        try owner.openVerified()
        try owner.fill(rows: 300)
        #expect(owner.executeStatements("PRAGMA wal_checkpoint(TRUNCATE)"))
        try owner.spillChanges()
        #expect(owner.beginImmediateTransaction())
        try owner.executeUpdate("PRAGMA user_version = 5", values: nil)
        try owner.executeUpdate("UPDATE t SET body = body || 'x'", values: nil)
        if mode == .wal { #expect(owner.commit()) }
        let log = mode == .wal ? "-wal" : "-journal"
        for suffix in ["", log] { try write("db\(suffix)", directory.bytes("owned\(suffix)")) }
        if mode == .delete { #expect(owner.rollback()) }
        owner.close()
        var bytes = try directory.bytes("db")
        bytes.replaceSubrange(512..<1024, with: Data(count: 512))
        try write("db", bytes)
        #expect(try finding(key: .testing(1)) == .olderFormat)
        #expect(try finding(key: .testing(2)) == .wrongKey)
        try StoreMigration(path: directory.file("db"), key: try .testing(1)).run()
        let migrated = try Database.testing(directory.file("db"))
        #expect(try migrated.integers("SELECT count(*) FROM t") == [300])
        migrated.close()
    }

    /// Its pages, its size and its log are not read at one moment.
    @Test func aStoreThatGrowsAndShrinksMeanwhileIsSound() throws {
        let (store, key) = (directory.file("db"), try Key.testing(1))
        var configuration = Configuration(key: key)
        configuration.journalMode = .wal
        let service = try DatabaseQueue(path: store, configuration: configuration)
        try service.writeWithoutTransaction { db in
            #expect(db.executeStatements("PRAGMA auto_vacuum = FULL; VACUUM; CREATE TABLE t (a)"))
        }
        let stop = StopFlag()
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            while !stop.isSet {
                service.inDatabase { db in
                    db.executeStatements("INSERT INTO t VALUES (zeroblob(40000)); PRAGMA wal_checkpoint(TRUNCATE)")
                    db.executeStatements("DELETE FROM t; PRAGMA wal_checkpoint(TRUNCATE)")
                }
            }
            ended.signal()
        }
        for _ in 1...3000 {
            do throws(DatabaseError) {
                let diagnosis = try StoreDiagnosis.examine(path: store, key: key)
                #expect(diagnosis.finding == .opens, "\(diagnosis.explanation)")
            } catch {
                // That is so.
                #expect(error.reason == .busy, "\(error)")
            }
        }
        stop.set()
        ended.wait()
    }

    /// A raw key is used as it is.
    @Test func iterationsDoNotCountForARawKey() throws {
        try Database.testing(directory.file("db")).close()
        var settings = CipherSettings()
        settings.kdfIterations = 1000
        #expect(try finding(key: .testing(1), settings: settings) == .opens)
    }

    @Test func whatIsNoRegularFile() throws {
        try #require(mkfifo(directory.file("pipe"), 0o600) == 0)
        #expect(try StoreInfo.outside(path: directory.file("pipe")).kind == .notADatabase)
        #expect(try StoreInfo.outside(path: directory.path).kind == .directory)
    }

    /// A file that may be encrypted has whole pages, of at least 512 bytes.
    @Test func sizesOfWhatMayBeEncrypted() throws {
        for (size, kind) in [
            (0, .emptyFile), (1, .emptyFile), (2, .notADatabase), (511, .notADatabase), (512, .encrypted),
            (513, .notADatabase), (1024, .encrypted), (1535, .notADatabase),
        ] as [(Int, StoreInfo.Kind)] {
            try write("db", [UInt8](repeating: 0x55, count: size))
            let info = try StoreInfo.outside(path: directory.file("db"))
            // A single byte counts as none, as it does for SQLite.
            #expect(info.kind == kind && info.fileSize == (size == 1 ? 0 : Int64(size)), "\(size): \(info)")
            #expect(info.salt == (kind == .encrypted ? String(repeating: "55", count: 16) : nil), "\(size)")
        }
    }

    /// A journal that is kept when its transaction is over holds nothing that the file lacks.
    @Test(arguments: [Configuration.JournalMode.persist, .truncate])
    func aKeptJournalHidesNothing(mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 300)
        database.close()
        try #require(directory.names.contains("db-journal"))
        let whole = try directory.bytes("db")
        var damaged = whole
        damaged[2 * 4096 + 100] ^= 1
        try write("db", damaged)
        let diagnosis = try StoreDiagnosis.examine(path: directory.file("db"), key: .testing(1))
        #expect(diagnosis.finding == .damaged && diagnosis.damagedPages == [3], "\(diagnosis.explanation)")
        try write("db", whole.dropLast(100))
        try expect(.truncated, opening: .truncated, .testing(1))
    }

    /// As many are named as fit into a line, and it is told if there are more.
    @Test(arguments: [10, 11]) func manyDamagedPages(count: Int) throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 600)
        database.close()
        var bytes = try directory.bytes("db")
        for page in 2..<2 + count { bytes[(page - 1) * 4096 + 100] ^= 1 }
        try write("db", bytes)
        let diagnosis = try StoreDiagnosis.examine(path: directory.file("db"), key: .testing(1))
        #expect(diagnosis.finding == .damaged && diagnosis.damagedPages == (2..<2 + count).map { Int64($0) })
        let words = "pages 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\(count > 10 ? " and others" : "") are not as written"
        #expect(diagnosis.explanation.contains(words), "\(diagnosis.explanation)")
    }
}
