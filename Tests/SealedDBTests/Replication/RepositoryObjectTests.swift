import Foundation
import Testing

@testable import SealedDB

/// Objects of a repository whose digests are right, and which say what cannot be: the digests have no key.
@Suite(.hangLimit)
struct RepositoryObjectTests {
    private static let pageSize = 512
    private static let salts: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    private static let header = LogHeader.bytes(pageSize: pageSize, salts: salts)
    private let digest = String(repeating: "0a", count: 32)

    /// Frames that begin a log, each with the checksum of all before it.
    private static func frames(
        _ frames: [(page: UInt32, pageCount: UInt32)],
        salts: [UInt8] = salts
    ) -> (bytes: [UInt8], checksum: [UInt8]) {
        var sum = LogChecksum(isBigEndian: false, after: header[24..<32])
        var bytes: [UInt8] = []
        for frame in frames {
            let start = BigEndian.bytes(frame.page) + BigEndian.bytes(frame.pageCount)
            let page = [UInt8](repeating: UInt8(truncatingIfNeeded: frame.page), count: pageSize)
            sum.add(start[...])
            sum.add(page[...])
            bytes += start + salts + sum.bytes + page
        }
        return (bytes, sum.bytes)
    }

    private func commit(_ frame: Int64, _ pageCount: Int64) -> LogSegment.Commit {
        LogSegment.Commit(frame: frame, pageCount: pageCount, time: RepositoryTime(milliseconds: 0))
    }

    /// A segment of two frames, of which the second ends a transaction, unless something else is given.
    private func bytes(
        _ frames: (bytes: [UInt8], checksum: [UInt8]) = frames([(1, 0), (2, 2)]),
        commits: [LogSegment.Commit]? = nil,
        previous: String? = nil,
        checksum: [UInt8]? = nil,
        hasLog: Bool = true
    ) throws -> [UInt8] {
        try LogSegment(
            generation: 3,
            sequence: 7,
            previous: previous ?? digest,
            pageSize: Self.pageSize,
            log: hasLog ? LogPlace(beginningOf: Self.header) : .none,
            lastChecksum: checksum ?? frames.checksum,
            time: RepositoryTime(milliseconds: 0),
            commits: commits ?? [commit(2, 2)],
            slots: nil,
            frames: frames.bytes
        ).bytes()
    }

    private func read(_ bytes: [UInt8], sequence: Int64 = 7) throws -> LogSegment.Outline {
        let name = ObjectName.segment(generation: 3, sequence: sequence)
        let header = try LogSegment.header(bytes, named: name)
        try LogSegment.check(header, bytes, named: name)
        return header
    }

    private func expectDamage(
        _ bytes: [UInt8],
        sequence: Int64 = 7,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) {
            try read(bytes, sequence: sequence)
        }
        #expect(error?.reason == .damaged, sourceLocation: sourceLocation)
    }

    // MARK: Segments

    @Test func aSegmentThatIsSound() throws {
        let outline = try read(bytes())
        #expect(outline.frameCount == 2 && outline.commits == [commit(2, 2)] && outline.end.frame == 2)
        let empty = try read(bytes(([], Self.frames([]).checksum), commits: []))
        #expect(empty.frameCount == 0 && empty.commits.isEmpty)
    }

    @Test func aSegmentOfAnotherName() throws {
        try expectDamage(bytes(), sequence: 8)
        try expectDamage(bytes(previous: "-"))
        try expectDamage(bytes(previous: digest.uppercased()))
    }

    /// A restore would end a transaction where none ends, or with another size of the store.
    @Test func commitsThatAreNotThoseOfTheFrames() throws {
        for commits in [
            [], [commit(1, 2)], [commit(2, 3)], [commit(1, 2), commit(2, 2)], [commit(2, 2), commit(2, 2)],
            [commit(2, 2), commit(1, 2)], [commit(2, 0)], [commit(3, 2)], [commit(0, 2), commit(2, 2)],
        ] { try expectDamage(bytes(commits: commits)) }
    }

    @Test func framesThatDoNotFollowOneAnother() throws {
        // There is no such page.
        try expectDamage(bytes(Self.frames([(1, 0), (0, 2)])))
        // Those of the log before.
        try expectDamage(bytes(Self.frames([(1, 0), (2, 2)], salts: [1, 2, 3, 4, 5, 6, 7, 9])))
        // The next segment would follow something else.
        try expectDamage(bytes(checksum: [1, 2, 3, 4, 5, 6, 7, 8]))
        var changed = Self.frames([(1, 0), (2, 2)])
        changed.bytes[100] ^= 1
        try expectDamage(bytes(changed))
        // Without the beginning of the log nothing is known of them.
        try expectDamage(bytes(hasLog: false))
        try expectDamage(bytes() + [0])
        try expectDamage(bytes().dropLast())
    }

    // MARK: Other objects

    /// It would say that another end was removed on purpose.
    @Test func theCutOfAnotherPlace() throws {
        let cut = RetentionCut(generation: 3, sequence: 7, previous: digest)
        #expect(try RetentionCut(parsing: cut.bytes(), named: cut.name) == cut)
        for name in [ObjectName.cut(generation: 3, sequence: 8), .cut(generation: 2, sequence: 7)] {
            #expect(throws: DatabaseError.self) { try RetentionCut(parsing: cut.bytes(), named: name) }
        }
        #expect(throws: DatabaseError.self) { try RetentionCut(parsing: cut.bytes() + [0], named: cut.name) }
    }

    private func manifest(pageCount: Int64 = 3, chunks: [String]? = nil) -> SnapshotManifest {
        SnapshotManifest(
            generation: 3,
            sequence: 7,
            reason: .interval,
            previous: digest,
            time: RepositoryTime(milliseconds: 0),
            pageSize: Self.pageSize,
            pageCount: pageCount,
            chunkPages: 2,
            log: .none,
            store: "/db",
            inode: 1,
            fileSalt: [UInt8](repeating: 1, count: 16),
            slots: nil,
            chunks: chunks ?? [digest, String(repeating: "0b", count: 32)]
        )
    }

    @Test func aSnapshotOfAnotherPlace() throws {
        let name = ObjectName.snapshot(generation: 3, sequence: 7)
        let bytes = try manifest().bytes()
        #expect(try SnapshotManifest(parsing: bytes, named: name).chunks.count == 2)
        #expect(throws: DatabaseError.self) {
            try SnapshotManifest(parsing: bytes, named: .snapshot(generation: 3, sequence: 0))
        }
        #expect(throws: DatabaseError.self) { try SnapshotManifest(parsing: bytes + [0], named: name) }
        let other = String(repeating: "0c", count: 32)
        for bad in [
            manifest(pageCount: 5), manifest(pageCount: 2), manifest(chunks: [digest, digest]),
            manifest(chunks: [digest, "../../other"]), manifest(chunks: [digest, digest.uppercased()]),
            manifest(pageCount: 8, chunks: [digest, other, digest, other]),
        ] { #expect(throws: DatabaseError.self) { try SnapshotManifest(parsing: bad.bytes(), named: name) } }
    }

    /// Pages that were never written repeat, and only they do.
    @Test func aSnapshotOfPagesThatWereNeverWritten() throws {
        let name = ObjectName.snapshot(generation: 3, sequence: 7)
        let zeros = try ObjectDigest.of([UInt8](repeating: 0, count: 2 * Self.pageSize))
        let sound = manifest(pageCount: 6, chunks: [digest, zeros, zeros])
        #expect(try SnapshotManifest(parsing: sound.bytes(), named: name).pageCount == 6)
        let bad = manifest(pageCount: 10, chunks: [digest, zeros, zeros, digest, String(repeating: "0c", count: 32)])
        #expect(throws: DatabaseError.self) { try SnapshotManifest(parsing: bad.bytes(), named: name) }
    }

    // MARK: Lists

    private func contents(_ names: ObjectName...) throws -> RepositoryContents {
        let directory = try TemporaryDirectory()
        let storage = try DirectoryStorage(directory.file("r"), creates: true)
        _ = try storage.write(names.map { NewObject(name: $0.text, bytes: [1]) })
        return try RepositoryContents(storage)
    }

    private func snapshot(_ sequence: Int64, of generation: Int64 = 1) -> ObjectName {
        .snapshot(generation: generation, sequence: sequence)
    }

    private func segment(_ sequence: Int64, of generation: Int64 = 1) -> ObjectName {
        .segment(generation: generation, sequence: sequence)
    }

    /// What follows no snapshot is left over from a loss, and what follows a hole leads to no state of the store.
    @Test func segmentsWithoutWhatTheyFollow() throws {
        let found = try contents(
            segment(1),
            segment(3),
            segment(4),
            snapshot(3),
            segment(5),
            segment(7),
            segment(2, of: 2),
            .cut(generation: 1, sequence: 4),
            .cut(generation: 1, sequence: 2)
        )
        let generation = try #require(found.generations.first)
        #expect(found.generations.count == 1 && found.lastNumber == 2)
        #expect(generation.segments == [4, 5, 7] && generation.short == [4, 5, 7])
        #expect(generation.end(after: 3) == 5)
        #expect(found.strays == [segment(1), segment(3), segment(2, of: 2)])
        #expect(generation.cuts == [4] && generation.cut == 4)
        #expect(found.spentCuts == [.cut(generation: 1, sequence: 2)])
    }

    /// A cut before a later snapshot is not the end of the generation.
    @Test func cutsWithinAGeneration() throws {
        let cut = ObjectName.cut(generation: 1, sequence: 2)
        #expect(try contents(snapshot(0), segment(1), segment(2), cut).generations[0].cut == 2)
        #expect(try contents(snapshot(0), segment(1), segment(2), snapshot(2), cut).generations[0].cut == 2)
        #expect(try contents(snapshot(0), segment(2), segment(3), snapshot(3), cut).generations[0].cut == nil)
    }

    /// A generation that was taken away and comes back needs its chunks, and its number is not given again.
    @Test func generationsThatMayComeBack() throws {
        let ends = (1...3).map { ObjectName.end(generation: $0) }
        let whole = try contents(ends[0], snapshot(0, of: 2))
        #expect(whole.isWhole && whole.removed == [1] && whole.lastNumber == 2)
        #expect(try !contents(snapshot(0, of: 2)).isWhole)
        #expect(try !contents(ends[0], snapshot(0, of: 3)).isWhole)
        #expect(try !contents(snapshot(0), segment(1, of: 2)).isWhole)
        let last = try contents(snapshot(0), ends[1], ends[2])
        #expect(last.isWhole && last.lastNumber == 3)
    }

    @Test func namesWithNumbersThatNothingHas() {
        for text in ["00000000/end", "00000000/segment-000000000001", "00000001/segment-1000000000000000"] {
            #expect(ObjectName("generations/\(text)") == nil, "\(text)")
        }
        #expect(ObjectName("generations/00000001/end") == .end(generation: 1))
    }
}
