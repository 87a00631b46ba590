import Foundation
import Testing

@testable import SealedDB

/// The key slots beside a replica, whatever happens while they are put there.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct FollowerSlotTests {
    private let store: SlotStore
    private let storage: TestStorage
    private let replicator: Replicator
    private let database: Database
    private let path: String

    init() throws {
        store = try SlotStore()
        path = store.directory.file("replica.db")
        storage = try TestStorage(store.directory.file("repository"))
        database = try store.open(.testing(1))
        #expect(database.executeStatements("PRAGMA journal_mode = WAL"))
        replicator = try Replicator(path: store.path, key: .testing(1), storage: storage)
        _ = try replicator.ship()
        try follow()
    }

    private func follow() throws {
        let follower = try Follower(storage: storage, to: path)
        try follower.follow()
        follower.close()
    }

    /// Ends the follower when it comes to a step for the given time.
    private func follow(killedAt step: Follower.Step, count: Int) throws {
        let follower = try Follower(storage: storage, to: path)
        var left = count
        follower.atStep = { found throws(DatabaseError) in
            guard found == step else { return }
            left -= 1
            if left == 0 { throw FollowedReplica.killed }
        }
        #expect(throws: FollowedReplica.killed) { try follower.follow() }
        follower.abandon()
    }

    private func opens(_ key: UInt8) throws -> Bool {
        var configuration = Configuration(key: try .testing(key))
        (configuration.createsFile, configuration.isReadOnly) = (false, true)
        let database = Database(path: path, configuration: configuration)
        defer { database.close() }
        do {
            try database.openVerified()
            return try database.integers("SELECT count(*) FROM t") != []
        } catch let error as DatabaseError {
            #expect(error.reason == .wrongKey || error.reason == .olderSlots, "\(error)")
            return false
        }
    }

    private func change(_ key: UInt8) throws {
        _ = try store.slots().add(.init(.key(.testing(key)), label: "\(key)"))
        _ = try replicator.ship()
    }

    private func expectSlots(of keys: [UInt8]) throws {
        for key: UInt8 in 1...5 { #expect(try opens(key) == keys.contains(key), "\(key)") }
        let expected = try store.bytes()
        for ending in [".slots", ".slots.2"] {
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path + ending))) == expected)
        }
    }

    static let moments: [(Follower.Step, Int)] = [
        (.announcedSlots, 1), (.putSlots, 1), (.putSlots, 2), (.announced, 1), (.published, 1),
    ]

    /// Nobody is locked out by a follower that is killed: those who have a key can read what is there, and the next follower
    /// finishes what is not.
    @Test(arguments: moments)
    func killed(at step: Follower.Step, count: Int) throws {
        try change(3)
        try follow(killedAt: step, count: count)
        #expect(try opens(1) && opens(2))
        try follow()
        try expectSlots(of: [1, 2, 3])
    }

    /// The next follower finds other slots in the repository.
    @Test(arguments: moments)
    func killedAndChanged(at step: Follower.Step, count: Int) throws {
        try change(3)
        try follow(killedAt: step, count: count)
        try change(4)
        try follow(killedAt: step, count: count)
        try change(5)
        _ = try store.slots().remove("3")
        _ = try replicator.ship()
        try follow()
        try expectSlots(of: [1, 2, 4, 5])
    }

    /// Those that were announced are not kept any more.
    @Test func announcedAndGone() throws {
        try change(3)
        try follow(killedAt: .putSlots, count: 1)
        try change(4)
        let names = try storage.base.objects(under: ObjectName.allSlots).map(\.name)
        let newest = ObjectName.slots(try ObjectDigest.of(store.bytes())).text
        for name in names where name != newest { try storage.base.remove(name) }
        try follow()
        try expectSlots(of: [1, 2, 3, 4])
    }

    /// A new file with a new data key: its slots come with it, or before anybody is told that all is well.
    @Test(arguments: [(.madeSuccessor, 1), (.removedLog, 1), (.replaced, 1)] + moments.prefix(3))
    func killedWhileReplaced(at step: Follower.Step, count: Int) throws {
        database.close()
        replicator.close()
        _ = try store.slots().reencrypt(keeping: [.init(.key(.testing(2)), label: "safe", isRecovery: true)])
        let second = try Replicator(path: store.path, key: .testing(1), storage: storage)
        _ = try second.ship()
        second.close()
        try follow(killedAt: step, count: count)
        try follow()
        try expectSlots(of: [1, 2])
    }

    /// Slots of somebody else are left alone, and what cannot be read for a moment is not taken for them.
    @Test func othersStay() throws {
        let other = try SlotStore()
        try Data(other.bytes()).write(to: URL(fileURLWithPath: path + ".slots"))
        try change(3)
        let error = #expect(throws: DatabaseError.self) { try follow() }
        #expect(error?.reason == .unverified)
        #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path + ".slots"))) == other.bytes())
    }

    /// A replica that was removed without its slots is made anew.
    @Test func aReplicaThatIsGone() throws {
        for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
        try change(3)
        try follow()
        try expectSlots(of: [1, 2, 3])
    }
}
