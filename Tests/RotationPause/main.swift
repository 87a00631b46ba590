// How long does a write or a read of a service wait at most, with and without a rotation of the key?
//
// Usage: RotationPause DIRECTORY MEBIBYTES. Prints the longest waits within ten seconds before the first rotation, and within
// each of three rotations and the second after it.

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
try pool.write { db in try db.execute(script: "CREATE TABLE entry (id INTEGER PRIMARY KEY, body BLOB NOT NULL)") }
// One transaction would leave a log of the size of the store.
for start in stride(from: 1, through: rows, by: 50_000) {
    try pool.write { db in
        try db.executeUpdate(
            """
            WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
            INSERT INTO entry SELECT i, randomblob(900) FROM n
            """,
            start,
            min(start + 49_999, rows)
        )
    }
}
try pool.writeWithoutTransaction { db in try db.checkpoint(.truncate) }

let load = Load(pool, rows: rows)

/// Prints the longest waits while the body runs.
func report(_ name: String, _ body: () throws -> Void) rethrows {
    _ = (load.write.take(), load.read.take())
    let start = ContinuousClock.now
    try body()
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    print(String(format: "%@ | %.2f | %.0f | %.0f", name, seconds, load.write.take(), load.read.take()))
}

print("\(size) MiB | s | longest write, ms | longest read, ms")
// The time is what is measured: the load goes on meanwhile.
report("before") { Thread.sleep(forTimeInterval: 10) }
for _ in 0..<3 {
    try report("rotation") {
        try pool.rotateKey(to: try Key.random())
        // Who waited for the end of the rotation is counted when its call returns.
        Thread.sleep(forTimeInterval: 1)
    }
}
load.end()
