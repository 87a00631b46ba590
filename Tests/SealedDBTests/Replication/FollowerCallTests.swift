import Foundation
import Testing

@testable import SealedDB

/// Whatever call of the system fails while a replica follows: it can be read, holds what it held or the whole of what is new,
/// and the same call, once more, goes on.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct FollowerCallTests {
    typealias Manner = CallSweep.Manner

    private static func commit(_ directory: TemporaryDirectory, _ sql: String, key: UInt8 = 1) throws {
        let database = try Database.testing(directory.file("db"), key: key, journalMode: .wal)
        // So that the log stays.
        try database.connection?.setCheckpointsOnClose(false)
        #expect(database.executeStatements(sql))
        try #require(database.close())
        let replicator = try Replicator(
            path: directory.file("db"),
            key: .testing(key),
            directory: directory.file("repository")
        )
        defer { replicator.close() }
        _ = try replicator.ship()
    }

    /// - Parameter empties: whether the log of the replica is moved into its file in the end.
    private static func follow(_ directory: TemporaryDirectory, empties: Bool = true) throws {
        let follower = try Follower(directory: directory.file("repository"), to: directory.file("replica"))
        // After a failure nothing is tried any more: where the log's index fails for good, SQLite tries for ten seconds.
        defer { follower.abandon() }
        try follower.follow()
        if empties { follower.close() }
    }

    /// A store of 30 rows, and a repository.
    private static func prepare(_ directory: TemporaryDirectory) throws {
        try commit(
            directory,
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t (x) SELECT randomblob(500) FROM \
            (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) SELECT i FROM n)
            """
        )
    }

    private static func count(_ directory: TemporaryDirectory, keys: [UInt8] = [1]) throws -> Int {
        // A copy, so that the log of the replica stays.
        let other = try TemporaryDirectory()
        for suffix in ["", "-wal"] where FileSystem.exists(directory.file("replica" + suffix)) {
            try other.write("replica" + suffix, directory.bytes("replica" + suffix))
        }
        for key in keys {
            var configuration = Configuration(key: try .testing(key))
            configuration.createsFile = false
            let database = Database(path: other.file("replica"), configuration: configuration)
            guard (try? database.openVerified()) != nil else { continue }
            defer { database.close() }
            try #require(try database.value("PRAGMA integrity_check") == .text("ok"))
            return try database.integers("SELECT count(*) FROM t")[0]
        }
        return -1
    }

    @Test(arguments: Manner.all) func aReplica(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.prepare($0) },
            run: { try Self.follow($0) },
            check: { directory, state in
                guard state == .done || FileSystem.exists(directory.file("replica")) else { return }
                try #require(Self.count(directory) == 30)
            },
            state: { _ in .undone }
        )
        try sweep(manner)
    }

    /// With an empty log, and with one that stays.
    @Test(arguments: [Manner.alone, .openSSL], [true, false]) func commits(_ manner: Manner, empties: Bool) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.prepare(directory)
                try Self.follow(directory)
                if !empties {
                    try Self.commit(directory, "DELETE FROM t WHERE id > 20")
                    try Self.follow(directory, empties: false)
                }
                try Self.commit(directory, "DELETE FROM t WHERE id > 10")
            },
            run: { try Self.follow($0, empties: empties) },
            check: { directory, state in
                let found = try Self.count(directory)
                try #require(state == .done ? found == 10 : found == 10 || found == (empties ? 30 : 20), "\(found)")
            }
        )
        try sweep(manner)
    }

    /// A follower that goes on after a failure knows what it has done itself, such as moving a part of the log into the file, and
    /// takes it for nobody else's.
    @Test(arguments: [Manner.alone, .openSSL]) func theSameFollower(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.prepare(directory)
                try Self.follow(directory)
                try Self.commit(directory, "DELETE FROM t WHERE id > 20")
                try Self.follow(directory, empties: false)
                try Self.commit(directory, "DELETE FROM t WHERE id > 10")
            },
            run: { directory in
                var options = Follower.Options()
                options.relievedAt = 1
                let follower = try Follower(
                    directory: directory.file("repository"),
                    to: directory.file("replica"),
                    options: options
                )
                defer { follower.abandon() }
                do {
                    try follower.follow()
                } catch {
                    #expect((error as? DatabaseError)?.reason != .unverified, "\(error)")
                    try follower.follow()
                    #expect(try Self.count(directory) == 10)
                    throw error
                }
            },
            check: { directory, state in
                let found = try Self.count(directory)
                try #require(state == .done ? found == 10 : found == 10 || found == 20, "\(found)")
            }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL]) func aRotation(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.prepare(directory)
                try Self.follow(directory)
                try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
                try Self.commit(directory, "DELETE FROM t WHERE id > 10", key: 2)
            },
            run: { try Self.follow($0) },
            check: { directory, state in
                let found = try Self.count(directory, keys: [1, 2])
                try #require(state == .done ? found == 10 : found == 10 || found == 30, "\(found)")
            }
        )
        try sweep(manner)
    }
}
