import Foundation
import Testing

@testable import SealedDB

@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicatorTests {
    private let store: ReplicatedStore

    init() throws {
        store = try ReplicatedStore()
    }

    @Test func whatIsShippedFollowsOneAnother() throws {
        let first = try store.ship()
        #expect(first.generation == 1)
        #expect(first.begunBecause == "first")
        #expect(first.madeSnapshot && first.newSnapshotBytes > 0 && first.frameCount == 0)
        try store.commit(ReplicatedStore.rows(3, bytes: 3000))
        try store.commit()
        let second = try store.ship()
        #expect(second.begunBecause == nil && !second.madeSnapshot)
        #expect(second.commitCount == 2 && second.frameCount > 2)
        let third = try store.ship()
        #expect(third.commitCount == 0 && third.byteCount == 0)
        #expect(try store.restore().commits == 3)
    }

    /// A shipper goes on where another one was killed, if the log is the same.
    @Test func aNewShipperGoesOn() throws {
        try store.ship()
        try store.commit()
        store.killShipper()
        try store.commit()
        let report = try store.ship()
        #expect(report.generation == 1 && report.commitCount == 2)
        #expect(try store.restore().commits == 3)
    }

    /// Nobody saw the frames of a log that has begun anew since.
    @Test func aLogThatBeganAnewUnseen() throws {
        try store.ship()
        try store.commit()
        try store.ship()
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        try store.commit()
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "log-unseen")
        #expect(try store.restore().commits == 4)
        #expect(try store.restore(.generation(1)).commits == 2)
        #expect(try store.status.generations.map(\.begunBecause) == ["first", "log-unseen"])
    }

    /// A store that nobody has open, as between two calls of a timer, needs no new generation if it is unchanged.
    @Test func aStoreAtRest() throws {
        store.database.close()
        #expect(try store.ship().generation == 1)
        store.killShipper()
        let report = try store.ship()
        #expect(report.generation == 1 && !report.madeSnapshot && report.begunBecause == nil)
        store.database = try Database.testing(store.path)
        try store.commit()
        #expect(try store.ship().commitCount == 1)
        #expect(try store.restore().commits == 2)
        #expect(try store.status.problems == [])
    }

    @Test func anotherKeyBeginsAGeneration() throws {
        try store.ship()
        try store.rotate()
        try store.commit()
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "replaced")
        #expect(try store.restore(.generation(1)).commits == 1)
        #expect(try store.restore(.generation(2)).commits == 2)
    }

    /// Another file that is renamed over the store while it is shipped.
    @Test func aFileThatTakesItsPlace() throws {
        try store.ship()
        // Nobody has shipped that yet.
        try store.commit(ReplicatedStore.rows(3, bytes: 3000))
        store.database.close()
        let other = store.directory.file("other.db")
        try StoreBackup(path: store.path, key: .testing(1), to: other).run()
        for suffix in ["-wal", "-shm"] { unlink(store.path + suffix) }
        #expect(rename(other, store.path) == 0)
        store.database = try Database.testing(store.path)
        try store.commit()
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "replaced" && report.commitCount == 1)
        #expect(try store.restore().commits == 3)
        #expect(try store.restore(.generation(1)).commits == 2)
        #expect(try store.status.problems == [])
    }

    /// Its log kept its name. What was added to it since may be of the new file.
    @Test func aFileThatTakesItsPlaceAndItsLog() throws {
        try store.ship()
        try store.commit()
        store.database.close()
        let other = store.directory.file("other.db")
        try FileManager.default.copyItem(atPath: store.path, toPath: other)
        #expect(rename(other, store.path) == 0)
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "replaced-unseen" && report.commitCount == 0)
        #expect(try store.restore().commits == 2)
        #expect(try store.restore(.generation(1)).commits == 1)
    }

    /// The key was changed in place. That is no damage.
    @Test func aStoreThatGetsAnotherKeyInPlace() throws {
        try store.ship()
        try store.commit()
        try store.ship()
        try store.rekeyInPlace(to: 2)
        let old = try #require(store.replicator)
        for _ in 0..<2 {
            let error = #expect(throws: DatabaseError.self) { try old.ship() }
            #expect(error?.reason == .wrongKey, "\(String(describing: error))")
            #expect(error?.message.contains("new generation") == true)
        }
        store.killShipper()
        let late = try Replicator(path: store.path, key: .testing(1), directory: store.repository)
        let error = #expect(throws: DatabaseError.self) { try late.ship() }
        #expect(error?.reason == .wrongKey, "\(String(describing: error))")
        late.close()
        try store.commit()
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "rekeyed")
        #expect(try store.restore().commits == 3)
        #expect(try store.restore(.generation(1)).commits == 2)
        #expect(try store.status.problems == [])
    }

    /// Each keeps the log from beginning anew before it has shipped it, so only one at a time does.
    @Test func twoRepositoriesOfOneStore() throws {
        try store.ship()
        var options = Replicator.Options()
        options.busyTimeout = .zero
        let other = try Replicator(
            path: store.path,
            key: .testing(1),
            directory: store.directory.file("second"),
            options: options
        )
        let error = #expect(throws: DatabaseError.self) { try other.ship() }
        #expect(error?.reason == .busy && error?.message.contains("shipped already") == true)
        try store.commit()
        #expect(try store.ship().commitCount == 1)
        store.killShipper()
        #expect(try other.ship().generation == 1)
    }

    @Test func aSnapshotSharesWhatIsUnchanged() throws {
        try store.commit(ReplicatedStore.rows(200, bytes: 3000))
        store.options.snapshotInterval = .zero
        let first = try store.ship()
        try store.commit("UPDATE data SET sum = 1 WHERE id = 100")
        let second = try store.ship()
        #expect(second.madeSnapshot && second.generation == 1)
        #expect(second.newSnapshotBytes > 0 && second.newSnapshotBytes < first.newSnapshotBytes / 4)
        let (commits, report) = try store.restore()
        #expect(commits == 3 && report.snapshot == 1 && report.commitCount == 0)
        // Without new commits none is made.
        #expect(try !store.ship().madeSnapshot)
    }

    @Test func twoShippers() throws {
        try store.ship()
        let other = try Replicator(path: store.path, key: .testing(1), directory: store.repository)
        let error = #expect(throws: DatabaseError.self) { try other.ship() }
        #expect(error?.reason == .busy)
        store.killShipper()
        #expect(try other.ship().generation == 1)
    }

    /// Where locks do not keep two shippers apart, names do.
    @Test func twoShippersWithoutALease() throws {
        try store.ship()
        store.storage.base.release()
        store.replicator?.reading?.lock.release()
        let other = try Replicator(path: store.path, key: .testing(1), directory: store.repository)
        // The lease is taken with each call, so the first shipper has none only as long as this.
        _ = try other.ship()
        try store.commit()
        _ = try other.ship()
        other.close()
        try store.commit()
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .alreadyExists, "\(String(describing: error))")
    }

    @Test func anotherStore() throws {
        try store.ship()
        store.killShipper()
        let other = try ReplicatedStore("other.db")
        let replicator = try Replicator(path: other.path, key: .testing(1), directory: store.repository)
        let error = #expect(throws: DatabaseError.self) { try replicator.ship() }
        #expect(error?.reason == .alreadyExists)
        replicator.close()
        #expect(try store.objects().count == 1)
        var options = Replicator.Options()
        options.adopts = true
        let adopting = try Replicator(
            path: other.path,
            key: .testing(1),
            directory: store.repository,
            options: options
        )
        #expect(try adopting.ship().begunBecause == "replaced")
    }

    @Test func aStoreThatIsNotInWALMode() throws {
        #expect(store.database.executeStatements("PRAGMA journal_mode = DELETE"))
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .unsupported)
        #expect(try store.objects().isEmpty)
    }

    @Test func aWrongKey() throws {
        let replicator = try Replicator(path: store.path, key: .testing(9), directory: store.repository)
        let error = #expect(throws: DatabaseError.self) { try replicator.ship() }
        #expect(error?.reason == .wrongKey)
        #expect(try store.objects().isEmpty)
    }

    /// A damaged page is not shipped as if it were sound.
    @Test func aDamagedStore() throws {
        try store.commit(ReplicatedStore.rows(30, bytes: 3000))
        try store.database.checkpoint(.truncate)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: store.path))
        try file.seek(toOffset: 10 * 4096 + 99)
        try file.write(contentsOf: Data([1, 2, 3]))
        try file.close()
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .damaged)
        #expect(try store.objects().isEmpty)
    }

    /// The repository fails for a while, and the log waits.
    @Test func aRepositoryThatIsFull() throws {
        try store.ship()
        store.storage.fails = { _ in .before }
        for _ in 0..<5 {
            try store.commit(ReplicatedStore.rows(3, bytes: 3000))
            try? store.database.checkpoint(.passive)
            let error = #expect(throws: DatabaseError.self) { try store.ship() }
            #expect(error?.reason == .noSpace)
        }
        store.storage.fails = { _ in nil }
        let report = try store.ship()
        #expect(report.generation == 1 && report.commitCount == 5)
        #expect(try store.restore().commits == 6)
    }

    /// That an object was written may not be known. It is finished before anything else, which would take its name.
    @Test func whatWasWrittenUnknown() throws {
        store.options.snapshotInterval = .zero
        try store.ship()
        for suffix in ["segment", "snapshot"] {
            try store.commit()
            store.storage.failAfterWriting = suffix
            #expect(throws: DatabaseError.self) { try store.ship() }
            store.storage.failAfterWriting = nil
            let report = try store.ship()
            #expect(report.generation == 1)
            #expect(try store.restore().commits == store.states.count)
        }
        #expect(try store.status.problems == [])
    }

    /// Another directory in the place of the repository, as when a disk is not mounted.
    @Test func aRepositoryThatIsGone() throws {
        try store.ship()
        #expect(rename(store.repository, store.repository + ".away") == 0)
        try store.commit()
        #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(mkdir(store.repository, 0o700) == 0)
        #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(rmdir(store.repository) == 0)
        #expect(rename(store.repository + ".away", store.repository) == 0)
        #expect(try store.ship().commitCount == 1)
    }

    // MARK: Retention

    @Test func whatIsNotKeptIsRemoved() throws {
        store.options.snapshotInterval = .zero
        try store.ship()
        for _ in 0..<4 {
            try store.commit("DELETE FROM data; \(ReplicatedStore.rows(20, bytes: 3000))")
            try store.ship()
        }
        try Data([1]).write(to: URL(fileURLWithPath: store.object("chunks/mine")))
        let chunks = try store.objects(ObjectName.chunks).count
        // The newest one stays even if nobody wants it.
        let removed = try #require(store.replicator).removeOld { times in
            #expect(times == times.sorted(by: >) && times.count == 5)
            return times.enumerated().map { $0.offset == 2 }
        }
        // The oldest has segments behind it, and so have the second and the fourth.
        #expect(removed.snapshots == 3 && removed.segments > 3 && removed.chunks > 0)
        #expect(try store.objects(ObjectName.chunks).count == chunks - removed.chunks)
        #expect(FileSystem.exists(store.object("chunks/mine")))
        let status = try store.status
        #expect(status.problems == [])
        #expect(status.generations[0].snapshots.count == 2)
        // What led from the commit behind the third snapshot to the last one.
        #expect(status.generations[0].gaps.count == 1)
        #expect(try store.restore().commits == 5)
        let kept = status.generations[0].snapshots[0]
        #expect(try store.restore(.time(RepositoryTime(milliseconds: kept.time))).commits == 3)
        #expect(try store.restore(.time(RepositoryTime(milliseconds: kept.until))).commits == 4)
        try store.commit()
        try store.ship()
        #expect(try store.restore().commits == 6)
    }

    /// A snapshot that cannot be read may need any chunk.
    @Test func nothingIsRemovedIfASnapshotIsDamaged() throws {
        store.options.snapshotInterval = .zero
        for _ in 0..<3 {
            try store.commit(ReplicatedStore.rows(3, bytes: 3000))
            try store.ship()
        }
        let before = try store.objects("")
        try store.damage(ObjectName.snapshot(generation: 1, sequence: 1).text, at: 50)
        let error = #expect(throws: DatabaseError.self) {
            try store.replicator?.removeOld { $0.map { _ in false } }
        }
        #expect(error?.message.hasPrefix("All is shipped, but") == true, "\(String(describing: error))")
        #expect(try store.objects("") == before)
    }

    /// It may end at any call, and what is kept is whole.
    @Test func removingThatFailsAtEachCall() throws {
        var number = 0
        while true {
            let store = try ReplicatedStore()
            store.options.snapshotInterval = .zero
            for _ in 0..<3 {
                try store.commit("DELETE FROM data; \(ReplicatedStore.rows(5, bytes: 3000))")
                try store.ship()
            }
            let first = store.storage.callCount
            store.storage.fails = { $0 == first + number ? .after : nil }
            do {
                _ = try store.replicator?.removeOld { $0.map { _ in false } }
                break
            } catch {
                #expect(error.reason == .noSpace)
            }
            #expect(try store.status.problems == [], "call \(number)")
            #expect(try store.restore().commits == store.states.count)
            _ = try store.replicator?.removeOld { $0.map { _ in false } }
            let status = try store.status
            #expect(status.problems == [] && status.generations[0].snapshots.count == 1)
            #expect(try store.restore().commits == store.states.count)
            number += 1
        }
        #expect(number > 8)
    }
}

/// Key slots beside a store that is shipped.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicatedSlotTests {
    /// Slots that change while a shipper runs are shipped without a commit.
    @Test func slotsThatChange() throws {
        let store = try SlotStore()
        let database = try store.open(.testing(1))
        #expect(database.executeStatements("PRAGMA journal_mode = WAL"))
        let repository = store.directory.file("repository")
        let replicator = try Replicator(path: store.path, key: .testing(1), directory: repository)
        _ = try replicator.ship()
        let before = store.directory.file("before.db")
        _ = try store.slots().add(.init(.key(.testing(3)), label: "new"))
        let report = try replicator.ship()
        #expect(report.frameCount >= 0 && report.byteCount > 0 && report.begunBecause == nil)
        let restored = try RepositoryRestore(from: repository, to: before).run()
        #expect(restored.hasSlots)
        for byte: UInt8 in [1, 2, 3] {
            #expect(try IntegrityReport.verify(path: before, key: .testing(byte)).isSound)
        }
        #expect(throws: DatabaseError.self) { try IntegrityReport.verify(path: before, key: .testing(4)) }
        let status = try RepositoryStatus.of(directory: repository, verifies: true)
        #expect(status.problems == [] && status.generations[0].hasSlots)
        // Nothing else has changed.
        #expect(try replicator.ship().byteCount == 0)
        replicator.close()

        // Whether they were written is not known, and then there is a commit, too.
        let storage = try TestStorage(repository)
        let other = try Replicator(path: store.path, key: .testing(1), storage: storage)
        _ = try other.ship()
        _ = try store.slots().add(.init(.key(.testing(4)), label: "newer"))
        storage.failAfterWriting = "segment"
        #expect(throws: DatabaseError.self) { try other.ship() }
        storage.failAfterWriting = nil
        #expect(database.executeStatements("CREATE TABLE other (x)"))
        _ = try other.ship()
        let after = store.directory.file("after.db")
        try RepositoryRestore(from: repository, to: after).run()
        #expect(try IntegrityReport.verify(path: after, key: .testing(4)).isSound)
        #expect(try RepositoryStatus.of(directory: repository, verifies: true).problems == [])
    }
}
