import Foundation
import Testing

@testable import SealedDB

/// A restore on several threads.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct LargeRestoreTests {
    private let store: ReplicatedStore
    private let target: String
    private let whole: Data
    /// The digests of the snapshot's chunks.
    private let chunks: [String]

    init() throws {
        store = try ReplicatedStore()
        store.options.chunkPages = 32
        try store.commit(ReplicatedStore.rows(1200, bytes: 3500))
        try store.ship()
        target = store.directory.file("target.db")
        whole = try store.restoredBytes()
        let reader = RepositoryReader(storage: store.storage)
        let generation = try #require(try RepositoryContents(store.storage).generations.last)
        chunks = try reader.snapshot(generation.number, #require(generation.snapshots.last)).0.chunks
        // Else one thread does it alone.
        try #require(whole.count > 4 << 20 && Set(chunks).count == chunks.count && chunks.count > 30)
    }

    private var leftovers: [String] { TemporaryFile.leftovers(of: target) }

    private func object(_ chunk: Int) -> String { ObjectName.chunk(chunks[chunk]).text }

    private func restore(
        _ storage: TestStorage? = nil,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws -> (chunksRead: [String], error: DatabaseError?) {
        let storage = try storage ?? TestStorage(store.repository)
        var error: DatabaseError?
        do throws(DatabaseError) {
            try RepositoryRestore(storage: storage, to: target).run(progress: progress)
        } catch let failure {
            error = failure
        }
        return (storage.namesRead.filter { $0.hasPrefix(ObjectName.chunks) }, error)
    }

    private func expectWhole() throws {
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == whole)
        #expect(leftovers == [])
        #expect(unlink(target) == 0)
    }

    @Test func progressIsInOrder() throws {
        var last: Int64 = 0
        let thread = pthread_self()
        let (read, error) = try restore { state in
            #expect(pthread_equal(pthread_self(), thread) != 0)
            guard state.phase == .copy else { return }
            #expect(state.completedPages >= last)
            last = state.completedPages
        }
        #expect(error == nil && read == chunks.map { ObjectName.chunk($0).text })
        #expect(last == Int64(whole.count / 4096))
        try expectWhole()
    }

    /// Everything that was read until then stays.
    @Test func aRepositoryThatCannotBeReachedAnyMore() throws {
        for chunk in [1, 2, 5, Int.random(in: 3..<chunks.count), chunks.count - 1] {
            let storage = try TestStorage(store.repository)
            storage.fails = { [unowned storage] _ in storage.namesRead.contains(self.object(chunk - 1)) ? .before : nil
            }
            let first = try restore(storage)
            #expect(first.error?.reason == .noSpace)
            #expect(first.error?.message.contains("Restore to the same path again") == true)
            #expect(leftovers.count == 1)
            let second = try restore()
            #expect(
                second.error == nil && first.chunksRead + second.chunksRead == chunks.map { ObjectName.chunk($0).text }
            )
            try expectWhole()
        }
    }

    @Test func aCallerThatStopsIt() throws {
        struct Stop: Error {}
        for step in [1, 2, Int.random(in: 3..<chunks.count), chunks.count] {
            var reports = 0
            let first = try restore { _ in
                reports += 1
                if reports == step { throw Stop() }
            }
            #expect(reports == step && first.chunksRead.count >= step)
            #expect(first.error?.message.contains(try #require(leftovers.first)) == true)
            // Those that other threads had are written, too.
            let second = try restore()
            #expect(second.error == nil && Set(second.chunksRead).isDisjoint(with: first.chunksRead))
            try expectWhole()
        }
    }

    /// The first of them is told, whichever thread finds it, and nothing is left.
    @Test(arguments: [true, false]) func chunksThatAreDamagedOrMissing(_ isMissing: Bool) throws {
        let bad = Set((0..<3).map { _ in Int.random(in: 1..<chunks.count) })
        for chunk in bad {
            if isMissing {
                unlink(store.object(object(chunk)))
            } else {
                try store.damage(object(chunk), at: 7)
            }
        }
        for _ in 0..<10 {
            let error = try restore().error
            #expect(error?.reason == .damaged)
            #expect(error?.message.contains(object(bad.min()!)) == true, "\(String(describing: error)), \(bad)")
            #expect(leftovers == [])
        }
    }

    /// A file that failed is not gone on with.
    @Test(arguments: ["pwrite", "pread"]) func aDiskThatFails(_ call: String) throws {
        func calls(failing index: Int? = nil) throws -> (made: [String], error: DatabaseError?) {
            let watch = CallWatch(store.directory.path, failing: index.map { $0...$0 })
            let result = Result { try restore().error }
            return (watch.endWithAll(), try result.get())
        }
        let (made, error) = try calls()
        #expect(error == nil)
        try expectWhole()
        func isMeant(_ made: String) -> Bool { made.hasPrefix("\(call) .target.db.sealdb-") }
        let indices = made.indices.filter { isMeant(made[$0]) }
        try #require(indices.count > 10)
        for index in [indices[1], indices.randomElement()!, indices[indices.count - 1]] {
            let (made, error) = try calls(failing: index)
            // Another thread's call may have come first, and failed instead.
            guard made.indices.contains(index), isMeant(made[index]) else {
                unlink(target)
                continue
            }
            #expect(error?.reason == .ioError, "\(String(describing: error))")
            #expect(leftovers == [] && !FileManager.default.fileExists(atPath: target))
        }
    }

    /// Whatever fails, on whichever thread: either it made no difference, or it is told, and what is left is what was told.
    @Test(arguments: [EIO, ENOSPC, ENOMEM]) func anyCallThatFails(_ code: Int32) throws {
        var storage = try TestStorage(store.repository)
        var watch = CallWatch(store.directory.path)
        #expect(try restore(storage).error == nil)
        let count = watch.endWithAll().count
        try expectWhole()
        for _ in 0..<30 {
            let index = Int.random(in: 0..<count)
            storage = try TestStorage(store.repository)
            watch = CallWatch(store.directory.path, failing: index...index, code: code)
            let result = Result { try restore(storage).error }
            let call = watch.end(describing: index) ?? "none"
            let error = try result.get()
            if error == nil {
                #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == whole, "\(call)")
                #expect(unlink(target) == 0)
            } else if !FileSystem.exists(target) {
                let isKept = error?.message.contains("What was read so far") == true
                let isTold = error?.message.contains("Nothing was restored") == true
                #expect(isTold, "\(call): \(String(describing: error))")
                #expect(leftovers.count == (isKept ? 1 : 0), "\(call): \(String(describing: error))")
            } else {
                #expect(error?.message.contains("is complete") == true, "\(call): \(String(describing: error))")
                #expect(unlink(target) == 0)
            }
            let next = try restore().error
            try #require(next == nil, "behind \(call), which was told as \(String(describing: error))")
            try expectWhole()
        }
    }

    /// What the disk gives back is compared, on each of the threads.
    @Test func aFileThatIsNotAsItWasWritten() throws {
        let size = 4096
        for page in [1, 2, 64, 65, Int.random(in: 2...whole.count / size), whole.count / size] {
            let path = store.directory.file("read-back-\(page)")
            let copy = try StoreCopy(beside: path, takesAttributes: false, mark: "restore")
            let file = try copy.newFile()
            let pageCount = Int64(whole.count / size)
            var restored = try RestoredFile(file, pageSize: size, pageCount: pageCount, mostPages: pageCount)
            restored.append(try restored.newAccess().write([UInt8](whole), at: 1))
            try restored.finish(salt: [UInt8](whole.prefix(16))) { _ in }
            // One byte, also of a salt.
            var byte = [whole[(page - 1) * size] ^ 1]
            try byte.withUnsafeMutableBytes { try file.write(UnsafeRawBufferPointer($0), at: Int64((page - 1) * size)) }
            let error = #expect(throws: DatabaseError.self) {
                try restored.finish(salt: [UInt8](whole.prefix(16))) { _ in }
            }
            #expect(error?.reason == .unverified)
            #expect(error?.message.contains("\(page)") == true, "\(String(describing: error))")
            copy.discard()
        }
    }
}
