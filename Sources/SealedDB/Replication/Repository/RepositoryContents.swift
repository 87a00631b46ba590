/// What a repository says that it has, by the names of its objects.
struct RepositoryContents: Sendable {
    struct Generation: Sendable {
        let number: Int64
        /// The numbers of the segments after which there is a snapshot, in their order; 0 for the one that begins it.
        var snapshots: [Int64] = []
        /// The numbers of the segments, in their order.
        var segments: [Int64] = []
        /// Those of the segments that may have no frames, by their size.
        var short: [Int64] = []
        /// Those behind which the retention has removed what followed, in their order.
        var cuts: [Int64] = []
        /// The bytes of its snapshots' lists and of its segments.
        var byteCount: Int64 = 0

        /// The last segment, if the retention has removed the end of the generation behind it. It may not have removed all
        /// of it yet.
        var cut: Int64? { cuts.last.flatMap { $0 >= snapshots.last ?? .max ? $0 : nil } }

        /// The last of the segments that follow the snapshot without a gap; the snapshot's own number if there is none.
        func end(after snapshot: Int64) -> Int64 {
            var last = snapshot
            for segment in segments where segment > snapshot {
                guard segment == last + 1 else { break }
                last = segment
            }
            return last
        }
    }

    /// In their order. One without a snapshot is none.
    let generations: [Generation]
    /// Segments that no snapshot comes before, in their order. The retention leaves none: something is lost.
    let strays: [ObjectName]
    /// What the retention has left behind segments that are not there any more.
    let spentCuts: [ObjectName]
    /// The generations that the retention has removed, or begun to.
    let removed: Set<Int64>
    /// The highest number of a generation of which anything is there; 0 without one. What is left of one that has lost its
    /// snapshots must not become a part of another.
    let lastNumber: Int64

    init(_ storage: any RepositoryStorage) throws(DatabaseError) {
        var found: [Int64: Generation] = [:]
        var removed: Set<Int64> = []
        for object in try storage.objects(under: ObjectName.generations) {
            switch ObjectName(object.name) {
            case .snapshot(let generation, let sequence)?:
                found[generation, default: Generation(number: generation)].snapshots.append(sequence)
                found[generation]?.byteCount += object.size
            case .segment(let generation, let sequence)?:
                found[generation, default: Generation(number: generation)].segments.append(sequence)
                if object.size <= LogSegment.mostBytesWithoutFrames { found[generation]?.short.append(sequence) }
                found[generation]?.byteCount += object.size
            case .cut(let generation, let sequence)?:
                found[generation, default: Generation(number: generation)].cuts.append(sequence)
            case .end(let generation)?: removed.insert(generation)
            default: continue
            }
        }
        var (strays, spentCuts): ([ObjectName], [ObjectName]) = ([], [])
        var generations: [Generation] = []
        for (_, var generation) in found.sorted(by: { $0.key < $1.key }) {
            generation.snapshots.sort()
            let first = generation.snapshots.first ?? .max
            strays += generation.segments.filter { $0 <= first }.sorted().map {
                .segment(generation: generation.number, sequence: $0)
            }
            generation.segments = generation.segments.filter { $0 > first }.sorted()
            generation.short = generation.short.filter { $0 > first }.sorted()
            if !generation.cuts.isEmpty {
                let segments = Set(generation.segments)
                spentCuts += generation.cuts.filter { !segments.contains($0) }.map {
                    .cut(generation: generation.number, sequence: $0)
                }
                generation.cuts = generation.cuts.filter(segments.contains).sorted()
            }
            if !generation.snapshots.isEmpty { generations.append(generation) }
        }
        (self.generations, self.strays, self.spentCuts, self.removed) = (generations, strays, spentCuts, removed)
        lastNumber = max(found.keys.max() ?? 0, removed.max() ?? 0)
    }

    /// Whether no generation is away that may come back.
    var isWhole: Bool {
        let known = removed.union(generations.map(\.number))
        return known.count == lastNumber && known.allSatisfy { (1...lastNumber).contains($0) }
    }
}

/// Reads the objects of a repository, and checks that each is as it was written.
struct RepositoryReader {
    let storage: any RepositoryStorage

    /// In most cases the lines of a segment have no more bytes.
    private static let bytesOfLines = 1 << 16

    private func bytes(_ name: ObjectName, limit: Int? = nil) throws(DatabaseError) -> [UInt8] {
        guard let bytes = try storage.read(name.text, limit: limit) else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: "\(name.text) is missing in \(storage.name)."
            )
        }
        return bytes
    }

    func snapshot(_ generation: Int64, _ sequence: Int64) throws(DatabaseError) -> (SnapshotManifest, digest: String) {
        let name = ObjectName.snapshot(generation: generation, sequence: sequence)
        let bytes = try bytes(name)
        return (try SnapshotManifest(parsing: bytes, named: name), try ObjectDigest.of(bytes))
    }

    func cut(_ generation: Int64, _ sequence: Int64) throws(DatabaseError) -> RetentionCut {
        let name = ObjectName.cut(generation: generation, sequence: sequence)
        return try RetentionCut(parsing: bytes(name), named: name)
    }

    /// What a segment says about its frames, which are not read.
    func header(_ generation: Int64, _ sequence: Int64) throws(DatabaseError) -> LogSegment.Outline {
        let name = ObjectName.segment(generation: generation, sequence: sequence)
        let start = try bytes(name, limit: RepositoryReader.bytesOfLines)
        do throws(DatabaseError) {
            return try LogSegment.header(start, named: name)
        } catch {
            // Its lines may be longer.
            guard start.count == RepositoryReader.bytesOfLines else { throw error }
            return try LogSegment.header(bytes(name), named: name)
        }
    }

    /// A whole segment, with its digest. Its frames are checked.
    func segment(
        _ generation: Int64,
        _ sequence: Int64
    ) throws(DatabaseError) -> (header: LogSegment.Outline, bytes: [UInt8], digest: String) {
        let name = ObjectName.segment(generation: generation, sequence: sequence)
        return try segment(name, bytes(name))
    }

    /// The same; `nil` if there is none of this number.
    func segmentIfPresent(
        _ generation: Int64,
        _ sequence: Int64
    ) throws(DatabaseError) -> (header: LogSegment.Outline, bytes: [UInt8], digest: String)? {
        let name = ObjectName.segment(generation: generation, sequence: sequence)
        guard let bytes = try storage.read(name.text) else { return nil }
        return try segment(name, bytes)
    }

    private func segment(
        _ name: ObjectName,
        _ bytes: [UInt8]
    ) throws(DatabaseError) -> (header: LogSegment.Outline, bytes: [UInt8], digest: String) {
        let header = try LogSegment.header(bytes, named: name)
        try LogSegment.check(header, bytes, named: name)
        return (header, bytes, try ObjectDigest.of(bytes))
    }

    /// The bytes of an object that has its digest as its name.
    func contents(_ name: ObjectName, digest: String) throws(DatabaseError) -> [UInt8] {
        let bytes = try bytes(name)
        try requireDigest(digest, of: bytes, name)
        return bytes
    }

    /// The same, for ``requireDigest(_:of:_:)``.
    /// - Parameter limit: one with more bytes is cut off there: anybody may have put a large one in its place.
    func uncheckedContents(_ name: ObjectName, limit: Int) throws(DatabaseError) -> [UInt8] {
        try bytes(name, limit: limit)
    }

    /// Any thread may call it.
    func requireDigest(_ digest: String, of bytes: [UInt8], _ name: ObjectName) throws(DatabaseError) {
        guard try ObjectDigest.of(bytes) == digest else {
            throw .damagedObject(name.text, "it does not have the digest that is its name")
        }
    }

    func slots(_ digest: String) throws(DatabaseError) -> SealedSlots {
        try SealedSlots(parsing: contents(.slots(digest), digest: digest))
    }
}
