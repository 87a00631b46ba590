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
