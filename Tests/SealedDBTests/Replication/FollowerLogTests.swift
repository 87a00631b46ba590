import Foundation
import Testing

@testable import SealedDB

/// What readers and followers that were killed leave of the replica's log, at moments at which nobody expects it.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct FollowerLogTests {
    private let replica: FollowedReplica
    private var store: ReplicatedStore { replica.store }

    init() throws {
        replica = try FollowedReplica()
        replica.options.relievedAt = 1 << 40
        replica.store.options.relievedAt = 1 << 40
        try replica.ship()
        try replica.follow()
        try commit()
        try replica.follow()
    }

    private func commit(_ sql: String = ReplicatedStore.rows(5, bytes: 3000)) throws {
        try store.commit(sql)
        try replica.ship()
    }

    /// Has something happen at one step of the next calls.
    private func at(_ step: Follower.Step, _ body: @escaping () throws -> Void) throws {
        try #require(replica.follower).atStep = { found throws(DatabaseError) in
            guard found == step else { return }
            do { try body() } catch { throw error as? DatabaseError ?? FollowedReplica.killed }
        }
    }

    private func expectNewest() throws {
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    /// Whoever reads may move the log into the file at any moment. Nothing is compared for that: nobody has written.
    @Test(arguments: [CheckpointMode.truncate, .restart, .full, .passive])
    func aReaderMovesTheLog(_ mode: CheckpointMode) throws {
        let reader = try replica.open()
        defer { reader.close() }
        replica.storage.namesRead = []
        var count = 0
        try at(.announced) {
            count += 1
            if count == 1 { try reader.checkpoint(mode) }
        }
        try commit()
        #expect(try replica.follow().commitCount == 1)
        try commit()
        #expect(try replica.follow().commitCount == 1)
        #expect(count > 1)
        #expect(replica.storage.namesRead.allSatisfy { !$0.contains("chunks/") })
        try expectNewest()
        replica.close()
        try expectNewest()
    }

    /// One that does it all the time keeps the follower from nothing but this call.
    @Test func aReaderMovesTheLogAgainAndAgain() throws {
        let reader = try replica.open()
        defer { reader.close() }
        try at(.announced) { try reader.checkpoint(.truncate) }
        for _ in 0..<5 {
            try commit()
            #expect(try replica.follow().commitCount == 1)
        }
        try expectNewest()
    }

    /// While the log is being emptied, and while a generation is brought.
    @Test func aReaderMovesTheLogBeforeAGeneration() throws {
        let reader = try replica.open()
        defer { reader.close() }
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        try commit()
        try at(.announced) { try reader.checkpoint(.restart) }
        #expect(try replica.follow().renewedBecause == "log-unseen")
        replica.note(2)
        try expectNewest()
    }

    /// What somebody commits in that moment is found out.
    @Test(arguments: [false, true])
    func somebodyWritesAndMovesTheLog(isLogEmpty: Bool) throws {
        if isLogEmpty {
            replica.close()
            try replica.follow()
        }
        let other = try replica.open()
        defer { other.close() }
        try at(.announced) {
            #expect(other.executeStatements("INSERT INTO step (number) VALUES (1000)"))
            try other.checkpoint(.truncate)
        }
        try commit()
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .unverified, "\(String(describing: error))")
        #expect(try other.integers("SELECT max(number) FROM step") == [1000])
    }

    /// Whoever moves the log into the file, and is killed before it is cut off, leaves its frames there. If the machine stops
    /// then, the log is found again, which changes nothing.
    @Test(arguments: [Follower.Step?.none, .announced, .written])
    func anOldLogIsFoundAgain(_ step: Follower.Step?) throws {
        let log = URL(fileURLWithPath: replica.path + "-wal")
        let frames = try Data(contentsOf: log)
        #expect(frames.count > LogHeader.size)
        let reader = try replica.open()
        try reader.checkpoint(.truncate)
        reader.close()
        let file = try FileHandle(forWritingTo: log)
        try file.write(contentsOf: frames)
        try file.close()
        try replica.follow()
        try commit()
        if let step { #expect(try replica.follow(killedAt: step)) }
        replica.kill()
        #expect(try replica.follow().commitCount == (step == .written ? 0 : 1))
        try expectNewest()
    }

    /// The frames of a transaction that could not be told lie behind the end of the log, and another one is announced.
    @Test(arguments: [false, true])
    func aTransactionThatWasNotTold(isLogEmpty: Bool) throws {
        if isLogEmpty {
            replica.close()
            try replica.follow()
        }
        // Keeps the index of the log, and so its end.
        let reader = try replica.open()
        _ = try ReplicatedStore.state(reader)
        try reader.connection?.setCheckpointsOnClose(false)
        try commit()
        #expect(try replica.follow(killedAt: .written))
        try commit()
        #expect(try replica.follow(killedAt: .announced))
        // Now the index is gone.
        reader.close()
        try replica.follow()
        try expectNewest()
    }

    /// The same if nothing is added before the log is to be emptied.
    @Test func aTransactionThatWasNotToldAtTheEnd() throws {
        let reader = try replica.open()
        try reader.connection?.setCheckpointsOnClose(false)
        #expect(reader.executeStatements("BEGIN"))
        _ = try ReplicatedStore.state(reader)
        try commit()
        try at(.written) { throw FollowedReplica.killed }
        #expect(throws: DatabaseError.self) { try replica.follow() }
        // Somebody reads: the log stays.
        replica.close()
        #expect(reader.executeStatements("COMMIT"))
        reader.close()
        try replica.follow()
        try expectNewest()
    }

    /// Without room for what is new, the log is emptied when its reader is gone: that may be all the room there is.
    @Test func noRoom() throws {
        try replica.beginReading()
        try commit()
        try at(.written) { throw TestStorage.error }
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .noSpace)
        let status = try FileSystem.status(replica.path + "-wal")
        #expect(Int64(status.st_size) == Int64(LogHeader.size) + replica.follower!.report.logBytes)
        try replica.endReading()
        #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(try FileSystem.status(replica.path + "-wal").st_size <= LogHeader.size)
        try replica.check()
        try #require(replica.follower).atStep = { _ throws(DatabaseError) in }
        #expect(try replica.follow().commitCount == 1)
        try expectNewest()
    }

    /// The state on the disk is that of before the last transaction, and the moment of before it is gone from the repository.
    @Test func theMomentBeforeIsGone() throws {
        store.options.snapshotInterval = .zero
        store.killShipper()
        try commit()
        #expect(try replica.follow(killedAt: .published))
        try replica.check()
        #expect(!FileSystem.exists(replica.path + "-wal"))
        let removed = try #require(store.replicator).removeOld { $0.map { _ in false } }
        #expect(removed.segments > 0)
        try replica.follow()
        try expectNewest()
    }

    /// A log that could not be emptied is, when its reader is gone, although nothing is added any more.
    @Test func aLogIsEmptiedInTheEnd() throws {
        replica.kill()
        replica.options.relievedAt = 20_000
        replica.options.reliefInterval = .zero
        try replica.follow()
        try replica.beginReading()
        try commit(ReplicatedStore.rows(20, bytes: 3000))
        #expect(try replica.follow().logBytes > 20_000)
        #expect(try replica.follow().logBytes > 20_000)
        try replica.endReading()
        #expect(try replica.follow().logBytes == 0)
        try expectNewest()
    }

    // MARK: What the follower knows

    @Test func theStateIsRemovedWhileItFollows() throws {
        try FileManager.default.removeItem(atPath: FollowerFile.path(of: replica.path))
        try commit()
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .unverified && error?.message.contains("sealdb-follow") == true)
        #expect(try replica.check() == 2)
    }

    /// What somebody else keeps under the name of the follower's file is neither overwritten nor removed.
    @Test func theFileOfTheStateIsSomebodyElses() throws {
        replica.close()
        let file = FollowerFile.path(of: replica.path)
        for suffix in ["", "-wal", "-shm"] { unlink(replica.path + suffix) }
        let (page, title) = ([UInt8](repeating: 7, count: 4096), Array("SealedDB follower".utf8))
        let zeros = [UInt8](repeating: 0, count: 4096)
        let foreign: [[UInt8]] = [
            Array(try Data(contentsOf: URL(fileURLWithPath: store.path))), Array("[]\n".utf8), title + " 2\n".utf8,
            zeros + title + " 2\nnumber: 1\n".utf8, zeros + page, zeros + zeros + [0],
            title + " 1\n".utf8 + zeros + zeros,
        ]
        for contents in foreign {
            try Data(contents).write(to: URL(fileURLWithPath: file))
            let error = #expect(throws: DatabaseError.self) { try replica.follow() }
            #expect(error?.reason == .alreadyExists && error?.message.contains(file) == true)
            replica.close()
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: file))) == contents)
            #expect(!FileSystem.exists(replica.path))
        }
        // What a machine that stopped leaves of a first state.
        let torn: [[UInt8]] = [
            [], title, title + " 1\nnumber: 1".utf8, zeros + title + " 1\n".utf8, zeros + zeros,
        ]
        for contents in torn {
            try Data(contents).write(to: URL(fileURLWithPath: file))
            try replica.follow()
            try expectNewest()
            replica.close()
            for suffix in ["", "-wal", "-shm"] { unlink(replica.path + suffix) }
        }
    }

    /// Whoever removes a replica may let another one take its place, of another store too.
    @Test func anotherStoreAfterTheReplicaIsGone() throws {
        replica.close()
        for suffix in ["", "-wal", "-shm"] { unlink(replica.path + suffix) }
        let second = try ReplicatedStore()
        try second.commit()
        try second.ship()
        let other = try Follower(directory: second.repository, to: replica.path)
        #expect(try other.follow().renewedBecause == "made")
        other.close()
        let database = try replica.open()
        defer { database.close() }
        #expect(try ReplicatedStore.state(database) == second.states.last)
    }

    /// A store whose first bytes are those of any store is refused before anything is made.
    @Test func aHeaderInTheClear() throws {
        let directory = try TemporaryDirectory()
        let settings = CipherSettings(plaintextHeaderSize: 32, salt: [UInt8](1...16))
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        #expect(database.executeStatements("PRAGMA journal_mode = WAL; CREATE TABLE t (x)"))
        let storage = try TestStorage(directory.file("repository"))
        let shipper = try Replicator(path: directory.file("db"), key: .testing(1), settings: settings, storage: storage)
        _ = try shipper.ship()
        shipper.close()
        database.close()
        let names = directory.names
        let follower = try Follower(storage: storage, to: directory.file("replica"))
        let error = #expect(throws: DatabaseError.self) { try follower.follow() }
        #expect(error?.reason == .unsupported && error?.message.contains("in the clear") == true)
        follower.close()
        #expect(directory.names.sorted() == names.sorted())
    }

    /// A list that is older than what was read before does not bring the replica back.
    @Test func anOldList() throws {
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        try commit()
        // The newest generation is seen, and then not any more.
        let snapshot = store.object(ObjectName.snapshot(generation: 2, sequence: 0).text)
        let segment = store.object(ObjectName.segment(generation: 1, sequence: 1).text)
        for name in [snapshot, segment] { try FileManager.default.moveItem(atPath: name, toPath: name + ".away") }
        let visible = try store.objects()
        for name in [snapshot, segment] { try FileManager.default.moveItem(atPath: name + ".away", toPath: name) }
        var lists = 0
        replica.storage.listed = { objects in
            lists += 1
            return lists == 1 ? objects : objects.filter { visible.contains($0.name) }
        }
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.message.contains("has less than") == true, "\(String(describing: error))")
        #expect(try replica.check() == 2)
        replica.storage.listed = { $0 }
        #expect(try replica.follow().renewedBecause == "log-unseen")
        replica.note(2)
        try expectNewest()
    }

    /// An older state of the repository was brought back, and the store went on from there.
    @Test func aRepositoryThatCameApart() throws {
        let old = store.directory.file("old")
        try FileManager.default.copyItem(atPath: store.repository, toPath: old)
        try commit()
        try replica.follow()
        store.killShipper()
        try FileManager.default.removeItem(atPath: store.repository)
        try FileManager.default.moveItem(atPath: old, toPath: store.repository)
        for _ in 0..<3 { try commit() }
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .damaged && error?.message.contains("come apart") == true)
        #expect(try replica.check() == 3)
    }
}
