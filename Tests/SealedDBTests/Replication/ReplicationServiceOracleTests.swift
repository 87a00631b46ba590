import Foundation
import Testing

@testable import SealedDB

/// Several threads commit and replicate, while one closes the queue or pool, rotates the key, takes the repository away,
/// empties the log: what `replicate` acknowledged to a thread is there, at whatever moment one looks.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicationServiceOracleTests {
    /// As in ``ReplicationOracleTests``.
    private static let seeds: [UInt64] = {
        guard let text = ProcessInfo.processInfo.environment["REPLICATION_SEEDS"] else { return [1, 2, 3, 4] }
        return text.split(separator: ",").compactMap { UInt64($0) }
    }()

    private static let steps = 40
    private static let threads = 2

    private let directory: TemporaryDirectory
    /// How many rows of each thread were acknowledged as being in the repository.
    private let acknowledged = Guarded([Int](repeating: 0, count: threads))
    private let keys = Guarded<[UInt8]>([1])

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var path: String { directory.file("app.db") }
    private var repository: String { directory.file("repository") }

    private func service(_ random: inout SeededGenerator) throws -> any ReplicationServiceTests.Service {
        var replication = Replication(to: repository)
        replication.interval = [.milliseconds(10), .seconds(3600)].randomElement(using: &random)!
        replication.snapshotInterval = [.zero, nil].randomElement(using: &random)!
        replication.maximumUnshippedBytes = [100_000, nil].randomElement(using: &random)!
        if replication.snapshotInterval != nil, Bool.random(using: &random) { replication.maximumSnapshotCount = 2 }
        let configuration = Configuration(key: try .testing(keys.withLock { $0.last! }), replication: replication)
        if Bool.random(using: &random) { return DatabasePool(path: path, configuration: configuration) }
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    @Test(arguments: seeds)
    func randomServices(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let service = try service(&random)
        try service.write { db in
            try db.executeUpdate("CREATE TABLE t (thread, number, x, PRIMARY KEY (thread, number))", values: nil)
        }
        try service.replicate()
        let stop = StopFlag()
        let group = DispatchGroup()
        let committed = Guarded([Int](repeating: 0, count: Self.threads))
        for thread in 0..<Self.threads {
            let write: @Sendable () -> Void = { [acknowledged] in
                var number = 0
                while !stop.isSet {
                    do {
                        try service.write { db in
                            let values: [Any] = [thread, number + 1, 3000]
                            try db.executeUpdate("INSERT INTO t VALUES (?, ?, randomblob(?))", values: values)
                        }
                        number += 1
                        committed.withLock { $0[thread] = number }
                        try service.replicate()
                        acknowledged.withLock { $0[thread] = number }
                    } catch {
                        // Closed, or the repository is away: then nothing is acknowledged.
                    }
                }
            }
            DispatchQueue.global().async(group: group, execute: write)
        }
        for _ in 0..<Self.steps { try step(service, seed, &random) }
        stop.set()
        group.wait()
        try service.replicate()
        acknowledged.withLock { $0 = committed.withLock { $0 } }
        try check(seed)
        service.closeAll()
        #expect(try RepositoryStatus.of(directory: repository, verifies: true).problems == [], "seed \(seed)")
    }

    private func step(
        _ service: any ReplicationServiceTests.Service,
        _ seed: UInt64,
        _ random: inout SeededGenerator
    ) throws {
        switch Int.random(in: 0..<20, using: &random) {
        case 0, 1: service.closeAll()
        case 2:
            let key = try #require(keys.withLock { $0.last }) + 1
            // One that may have been used counts, whatever becomes of it.
            keys.withLock { $0.append(key) }
            _ = try service.rotateKey(to: .testing(key), progress: nil)
        case 3, 4:
            #expect(rename(repository, repository + "-away") == 0)
            for _ in 0..<3 { #expect(throws: DatabaseError.self, "seed \(seed)") { try service.replicate() } }
            #expect(rename(repository + "-away", repository) == 0)
        case 5, 6:
            // Busy while somebody reads.
            try? service.writeWithoutTransaction { db in try db.checkpoint(.truncate) }
        case 7: try service.writeWithoutTransaction { db in try db.executeUpdate("VACUUM", values: nil) }
        case 8...10: try check(seed)
        case 11: try service.writeWithoutTransaction { db in try? service.replicate() }
        default: try? service.replicate()
        }
    }

    /// What was acknowledged before is in the newest moment, and nothing is missing before it.
    private func check(_ seed: UInt64) throws {
        let least = acknowledged.withLock { $0 }
        let target = directory.file("restored-\(UUID().uuidString).db")
        defer { unlink(target) }
        var failure: (any Error)?
        // Retention may take away what is being read. Then there is a newer snapshot.
        for _ in 0..<20 {
            do {
                try RepositoryRestore(from: repository, to: target).run()
                failure = nil
                break
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        let isKey = { (key: UInt8) in (try? IntegrityReport.verify(path: target, key: .testing(key)).isSound) == true }
        let key = try #require(keys.withLock { $0 }.last(where: isKey), "seed \(seed)")
        let copy = try Database.testing(target, key: key)
        defer { copy.close() }
        for thread in 0..<Self.threads {
            let found = try copy.integers("SELECT count(*) FROM t WHERE thread = \(thread)")[0]
            let last = try copy.integers("SELECT ifnull(max(number), 0) FROM t WHERE thread = \(thread)")[0]
            #expect(found == last && found >= least[thread], "seed \(seed): \(found) of \(least[thread])")
        }
    }
}
