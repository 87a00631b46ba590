import Foundation
import Testing

@testable import SealedDB

/// What was removed with old snapshots is told apart from what is missing.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct RetentionCutTests {
    private let store: ReplicatedStore

    /// A generation with four segments, and a snapshot after the second one.
    init() throws {
        store = try ReplicatedStore()
        // One log for all.
        store.options.relievedAt = 1 << 40
        try store.ship()
        for number in 1...4 {
            store.replicator?.options.snapshotInterval = number == 2 ? Duration.zero : nil
            let before = RepositoryTime.now
            // Each segment has a time of its own.
            while RepositoryTime.now <= before {}
            try store.commit()
            try store.ship()
        }
        try #require(try objects() == ["segment-1", "segment-2", "segment-3", "segment-4", "snapshot-0", "snapshot-2"])
    }

    /// The objects of a generation, with their numbers.
    private func objects(_ generation: Int64 = 1) throws -> [String] {
        try store.objects().compactMap { name -> String? in
            switch ObjectName(name) {
            case .snapshot(generation, let sequence)?: "snapshot-\(sequence)"
            case .segment(generation, let sequence)?: "segment-\(sequence)"
            case .cut(generation, let sequence)?: "cut-\(sequence)"
            default: nil
            }
        }.sorted()
    }

    private func path(_ name: ObjectName) -> String { store.object(name.text) }
    private func snapshot(_ generation: Int64) -> String { path(.snapshot(generation: generation, sequence: 0)) }

    /// Begins another generation.
    private func begin() throws -> Int64 {
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        try store.commit()
        return try store.ship().generation
    }

    /// - Parameter kept: the indices of the snapshots that stay, the newest first.
    @discardableResult
    private func retain(_ kept: Int...) throws -> Replicator.Removed {
        try #require(store.replicator).removeOld { times in times.indices.map(kept.contains) }
    }

    private func time(ofSegment sequence: Int64) throws -> RepositoryTime {
        let header = try RepositoryReader(storage: store.storage).segment(1, sequence).header
        return try #require(header.commits.last?.time)
    }

    @discardableResult
    private func expectDamage(
        _ moment: RepositoryMoment,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> String {
        let target = store.directory.file("damaged.db")
        let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) {
            try RepositoryRestore(from: store.repository, at: moment, to: target).run()
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))", sourceLocation: sourceLocation)
        #expect(!FileSystem.exists(target), sourceLocation: sourceLocation)
        return error?.message ?? ""
    }

    /// Restores the first generation, whose end was removed.
    private func expectCut(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let (commits, report) = try store.restore(.generation(1), sourceLocation: sourceLocation)
        #expect(commits == 3, sourceLocation: sourceLocation)
        #expect(report.remarks.count == 1, "\(report.remarks)", sourceLocation: sourceLocation)
        let time = try time(ofSegment: 2)
        let remark = "removed with old snapshots, or is missing: what was committed to it after \(time) is not"
        #expect(report.remarks.first?.contains(remark) == true, "\(report.remarks)", sourceLocation: sourceLocation)
    }

    // MARK: The end of a generation

    @Test func anEndThatIsNotKept() throws {
        #expect(try begin() == 2)
        #expect(try store.restore(.generation(1)).report.remarks == [])
        let removed = try retain(0, 2)
        #expect(removed.snapshots == 1 && removed.segments == 2)
        #expect(try objects() == ["cut-2", "segment-1", "segment-2", "snapshot-0"])
        try expectCut()
        let (commits, report) = try store.restore()
        #expect(commits == store.states.count && report.remarks == [])
        #expect(try store.restore(.time(time(ofSegment: 2))).commits == 3)
        let status = try store.status
        #expect(status.problems == [])
        let gap = "from \(try time(ofSegment: 2)) to the end of the generation"
        #expect(status.generations.map(\.gaps) == [[gap], []])
    }

    /// What was committed by then was there, and is not.
    @Test func aTimeAfterWhatIsKept() throws {
        _ = try begin()
        try retain(0, 2)
        let next = try RepositoryReader(storage: store.storage).snapshot(2, 0).0.time
        let moment = RepositoryMoment.time(RepositoryTime(milliseconds: next.milliseconds - 1))
        let message = try expectDamage(moment)
        #expect(message.contains("(--at \(try time(ofSegment: 2)))"), "\(message)")
        // The same where nothing tells any more how the generation ended.
        try store.commit()
        store.replicator?.options.snapshotInterval = .zero
        try store.ship()
        try retain(0, 2)
        #expect(try objects(2) == ["snapshot-1"])
        try expectDamage(moment)
        try expectCut()
    }

    /// What is lost of what was kept is noticed as before.
    @Test(arguments: [1, 2])
    func aLossBeforeTheEndThatIsKept(_ sequence: Int64) throws {
        _ = try begin()
        try retain(0, 2)
        #expect(unlink(path(.segment(generation: 1, sequence: sequence))) == 0)
        try expectDamage(.generation(1))
        // Nor does another call of the retention make it look as if it were removed.
        try store.commit()
        store.replicator?.options.snapshotInterval = .zero
        try store.ship()
        try retain(0, 1, 2)
        try expectDamage(.generation(1))
    }

    /// Segments that were lost before the retention ran are not taken for what it removed.
    @Test func aLossBeforeTheRetention() throws {
        #expect(unlink(path(.segment(generation: 1, sequence: 2))) == 0)
        _ = try begin()
        try retain(0, 2)
        #expect(try objects() == ["segment-1", "snapshot-0"])
        try expectDamage(.generation(1))
    }

    /// It says nothing then.
    @Test(arguments: [nil, 30])
    func aCutThatCannotBeRead(_ offset: Int?) throws {
        _ = try begin()
        try retain(0, 2)
        let name = ObjectName.cut(generation: 1, sequence: 2)
        if let offset {
            try store.damage(name.text, at: offset)
            #expect(try store.status.problems.count == 1)
        } else {
            #expect(unlink(path(name)) == 0)
        }
        try expectDamage(.generation(1))
        #expect(try store.restore().commits == store.states.count)
    }

    /// One that is of another segment of this number says nothing of it.
    @Test func theCutOfAnotherSegment() throws {
        _ = try begin()
        try retain(0, 2)
        let name = ObjectName.cut(generation: 1, sequence: 2)
        #expect(unlink(path(name)) == 0)
        let cut = RetentionCut(generation: 1, sequence: 2, previous: try ObjectDigest.of([1]))
        _ = try store.storage.write(cut.bytes(), as: name.text)
        #expect(try RepositoryReader(storage: store.storage).cut(1, 2) == cut)
        try expectDamage(.generation(1))
    }

    /// Old snapshots are never the newest ones: something newer was there.
    @Test func aLaterGenerationThatIsLost() throws {
        // The log goes on.
        let last = ObjectName.segment(generation: 1, sequence: 4)
        try store.damage(last.text, at: 90)
        store.killShipper()
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "damaged")
        try store.damage(last.text, at: 90)
        try retain(0, 2)
        // The shipper had not seen the end.
        try expectCut()
        #expect(unlink(snapshot(2)) == 0)
        try expectDamage(.newest)
        try expectCut()
        #expect(try store.status.problems.count == 1)
        // Nothing is added behind what is cut off.
        store.killShipper()
        try store.commit()
        #expect(try store.ship().begunBecause == "damaged")
        #expect(try objects() == ["cut-2", "segment-1", "segment-2", "snapshot-0"])
        #expect(try store.restore().commits == store.states.count)
        #expect(try store.status.problems == [])
    }

    /// A retention that is cut off leaves nothing that looks like a loss, and the next one finishes it.
    @Test func aRetentionThatIsCutOff() throws {
        _ = try begin()
        var (step, isFinished) = (0, false)
        while !isFinished, step < 100 {
            let last = try objects().contains("snapshot-2") ? 2 : 1
            let call = store.storage.callCount + step
            store.storage.fails = { $0 == call ? .before : nil }
            do {
                try retain(0, last)
                isFinished = true
            } catch {
                // The one that was made to fail.
            }
            store.storage.fails = { _ in nil }
            #expect(try store.restore(.generation(1)).commits >= 3, "step \(step)")
            #expect(try store.status.problems == [], "step \(step)")
            step += 1
        }
        #expect(isFinished && step > 5)
        try expectCut()
    }

    // MARK: Several removals

    /// A commit, with a snapshot behind it, and another commit.
    private func shipAnotherSnapshot() throws {
        store.replicator?.options.snapshotInterval = .zero
        try store.commit()
        try store.ship()
        store.replicator?.options.snapshotInterval = nil
        try store.commit()
        try store.ship()
    }

    /// Each of them has its own, and one that is of no use any more is removed by the next call.
    @Test func whatIsRemovedLater() throws {
        try shipAnotherSnapshot()
        _ = try begin()
        // That of generation 2, and those after the segments 5, 2 and 0.
        try retain(0, 2, 3)
        #expect(try objects().filter { !$0.hasPrefix("segment") } == ["cut-5", "snapshot-0", "snapshot-2"])
        #expect(try store.restore(.generation(1)).commits == 6)
        try retain(0, 2)
        try expectCut()
        try retain(0, 1)
        #expect(try objects() == ["cut-2", "segment-1", "segment-2", "snapshot-0"])
        try expectCut()
        try retain(0)
        try retain(0)
        #expect(try objects() == [])
        #expect(try store.restore().commits == store.states.count)
    }

    /// What is removed first before a later snapshot is the end of the generation when that is removed, too.
    @Test func theMiddleAndThenTheEnd() throws {
        try shipAnotherSnapshot()
        _ = try begin()
        try retain(0, 1, 3)
        #expect(try objects() == ["cut-2", "segment-1", "segment-2", "segment-6", "snapshot-0", "snapshot-5"])
        // It goes from the later snapshot to the end.
        let (commits, report) = try store.restore(.generation(1))
        #expect(commits == 7 && report.remarks == [])
        try retain(0, 2)
        #expect(try objects() == ["cut-2", "segment-1", "segment-2", "snapshot-0"])
        try expectCut()
    }

    // MARK: What the next generation has noted

    /// The third did not know of the second, and of the first the retention has left one snapshot, or nothing.
    @Test func aGenerationThatWasMissingForAWhile() throws {
        store.replicator?.options.snapshotInterval = .zero
        try store.commit()
        try store.ship()
        try retain(0)
        #expect(try objects() == ["snapshot-5"])
        #expect(try begin() == 2)
        try store.commit()
        try store.ship()
        let commits = store.states.count
        #expect(rename(snapshot(2), snapshot(2) + "-aside") == 0)
        #expect(try begin() == 3)
        #expect(rename(snapshot(2) + "-aside", snapshot(2)) == 0)
        #expect(try store.restore(.generation(2)).commits == commits)
        #expect(try store.restore(.generation(1)).commits == 6)
        try retain(0, 1)
        #expect(try objects() == [])
        #expect(try store.restore(.generation(2)).commits == commits)
    }

    /// The same where what begins the second one is not kept: the first one ends with what its snapshot follows.
    @Test func aGenerationWithoutItsBeginning() throws {
        store.replicator?.options.snapshotInterval = .zero
        try store.commit()
        try store.ship()
        try retain(0)
        #expect(try begin() == 2)
        store.replicator?.options.snapshotInterval = .zero
        try store.commit()
        try store.ship()
        let commits = store.states.count
        let snapshots = [snapshot(2), path(.snapshot(generation: 2, sequence: 1))]
        for snapshot in snapshots { #expect(rename(snapshot, snapshot + "-aside") == 0) }
        #expect(try begin() == 3)
        for snapshot in snapshots { #expect(rename(snapshot + "-aside", snapshot) == 0) }
        try retain(0, 1, 3)
        #expect(try objects(2) == ["snapshot-1"] && objects() == ["snapshot-5"])
        #expect(try store.restore(.generation(2)).commits == commits)
    }

    /// The same with two of them, one after the other.
    @Test func generationsThatWereMissingForAWhile() throws {
        #expect(try begin() == 2)
        try store.commit()
        try store.ship()
        let second = store.states.count
        #expect(try begin() == 3)
        try store.commit()
        try store.ship()
        let third = store.states.count
        for generation: Int64 in [2, 3] {
            #expect(rename(snapshot(generation), snapshot(generation) + "-aside") == 0)
        }
        #expect(try begin() == 4)
        for generation: Int64 in [2, 3] {
            #expect(rename(snapshot(generation) + "-aside", snapshot(generation)) == 0)
        }
        #expect(try store.restore(.generation(1)).commits == 5)
        #expect(try store.restore(.generation(2)).commits == second)
        #expect(try store.restore(.generation(3)).commits == third)
    }

    /// What the next one has noted counts also where nothing older is kept.
    @Test func aLossWhereNothingOlderIsKept() throws {
        #expect(try begin() == 2)
        try store.commit()
        try store.ship()
        let commits = store.states.count
        #expect(try begin() == 3)
        try retain(0, 1)
        #expect(try objects() == [])
        #expect(try store.restore(.generation(2)).commits == commits)
        #expect(unlink(path(.segment(generation: 2, sequence: 1))) == 0)
        try expectDamage(.generation(2))
    }

    /// Its segments may be removed, and it is whole by the snapshot that follows them.
    @Test func aGenerationThatEndsWithASnapshot() throws {
        store.replicator?.options.snapshotInterval = .zero
        try store.commit()
        try store.ship()
        #expect(try begin() == 2)
        try retain(0, 1, 3)
        #expect(try objects() == ["cut-2", "segment-1", "segment-2", "snapshot-0", "snapshot-5"])
        let (commits, report) = try store.restore(.generation(1))
        #expect(commits == 6 && report.remarks == [])
        #expect(unlink(path(.snapshot(generation: 1, sequence: 5))) == 0)
        // That cannot be told from what is removed with old snapshots, and so it is told as what it may be.
        try expectCut()
    }

    /// What a restore refuses is no reason to remove what it accepts.
    @Test func aStoreThatIsNotSound() throws {
        try store.commit("CREATE TABLE gone (a); INSERT INTO gone VALUES (zeroblob(9000))")
        try store.ship()
        // As after a write that the disk has lost: pages that are authentic, and that nothing leads to.
        try store.database.execute(
            script: "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'gone'"
        )
        store.replicator?.options.snapshotInterval = .zero
        try store.ship()
        let before = try store.objects()
        let error = #expect(throws: DatabaseError.self) { try retain(0) }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(error?.message.contains("No old snapshot was removed") == true, "\(String(describing: error))")
        #expect(try store.objects() == before)
        // Without any that would be removed, nothing is looked at.
        try retain(0, 1, 2)
    }
}
