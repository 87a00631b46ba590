import Foundation
import Testing

@testable import SealedDB

/// A log that has begun anew is written over its older frames. A kill or a power failure can leave the header of a new frame with
/// the older page behind it, which is in the file. Nothing is damaged: that frame was never acknowledged.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct TornFrameTests {
    private static let frameSize = 24 + 4096
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// - Parameter count: how many bytes of the page of the last frame are new.
    @Test(arguments: [0, 512, 2048, 4080], [1, 2])
    func aNewHeaderBeforeAnOlderPage(count: Int, frameCount: Int) throws {
        let database = try Database.testing(directory.file("service"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0);
                PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        func update(to values: ClosedRange<Int>) throws {
            for value in values { try database.executeUpdate("UPDATE t SET v = \(value)") }
        }
        try update(to: 1...frameCount)
        _ = try database.checkpoint(.restart)
        let (file, older) = try (directory.bytes("service"), [UInt8](directory.bytes("service-wal")))
        try update(to: 11...(10 + frameCount))
        var log = try [UInt8](directory.bytes("service-wal"))
        database.close()
        try #require(log.count == older.count && log.count == 32 + frameCount * Self.frameSize)
        let torn = 32 + (frameCount - 1) * Self.frameSize + 24 + count
        log.replaceSubrange(torn..., with: older[torn...])
        try directory.write("db", file)
        try directory.write("db-wal", log)

        let acknowledged = frameCount == 1 ? 1 : 10 + frameCount - 1
        let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true)
        #expect(report.isSound, "\(report)")
        try StoreBackup(path: directory.file("db"), key: .testing(1), to: directory.file("backup")).run()
        _ = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        for name in ["backup", "new", "db"] {
            let copy = try Database.testing(directory.file(name))
            defer { copy.close() }
            #expect(try copy.integers("SELECT v FROM t") == [acknowledged], "\(name)")
        }
    }

    /// Where more of the log is damaged, a recovery takes the torn page for no proof that the file is newer.
    @Test func aTornPageBehindDamage() throws {
        let database = try Database.testing(directory.file("service"), journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0);
                CREATE TABLE u (a); PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        for value in 1...6 { try database.executeUpdate("UPDATE t SET v = \(value)") }
        _ = try database.checkpoint(.restart)
        let (file, older) = try (directory.bytes("service"), [UInt8](directory.bytes("service-wal")))
        try database.executeUpdate("INSERT INTO u VALUES (1)")
        for value in 11...15 { try database.executeUpdate("UPDATE t SET v = \(value)") }
        var log = try [UInt8](directory.bytes("service-wal"))
        database.close()
        try #require(log.count == older.count && log.count == 32 + 6 * Self.frameSize)
        let torn = 32 + 5 * Self.frameSize + 24 + 2048
        log.replaceSubrange(torn..., with: older[torn...])
        // The checksum of the second frame.
        log[32 + Self.frameSize + 18] ^= 1
        try directory.write("db", file)
        try directory.write("db-wal", log)
        _ = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        let saved = try Database.testing(directory.file("new"))
        defer { saved.close() }
        #expect(try saved.integers("SELECT v FROM t") == [14])
        #expect(try saved.integers("SELECT a FROM u") == [1])
    }
}
