import Foundation
import Testing

@testable import SealedDB

/// What others rely on is on the disk before it is said that it is there.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct SyncedStepsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func commit(_ sql: String, key: UInt8 = 1) throws {
        let database = try Database.testing(directory.file("db"), key: key, journalMode: .wal)
        // So that the log stays.
        try database.connection?.setCheckpointsOnClose(false)
        try #require(database.executeStatements(sql))
        try #require(database.close())
    }

    private func ship(key: UInt8 = 1) throws {
        let replicator = try Replicator(
            path: directory.file("db"),
            key: .testing(key),
            directory: directory.file("repository")
        )
        defer { replicator.close() }
        _ = try replicator.ship()
    }

    private func restore() throws {
        try RepositoryRestore(from: directory.file("repository"), to: directory.file("new")).run()
    }

    private func follow() throws {
        let follower = try Follower(directory: directory.file("repository"), to: directory.file("replica"))
        // So that the log of the replica stays.
        defer { follower.abandon() }
        try follower.follow()
    }

    /// The calls, with the same names each time.
    private func calls(_ body: () throws -> Void) throws -> [String] {
        let watch = CallWatch(directory.path)
        let result = Result { try body() }
        let calls = watch.endWithAll()
        try result.get()
        return calls.map { call in
            call.replacing(directory.path, with: "directory").replacing(/sealdb-next-[0-9a-f]+/, with: "sealdb-next")
                .replacing(/chunks\/[0-9a-f]{2}/, with: "chunks/xx").replacing(/[0-9a-f]{64}/, with: "chunk")
        }
    }

    /// Each step comes after the one before.
    private func expectOrder(_ steps: [String], _ calls: [String]) {
        var rest = calls[...]
        for step in steps {
            guard let index = rest.firstIndex(of: step) else {
                Issue.record("\(step) is not after what comes before it: \(calls)")
                return
            }
            rest = rest[(index + 1)...]
        }
    }

    private func made(_ file: String, name: String, in place: String) -> [String] {
        ["pwrite \(file)", "fsync \(file)", "renameat2 \(name)", "fsync \(place)"]
    }

    private static let note = ["pwrite .replica.sealdb-follow", "fsync .replica.sealdb-follow"]

    /// A snapshot has its chunks, and a segment what comes before it. What an earlier process has left is synced first: it may
    /// have been killed before it did that.
    @Test func aRepository() throws {
        try commit("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        let place = "repository/generations/00000001"
        let chunks = "repository/chunks/xx"
        let chunk = made("\(chunks)/.sealdb-*", name: "\(chunks)/chunk", in: chunks)
        let snapshot = made("\(place)/.sealdb-*", name: "\(place)/snapshot-000000000000", in: place)
        try expectOrder(chunk + snapshot, calls { try ship() })
        try commit("INSERT INTO t VALUES (2)")
        let calls = try calls { try ship() }
        let segment = try #require(calls.first { $0.hasPrefix("renameat2 \(place)/") }, "\(calls)")
        let name = String(segment.dropFirst("renameat2 ".count))
        expectOrder(["fsync repository", "fsync \(place)"] + made("\(place)/.sealdb-*", name: name, in: place), calls)
    }

    @Test func aRestoredStore() throws {
        try commit("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        try ship()
        try expectOrder(made(".new.sealdb-restore-*", name: "new", in: "directory"), calls(restore))
    }

    /// The note that tells what is being done, the commits, and the new file of a rotated store.
    @Test func aReplica() throws {
        try commit("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        try ship()
        let next = made("..replica.sealdb-next.sealdb-restore-*", name: ".replica.sealdb-next", in: "directory")
        let first = ["renameat2 replica", "fsync directory"]
        try expectOrder(next + Self.note + first + Self.note, calls(follow))
        try commit("INSERT INTO t VALUES (2)")
        try ship()
        try expectOrder(Self.note + ["pwrite replica-wal", "fdatasync replica-wal"], calls(follow))
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
        try commit("INSERT INTO t VALUES (3)", key: 2)
        try ship(key: 2)
        // The log of the former file must not meet the new one.
        let log = ["unlink replica-wal", "unlink replica-shm", "fsync directory"]
        let renamed = ["rename replica", "fsync directory"]
        let rotated = next + ["fsync .replica.sealdb-next"] + Self.note + log + renamed + Self.note
        let calls = try calls(follow)
        expectOrder(rotated, calls)
        // The new name is on the disk before that is noted.
        let named = try #require(calls.firstIndex(of: "rename replica"))
        #expect(calls[named...].prefix { $0 != Self.note[0] }.contains("fsync directory"), "\(calls)")
    }
}
