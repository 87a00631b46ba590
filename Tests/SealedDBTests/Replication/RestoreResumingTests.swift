import Foundation
import Testing

@testable import SealedDB

/// A restore that is cut off goes on where it was, and believes nothing of what it finds.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct RestoreResumingTests {
    private let store: ReplicatedStore
    private let target: String
    /// What a restore gives that nobody cuts off.
    private let whole: Data

    /// A snapshot of some chunks, and segments that change and add pages.
    init() throws {
        store = try ReplicatedStore()
        store.options.relievedAt = 1 << 40
        try store.commit(ReplicatedStore.rows(20, bytes: 3000))
        try store.ship()
        for _ in 0..<3 {
            try store.commit(ReplicatedStore.rows(4, bytes: 3000))
            try store.ship()
        }
        target = store.directory.file("target.db")
        whole = try store.restoredBytes()
    }

    private var leftovers: [String] { TemporaryFile.leftovers(of: target) }

    private func contents(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }

    /// - Returns: which chunks were read from the repository.
    @discardableResult
    private func restore(replaces: Bool = false) throws -> [String] {
        let storage = try TestStorage(store.repository)
        try RepositoryRestore(storage: storage, to: target, replaces: replaces).run()
        return storage.namesRead.filter { $0.hasPrefix(ObjectName.chunks) }
    }

    private func expectWhole() throws {
        #expect(try contents(target) == whole)
        #expect(leftovers == [])
    }

    @Test(arguments: [false, true])
    func aRepositoryThatCannotBeReachedAnyMore(_ replaces: Bool) throws {
        let chunkCount = try store.objects(ObjectName.chunks).count
        #expect(chunkCount > 3)
        var (call, resumed) = (0, 0)
        while true {
            if replaces { try Data(repeating: 7, count: 4096).write(to: URL(fileURLWithPath: target)) }
            let storage = try TestStorage(store.repository)
            storage.fails = { $0 == call ? .before : nil }
            let error: DatabaseError?
            do throws(DatabaseError) {
                try RepositoryRestore(storage: storage, to: target, replaces: replaces).run()
                error = nil
            } catch let failure {
                error = failure
            }
            guard let error else { break }
            let had = Set(storage.namesRead.filter { $0.hasPrefix(ObjectName.chunks) })
            #expect(error.reason == .noSpace)
            #expect(leftovers.count == (had.isEmpty ? 0 : 1))
            #expect(error.message.contains("Restore to the same path again") == !had.isEmpty)
            if let leftover = leftovers.first { #expect(error.message.contains(leftover)) }
            // Nothing that has segments applied to it is there any more as the snapshot has it, but most of it is.
            let again = try restore(replaces: replaces)
            if had.count > again.count { resumed += 1 }
            if had.count < chunkCount { #expect(Set(again).isDisjoint(with: had)) }
            try expectWhole()
            #expect(unlink(target) == 0)
            call += 1
        }
        #expect(resumed > 1)
    }

    /// Whoever is killed leaves a file of any contents.
    @Test(arguments: [0, 1, 5000, 16384, 40000, 1 << 20], [false, true])
    func anyFileThatWasLeft(_ size: Int, _ isForged: Bool) throws {
        var bytes = whole.prefix(size)
        bytes.append(contentsOf: repeatElement(9, count: max(0, size - bytes.count)))
        if isForged, size > 100 { bytes[100] ^= 1 }
        let leftover = try TemporaryFile.path(beside: target, mark: "restore")
        try bytes.write(to: URL(fileURLWithPath: leftover))
        try restore()
        try expectWhole()
    }

    @Test func aCallerThatStopsIt() throws {
        struct Stop: Error {}
        var reports = 0
        let error = #expect(throws: DatabaseError.self) {
            try RepositoryRestore(from: store.repository, to: target).run { _ in
                reports += 1
                if reports == 3 { throw Stop() }
            }
        }
        let leftover = try #require(leftovers.first)
        #expect(error?.message.contains(leftover) == true)
        #expect(try restore().count < store.objects(ObjectName.chunks).count)
        try expectWhole()
    }

    /// Two at a time would write to one file.
    @Test func oneAtATime() throws {
        let place = try RestorePlace(target, replaces: false, ignoresUnseenUsers: false)
        let error = #expect(throws: DatabaseError.self) { try restore() }
        #expect(error?.reason == .busy)
        #expect(error?.message.contains(place.copy.path) == true)
        #expect(leftovers == [place.copy.path])
        place.discard()
        try restore()
        try expectWhole()
    }

    /// A file that has another name, too, is somebody's.
    @Test func aLinkIsNotWrittenTo() throws {
        let others = store.directory.file("others")
        try Data("theirs".utf8).write(to: URL(fileURLWithPath: others))
        let hard = try TemporaryFile.path(beside: target, mark: "restore")
        let soft = try TemporaryFile.path(beside: target, mark: "restore")
        #expect(link(others, hard) == 0)
        #expect(symlink(others, soft) == 0)
        try restore()
        #expect(try contents(target) == whole)
        #expect(try contents(others) == Data("theirs".utf8))
        unlink(soft)
    }

    /// One that is locked first has ended when the other one gets the lock: the file may be the store by then, and in use.
    @Test(arguments: [true, false]) func aRestoreThatEndsMeanwhile(_ isDone: Bool) throws {
        let first = try RestorePlace(target, replaces: false, ignoresUnseenUsers: false)
        let path = first.copy.path
        let second = try #require(try StoreCopy(resuming: path, of: target))
        let file = try second.newFile()
        #expect((isDone ? rename(path, target) : unlink(path)) == 0)
        withExtendedLifetime(consume first) {}
        let error = #expect(throws: DatabaseError.self) { try RestorePlace.locked(file, of: second, target) }
        #expect(error?.reason == .busy)
    }

    /// One that this user may not open any more is not in the way.
    @Test func aFileThatNobodyMayOpen() throws {
        func leave() throws -> String {
            let leftover = try TemporaryFile.path(beside: target, mark: "restore")
            try Data(repeating: 1, count: 5000).write(to: URL(fileURLWithPath: leftover))
            return leftover
        }
        let first = try leave()
        var watch = CallWatch(store.directory.path)
        try restore()
        let made = watch.endWithAll()
        #expect(unlink(target) == 0 && !FileSystem.exists(first))
        let opening = try #require(made.firstIndex { $0.contains("open") && $0.contains(".target.db.sealdb-restore-") })
        let second = try leave()
        watch = CallWatch(store.directory.path, failing: opening...opening, code: EACCES)
        defer { watch.end() }
        try restore()
        #expect(!FileSystem.exists(second))
        try expectWhole()
    }

    /// Wherever the caller stops it, also while it is read back, nothing is read twice.
    @Test func aCallerThatStopsItAnywhere() throws {
        struct Stop: Error {}
        let chunkCount = try store.objects(ObjectName.chunks).count
        var (step, phases) = (0, Set<KeyRotation.Progress.Phase>())
        while true {
            step += 1
            var reports = 0
            let error: DatabaseError?
            do throws(DatabaseError) {
                try RepositoryRestore(from: store.repository, to: target).run { state in
                    reports += 1
                    guard reports == step else { return }
                    phases.insert(state.phase)
                    throw Stop()
                }
                error = nil
            } catch let failure {
                error = failure
            }
            guard let error else { break }
            #expect(error.reason == .interrupted && error.underlyingError is Stop)
            let leftover = try #require(leftovers.first, "\(error)")
            #expect(error.message.contains(leftover) && error.message.contains("Restore to the same path again"))
            #expect(!FileSystem.exists(target))
            #expect(try restore().count < chunkCount)
            try expectWhole()
            #expect(unlink(target) == 0)
        }
        #expect(phases == [.copy, .verify, .sync, .swap])
        #expect(try contents(target) == whole)
    }

    /// What fails after damage was found is told as it is: another snapshot is tried, and the disk is at fault then.
    @Test func aDiskThatFailsAfterDamage() throws {
        store.killShipper()
        store.options.snapshotInterval = .zero
        try store.commit(ReplicatedStore.rows(20, bytes: 3000))
        try store.ship()
        let manifests = try #require(try RepositoryContents(store.storage).generations.last)
        try #require(manifests.snapshots.count > 1)
        let reader = RepositoryReader(storage: store.storage)
        let newest = try reader.snapshot(manifests.number, try #require(manifests.snapshots.last)).0
        let older = try reader.snapshot(manifests.number, manifests.snapshots[manifests.snapshots.count - 2]).0
        let last = try #require(newest.chunks.last)
        try #require(!older.chunks.contains(last))
        #expect(unlink(store.object(ObjectName.chunk(last).text)) == 0)
        let watch = CallWatch(store.directory.path)
        try restore()
        let made = watch.endWithAll()
        #expect(unlink(target) == 0)
        // Beginning with the other snapshot.
        let cut = try #require(made.lastIndex { $0.hasPrefix("ftruncate .target.db.sealdb-") && $0 != made.last })
        let first = try #require(made.firstIndex { $0.hasPrefix("ftruncate .target.db.sealdb-") })
        try #require(first < cut)
        for index in made.indices where index > first && made[index].hasPrefix("ftruncate .target.db.sealdb-") {
            let watch = CallWatch(store.directory.path, failing: index...index)
            let error = #expect(throws: DatabaseError.self) { try restore() }
            _ = watch.endWithAll()
            #expect(error?.message.contains("What was read so far") == false, "\(String(describing: error))")
            #expect(leftovers == [])
        }
    }

    /// What is damaged is worth nothing, and is not left.
    @Test func aDamagedRepositoryLeavesNothing() throws {
        let chunk = try #require(try store.objects(ObjectName.chunks).sorted().last)
        try store.damage(chunk, at: 10)
        let error = #expect(throws: DatabaseError.self) { try restore() }
        #expect(error?.reason == .damaged)
        #expect(leftovers == [])
    }
}
