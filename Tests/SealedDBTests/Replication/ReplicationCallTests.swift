import Foundation
import Testing

@testable import SealedDB

/// Whatever call of the system fails while a store is shipped or restored: what was there before is there, and the same call,
/// once more, goes on.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicationCallTests {
    typealias Manner = CallSweep.Manner

    private static func commit(_ directory: TemporaryDirectory, _ sql: String) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        // So that the log stays.
        try database.connection?.setCheckpointsOnClose(false)
        #expect(database.executeStatements(sql))
        try #require(database.close())
    }

    private static func ship(_ directory: TemporaryDirectory) throws {
        let replicator = try Replicator(
            path: directory.file("db"),
            key: .testing(1),
            directory: directory.file("repository")
        )
        defer { replicator.close() }
        _ = try replicator.ship()
    }

    private static func restore(_ directory: TemporaryDirectory, replaces: Bool = false, to name: String) throws {
        try RepositoryRestore(
            from: directory.file("repository"),
            to: directory.file(name),
            replaces: replaces
        ).run()
    }

    /// A store, and a repository with a snapshot and a segment.
    private static func prepare(_ directory: TemporaryDirectory) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .wal)
        try database.connection?.setCheckpointsOnClose(false)
        try database.fill(rows: 30)
        try #require(database.close())
        try ship(directory)
        try commit(directory, "DELETE FROM t WHERE id > 20")
        try ship(directory)
    }

    private static func count(_ directory: TemporaryDirectory, _ name: String, key: UInt8 = 1) throws -> Int {
        var configuration = Configuration(key: try .testing(key))
        configuration.createsFile = false
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        defer { database.close() }
        return try database.integers("SELECT count(*) FROM t")[0]
    }

    private static func requireWhole(_ directory: TemporaryDirectory, rows: [Int]) throws {
        let status = try RepositoryStatus.of(directory: directory.file("repository"), verifies: true)
        try #require(status.problems == [])
        let other = try TemporaryDirectory()
        try RepositoryRestore(from: directory.file("repository"), to: other.file("copy")).run()
        try #require(rows.contains(count(other, "copy")))
    }

    @Test(arguments: Manner.all) func aSnapshot(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { directory in
                let database = try Database.testing(directory.file("db"), journalMode: .wal)
                try database.fill(rows: 30)
                try #require(database.close())
            },
            run: { try Self.ship($0) },
            check: { directory, state in
                if state == .done { try Self.requireWhole(directory, rows: [30]) }
                try #require(Self.count(directory, "db") == 30)
            }
        )
        try sweep(manner)
    }

    @Test(arguments: Manner.all) func aSegment(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.prepare(directory)
                try Self.commit(directory, "DELETE FROM t WHERE id > 10")
            },
            run: { try Self.ship($0) },
            check: { directory, state in
                try Self.requireWhole(directory, rows: state == .done ? [10] : [20, 10])
                let status = try RepositoryStatus.of(directory: directory.file("repository"), verifies: false)
                try #require(status.generations.map(\.number) == [1])
            }
        )
        try sweep(manner)
    }

    @Test(arguments: Manner.all) func aRestore(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.prepare($0) },
            run: { try Self.restore($0, to: "new") },
            check: { directory, state in
                if state == .undone {
                    try #require(!FileSystem.exists(directory.file("new")))
                } else {
                    try #require(Self.count(directory, "new") == 20)
                }
                try Self.requireWhole(directory, rows: [20])
            },
            state: { $0.message.contains("is complete") ? .done : .undone }
        )
        try sweep(manner)
    }

    @Test(arguments: Manner.all) func aRestoreThatReplaces(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.prepare(directory)
                let database = try Database.testing(directory.file("old"), key: 2)
                try database.fill(rows: 7)
                try #require(database.close())
            },
            run: { try Self.restore($0, replaces: true, to: "old") },
            check: { directory, state in
                if state == .undone { return try #require(Self.count(directory, "old", key: 2) == 7) }
                try #require(Self.count(directory, "old") == 20)
                let kept = directory.names.filter {
                    $0.hasPrefix("old.replaced-") && $0.count == "old.replaced-".count + 16
                }
                try #require(!kept.isEmpty)
                for name in kept {
                    // It has a second name if a call that failed could not remove that.
                    let copy = try directory.write("copy", directory.bytes(name))
                    try #require(Self.count(directory, "copy", key: 2) == 7)
                    unlink(copy)
                }
            },
            state: { $0.message.hasPrefix("The store ") ? .done : .undone }
        )
        try sweep(manner)
    }
}
