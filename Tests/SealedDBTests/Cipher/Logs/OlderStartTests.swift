import Foundation
import Testing

@testable import SealedDB

/// A log that has begun anew, of whose beginning the disk has kept an older state. SQLite takes that for an older log, or for none.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct OlderStartTests {
    private static let frameSize = 24 + 4096
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Writes a store and its log. The older log has `older`, which is in the file, and the newer one `newer`.
    /// - Parameter size: how many bytes of the newer log are as they were in the older one.
    private func makeStore(
        _ older: ClosedRange<Int>,
        _ newer: ClosedRange<Int>,
        olderBytes size: Int,
        isInFile: Bool = false
    ) throws {
        let database = try Database.testing(directory.file("service"), journalMode: .wal)
        defer { database.close() }
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0);
                PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        func update(to values: ClosedRange<Int>) throws {
            for value in values { try database.executeUpdate("UPDATE t SET v = \(value)") }
        }
        try update(to: older)
        _ = try database.checkpoint(.restart)
        let start = try directory.bytes("service-wal").prefix(size)
        var file = try directory.bytes("service")
        try update(to: newer)
        var log = try directory.bytes("service-wal")
        if isInFile {
            _ = try database.checkpoint(.passive)
            file = try directory.bytes("service")
        }
        log.replaceSubrange(0..<size, with: start)
        try directory.write("db", file)
        try directory.write("db-wal", log)
    }

    private func recovered() throws -> [Int?] {
        let report = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        #expect(!report.isComplete)
        let saved = try Database.testing(directory.file("new"))
        defer { saved.close() }
        return try saved.integers("SELECT v FROM t")
    }

    private func verify() throws -> IntegrityReport {
        try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true)
    }

    /// The header alone, a part of the first frame, nearly all of it. What is lost is told, and can be saved.
    @Test(arguments: [32, 512, 4096], [11...11, 11...12, 11...14])
    func noTransactionIsReadOfIt(size: Int, newer: ClosedRange<Int>) throws {
        try makeStore(1...4, newer, olderBytes: size)
        // Nothing continues a frame that is torn, nor the one behind it. But older frames follow, which the file has.
        guard size == 32 || newer.count > 2 else { return try expectNobodyOpens(directory.file("db")) }
        let report = try verify()
        #expect(!report.isSound && report.structureProblems.contains { $0.hasPrefix("log: ") }, "\(report)")
        let error = #expect(throws: DatabaseError.self) {
            try StoreBackup(path: directory.file("db"), key: .testing(1), to: directory.file("backup")).run()
        }
        #expect(error?.reason == .damaged, "\(error as Any)")
        #expect(try recovered() == [newer.upperBound])
    }

    /// SQLite would put the page of the first frame in the place of a newer one, which is in the file.
    @Test func aTransactionIsReadOfIt() throws {
        try makeStore(1...4, 11...14, olderBytes: 32 + Self.frameSize)
        try expectNobodyOpens(directory.file("db"))
        #expect(try recovered() == [14])
    }

    /// Nothing is lost then.
    @Test(arguments: [32, 512]) func theNewerLogIsInTheFile(size: Int) throws {
        try makeStore(1...2, 11...14, olderBytes: size, isInFile: true)
        #expect(try verify().isSound)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try database.integers("SELECT v FROM t") == [14])
    }

    /// Salts of a frame that were changed make no newer log of it.
    @Test(arguments: [0, 2]) func saltsOfOneFrame(index: Int) throws {
        try makeStore(1...2, 11...14, olderBytes: 0)
        var log = try [UInt8](directory.bytes("db-wal"))
        log[32 + index * Self.frameSize + 11] &+= 1
        try directory.write("db-wal", log)
        #expect(try !verify().isSound)
        #expect(try recovered() == [14])
    }

    /// A log goes on behind its end where a power failure tore a transaction. A second power failure can leave a part of the second
    /// transaction before a part of the first. Neither was acknowledged.
    @Test(arguments: [0, 1]) func twoPowerFailures(tornFrame: Int) throws {
        let database = try Database.testing(directory.file("service"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v, body);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8)
                INSERT INTO t SELECT i, 0, zeroblob(2500) FROM n;
                PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET v = 1 WHERE id = 1;
                """
        )
        let end = try directory.bytes("service-wal").count
        let file = try directory.bytes("service")
        /// What the log gets by a transaction of its own.
        func tail(_ name: String, _ sql: SQL) throws -> [UInt8] {
            try directory.write(name, file)
            try directory.write("\(name)-wal", directory.bytes("service-wal").prefix(end))
            let other = try Database.testing(directory.file(name))
            defer { other.close() }
            try other.executeUpdate(sql)
            return try [UInt8](directory.bytes("\(name)-wal").dropFirst(end))
        }
        let first = try tail("first", "UPDATE t SET v = 2")
        var second = try tail("second", "UPDATE t SET v = 3 WHERE id <= 3")
        let log = try directory.bytes("service-wal").prefix(end)
        database.close()
        try #require(second.count >= 2 * Self.frameSize && first.count >= second.count + 3 * Self.frameSize)
        // Of this frame, the second half did not come to the disk.
        let torn = (tornFrame * Self.frameSize + 2048)..<((tornFrame + 1) * Self.frameSize)
        second.replaceSubrange(torn, with: first[torn])
        try directory.write("db", file)
        try directory.write("db-wal", log + second + first.dropFirst(second.count))

        #expect(try verify().isSound)
        try StoreBackup(path: directory.file("db"), key: .testing(1), to: directory.file("backup")).run()
        let copy = try Database.testing(directory.file("backup"))
        defer { copy.close() }
        #expect(try copy.integers("SELECT sum(v) FROM t") == [1])
    }
}
