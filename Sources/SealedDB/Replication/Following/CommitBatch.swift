/// Whole commits of a repository that follow one another, to be applied as one transaction.
///
/// They are checked when they are found. What is kept of them is bounded: more is read again when it is applied.
struct CommitBatch {
    /// The commit that they follow.
    let start: RepositoryPlace
    /// The last of them; ``start`` if there is none.
    private(set) var end: RepositoryPlace
    private(set) var commitCount = 0
    private(set) var frameCount: Int64 = 0
    /// The newest slots that were named behind the start; `nil` if none were.
    private(set) var slots: String?
    /// The bytes of frames that follow the last commit, and belong to one that is not whole.
    private(set) var waitingBytes: Int64 = 0
    /// Whether the repository has no more behind it.
    private(set) var isLast = true
    /// The number of the last segment that was read; of that of the start if none was.
    private(set) var lastSequence: Int64

    private let reader: RepositoryReader
    private let pageSize: Int
    /// The segments, from that of the start on if it has frames behind it.
    private var segments: [(sequence: Int64, digest: String)] = []
    private var kept: [Int64: Segment] = [:]

    private typealias Segment = (header: LogSegment.Outline, bytes: [UInt8], digest: String)

    /// So many bytes of segments are kept in memory.
    private static let keptBytes = 8 << 20

    /// - Parameters:
    ///   - limit: from so many bytes on, no more segments are taken.
    ///   - least: a commit that must be among them, if it is there.
    init(
        behind start: RepositoryPlace,
        pageSize: Int,
        limit: Int,
        least: RepositoryPlace?,
        _ reader: RepositoryReader
    ) throws(DatabaseError) {
        (self.start, end, self.reader, self.pageSize) = (start, start, reader, pageSize)
        lastSequence = start.sequence
        let generation = start.generation
        var taken = 0
        var rest: ArraySlice<UInt8> = []
        if start.frame < start.log.frame {
            let segment = try reader.segment(generation, start.sequence)
            guard segment.digest == start.digest else { throw CommitBatch.changed(generation, start.sequence) }
            note(segment, start.sequence) { frame in
                RepositoryPlace(frame, at: start)
            }
            taken += segment.bytes.count
            let offset = segment.header.offset + Int((start.frame - segment.header.log.frame) * frameSize)
            rest = segment.bytes[offset...]
        }
        var chain = try SegmentChain(behind: start, pageSize: pageSize, rest: rest)
        while let segment = try reader.segmentIfPresent(generation, chain.sequence + 1) {
            guard taken < limit || end == start || least.map({ end.isBefore($0) }) ?? false else {
                isLast = false
                return
            }
            try chain.accept(segment)
            taken += segment.bytes.count
            lastSequence = chain.sequence
            let chain = chain
            note(segment, chain.sequence) { commit in RepositoryPlace(commit, chain) }
        }
    }

    private mutating func note(
        _ segment: Segment,
        _ sequence: Int64,
        _ place: (LogSegment.Commit) -> RepositoryPlace
    ) {
        segments.append((sequence, segment.digest))
        if kept.values.reduce(0, { $0 + $1.bytes.count }) + segment.bytes.count <= CommitBatch.keptBytes {
            kept[sequence] = segment
        }
        slots = segment.header.slots ?? slots
        let header = segment.header
        let first = sequence == start.sequence ? start.frame : header.log.frame
        waitingBytes += (header.end.frame - first) * frameSize
        for commit in header.commits where commit.frame > first { commitCount += 1 }
        guard let last = header.commits.last, last.frame > first else { return }
        let behind = (header.end.frame - last.frame) * frameSize
        frameCount += (waitingBytes - behind) / frameSize
        (end, waitingBytes) = (place(last), behind)
    }

    private var frameSize: Int64 { Int64(LogFrameHeader.size + pageSize) }

    private static func changed(_ generation: Int64, _ sequence: Int64) -> DatabaseError {
        .damagedObject(
            ObjectName.segment(generation: generation, sequence: sequence).text,
            "it is not the one that was there before"
        )
    }

    /// The pages of all frames, in their order.
    func pages(
        _ add: (_ page: Int64, _ bytes: ArraySlice<UInt8>) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let size = Int(frameSize)
        for (sequence, digest) in segments where sequence <= end.sequence {
            let segment: Segment
            // Not `??`, which would not throw a typed error.
            if let known = kept[sequence] {
                segment = known
            } else {
                segment = try reader.segment(start.generation, sequence)
            }
            guard segment.digest == digest else { throw CommitBatch.changed(start.generation, sequence) }
            let header = segment.header
            let first = sequence == start.sequence ? start.frame : header.log.frame
            let last = sequence == end.sequence ? end.frame : header.end.frame
            guard first < last else { continue }
            for number in (first + 1)...last {
                let offset = header.offset + Int(number - header.log.frame - 1) * size
                let frame = segment.bytes[offset..<(offset + size)]
                try add(LogFrameHeader(frame).page, frame.dropFirst(LogFrameHeader.size))
            }
        }
    }
}

extension RepositoryPlace {
    /// A later commit of the same segment.
    init(_ commit: LogSegment.Commit, at place: RepositoryPlace) {
        self.init(
            generation: place.generation,
            sequence: place.sequence,
            frame: commit.frame,
            digest: place.digest,
            log: place.log,
            time: commit.time,
            pageCount: commit.pageCount
        )
    }

    func isBefore(_ other: RepositoryPlace) -> Bool {
        (generation, sequence, frame) < (other.generation, other.sequence, other.frame)
    }
}
