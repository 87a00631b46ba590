import Foundation
import SealedDB
import Testing

/// Result sets and databases that go in an odd order. That the connection was really closed shows in the log's file,
/// which SQLite removes with the last connection; leaks and uses after the end show under the address sanitizer, with
/// which `scripts/test` runs these tests too.
@Suite(.hangLimit)
struct LifetimeTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A value that goes from one thread to another.
    private struct Handed<T>: @unchecked Sendable {
        let value: T
    }

    private func drop<T: AnyObject>(_ value: consuming T) {
        let handed = Handed(value: Unmanaged.passRetained(value))
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            handed.value.release()
            done.signal()
        }
        done.wait()
    }

    private func open() throws -> Database {
        let db = try Database.testing(directory.file("db"), journalMode: .wal)
        try db.fill(rows: 3)
        return db
    }

    private func expectClosed() {
        #expect(directory.names == ["db"])
    }

    @Test func setDroppedElsewhereBeforeClosing() throws {
        let db = try open()
        for _ in 0..<20 {
            let set = try db.executeQuery("SELECT * FROM t", values: nil)
            #expect(set.next())
            drop(set)
        }
        #expect(db.close())
        expectClosed()
    }

    /// Within a hook SQLite may not be called. The next statement ends what was dropped there, which would keep it from all
    /// that needs the connection for itself.
    @Test func setDroppedInAHook() throws {
        final class Holder { var set: ResultSet? }
        let db = try open()
        let holder = Holder()
        holder.set = try db.executeQuery("SELECT * FROM t", values: nil)
        #expect(holder.set?.next() == true)
        db.updateHook = { _ in holder.set = nil }
        try db.executeUpdate("UPDATE t SET body = 'other' WHERE id = 1", values: nil)
        db.updateHook = nil
        #expect(holder.set == nil)
        try db.executeUpdate("VACUUM", values: nil)
        #expect(db.close())
        expectClosed()
    }

    @Test func setDroppedElsewhereAfterClosing() throws {
        let db = try open()
        let set = try db.executeQuery("SELECT * FROM t", values: nil)
        #expect(set.next())
        #expect(db.close())
        expectClosed()
        drop(set)
    }

    @Test func databaseDroppedBeforeItsSets() throws {
        var db: Database? = try open()
        let set = try #require(try db?.executeQuery("SELECT * FROM t", values: nil))
        db = nil
        #expect(set.next() && set.next())
        set.close()
        expectClosed()
    }

    @Test func preparedSetThatFailed() throws {
        let db = try open()
        try db.executeUpdate("CREATE UNIQUE INDEX i ON t (body)", values: nil)
        let insert = try db.prepare("INSERT INTO t (body) VALUES (?)")
        for _ in 0..<3 {
            #expect(insert.bind(with: ["same"]))
            _ = insert.step()
            #expect(!insert.bind(with: []))
        }
        #expect(db.close())
        expectClosed()
        #expect(!insert.step())
    }

    @Test func setThatFailedOnItsWay() throws {
        let db = try open()
        let sql = "SELECT CASE id WHEN 2 THEN abs(-9223372036854775808) ELSE id END FROM t"
        for _ in 0..<3 {
            let set = try db.executeQuery(sql, values: nil)
            #expect(set.next() && !set.next())
            #expect(db.lastErrorMessage() == "integer overflow")
        }
        #expect(db.close())
        expectClosed()
    }

    @Test func closingWithinABlockOfARow() throws {
        let db = try open()
        let isStopped = !db.executeStatements("SELECT * FROM t; SELECT * FROM t") { _ in
            #expect(db.close())
            return 0
        }
        #expect(isStopped)
        #expect(!db.isOpen)
        expectClosed()
    }

    @Test func statementOfAFormerOpening() throws {
        let db = try open()
        let set = try db.executeQuery("SELECT * FROM t", values: nil)
        let statement = try #require(set.statement)
        #expect(db.close() && db.open())
        #expect(!set.next() && set.columnCount == 0)
        statement.reset()
        statement.close()
        #expect(try db.integers("SELECT count(*) FROM t") == [3])
    }

    @Test func queueAndPoolDroppedWithSetsOutside() throws {
        _ = try open()
        let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        var sets: [ResultSet] = []
        do {
            let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
            let pool = DatabasePool(path: directory.file("db"), configuration: configuration)
            for _ in 0..<3 {
                queue.inDatabase { db in
                    sets += [db.executeQuery("SELECT * FROM t", withArgumentsIn: [])].compactMap(\.self)
                }
                pool.inDatabase { db in
                    sets += [db.executeQuery("SELECT * FROM t", withArgumentsIn: [])].compactMap(\.self)
                }
            }
        }
        expectClosed()
        #expect(sets.count == 6 && !sets.contains { $0.next() })
        for set in sets { drop(set) }
    }
}
