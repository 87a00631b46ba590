import Foundation
import Testing

@testable import SealedDB

/// Free pages that SQLite never wrote, zeros without a code, and those that were written half. They are no damage; in the
/// place of a page in use they are.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct UnwrittenPagesTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let size = 4096

    /// Makes a store under key 1 with such pages, behind some that are free and were written.
    @discardableResult
    private func make(_ journalMode: Configuration.JournalMode = .delete, free: Int = 100) throws -> [Int64] {
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 500)
        #expect(
            store.executeStatements(
                """
                PRAGMA secure_delete = OFF;
                DELETE FROM t WHERE id BETWEEN 100 AND 200;
                CREATE TABLE u (a);
                BEGIN;
                WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(raw: free))
                    INSERT INTO u SELECT randomblob(3000) FROM c;
                DELETE FROM u;
                COMMIT;
                """
            )
        )
        #expect(store.close())
        let unwritten = try zeros("db")
        try #require(unwritten.count > free / 2)
        if journalMode == .wal { try Database.testing(directory.file("db"), journalMode: .wal).close() }
        return unwritten
    }

    private func zeros(_ name: String) throws -> [Int64] {
        let bytes = try directory.bytes(name)
        return (0..<(bytes.count / Self.size)).filter { page in
            bytes[page * Self.size..<(page + 1) * Self.size].allSatisfy { $0 == 0 }
        }.map { Int64($0 + 1) }
    }

    private func zero(_ number: Int64) throws {
        var bytes = try directory.bytes("db")
        bytes.replaceSubrange(Int(number - 1) * Self.size..<Int(number) * Self.size, with: Data(count: Self.size))
        try directory.write("db", bytes)
    }

    /// Puts half of another page into these, as a power failure does with pages that a transaction has taken.
    private func tear(_ numbers: [Int64], of path: String? = nil) throws {
        let (file, sector) = (URL(fileURLWithPath: path ?? directory.file("db")), 3)
        var bytes = try Data(contentsOf: file)
        let other = bytes[..<Self.size]
        for number in numbers {
            let start = Int(number - 1) * Self.size + sector * 512
            bytes.replaceSubrange(start..<Int(number) * Self.size, with: other.dropFirst(sector * 512))
        }
        try bytes.write(to: file)
    }

    /// All leaves of the list of free pages.
    private func freePages(of path: String? = nil) throws -> [Int64] {
        let connection = try StoreOpening(path: path ?? directory.file("db"), key: .testing(1), takesLock: false).open()
        defer { connection.close() }
        let count = try #require(try connection.integer("PRAGMA page_count"))
        let scan = PageScan(connection: connection, key: try .testing(1), settings: .init())
        let list = FreePages(pageCount: count, cipher: try scan.pageCipher()) { number, page throws(DatabaseError) in
            try scan.fill(page, with: number...number)
        }
        return try (1...count).filter(list.contains)
    }

    /// A page of a table, and a trunk of the list of free pages.
    private func pagesInUse() throws -> [Int64] {
        let connection = try StoreOpening(path: directory.file("db"), key: .testing(1), takesLock: false).open()
        defer { connection.close() }
        let root = try connection.integer("SELECT rootpage FROM sqlite_schema WHERE name = 't'")
        return try [#require(root), trunk(of: directory.file("db"))]
    }

    /// The first page of the list of free pages.
    private func trunk(of path: String) throws -> Int64 {
        let connection = try StoreOpening(path: path, key: .testing(1), takesLock: false).open()
        defer { connection.close() }
        let page = try connection.fileBytes(count: Self.size)
        let cipher = try PageScan(connection: connection, key: .testing(1), settings: .init()).pageCipher()
        let header = try #require(try cipher.contents(page[...], number: 1))
        return BigEndian.number(header[16..<20])
    }

    private func verify(_ name: String = "db", key: UInt8 = 1) throws -> IntegrityReport {
        try IntegrityReport.verify(path: directory.file(name), key: .testing(key), isDeep: true)
    }

    private func requireWhole(_ name: String, key: UInt8) throws {
        #expect(try zeros(name) == [])
        let report = try verify(name, key: key)
        #expect(report.isSound, "\(report)")
        let store = try Database.testing(directory.file(name), key: key)
        defer { store.close() }
        #expect(try store.integers("SELECT count(*) FROM t") == [399])
        #expect(try store.integers("SELECT freelist_count FROM pragma_freelist_count")[0] > 50)
        // The free pages can be used.
        try store.executeUpdate("INSERT INTO t (body) VALUES (hex(randomblob(200000)))", values: nil)
        #expect(try store.integers("SELECT length(body) FROM t ORDER BY id DESC LIMIT 1") == [400_000])
    }

    private enum Way: String, CaseIterable {
        case rotation, backup, backupUnderTheSameKey, databaseBackup, restore

        var key: UInt8 { self == .rotation || self == .backup ? 2 : 1 }
        var result: String { self == .rotation ? "db" : "copy" }
    }

    private func run(_ way: Way) throws {
        let (path, copy) = (directory.file("db"), directory.file("copy"))
        switch way {
        case .rotation: try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
        case .backup: try StoreBackup(path: path, key: .testing(1), to: copy, backupKey: .testing(2)).run()
        case .backupUnderTheSameKey: try StoreBackup(path: path, key: .testing(1), to: copy).run()
        case .databaseBackup:
            let store = try Database.testing(path)
            defer { store.close() }
            _ = try store.backup(toNewFile: copy, key: nil, progress: nil)
        case .restore: try StoreRestore(backupPath: path, key: .testing(1), to: copy).run()
        }
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func theyAreNoDamage(mode: Configuration.JournalMode) throws {
        let unwritten = try make(mode)
        let report = try verify()
        #expect(report.isSound && report.damagedPages.isEmpty, "\(report)")
        #expect(try IntegrityReport.verifyPages(path: directory.file("db"), key: .testing(1)).isSound)
        // SQLCipher lists them.
        let key = String(repeating: "01", count: 32)
        let sql = "PRAGMA key = \"x'\(key)'\"; PRAGMA cipher_integrity_check;"
        let lines = try StockShell.run(directory.file("db"), sql)
        #expect(lines.filter { $0.contains("for page ") }.count == unwritten.count)
    }

    @Test(arguments: Way.allCases.map(\.rawValue), [Configuration.JournalMode.delete, .wal])
    func copies(way: String, mode: Configuration.JournalMode) throws {
        try make(mode)
        let way = try #require(Way(rawValue: way))
        try run(way)
        try requireWhole(way.result, key: way.key)
    }

    /// More of them than a page of the list has room for.
    @Test func aLongList() throws {
        try make(free: 1800)
        #expect(try verify().isSound)
        try run(.rotation)
        try requireWhole("db", key: 2)
    }

    /// Somebody puts zeros in the place of a page in use, or of the list itself.
    @Test(arguments: [false, true]) func zerosInThePlaceOfOthers(inWAL: Bool) throws {
        let unwritten = try make(inWAL ? .wal : .delete)
        let sound = try directory.bytes("db")
        let (root, trunk) = try { ($0[0], $0[1]) }(pagesInUse())
        for number in [root, trunk] {
            try directory.write("db", sound)
            try zero(number)
            let wanted = number == root ? [root] : (unwritten + [trunk]).sorted()
            #expect(try verify().damagedPages == wanted)
            #expect(
                try IntegrityReport.verifyPages(path: directory.file("db"), key: .testing(1)).damagedPages == wanted
            )
            let before = try zeros("db")
            for way in Way.allCases {
                let error = #expect(throws: DatabaseError.self, "\(way)") { try run(way) }
                #expect(error?.reason == .damaged, "\(way): \(String(describing: error))")
                // A rotation leaves WAL mode and returns to it, which writes to the first page.
                #expect(try zeros("db") == before && verify().damagedPages == wanted)
                #expect(!FileManager.default.fileExists(atPath: directory.file("copy")), "\(way)")
            }
        }
    }

    /// Somebody puts an older list back, which is as authentic as the present one, and zeros in the place of a page that was
    /// free then; or something else.
    @Test(arguments: [false, true], ["randomblob(\(size * 60))", "i FROM n"])
    func somethingInThePlaceOfAPageThatWasFree(isTorn: Bool, rows: String) throws {
        let unwritten = try make()
        let (older, trunk) = (try directory.bytes("db"), Int(try pagesInUse()[1]))
        let store = try Database.testing(directory.file("db"))
        #expect(store.executeStatements("PRAGMA secure_delete = OFF"))
        // Overflow pages, or leaves of the table.
        let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)"
        try store.executeUpdate("\(raw: numbers) INSERT INTO t (body) SELECT \(raw: rows)", values: nil)
        #expect(store.close())
        var bytes = try directory.bytes("db")
        try #require(bytes.count == older.count)
        let zeros = try zeros("db")
        let taken = Int(try #require(unwritten.first { !zeros.contains($0) }))
        for page in [1, trunk] {
            let place = (page - 1) * Self.size..<page * Self.size
            bytes.replaceSubrange(place, with: older[place])
        }
        try directory.write("db", bytes)
        try isTorn ? tear([Int64(taken)]) : zero(Int64(taken))
        let before = try directory.bytes("db")
        for report in [try verify(), try IntegrityReport.verifyPages(path: directory.file("db"), key: .testing(1))] {
            #expect(!report.isSound && report.isStructureChecked && report.damagedFreePages == [], "\(report)")
            #expect(!isTorn || report.damagedPages.contains(Int64(taken)), "\(report)")
        }
        for way in Way.allCases {
            let error = #expect(throws: DatabaseError.self, "\(way)") { try run(way) }
            #expect(error?.reason == .damaged, "\(way): \(String(describing: error))")
            #expect(try directory.bytes("db") == before, "\(way)")
            #expect(!FileManager.default.fileExists(atPath: directory.file("copy")), "\(way)")
        }
    }

    /// The repository gets zeros in the place of a page that was written half.
    @Test func shipped() throws {
        let store = try ReplicatedStore()
        try store.commit(ReplicatedStore.rows(200, bytes: 3000))
        #expect(store.database.executeStatements("PRAGMA secure_delete = OFF"))
        try store.commit("DELETE FROM data WHERE id > 20;")
        #expect(store.database.close())
        let free = try freePages(of: store.path)
        try #require(free.count > 50)
        let places = [free[3], free[40]]
        try tear(places, of: store.path)
        store.database = try Database.testing(store.path, journalMode: .wal)
        try store.ship()
        try store.restore()
        let restored = try store.restoredBytes()
        for page in places {
            #expect(restored.dropFirst(Int(page - 1) * Self.size).prefix(Self.size).allSatisfy { $0 == 0 })
        }
        try store.commit(ReplicatedStore.rows(200, bytes: 3000))
        try store.ship()
        #expect(try store.restore().commits == store.states.count)
    }

    /// With an older list of free pages, which is as authentic as the present one.
    @Test func aPageInUseIsNotShipped() throws {
        let store = try ReplicatedStore()
        try store.commit(ReplicatedStore.rows(200, bytes: 3000))
        #expect(store.database.executeStatements("PRAGMA secure_delete = OFF"))
        try store.commit("DELETE FROM data WHERE id > 20;")
        #expect(store.database.close())
        let file = URL(fileURLWithPath: store.path)
        let (older, free) = (try Data(contentsOf: file), try freePages(of: store.path))
        let trunk = try trunk(of: store.path)
        store.database = try Database.testing(store.path, journalMode: .wal)
        #expect(store.database.executeStatements("PRAGMA secure_delete = OFF"))
        try store.commit("INSERT INTO data (x) VALUES (randomblob(100000));")
        try store.ship()
        store.killShipper()
        #expect(store.database.close())
        let present = try freePages(of: store.path)
        let taken = try #require(free.first { !present.contains($0) })
        var bytes = try Data(contentsOf: file)
        try #require(bytes.count == older.count)
        for page in [1, trunk] {
            let place = Int(page - 1) * Self.size..<Int(page) * Self.size
            bytes.replaceSubrange(place, with: older[place])
        }
        try bytes.write(to: file)
        try tear([taken], of: store.path)
        let before = try store.objects()
        store.database = try Database.testing(store.path, journalMode: .wal)
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(try store.objects() == before)
    }

    /// A torn page of the store itself is shipped to nobody, whether another one is read later or not.
    @Test(arguments: [1, 1000]) func damageIsNotShipped(chunkPages: Int64) throws {
        let store = try ReplicatedStore()
        store.options.chunkPages = chunkPages
        try store.commit(ReplicatedStore.rows(200, bytes: 3000))
        #expect(store.database.close())
        try tear([20], of: store.path)
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .damaged && error?.message.contains("20") == true, "\(String(describing: error))")
    }

    /// A list that says what it should, but for its code.
    @Test func aListThatIsNotAuthentic() throws {
        let unwritten = try make()
        let trunk = try pagesInUse()[1]
        var bytes = try directory.bytes("db")
        bytes[Int(trunk) * Self.size - 1] ^= 1
        try directory.write("db", bytes)
        #expect(try verify().damagedPages == (unwritten + [trunk]).sorted())
        #expect(throws: DatabaseError.self) { try run(.rotation) }
    }

    /// Free pages of which half was written when the power failed: some were never written before, others were.
    @Test(arguments: Way.allCases.map(\.rawValue), [Configuration.JournalMode.delete, .wal])
    func thoseThatWereWrittenHalf(way: String, mode: Configuration.JournalMode) throws {
        let unwritten = try make(mode)
        let others = try freePages().filter { !unwritten.contains($0) }
        let torn = ([unwritten[7], unwritten[8]] + (others.isEmpty ? [] : [others[0]])).sorted()
        try tear(torn)
        for report in [try verify(), try IntegrityReport.verifyPages(path: directory.file("db"), key: .testing(1))] {
            #expect(report.isSound && report.isStructureChecked, "\(report)")
            #expect(report.damagedPages == [] && report.damagedFreePages == torn, "\(report)")
        }
        let diagnosis = try StoreDiagnosis.examine(path: directory.file("db"), key: .testing(1))
        #expect(diagnosis.finding == .opens, "\(diagnosis)")
        let way = try #require(Way(rawValue: way))
        try run(way)
        try requireWhole(way.result, key: way.key)
        #expect(try verify(way.result, key: way.key).damagedFreePages == [])
    }

    /// With another page of a tree, and not of the list, torn as well.
    @Test(arguments: Way.allCases.map(\.rawValue)) func tornOnesBesideDamage(way: String) throws {
        let unwritten = try make()
        let root = try pagesInUse()[0]
        try tear([root, unwritten[7]])
        let report = try verify()
        // The list is not believed any more.
        #expect(report.damagedPages == [root, unwritten[7]] && report.damagedFreePages == [], "\(report)")
        let before = try directory.bytes("db")
        let way = try #require(Way(rawValue: way))
        let error = #expect(throws: DatabaseError.self) { try run(way) }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(try directory.bytes("db") == before)
        #expect(!FileManager.default.fileExists(atPath: directory.file("copy")))
    }

    @Test func recoveredBesideOthers() throws {
        let unwritten = try make()
        try tear([unwritten[7]])
        let recovery = StoreRecovery(path: directory.file("db"), key: try .testing(1), to: directory.file("copy"))
        #expect(try recovery.run().damagedPages == [])
    }

    /// What has SQLCipher read each page refuses such a store, leaves it as it was, and does it after a VACUUM.
    @Test(arguments: ["rekey", "backup into a database"])
    func whereSQLCipherReads(way: String) throws {
        try make()
        let before = try directory.bytes("db")
        func run() throws {
            switch way {
            case "rekey":
                let store = try Database.testing(directory.file("db"))
                defer { store.close() }
                guard store.rekey("x'\(String(repeating: "02", count: 32))'") else { throw store.lastError() }
            default:
                let (store, copy) = (
                    try Database.testing(directory.file("db")), try Database.testing(directory.file("c"))
                )
                defer {
                    store.close()
                    copy.close()
                }
                try store.backup(to: copy)
            }
        }
        #expect(throws: DatabaseError.self) { try run() }
        #expect(try directory.bytes("db") == before)
        let store = try Database.testing(directory.file("db"))
        try store.executeUpdate("VACUUM", values: nil)
        #expect(store.close())
        #expect(try zeros("db") == [])
        try run()
        let name = way.hasPrefix("backup") ? "c" : "db"
        #expect(try verify(name, key: name == "c" ? 1 : 2).isSound)
    }

    /// How many pages are in the way of rekeying in place, and which, whatever else is free.
    @Test func whatRekeyingIsRefusedFor() throws {
        let unwritten = try make()
        let opening = StoreOpening(path: directory.file("db"), key: try .testing(1))
        func refusal() throws -> DatabaseError? {
            let before = try directory.bytes("db")
            let error = #expect(throws: DatabaseError.self) {
                try InPlaceRekey(opening: opening, newKey: .testing(2)).run()
            }
            #expect(try directory.bytes("db") == before)
            #expect(directory.namesOfFiles == ["db"])
            return error
        }
        let free = try refusal()
        #expect(free?.reason == .unsupported)
        let count =
            "unchanged under the old key: \(unwritten.count) free pages of the store were never written, or half"
        #expect(free?.message.contains(count) == true, "\(String(describing: free))")
        var bytes = try directory.bytes("db")
        let root = try pagesInUse()[0]
        for page in [root, unwritten[7]] { bytes[Int(page) * Self.size - 100] ^= 1 }
        try directory.write("db", bytes)
        let damaged = try refusal()
        #expect(damaged?.reason == .damaged)
        let pages = "unchanged under the old key: 1 pages of the store are damaged, the first is page \(root)."
        #expect(damaged?.message.contains(pages) == true, "\(String(describing: damaged))")
    }

    // MARK: A rotation in service

    /// Free pages are used, and others become free, while the copy is made.
    @Test(arguments: 1...6) func inService(seed: UInt64) throws {
        try make(.wal)
        var random = SeededGenerator(seed: seed)
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        defer { store.close() }
        #expect(store.executeStatements("PRAGMA secure_delete = OFF"))
        let copy = try #require(try store.liveCopy(for: .testing(2)) as? FollowedCopy)
        defer { copy.discard() }
        copy.pagesInRound = 16
        for _ in 0..<20 {
            if Bool.random(using: &random) {
                try store.executeUpdate("INSERT INTO u VALUES (randomblob(9000))", values: nil)
            }
            if Int.random(in: 0..<4, using: &random) == 0 { try store.executeUpdate("DELETE FROM u", values: nil) }
            try copy.advance()
        }
        try copy.complete(#require(store.connection))
        #expect(try copy.isCurrent())
        let found = try StoreOpening(path: copy.file.path, key: .testing(2), createsFirstPage: false).open()
        defer { found.close() }
        #expect(try ContentDigest.of(found) == ContentDigest.of(#require(store.connection)))
        #expect(try found.texts("PRAGMA integrity_check") == ["ok"])
        let scan = PageScan(connection: found, key: try .testing(2), settings: .init())
        #expect(try scan.damagedPages(ofFirst: .max) == [])
        let freeCount = try Int(#require(try found.integer("PRAGMA freelist_count")))
        #expect(try [freeCount] == store.integers("PRAGMA freelist_count"))
    }

    private func queue(_ mode: Configuration.JournalMode) throws -> DatabaseQueue {
        var configuration = Configuration(key: try .testing(1))
        configuration.journalMode = mode
        return try DatabaseQueue(path: directory.file("db"), configuration: configuration)
    }

    /// The queue goes on, also with an engine whose connections read nothing after a damaged page.
    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func zerosInService(mode: Configuration.JournalMode) async throws {
        try make(mode)
        try zero(pagesInUse()[0])
        let queue = try queue(mode)
        defer { queue.close() }
        let error = await #expect(throws: DatabaseError.self) { try await queue.rotateKey(to: .testing(2)) }
        #expect(error?.reason == .damaged)
        #expect(error?.message.contains("the store is unchanged") == true)
        #expect(try zeros("db").count > 50)
        try await queue.write { db in try db.executeUpdate("INSERT INTO u VALUES ('later')", values: nil) }
        #expect(try await queue.read { db in try db.integers("SELECT count(*) FROM u") } == [1])
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal], [false, true])
    func rotatedByAQueue(mode: Configuration.JournalMode, isTorn: Bool) async throws {
        let unwritten = try make(mode)
        if isTorn { try tear(unwritten) }
        let queue = try queue(mode)
        defer { queue.close() }
        try await queue.rotateKey(to: .testing(2))
        #expect(try await queue.read { db in try db.integers("SELECT count(*) FROM t") } == [399])
        try await queue.write { db in try db.executeUpdate("INSERT INTO u VALUES ('later')", values: nil) }
        queue.close()
        try requireWhole("db", key: 2)
    }

    /// Without a log, pages are left unwritten while the copy is made: before those that are copied, and after them. The
    /// connection that is copied from never reads one.
    @Test(arguments: [0, 4]) func leftWhileSQLiteCopies(steps: Int) throws {
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 12_000)
        let copy = try #require(try store.liveCopy(for: .testing(2)) as? LiveCopy)
        defer { copy.discard() }
        for _ in 0..<steps { try copy.advance() }
        #expect(steps == 0 || copy.progress.completedPages >= Int64(steps) * Int64(LiveCopy.pagesPerStep))
        let rows = try store.integers("SELECT count(*) FROM t")
        #expect(
            store.executeStatements(
                """
                PRAGMA secure_delete = OFF;
                CREATE TABLE u (a);
                BEGIN;
                WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200)
                    INSERT INTO u SELECT randomblob(3000) FROM c;
                DELETE FROM u;
                COMMIT;
                PRAGMA shrink_memory;
                """
            )
        )
        try #require(try zeros("db").count > 100)
        var turns = 0
        while !copy.isNearlyComplete, turns < 1000 {
            try copy.advance()
            turns += 1
        }
        _ = try store.rotateKey(to: .testing(2), with: copy, progress: nil)
        #expect(try store.integers("SELECT count(*) FROM t") == rows)
        #expect(store.close())
        #expect(try zeros("db") == [])
        #expect(try verify(key: 2).isSound)
        #expect(!FileManager.default.fileExists(atPath: copy.file.path))
    }

    /// A copy that has met zeros is not the one that is put in place.
    @Test func theCopyThatMetThemIsNotUsed() throws {
        try make()
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        defer { store.close() }
        let copy = try #require(try store.liveCopy(for: .testing(2)) as? LiveCopy)
        defer { copy.discard() }
        try copy.complete(#require(store.connection))
        #expect(try !copy.isCurrent())
        #expect(!FileManager.default.fileExists(atPath: copy.file.path))
        #expect(try store.integers("SELECT count(*) FROM t") == [399])
    }
}
