import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// What the `prepare` closure of a configuration may not do, and what an opening never forgets.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PreparationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let forbidden: [@Sendable (Database) throws -> Void] = [
        { db in db.setKey("secret") },
        { db in db.setKeyWith(Data("secret".utf8)) },
        { db in db.close() },
        { db in
            db.close()
            db.open()
        },
        { db in db.rekey("secret") },
        { db in try db.rotateKey(to: .testing(2)) },
    ]

    @Test(arguments: forbidden.indices)
    func prepareCannotCloseItsDatabaseOrChangeItsKey(number: Int) throws {
        let path = directory.file("db")
        try Database.testing(path).close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        var configuration = Configuration(key: try .testing(1))
        configuration.prepare = PreparationTests.forbidden[number]
        let database = Database(path: path, configuration: configuration)
        let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
        #expect(error?.reason == .misuse)
        #expect(error?.message.contains("prepare") == true)
        #expect(!database.isOpen)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
        let pool = DatabasePool(path: path, configuration: configuration)
        #expect(throws: DatabaseError.self) { try pool.write { _ in } }
        #expect(throws: DatabaseError.self) { try pool.read { _ in } }
        let sound = try Database.testing(path)
        #expect(sound.close())
    }

    /// Without a key in the configuration, a file that is made must not get its contents in plaintext.
    @Test func aKeyThatIsSetInPrepareIsNotForgotten() throws {
        var configuration = Configuration()
        configuration.prepare = { db in db.setKey("secret") }
        let database = Database(path: directory.file("new"), configuration: configuration)
        #expect(!database.open())
        #expect(!database.isOpen)
        #expect(!database.executeUpdate("CREATE TABLE t (a)", withArgumentsIn: []))
        let size = try? FileManager.default.attributesOfItem(atPath: directory.file("new"))[.size] as? Int
        #expect(size == nil || size == 0)
    }

    @Test func aKeyThatDoesNotFitLeavesTheFormerOne() throws {
        let path = directory.file("db")
        let database = try Database.testing(path)
        try database.executeUpdate("CREATE TABLE t (a)")
        #expect(!database.setKey("wrong"))
        #expect(!database.isOpen)
        #expect(database.open())
        #expect(database.tableExists("t"))
        database.close()
    }

    /// An empty file that somebody put in the store's place does not become one in plaintext.
    @Test func aKeyThatABlockOfAPoolSetStays() throws {
        let path = directory.file("db")
        let pool = DatabasePool(path: path)
        pool.inDatabase { db in
            #expect(db.setKey("secret"))
            #expect(db.executeStatements("CREATE TABLE t (a); INSERT INTO t VALUES (1)"))
        }
        #expect(unlink(path) == 0)
        for suffix in ["-wal", "-shm", "-journal"] { unlink(path + suffix) }
        #expect(FileManager.default.createFile(atPath: path, contents: Data()))
        pool.inDatabase { db in
            #expect(db.executeStatements("CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES ('marker')"))
        }
        pool.releaseAllDatabases()
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(!bytes.isEmpty)
        #expect(!bytes.starts(with: "SQLite".utf8))
        #expect(bytes.range(of: Data("marker".utf8)) == nil)
    }

    /// A block that opens its database again is stopped as any other.
    @Test func blocksThatPrepareAnewAreStopped() async throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.prepare = { db in try db.executeUpdate("PRAGMA cache_size = 100", values: nil) }
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        let task = Task {
            try await queue.writeWithoutTransaction { db in
                db.close()
                #expect(db.open())
                withUnsafeCurrentTask { $0?.cancel() }
                // Finite, so that the test ends also if nothing stops it.
                let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
                return try db.integers(long + "SELECT count(*) FROM n")
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func aDatabaseThatHadAKeyNeverOpensWithoutOne() throws {
        let database = try Database.testing(directory.file("db"))
        database.close()
        database.configuration.key = nil
        #expect(!database.open())
        #expect(database.lastErrorMessage().contains("has none now"))
    }

    /// The pool's other connections would keep the old one.
    @Test func aBlockOfAPoolDoesNotChangeItsKey() throws {
        let path = directory.file("db")
        let pool = DatabasePool(path: path, configuration: Configuration(key: try .testing(1)))
        let block: (Database) throws -> Void = { db in
            #expect(!db.rekey("secret"))
            #expect(db.lastErrorMessage().contains("rotateKey(to:) of the pool"))
            #expect(!db.rekey(with: Data("secret".utf8)))
            let error = #expect(throws: DatabaseError.self) { try db.rotateKey(to: .testing(2)) }
            #expect(error?.message.contains("rotateKey(to:) of the pool") == true)
        }
        try pool.inDatabase(block)
        try pool.writeWithoutTransaction(block)
        try pool.write { db in try db.executeUpdate("CREATE TABLE t (a)") }
        #expect(try pool.read { db in db.tableExists("t") })
        try pool.rotateKey(to: .testing(2))
        #expect(try pool.read { db in db.tableExists("t") })
    }
}
