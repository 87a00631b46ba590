import Foundation
import Testing

@testable import SealedDB

/// Whatever happens while a replica follows: whoever opens it finds just what the store was after one of its commits, never an
/// older one than before, and in the end the newest.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct FollowerOracleTests {
    /// A seed from the environment repeats one run, or runs more of them.
    private static let seeds: [UInt64] = {
        guard let text = ProcessInfo.processInfo.environment["REPLICATION_SEEDS"] else { return [1, 2, 3, 4, 5, 6] }
        return text.split(separator: ",").compactMap { UInt64($0) }
    }()

    private static let steps = 90

    @Test(arguments: seeds)
    func randomMoments(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let replica = try FollowedReplica()
        try replica.ship()
        try replica.follow()
        for _ in 0..<FollowerOracleTests.steps {
            try step(replica, &random)
            try replica.checkReader()
            try replica.check()
        }
        try replica.endReading()
        try replica.ship()
        replica.note(try replica.follow().generation)
        #expect(try replica.check(verifies: true) == replica.store.states.count, "seed \(seed)")
        replica.close()
        #expect(try replica.check(verifies: true) == replica.store.states.count, "seed \(seed)")
    }

    private func step(_ replica: FollowedReplica, _ random: inout SeededGenerator) throws {
        let store = replica.store
        switch Int.random(in: 0..<60, using: &random) {
        case 0..<10: try store.commit(ReplicatedStore.rows(.random(in: 1...5, using: &random), bytes: 3000))
        case 10: try store.commit(ReplicatedStore.rows(60, bytes: 4000))
        case 11: try store.commit("DELETE FROM data WHERE id % 3 > 0")
        case 12: #expect(store.database.executeStatements("VACUUM"))
        case 13: try store.commit("UPDATE data SET sum = sum + 1, x = randomblob(length(x)) WHERE id % 4 = 0")
        case 14: try store.database.checkpoint(.passive)
        case 15:
            store.database.maxBusyRetryTimeInterval = 0.01
            // Busy while the shipper reads.
            try? store.database.checkpoint(.truncate)
        case 16: store.killShipper()
        case 17:
            // What is committed now is in a new generation.
            store.killShipper()
            try store.commit()
            store.database.maxBusyRetryTimeInterval = 0.01
            try store.database.checkpoint(.truncate)
            try store.commit()
        case 18: try rotate(replica)
        case 19..<23: replica.kill()
        case 23, 24: replica.close()
        case 25...28: try replica.beginReading()
        case 29...32: try replica.endReading()
        case 33...36: try follow(replica, failingIn: Int.random(in: 0..<10, using: &random))
        case 37...42: try followKilled(replica, &random)
        case 43:
            // Whoever reads may move the log into the file.
            let database = try replica.open()
            database.maxBusyRetryTimeInterval = 0.01
            let mode: CheckpointMode = Bool.random(using: &random) ? .passive : .truncate
            // Busy while others read.
            try? database.checkpoint(mode)
            database.close()
        case 59:
            try followBesideCheckpoints(replica)
        case 44..<52: try store.ship()
        default: try follow(replica)
        }
    }

    private func follow(_ replica: FollowedReplica) throws {
        do {
            replica.note(try replica.follow().generation)
            try replica.check(atLeast: replica.store.shippedCount)
        } catch let error as DatabaseError where error.reason == .busy {
            // A generation to which it cannot be brought as long as it is read.
            #expect(replica.isRead, "\(error)")
        }
    }

    private func follow(_ replica: FollowedReplica, failingIn calls: Int) throws {
        let first = calls + replica.storage.callCount
        replica.storage.fails = { $0 >= first ? .before : nil }
        defer { replica.storage.fails = { _ in nil } }
        do {
            try replica.follow()
        } catch let error as DatabaseError {
            #expect(error.reason == .noSpace || error.reason == .busy && replica.isRead, "\(error)")
        }
        replica.note(replica.follower?.report.generation ?? 0)
    }

    private func followKilled(_ replica: FollowedReplica, _ random: inout SeededGenerator) throws {
        let step = Follower.Step.allCases.randomElement(using: &random)!
        do {
            if try replica.follow(killedAt: step), [.replaced, .announcedSlots, .putSlots].contains(step) {
                replica.note(replica.store.reports.isEmpty ? 0 : try replica.store.status.generations.last?.number ?? 0)
            } else {
                replica.note(replica.follower?.report.generation ?? 0)
            }
        } catch let error as DatabaseError where error.reason == .busy {
            #expect(replica.isRead, "\(error)")
        }
    }

    /// Somebody moves the log into the file, or lets it begin anew, between any two steps.
    private func followBesideCheckpoints(_ replica: FollowedReplica) throws {
        guard let follower = replica.follower else { return }
        let database = try replica.open()
        database.maxBusyRetryTimeInterval = 0.01
        var count = 0
        follower.atStep = { step throws(DatabaseError) in
            // The writers' lock is held there, or nobody may have the replica open.
            guard [.announced, .published, .emptied].contains(step) else { return }
            count += 1
            // Busy while others read.
            try? database.checkpoint(count % 2 == 0 ? .restart : .truncate)
        }
        defer {
            follower.atStep = { _ throws(DatabaseError) in }
            database.close()
        }
        do {
            replica.note(try replica.follow().generation)
        } catch let error as DatabaseError {
            // A generation to which it cannot be brought as long as it is read.
            #expect(error.reason == .busy, "\(error)")
        }
    }

    /// Another key, and so another file. The old one is not older than what was seen of it.
    private func rotate(_ replica: FollowedReplica) throws {
        try replica.store.rotate()
        try replica.ship()
    }
}
