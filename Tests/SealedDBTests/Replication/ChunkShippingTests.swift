import Foundation
import Testing

@testable import SealedDB

/// Chunks that are shipped together, while others are read.
@Suite(.enabled(if: isEncrypting, "needs a repository"), .hangLimit)
struct ChunkShippingTests {
    private let directory: TemporaryDirectory
    private let repository: String
    private static let chunkBytes = 1 << 20
    /// Chunks that differ, but for one that is there twice in a batch and one that comes again in another; and the rest.
    private static let contents: [UInt8] = {
        var bytes: [UInt8] = []
        for tag: UInt8 in [1, 2, 3, 2, 4, 5, 6, 7, 8, 1, 9] { bytes += [UInt8](repeating: tag, count: chunkBytes) }
        return bytes + [10, 11]
    }()

    init() throws {
        directory = try TemporaryDirectory()
        repository = directory.file("repository")
    }

    private func shipping(
        _ storage: TestStorage,
        requireTime: @escaping () throws(DatabaseError) -> Void = {}
    ) throws -> ChunkShipping {
        var known = Set<String>()
        for object in try storage.base.objects(under: ObjectName.chunks) {
            if case .chunk(let digest)? = ObjectName(object.name) { known.insert(digest) }
        }
        return ChunkShipping(
            storage: storage,
            known: known,
            memory: ChunkMemory(),
            requireTime: requireTime
        )
    }

    private func ship(_ shipping: ChunkShipping) throws -> [String] {
        defer { shipping.end() }
        for start in stride(from: 0, to: Self.contents.count, by: Self.chunkBytes) {
            let bytes = Array(Self.contents[start...].prefix(Self.chunkBytes))
            try shipping.add(Chunk(bytes: bytes, digest: try ObjectDigest.of(bytes)))
        }
        return try shipping.finish()
    }

    private func expectAll(_ digests: [String]) throws {
        let storage = try DirectoryStorage(repository, creates: false)
        var bytes: [UInt8] = []
        for digest in digests {
            let chunk = try #require(try storage.read(ObjectName.chunk(digest).text))
            #expect(try ObjectDigest.of(chunk) == digest)
            bytes += chunk
        }
        #expect(bytes == Self.contents)
        let names = try storage.objects(under: "").map(\.name)
        #expect(Set(names) == Set(digests.map { ObjectName.chunk($0).text }), "nothing else is left")
    }

    @Test func allInTheirOrder() throws {
        let shipping = try shipping(TestStorage(repository))
        let digests = try ship(shipping)
        #expect(digests.count == 12)
        #expect(Set(digests).count == 10)
        #expect(shipping.newBytes == 9 << 20 + 2)
        #expect(shipping.healed == [])
        try expectAll(digests)
    }

    /// What fails is told, and what is there then is whole.
    @Test(arguments: TestStorage.Failure.allCases)
    func eachCallThatFails(_ failure: TestStorage.Failure) throws {
        var call = 0
        while true {
            let storage = try TestStorage(repository)
            storage.fails = { $0 == call ? failure : nil }
            do {
                try expectAll(try ship(shipping(storage)))
                break
            } catch let error as DatabaseError {
                #expect(error.reason == .noSpace)
                for object in try storage.base.objects(under: "") {
                    let name = try #require(ObjectName(object.name))
                    let bytes = try #require(try storage.base.read(object.name))
                    #expect(name == .chunk(try ObjectDigest.of(bytes)))
                }
                // Each attempt goes on with an empty one, or with what is there.
                if call % 2 == 0 { try FileManager.default.removeItem(atPath: repository) }
                call += 1
            }
        }
        #expect(call > 10)
    }

    /// Nothing is shipped after the caller was told.
    @Test func aCallerWithoutTime() throws {
        let left = Guarded(6)
        let storage = try TestStorage(repository)
        let shipping = try shipping(storage) { () throws(DatabaseError) in
            let isOver = left.withLock { left in
                left -= 1
                return left < 0
            }
            if isOver { throw TestStorage.error }
        }
        #expect(throws: DatabaseError.self) { try ship(shipping) }
        let written = storage.written.count
        #expect(written <= 6)
        #expect(throws: DatabaseError.self) { _ = try ship(shipping) }
        #expect(storage.written.count == written)
    }

    /// A chunk that rots where it lies is written again.
    @Test func aDamagedChunkIsHealed() throws {
        let digests = try ship(shipping(TestStorage(repository)))
        let name = ObjectName.chunk(digests[5]).text
        try Data("rotten".utf8).write(to: URL(fileURLWithPath: "\(repository)/\(name)"))
        let again = try shipping(TestStorage(repository))
        #expect(try ship(again) == digests)
        #expect(again.healed == [name])
        #expect(again.newBytes == 0)
        try expectAll(digests)
    }
}
