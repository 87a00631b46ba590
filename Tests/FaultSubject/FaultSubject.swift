import ArgumentParser
import Foundation
import SealedDB

/// What the fault harness runs beside `sealdb`: operations of the library that no command offers.
@main
struct FaultSubject: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Operations of the library, for the fault harness to disturb.",
        subcommands: [Commit.self, Rekey.self, KeyFirst.self]
    )
}

extension FaultSubject {
    static func key(inFile path: String) throws -> Key { try KeySource.keyFile(path).key() }

    /// One line on standard output. Without its end it does not count.
    static func acknowledge(_ line: String) throws {
        var rest = Array((line + "\n").utf8)
        while !rest.isEmpty {
            let count = write(1, rest, rest.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw ValidationError("Cannot acknowledge \(line).") }
            rest.removeFirst(count)
        }
    }

    static func complain(_ error: any Error) {
        let message = (error as? DatabaseError)?.message ?? "\(error)"
        // FileHandle would end the process where there is no room for the message.
        let bytes = Array((message + "\n").utf8)
        _ = write(2, bytes, bytes.count)
    }
}

/// A service under load: commits batches of rows through a queue, and acknowledges each on standard output once its
/// commit has returned.
struct Commit: ParsableCommand {
    /// Rows of a batch: a commit is atomic if a batch has all of them or none.
    static let rowsPerBatch = 3

    @Argument var store: String
    @Option var keyFile: String
    @Option var journalMode: String
    /// Batches of each writer.
    @Option var batches: Int
    /// Threads that commit; as many more read.
    @Option var writers = 1
    /// Before its batch of this number, counted from 1, the queue gives the store a new key.
    @Option var rotateBefore: Int?
    @Option var newKeyFile: String?

    func run() throws {
        var configuration = Configuration(key: try FaultSubject.key(inFile: keyFile))
        configuration.createsFile = false
        configuration.journalMode = .init(rawValue: journalMode)
        configuration.cacheSize = 64
        // So that checkpoints come often.
        configuration.prepare = { database in try database.executeUpdate("PRAGMA wal_autocheckpoint = 8", values: nil) }
        let shared = configuration
        let queue = try DatabaseQueue(path: store, configuration: shared)
        let newKey = try newKeyFile.map { file in try FaultSubject.key(inFile: file) }
        let failures = FailureCount()
        if writers == 1 {
            try write(batchesAfter: 0, to: queue, newKey: newKey, failures)
        } else {
            DispatchQueue.concurrentPerform(iterations: 2 * writers) { index in
                do {
                    if index < writers {
                        try write(batchesAfter: index * 1_000_000, to: queue, newKey: nil, failures)
                    } else {
                        try read(shared)
                    }
                } catch {
                    failures.add(error)
                }
            }
        }
        queue.close()
        if failures.count > 0 { throw ExitCode(1) }
    }

    /// Goes on after a commit that failed, as a service would.
    private func write(batchesAfter start: Int, to queue: DatabaseQueue, newKey: Key?, _ failures: FailureCount) throws
    {
        let first = try queue.inDatabase { database in
            try database.integer("SELECT max(batch) FROM log WHERE batch BETWEEN \(start) AND \(start + 999_999)")
        }
        for number in 1...batches {
            let batch = (first ?? start) + number
            do {
                if let newKey, number == rotateBefore { try queue.rotateKey(to: newKey) }
                try queue.inTransaction { (database: Database) in
                    for part in 1...Self.rowsPerBatch {
                        try database.executeUpdate(
                            "INSERT INTO log (batch, part, body) VALUES (?, ?, ?)",
                            values: [batch, part, "known plaintext \(batch) " + String(repeating: "x", count: 300)]
                        )
                    }
                }
                try FaultSubject.acknowledge("\(batch)")
            } catch {
                failures.add(error)
            }
        }
    }

    private func read(_ configuration: Configuration) throws {
        let reader = Database(path: store, configuration: configuration)
        try reader.openVerified()
        defer { reader.close() }
        for _ in 0..<batches {
            guard try reader.integer("SELECT count(*) % \(Self.rowsPerBatch) FROM log") == 0 else {
                throw ValidationError("A reader saw a part of a batch.")
            }
        }
    }
}

/// SQLCipher's rekey, as `Database` guards it.
struct Rekey: ParsableCommand {
    @Argument var store: String
    @Option var keyFile: String
    @Option var newKeyFile: String

    func run() throws {
        var configuration = Configuration(key: try FaultSubject.key(inFile: keyFile))
        configuration.createsFile = false
        let newKey = try String(contentsOfFile: newKeyFile, encoding: .utf8)
        let database = Database(path: store, configuration: configuration)
        do {
            try database.openVerified()
            guard database.rekey("x'\(newKey.prefix(64))'") else { throw database.lastError() }
        } catch {
            database.close()
            FaultSubject.complain(error)
            throw ExitCode(1)
        }
        database.close()
        try FaultSubject.acknowledge("rekeyed")
    }
}

/// What nobody must do, for the harness to find: gives the store a new key, but the key file first.
struct KeyFirst: ParsableCommand {
    @Argument var store: String
    @Option var keyFile: String
    @Option var newKeyFile: String

    func run() throws {
        let rotation = KeyRotation(
            path: store,
            from: try FaultSubject.key(inFile: keyFile),
            to: try FaultSubject.key(inFile: newKeyFile)
        )
        // A second copy, so that the key file changes at once and nothing else is there to be found.
        guard rename("copy." + newKeyFile, keyFile) == 0 || errno == ENOENT else { throw ExitCode.failure }
        try rotation.run()
        try FaultSubject.acknowledge("rotated")
    }
}

extension Database {
    fileprivate func integer(_ sql: String) throws -> Int? {
        let rows = try executeQuery(sql, values: nil)
        defer { rows.close() }
        guard try rows.nextWithError(), rows.type(forColumnIndex: 0) != .null else { return nil }
        return Int(rows.longLongInt(forColumnIndex: 0))
    }
}

/// Errors of several threads, told on standard error.
// @unchecked: the lock protects the number.
private final class FailureCount: @unchecked Sendable {
    private let lock = NSLock()
    private var number = 0

    var count: Int { lock.withLock { number } }

    func add(_ error: any Error) {
        lock.withLock {
            number += 1
            FaultSubject.complain(error)
        }
    }
}
