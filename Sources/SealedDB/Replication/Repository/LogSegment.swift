/// Frames of a write-ahead log that follow one another, as they stand there.
///
/// All of them belong to committed transactions, but the last one may be continued by the next segment. A segment without
/// frames brings other key slots.
struct LogSegment: Sendable {
    /// The end of a transaction.
    struct Commit: Sendable, Equatable {
        /// The number of its last frame in the log, from 1.
        let frame: Int64
        /// The pages of the store after it.
        let pageCount: Int64
        /// When the shipper saw it. No earlier than that of the commit before in this generation.
        let time: RepositoryTime
    }

    let generation: Int64
    /// From 1 in each generation.
    let sequence: Int64
    /// The digest of the segment before, or of the snapshot that begins the generation.
    let previous: String
    let pageSize: Int
    /// Where the frames begin.
    let log: LogPlace
    /// The checksum of the last frame; that of ``log`` without frames.
    let lastChecksum: [UInt8]
    let time: RepositoryTime
    let commits: [Commit]
    let slots: String?
    let frames: [UInt8]

    static let title = "SealedDB segment 1"
    /// One without frames has less than half of it.
    static let mostBytesWithoutFrames: Int64 = 4096

    var frameSize: Int { LogFrameHeader.size + pageSize }
    var frameCount: Int64 { Int64(frames.count / frameSize) }
    /// Where the frames end.
    var end: LogPlace { LogPlace(header: log.header, frame: log.frame + frameCount, checksum: lastChecksum) }

    func bytes() throws(DatabaseError) -> [UInt8] {
        var text = ObjectText(title: LogSegment.title)
        text.add("generation", generation)
        text.add("sequence", sequence)
        text.add("previous", previous)
        text.add("time", time)
        text.add("page-size", pageSize)
        log.add(to: &text)
        text.add("last-frame", log.frame + frameCount)
        text.add("last-checksum", Hexadecimal.string(lastChecksum))
        text.add("slots", slots ?? "-")
        text.add("commits", commits.count)
        for commit in commits { text.add("commit", "\(commit.frame) \(commit.pageCount) \(commit.time)") }
        text.add("frames", frameCount)
        text.add("frames-sha256", try ObjectDigest.of(frames))
        return try text.sealed() + frames
    }

    // MARK: FollowedStore

    /// What a segment says about its frames.
    struct Outline: Sendable {
        let generation: Int64
        let sequence: Int64
        let previous: String
        let pageSize: Int
        let log: LogPlace
        let end: LogPlace
        let time: RepositoryTime
        let commits: [Commit]
        let slots: String?
        let frameCount: Int64
        let framesDigest: String
        /// Where the frames stand in the object.
        let offset: Int
    }

    /// Reads what a segment says about its frames, which need not be among the bytes.
    static func header(_ bytes: [UInt8], named name: ObjectName) throws(DatabaseError) -> Outline {
        let text = try ObjectText(parsing: bytes, title: title, of: name.text)
        let (generation, sequence) = (try text.number("generation"), try text.number("sequence"))
        guard name == .segment(generation: generation, sequence: sequence) else {
            throw .damagedObject(name.text, "it is another segment")
        }
        let log = try LogPlace(text)
        let last = try text.number("last-frame", in: log.frame...Int64(UInt32.max))
        let frameCount = try text.number("frames")
        guard frameCount == last - log.frame, frameCount == 0 || log.header != nil else { throw text.missing("frames") }
        var commits: [Commit] = []
        for line in text.values("commit") {
            let parts = line.split(separator: " ").map(String.init)
            guard parts.count == 3, let frame = Int64(parts[0]), let count = Int64(parts[1]),
                let time = RepositoryTime(parts[2]), count > 0,
                frame > commits.last?.frame ?? log.frame, frame <= last
            else { throw text.missing("commit") }
            commits.append(Commit(frame: frame, pageCount: count, time: time))
        }
        guard try text.number("commits") == Int64(commits.count) else { throw text.missing("commits") }
        let end = LogPlace(
            header: log.header,
            frame: last,
            checksum: try text.bytes("last-checksum", count: LogPlace.checksumSize)
        )
        let slots = try text.optional("slots") == nil ? nil : try text.digest("slots")
        return Outline(
            generation: generation,
            sequence: sequence,
            previous: try text.digest("previous"),
            pageSize: try LogPlace.pageSize(text),
            log: log,
            end: end,
            time: try text.time("time"),
            commits: commits,
            slots: slots,
            frameCount: frameCount,
            framesDigest: try text.digest("frames-sha256"),
            offset: text.byteCount
        )
    }

    /// Checks the frames of a whole segment: their digest, their salts, their checksums, and where transactions end.
    /// - Throws: ``DatabaseError/Reason/damaged``.
    static func check(_ header: Outline, _ bytes: [UInt8], named name: ObjectName) throws(DatabaseError) {
        let frameSize = LogFrameHeader.size + header.pageSize
        let frames = bytes[header.offset...]
        guard frames.count == Int(header.frameCount) * frameSize, try ObjectDigest.of(frames) == header.framesDigest
        else { throw .damagedObject(name.text, "its frames are not those that were written") }
        guard let log = header.log.header else { return }
        var scan = FrameScan(log, after: header.log.checksum, pageSize: header.pageSize)
        guard let ends = scan.read(frames, first: header.log.frame) else {
            throw .damagedObject(name.text, "a frame has a wrong checksum")
        }
        guard scan.checksum == header.end.checksum, ends.count == header.commits.count,
            zip(ends, header.commits).allSatisfy({ $0.frame == $1.frame && $0.pageCount == $1.pageCount })
        else { throw .damagedObject(name.text, "its frames are not those that it names") }
    }
}

/// Goes through frames of a log and checks that each follows the one before.
struct FrameScan {
    private let header: LogHeader
    private let frameSize: Int
    private var sum: LogChecksum

    init(_ header: [UInt8], after checksum: [UInt8], pageSize: Int) {
        self.header = LogHeader(header)
        frameSize = LogFrameHeader.size + pageSize
        sum = LogChecksum(isBigEndian: self.header.isBigEndian, after: checksum[...])
    }

    /// That of the last frame.
    var checksum: [UInt8] { sum.bytes }

    /// - Parameters:
    ///   - frames: whole ones.
    ///   - first: how many frames of the log come before.
    /// - Returns: where transactions end; `nil` if a frame does not follow the one before.
    mutating func read(_ frames: ArraySlice<UInt8>, first: Int64) -> [(frame: Int64, pageCount: Int64)]? {
        var ends: [(frame: Int64, pageCount: Int64)] = []
        var number = first
        for start in stride(from: frames.startIndex, to: frames.endIndex, by: frameSize) {
            let frame = frames[start..<(start + frameSize)]
            number += 1
            let frameHeader = LogFrameHeader(frame)
            sum = sum.adding(frameHeader, frame.dropFirst(LogFrameHeader.size))
            guard frameHeader.page > 0, frameHeader.salts == header.salts, frameHeader.checksum == sum.bytes[...]
            else { return nil }
            if frameHeader.pageCount > 0 { ends.append((number, frameHeader.pageCount)) }
        }
        return ends
    }
}
