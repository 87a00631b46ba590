import Foundation
import Testing

@testable import SealedDB

/// Whatever happens while a store is shipped: each restore gives exactly what the store was after one of its commits, and
/// never less than what was reported as shipped.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicationOracleTests {
    /// A seed from the environment repeats one run, or runs more of them.
    private static let seeds: [UInt64] = {
        guard let text = ProcessInfo.processInfo.environment["REPLICATION_SEEDS"] else { return [1, 2, 3, 4, 5, 6] }
        return text.split(separator: ",").compactMap { UInt64($0) }
    }()

    private static let steps = 60

    @Test(arguments: seeds)
    func randomMoments(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let store = try ReplicatedStore()
        if Bool.random(using: &random) { store.options.snapshotInterval = .zero }
        for _ in 0..<ReplicationOracleTests.steps { try step(store, &random) }
        try store.ship()
        try check(store, &random)
        #expect(try store.status.problems == [], "seed \(seed)")
        #expect(try store.restore().commits == store.states.count, "seed \(seed)")
    }

    private func step(_ store: ReplicatedStore, _ random: inout SeededGenerator) throws {
        switch Int.random(in: 0..<42, using: &random) {
        case 0..<12: try store.commit(ReplicatedStore.rows(.random(in: 1...5, using: &random), bytes: 3000))
        // More than the cache of a connection holds, so that pages go to the log before the commit.
        case 12:
            #expect(store.database.executeStatements("PRAGMA cache_size = 10"))
            try store.commit(ReplicatedStore.rows(60, bytes: 4000))
        case 13: try store.commit("DELETE FROM data WHERE id % 3 > 0")
        case 14: #expect(store.database.executeStatements("VACUUM"))
        case 15: try store.commit("UPDATE data SET sum = sum + 1, x = randomblob(length(x)) WHERE id % 4 = 0")
        case 16, 17: try store.database.checkpoint(.passive)
        case 18:
            store.database.maxBusyRetryTimeInterval = 0.01
            // Busy while the shipper reads.
            try? store.database.checkpoint(.truncate)
        case 19, 20: store.killShipper()
        case 21: try store.rotate()
        case 22...25:
            let first = Int.random(in: 0..<12, using: &random) + store.storage.callCount
            let failure = TestStorage.Failure.allCases.randomElement(using: &random)!
            store.storage.fails = { $0 >= first ? failure : nil }
            do {
                try store.ship()
            } catch let error as DatabaseError {
                #expect(error.reason == .noSpace)
            }
            store.storage.fails = { _ in nil }
            if Bool.random(using: &random) { store.killShipper() }
        case 26: if !store.reports.isEmpty { try check(store, &random) }
        case 27:
            store.database.close()
            store.database = try Database.testing(store.path, key: store.key, journalMode: .wal)
        case 28: if !store.reports.isEmpty { try store.keepCopy() }
        // An older state of the repository: that is told, unless nothing was shipped since, and shipping goes on from there.
        case 29:
            try store.putCopyBack()
            do {
                try store.ship()
            } catch let error as DatabaseError {
                // A shipper that runs knows the directory, and one that begins knows what was shipped last.
                let texts = [
                    "an older copy had been put in its place", "is another directory than the one that was shipped to",
                ]
                #expect(error.reason == .damaged && texts.contains { error.message.contains($0) }, "\(error)")
                try store.ship()
            }
            try check(store, &random)
        default: try store.ship()
        }
    }

    /// Restores the newest moment, and some others.
    private func check(_ store: ReplicatedStore, _ random: inout SeededGenerator) throws {
        #expect(try store.restore().commits >= store.shippedCount)
        let report = try #require(store.reports.randomElement(using: &random))
        let last = store.reports.last { $0.time <= report.time } ?? report
        #expect(try store.restore(.time(report.time)).commits >= min(last.count, report.count))
        let generations = try store.status.generations
        let generation = try #require(generations.randomElement(using: &random))
        _ = try store.restore(.generation(generation.number))
    }

    /// Others write all the time, and SQLite moves the log by itself.
    @Test func whileAnotherThreadWrites() throws {
        let store = try ReplicatedStore()
        try store.ship()
        // Only the thread that writes uses the database until it has ended.
        nonisolated(unsafe) let database = store.database
        let (isDone, hasEnded) = (StopFlag(), DispatchSemaphore(value: 0))
        #expect(database.executeStatements("PRAGMA wal_autocheckpoint = 10; PRAGMA synchronous = OFF"))
        // Where many processes want the processor, the shipper may have the lock for longer than the usual two seconds.
        database.maxBusyRetryTimeInterval = 600
        Thread.detachNewThread {
            for number in 1...400 {
                let rows = ReplicatedStore.rows(number % 7 + 1, bytes: 2000)
                let sql = "BEGIN; \(rows) INSERT INTO step (number) VALUES (\(number)); COMMIT"
                #expect(database.executeStatements(sql), "\(database.lastErrorMessage())")
                guard number % 50 == 0 else { continue }
                let halving = "DELETE FROM data WHERE id % 2 = 0; VACUUM"
                #expect(database.executeStatements(halving), "\(database.lastErrorMessage())")
            }
            isDone.set()
            hasEnded.signal()
        }
        var generations: Set<Int64> = []
        while !isDone.isSet { generations.insert(try store.ship().generation) }
        hasEnded.wait()
        generations.insert(try store.ship().generation)
        #expect(generations == [1], "The shipper has missed something.")
        #expect(try store.status.problems == [])
        let target = store.directory.file("whole.db")
        try RepositoryRestore(from: store.repository, to: target).run()
        let copy = try Database.testing(target)
        #expect(try ReplicatedStore.state(copy) == ReplicatedStore.state(database))
        #expect(try copy.integers("SELECT count(*) FROM step") == [401])
    }

    /// The shipper lets the log begin anew, so it does not grow for ever.
    @Test func theLogBeginsAnew() throws {
        let store = try ReplicatedStore()
        for _ in 0..<60 {
            try store.commit(ReplicatedStore.rows(4, bytes: 3000))
            try store.ship()
        }
        let size = try FileSystem.status(store.path + "-wal").st_size
        #expect(size < 600_000, "The log has \(size) bytes.")
        #expect(try store.status.generations.map(\.number) == [1])
        #expect(try store.restore().commits == store.states.count)
    }

    /// What is committed right before nobody may write is not lost with the log.
    @Test func whatComesBeforeTheLogBeginsAnew() throws {
        let store = try ReplicatedStore()
        store.options.relievedAt = 1 << 40
        try store.ship()
        for _ in 0..<10 {
            try store.commit(ReplicatedStore.rows(4, bytes: 3000))
            try store.ship()
        }
        try store.commit()
        let replicator = try #require(store.replicator)
        replicator.options.relievedAt = 30_000
        try replicator.relieveLog()
        #expect(replicator.reading?.blocks.count == 1)
        #expect(replicator.reading?.position.isWholeInFile == true)
        // This begins the log anew.
        try store.commit()
        let report = try store.ship()
        #expect(report.generation == 1 && report.commitCount == 2)
        #expect(report.logBytes < 30_000)
        #expect(try store.status.problems == [])
        #expect(try store.restore().commits == store.states.count)
    }

    /// The shipper may end at any call: what was reported is there, and the next one goes on.
    @Test(arguments: TestStorage.Failure.allCases)
    func aShipperThatFailsAtEachCall(_ failure: TestStorage.Failure) throws {
        var number = 0
        while true {
            let store = try ReplicatedStore()
            store.options.snapshotInterval = .zero
            store.storage.fails = { $0 == number ? failure : nil }
            var hasFailed = false
            for round in 0..<4 {
                try store.commit(ReplicatedStore.rows(round == 2 ? 40 : 2, bytes: 3000))
                do {
                    try store.ship()
                } catch let error as DatabaseError {
                    #expect(error.reason == .noSpace)
                    hasFailed = true
                    if number % 2 == 0 { store.killShipper() }
                    if store.shippedCount > 0 { #expect(try store.restore().commits >= store.shippedCount) }
                }
            }
            guard hasFailed else { break }
            store.killShipper()
            try store.ship()
            #expect(try store.status.problems == [], "call \(number)")
            #expect(try store.restore().commits == store.states.count, "call \(number)")
            number += 1
        }
        #expect(number > 30)
    }
}
