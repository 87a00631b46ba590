import Foundation
import Testing

@testable import SealedDB

/// A write of the first page that the disk has lost, after the file has grown. All pages are authentic.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct UncountedPagesTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
        let database = try Database.testing(path, journalMode: .delete)
        try database.execute(script: "CREATE TABLE a (x); INSERT INTO a VALUES (1)")
        let first = try directory.bytes("db").prefix(4096)
        try database.fill(rows: 300)
        try #require(database.close())
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.write(contentsOf: first)
        try file.close()
    }

    private var report: IntegrityReport { get throws { try .verify(path: path, key: .testing(1), isDeep: true) } }

    @Test func theyAreNoSoundStore() throws {
        let report = try report
        #expect(!report.isSound && report.hasUncountedPages && report.structureProblems.count == 1, "\(report)")
        #expect(report.structureProblems.first?.contains("the first page is an older one") == true)
    }

    @Test func nothingTakesTheirPlace() throws {
        let before = try directory.bytes("db")
        for call: () throws -> Void in [
            { try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run() },
            {
                let settings = CipherSettings(pageSize: 8192)
                _ = try StoreMigration(path: path, key: .testing(1), from: .init(), to: settings).run()
            },
            {
                var configuration = Configuration(key: try .testing(1))
                configuration.journalMode = .delete
                let queue = try DatabaseQueue(path: path, configuration: configuration)
                defer { queue.close() }
                try queue.rotateKey(to: .testing(2))
            },
        ] {
            let error = #expect(throws: DatabaseError.self) { try call() }
            #expect(error?.reason == .damaged && error?.message.contains("sealdb recover") == true, "\(error as Any)")
            #expect(error?.message.contains("run VACUUM") == true, "\(error as Any)")
        }
        #expect(try directory.bytes("db") == before && directory.names == ["db"])
    }

    @Test func recoveryFindsThem() throws {
        let report = try StoreRecovery(path: path, key: .testing(1), to: directory.file("new")).run()
        #expect(!report.isComplete && report.lostAndFoundCount == 300, "\(report)")
        #expect(report.problems.contains { $0.contains("an older one, or a commit") }, "\(report)")
        let database = try Database.testing(directory.file("new"))
        defer { database.close() }
        #expect(try database.integers("SELECT count(*) FROM lost_and_found WHERE c1 LIKE 'secret row %'") == [300])
    }

    /// What a process leaves that is killed after a commit that makes the store smaller, and before the file is cut off.
    @Test(arguments: ["DELETE FROM t WHERE rowid > 20; VACUUM", "DELETE FROM t WHERE rowid > 20"])
    func aCommitThatWasCutOffBehind(sql: String) throws {
        let path = directory.file("smaller")
        let database = try Database.testing(path, journalMode: .delete)
        try database.execute(script: "PRAGMA auto_vacuum = FULL; VACUUM")
        try database.fill(rows: 300)
        let before = try directory.bytes("smaller")
        try database.execute(script: SQL(raw: sql))
        let after = try directory.bytes("smaller")
        try #require(database.close())
        try #require(after.count < before.count)
        try (after + before[after.count...]).write(to: URL(fileURLWithPath: path))

        let report = try IntegrityReport.verify(path: path, key: .testing(1), isDeep: true)
        #expect(report.hasUncountedPages && !report.isSound && report.structureProblems.count == 1, "\(report)")
        // It is no reason to go without a backup.
        let backup = StoreBackup(path: path, key: try .testing(1), to: directory.file("copy"))
        try backup.run()
        #expect(try backup.doubt()?.contains("may lack what was stored last") == true)
        let copy = try Database.testing(directory.file("copy"))
        #expect(try copy.integers("SELECT count(*) FROM t") == [20])
        copy.close()
        let recovered = try StoreRecovery(path: path, key: .testing(1), to: directory.file("new")).run()
        #expect(recovered.tables.first { $0.name == "t" }?.rowCount == 20, "\(recovered)")
        let settled = try Database.testing(path)
        try settled.execute(script: "VACUUM")
        settled.close()
        #expect(try IntegrityReport.verify(path: path, key: .testing(1)).isSound)
        #expect(try backup.doubt() == nil)
        try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
    }

    @Test func vacuumDropsThem() throws {
        let database = try Database.testing(path)
        try database.execute(script: "VACUUM")
        try #require(database.close())
        #expect(try report.isSound)
        try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
    }

    /// A journal that is kept beside the store says nothing when its transaction is over.
    @Test(arguments: [Configuration.JournalMode.persist, .truncate])
    func aKeptJournalHidesNothing(mode: Configuration.JournalMode) throws {
        let database = try Database.testing(path, journalMode: mode)
        try database.execute(script: "UPDATE a SET x = 2")
        try #require(database.close() && directory.names.contains("db-journal"))
        let report = try report
        #expect(report.hasUncountedPages && !report.isSound, "\(report)")
        let backup = StoreBackup(path: path, key: try .testing(1), to: directory.file("copy"))
        #expect(try backup.doubt()?.contains("may lack what was stored last") == true)
        let error = #expect(throws: DatabaseError.self) {
            try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
        }
        #expect(error?.reason == .damaged, "\(error as Any)")
    }

    /// The transaction of a journal that is not over may have made the file longer.
    @Test func aHotJournalIsNoDoubt() throws {
        let path = directory.file("hot")
        let database = try Database.testing(path, journalMode: .persist)
        defer { database.close() }
        try database.fill(rows: 300)
        let size = try directory.bytes("hot").count
        try database.spillChanges()
        #expect(database.executeStatements("BEGIN; UPDATE t SET body = body || hex(zeroblob(1000))"))
        let (store, journal) = try (directory.bytes("hot"), directory.bytes("hot-journal"))
        try #require(store.count > size)
        try directory.write("killed", store)
        try directory.write("killed-journal", journal)
        let report = try IntegrityReport.verify(path: directory.file("killed"), key: .testing(1), isDeep: true)
        #expect(report.isSound && report.pageCount == size / 4096, "\(report)")
        let backup = StoreBackup(path: directory.file("killed"), key: try .testing(1), to: directory.file("copy"))
        #expect(try backup.doubt() == nil)
    }

    /// As ``init()``, in WAL mode.
    private func makeLogged(_ path: String) throws {
        let database = try Database.testing(path, journalMode: .wal)
        try database.execute(script: "CREATE TABLE a (x); INSERT INTO a VALUES (1); PRAGMA wal_checkpoint(TRUNCATE)")
        let first = try Data(contentsOf: URL(fileURLWithPath: path)).prefix(4096)
        try database.fill(rows: 300)
        try #require(database.close())
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.write(contentsOf: first)
        try file.close()
    }

    /// A log without the first page does not say that there are fewer pages. Others have it open, or have been killed.
    @Test func aLogHidesNothing() throws {
        let path = directory.file("logged")
        try makeLogged(path)
        let database = try Database.testing(path, journalMode: .wal)
        try database.execute(script: "UPDATE a SET x = 2")
        try directory.write("killed", directory.bytes("logged"))
        try directory.write("killed-wal", directory.bytes("logged-wal"))
        for name in ["logged", "killed"] {
            let report = try IntegrityReport.verify(path: directory.file(name), key: .testing(1), isDeep: true)
            #expect(report.hasUncountedPages && !report.isSound, "\(name): \(report)")
            let backup = StoreBackup(path: directory.file(name), key: try .testing(1), to: directory.file("copy"))
            #expect(try backup.doubt()?.contains("may lack what was stored last") == true, "\(name)")
        }
        database.close()
    }

    /// The disk loses what another process wrote, while a log lies beside it that is in the file as a whole.
    @Test func aLogThatIsInTheFileHidesNothing() throws {
        let path = directory.file("logged")
        let database = try Database.testing(path, journalMode: .wal)
        defer { database.close() }
        try database.execute(script: "CREATE TABLE a (x); PRAGMA wal_checkpoint(TRUNCATE)")
        try directory.write("first", directory.bytes("logged").prefix(4096))
        try database.fill(rows: 300)
        try database.execute(script: "PRAGMA wal_checkpoint(FULL)")
        #expect(try IntegrityReport.verify(path: path, key: .testing(1)).isSound)
        // To close the file here would drop the locks of this process.
        let copying = Process()
        copying.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        copying.arguments = ["dd", "if=\(directory.file("first"))", "of=\(path)", "conv=notrunc", "status=none"]
        try copying.run()
        copying.waitUntilExit(minutes: 1)
        try #require(copying.terminationStatus == 0)
        #expect(try IntegrityReport.verify(path: path, key: .testing(1)).hasUncountedPages)
        #expect(try StoreBackup(path: path, key: .testing(1), to: directory.file("copy")).doubt() != nil)
    }

    /// After a VACUUM in a log, the file is longer than the store until the log is written back.
    @Test func aLogMayMakeTheStoreShorter() throws {
        let path = directory.file("wal")
        let database = try Database.testing(path, journalMode: .wal)
        defer { database.close() }
        try database.fill(rows: 300)
        try database.execute(script: "PRAGMA wal_checkpoint(TRUNCATE); DELETE FROM t; VACUUM")
        #expect(try IntegrityReport.verify(path: path, key: .testing(1)).isSound)
        try StoreBackup(path: path, key: .testing(1), to: directory.file("copy")).run()
    }
}
