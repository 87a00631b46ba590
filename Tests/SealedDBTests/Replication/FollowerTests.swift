import Foundation
import Testing

@testable import SealedDB

@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct FollowerTests {
    private let replica: FollowedReplica
    private var store: ReplicatedStore { replica.store }

    init() throws {
        replica = try FollowedReplica()
        try replica.ship()
    }

    private func commitAndFollow(_ sql: String = "") throws {
        try store.commit(sql)
        try replica.ship()
        try replica.follow()
    }

    @Test func whatIsShippedIsApplied() throws {
        let first = try replica.follow()
        #expect(first.generation == 1 && first.renewedBecause == "made" && first.commitCount == 0)
        #expect(try replica.check() == 1)
        try store.commit(ReplicatedStore.rows(3, bytes: 3000))
        try store.commit()
        try replica.ship()
        let second = try replica.follow()
        #expect(second.renewedBecause == nil && second.commitCount == 2 && second.frameCount > 2)
        #expect(second.bytesBehind == 0 && second.secondsBehind == 0 && second.logBytes > 0)
        #expect(second.restoredTo == store.reports.last?.time.milliseconds)
        #expect(try replica.check(verifies: true) == 3)
        let third = try replica.follow()
        #expect(third.commitCount == 0 && third.frameCount == 0 && third.restoredTo == second.restoredTo)
    }

    /// A transaction of a reader sees one moment, whatever is applied meanwhile.
    @Test func aReaderKeepsItsSnapshot() throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(30, bytes: 3000))
        try replica.beginReading()
        for _ in 0..<6 {
            try commitAndFollow(ReplicatedStore.rows(10, bytes: 3000))
            try replica.checkReader()
            #expect(try replica.check() == store.states.count)
        }
        let grown = try replica.follow().logBytes
        #expect(grown > replica.options.relievedAt)
        try replica.endReading()
        try commitAndFollow(ReplicatedStore.rows(60, bytes: 3000))
        #expect(try replica.follow().logBytes < grown)
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    /// A connection that stays open sees what is new without a word, with an old index or one that SQLite makes anew.
    @Test func aReaderThatStays() throws {
        try replica.follow()
        let reader = try replica.open()
        defer { reader.close() }
        for number in 0..<8 {
            try store.commit(ReplicatedStore.rows(20, bytes: 2000))
            if number == 4 { #expect(store.database.executeStatements("VACUUM")) }
            try replica.ship()
            if number % 3 == 2 { replica.kill() }
            try replica.follow()
            #expect(try ReplicatedStore.state(reader) == store.states.last)
        }
        #expect(try reader.value("PRAGMA integrity_check") == .text("ok"))
    }

    /// The stock shell reads it while it follows.
    @Test func theStockShell() throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(30, bytes: 3000))
        let key = "PRAGMA key = \"x'\(String(repeating: "01", count: 32))'\";"
        let sql = "SELECT count(*) FROM step; PRAGMA integrity_check; PRAGMA cipher_integrity_check;"
        let lines = try StockShell.run(replica.path, key + sql)
        #expect(lines.first == "2", "\(lines)")
        try commitAndFollow()
        #expect(try StockShell.run(replica.path, key + "SELECT count(*) FROM step;") == ["3"])
    }

    /// Many blocks of the log's index.
    @Test func aLongLog() throws {
        replica.options.relievedAt = 1 << 40
        replica.options.batchBytes = 1 << 40
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(4500, bytes: 3500))
        try commitAndFollow("UPDATE data SET sum = sum + 1")
        try commitAndFollow("DELETE FROM data WHERE id % 2 = 0")
        #expect(try replica.follow().logBytes > 9000 * 4120)
        #expect(try replica.check(verifies: true) == store.states.count)
        // The index that SQLite makes from the log is the same.
        replica.kill()
        try FileManager.default.copyItem(atPath: replica.path, toPath: replica.path + ".copy")
        try FileManager.default.copyItem(atPath: replica.path + "-wal", toPath: replica.path + ".copy-wal")
        let copy = try Database.testing(replica.path + ".copy")
        #expect(try ReplicatedStore.state(copy) == store.states.last)
        copy.close()
        try replica.follow()
        replica.close()
        #expect(try FileSystem.status(replica.path + "-wal").st_size == 0)
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    /// A transaction that is not whole in the repository is not applied.
    @Test func aTransactionInSeveralSegments() throws {
        try replica.follow()
        try store.commit(ReplicatedStore.rows(60, bytes: 3000))
        store.storage.failAfterWriting = "segment-000000000002"
        #expect(throws: DatabaseError.self) { try store.ship() }
        store.storage.failAfterWriting = nil
        let report = try replica.follow()
        #expect(report.commitCount == 0 && report.bytesBehind > 60_000)
        #expect(try replica.check() == 1)
        try replica.ship()
        #expect(try replica.follow().bytesBehind == 0)
        #expect(try replica.check(verifies: true) == 2)
    }

    // MARK: Somebody else

    private func expectUnverified(_ part: String) throws {
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .unverified, "\(String(describing: error))")
        #expect(error?.message.contains(part) == true, "\(String(describing: error))")
    }

    /// What somebody writes to a replica is neither lost nor mixed with what follows.
    @Test(arguments: [false, true])
    func somebodyWrites(whileItFollows: Bool) throws {
        try replica.follow()
        try commitAndFollow()
        if !whileItFollows { replica.kill() }
        let other = try replica.open()
        #expect(other.executeStatements("INSERT INTO step (number) VALUES (1000)"))
        if whileItFollows { other.close() }
        try store.commit()
        try replica.ship()
        try expectUnverified("Somebody else has written")
        other.close()
        replica.kill()
        try expectUnverified("Somebody else has written")
        let again = try replica.open()
        #expect(try again.integers("SELECT max(number) FROM step") == [1000])
        again.close()
    }

    /// The log may be gone with all traces of who wrote it.
    @Test(arguments: [false, true])
    func somebodyWritesAndClosesLast(follower isClosed: Bool) throws {
        try replica.follow()
        try commitAndFollow()
        if isClosed { replica.close() } else { replica.kill() }
        let other = try replica.open()
        #expect(other.executeStatements("INSERT INTO step (number) VALUES (1000)"))
        other.close()
        #expect(!FileSystem.exists(replica.path + "-wal"))
        try expectUnverified("Somebody else has written")
    }

    @Test func anotherFileInItsPlace() throws {
        let other = try Database.testing(replica.path)
        try other.fill(rows: 3)
        other.close()
        let bytes = try store.directory.bytes("replica.db")
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .alreadyExists, "\(String(describing: error))")
        #expect(try store.directory.bytes("replica.db") == bytes)
        replica.kill()
        #expect(!FileSystem.exists(FollowerFile.path(of: replica.path)))
        #expect(unlink(replica.path) == 0)
        try replica.follow()
        replica.close()
        #expect(unlink(replica.path) == 0)
        try store.directory.write("replica.db", bytes)
        try expectUnverified("left as it is")
        #expect(try store.directory.bytes("replica.db") == bytes)
    }

    @Test func twoFollowers() throws {
        try replica.follow()
        let other = try Follower(storage: replica.storage, to: replica.path)
        let error = #expect(throws: DatabaseError.self) { try other.follow() }
        #expect(error?.reason == .busy)
        replica.close()
        try other.follow()
        other.close()
    }

    @Test func anotherRepository() throws {
        try replica.follow()
        replica.close()
        let second = try ReplicatedStore()
        try second.ship()
        let other = try Follower(directory: second.repository, to: replica.path)
        let error = #expect(throws: DatabaseError.self) { try other.follow() }
        #expect(error?.reason == .unverified)
    }

    // MARK: What was left

    /// Whoever closes a store last moves the log into its file.
    @Test func theLogIsGone() throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(9, bytes: 3000))
        replica.kill()
        try replica.check()
        #expect(!FileSystem.exists(replica.path + "-wal"))
        try store.commit()
        try replica.ship()
        let report = try replica.follow()
        #expect(report.renewedBecause == nil && report.commitCount == 1)
        #expect(try replica.check(verifies: true) == 3)
    }

    /// A follower that ends at any step is followed by one that goes on, also if the log is gone meanwhile.
    @Test(arguments: Follower.Step.allCases, [false, true])
    func killed(at step: Follower.Step, isClosedByReader: Bool) throws {
        if step != .made { try replica.follow() }
        switch step {
        case .made: break
        case .announced, .written, .published: try store.commit(ReplicatedStore.rows(5, bytes: 3000))
        case .emptied: try store.commit(ReplicatedStore.rows(40, bytes: 3000))
        case .madeSuccessor, .removedLog, .replaced, .announcedSlots, .putSlots: try store.rotate()
        }
        try replica.ship()
        #expect(try replica.follow(killedAt: step))
        if [.replaced, .announcedSlots, .putSlots].contains(step) { replica.note(2) }
        if isClosedByReader { try replica.check() }
        try store.commit()
        try replica.ship()
        replica.note(try replica.follow().generation)
        #expect(try replica.check(verifies: true) == store.states.count)
        replica.close()
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    /// A reader that was there all the time finds the whole transaction that its writer could not tell.
    @Test func anOpenIntentBesideAReader() throws {
        try replica.follow()
        try commitAndFollow()
        let reader = try replica.open()
        defer { reader.close() }
        #expect(try ReplicatedStore.state(reader) == store.states[1])
        try store.commit(ReplicatedStore.rows(5, bytes: 3000))
        try replica.ship()
        #expect(try replica.follow(killedAt: .written))
        #expect(try ReplicatedStore.state(reader) == store.states[1])
        try store.commit()
        try replica.ship()
        #expect(try replica.follow().commitCount == 2)
        #expect(try ReplicatedStore.state(reader) == store.states[3])
    }

    // MARK: Other generations

    /// The log of the store was begun anew unseen: the pages that differ are brought, while others read.
    @Test func aGenerationOfTheSameFile() throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(100, bytes: 3000))
        let reader = try replica.open()
        defer { reader.close() }
        store.killShipper()
        try store.commit("UPDATE data SET sum = 0 WHERE id = 50")
        try store.database.checkpoint(.truncate)
        try store.commit()
        try replica.ship()
        let report = try replica.follow()
        #expect(report.generation == 2 && report.renewedBecause == "log-unseen")
        #expect(report.logBytes < 60_000, "\(report.logBytes)")
        #expect(try ReplicatedStore.state(reader) == store.states.last)
        try commitAndFollow()
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    @Test func aRotationWaitsForReaders() throws {
        try replica.follow()
        try commitAndFollow()
        let reader = try replica.open()
        try store.rotate()
        try replica.ship()
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .busy && error?.message.contains("new generation") == true)
        #expect(try ReplicatedStore.state(reader) == store.states.last)
        reader.close()
        let report = try replica.follow()
        #expect(report.generation == 2 && report.renewedBecause == "replaced")
        replica.note(2)
        #expect(try replica.check(verifies: true) == 2)
        try commitAndFollow()
        #expect(try replica.check(verifies: true) == 3)
        #expect(store.directory.names.allSatisfy { !$0.contains("replaced") && !$0.contains("next") })
    }

    /// A reader that comes while the new copy is read from the repository does not make it be read again and again.
    @Test func whatWasReadForAReplicaInUseIsKept() throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(30, bytes: 3000))
        try store.rotate()
        try replica.ship()
        var reader: Database?
        _ = replica.chunksRead()
        let error = #expect(throws: DatabaseError.self) {
            try replica.follow { [replica] _ in if reader == nil { reader = try replica.open() } }
        }
        #expect(error?.reason == .busy && error?.message.contains("new generation") == true)
        #expect(replica.chunksRead().count > 3 && replica.copies.count == 1)
        // It is told before anything is read.
        #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(replica.chunksRead().isEmpty && replica.copies.count == 1)
        reader?.close()
        #expect(try replica.follow().renewedBecause == "replaced")
        #expect(replica.chunksRead().isEmpty && replica.copies.isEmpty)
        replica.note(2)
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    /// Where there is no room for a copy that was kept and for the log, the log has it.
    @Test func whatIsKeptGivesWayToTheLog() throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(30, bytes: 3000))
        try store.rotate()
        try replica.ship()
        var reader: Database?
        #expect(throws: DatabaseError.self) {
            try replica.follow { [replica] _ in if reader == nil { reader = try replica.open() } }
        }
        #expect(replica.copies.count == 1)
        reader?.close()
        // Whatever it is that finds no room.
        replica.storage.fails = { _ in .before }
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .noSpace && replica.copies.isEmpty, "\(String(describing: error))")
        replica.storage.fails = { _ in nil }
        #expect(try replica.follow().renewedBecause == "replaced")
        replica.note(2)
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    /// So does a repository that cannot be reached any more.
    @Test(arguments: [false, true]) func aCopyThatWasCutOff(_ isKilled: Bool) throws {
        try store.commit(ReplicatedStore.rows(60, bytes: 3000))
        store.killShipper()
        store.options.snapshotInterval = .zero
        try replica.ship()
        replica.storage.fails = { [unowned storage = replica.storage] _ in
            storage.namesRead.count(where: { $0.hasPrefix(ObjectName.chunks) }) == 3 ? .before : nil
        }
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.message.contains("The next attempt goes on from there") == true, "\(String(describing: error))")
        replica.storage.fails = { _ in nil }
        let first = replica.chunksRead()
        #expect(first.count == 3 && replica.copies.count == 1)
        if isKilled { replica.kill() }
        #expect(try replica.follow().renewedBecause == "made")
        #expect(Set(replica.chunksRead()).isDisjoint(with: first))
        #expect(replica.copies.isEmpty)
        #expect(try replica.check(verifies: true) == store.states.count)
    }

    /// What a follower has left that was killed is not kept once it is of no use.
    @Test func aCopyThatIsNotNeeded() throws {
        try replica.follow()
        replica.close()
        let leftover = try TemporaryFile.path(beside: FollowerFile.pathOfNext(replica.path), mark: RestorePlace.mark)
        try Data("a part".utf8).write(to: URL(fileURLWithPath: leftover))
        #expect(replica.copies.count == 1)
        try commitAndFollow()
        #expect(replica.copies.isEmpty)
    }

    /// What it needs next is not kept any more.
    @Test func removedByRetention() throws {
        try replica.follow()
        store.options.snapshotInterval = .zero
        store.killShipper()
        for _ in 0..<3 {
            try store.commit(ReplicatedStore.rows(5, bytes: 3000))
            try replica.ship()
        }
        let removed = try #require(store.replicator).removeOld { $0.map { _ in false } }
        #expect(removed.segments > 0)
        let report = try replica.follow()
        #expect(report.renewedBecause == "removed")
        #expect(try replica.check(verifies: true) == store.states.count)
        try commitAndFollow()
        #expect(try replica.check() == store.states.count)
    }

    // MARK: Repositories that are not whole

    @Test func aDamagedSegment() throws {
        try replica.follow()
        try commitAndFollow()
        try store.commit()
        try replica.ship()
        let name = try #require(try store.objects().last { $0.contains("segment") })
        try store.damage(name, at: 900)
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .damaged)
        #expect(try replica.check() == 2)
        try store.damage(name, at: 900)
        try replica.follow()
        #expect(try replica.check() == 3)
    }

    @Test func aMissingSegment() throws {
        try replica.follow()
        for _ in 0..<2 {
            try store.commit()
            try replica.ship()
        }
        #expect(unlink(store.object(ObjectName.segment(generation: 1, sequence: 1).text)) == 0)
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .damaged && error?.message.contains("missing") == true)
        #expect(try replica.check() == 1)
    }

    /// Somebody has brought an old state of the repository back, or removed its end.
    @Test func aRepositoryWithoutItsEnd() throws {
        try replica.follow()
        try commitAndFollow()
        #expect(unlink(store.object(ObjectName.segment(generation: 1, sequence: 1).text)) == 0)
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .damaged && error?.message.contains("has less than") == true)
        #expect(try replica.check() == 2)
    }

    @Test func aRepositoryThatIsAway() throws {
        try replica.follow()
        try commitAndFollow()
        replica.storage.fails = { _ in .before }
        #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(try replica.check() == 2)
        replica.storage.fails = { _ in nil }
        try commitAndFollow()
        #expect(try replica.check() == 3)
    }

    /// A file of the user's own beside the replica stays, whatever it is called.
    @Test func filesOfOthersStay() throws {
        let name = ".\(FileSystem.name(of: replica.path)).sealdb-next"
        let own = "\(FileSystem.directory(of: replica.path))/\(name)"
        try Data("a backup".utf8).write(to: URL(fileURLWithPath: own))
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(3, bytes: 3000))
        #expect(try Data(contentsOf: URL(fileURLWithPath: own)) == Data("a backup".utf8))
        #expect(replica.copies == [])
    }
}
