/// Removing what is not kept any more.
extension Replicator {
    /// What was removed from a repository.
    package struct Removed: Sendable, Codable, Hashable {
        package var snapshots = 0
        package var segments = 0
        package var chunks = 0
    }

    /// Removes snapshots that are not kept, with what follows them up to the next one, and then the chunks that no snapshot
    /// needs any more.
    ///
    /// Call it after a snapshot was made: the newest one stays in any case, and was whole then. If a snapshot cannot be read,
    /// nothing is removed. Only objects of a repository are removed, never anything else that lies there.
    /// - Parameter keeps: gets the times of the snapshots, the newest first; says which of them are kept.
    package func removeOld(keeping keeps: ([RepositoryTime]) -> [Bool]) throws(DatabaseError) -> Removed {
        try storage.lease()
        let contents = try RepositoryContents(storage)
        let reader = RepositoryReader(storage: storage)
        var manifests: [SnapshotManifest] = []
        for generation in contents.generations.reversed() {
            for sequence in generation.snapshots.reversed() {
                manifests.append(try reader.snapshot(generation.number, sequence).0)
            }
        }
        let kept = keeps(manifests.map(\.time))
        guard kept.count == manifests.count else { return Removed() }
        var removed = Removed()
        var needed = Set<String>()
        for (index, manifest) in manifests.enumerated() where index == 0 || kept[index] {
            needed.formUnion(manifest.chunks)
        }
        // The oldest first. What is left by a process that was killed has no snapshot any more.
        for (index, manifest) in manifests.enumerated().reversed() where index != 0 && !kept[index] {
            try remove(manifest, contents, &removed)
        }
        for stray in contents.strays {
            try storage.remove(stray.text)
            removed.segments += 1
        }
        for object in try storage.objects(under: ObjectName.chunks) {
            guard case .chunk(let digest)? = ObjectName(object.name), !needed.contains(digest) else { continue }
            try storage.remove(object.name)
            removed.chunks += 1
        }
        return removed
    }

    /// Removes a snapshot, and then its segments, the last one first: what a process leaves that is killed has no hole.
    private func remove(
        _ manifest: SnapshotManifest,
        _ contents: RepositoryContents,
        _ removed: inout Removed
    ) throws(DatabaseError) {
        guard let generation = contents.generations.first(where: { $0.number == manifest.generation }) else { return }
        let next = generation.snapshots.first { $0 > manifest.sequence } ?? .max
        let name = ObjectName.snapshot(generation: manifest.generation, sequence: manifest.sequence)
        try storage.remove(name.text)
        removed.snapshots += 1
        for segment in generation.segments.reversed() where segment > manifest.sequence && segment <= next {
            try storage.remove(ObjectName.segment(generation: generation.number, sequence: segment).text)
            removed.segments += 1
        }
    }
}
