import Foundation
import Testing

@testable import SealedDB

/// `read` and `write` of a pool: one connection writes, others read.
@Suite(.hangLimit)
struct PoolReadingTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func pool(readers: Int = 2) throws -> DatabasePool {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.maximumReaderCount = readers
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        try pool.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        return pool
    }

    @Test func readersDoNotWaitForTheWriterNorItForThem() async throws {
        let pool = try pool()
        let written = Gate()
        let read = Gate()
        let writer = Task {
            try await pool.write { db in
                try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
                written.open()
                read.waitBlocking()
            }
        }
        await written.wait()
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [0])
        read.open()
        try await writer.value
        let reading = Gate()
        let release = Gate()
        let reader = Task {
            try await pool.read { db in
                let before = try db.integers("SELECT count(*) FROM t")
                reading.open()
                release.waitBlocking()
                return (before, try db.integers("SELECT count(*) FROM t"))
            }
        }
        await reading.wait()
        try await pool.write { db in try db.executeUpdate("INSERT INTO t VALUES (2)", values: nil) }
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [2])
        release.open()
        #expect(try await reader.value == ([1], [1]))
    }

    @Test func readersAreAsManyAsConfigured() async throws {
        let pool = try pool(readers: 3)
        let inside = Log<Int>()
        let release = Gate()
        let tasks = (0..<20).map { number in
            Task {
                try await pool.read { db in
                    _ = try db.integers("SELECT 1")
                    inside.add(number)
                    release.waitBlocking()
                }
            }
        }
        while inside.values.count < 3 { await Task.yield() }
        #expect(pool.countOfCheckedOutDatabases == 3)
        #expect(pool.countOfOpenDatabases == 4)
        #expect(inside.values.count == 3)
        release.open()
        for task in tasks { try await task.value }
        #expect(inside.values.count == 20)
        #expect(pool.countOfCheckedOutDatabases == 0 && pool.countOfCheckedInDatabases == 4)
    }

    @Test func connectionsAreOpenedWhenNeeded() throws {
        let path = directory.file("db")
        let pool = DatabasePool(path: path, configuration: Configuration(key: isEncrypting ? try .testing(1) : nil))
        #expect(pool.countOfOpenDatabases == 0 && directory.names == [])
        #expect(try pool.read { db in try db.integers("SELECT 1") } == [1])
        #expect(pool.countOfOpenDatabases == 1)
        try pool.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
        #expect(pool.countOfOpenDatabases == 2)
        pool.releaseAllDatabases()
        #expect(pool.countOfOpenDatabases == 0 && directory.names == ["db"])
        #expect(try pool.read { db in try db.integers("SELECT count(*) FROM t") } == [0])
    }

    @Test func manyOpenTheSameNewFileAtOnce() async throws {
        for round in 0..<10 {
            let path = directory.file("new\(round)")
            let pool = DatabasePool(path: path, configuration: Configuration(key: isEncrypting ? try .testing(1) : nil))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        if number % 2 == 0 {
                            _ = try await pool.read { db in try db.integers("SELECT count(*) FROM sqlite_schema") }
                        } else {
                            try await pool.write { db in
                                try db.executeUpdate("CREATE TABLE IF NOT EXISTS t (n)", values: nil)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [0])
            await pool.shutDown()
        }
    }

    @Test func releasedWhileInUse() throws {
        let pool = try pool()
        try pool.read { db in
            _ = try db.integers("SELECT 1")
            pool.releaseAllDatabases()
            #expect(pool.countOfOpenDatabases == 1)
            #expect(try db.integers("SELECT count(*) FROM t") == [0])
        }
        #expect(pool.countOfOpenDatabases == 0)
        #expect(directory.names == ["db"])
    }

    @Test func nestedCalls() throws {
        let pool = try pool()
        for nested: (DatabasePool) throws -> Void in [
            { try $0.read { _ in try pool.read { _ in } } },
            { try $0.read { _ in try pool.write { _ in } } },
            { try $0.read { _ in try pool.writeWithoutTransaction { _ in } } },
            { try $0.write { _ in try pool.write { _ in } } },
        ] {
            let error = #expect(throws: DatabaseError.self) { try nested(pool) }
            #expect(error?.reason == .misuse)
        }
        // Reading within a write sees the last commit.
        let counts = try pool.write { db in
            try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil)
            return try pool.read { db in try db.integers("SELECT count(*) FROM t") }
        }
        #expect(counts == [0])
    }

    @Test func inMemoryBothShareOneConnection() async throws {
        let pool = DatabasePool(path: nil)
        try await pool.write { db in try db.executeUpdate("CREATE TABLE t AS SELECT 5 AS n", values: nil) }
        #expect(try await pool.read { db in try db.integers("SELECT n FROM t") } == [5])
        await #expect(throws: DatabaseError.self) {
            try await pool.read { db in try db.executeUpdate("DELETE FROM t", values: nil) }
        }
    }

    @Test func onlyTheWriterMovesTheLog() async throws {
        let pool = try pool()
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
        try await pool.write { db in
            try db.executeUpdate(sql + "INSERT INTO t SELECT hex(zeroblob(500)) FROM n", values: nil)
        }
        // A second one: its commit is made after the first's checkpoint, and begins the log anew.
        try await pool.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil) }
        let size = try #require(FileManager.default.attributesOfItem(atPath: directory.file("db"))[.size] as? Int)
        #expect(size > 4_000_000)
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func wrongKeyFailsEveryCall() async throws {
        await (try pool()).shutDown()
        let pool = DatabasePool(path: directory.file("db"), configuration: Configuration(key: try .testing(2)))
        for _ in 0..<2 {
            let reading = await #expect(throws: DatabaseError.self) { try await pool.read { _ in } }
            #expect(reading?.reason == .wrongKey)
            let writing = await #expect(throws: DatabaseError.self) { try await pool.write { _ in } }
            #expect(writing?.reason == .wrongKey)
        }
        #expect(pool.countOfOpenDatabases == 0)
    }

    @Test func readOnlyPoolsRead() async throws {
        await (try pool()).shutDown()
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.isReadOnly = true
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
        #expect(try await pool.read { db in try db.integers("SELECT count(*) FROM t") } == [0])
        let error = await #expect(throws: DatabaseError.self) {
            try await pool.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil) }
        }
        #expect(error?.code == SQLITE_READONLY)
    }
}
