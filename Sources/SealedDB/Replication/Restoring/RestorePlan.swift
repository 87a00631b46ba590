/// Behind which commit nothing is wanted.
enum RestoreLimit: Sendable {
    case time(RepositoryTime)
    case commit(sequence: Int64, frame: Int64)

    func excludes(_ commit: LogSegment.Commit, in sequence: Int64) -> Bool {
        switch self {
        case .time(let time): commit.time > time
        case .commit(let last, let frame): (sequence, commit.frame) > (last, frame)
        }
    }

    func excludes(_ manifest: SnapshotManifest) -> Bool {
        switch self {
        case .time(let time): manifest.time > time
        case .commit(let last, let frame): (manifest.sequence, manifest.log.frame) > (last, frame)
        }
    }

    /// Whether more may be wanted than what was found.
    func isBehind(_ plan: RestorePlan) -> Bool {
        switch self {
        case .time(let time): plan.time < time
        case .commit(let last, let frame): (plan.end.sequence, plan.end.frame) < (last, frame)
        }
    }

    /// Whether what cannot be read behind the plan may be wanted, because several commits can have the same time.
    func mayEnd(behind plan: RestorePlan) -> Bool {
        switch self {
        case .time(let time): plan.time == time
        case .commit: false
        }
    }
}

/// Of which objects the store of one moment is put together. The log's part of them was read and checked.
struct RestorePlan {
    let manifest: SnapshotManifest
    /// The segments behind the snapshot, from the first one on.
    let chain: SegmentChain
    /// The number of the last segment that is needed; that of the snapshot if none is.
    private(set) var lastSegment: Int64
    /// The number in its log of the last frame that is needed.
    private(set) var lastFrame: Int64 = 0
    /// The pages of the store at that moment.
    private(set) var pageCount: Int64
    /// The most pages that it has until then.
    private(set) var mostPages: Int64
    /// When the shipper saw it.
    private(set) var time: RepositoryTime
    /// How many transactions follow the snapshot.
    private(set) var commitCount = 0
    /// The newest slots of the generation: one that was removed later opens nothing any more.
    private(set) var slots: String?
    /// Why what is behind that moment cannot be had, if it should be there.
    private(set) var problem: DatabaseError?
    /// What may be missing in it, because what is behind that moment cannot be read.
    private(set) var doubts: [String] = []
    /// That moment, so that what follows it can be found.
    private(set) var end: RepositoryPlace

    private init(_ manifest: SnapshotManifest, digest: String) {
        self.manifest = manifest
        chain = SegmentChain(manifest, digest: digest)
        end = RepositoryPlace(manifest, digest: digest)
        lastSegment = manifest.sequence
        pageCount = manifest.pageCount
        mostPages = manifest.pageCount
        time = manifest.time
        slots = manifest.slots
    }

    /// Goes through the segments behind a snapshot.
    /// - Parameters:
    ///   - limit: no commit that was seen later is wanted; `nil` for all.
    ///   - ending: what is known of the generation's end; `nil` if that does not matter.
    init(
        _ manifest: SnapshotManifest,
        digest: String,
        _ generation: RepositoryContents.Generation,
        until limit: RestoreLimit?,
        endingWith ending: GenerationEnd?,
        _ reader: RepositoryReader
    ) throws(DatabaseError) {
        self.init(manifest, digest: digest)
        var chain = chain
        let last = max(generation.segments.last ?? 0, generation.snapshots.last ?? 0)
        var isWanted = true
        var commits = 0
        var sequence = manifest.sequence
        var slotsDoubt: String?
        // Whoever begins at the snapshot that followed it has what is left behind it.
        var cutDigest = sequence == generation.cut ? chain.digest : nil
        while sequence < last {
            sequence += 1
            do throws(DatabaseError) {
                // Behind what is wanted only the slots count.
                guard isWanted else {
                    slots = try reader.header(generation.number, sequence).slots
                    slotsDoubt = nil
                    continue
                }
                let header = try chain.next(reader)
                slots = header.slots
                if sequence == generation.cut { cutDigest = chain.digest }
                for commit in header.commits {
                    if let limit, limit.excludes(commit, in: sequence) {
                        isWanted = false
                        break
                    }
                    commits += 1
                    (lastSegment, lastFrame, commitCount) = (sequence, commit.frame, commits)
                    (pageCount, time) = (commit.pageCount, commit.time)
                    mostPages = max(mostPages, pageCount)
                    end = RepositoryPlace(commit, chain)
                }
            } catch {
                guard error.reason == .damaged else { throw error }
                // What is wanted is there.
                guard isWanted, limit?.isBehind(self) ?? true else {
                    if isWanted, limit?.mayEnd(behind: self) == true {
                        doubts.append("Further commits of that very time may be missing: \(error.message)")
                    }
                    isWanted = false
                    slotsDoubt = error.message
                    continue
                }
                problem = error
                return
            }
        }
        if ending != nil, slotsDoubt == nil, generation.cut != nil {
            slotsDoubt = "The end of generation \(generation.number) was removed with old snapshots."
        }
        // Those that name the slots last may be the ones that cannot be read.
        if let slotsDoubt, slots != nil {
            doubts.append(
                """
                The store may have got older key slots, of which one may have been removed since; `sealdb slots list` \
                shows them: \(slotsDoubt)
                """
            )
        }
        guard isWanted, let ending, limit?.isBehind(self) ?? true else { return }
        try look(at: ending, chain, cutDigest, generation, reader)
    }

    /// Whether the end of the generation is there, all of which is wanted.
    /// - Parameters:
    ///   - chain: after its last segment.
    ///   - cutDigest: that of the segment behind which the retention has removed the end; `nil` if it was not met.
    private mutating func look(
        at ending: GenerationEnd,
        _ chain: SegmentChain,
        _ cutDigest: String?,
        _ generation: RepositoryContents.Generation,
        _ reader: RepositoryReader
    ) throws(DatabaseError) {
        let lastDigest = ending.noted
        guard chain.digest != lastDigest else { return }
        if try GenerationEnd.isCut(generation, behind: cutDigest, reader) {
            let message = """
                The end of generation \(generation.number) was removed with old snapshots, or is missing: what was \
                committed to it after \(time)
                """
            if ending.mayBeCut {
                doubts.append("\(message) is not in the store.")
            } else {
                problem = DatabaseError(
                    extendedCode: SQLITE_CORRUPT,
                    reason: .damaged,
                    message: "\(message) cannot be had."
                )
            }
            return
        }
        if !ending.mayBeCut, let missing = ending.missing(behind: chain.digest, of: generation, reader) {
            problem = DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    \(missing) removed with old snapshots, or lost: what was committed after \(time), the end of generation \
                    \(generation.number), cannot be had.
                    """
            )
            return
        }
        guard let lastDigest, !ending.isOlder(lastDigest, than: generation, reader) else { return }
        problem = .damagedObject(
            "Generation \(generation.number)",
            "its end is missing or was not kept: the next generation follows another object than the last one there"
        )
    }

    /// A snapshot from which a moment can be reached.
    struct Start {
        let manifest: SnapshotManifest
        let digest: String
        let generation: RepositoryContents.Generation
        let limit: RestoreLimit?
        let ending: GenerationEnd?

        func plan(_ reader: RepositoryReader) throws(DatabaseError) -> RestorePlan {
            try RestorePlan(manifest, digest: digest, generation, until: limit, endingWith: ending, reader)
        }
    }

    /// Finds a moment.
    /// - Returns: where to start, the shortest way first. The others are for the case that chunks of a snapshot are damaged.
    /// - Throws: ``DatabaseError/Reason/damaged`` if the moment cannot be had.
    static func starts(
        for moment: RepositoryMoment,
        _ contents: RepositoryContents,
        _ reader: RepositoryReader
    ) throws(DatabaseError) -> [Start] {
        let name = reader.storage.name
        var limit: RestoreLimit?
        var generations = Array(contents.generations.reversed())
        let newest = generations.first?.number ?? 0
        switch moment.kind {
        case .newest:
            generations = Array(generations.prefix(1))
            if let lost = contents.strays.last(where: { $0.isOfGeneration { $0 > newest } }) {
                throw .damagedObject(lost.text, "the snapshot that it follows is missing")
            }
        case .generation(let number):
            generations = generations.filter { $0.number == number }
            guard !generations.isEmpty else {
                throw missing("\(name) has no generation \(number). `sealdb snapshots` lists what there is.")
            }
        case .time(let time): limit = .time(time)
        case .commit(let number, let sequence, let frame):
            limit = .commit(sequence: sequence, frame: frame)
            generations = generations.filter { $0.number == number }
        }
        // What was committed by then may be in a later generation that cannot be read.
        var lost: DatabaseError?
        for generation in generations {
            var damage: DatabaseError?
            var found: [(manifest: SnapshotManifest, digest: String)] = []
            var hasLater = false
            if case .time = limit, lost == nil,
                let stray = contents.strays.last(where: { $0.isOfGeneration { $0 > generation.number } })
            {
                lost = .damagedObject(stray.text, "the snapshot that it follows is missing")
            }
            for sequence in generation.snapshots.reversed() {
                do throws(DatabaseError) {
                    let (manifest, digest) = try reader.snapshot(generation.number, sequence)
                    if let limit, limit.excludes(manifest) {
                        // And so are those that follow it.
                        (damage, hasLater) = (nil, true)
                        continue
                    }
                    found.append((manifest, digest))
                } catch {
                    guard error.reason == .damaged else { throw error }
                    if damage == nil { damage = error }
                }
            }
            // What is later than this generation's own later snapshots is not what is wanted.
            if hasLater { lost = nil }
            if !found.isEmpty {
                if let lost, try !goesOn(behind: limit, generation, reader) { throw lost }
                let ending = try moment.isOfPlace ? nil : GenerationEnd(of: generation, moment, contents, reader)
                return found.map {
                    Start(
                        manifest: $0.manifest,
                        digest: $0.digest,
                        generation: generation,
                        limit: limit,
                        ending: ending
                    )
                }
            }
            // It may be that from which the moment is to be reached, and not an earlier generation.
            if let damage, lost == nil { lost = damage }
        }
        if let lost { throw lost }
        guard limit != nil else { throw missing("\(name) has no snapshot yet. Nothing was restored.") }
        throw missing("\(name) has nothing from that time or before. `sealdb snapshots` lists what there is.")
    }

    /// Whether a generation goes on behind what is wanted, so that nothing later is.
    private static func goesOn(
        behind limit: RestoreLimit?,
        _ generation: RepositoryContents.Generation,
        _ reader: RepositoryReader
    ) throws(DatabaseError) -> Bool {
        guard let limit, let last = generation.segments.last else { return false }
        do throws(DatabaseError) {
            return try reader.header(generation.number, last).commits.last.map { limit.excludes($0, in: last) } ?? false
        } catch {
            guard error.reason == .damaged else { throw error }
            return false
        }
    }

    private static func missing(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_CANTOPEN, reason: .noSuchFile, message: message)
    }
}

/// A commit in a repository, such that what follows it can be found.
struct RepositoryPlace: Sendable, Equatable {
    let generation: Int64
    /// The number of the segment in which its last frame stands; that of a snapshot, the one it follows.
    let sequence: Int64
    /// The number in its log of that frame.
    let frame: Int64
    /// The digest of the segment, or of the snapshot that begins the generation.
    let digest: String
    /// Where the segment ends. It may have frames that follow the commit.
    let log: LogPlace
    /// When the shipper saw it.
    let time: RepositoryTime
    let pageCount: Int64

    init(
        generation: Int64,
        sequence: Int64,
        frame: Int64,
        digest: String,
        log: LogPlace,
        time: RepositoryTime,
        pageCount: Int64
    ) {
        (self.generation, self.sequence, self.frame, self.digest) = (generation, sequence, frame, digest)
        (self.log, self.time, self.pageCount) = (log, time, pageCount)
    }

    init(_ manifest: SnapshotManifest, digest: String) {
        self.init(
            generation: manifest.generation,
            sequence: manifest.sequence,
            frame: manifest.log.frame,
            digest: manifest.sequence == 0 ? digest : manifest.previous ?? "",
            log: manifest.log,
            time: manifest.time,
            pageCount: manifest.pageCount
        )
    }

    /// - Parameter chain: whose last segment the commit stands in.
    init(_ commit: LogSegment.Commit, _ chain: SegmentChain) {
        self.init(
            generation: chain.generation,
            sequence: chain.sequence,
            frame: commit.frame,
            digest: chain.digest,
            log: chain.place,
            time: commit.time,
            pageCount: commit.pageCount
        )
    }
}

/// Reads segments one after the other, and checks that each follows the one before.
struct SegmentChain {
    let generation: Int64
    private let pageSize: Int
    private(set) var sequence: Int64
    private(set) var digest: String
    private(set) var place: LogPlace
    /// Whether the last frame ends a transaction.
    private var isWhole = true
    private var bound: PageBound

    /// - Parameter digest: that of the snapshot.
    init(_ manifest: SnapshotManifest, digest: String) {
        (generation, pageSize, sequence) = (manifest.generation, manifest.pageSize, manifest.sequence)
        self.digest = manifest.sequence == 0 ? digest : manifest.previous ?? ""
        place = manifest.log
        bound = PageBound(pageCount: manifest.pageCount)
    }

    /// Goes on behind the segment of a commit.
    /// - Parameter rest: the frames of that segment that follow the commit.
    init(behind place: RepositoryPlace, pageSize: Int, rest: ArraySlice<UInt8>) throws(DatabaseError) {
        (generation, self.pageSize, sequence) = (place.generation, pageSize, place.sequence)
        (digest, self.place) = (place.digest, place.log)
        isWhole = place.frame == place.log.frame
        bound = PageBound(pageCount: place.pageCount)
        guard bound.read(rest, pageSize: pageSize) else { throw tooManyPages(place.sequence) }
    }

    /// The next segment. After an error there is none.
    mutating func next(_ reader: RepositoryReader) throws(DatabaseError) -> LogSegment.Outline {
        try nextWithBytes(reader).header
    }

    mutating func nextWithBytes(
        _ reader: RepositoryReader
    ) throws(DatabaseError) -> (header: LogSegment.Outline, bytes: [UInt8]) {
        let segment = try reader.segment(generation, sequence + 1)
        try accept(segment)
        return (segment.header, segment.bytes)
    }

    /// Takes the next segment, which was read.
    mutating func accept(
        _ segment: (header: LogSegment.Outline, bytes: [UInt8], digest: String)
    ) throws(DatabaseError) {
        let header = segment.header
        let name = ObjectName.segment(generation: generation, sequence: sequence + 1).text
        guard header.previous.utf8.elementsEqual(digest.utf8) else {
            throw .damagedObject(name, "it does not follow the segment before it")
        }
        let beginsAnew = header.log.header.map { header.log == LogPlace(beginningOf: $0) } ?? false
        guard header.log == place || beginsAnew, header.pageSize == pageSize else {
            throw .damagedObject(name, "its frames do not follow those before it")
        }
        guard header.log == place || isWhole else {
            throw .damagedObject(name, "the log begins anew within a transaction")
        }
        guard bound.read(segment.bytes[header.offset...], pageSize: pageSize) else {
            throw tooManyPages(sequence + 1)
        }
        if header.frameCount > 0 { isWhole = header.commits.last?.frame == header.end.frame }
        (sequence, digest, place) = (sequence + 1, segment.digest, header.end)
    }

    private func tooManyPages(_ sequence: Int64) -> DatabaseError {
        .damagedObject(
            ObjectName.segment(generation: generation, sequence: sequence).text,
            "it says that the store has more pages than it can have"
        )
    }
}
