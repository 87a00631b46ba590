import Foundation
import Testing

@testable import SealedDB

/// SQLCipher reports a page that somebody changed with the next one that it reads. Where there is none, the call must
/// fail all the same.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct DamagedPageTests {
    private let directory: TemporaryDirectory
    private static let pageSize = 4096

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Without a key there are no codes, so nobody can list the pages.
    @Test func aDamagedPlaintextFile() throws {
        let database = Database(path: directory.file("plain"))
        #expect(database.open())
        try database.fill(rows: 300)
        database.close()
        var bytes = try directory.bytes("plain")
        bytes.resetBytes(in: 4096..<bytes.count)
        try directory.write("plain", bytes)
        #expect(database.open())
        let error = #expect(throws: DatabaseError.self) { try database.integers("SELECT count(*) FROM t") }
        #expect(error?.reason == .damaged && error?.sql != nil)
        #expect(error?.message.contains("sealdb verify") == false, "\(error as Any)")
    }

    /// SQLite calls that no database. Whoever has opened it with its key is told what it is, and nothing is written over it.
    @Test(arguments: [true, false]) func aFirstPageThatChangesMeanwhile(isGivenAnotherKey: Bool) throws {
        let database = try open()
        try database.fill(rows: 20)
        let other = try open()
        // So that the first one reads the first page anew.
        try other.fill(rows: 1)
        other.close()
        if isGivenAnotherKey {
            let (old, new) = (String(repeating: "01", count: 32), String(repeating: "02", count: 32))
            let sql = "PRAGMA key = \"x'\(old)'\"; PRAGMA rekey = \"x'\(new)'\";"
            _ = try StockShell.run(directory.file("db"), sql)
        } else {
            let byte = try directory.bytes("db")[300]
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: directory.file("db")))
            try file.seek(toOffset: 300)
            try file.write(contentsOf: Data([byte ^ 1]))
            try file.close()
        }
        let bytes = try directory.bytes("db")
        for sql in ["SELECT count(*) FROM t", "INSERT INTO t (body) VALUES ('x')", "PRAGMA user_version = 7"] {
            let error = #expect(throws: DatabaseError.self) { try database.executeQuery(SQL(raw: sql)).all(Int?.self) }
            #expect(error?.reason == .damaged && error?.code == SQLITE_NOTADB, "\(sql): \(error as Any)")
            #expect(error?.message.contains("`sealdb verify`") == true && error?.sql == sql, "\(sql): \(error as Any)")
        }
        database.close()
        #expect(try directory.bytes("db") == bytes)
        guard isGivenAnotherKey else { return }
        var configuration = Configuration(key: try .testing(2))
        configuration.createsFile = false
        let opened = Database(path: directory.file("db"), configuration: configuration)
        try opened.openVerified()
        #expect(try opened.integers("SELECT count(*) FROM t") == [21])
    }

    /// A store of another key that SQL attaches is not the one that is open.
    @Test func aFirstPageOfAStoreThatIsNotAttached() throws {
        try Database.testing(directory.file("other"), key: 2).fill(rows: 1)
        let database = try open()
        try database.fill(rows: 20)
        for _ in 0..<2 {
            let attach = "ATTACH '\(directory.file("other"))' AS other"
            let error = #expect(throws: DatabaseError.self) { try database.run(attach) }
            #expect(error?.code == SQLITE_NOTADB && error?.reason == .sqlite, "\(error as Any)")
            #expect(try database.integers("SELECT count(*) FROM t") == [20])
        }
    }

    enum Damage: CaseIterable, Sendable {
        case changed, zeroed

        func apply(to page: inout Data) {
            switch self {
            case .changed: page[page.startIndex + 100] ^= 1
            case .zeroed: page.resetBytes(in: page.indices)
            }
        }
    }

    private func configuration(_ settings: CipherSettings = .init()) throws -> Configuration {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        return configuration
    }

    private func open(_ settings: CipherSettings = .init()) throws -> Database {
        let database = Database(path: directory.file("db"), configuration: try configuration(settings))
        try database.openVerified()
        return database
    }

    /// A long value whose last page is the last of the file, which nothing else needs.
    private func makeStore(
        _ damage: Damage,
        vacuum: Int = 0,
        settings: CipherSettings = .init(),
        before: (Database) throws -> Void = { _ in }
    ) throws {
        let database = try open(settings)
        #expect(
            database.executeStatements(
                """
                PRAGMA auto_vacuum = \(raw: vacuum); VACUUM;
                CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB); CREATE TABLE u (body BLOB);
                """
            )
        )
        try before(database)
        let size = settings.parameters.pageSize
        try database.executeUpdate("INSERT INTO t VALUES (1, ?)", values: [Data(repeating: 7, count: 10 * size)])
        database.close()
        try change { file in
            var page = file.suffix(size)
            damage.apply(to: &page)
            file.replaceSubrange(page.indices, with: page)
        }
    }

    private func change(_ name: String = "db", _ body: (inout Data) throws -> Void) throws {
        var bytes = try directory.bytes(name)
        try body(&bytes)
        try bytes.write(to: URL(fileURLWithPath: directory.file(name)))
    }

    private func expectDamage(_ body: () throws -> Void, _ location: SourceLocation = #_sourceLocation) {
        let error = #expect(throws: DatabaseError.self, sourceLocation: location) { try body() }
        #expect(error?.reason == .damaged, "\(String(describing: error))", sourceLocation: location)
        #expect(error?.code == 11, sourceLocation: location)
    }

    @Test func theEngineCanTell() {
        #expect(EngineInfo.current().noticesDamagedPages, "\(EngineInfo.current().damagedPagesDetail ?? "")")
    }

    @Test func theErrorSaysWhatToDo() throws {
        try makeStore(.changed)
        let database = try open()
        let error = #expect(throws: DatabaseError.self) {
            _ = try database.executeQuery("SELECT body FROM t").scalar(Data.self)
        }
        #expect(error?.message.contains("`sealdb verify` lists the pages") == true, "\(error as Any)")
    }

    /// The connection has read zeros, and may keep them: the next block gets another one.
    @Test func aQueueOpensAnotherConnection() throws {
        try makeStore(.changed)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration())
        expectDamage { _ = try queue.read { db in try db.executeQuery("SELECT body FROM t").scalar(Data.self) } }
        #expect(!queue.writer.isOpen)
        #expect(try queue.read { db in try db.integers("SELECT count(*) FROM u") } == [0])
        #expect(queue.writer.isOpen)
    }

    private static let forms: [CipherSettings] = [
        .init(), .init(pageSize: 1024, hmacAlgorithm: .sha1), .init(pageSize: 65536, hmacAlgorithm: .sha256),
        .sqlCipher3, .sqlCipher2,
    ]

    @Test(arguments: Damage.allCases, forms)
    func everyFormOfPage(damage: Damage, settings: CipherSettings) throws {
        for vacuum in 0...2 {
            try? FileManager.default.removeItem(atPath: directory.file("db"))
            try makeStore(damage, vacuum: vacuum, settings: settings)
            let database = try open(settings)
            expectDamage { _ = try database.executeQuery("SELECT body FROM t").scalar(Data.self) }
            database.close()
        }
    }

    /// Also the second time, when the page could have been kept.
    @Test(arguments: Damage.allCases, [0, 1])
    func everyKindOfCall(damage: Damage, vacuum: Int) throws {
        try makeStore(damage, vacuum: vacuum)
        let database = try open()
        for _ in 0..<2 {
            expectDamage { _ = try database.executeQuery("SELECT body FROM t").scalar(Data.self) }
            expectDamage {
                let rows = try database.executeQuery("SELECT body FROM t", values: nil)
                while try rows.nextWithError() {}
            }
            expectDamage { try database.executeUpdate("INSERT INTO u SELECT body FROM t", values: nil) }
            expectDamage {
                let blob = try database.openBlob(table: "t", column: "body", rowID: 1)
                var bytes = Data(repeating: 9, count: 5000)
                do {
                    try bytes.withUnsafeMutableBytes { try blob.read(at: blob.count - 5000, into: $0) }
                } catch {
                    #expect(bytes == Data(count: 5000))
                    throw error
                }
            }
            expectDamage { _ = try database.plaintextSerialized() }
            for (other, pages) in [(nil, -1), (nil, 1), ("b", -1), ("b", 5), ("c", 1), ("c", 100)] as [(String?, Int)] {
                let other = try Database.testing(other.map(directory.file), key: 2)
                if other.databasePath == directory.file("c") {
                    #expect(other.executeStatements("PRAGMA journal_mode = WAL"))
                }
                #expect(other.executeStatements("CREATE TABLE IF NOT EXISTS mine (a); INSERT INTO mine VALUES (1)"))
                let before = try other.integers("SELECT count(*) FROM mine")
                expectDamage { try database.backup(to: other, pagesPerStep: pages) }
                #expect(try other.integers("SELECT count(*) FROM mine") == before)
                #expect(other.executeStatements("INSERT INTO mine VALUES (1)"))
                #expect(try other.executeQuery("PRAGMA integrity_check").scalar(String.self) == "ok")
            }
        }
        // Nothing was kept of what was made from zeros.
        let whole = try reopenedIfNeeded(database)
        #expect(try whole.integers("SELECT count(*) FROM u") == [0])
        #expect(try whole.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 1)
    }

    /// The same connection, or another one where SQLCipher gives out zeros for every page after a damaged one.
    private func reopenedIfNeeded(_ database: Database) throws -> Database {
        guard PageWatch.failuresStick else { return database }
        expectDamage { _ = try database.executeQuery("SELECT count(*) FROM t").scalar(Int.self) }
        #expect(database.close())
        return try open()
    }

    @Test func theEngineTellsWhetherFailuresStick() throws {
        let numbers = try #require(EngineInfo.current().cipherVersion).split { $0 == " " || $0 == "." }
        let minor = try #require(Int(numbers[1]))
        if minor <= 6 { #expect(!PageWatch.failuresStick) }
        if minor >= 19 { #expect(PageWatch.failuresStick) }
    }

    /// Connections at the address of one that had read a damaged page, and the same one with another file.
    @Test func aNewConnectionHasNoFailures() throws {
        try makeStore(.changed)
        for _ in 0..<20 {
            let database = try open()
            expectDamage { _ = try database.executeQuery("SELECT body FROM t").scalar(Data.self) }
            #expect(database.close())
            let other = try Database.testing(nil)
            #expect(try other.integers("SELECT 1") == [1])
            other.close()
        }
    }

    /// What was read until the damage is found is given back, which the leak sanitizer sees.
    @Test func aFailedImageIsGivenBack() throws {
        try makeStore(.changed)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        let connection = try #require(database.connection)
        let error = #expect(throws: DatabaseError.self) { try connection.plaintextImage() }
        #expect(error?.reason == .damaged)
    }

    /// SQLCipher would write zeros under the new key.
    @Test(arguments: Damage.allCases, [0, 1])
    func rekeyedInPlace(damage: Damage, vacuum: Int) throws {
        try makeStore(damage, vacuum: vacuum)
        let before = try directory.bytes("db")
        let database = try open()
        #expect(!database.rekey("x'" + String(repeating: "03", count: 32) + "'"))
        let error = database.lastError() as? DatabaseError
        #expect(error?.reason == .damaged && error?.message.contains("unchanged under the old key") == true)
        database.close()
        #expect(try directory.bytes("db") == before)
        let again = try open()
        expectDamage { _ = try again.executeQuery("SELECT body FROM t").scalar(Data.self) }
    }

    /// Where a failed page makes all that follows on its connection fail, a BEGIN that was prepared before begins nothing: others
    /// are not locked out.
    @Test func whatFailsAfterItBeginsNoTransaction() throws {
        try makeStore(.changed)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: try configuration())
        defer { queue.close() }
        func add(_ value: Int) throws {
            try queue.write { try $0.executeUpdate("INSERT INTO u VALUES (?)", values: [value]) }
        }
        try add(1)
        try add(2)
        expectDamage {
            try queue.inDatabase { _ = try $0.executeQuery("SELECT body FROM t").scalar(Data.self) }
        }
        if PageWatch.failuresStick { expectDamage { try add(3) } } else { try add(3) }
        #expect(try queue.inDatabase { $0.isInTransaction } == false)
        let other = try open()
        defer { other.close() }
        try other.executeUpdate("INSERT INTO u VALUES (4)", values: nil)
        #expect(try other.integers("SELECT count(*) FROM u") == [PageWatch.failuresStick ? 3 : 4])
    }

    @Test(arguments: Damage.allCases, [0, 1])
    func withinATransaction(damage: Damage, vacuum: Int) throws {
        try makeStore(damage, vacuum: vacuum)
        let database = try open()
        #expect(database.beginTransaction())
        try database.executeUpdate("INSERT INTO u VALUES (1)", values: nil)
        expectDamage { try database.executeUpdate("INSERT INTO u SELECT body FROM t", values: nil) }
        #expect(throws: DatabaseError.self) { _ = try database.executeQuery("SELECT body FROM t").scalar(Data.self) }
        #expect(!database.commit())
        #expect(database.rollback() || !database.isInTransaction)
        #expect(try reopenedIfNeeded(database).integers("SELECT count(*) FROM u") == [0])
    }

    /// The commit moves the last page of the file, which nothing else has read, into a place that was freed. A statement that is
    /// left after its first row commits when it ends.
    @Test(arguments: Damage.allCases, ["DELETE", "WAL"])
    func movedByACommit(damage: Damage, mode: String) throws {
        try makeStore(damage, vacuum: 1) { database in
            try database.executeUpdate("INSERT INTO u VALUES (zeroblob(20000))", values: nil)
        }
        let database = try open()
        #expect(database.executeStatements("PRAGMA journal_mode = \(raw: mode)"))
        expectDamage {
            let rows = try database.executeQuery("DELETE FROM u RETURNING 1", values: nil)
            #expect(try rows.nextWithError())
            rows.close()
            if let error = database.lastError() as? DatabaseError, error.code != SQLITE_OK { throw error }
        }
        let whole = try reopenedIfNeeded(database)
        #expect(try whole.integers("SELECT count(*) FROM u") == [1])
        // What was made from zeros did not become authentic.
        expectDamage { _ = try whole.executeQuery("SELECT body FROM t").scalar(Data.self) }
    }

    @Test(arguments: Damage.allCases, [0, 1])
    func inTheLog(damage: Damage, vacuum: Int) throws {
        let writer = try open()
        #expect(writer.executeStatements("PRAGMA auto_vacuum = \(raw: vacuum); VACUUM; PRAGMA journal_mode = WAL"))
        try writer.executeUpdate("CREATE TABLE t (body BLOB)", values: nil)
        try writer.executeUpdate("INSERT INTO t VALUES (?)", values: [Data(repeating: 7, count: 40_960)])
        // Two files that a kill left.
        let (file, log) = (try directory.bytes("db"), try directory.bytes("db-wal"))
        writer.close()
        try directory.write("db", file)
        try directory.write("db-wal", LogForger.changed(log, pageSize: Self.pageSize, damage.apply))
        // SQLite would write the log into the store.
        expectDamage { try open().close() }
        var reading = try configuration()
        reading.isReadOnly = true
        let database = Database(path: directory.file("db"), configuration: reading)
        try database.openVerified()
        expectDamage { _ = try database.executeQuery("SELECT body FROM t").scalar(Data.self) }
        database.close()
    }

    /// Which reads pages beyond the end of the file, and has no others by mistake.
    @Test(arguments: ["DELETE", "WAL", "MEMORY", "OFF"], [0, 1, 2])
    func aGrowingStoreIsNotDamaged(mode: String, vacuum: Int) throws {
        let database = try open()
        #expect(
            database.executeStatements(
                "PRAGMA auto_vacuum = \(raw: vacuum); VACUUM; PRAGMA journal_mode = \(raw: mode)"
            )
        )
        // Pages are written out in the middle of a transaction.
        #expect(database.executeStatements("PRAGMA cache_size = 10; CREATE TABLE t (id INTEGER PRIMARY KEY, body)"))
        for secureDelete in ["ON", "OFF"] {
            try database.executeUpdate("PRAGMA secure_delete = \(raw: secureDelete)", values: nil)
            for round in 0..<2 {
                #expect(database.beginTransaction())
                try database.executeUpdate(
                    """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                    INSERT INTO t (body) SELECT randomblob(i * 37 % 20000) FROM n
                    """,
                    values: nil
                )
                try database.executeUpdate("DELETE FROM t WHERE id % 3 = \(raw: round)", values: nil)
                #expect(database.executeStatements("CREATE INDEX i ON t (body); DROP INDEX i"))
                try database.executeUpdate("UPDATE t SET body = randomblob(9000) WHERE id % 5 = 0", values: nil)
                #expect(database.commit(), "\(database.lastErrorMessage())")
                #expect(database.executeStatements("PRAGMA incremental_vacuum(50)"))
                _ = try database.integers("SELECT length(body) FROM t")
            }
        }
        if mode != "OFF" { try database.executeUpdate("VACUUM", values: nil) }
        #expect(try database.executeQuery("PRAGMA integrity_check").scalar(String.self) == "ok")
    }

    @Test func theIntegrityCheckTellsRows() throws {
        try makeStore(.changed)
        let database = try open()
        let rows = try database.executeQuery("PRAGMA cipher_integrity_check", values: nil)
        var found: [String] = []
        while try rows.nextWithError() { found.append(rows.string(forColumnIndex: 0) ?? "") }
        #expect(found.count == 1)
        #expect(try database.integers("SELECT count(*) FROM t") == [1])
    }

    /// Its last page is the end of the schema's longest text.
    @Test func aSchemaOfZerosIsNotKept() throws {
        let database = try open()
        let filler = String(repeating: "x", count: 12_000)
        #expect(database.executeStatements("CREATE TABLE t (a) /* \(raw: filler) */; INSERT INTO t VALUES (1)"))
        #expect(database.executeStatements("CREATE VIEW v AS SELECT a FROM t -- \(raw: filler)"))
        database.close()
        try change { file in file[file.count - 2000] ^= 1 }
        #expect(throws: DatabaseError.self) {
            let database = try open()
            for _ in 0..<2 { _ = try database.executeQuery("SELECT a FROM v").scalar(Int.self) }
        }
    }

    @Test func aWrongKeyIsNoDamage() throws {
        try open().close()
        let other = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(2)))
        let error = #expect(throws: DatabaseError.self) { try other.openVerified() }
        #expect(error?.reason == .wrongKey)
    }
}

/// Changes the last frame of a write-ahead log as somebody would who has no key, but knows how the checksums are made.
/// https://www.sqlite.org/fileformat.html#walformat
private enum LogForger {
    static func changed(_ log: Data, pageSize: Int, _ change: (inout Data) -> Void) -> Data {
        var log = log
        let frame = 24 + pageSize
        // The last but one, with the table's row, may be the last of the transaction. So all are looked at by size.
        let count = (log.count - 32) / frame
        let numbers = (0..<count).map { number(log, 32 + $0 * frame) }
        let last = numbers.indices.max { numbers[$0] < numbers[$1] }!
        var page = log[(32 + last * frame + 24)..<(32 + (last + 1) * frame)]
        change(&page)
        log.replaceSubrange(page.indices, with: page)
        let isBigEndian = log[3] == 0x83
        var sums: (UInt32, UInt32) = (number(log, 24), number(log, 28))
        for index in 0..<count {
            let start = 32 + index * frame
            add(log[start..<start + 8], &sums, isBigEndian)
            add(log[(start + 24)..<(start + frame)], &sums, isBigEndian)
            for (offset, sum) in [(16, sums.0), (20, sums.1)] {
                for byte in 0..<4 { log[start + offset + byte] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * byte)) }
            }
        }
        return log
    }

    private static func number(_ log: Data, _ offset: Int) -> UInt32 {
        log[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func add(_ bytes: Data, _ sums: inout (UInt32, UInt32), _ isBigEndian: Bool) {
        let bytes = [UInt8](bytes)
        for start in stride(from: 0, to: bytes.count, by: 8) {
            func word(_ offset: Int) -> UInt32 {
                let value = bytes[(start + offset)..<(start + offset + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                return isBigEndian ? value : value.byteSwapped
            }
            sums.0 = sums.0 &+ word(0) &+ sums.1
            sums.1 = sums.1 &+ word(4) &+ sums.0
        }
    }
}
