import Foundation
import Testing

@testable import SealedDB

/// What is missing between what is there is told, and nothing earlier is taken for what was wanted.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct RepositoryLossTests {
    private let store: ReplicatedStore
    /// When the last commit of the second generation was shipped.
    private let time: RepositoryTime
    private let commits: Int

    /// Two generations, each with a snapshot and three segments.
    init() throws {
        store = try ReplicatedStore()
        // One log for all.
        store.options.relievedAt = 1 << 40
        try RepositoryLossTests.shipThree(store)
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        try store.commit()
        try RepositoryLossTests.shipThree(store)
        let last = try RepositoryReader(storage: store.storage).segment(2, 3).header
        time = try #require(last.commits.last?.time)
        commits = store.states.count
    }

    private static func shipThree(_ store: ReplicatedStore) throws {
        try store.ship()
        for _ in 0..<3 {
            let before = RepositoryTime.now
            // Each segment has a time of its own.
            while RepositoryTime.now <= before {}
            try store.commit(ReplicatedStore.rows(3, bytes: 3000))
            try store.ship()
        }
    }

    private func snapshot(_ generation: Int64) -> String {
        store.object(ObjectName.snapshot(generation: generation, sequence: 0).text)
    }

    private func segment(_ generation: Int64, _ sequence: Int64) -> String {
        store.object(ObjectName.segment(generation: generation, sequence: sequence).text)
    }

    private func expectDamage(_ moment: RepositoryMoment, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let target = store.directory.file("damaged.db")
        let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) {
            try RepositoryRestore(from: store.repository, at: moment, to: target).run()
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))", sourceLocation: sourceLocation)
        #expect(!FileSystem.exists(target), sourceLocation: sourceLocation)
    }

    @Test func allIsThere() throws {
        #expect(try store.restore().commits == commits)
        #expect(try store.restore(.time(time)).commits == commits)
        #expect(try store.restore(.generation(1)).commits == 4)
        #expect(try store.status.problems == [])
    }

    /// The generation before it has less, and is not what was asked for.
    @Test(arguments: [true, false])
    func theSnapshotOfAGeneration(_ isMissing: Bool) throws {
        if isMissing {
            #expect(unlink(snapshot(2)) == 0)
        } else {
            try store.damage(ObjectName.snapshot(generation: 2, sequence: 0).text, at: 200)
        }
        try expectDamage(.newest)
        try expectDamage(.time(time))
        #expect(try store.restore(.generation(1)).commits == 4)
        // The second generation may have begun by then.
        let first = try RepositoryReader(storage: store.storage).segment(1, 3).header
        try expectDamage(.time(#require(first.commits.last?.time)))
        // It cannot have: the first one goes on.
        let second = try RepositoryReader(storage: store.storage).segment(1, 2).header
        #expect(try store.restore(.time(#require(second.commits.last?.time))).commits == 3)
        #expect(try store.status.problems != [])
    }

    /// The next generation has noted what it follows.
    @Test func theEndOfAnOlderGeneration() throws {
        #expect(unlink(segment(1, 3)) == 0)
        try expectDamage(.generation(1))
        let begin = try RepositoryReader(storage: store.storage).snapshot(2, 0).0.time
        try expectDamage(.time(RepositoryTime(milliseconds: begin.milliseconds - 1)))
        // What is proven to be earlier can be had.
        let second = try RepositoryReader(storage: store.storage).segment(1, 2).header
        #expect(try store.restore(.time(#require(second.commits.last?.time))).commits == 3)
        #expect(try store.restore().commits == commits)
    }

    /// One of which nothing is left: neither a restore nor the list takes an earlier one for it.
    @Test(arguments: [1, 2]) func allOfAGeneration(count: Int) throws {
        var begin: [RepositoryTime] = []
        for _ in 0...count {
            store.killShipper()
            try store.commit()
            try store.database.checkpoint(.truncate)
            try store.commit()
            try store.ship()
            begin.append(try RepositoryReader(storage: store.storage).snapshot(Int64(begin.count + 3), 0).0.time)
            while RepositoryTime.now <= begin[begin.count - 1] {}
        }
        #expect(try store.restore(.time(begin[0])).commits == commits + 2)
        for number in 3..<3 + count {
            let directory = store.object("generations/0000000\(number)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 1)
            try FileManager.default.removeItem(atPath: directory)
        }
        let target = store.directory.file("damaged.db")
        let error = #expect(throws: DatabaseError.self) {
            try RepositoryRestore(from: store.repository, at: .time(begin[0]), to: target).run()
        }
        let words = count == 1 ? "Generation 3 was removed" : "Generations 3 to 4 were removed"
        #expect(error?.reason == .damaged && error?.message.contains(words) == true, "\(String(describing: error))")
        #expect(!FileSystem.exists(target))
        // What is proven to be earlier can be had, and what was asked for by its generation.
        #expect(try store.restore(.time(time)).commits == commits)
        #expect(try store.restore(.generation(2)).commits == commits)
        #expect(try store.restore().commits == store.states.count)
        // It may have been removed on purpose, and so it is no problem, but told.
        let status = try store.status
        #expect(status.problems == [])
        let gap = "from \(time) to the beginning of generation \(3 + count)"
        #expect(status.generations.map(\.gaps) == [[], [gap], []], "\(status.generations)")
    }

    /// The retention has removed it, or it is lost: from the generation before nobody can tell what was wanted.
    @Test func theBeginningOfAGeneration() throws {
        let store = try ReplicatedStore()
        store.options.snapshotInterval = .zero
        try store.ship()
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        var (times, first) = ([RepositoryTime](), store.states.count)
        for _ in 0..<3 {
            try store.commit(ReplicatedStore.rows(3, bytes: 3000))
            #expect(try store.ship().generation == 2)
            times.append(try #require(store.reports.last).time)
            while RepositoryTime.now <= times[times.count - 1] {}
        }
        first += 1
        #expect(try store.restore(.time(times[0])).commits == first)
        let kept = try #require(try store.status.generations.last?.snapshots.last)
        _ = try store.replicator?.removeOld { list in
            list.indices.map { $0 == 0 || $0 == list.count - 1 }
        }
        let status = try store.status
        #expect(status.problems == [] && status.generations[0].gaps.count == 1, "\(status)")
        #expect(status.generations[0].gaps.first?.hasSuffix("to the first snapshot of generation 2") == true)
        let target = store.directory.file("damaged.db")
        let error = #expect(throws: DatabaseError.self) {
            try RepositoryRestore(
                from: store.repository,
                at: .time(RepositoryTime(milliseconds: kept.time - 1)),
                to: target
            ).run()
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(error?.message.contains("The beginning of generation 2 was removed") == true)
        #expect(try store.restore().commits == store.states.count)
    }

    /// A generation that begins later than what is wanted says that what is behind it does not matter.
    @Test func damageThatIsLaterThanWhatIsWanted() throws {
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        try store.commit()
        #expect(try store.ship().generation == 3)
        try store.damage(ObjectName.snapshot(generation: 3, sequence: 0).text, at: 200)
        let first = try RepositoryReader(storage: store.storage).segment(1, 3).header
        #expect(try store.restore(.time(#require(first.commits.last?.time))).commits == 4)
        try expectDamage(.newest)
        try expectDamage(.time(time))
    }

    /// A number that was left out, and no generation: the next one follows the last object there.
    @Test func aNumberThatWasLeftOut() throws {
        store.killShipper()
        // What is left of nothing takes the number.
        let rest = URL(fileURLWithPath: store.object("generations/00000003/cut-000000000001"))
        try FileManager.default.createDirectory(
            at: rest.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data("x".utf8).write(to: rest)
        try store.commit()
        try store.database.checkpoint(.truncate)
        try store.commit()
        #expect(try store.ship().generation == 4)
        let begin = try RepositoryReader(storage: store.storage).snapshot(4, 0).0.time
        let (found, _) = try store.restore(.time(RepositoryTime(milliseconds: begin.milliseconds - 1)))
        #expect(found == commits)
        #expect(try store.status.generations.allSatisfy(\.gaps.isEmpty))
    }

    /// What was noted counts also where the generation before cannot be read.
    @Test func theEndOfAGenerationBehindADamagedOne() throws {
        store.killShipper()
        try store.commit()
        try store.database.checkpoint(.truncate)
        try store.commit()
        #expect(try store.ship().generation == 3)
        #expect(try store.restore(.generation(2)).commits == commits)
        try store.damage(ObjectName.segment(generation: 1, sequence: 3).text, at: 2000)
        #expect(unlink(segment(2, 3)) == 0)
        try expectDamage(.generation(2))
    }

    /// Commits can have the same time, and so the damaged segment may hold what was wanted.
    @Test func whatMayHaveTheSameTimeIsTold() throws {
        try store.damage(ObjectName.segment(generation: 2, sequence: 3).text, at: 2000)
        let second = try RepositoryReader(storage: store.storage).segment(2, 2).header
        let (count, report) = try store.restore(.time(#require(second.commits.last?.time)))
        #expect(count == commits - 1)
        #expect(report.remarks.count == 1 && report.remarks[0].contains("that very time"), "\(report.remarks)")
        try expectDamage(.time(time))
    }

    /// It may come back, as when it was not mounted. Nothing that it needs is removed.
    @Test func retentionStopsWhereASnapshotIsMissing() throws {
        #expect(rename(snapshot(2), snapshot(2) + "-aside") == 0)
        store.killShipper()
        try store.commit()
        #expect(try store.ship().generation == 3)
        let before = try store.storage.base.objects(under: "").map(\.name).sorted()
        let error = #expect(throws: DatabaseError.self) {
            try store.replicator?.removeOld { times in times.indices.map { $0 == 0 } }
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(try store.storage.base.objects(under: "").map(\.name).sorted() == before)
        #expect(rename(snapshot(2) + "-aside", snapshot(2)) == 0)
        #expect(try store.restore(.generation(2)).commits == commits)
        let removed = try store.replicator?.removeOld { times in times.indices.map { $0 == 0 } }
        #expect(removed?.snapshots == 2 && removed?.segments == 6)
        #expect(try store.restore().commits == store.states.count)
        #expect(try store.status.problems == [])
    }

    /// Whoever is killed in between leaves no segment that looks like the rest of something lost.
    @Test func retentionThatIsCutOff() throws {
        store.killShipper()
        try store.database.checkpoint(.truncate)
        try store.commit()
        try store.ship()
        var (step, isFinished) = (0, false)
        while !isFinished, step < 100 {
            let call = store.storage.callCount + step
            store.storage.fails = { $0 == call ? .before : nil }
            do {
                _ = try store.replicator?.removeOld { times in times.indices.map { $0 == 0 } }
                isFinished = true
            } catch {
                // The one that was made to fail.
            }
            store.storage.fails = { _ in nil }
            #expect(try RepositoryContents(store.storage.base).strays == [])
            #expect(try store.restore().commits == store.states.count)
            step += 1
        }
        #expect(isFinished && step > 5)
        #expect(try RepositoryContents(store.storage.base).generations.count == 1)
    }

    /// It would be written as what nobody reads.
    @Test func timesAreThoseThatCanBeWritten() throws {
        #expect(RepositoryTime("9999-12-31T23:59:59.999Z") != nil)
        #expect(RepositoryTime("9999-12-31T23:59:59.999-00:01") == nil)
        #expect(RepositoryTime("1970-01-01T00:00:00Z") != nil)
        #expect(RepositoryTime("1970-01-01T00:00:00+00:01") == nil)
    }

    /// One object that is named often would fill the disk.
    @Test func aChunkThatIsNamedTwice() throws {
        let name = ObjectName.snapshot(generation: 2, sequence: 0)
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: snapshot(2))), as: UTF8.self)
        let manifest = try RepositoryReader(storage: store.storage).snapshot(2, 0).0
        try #require(manifest.chunks.count > 1 && manifest.chunks[0] != manifest.chunks[1])
        let changed = text.replacing(manifest.chunks[1], with: manifest.chunks[0])
        let end = try #require(changed.firstRange(of: "sha256: ")).lowerBound
        let body = changed[..<end]
        let bytes = Array("\(body)sha256: \(try ObjectDigest.of(Array(body.utf8)))\n".utf8)
        let error = #expect(throws: DatabaseError.self) { try SnapshotManifest(parsing: bytes, named: name) }
        #expect(error?.message.contains("same pages more than once") == true, "\(String(describing: error))")
    }
}
