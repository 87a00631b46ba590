import Foundation
import Testing

@testable import SealedDB

/// A backup that a queue or pool makes holds one state of the store, whoever writes or rotates meanwhile.
@Suite(.hangLimit)
struct BackupInServiceTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func configuration(_ key: UInt8 = 1) throws -> Configuration {
        Configuration(key: isEncrypting ? try .testing(key) : nil)
    }

    private func pool() throws -> DatabasePool {
        let pool = DatabasePool(path: directory.file("db"), configuration: try configuration())
        try fill(pool)
        return pool
    }

    /// Both columns always agree, and so do both tables.
    private func fill(_ access: some DatabaseAccess) throws {
        try access.write { db in
            try db.execute(
                script: """
                    CREATE TABLE t (id INTEGER PRIMARY KEY, a, b); CREATE TABLE u (id INTEGER PRIMARY KEY);
                    CREATE INDEX i ON t (b);
                    """
            )
            for number in 0..<2000 {
                try db.executeUpdate("INSERT INTO t (a, b) VALUES (\(number), \(String(repeating: "x", count: 300)))")
                try db.executeUpdate("INSERT INTO u DEFAULT VALUES")
            }
        }
    }

    private func counts(_ db: Database) throws -> [Int] {
        try ["SELECT count(*) FROM t", "SELECT count(*) FROM u"].map {
            try db.executeQuery(SQL(raw: $0)).scalar(Int.self) ?? -1
        }
    }

    private func counts(ofFile name: String, _ key: UInt8 = 1) throws -> [Int] {
        let database = Database(path: directory.file(name), configuration: try configuration(key))
        try database.openVerified()
        defer { database.close() }
        #expect(try database.executeQuery("PRAGMA integrity_check").scalar(String.self) == "ok")
        return try counts(database)
    }

    @Test func queueAndPool() async throws {
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration())
        try fill(queue)
        let report = try await queue.backup(to: directory.file("copy"))
        #expect(report.pageCount > 100)
        #expect(report.path == directory.file("copy"))
        #expect(try counts(ofFile: "copy") == [2000, 2000])
        queue.close()
        let pool = DatabasePool(path: directory.file("db"), configuration: try configuration())
        try await pool.backup(to: directory.file("copy 2"))
        #expect(try counts(ofFile: "copy 2") == [2000, 2000])
        #expect(!FileManager.default.fileExists(atPath: directory.file("copy 2-wal")))
    }

    /// What is written from the first step on is not in the copy, and writers do not wait for it.
    @Test func writersGoOn() throws {
        let pool = try pool()
        var hasWritten = false
        try pool.backup(to: directory.file("copy")) { _ in
            guard !hasWritten else { return }
            hasWritten = true
            // On this thread it would be a call within a block. If the backup kept it out, it would wait for ever.
            let written = Gate()
            Thread.detachNewThread {
                #expect(throws: Never.self) {
                    try pool.writeWithoutTransaction { db in
                        try db.execute(
                            script: "BEGIN; DELETE FROM t WHERE id > 5; DELETE FROM u WHERE id > 5; COMMIT; VACUUM"
                        )
                    }
                }
                written.open()
            }
            written.waitBlocking()
        }
        #expect(hasWritten)
        #expect(try counts(ofFile: "copy") == [2000, 2000])
        #expect(try pool.read(counts) == [5, 5])
    }

    @Test(.enabled(if: isEncrypting, "the plain build takes no key")) func aKeyOfItsOwn() throws {
        let pool = try pool()
        try pool.backup(to: directory.file("copy"), key: .testing(7))
        #expect(try counts(ofFile: "copy", 7) == [2000, 2000])
        let error = #expect(throws: DatabaseError.self) { try counts(ofFile: "copy", 1) }
        #expect(error?.reason == .wrongKey)
        #expect(try pool.read(counts) == [2000, 2000])
    }

    /// The rotation begins during the backup, and can end only after it.
    @Test(.enabled(if: isEncrypting, "rotation takes a key")) func besideARotation() async throws {
        let pool = try pool()
        let (hasBegun, order) = (Gate(), Log<String>())
        let rotation = Task {
            await hasBegun.wait()
            try await pool.rotateKey(to: .testing(2))
            order.add("rotated")
        }
        try await pool.backup(to: directory.file("copy")) { state in
            hasBegun.open()
            if state.phase == .swap { order.add("copied") }
        }
        try await rotation.value
        #expect(order.values == ["copied", "rotated"])
        #expect(try counts(ofFile: "copy", 1) == [2000, 2000])
        // The next one has the new key.
        try await pool.backup(to: directory.file("copy 2"))
        #expect(try counts(ofFile: "copy 2", 2) == [2000, 2000])
    }

    @Test(.enabled(if: isEncrypting, "the plain build takes no key")) func databasesInMemoryAndWithoutKey() throws {
        let plain = try DatabaseQueue(path: nil, configuration: Configuration())
        try fill(plain)
        try plain.backup(to: directory.file("sealed"), key: .testing(1))
        #expect(try counts(ofFile: "sealed", 1) == [2000, 2000])
        try plain.backup(to: directory.file("plain"))
        #expect(
            try Data(contentsOf: URL(fileURLWithPath: directory.file("plain"))).starts(with: Data("SQLite format".utf8))
        )
        let keyed = try DatabaseQueue(path: nil, configuration: configuration(3))
        try fill(keyed)
        try keyed.backup(to: directory.file("from memory"))
        #expect(try counts(ofFile: "from memory", 3) == [2000, 2000])
    }

    /// It has no pages. Its copy has one.
    @Test(arguments: [true, false]) func anEmptyDatabaseInMemory(isKeyed: Bool) throws {
        let configuration = isKeyed && isEncrypting ? try configuration(3) : Configuration()
        try DatabaseQueue(path: nil, configuration: configuration).backup(to: directory.file("copy"))
        let copy = Database(path: directory.file("copy"), configuration: configuration)
        try copy.openVerified()
        #expect(try copy.integers("SELECT count(*) FROM sqlite_schema") == [0])
        #expect(copy.close())
    }

    /// The library does not know the key, so the copy would be plaintext.
    @Test(.enabled(if: isEncrypting, "the plain build takes no key")) func aKeyThatWasSetBySQL() throws {
        var configuration = Configuration()
        configuration.prepare = { db in try db.executeUpdate("PRAGMA key = 'secret'") }
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try fill(pool)
        let names = directory.names
        let error = #expect(throws: DatabaseError.self) { try pool.backup(to: directory.file("copy")) }
        #expect(error?.reason == .keyRequired)
        #expect(directory.names == names)
        let image = #expect(throws: DatabaseError.self) { try pool.inDatabase { db in _ = try db.serialized() } }
        #expect(image?.reason == .keyRequired)
        try pool.backup(to: directory.file("copy"), key: .testing(1))
        #expect(try counts(ofFile: "copy") == [2000, 2000])
    }

    // MARK: Failures

    @Test func aFileThatExists() throws {
        let pool = try pool()
        try directory.write("copy", Array("mine".utf8))
        let error = #expect(throws: DatabaseError.self) { try pool.backup(to: directory.file("copy")) }
        #expect(error?.reason == .alreadyExists)
        #expect(try Data(contentsOf: URL(fileURLWithPath: directory.file("copy"))) == Data("mine".utf8))
        let itself = #expect(throws: DatabaseError.self) { try pool.backup(to: directory.file("db")) }
        #expect(itself?.reason == .alreadyExists)
        #expect(throws: DatabaseError.self) { try pool.backup(to: directory.file("nowhere/copy")) }
        #expect(try pool.read(counts) == [2000, 2000])
    }

    @Test func progressThatThrows() throws {
        struct Enough: Error {}
        let pool = try pool()
        let before = directory.names
        let error = #expect(throws: DatabaseError.self) {
            try pool.backup(to: directory.file("copy")) { _ in throw Enough() }
        }
        #expect(error?.underlyingError is Enough)
        #expect(directory.names == before)
        #expect(try pool.read(counts) == [2000, 2000])
    }

    @Test func cancelledBackup() async throws {
        let pool = try pool()
        let before = directory.names
        let (hasBegun, path) = (Gate(), directory.file("copy"))
        let backup = Task {
            try await pool.backup(to: path) { _ in
                hasBegun.open()
                while !Task.isCancelled { sched_yield() }
            }
        }
        await hasBegun.wait()
        backup.cancel()
        await #expect(throws: CancellationError.self) { try await backup.value }
        #expect(directory.names == before)
        #expect(try await pool.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } == 2000)
    }

    @Test(.enabled(if: isEncrypting, "only authentication finds it")) func aDamagedPage() throws {
        let pool = try pool()
        try pool.writeWithoutTransaction { db in try db.executeUpdate("PRAGMA wal_checkpoint(TRUNCATE)") }
        pool.releaseAllDatabases()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: directory.file("db")))
        try file.seek(toOffset: 4096 * 40 + 100)
        try file.write(contentsOf: Data([1, 2, 3, 4]))
        try file.close()
        let error = #expect(throws: DatabaseError.self) { try pool.backup(to: directory.file("copy")) }
        #expect(error?.reason == .damaged)
        #expect(!FileManager.default.fileExists(atPath: directory.file("copy")))
    }
}
