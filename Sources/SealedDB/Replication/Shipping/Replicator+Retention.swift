/// Removing what is not kept any more.
extension Replicator {
    /// What was removed from a repository.
    package struct Removed: Sendable, Codable, Hashable {
        package var snapshots = 0
        package var segments = 0
        package var chunks = 0
        /// Objects with key slots.
        package var slots = 0
    }

    /// Removes snapshots that are not kept, with what follows them up to the next one, and then the chunks that no snapshot
    /// needs any more, and the slots that nothing names any more. These stay while a generation is away that was not removed.
    ///
    /// Call it after a snapshot was made: the newest one stays in any case, and was whole then. If a snapshot cannot be read,
    /// or is missing before its segments, nothing is removed. Only objects of a repository are removed, never anything else
    /// that lies there.
    /// - Parameter keeps: gets the times of the snapshots, the newest first; says which of them are kept.
    /// - Throws: what went wrong. All is shipped all the same, and what was not removed is there and whole; call it again.
    package func removeOld(keeping keeps: ([RepositoryTime]) -> [Bool]) throws(DatabaseError) -> Removed {
        var removed = Removed()
        do throws(DatabaseError) {
            try removeOld(keeping: keeps, &removed)
            return removed
        } catch {
            let parts = "\(removed.snapshots) snapshots, \(removed.segments) segments, \(removed.chunks) chunks"
            throw error.adding(
                context: "All is shipped, but old snapshots were not removed, or not all (before it failed: \(parts))"
            )
        }
    }

    private func removeOld(
        keeping keeps: ([RepositoryTime]) -> [Bool],
        _ removed: inout Removed
    ) throws(DatabaseError) {
        try requireSamePlace()
        let contents = try RepositoryContents(storage)
        if let stray = contents.strays.first {
            throw .damagedObject(
                stray.text,
                "the snapshot that it follows is missing. Nothing was removed. If it cannot be brought back, remove the segment"
            )
        }
        let reader = RepositoryReader(storage: storage)
        var manifests: [SnapshotManifest] = []
        for generation in contents.generations.reversed() {
            for sequence in generation.snapshots.reversed() {
                manifests.append(try reader.snapshot(generation.number, sequence).0)
            }
        }
        var kept = keeps(manifests.map(\.time))
        guard kept.count == manifests.count else { return }
        if !kept.isEmpty { kept[0] = true }
        let stored = try storage.objects(under: ObjectName.chunks)
        if kept.contains(false) {
            try requireSoundStructure()
            try requireWhole(manifests[0], stored, contents, reader)
        }
        var (chunks, slots) = (Set<String>(), Set<String>())
        for (index, manifest) in manifests.enumerated() where kept[index] {
            chunks.formUnion(manifest.chunks)
            if let digest = manifest.slots { slots.insert(digest) }
        }
        for name in contents.spentCuts { try storage.remove(name.text) }
        try leaveCuts(manifests, kept, contents)
        try leaveEnds(manifests, kept, contents)
        // The oldest first.
        for (index, manifest) in manifests.enumerated().reversed() where !kept[index] {
            try remove(manifest, contents, &removed)
        }
        // What nothing names here may be that of a generation that was taken away, and comes back.
        let newest = contents.generations.last?.number
        guard newest != nil, newest == tail?.generation, contents.isWhole else { return }
        for object in stored {
            guard case .chunk(let digest)? = ObjectName(object.name), !chunks.contains(digest) else { continue }
            try storage.remove(object.name)
            removed.chunks += 1
        }
        try removeSlots(reader, but: slots, &removed)
    }

    /// Makes sure that the store is worth what is removed in its favour. A write that the disk has lost leaves an older page, which
    /// is authentic: what is shipped lacks the rows behind it, and a restore refuses it.
    private func requireSoundStructure() throws(DatabaseError) {
        var opening = try StoreOpening.existing(path, key: key, settings: settings, busyTimeout: 1)
        opening.takesLock = false
        opening.acceptsOlderSlots = options.acceptsOlderSlots
        let connection = try Replicator.connection(opening)
        // It has only read.
        defer { connection.close() }
        let problem = try connection.snapshot { () throws(DatabaseError) in
            try StructureCheck(connection: connection).pageProblem { () throws(DatabaseError) in try requireTime() }
        }
        guard let problem else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                The structure of the store is damaged (\(problem)). No old snapshot was removed, because a restore refuses what \
                has been shipped since. Look at the store with `sealdb verify`, and restore it to a moment before.
                """
        )
    }

    /// Makes sure that the newest snapshot, and what was shipped since, is there, before others are removed in its favour or
    /// anything is shipped that needs it: a copy of the repository that was put in its place may lack some of it.
    /// - Parameter stored: all chunks.
    func requireWhole(
        _ newest: SnapshotManifest,
        _ stored: [StoredObject],
        _ contents: RepositoryContents,
        _ reader: RepositoryReader
    ) throws(DatabaseError) {
        let sizes = Dictionary(stored.map { ($0.name, $0.size) }) { first, _ in first }
        for (index, digest) in newest.chunks.enumerated() {
            let pages = min(newest.chunkPages, newest.pageCount - Int64(index) * newest.chunkPages)
            let chunk = ObjectName.chunk(digest).text
            guard sizes[chunk] == pages * Int64(newest.pageSize) else {
                throw .damagedObject(chunk, "it is needed, and missing or cut off. Nothing was removed")
            }
        }
        guard let generation = contents.generations.first(where: { $0.number == newest.generation }),
            generation.end(after: newest.sequence) == max(newest.sequence, generation.segments.last ?? 0)
        else {
            let name = ObjectName.snapshot(generation: newest.generation, sequence: newest.sequence).text
            throw .damagedObject(name, "a segment that followed it is missing. Nothing was removed")
        }
        var slots = Set([newest.slots])
        if let last = generation.segments.last, last > newest.sequence {
            slots.insert(try reader.header(newest.generation, last).slots)
        }
        for case let digest? in slots { _ = try reader.contents(.slots(digest), digest: digest) }
    }

    /// Notes behind what the end of a generation, or what lies before its next snapshot, is removed: a restore tells that from
    /// a loss.
    /// - Parameter manifests: the newest first.
    private func leaveCuts(
        _ manifests: [SnapshotManifest],
        _ kept: [Bool],
        _ contents: RepositoryContents
    ) throws(DatabaseError) {
        for (index, manifest) in manifests.enumerated().dropLast() where !kept[index] && kept[index + 1] {
            let before = manifests[index + 1]
            guard before.generation == manifest.generation, let previous = manifest.previous,
                let generation = contents.generations.first(where: { $0.number == manifest.generation }),
                // What is missing in between was removed before, and noted then, or it is lost.
                generation.end(after: before.sequence) >= manifest.sequence,
                !generation.cuts.contains(manifest.sequence)
            else { continue }
            let cut = RetentionCut(generation: manifest.generation, sequence: manifest.sequence, previous: previous)
            try storage.require(cut.bytes(), as: cut.name)
        }
    }

    /// Notes which generations are removed as a whole: what a run that is cut off leaves of them is removed by the next one.
    private func leaveEnds(
        _ manifests: [SnapshotManifest],
        _ kept: [Bool],
        _ contents: RepositoryContents
    ) throws(DatabaseError) {
        let staying = Set(zip(manifests, kept).lazy.filter(\.1).map(\.0.generation))
        // By other rules, they are kept now, and may be taken away and come back.
        for generation in contents.removed.intersection(staying) {
            try storage.remove(ObjectName.end(generation: generation).text)
        }
        for generation in Set(manifests.map(\.generation)).subtracting(staying).sorted() {
            var text = ObjectText(title: "SealedDB end 1")
            text.add("generation", generation)
            try storage.require(text.sealed(), as: .end(generation: generation))
        }
    }

    /// Removes slots that nothing names any more: whoever knows an old passphrase could guess on there for ever.
    /// - Parameter named: those that snapshots name.
    private func removeSlots(
        _ reader: RepositoryReader,
        but named: Set<String>,
        _ removed: inout Removed
    ) throws(DatabaseError) {
        var needed = named
        // What this shipper has written, and may name next.
        needed.formUnion([tail?.slots, unfinished?.tail.slots].compactMap { $0 })
        if let bytes = reading?.slots?.bytes { needed.insert(try ObjectDigest.of(bytes)) }
        var old: [String] = []
        for object in try storage.objects(under: ObjectName.allSlots) {
            guard case .slots(let digest)? = ObjectName(object.name), !needed.contains(digest) else { continue }
            old.append(digest)
        }
        guard !old.isEmpty else { return }
        // Segments bring other slots only without frames; those with frames name those of the object before.
        for generation in try RepositoryContents(storage).generations {
            let firsts = generation.snapshots.map { $0 + 1 }.filter(Set(generation.segments).contains)
            for sequence in Set(generation.short + firsts) {
                if let digest = try reader.header(generation.number, sequence).slots { needed.insert(digest) }
            }
        }
        for digest in old where !needed.contains(digest) {
            try storage.remove(ObjectName.slots(digest).text)
            removed.slots += 1
        }
    }

    /// Removes the segments of a snapshot, the last one first, and then the snapshot: what a process leaves that is killed has
    /// no hole, and no segment without a snapshot, which would look like a loss.
    private func remove(
        _ manifest: SnapshotManifest,
        _ contents: RepositoryContents,
        _ removed: inout Removed
    ) throws(DatabaseError) {
        guard let generation = contents.generations.first(where: { $0.number == manifest.generation }) else { return }
        let next = generation.snapshots.first { $0 > manifest.sequence } ?? .max
        for segment in generation.segments.reversed() where segment > manifest.sequence && segment <= next {
            try storage.remove(ObjectName.segment(generation: generation.number, sequence: segment).text)
            removed.segments += 1
        }
        try storage.remove(ObjectName.snapshot(generation: generation.number, sequence: manifest.sequence).text)
        removed.snapshots += 1
    }
}

/// When old snapshots are removed: after each new one, and again after a while if that failed.
package struct RetentionSchedule {
    private var next: ContinuousClock.Instant?

    private static let pause: Duration = .seconds(60)

    package init() {}

    /// - Parameter isLast: whether there will be no other time.
    package mutating func isDue(after report: Replicator.Report, isLast: Bool = false) -> Bool {
        if report.madeSnapshot { next = .now }
        return next.map { $0 <= .now || isLast } ?? false
    }

    /// - Throws: as ``Replicator/removeOld(keeping:)``. It is due again later.
    package mutating func removeOld(
        _ replicator: Replicator,
        keeping keeps: ([RepositoryTime]) -> [Bool]
    ) throws(DatabaseError) -> Replicator.Removed {
        next = .now + RetentionSchedule.pause
        let removed = try replicator.removeOld(keeping: keeps)
        next = nil
        return removed
    }
}
