import Foundation
import Testing

@testable import SealedDB

/// The retention removes nothing that somebody may need, and notes what it removes.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct RetentionCareTests {
    private let store: ReplicatedStore

    /// Two generations.
    init() throws {
        store = try ReplicatedStore()
        try store.commit(ReplicatedStore.rows(20, bytes: 3000))
        try store.ship()
        try begin()
    }

    /// Begins another generation, all of whose pages are other ones.
    private func begin() throws {
        store.killShipper()
        try store.commit("DELETE FROM data; \(ReplicatedStore.rows(20, bytes: 3000))")
        try store.database.checkpoint(.truncate)
        try store.commit()
        try store.ship()
    }

    private func retain(_ keeps: ([RepositoryTime]) -> [Bool]) throws -> Replicator.Removed {
        try #require(store.replicator).removeOld(keeping: keeps)
    }

    private var contents: RepositoryContents {
        get throws { try RepositoryContents(store.storage.base) }
    }

    /// Another shipper may write what this one does not know of.
    @Test func nothingIsRemovedWithoutTheLease() throws {
        let before = try store.objects("")
        store.storage.release()
        let other = try DirectoryStorage(store.repository, creates: false)
        try other.lease(known: nil)
        let error = #expect(throws: DatabaseError.self) { _ = try retain { times in times.map { _ in false } } }
        #expect(error?.reason == .busy, "\(error as Any)")
        #expect(try store.objects("") == before)
        other.release()
        #expect(try retain { times in times.map { _ in false } }.snapshots == 1)
    }

    @Test func anAnswerForOtherSnapshotsRemovesNothing() throws {
        let before = try store.objects("")
        #expect(try retain { times in times.map { _ in false } + [false] } == Replicator.Removed())
        #expect(try store.objects("") == before)
    }

    /// A generation that is away, as while a part of the repository is copied, finds its chunks when it comes back.
    @Test func theChunksOfAGenerationThatIsAway() throws {
        try begin()
        let second = FileSystem.directory(of: store.object(ObjectName.snapshot(generation: 2, sequence: 0).text))
        let aside = store.directory.file("aside")
        try #require(rename(second, aside) == 0)
        let before = try store.objects(ObjectName.chunks)
        #expect(try retain { times in times.map { _ in true } }.chunks == 0)
        #expect(try store.objects(ObjectName.chunks) == before)
        try #require(rename(aside, second) == 0)
        #expect(try store.restore(.generation(2)).commits == 4)
    }

    /// As in a copy of the repository that was made while it was shipped to.
    @Test(arguments: [true, false]) func theNewestSnapshotHasToBeWhole(isCutOff: Bool) throws {
        let newest = try RepositoryReader(storage: store.storage.base).snapshot(2, 0).0
        let chunk = store.object(ObjectName.chunk(try #require(newest.chunks.last)).text)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: chunk))
        if isCutOff { try #require(truncate(chunk, off_t(bytes.count - 1)) == 0) } else { unlink(chunk) }
        let before = try store.objects("")
        let error = #expect(throws: DatabaseError.self) { _ = try retain { times in times.indices.map { $0 == 0 } } }
        #expect(error?.reason == .damaged && error?.message.contains("Nothing was removed") == true, "\(error as Any)")
        #expect(try store.objects("") == before)
        try bytes.write(to: URL(fileURLWithPath: chunk))
        #expect(try retain { times in times.indices.map { $0 == 0 } }.snapshots == 1)
        #expect(try store.restore().commits == store.states.count)
    }

    @Test func whatFollowedTheNewestSnapshotHasToBeThere() throws {
        for _ in 0..<2 {
            try store.commit()
            try store.ship()
        }
        unlink(store.object(ObjectName.segment(generation: 2, sequence: 1).text))
        let before = try store.objects("")
        let error = #expect(throws: DatabaseError.self) { _ = try retain { times in times.indices.map { $0 == 0 } } }
        #expect(error?.message.contains("a segment that followed it is missing") == true, "\(error as Any)")
        #expect(try store.objects("") == before)
    }

    /// A copy may have been made before the last chunks were there, and its end be the right one. It may have any inode.
    @Test func aCopyInThePlaceOfTheRepository() throws {
        let place = store.directory.file("place")
        try FileManager.default.copyItem(atPath: store.repository, toPath: place)
        let newest = try RepositoryReader(storage: store.storage.base).snapshot(2, 0).0
        unlink(place + "/" + ObjectName.chunk(try #require(newest.chunks.last)).text)
        // Within a call, and then before one.
        let last = store.storage.callCount + 3
        store.storage.fails = { [repository = store.repository] call in
            guard call == last else { return nil }
            #expect(rename(repository, place + "-former") == 0 && rename(place, repository) == 0)
            return nil
        }
        try store.commit()
        for _ in 0..<2 {
            let error = #expect(throws: DatabaseError.self) { try store.ship() }
            #expect(error?.reason == .damaged, "\(error as Any)")
            #expect(error?.message.contains("is another directory") == true, "\(error as Any)")
        }
        let report = try store.ship()
        #expect(report.generation == 3 && report.begunBecause == "damaged", "\(report)")
        #expect(try store.restore().commits == store.states.count)
        #expect(try retain { times in times.indices.map { $0 == 0 } }.snapshots == 2)
        #expect(try store.restore().commits == store.states.count)

        #expect(rename(store.repository, place) == 0)
        try FileManager.default.copyItem(atPath: place, toPath: store.repository)
        let again = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(again?.message.contains("is another directory") == true, "\(again as Any)")
        #expect(try store.ship().begunBecause == "damaged")
        #expect(rename(store.repository, place + "-second") == 0 && rename(place, store.repository) == 0)
        func names() throws -> [String] {
            try DirectoryStorage(store.repository, creates: false).objects(under: "").map(\.name).sorted()
        }
        let before = try names()
        #expect(throws: DatabaseError.self) { _ = try retain { times in times.map { _ in false } } }
        #expect(try names() == before)
    }

    /// What was written or read in between is not believed.
    @Test func aCopyInThePlaceOfTheRepositoryForAMoment() throws {
        let (place, aside) = (store.directory.file("place"), store.directory.file("aside"))
        try FileManager.default.copyItem(atPath: store.repository, toPath: place)
        let repository = store.repository
        func swap() { #expect(rename(repository, aside) == 0 && rename(place, repository) == 0) }
        func swapBack() { #expect(rename(repository, place) == 0 && rename(aside, repository) == 0) }
        let first = store.storage.callCount
        var calls = 0
        var refused = 0
        // The first calls of the next attempt find out what became of it.
        repeat {
            try store.commit()
            let call = store.storage.callCount + calls
            let before = store.storage.callCount
            store.storage.fails = { number in
                if number == call { swap() }
                return nil
            }
            let result = Result { try store.ship() }
            store.storage.fails = { _ in nil }
            let wasSwapped = store.storage.callCount > before + calls
            if wasSwapped { swapBack() }
            if case .failure(let error as DatabaseError) = result {
                refused += 1
                #expect(error.message.contains("is another directory"), "\(calls): \(error)")
            }
            // Also where only the next attempt tells.
            if (try? store.ship()) == nil { _ = try store.ship() }
            #expect(try store.restore().commits == store.states.count, "\(calls)")
            if !wasSwapped { break }
            calls += 1
        } while calls < 100
        #expect(first > 0 && refused > 3 && calls < 100, "\(refused) of \(calls)")
    }

    /// A copy that is taken away as soon as it has got what was written.
    @Test func whatIsWrittenIsInTheLeasedDirectory() throws {
        store.storage.release()
        let (place, aside) = (store.directory.file("place"), store.directory.file("aside"))
        try FileManager.default.copyItem(atPath: store.repository, toPath: place)
        let repository = store.repository
        let storage = try DirectoryStorage(repository, creates: false)
        try storage.lease(known: nil)
        defer { storage.release() }
        var refused = 0
        for sequence: Int64 in 1...30 {
            let name = ObjectName.segment(generation: 9, sequence: sequence).text
            #expect(rename(repository, aside) == 0 && rename(place, repository) == 0)
            let (isOver, isBack) = (StopFlag(), DispatchSemaphore(value: 0))
            DispatchQueue.global().async {
                while !isOver.isSet, access("\(repository)/\(name)", F_OK) != 0 {}
                #expect(rename(repository, place) == 0 && rename(aside, repository) == 0)
                isBack.signal()
            }
            let result = Result { try storage.write([NewObject(name: name, bytes: [1, 2, 3])]) }
            isOver.set()
            isBack.wait()
            switch result {
            case .success: #expect(FileSystem.exists("\(repository)/\(name)"), "\(sequence)")
            case .failure: refused += 1
            }
        }
        #expect(refused > 0)
    }

    /// As after a copy was put in the place of the repository, and the shipper was begun anew.
    @Test func aSnapshotWhoseChunksAreGoneIsNotGoneOnWith() throws {
        let newest = try RepositoryReader(storage: store.storage.base).snapshot(2, 0).0
        unlink(store.object(ObjectName.chunk(try #require(newest.chunks.last)).text))
        store.killShipper()
        try store.commit()
        let report = try store.ship()
        #expect(report.generation == 3 && report.begunBecause == "damaged", "\(report)")
        #expect(try store.restore().commits == store.states.count)
    }

    /// What is left of a generation by a run that is cut off is told from a loss.
    @Test func aGenerationThatIsRemovedIsNoted() throws {
        #expect(try contents.removed == [])
        #expect(try retain { times in times.indices.map { $0 == 0 } }.snapshots == 1)
        let found = try contents
        #expect(found.removed == [1] && found.generations.map(\.number) == [2] && found.isWhole)
        #expect(try store.restore().commits == store.states.count)
    }

    /// By other rules a generation may stay that was about to be removed.
    @Test func aGenerationThatStaysAfterAll() throws {
        var step = 0
        while try contents.removed != [1], step < 100 {
            let call = store.storage.callCount + step
            store.storage.fails = { $0 == call ? .before : nil }
            #expect(throws: DatabaseError.self) { _ = try retain { times in times.indices.map { $0 == 0 } } }
            store.storage.fails = { _ in nil }
            step += 1
        }
        let found = try contents
        try #require(found.removed == [1] && found.generations.count == 2)
        #expect(try retain { times in times.map { _ in true } } == Replicator.Removed())
        #expect(try contents.removed == [])
        #expect(try store.restore(.generation(1)).commits == 2)
    }
}
