import Foundation
import Testing

@testable import SealedDB

/// What keeps a key from being changed is found before anything is changed.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RotationRefusalTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// The plan tells it already.
    @Test func aPlanWithAKeyThatIsGone() throws {
        let store = try SlotStore()
        let file = directory.file("key")
        try KeyFile.create(atPath: file)
        let rotation = KeyRotation(
            path: store.path,
            from: try .testing(1),
            to: try KeySource.keyFile(file).key(),
            reencryption: .init(keeping: [.init(.key(try .testing(2)), label: "safe", isRecovery: true)])
        )
        #expect(throws: Never.self) { try rotation.plan() }
        #expect(unlink(file) == 0)
        #expect(throws: DatabaseError.self) { try rotation.plan() }
        #expect(try store.count() == 20)
    }

    /// Whichever step it is after which the caller does not go on.
    @Test(arguments: [Configuration.JournalMode.wal, .delete], 1...4)
    func stoppedByTheCaller(mode: Configuration.JournalMode, step: Int) throws {
        struct Stop: Error {}
        var configuration = Configuration(key: try .testing(1))
        configuration.journalMode = mode
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in try db.fill(rows: 5000) }
        var count = 0
        let error = #expect(throws: DatabaseError.self) {
            try queue.rotateKey(to: .testing(2)) { _ in
                count += 1
                if count == step { throw Stop() }
            }
        }
        #expect(error?.underlyingError is Stop && count == step, "\(count): \(error as Any)")
        queue.close()
        #expect(try Database.testing(directory.file("db"), key: 1).integers("SELECT count(*) FROM t") == [5000])
    }

    /// SQLite would leave out what stands behind the damage, and a rekey writes to the store.
    @Test func inPlaceBesideADamagedLog() throws {
        let service = try Database.testing(directory.file("db"), journalMode: .wal)
        try service.fill(rows: 30)
        for id in 1...20 { try service.executeUpdate("DELETE FROM t WHERE id = ?", values: [id]) }
        try directory.keep("db", "db-wal", of: service)
        var log = try directory.bytes("db-wal")
        log[32 + 24 + 4120 + 100] ^= 1
        try directory.write("db-wal", log)
        let before = try (directory.bytes("db"), directory.bytes("db-wal"))
        let opening = StoreOpening(path: directory.file("db"), key: try .testing(1), flags: SQLITE_OPEN_READWRITE)
        #expect(throws: DatabaseError.self) { try InPlaceRekey(opening: opening, newKey: .testing(2)).run() }
        #expect(try directory.bytes("db") == before.0 && directory.bytes("db-wal") == before.1)
    }

    /// A copy that was not finished is not taken for a complete one.
    @Test func aCopyThatCannotBeFinished() throws {
        func copy(_ name: String) throws -> (Database, any ServiceCopy) {
            var configuration = Configuration(key: try .testing(1))
            configuration.journalMode = .wal
            let database = Database(path: directory.file(name), configuration: configuration)
            // Nobody can follow the log of this VFS, so pages are copied from the connection itself.
            try #require(database.open(withFlags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs: "unix-excl"))
            try database.fill(rows: 20)
            return (database, try database.liveCopy(for: .testing(2)))
        }
        func complete(_ database: Database, _ copy: any ServiceCopy) throws {
            try copy.complete(database.openConnection(), nil)
        }
        let (sound, first) = try copy("sound")
        let count = CallWatch(directory.path)
        try complete(sound, first)
        let calls = count.endWithAll()
        first.discard()
        sound.close()
        // What is written to the store itself is in its log, too.
        let ofCopy = calls.indices.filter { calls[$0].hasPrefix("pwrite .") || calls[$0].hasPrefix("fsync .") }
        #expect(!ofCopy.isEmpty, "\(calls)")
        for index in ofCopy {
            let (database, other) = try copy("db-\(index)")
            let watch = CallWatch(directory.path, failing: index...index)
            let result = Result { try complete(database, other) }
            watch.end()
            #expect(throws: DatabaseError.self, "\(calls[index])") { try result.get() }
            other.discard()
            #expect(try database.integers("SELECT count(*) FROM t") == [20])
            database.close()
        }
    }

    /// That an expression fails is a problem of the table, and not of who looks at it.
    @Test func anIndexWhoseExpressionFails() throws {
        let database = try Database.testing(directory.file("db"))
        try database.execute(
            script: """
                CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (-9223372036854775808);
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (abs(a))' WHERE name = 'i';
                PRAGMA writable_schema = OFF;
                """
        )
        database.close()
        let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true)
        #expect(!report.isSound && report.tablesNotCompared == [], "\(report)")
        #expect(report.structureProblems.contains { $0.contains("integer overflow") }, "\(report.structureProblems)")
    }
}
