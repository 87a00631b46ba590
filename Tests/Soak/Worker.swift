import Foundation
import SealedDB
import Synchronization

/// Reads and writes until its input ends, or until it is killed. Each line of output is a promise.
struct Worker: Sendable {
    private struct Unwanted: Error {}

    private let pool: DatabasePool
    private let keys: [Key]
    private let isEnding = Flag()
    private static let writerCount = 12

    final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
        func set() { value.store(true, ordering: .relaxed) }
    }

    init(directory: String) throws {
        keys = try Store.keys(in: directory)
        pool = try Store.openPool(in: directory, keys: keys)
    }

    func run() async throws {
        try await pool.write { db in
            for sql in Store.schema { try db.executeUpdate(sql, values: nil) }
        }
        let ending = isEnding
        Thread.detachNewThread {
            while readLine() != nil {}
            ending.set()
        }
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<Worker.writerCount { group.addTask { await checked { try await write(as: writer) } } }
            for _ in 0..<4 { group.addTask { await checked { try await read() } } }
            group.addTask { await checked { try await maintain() } }
            group.addTask { await monitor() }
            group.addTask { await onThread { try writeInFMDBsWay() } }
            await group.waitForAll()
        }
        await pool.shutDown()
        Worker.say("ended")
    }

    /// A failure that nobody expects ends the process.
    private func checked(_ work: () async throws -> Void) async {
        do {
            try await work()
        } catch {
            Worker.say("failed: \(error)")
            exit(1)
        }
    }

    private func onThread(_ work: @escaping @Sendable () throws -> Void) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                do {
                    try work()
                } catch {
                    Worker.say("failed: \(error)")
                    exit(1)
                }
                continuation.resume()
            }
        }
    }

    private static let output = Mutex(())

    /// One call for each line, so that a kill cannot cut one off unnoticed.
    static func say(_ line: String) {
        output.withLock { _ in try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }
    }

    // MARK: Writing

    private func insert(_ db: Database, writer: Int, number: Int) throws {
        try db.executeUpdate(
            "INSERT INTO row (writer, number, body) VALUES (?, ?, hex(randomblob(?)))",
            values: [writer, number, Int.random(in: 1...400)]
        )
        try db.executeUpdate(
            "INSERT INTO counter (writer, number) VALUES (?, 1) ON CONFLICT DO UPDATE SET number = number + 1",
            values: [writer]
        )
    }

    private func write(as writer: Int) async throws {
        var number = try await pool.read { db in
            try Store.integer(db, "SELECT max(number) FROM row WHERE writer = \(writer)")
        }
        while !isEnding.isSet {
            let next = number + 1
            switch Int.random(in: 0..<10) {
            case 0:
                do {
                    try await pool.write { db in
                        try insert(db, writer: writer, number: next)
                        throw Unwanted()
                    }
                } catch is Unwanted {}
            case 1:
                let task = Task {
                    try await pool.write(alone: Bool.random()) { db in
                        try insert(db, writer: writer, number: next)
                        _ = try Store.integer(db, "SELECT count(*) FROM row")
                    }
                }
                if Bool.random() { await Task.yield() }
                if Bool.random() { try await Task.sleep(for: .microseconds(Int.random(in: 0...5000))) }
                task.cancel()
                do {
                    try await task.value
                    Worker.say("committed \(writer) \(next)")
                    number = next
                } catch is CancellationError {
                    // What is called cancelled is not there.
                    let count = try await pool.read { db in
                        try Store.integer(db, "SELECT count(*) FROM row WHERE writer = \(writer) AND number = \(next)")
                    }
                    if count != 0 { throw Violation(text: "A cancelled write was kept.") }
                }
            default:
                try await pool.write { db in try insert(db, writer: writer, number: next) }
                Worker.say("committed \(writer) \(next)")
                number = next
            }
        }
    }

    /// On a connection of its own, by the calls that FMDB has.
    private func writeInFMDBsWay() throws {
        let writer = Worker.writerCount
        var number = 0
        pool.inDatabase { db in
            number = (try? Store.integer(db, "SELECT max(number) FROM row WHERE writer = \(writer)")) ?? 0
        }
        while !isEnding.isSet {
            var failure: (any Error)?
            let error = pool.inTransaction { db, rollback in
                do {
                    try insert(db, writer: writer, number: number + 1)
                } catch {
                    failure = error
                    rollback.pointee = true
                }
            }
            if let error = (error ?? failure) as? DatabaseError {
                guard error.reason == .busy else { throw error }
            } else {
                number += 1
                Worker.say("committed \(writer) \(number)")
            }
            // Without a pause this connection would keep SQLite's write lock from the writer's.
            usleep(3000)
        }
    }

    // MARK: The rest

    private func read() async throws {
        while !isEnding.isSet {
            try await pool.read { db in try Store.check(db) }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Checkpoints, released connections, and a new key now and then.
    private func maintain() async throws {
        var key = 0
        while !isEnding.isSet {
            try await Task.sleep(for: .milliseconds(Int.random(in: 20...400)))
            switch Int.random(in: 0..<6) {
            case 0: pool.releaseAllDatabases()
            case 1 where !keys.isEmpty:
                key += 1
                do {
                    try await pool.rotateKey(to: keys[key % keys.count])
                    Worker.say("rotated")
                } catch let error as DatabaseError where error.reason == .malformedKey {
                    // It was this one already.
                }
            default:
                try await pool.writeWithoutTransaction { db in
                    do throws(DatabaseError) {
                        try db.checkpoint(.truncate)
                    } catch {
                        guard error.reason == .busy else { throw error }
                    }
                }
            }
        }
    }

    private func monitor() async {
        while !isEnding.isSet {
            let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
            let resident = pages.flatMap { Int($0[1]) } ?? 0
            let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.count ?? 0
            let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task"))?.count ?? 0
            Worker.say("uses \(resident * 4) \(descriptors) \(threads)")
            try? await Task.sleep(for: .milliseconds(250))
        }
    }
}
