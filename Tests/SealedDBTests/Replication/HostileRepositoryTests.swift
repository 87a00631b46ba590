import Foundation
import Testing

@testable import SealedDB

/// Whoever can write to a repository gets no more than an error, or a store of which each page is what he put there.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct HostileRepositoryTests {
    private let store: ReplicatedStore
    private let target: String
    private let manifest: SnapshotManifest
    private var name: ObjectName {
        .snapshot(generation: manifest.generation, sequence: manifest.sequence)
    }

    init() throws {
        store = try ReplicatedStore()
        try store.commit(ReplicatedStore.rows(20, bytes: 3000))
        try store.ship()
        store.killShipper()
        target = store.directory.file("target.db")
        manifest = try RepositoryReader(storage: store.storage).snapshot(1, 0).0
    }

    private func write(_ bytes: [UInt8], as name: ObjectName) throws {
        let path = store.object(name.text)
        try FileManager.default.createDirectory(
            atPath: FileSystem.directory(of: path),
            withIntermediateDirectories: true
        )
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    /// Puts another snapshot in the place of the one that is there.
    private func put(
        pageSize: Int = 4096,
        pageCount: Int64,
        chunkPages: Int64,
        salt: [UInt8]? = nil,
        _ chunks: [[UInt8]]
    ) throws {
        let other = SnapshotManifest(
            generation: manifest.generation,
            sequence: manifest.sequence,
            reason: manifest.reason,
            previous: manifest.previous,
            time: manifest.time,
            pageSize: pageSize,
            pageCount: pageCount,
            chunkPages: chunkPages,
            log: pageSize == manifest.pageSize ? manifest.log : .none,
            store: manifest.store,
            inode: manifest.inode,
            fileSalt: salt ?? Array(chunks.first?.prefix(16) ?? []),
            slots: nil,
            chunks: try chunks.map { chunk throws(DatabaseError) in try ObjectDigest.of(chunk) }
        )
        for chunk in chunks { try write(chunk, as: .chunk(ObjectDigest.of(chunk))) }
        try write(other.bytes(), as: name)
    }

    private func restore() -> DatabaseError? {
        do throws(DatabaseError) {
            try RepositoryRestore(from: store.repository, to: target).run()
            return nil
        } catch {
            return error
        }
    }

    private func random(_ count: Int) throws -> [UInt8] { try PageKeys.randomBytes(count: count) }

    @Test(arguments: [(512, 1), (512, 3), (512, 1 << 20), (65536, 1), (65536, 2), (4096, 7), (4096, 1 << 18)])
    func chunksOfAnySize(_ pageSize: Int, _ chunkPages: Int) throws {
        let pages = try random(pageSize * 50)
        let chunkBytes = pageSize * min(chunkPages, 50)
        let chunks = stride(from: 0, to: pages.count, by: chunkBytes).map {
            Array(pages[$0..<min($0 + chunkBytes, pages.count)])
        }
        try put(pageSize: pageSize, pageCount: 50, chunkPages: Int64(chunkPages), chunks)
        #expect(restore() == nil)
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data(pages))
    }

    /// The size of a chunk is what its snapshot says, also if its digest is right.
    @Test(arguments: [0, 1, 4095, 4097, 8192, 1 << 20], [0, 1, 2]) func aChunkOfAnotherSize(_ size: Int, _ index: Int)
        throws
    {
        var chunks = try [random(4096), random(4096), random(4096)]
        chunks[index] = try random(size)
        try put(pageCount: 3, chunkPages: 1, salt: random(16), chunks)
        let error = restore()
        #expect(error?.reason == .damaged)
        #expect(error?.message.contains("another size than its snapshot says") == true, "\(String(describing: error))")
        #expect(!FileSystem.exists(target) && TemporaryFile.leftovers(of: target).isEmpty)
    }

    /// No more of an object is read than a chunk has: a gigabyte for each thread would be too much.
    @Test func noMoreThanAChunkIsRead() throws {
        let chunks = try [random(4096), random(4096), random(4096)]
        try put(pageCount: 3, chunkPages: 1, chunks)
        let storage = LimitStorage(base: store.storage)
        try RepositoryRestore(storage: storage, to: target).run()
        #expect(storage.limits == [4097, 4097, 4097])
    }

    /// A chunk that no object can be is not looked for in what a restore has left, which would take as much memory.
    @Test(arguments: [(65536, 1 << 20, 1 << 20), (4096, (1 << 18) + 1, 1 << 20), (512, 1 << 32 - 1, 1 << 20)])
    func chunksThatAreTooLarge(_ pageSize: Int, _ pageCount: Int, _ chunkPages: Int) throws {
        let count = (pageCount + chunkPages - 1) / chunkPages
        guard pageSize != 512 else {
            // That is half a gigabyte, and may be.
            #expect(throws: Never.self) { try parsed(pageSize, pageCount, chunkPages, count) }
            return
        }
        let error = #expect(throws: DatabaseError.self) { try parsed(pageSize, pageCount, chunkPages, count) }
        #expect(error?.reason == .damaged && error?.message.contains("chunk-pages") == true)
    }

    private func parsed(
        _ pageSize: Int,
        _ pageCount: Int,
        _ chunkPages: Int,
        _ chunkCount: Int
    ) throws -> SnapshotManifest {
        let digest = try ObjectDigest.of([])
        let other = SnapshotManifest(
            generation: 1,
            sequence: 0,
            reason: .first,
            previous: nil,
            time: manifest.time,
            pageSize: pageSize,
            pageCount: Int64(pageCount),
            chunkPages: Int64(chunkPages),
            log: .none,
            store: "/a.db",
            inode: 1,
            fileSalt: manifest.fileSalt,
            slots: nil,
            chunks: (0..<chunkCount).map { digest.dropLast(8) + String(format: "%08x", $0) }
        )
        return try SnapshotManifest(parsing: other.bytes(), named: name)
    }

    /// The first page is that of another store.
    @Test func anotherSalt() throws {
        try put(pageCount: 2, chunkPages: 1, salt: random(16), [random(4096), random(4096)])
        #expect(restore()?.reason == .unverified)
        #expect(!FileSystem.exists(target) && TemporaryFile.leftovers(of: target).isEmpty)
    }
}

/// Notes how much is asked for of chunks.
private final class LimitStorage: RepositoryStorage {
    private let base: any RepositoryStorage
    private(set) var limits: [Int?] = []
    var name: String { base.name }

    init(base: any RepositoryStorage) { self.base = base }

    func objects(under part: String) throws(DatabaseError) -> [StoredObject] { try base.objects(under: part) }

    func read(_ name: String, limit: Int?) throws(DatabaseError) -> [UInt8]? {
        if name.hasPrefix(ObjectName.chunks) { limits.append(limit) }
        return try base.read(name, limit: limit)
    }

    func write(_ objects: [NewObject]) throws(DatabaseError) -> [Bool] { try base.write(objects) }
    func makeDurable(_ names: [String]) throws(DatabaseError) { try base.makeDurable(names) }
    func replace(_ bytes: [UInt8], as name: String) throws(DatabaseError) { try base.replace(bytes, as: name) }
    func remove(_ name: String) throws(DatabaseError) { try base.remove(name) }
    func lease(known mark: RepositoryMark?) throws(DatabaseError) -> Bool { try base.lease(known: mark) }
    func release() { base.release() }
}
