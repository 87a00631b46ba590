import Foundation
import Testing

@testable import SealedDB

/// Rotations of a store that becomes smaller meanwhile: SQLite then takes the copy for complete, and forwards no more.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ShrinkingStoreRotationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    enum User: CaseIterable, Sendable { case queue, pool }
    /// How the store loses pages.
    enum Shrinking: CaseIterable, Sendable {
        case vacuum, autoVacuum, incremental

        var mode: Int { self == .vacuum ? 0 : self == .autoVacuum ? 1 : 2 }
    }

    private func access(_ user: User, key: UInt8) throws -> any DatabaseAccess {
        let configuration = Configuration(key: try .testing(key))
        return switch user {
        case .queue: try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        case .pool: DatabasePool(path: directory.file("db"), configuration: configuration)
        }
    }

    private func rotate(_ access: any DatabaseAccess, to key: Key, progress: ((KeyRotation.Progress) throws -> Void)?)
        throws
    {
        if let queue = access as? DatabaseQueue {
            try queue.rotateKey(to: key, progress: progress)
        } else if let pool = access as? DatabasePool {
            try pool.rotateKey(to: key, progress: progress)
        }
    }

    private func make(_ shrinking: Shrinking, rows: Int, _ mode: Configuration.JournalMode = .wal) throws {
        let db = try Database.testing(directory.file("db"))
        #expect(
            db.executeStatements(
                "PRAGMA auto_vacuum = \(raw: shrinking.mode); VACUUM; PRAGMA journal_mode = \(raw: mode.rawValue)"
            )
        )
        try db.fill(rows: rows)
        #expect(db.executeStatements("CREATE TABLE kept (id INTEGER PRIMARY KEY, body TEXT)"))
        db.close()
    }

    private func shrink(_ db: Database, _ shrinking: Shrinking) throws {
        try db.executeUpdate("DELETE FROM t WHERE id > (SELECT max(id) / 10 FROM t)")
        switch shrinking {
        case .vacuum: try db.executeUpdate("VACUUM")
        case .autoVacuum: break
        case .incremental: #expect(db.executeStatements("PRAGMA incremental_vacuum"))
        }
    }

    /// In the middle of the copy, the store becomes shorter than what is copied, and goes on being written to.
    @Test(arguments: User.allCases, Shrinking.allCases)
    func nothingWrittenAfterwardsIsLost(user: User, shrinking: Shrinking) throws {
        try make(shrinking, rows: 12_000)
        let access = try access(user, key: 1)
        var steps = 0
        var kept = 0
        var hasShrunk = false
        try rotate(access, to: .testing(2)) { state in
            guard state.phase == .copy else { return }
            steps += 1
            if !hasShrunk, state.completedPages > state.totalPages / 3 {
                hasShrunk = true
                try access.writeWithoutTransaction { db in try shrink(db, shrinking) }
            }
            kept += 1
            try access.write { db in
                try db.executeUpdate("INSERT INTO kept (body) VALUES (hex(zeroblob(200)))")
                try db.executeUpdate("INSERT INTO t (body) VALUES (hex(zeroblob(200)))")
            }
        }
        #expect(hasShrunk && steps > 4)
        #expect(try access.read { db in try db.executeQuery("SELECT count(*) FROM kept").scalar(Int.self) } == kept)
        #expect(try access.read { db in try db.executeQuery("PRAGMA integrity_check").scalar(String.self) } == "ok")
    }

    /// A copy that SQLite takes for complete is begun anew, not trusted.
    @Test func anEarlyEndBeginsAnew() throws {
        try make(.vacuum, rows: 12_000, .delete)
        let db = try Database.testing(directory.file("db"), journalMode: .delete)
        let copy = try db.liveCopy(for: .testing(2))
        while copy.progress.completedPages < 100 { try copy.advance() }
        try shrink(db, .vacuum)
        try copy.advance()
        #expect(copy.progress.completedPages < copy.progress.totalPages)
        try db.executeUpdate("INSERT INTO kept (body) VALUES ('after the end')")
        try copy.complete(#require(db.connection))
        let target = Database(path: copy.file.path, configuration: Configuration(key: try .testing(2)))
        try target.openVerified()
        #expect(try target.executeQuery("SELECT body FROM kept").scalar(String.self) == "after the end")
        target.close()
        copy.discard()
    }

    /// A copy that is authentic and sound, but not what the store holds, is not put in its place.
    @Test func aCopyThatDiffersIsMadeAnew() throws {
        try make(.vacuum, rows: 500)
        let db = try Database.testing(directory.file("db"))
        try db.executeUpdate("INSERT INTO kept (body) VALUES ('right')")
        let copy = try db.liveCopy(for: .testing(2))
        while !copy.isNearlyComplete { try copy.advance() }
        try copy.complete(#require(db.connection))
        let target = Database(path: copy.file.path, configuration: Configuration(key: try .testing(2)))
        try target.openVerified()
        try target.executeUpdate("UPDATE kept SET body = 'wrong'")
        target.close()
        db.close()
        _ = try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run(
            with: copy,
            progress: nil
        )
        let found = try Database.testing(directory.file("db"), key: 2)
        #expect(try found.executeQuery("SELECT body FROM kept").scalar(String.self) == "right")
    }

    /// Four writers and a job that deletes and gives space back, while the key changes again and again.
    @Test(arguments: User.allCases, [Shrinking.vacuum, .autoVacuum])
    func everyAcknowledgedRowIsThere(user: User, shrinking: Shrinking) throws {
        try make(shrinking, rows: 2000)
        let access = try access(user, key: 1)
        let stop = StopFlag()
        let acknowledged = Guarded([Int64]())
        let failures = Guarded([String]())
        let group = DispatchGroup()
        func work(_ body: @escaping @Sendable () throws -> Void) {
            let thread = Thread {
                defer { group.leave() }
                while !stop.isSet {
                    do { try body() } catch { failures.withLock { $0.append("\(error)") } }
                }
            }
            group.enter()
            thread.start()
        }
        let user = access
        for writer in 0..<4 {
            work {
                let id = Int64.random(in: 0..<1 << 50) << 2 | Int64(writer)
                try user.write { db in
                    try db.executeUpdate("INSERT INTO kept VALUES (?, hex(randomblob(100)))", id)
                }
                acknowledged.withLock { $0.append(id) }
            }
        }
        work {
            try user.writeWithoutTransaction { db in
                try db.executeUpdate("INSERT INTO t (body) SELECT hex(zeroblob(500)) FROM t LIMIT 1000")
                try db.executeUpdate("DELETE FROM t WHERE id > 1000")
                if shrinking == .vacuum { try db.executeUpdate("VACUUM") }
            }
        }
        var key: UInt8 = 1
        for _ in 0..<4 {
            key += 1
            try rotate(access, to: .testing(key), progress: nil)
        }
        stop.set()
        group.wait()
        #expect(failures.withLock { $0 } == [])
        let expected = Set(acknowledged.withLock { $0 })
        let found = try access.read { db in Set(try db.executeQuery("SELECT id FROM kept").all(Int64.self)) }
        #expect(found == expected && !expected.isEmpty, "lost \(expected.subtracting(found).count)")
        (access as? DatabaseQueue)?.close()
        (access as? DatabasePool)?.releaseAllDatabases()
        let fresh = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(key)))
        try fresh.openVerified()
        #expect(Set(try fresh.executeQuery("SELECT id FROM kept").all(Int64.self)) == expected)
        #expect(try fresh.executeQuery("PRAGMA integrity_check").scalar(String.self) == "ok")
    }
}
