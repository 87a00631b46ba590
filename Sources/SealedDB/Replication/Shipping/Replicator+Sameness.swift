/// Making sure that the repository and the store are those of the last call.
extension Replicator {
    func requireSameRepository() throws(DatabaseError) {
        guard let known = mark else {
            // Not `??`, which would not throw a typed error.
            if let found = try RepositoryMark(storage) {
                try storage.makeDurable([ObjectName.mark.text])
                mark = found
            } else {
                mark = try RepositoryMark.make(storage)
            }
            return
        }
        guard try RepositoryMark.existing(storage) == known else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .unverified,
                message: """
                    \(storage.name) is another repository than before. Nothing was shipped there. See what is mounted, and \
                    start the shipper again.
                    """
            )
        }
    }

    /// Leases the repository, or keeps the lease. A copy that was put in its place may lack anything that was shipped before or while
    /// it was made, and not only its end.
    func requireSamePlace() throws(DatabaseError) {
        guard try !storage.lease(known: mark) else { return }
        let isKnown = tail != nil
        reading?.close()  // It has only read.
        (reading, tail, unfinished, lastSeen, hasMoved, slotsSeen) = (nil, nil, nil, nil, true, nil)
        guard isKnown else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(storage.name) is another directory than the one that was shipped to, as if a copy had been put in its place. What \
                was reported as shipped may not be there, and what this call has shipped may be in the former one. The next \
                attempt of this shipper begins a generation that needs nothing of what is there; another shipper does if \
                something is missing. See what was done to it.
                """
        )
    }

    /// If an older state of the repository has been put in its place, or its end was removed, what is shipped next would follow
    /// something that is not there.
    func requireSameEnd() throws(DatabaseError) {
        guard let end = tail else { return }
        let isSnapshot = end.sequence == end.snapshot
        let name: ObjectName =
            isSnapshot
            ? .snapshot(generation: end.generation, sequence: end.sequence)
            : .segment(generation: end.generation, sequence: end.sequence)
        let start = try storage.read(name.text, limit: Replicator.bytesOfEnd)
        var isSame = start != nil
        if let known = lastSeen, known.name == name {
            isSame = start == known.start
        } else if let start {
            lastSeen = (name, start)
        }
        let next = ObjectName.snapshot(generation: end.generation + 1, sequence: 0)
        var isFollowed = false
        if isSame {
            isFollowed = try storage.read(next.text, limit: 1) != nil
            guard isFollowed else { return }
        }
        // The next call finds out where it ends now. What the log still has is shipped again.
        reading?.close()  // It has only read.
        (reading, tail, unfinished, lastSeen, slotsSeen) = (nil, nil, nil, nil, nil)
        if isFollowed {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: """
                    \(next.text) is in \(storage.name), and was not made by this shipper: another one writes to this repository, \
                    or has while this one had lost its lease. Nothing was shipped now. See that only one does. The next attempt \
                    begins a generation of its own behind it.
                    """
            )
        }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(storage.name) is not as it was left: \(name.text), the last that was shipped there, is missing or another \
                one, as if an older copy had been put in its place. What was reported as shipped may not be there. Nothing \
                was shipped now. The next attempt goes on at the end that is there; see what was done to it.
                """
        )
    }

    /// The end of the repository is known by so many bytes: digests are among them.
    private static let bytesOfEnd = 1024

    /// Notes what an object begins with that was written.
    func noteEnd(_ name: ObjectName, _ bytes: [UInt8]) {
        lastSeen = (name, Array(bytes.prefix(Replicator.bytesOfEnd)))
    }

    /// What was committed since the look to a file that has taken the store's place is not in the repository.
    func requireStillNamed() throws(DatabaseError) {
        guard let reading, try reading.current.mainFileHasMoved() else { return }
        throw DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                Another file took the place of \(path) while it was shipped, or it was removed. What was committed to the old \
                file up to then is in the repository; nothing of the new one is. Try again.
                """
        )
    }

    /// - Returns: what to tell if a generation was begun because the store was replaced and not all of the old file was shipped.
    static func lostSight(_ report: Report, of path: String) -> DatabaseError? {
        guard report.begunBecause == SnapshotManifest.Reason.replacedUnseen.rawValue else { return nil }
        return DatabaseError(
            extendedCode: SQLITE_READONLY_DBMOVED,
            reason: .unverified,
            message: """
                Another file has taken the place of \(path), and what was last committed to the old one could not be read any \
                more: that is not in the repository. The new file is, as a generation of its own, and is shipped from now on.
                """
        )
    }
}
