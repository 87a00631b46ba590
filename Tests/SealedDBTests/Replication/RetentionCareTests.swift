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
