import Foundation
import Testing

@testable import SealedDB

/// Names in a repository: what a list leaves out counts as removed, and a name that is not durable is none.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RepositoryNameTests {
    private let store: ReplicatedStore

    init() throws { store = try ReplicatedStore() }

    /// Generations whose pages have nothing in common.
    private func shipGenerations(_ count: Int) throws {
        for _ in 0..<count {
            try store.commit("DELETE FROM data; " + ReplicatedStore.rows(100, bytes: 900))
            try store.ship()
            try store.rotate()
        }
        try store.ship()
    }

    private var keepAll: ([RepositoryTime]) -> [Bool] { { $0.map { _ in true } } }

    @Test func aLinkInThePlaceOfAGenerationIsNotPassedOver() throws {
        try shipGenerations(2)
        let (generation, elsewhere) = (store.object("generations/00000002"), store.directory.file("elsewhere"))
        let before = try store.objects(ObjectName.chunks)
        try FileManager.default.moveItem(atPath: generation, toPath: elsewhere)
        #expect(symlink(elsewhere, generation) == 0)
        for call: () throws -> Void in [
            { try RepositoryRestore(from: store.repository, to: store.directory.file("new")).run() },
            { _ = try store.status },
            { _ = try store.replicator!.removeOld(keeping: keepAll) },
        ] {
            let error = #expect(throws: DatabaseError.self) { try call() }
            #expect(error?.reason == .notRegularFile && error?.message.contains(generation) == true, "\(error as Any)")
        }
        unlink(generation)
        try FileManager.default.moveItem(atPath: elsewhere, toPath: generation)
        #expect(try store.objects(ObjectName.chunks) == before)
        #expect(try store.status.problems == [])
        try store.restore(.generation(2))
    }

    /// It may come back. Once it is there again, what nothing names goes.
    @Test func theChunksOfAGenerationThatIsAwayStay() throws {
        try shipGenerations(3)
        let (generation, elsewhere) = (store.object("generations/00000002"), store.directory.file("elsewhere"))
        try FileManager.default.moveItem(atPath: generation, toPath: elsewhere)
        #expect(try store.replicator!.removeOld(keeping: keepAll).chunks == 0)
        let removed = try store.replicator!.removeOld { times in times.map { $0 == times.first } }
        // It may have the others' chunks in common.
        #expect(removed.snapshots == 2 && removed.chunks == 0, "\(removed)")
        try FileManager.default.moveItem(atPath: elsewhere, toPath: generation)
        #expect(try store.status.problems == [])
        try store.restore(.generation(2))
        #expect(try store.replicator!.removeOld(keeping: keepAll).chunks > 0)
        #expect(try store.status.problems == [])
        try store.restore(.generation(2))
    }

    /// The newest one, or all.
    @Test(arguments: ["generations/00000003", "generations"]) func whatIsAwayTakesNothingAlong(name: String) throws {
        try shipGenerations(2)
        let elsewhere = store.directory.file("elsewhere")
        try FileManager.default.moveItem(atPath: store.object(name), toPath: elsewhere)
        #expect(try store.replicator!.removeOld(keeping: keepAll) == Replicator.Removed())
        try FileManager.default.moveItem(atPath: elsewhere, toPath: store.object(name))
        #expect(try store.status.problems == [])
        for generation in 1...3 as ClosedRange<Int64> { try store.restore(.generation(generation)) }
    }

    /// A generation that a retention had begun to remove, and another one keeps.
    @Test func otherRulesMayKeepAGeneration() throws {
        try shipGenerations(2)
        let end = ObjectName.end(generation: 1)
        store.storage.fails = { [unowned storage = store.storage] _ in
            storage.written.contains(end.text) ? .before : nil
        }
        let newest: ([RepositoryTime]) -> [Bool] = { times in times.map { $0 == times.first } }
        #expect(throws: DatabaseError.self) { try store.replicator!.removeOld(keeping: newest) }
        store.storage.fails = { _ in nil }
        #expect(try RepositoryContents(store.storage.base).removed == [1])
        #expect(try store.replicator!.removeOld(keeping: keepAll) == Replicator.Removed())
        #expect(try RepositoryContents(store.storage.base).removed == [])
        try store.restore(.generation(1))
    }

    /// What the retention has not removed at once it removes later, also of generations that are not there any more.
    @Test func aRetentionThatFailsIsMadeUpFor() throws {
        try shipGenerations(3)
        let replicator = try #require(store.replicator)
        let newest: ([RepositoryTime]) -> [Bool] = { times in times.map { $0 == times.first } }
        // The first generation goes, as in each service that gets another key.
        #expect(try replicator.removeOld { times in times.map { $0 != times.last } }.snapshots == 1)
        let count = try store.objects(ObjectName.chunks).count
        let known = store.storage.removed.count
        store.storage.fails = { [unowned storage = store.storage] _ in
            storage.removed.dropFirst(known).contains { $0.hasPrefix(ObjectName.chunks) } ? .before : nil
        }
        #expect(throws: DatabaseError.self) { try replicator.removeOld(keeping: newest) }
        store.storage.fails = { _ in nil }
        let left = try store.objects(ObjectName.chunks).count
        #expect(left < count)
        let removed = try replicator.removeOld(keeping: newest)
        #expect(removed.snapshots == 0 && removed.chunks > 0, "\(removed)")
        // What is left is the newest snapshot's.
        let reader = RepositoryReader(storage: store.storage.base)
        let contents = try RepositoryContents(store.storage.base)
        let last = try #require(contents.generations.last)
        let needed = try Set(reader.snapshot(last.number, last.snapshots.last!).0.chunks)
        #expect(try store.objects(ObjectName.chunks).count == needed.count)
        #expect(contents.isWhole && contents.removed == [1, 2, 3], "\(contents)")
        try store.restore()
    }

    /// What a process that was killed has left without syncing its directory is synced before it counts.
    @Test func namesOfAnEarlierProcessAreMadeDurable() throws {
        try store.commit(ReplicatedStore.rows(50, bytes: 900))
        try store.ship()
        store.killShipper()
        store.storage = try TestStorage(store.repository)
        let watch = CallWatch(store.repository)
        try store.ship()
        let calls = watch.endWithAll()
        for name in [store.repository, "generations", "generations/00000001"] {
            #expect(calls.contains("fsync " + name), "\(name): \(calls)")
        }
        // A snapshot that has the chunks of an earlier one in common.
        store.killShipper()
        store.storage = try TestStorage(store.repository)
        unlink(store.object("generations/00000001/snapshot-000000000000"))
        let second = CallWatch(store.repository)
        try store.ship()
        let synced = Set(second.endWithAll().filter { $0.hasPrefix("fsync chunks/") })
        let directories = Set(
            try store.objects(ObjectName.chunks).map { "fsync chunks/" + $0.split(separator: "/")[1] }
        )
        #expect(synced.isSuperset(of: directories) && !directories.isEmpty)
    }

    /// All objects of a call that have a name which may not be durable go, not only those in one directory.
    @Test func aDirectoryThatCannotBeSynced() throws {
        let storage = try DirectoryStorage(store.repository, creates: true)
        let names = ["chunks/aa", "chunks/bb", "chunks/cc"].map { $0 + "/" + String(repeating: "a", count: 64) }
        // So that their directories are there.
        for name in names {
            #expect(try storage.write([NewObject(name: name, bytes: [1])]) == [true])
            try storage.remove(name)
        }
        let objects = names.map { NewObject(name: $0, bytes: [1]) }
        let counted = CallWatch(store.repository)
        #expect(try storage.write(objects) == [true, true, true])
        let calls = counted.endWithAll()
        for name in names { try storage.remove(name) }
        for index in calls.indices where calls[index].hasPrefix("fsync chunks/") && calls[index].utf8.count < 20 {
            let watch = CallWatch(store.repository, failing: index...index)
            #expect(throws: DatabaseError.self) { try storage.write(objects) }
            watch.end()
            let left = try storage.objects(under: ObjectName.chunks).map(\.name)
            // Those whose directories were synced before.
            let isSynced = names.map { name in calls[..<index].contains("fsync " + name.prefix(9)) }
            #expect(left == zip(names, isSynced).filter { $0.1 }.map { $0.0 }, "\(calls[index])")
            for name in names { try storage.remove(name) }
        }
    }

    /// The repository was copied to another place while a shipper ran, or its lease removed, and another one has shipped there since.
    @Test(arguments: [false, true]) func aLeaseThatIsNotTheRepositorysAnyMore(isCopied: Bool) throws {
        try store.commit()
        try store.ship()
        if isCopied {
            let copy = store.repository + ".copy"
            try FileManager.default.copyItem(atPath: store.repository, toPath: copy)
            try FileManager.default.removeItem(atPath: store.repository)
            try FileManager.default.moveItem(atPath: copy, toPath: store.repository)
        } else {
            #expect(unlink(store.repository + "/lease") == 0)
        }
        let other = try Database.testing(store.directory.file("other.db"), journalMode: .wal)
        defer { other.close() }
        try other.fill(rows: 5)
        var options = Replicator.Options()
        options.adopts = true
        let storage = try DirectoryStorage(store.repository, creates: false)
        let path = store.directory.file("other.db")
        let second = try Replicator(path: path, key: .testing(1), storage: storage, options: options)
        _ = try second.ship()
        try store.commit()
        // While it runs, and afterwards.
        #expect(throws: DatabaseError.self) { try store.ship() }
        second.close()
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        let what = isCopied ? "is another directory" : "another one writes to this repository"
        #expect(error?.message.contains(what) == true, "\(error as Any)")
    }
}
