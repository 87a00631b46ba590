/// What a repository holds, and what of it is damaged or missing.
package struct RepositoryStatus: Sendable, Codable, Hashable {
    /// A snapshot, and what follows it up to the next one.
    package struct Snapshot: Sendable, Codable, Hashable {
        /// The number of the segment that it follows; 0 at the beginning of a generation.
        package let sequence: Int64
        /// When the store was so, in milliseconds since 1970.
        package let time: Int64
        package let pageCount: Int64
        package let pageSize: Int
        /// The last moment that can be had from it without a later one.
        package var until: Int64
    }

    /// What was shipped without a gap.
    package struct Generation: Sendable, Codable, Hashable {
        package let number: Int64
        /// Why it was begun: first, log-unseen, replaced, damaged or moved; `nil` if its beginning is not kept.
        package var begunBecause: String?
        /// The path that the store had.
        package var store = ""
        package var snapshots: [Snapshot] = []
        package var segmentCount = 0
        package var frameCount: Int64 = 0
        package var commitCount = 0
        /// The bytes of its segments and of the lists of its snapshots.
        package var byteCount: Int64 = 0
        /// When the last of it was shipped, in milliseconds since 1970.
        package var shippedAt: Int64 = 0
        /// Whether the store had key slots.
        package var hasSlots = false
        /// Which moments cannot be had, because what led to them was removed.
        package var gaps: [String] = []
    }

    package private(set) var generations: [Generation] = []
    package private(set) var chunkCount = 0
    /// The bytes of the chunks of all snapshots, which they share.
    package private(set) var chunkBytes: Int64 = 0
    /// Whether all digests, checksums and sizes were checked, and not only what leads to the newest moment.
    package let isVerified: Bool
    /// What is damaged or missing; empty if nothing is.
    package private(set) var problems: [String] = []

    /// Looks at a repository. No key is needed.
    /// - Parameters:
    ///   - directory: that of the repository, or `s3://bucket/prefix`.
    ///   - access: how an object store is reached.
    ///   - verifies: whether everything is read.
    ///   - progress: called now and then. If it throws, the call ends.
    package static func of(
        directory: String,
        access: RepositoryAccess = .init(),
        verifies: Bool,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> RepositoryStatus {
        try RepositoryStatus(access.open(directory, creates: false), verifies: verifies, progress)
    }

    init(
        _ storage: any RepositoryStorage,
        verifies: Bool,
        _ progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) {
        isVerified = verifies
        _ = try RepositoryMark.existing(storage)
        let contents = try RepositoryContents(storage)
        let reader = RepositoryReader(storage: storage)
        var chunks: [String: Int64] = [:]
        for object in try storage.objects(under: ObjectName.chunks) {
            guard case .chunk(let digest)? = ObjectName(object.name) else { continue }
            chunks[digest] = object.size
            chunkBytes += object.size
        }
        chunkCount = chunks.count
        let total = contents.generations.reduce(0) { $0 + Int64($1.segments.count + $1.snapshots.count) }
        let report = ProgressReport(totals: PageTotals(count: total, size: 1), progress: progress)
        var read: Int64 = 0
        var checked = Set<String>()
        for stray in contents.strays.prefix(1) {
            problems.append(
                """
                \(stray.text)\(contents.strays.count == 1 ? " is" : " and \(contents.strays.count - 1) more are") there without \
                the snapshot before: what was committed then cannot be had.
                """
            )
        }
        for generation in contents.generations {
            var look = GenerationLook(reader, generation, verifies: verifies, chunks: chunks, checked: checked)
            try look.run { () throws(DatabaseError) in
                read += 1
                try report(.verify, min(read, total))
            }
            checked = look.checked
            generations.append(look.result)
            problems += look.problems
        }
        for (index, next) in contents.generations.enumerated().dropFirst() {
            guard !GenerationEnd.isFollowed(contents.generations[index - 1], by: next, reader) else { continue }
            let until = RepositoryTime(milliseconds: generations[index - 1].snapshots.last?.until ?? 0)
            let end = next.snapshots.first == 0 ? "beginning" : "first snapshot"
            generations[index - 1].gaps.append("from \(until) to the \(end) of generation \(next.number)")
        }
        if let newest = contents.generations.last, newest.cut != nil {
            problems.append(
                """
                The end of generation \(newest.number) was removed with old snapshots, and what was newer then is missing: \
                that cannot be had.
                """
            )
        }
    }
}

/// Looks at one generation.
private struct GenerationLook {
    private let reader: RepositoryReader
    private let contents: RepositoryContents.Generation
    private let verifies: Bool
    /// The sizes of all chunks that are there.
    private let chunks: [String: Int64]
    /// Objects that are named by their digest, and were looked at.
    private(set) var checked: Set<String>
    private(set) var result: RepositoryStatus.Generation
    private(set) var problems: [String] = []

    init(
        _ reader: RepositoryReader,
        _ contents: RepositoryContents.Generation,
        verifies: Bool,
        chunks: [String: Int64],
        checked: Set<String>
    ) {
        (self.reader, self.contents, self.verifies, self.chunks) = (reader, contents, verifies, chunks)
        self.checked = checked
        result = RepositoryStatus.Generation(number: contents.number)
        result.byteCount = contents.byteCount
    }

    mutating func run(_ goOn: () throws(DatabaseError) -> Void) throws(DatabaseError) {
        for (index, sequence) in contents.snapshots.enumerated() {
            try goOn()
            let next = index + 1 < contents.snapshots.count ? contents.snapshots[index + 1] : nil
            do throws(DatabaseError) {
                let (manifest, digest) = try reader.snapshot(contents.number, sequence)
                note(manifest)
                try check(manifest, goOn)
                try follow(manifest, digest, to: next, goOn)
            } catch {
                try note(error)
                // Its segments are counted from the next snapshot on.
            }
        }
        for cut in contents.cuts where verifies {
            do throws(DatabaseError) { _ = try reader.cut(contents.number, cut) } catch { try note(error) }
        }
    }

    /// Notes a damage. What cannot be read for the moment is none.
    private mutating func note(_ error: DatabaseError) throws(DatabaseError) {
        guard error.reason == .damaged || error.reason == .malformedSlots else { throw error }
        problems.append(error.message)
    }

    private mutating func note(_ manifest: SnapshotManifest) {
        if manifest.sequence == 0 { result.begunBecause = manifest.reason.rawValue }
        result.store = manifest.store
        result.hasSlots = manifest.slots != nil
        result.shippedAt = max(result.shippedAt, manifest.time.milliseconds)
        result.snapshots.append(
            RepositoryStatus.Snapshot(
                sequence: manifest.sequence,
                time: manifest.time.milliseconds,
                pageCount: manifest.pageCount,
                pageSize: manifest.pageSize,
                until: manifest.time.milliseconds
            )
        )
    }

    /// Checks that all chunks of a snapshot are there, and, if everything is verified, that they are whole.
    private mutating func check(
        _ manifest: SnapshotManifest,
        _ goOn: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        for (index, digest) in manifest.chunks.enumerated() {
            let name = ObjectName.chunk(digest)
            guard let size = chunks[digest], size == Int64(manifest.byteCount(ofChunk: index)) else {
                problems.append("\(name.text) is missing, or has another size than its snapshot says.")
                continue
            }
            try check(name, digest)
            try goOn()
        }
        if let slots = manifest.slots { try check(.slots(slots), slots) }
    }

    private mutating func check(_ name: ObjectName, _ digest: String) throws(DatabaseError) {
        guard verifies, checked.insert(digest).inserted else { return }
        do throws(DatabaseError) {
            if case .slots = name {
                _ = try reader.slots(digest)
            } else {
                _ = try reader.contents(name, digest: digest)
            }
        } catch {
            try note(error)
        }
    }

    /// Goes through the segments from a snapshot to the next one.
    private mutating func follow(
        _ manifest: SnapshotManifest,
        _ digest: String,
        to next: Int64?,
        _ goOn: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        var chain = SegmentChain(manifest, digest: digest)
        let end = contents.end(after: manifest.sequence)
        let last = next ?? contents.segments.last ?? 0
        var sequence = manifest.sequence
        while sequence < min(end, last) {
            sequence += 1
            try goOn()
            let header =
                try verifies ? chain.next(reader) : reader.header(contents.number, sequence)
            result.segmentCount += 1
            result.frameCount += header.frameCount
            result.commitCount += header.commits.count
            result.shippedAt = max(result.shippedAt, header.time.milliseconds)
            result.hasSlots = header.slots != nil
            if let commit = header.commits.last {
                result.snapshots[result.snapshots.count - 1].until = commit.time.milliseconds
            }
            if let slots = header.slots { try check(.slots(slots), slots) }
        }
        let from = RepositoryTime(milliseconds: result.snapshots.last?.until ?? 0)
        guard sequence < last else {
            if next == nil, contents.cut != nil { result.gaps.append("from \(from) to the end of the generation") }
            return
        }
        let missing = ObjectName.segment(generation: contents.number, sequence: sequence + 1)
        // The retention removes all that follows a snapshot, up to the next one.
        let isRemoved = next != nil && !contents.segments.contains { $0 > sequence && $0 <= last }
        guard isRemoved else {
            problems.append("\(missing.text) is missing. What was committed after \(from) cannot be had from before.")
            return
        }
        result.gaps.append("from \(from) to the snapshot after segment \(last)")
    }
}
