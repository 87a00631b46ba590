/// What is known of the end of a generation, all of which is wanted.
struct GenerationEnd {
    /// The digest of the last object that was there when the next generation began; `nil` if that is not known.
    let noted: String?
    /// Whether the end need not be there if the retention has removed it.
    let mayBeCut: Bool
    /// The next generation that is there, if there were others before it, or if its beginning is not there.
    private let later: RepositoryContents.Generation?
    /// This generation and those before it, in their order.
    private let generations: [RepositoryContents.Generation]

    init(
        of generation: RepositoryContents.Generation,
        _ moment: RepositoryMoment,
        _ contents: RepositoryContents,
        _ reader: RepositoryReader
    ) throws(DatabaseError) {
        noted = try GenerationEnd.previous(of: generation.number + 1, contents, reader)
        mayBeCut = moment.isOfGeneration
        let next = contents.generations.first { $0.number > generation.number }
        later = next.flatMap { GenerationEnd.mayFollow($0, generation) ? nil : $0 }
        generations = contents.generations.filter { $0.number <= generation.number }
    }

    /// The digest that a generation has noted of what was there before it; `nil` if that is not known.
    private static func previous(
        of generation: Int64,
        _ contents: RepositoryContents,
        _ reader: RepositoryReader
    ) throws(DatabaseError) -> String? {
        guard contents.generations.contains(where: { $0.number == generation && $0.snapshots.first == 0 }) else {
            return nil
        }
        do throws(DatabaseError) {
            let manifest = try reader.snapshot(generation, 0).0
            // Where the shipper has found damage, it could not read on.
            return manifest.reason == .damaged ? nil : manifest.previous
        } catch {
            // Whoever wants something of it is told.
            guard error.reason == .damaged else { throw error }
            return nil
        }
    }

    /// Whether nothing can be missing between two generations but the end of the first.
    private static func mayFollow(
        _ next: RepositoryContents.Generation,
        _ generation: RepositoryContents.Generation
    ) -> Bool {
        next.number == generation.number + 1 && next.snapshots.first == 0
    }

    /// What is not there that may have followed an object, in words; `nil` if nothing is known of. The retention has removed
    /// it, or it is lost.
    func missing(
        behind digest: String,
        of generation: RepositoryContents.Generation,
        _ reader: RepositoryReader
    ) -> String? {
        guard let later, GenerationEnd.previous(notedBy: later, reader) != digest else { return nil }
        let (first, last) = (generation.number + 1, later.number - 1)
        if first > last { return "The beginning of generation \(later.number) was" }
        return first == last ? "Generation \(first) was" : "Generations \(first) to \(last) were"
    }

    /// Whether nothing is missing between two generations, by what the later one has noted.
    static func isFollowed(
        _ generation: RepositoryContents.Generation,
        by next: RepositoryContents.Generation,
        _ reader: RepositoryReader
    ) -> Bool {
        guard !mayFollow(next, generation) else { return true }
        guard let noted = previous(notedBy: next, reader) else { return false }
        return digest(of: generation, reader) == noted
    }

    /// Whether what was noted is older than a generation. The next one did not know of that then, as if that had lost
    /// its snapshot for a while, and says nothing of its end. What was there before may not be kept any more, but the
    /// generation itself has noted what it follows.
    func isOlder(_ noted: String, than generation: RepositoryContents.Generation, _ reader: RepositoryReader) -> Bool {
        generations.reversed().contains { other in
            GenerationEnd.previous(notedBy: other, reader) == noted
                || other.number < generation.number && GenerationEnd.digest(of: other, reader) == noted
        }
    }

    /// The digest of what a generation has noted that it follows; `nil` if that cannot be read.
    private static func previous(
        notedBy generation: RepositoryContents.Generation,
        _ reader: RepositoryReader
    ) -> String? {
        guard generation.snapshots.first == 0 else { return nil }
        // Why it cannot be read does not matter: what the next generation has noted counts then.
        return try? reader.snapshot(generation.number, 0).0.previous
    }

    /// The digest of the last object of a generation, as the shipper notes it; `nil` if it cannot be read, and so cannot
    /// be what was noted.
    private static func digest(of generation: RepositoryContents.Generation, _ reader: RepositoryReader) -> String? {
        let last = generation.snapshots.last ?? 0
        if let segment = generation.segments.last, segment > last {
            // As above.
            return try? reader.segment(generation.number, segment).digest
        }
        // As above.
        guard let (manifest, digest) = try? reader.snapshot(generation.number, last) else { return nil }
        return SegmentChain(manifest, digest: digest).digest
    }

    /// Whether the retention has removed on purpose what followed a segment.
    /// - Parameter digest: that of the segment; `nil` if it was not met.
    static func isCut(
        _ generation: RepositoryContents.Generation,
        behind digest: String?,
        _ reader: RepositoryReader
    ) throws(DatabaseError) -> Bool {
        guard let digest, let sequence = generation.cut else { return false }
        do throws(DatabaseError) {
            return try reader.cut(generation.number, sequence).previous.utf8.elementsEqual(digest.utf8)
        } catch {
            // What cannot be read says nothing, and then it looks like a loss.
            guard error.reason == .damaged else { throw error }
            return false
        }
    }
}
