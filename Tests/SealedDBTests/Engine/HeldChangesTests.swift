import Foundation
import Testing

@testable import SealedDB

/// What a crash would leave of transactions that are larger than the cache, and of which a part was undone. SQLite by itself
/// loses them, with all that was committed later.
@Suite(.hangLimit)
struct HeldChangesTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// In WAL mode, with a cache of some pages, and 200 rows of about a page.
    private func smallCachedStore(_ name: String = "db", cacheSize: Int = 10) throws -> Database {
        let database = try Database.testing(directory.file(name), journalMode: .wal)
        #expect(database.executeStatements("PRAGMA cache_size = \(raw: cacheSize)"))
        try fill(database)
        return database
    }

    private func fill(_ database: Database, schema: String = "main") throws {
        try database.executeUpdate("CREATE TABLE \(raw: schema).t (id INTEGER PRIMARY KEY, b BLOB)", values: nil)
        try database.executeUpdate(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO \(raw: schema).t SELECT i, randomblob(3000) FROM n
            """,
            values: nil
        )
    }

    /// The rows that somebody finds who opens the files as they are at this moment, as after a crash.
    private func afterCrash(_ name: String = "db") throws -> [String] {
        let copy = directory.file("crashed-\(UUID().uuidString)")
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: directory.file(name) + suffix, toPath: copy + suffix)
        }
        let database = try Database.testing(copy)
        defer { database.close() }
        #expect(try database.executeQuery("PRAGMA integrity_check").scalar(String.self) == "ok")
        return try database.rows(of: "t")
    }

    private func logSize(_ name: String = "db") throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: directory.file(name) + "-wal")[.size] as? Int)
    }

    /// Writes one page once, and others again and again, so that the log's first frame would be spilled once only.
    private func spoil(_ database: Database, schema: String = "main") throws {
        try database.executeUpdate("UPDATE \(raw: schema).t SET b = randomblob(3000) WHERE id = 200", values: nil)
        for _ in 0..<3 {
            try database.executeUpdate("UPDATE \(raw: schema).t SET b = randomblob(3000) WHERE id < 190", values: nil)
        }
    }

    @Test func aSavepointThatIsRolledBack() throws {
        let database = try smallCachedStore()
        defer { database.close() }
        #expect(database.executeStatements("BEGIN; SAVEPOINT a"))
        try spoil(database)
        #expect(database.executeStatements("ROLLBACK TO a; RELEASE a; INSERT INTO t VALUES (1000, x'00'); COMMIT"))
        try database.executeUpdate("INSERT INTO t VALUES (1001, x'01')", values: nil)
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    @Test func theOutermostSavepointThatIsRolledBack() throws {
        let database = try smallCachedStore()
        defer { database.close() }
        #expect(database.executeStatements("SAVEPOINT a"))
        try spoil(database)
        #expect(database.executeStatements("ROLLBACK TO a; INSERT INTO t VALUES (1000, x'00'); RELEASE a"))
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    @Test func aStatementThatFails() throws {
        let database = try smallCachedStore()
        defer { database.close() }
        let change = "UPDATE t SET b = randomblob(3000) WHERE id < 190;"
        try database.executeUpdate(
            """
            CREATE TRIGGER spoil AFTER UPDATE ON t WHEN NEW.id = 200 BEGIN
                \(raw: change) \(raw: change) \(raw: change)
                SELECT RAISE(ABORT, 'no');
            END
            """,
            values: nil
        )
        #expect(database.executeStatements("BEGIN"))
        #expect(throws: DatabaseError.self) {
            try database.executeUpdate("UPDATE t SET b = randomblob(3000) WHERE id = 200", values: nil)
        }
        #expect(database.executeStatements("INSERT INTO t VALUES (1000, x'00'); COMMIT"))
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    @Test func aSavepointInABlockOfAQueue() throws {
        try smallCachedStore().close()
        var configuration = Configuration(key: isEncrypting ? try Key.testing(1) : nil)
        configuration.cacheSize = 40
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        defer { queue.close() }
        struct Undone: Error {}
        let live = try queue.write { db -> [String] in
            #expect(throws: Undone.self) {
                try db.savepoint {
                    try spoil(db)
                    throw Undone()
                }
            }
            try db.executeUpdate("INSERT INTO t VALUES (1000, x'00')", values: nil)
            return try db.rows(of: "t")
        }
        #expect(try afterCrash() == live)
    }

    @Test(arguments: [true, false])
    func attachedStores(bySQL: Bool) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        defer { database.close() }
        if bySQL {
            // It inherits the key.
            try database.executeUpdate("ATTACH ? AS side", values: [directory.file("side")])
        } else {
            try database.attach(directory.file("side"), as: "side", key: isEncrypting ? try Key.testing(1) : nil)
        }
        #expect(try database.executeQuery("PRAGMA side.journal_mode = WAL").scalar(String.self) == "wal")
        #expect(database.executeStatements("PRAGMA side.cache_size = 10"))
        try fill(database, schema: "side")
        #expect(database.executeStatements("BEGIN; SAVEPOINT a"))
        try spoil(database, schema: "side")
        #expect(database.executeStatements("ROLLBACK TO a; RELEASE a; INSERT INTO side.t VALUES (1000, x'00'); COMMIT"))
        #expect(try afterCrash("side") == database.rows(of: "side.t"))
    }

    /// Else a transaction would need as much memory as all that it changes.
    @Test func whatCannotBeUndoneInPartIsWritten() throws {
        let database = try smallCachedStore()
        defer { database.close() }
        let before = try logSize()
        #expect(database.executeStatements("BEGIN"))
        for id in 1000..<3000 {
            try database.executeUpdate("INSERT INTO t VALUES (?, randomblob(20000))", values: [id])
        }
        #expect(try logSize() - before > 20 << 20)
        try spoil(database)
        #expect(database.executeStatements("COMMIT"))
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    /// A cache whose size is in KiB, as a configuration gives it, is written no earlier than one that counts pages.
    @Test(arguments: [20_000, -20_000]) func aLargeCacheIsNotWrittenEarly(cacheSize: Int) throws {
        let database = try smallCachedStore(cacheSize: cacheSize)
        defer { database.close() }
        let before = try logSize()
        #expect(database.executeStatements("BEGIN"))
        for id in 1000..<1100 {
            try database.executeUpdate("INSERT INTO t VALUES (?, randomblob(20000))", values: [id])
        }
        #expect(try logSize() == before)
        #expect(database.executeStatements("COMMIT"))
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    enum End: CaseIterable, Sendable { case closed, dropped, boundAnew }

    /// Statements that are not stepped to their own end write as much as others.
    @Test(arguments: End.allCases)
    func whatHalfReadStatementsChangeIsWritten(end: End) throws {
        let database = try smallCachedStore()
        defer { database.close() }
        let before = try logSize()
        #expect(database.executeStatements("BEGIN"))
        let sql = "INSERT INTO t VALUES (?, randomblob(20000)) RETURNING id"
        let prepared = try end == .boundAnew ? database.prepare(sql) : nil
        for id in 1000..<3000 {
            if let prepared {
                #expect(prepared.bind(with: [id]))
                #expect(try prepared.nextWithError())
            } else {
                let rows = try database.executeQuery(sql, values: [id])
                #expect(try rows.nextWithError())
                if end == .closed { rows.close() }
            }
        }
        prepared?.close()
        #expect(try logSize() - before > 20 << 20)
        #expect(database.executeStatements("COMMIT"))
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    enum BlobWriting: CaseIterable, Sendable { case inOne, inOneAlone, inMany }

    @Test(arguments: BlobWriting.allCases)
    func whatIsWrittenToBlobsIsWritten(writing: BlobWriting) throws {
        let database = try smallCachedStore()
        defer { database.close() }
        // Whoever opens a blob anew walks to the part again, page after page: few and large parts then.
        let (size, part) = (40 << 20, Data(repeating: 7, count: writing == .inMany ? 2 << 20 : 64 << 10))
        try database.executeUpdate("INSERT INTO t VALUES (1000, zeroblob(?))", values: [size])
        try database.checkpoint(.truncate)
        let before = try logSize()
        if writing != .inOneAlone { #expect(database.executeStatements("BEGIN")) }
        func blob() throws -> Blob { try database.openBlob(table: "t", column: "b", rowID: 1000, isWritable: true) }
        var open = try blob()
        for offset in stride(from: 0, to: size, by: part.count) {
            try open.write(part, at: offset)
            guard writing == .inMany else { continue }
            try open.close()
            open = try blob()
        }
        #expect(try logSize() - before > 10 << 20)
        try open.close()
        if writing != .inOneAlone { #expect(database.executeStatements("COMMIT")) }
        // All of it.
        #expect(try database.integers("SELECT instr(b, x'00') FROM t WHERE id = 1000") == [0])
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    @Test func whatCanBeUndoneInPartIsNotWritten() throws {
        let database = try smallCachedStore()
        defer { database.close() }
        let before = try logSize()
        #expect(database.executeStatements("BEGIN; SAVEPOINT a"))
        for id in 1000..<3000 {
            try database.executeUpdate("INSERT INTO t VALUES (?, randomblob(20000))", values: [id])
        }
        #expect(try logSize() == before)
        #expect(database.executeStatements("ROLLBACK TO a; RELEASE a; COMMIT"))
    }

    /// Its row could still be undone with the statement.
    @Test func nothingIsWrittenWhileAStatementReturnsRows() throws {
        let database = try smallCachedStore()
        defer { database.close() }
        #expect(database.executeStatements("BEGIN"))
        let before = try logSize()
        let rows = try database.executeQuery("INSERT INTO t VALUES (900, x'00') RETURNING id", values: nil)
        #expect(try rows.nextWithError())
        for id in 1000..<3000 {
            try database.executeUpdate("INSERT INTO t VALUES (?, randomblob(20000))", values: [id])
        }
        #expect(try logSize() == before)
        rows.close()
        #expect(database.executeStatements("COMMIT"))
        #expect(try afterCrash() == database.rows(of: "t"))
    }

    @Test(arguments: ["1", "-1", "+7", "1000", "0x10", "'5'", "99999999999"])
    func aSizeOfSpillsIsRefused(_ value: String) throws {
        let database = try smallCachedStore()
        defer { database.close() }
        for prefix in ["", "main."] {
            #expect(!database.executeStatements("PRAGMA \(raw: prefix)cache_spill = \(raw: value)"))
            #expect((database.lastError() as? DatabaseError)?.reason == .notAllowed)
            #expect(!database.executeStatements("PRAGMA \(raw: prefix)cache_spill(\(raw: value))"))
        }
        #expect(try database.executeQuery("PRAGMA cache_spill").scalar(Int.self) == Int(Int32.max))
    }

    @Test(arguments: ["ON", "OFF", "yes", "No", "TRUE", "false", "0"])
    func switchesOfSpillsAreAllowed(_ value: String) throws {
        let database = try smallCachedStore()
        defer { database.close() }
        #expect(database.executeStatements("PRAGMA cache_spill = \(raw: value); PRAGMA cache_spill = ON"))
        #expect(try database.executeQuery("PRAGMA cache_spill").scalar(Int.self) == Int(Int32.max))
    }

    /// Transactions of all shapes, with a cache that holds nearly nothing.
    @Test func randomTransactions() throws {
        var random = SeededGenerator(seed: 20)
        let database = try smallCachedStore()
        defer { database.close() }
        try database.executeUpdate("CREATE UNIQUE INDEX i ON t (substr(b, 1, 8))", values: nil)
        for round in 0..<40 {
            #expect(database.executeStatements(Bool.random(using: &random) ? "BEGIN" : "SAVEPOINT s"))
            var depth = 0
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                let (low, high) = (Int.random(in: 1...150, using: &random), Int.random(in: 100...260, using: &random))
                switch Int.random(in: 0..<9, using: &random) {
                case 0..<3:
                    try database.executeUpdate(
                        "UPDATE t SET b = randomblob(3000) WHERE id BETWEEN ? AND ?",
                        values: [low, high]
                    )
                case 3:
                    try database.executeUpdate(
                        "INSERT OR REPLACE INTO t VALUES (?, randomblob(?))",
                        values: [high, 5000]
                    )
                case 4:
                    // Fails once it has changed some rows, because of the index.
                    #expect(throws: DatabaseError.self) {
                        try database.executeUpdate(
                            "UPDATE t SET b = CASE WHEN id < ? THEN randomblob(3000) ELSE zeroblob(3000) END",
                            values: [low]
                        )
                    }
                case 5:
                    try database.executeUpdate("DELETE FROM t WHERE id BETWEEN ? AND ?", values: [high, high + 5])
                case 6, 7:
                    depth += 1
                    #expect(database.executeStatements("SAVEPOINT p\(raw: depth)"))
                default:
                    guard depth > 0 else { break }
                    #expect(database.executeStatements("ROLLBACK TO p\(raw: depth)"))
                    if Bool.random(using: &random) {
                        #expect(database.executeStatements("RELEASE p\(raw: depth)"))
                        depth -= 1
                    }
                }
            }
            #expect(database.executeStatements("COMMIT"))
            let expected = try database.rows(of: "t")
            try #require(try afterCrash() == expected, "round \(round)")
        }
    }
}

extension Database {
    fileprivate func rows(of table: String) throws -> [String] {
        let rows = try executeQuery(
            "SELECT id, length(b), hex(substr(b, 1, 8)) FROM \(raw: table) ORDER BY id",
            values: nil
        )
        var result: [String] = []
        while try rows.nextWithError() {
            result.append((0..<3).map { rows.string(forColumnIndex: $0) ?? "NULL" }.joined(separator: " "))
        }
        return result
    }
}
