internal import CSealedDBSystem
import Foundation

/// The key slots beside the replica.
extension Follower {
    /// Puts slots of the repository beside the replica, if they are not there.
    func putSlots(_ digest: String) throws(DatabaseError) {
        guard var state, digest != state.slots.digest || !state.slots.arePut else { return }
        let slots = try RepositoryReader(storage: storage).slots(digest)
        try putSlots(slots, digest, &state, attributesFrom: path)
        self.state = state
    }

    /// Goes on where somebody was killed who put slots beside the replica, or failed.
    func finishSlots() throws(DatabaseError) {
        guard var state, !state.slots.arePut else { return }
        if let digest = state.slots.digest { return try putSlots(digest) }
        try putSlots(nil, nil, &state, attributesFrom: path)
        self.state = state
    }

    /// Each of the two files is replaced at once. One that neither the follower nor the shipper has written is left alone.
    func putSlots(
        _ slots: SealedSlots?,
        _ digest: String?,
        _ state: inout FollowerState,
        attributesFrom model: String
    ) throws(DatabaseError) {
        guard let file else { throw .notOpen }
        let announced = state.slots.changing(to: digest)
        let files = SlotFiles(store: path)
        for copy in files.read() where !copy.isMissing {
            // What cannot be read for a moment only says nothing of what it holds.
            if case .unusable(let error) = copy.content, !error.provesBadSlots { throw error }
            let found = try copy.slots.map { slots throws(DatabaseError) in try ObjectDigest.of(slots.bytes) }
            guard let found, announced.mayStand(found) else {
                throw Follower.unverified(
                    "\(copy.path) holds other slots than those that were put beside \(path). It was left as it is; move it away."
                )
            }
        }
        // Whoever is killed from here on leaves files that the next one knows.
        state.slots = announced
        try file.write(state)
        try atStep(.announcedSlots)
        for path in [files.first, files.second] {
            if let slots { try put(slots, at: path, attributesFrom: model) } else { try remove(path) }
            try FileSystem.synchronizeDirectory(of: path)
            try atStep(.putSlots)
        }
        state.slots = ReplicaSlots(digest: digest, others: [], arePut: true)
        try file.write(state)
    }

    private func put(_ slots: SealedSlots, at path: String, attributesFrom model: String) throws(DatabaseError) {
        SlotFiles.removeLeftovers(of: path)
        let (new, descriptor) = try SlotFiles.prepare(path, slots, attributesFrom: model)
        // The contents are synced by then.
        defer { sealeddb_unlock_and_close(descriptor) }
        guard rename(new, path) == 0 else {
            let number = errno
            // A file that cannot be removed is removed by the next change.
            unlink(new)
            throw .system("Cannot create \(path)", reason: .cannotCreate, number: number)
        }
    }

    private func remove(_ path: String) throws(DatabaseError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw .system("Cannot remove \(path)", reason: .ioError) }
    }
}

/// Which key slots stand beside a replica.
struct ReplicaSlots: Sendable, Equatable {
    /// The digest of those that belong there; `nil` if none do.
    var digest: String?
    /// The digests of others, one of which may still stand in one of the files.
    var others: [String]
    /// Whether both files are as they should be, durably.
    var arePut: Bool

    static let none = ReplicaSlots(digest: nil, others: [], arePut: true)

    /// As many changes may fail one after the other, at different moments.
    private static let mostOthers = 16

    /// While they are being replaced.
    func changing(to digest: String?) -> ReplicaSlots {
        let others = (others + [self.digest].compactMap { $0 }).filter { $0 != digest }
        return ReplicaSlots(digest: digest, others: others.suffix(ReplicaSlots.mostOthers), arePut: false)
    }

    func mayStand(_ found: String) -> Bool { found == digest || others.contains(found) }
}
