// How long does a write or a read of a service wait at most, with and without a rotation of the key?
//
// Usage: RotationPause DIRECTORY MEBIBYTES. Prints the longest waits of three rotations, each beside as long a time without one.

import Foundation
import SealedDB
import Synchronization

/// The longest wait of the calls of one kind.
final class LongestWait: Sendable {
    private let nanoseconds = Atomic<Int>(0)

    func measure<Result>(_ call: () throws -> Result) rethrows -> Result {
        let start = ContinuousClock.now
        let result = try call()
        nanoseconds.max(Int((ContinuousClock.now - start) / .nanoseconds(1)), ordering: .relaxed)
        return result
    }

    /// In milliseconds, since it was last taken.
    func take() -> Double { Double(nanoseconds.exchange(0, ordering: .relaxed)) / 1e6 }
}

/// Five hundred small writes and a thousand reads a second.
final class Load: Sendable {
    let write = LongestWait()
    let read = LongestWait()
    private let pool: DatabasePool
    private let rows: Int64
    private let isEnding = Atomic(false)
    private let threads = DispatchGroup()

    init(_ pool: DatabasePool, rows: Int64) {
        (self.pool, self.rows) = (pool, rows)
        keepCalling(every: 0.002) { [self] in
            let (id, body) = (Int64.random(in: 1...rows), Data(count: 900))
            try write.measure {
                try pool.write { db in try db.executeUpdate("UPDATE entry SET body = ? WHERE id = ?", body, id) }
            }
        }
        for _ in 0..<2 {
            keepCalling(every: 0.002) { [self] in
                let id = Int64.random(in: 1...rows)
                let size = try read.measure {
                    try pool.read { db in
                        try db.executeQuery("SELECT length(body) FROM entry WHERE id = ?", id).scalar(Int.self)
                    }
                }
                precondition(size == 900)
            }
        }
    }

    func end() {
        isEnding.store(true, ordering: .relaxed)
        threads.wait()
    }

    private func keepCalling(every seconds: Double, _ call: @escaping @Sendable () throws -> Void) {
        threads.enter()
        Thread.detachNewThread { [self] in
            var next = Date()
            while !isEnding.load(ordering: .relaxed) {
                do {
                    try call()
                } catch {
                    fatalError("A call failed: \(error)")
                }
                // What was waited for is not caught up with: the load is steady.
                next = max(next + seconds, Date())
                Thread.sleep(until: next)
            }
            threads.leave()
        }
    }
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let size = Int64(arguments[2]), size > 0 else {
    print("Usage: RotationPause DIRECTORY MEBIBYTES")
    exit(64)
}
let rows = size * 1000
let pool = DatabasePool(path: arguments[1] + "/store.db", configuration: Configuration(key: try Key.random()))
try pool.write { db in
    try db.execute(script: "CREATE TABLE entry (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    try db.executeUpdate(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO entry SELECT i, randomblob(900) FROM n
        """,
        rows
    )
}
try pool.writeWithoutTransaction { db in try db.checkpoint(.truncate) }

let load = Load(pool, rows: rows)
print("rotation of \(size) MiB, s | longest write, ms | longest read, ms | without: write, ms | read, ms")
for _ in 0..<3 {
    _ = (load.write.take(), load.read.take())
    let start = ContinuousClock.now
    try pool.rotateKey(to: try Key.random())
    let took = (ContinuousClock.now - start) / .seconds(1)
    let during = (load.write.take(), load.read.take())
    Thread.sleep(forTimeInterval: took)
    let without = (load.write.take(), load.read.take())
    let waits = [during.0, during.1, without.0, without.1].map { String(format: "%.0f", $0) }
    print(([String(format: "%.2f", took)] + waits).joined(separator: " | "))
}
load.end()
