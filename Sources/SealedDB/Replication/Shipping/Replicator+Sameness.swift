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

    /// If another file has taken the store's place, everything begins anew with that.
    func requireSameFile() throws(DatabaseError) {
        guard let open = reading, try open.current.mainFileHasMoved() else { return }
        let isWhole = try shipOldLog()
        // They have only read.
        open.close()
        (reading, tail, reason) = (nil, nil, isWhole ? .replaced : .replacedUnseen)
    }

    /// What is added to a log that has lost its name, or whose index has, is seen only by those who have it open. The others have
    /// another one, with which everything begins anew.
    func requireSameLog() throws(DatabaseError) {
        guard let open = reading, try open.log.isUnseenByOthers() else { return }
        // What is not in the file may be nowhere else. If it cannot be read, the new generation tells that something is wrong.
        _ = try shipOldLog()
        // They have only read.
        open.close()
        (reading, tail, reason) = (nil, nil, .logReplaced)
    }

    /// Ships what was committed to a file or log before it lost its name. It is open here, and so is its log.
    /// - Returns: whether that is all. If not, the new generation says so.
    private func shipOldLog() throws(DatabaseError) -> Bool {
        guard try shipReadable() else { return false }
        do throws(DatabaseError) {
            // Whoever opens the new file may have added to a log that still has its name.
            guard try reading?.log.hasLostName() == true else { return false }
            try moveOn()
        } catch {
            guard error.code != SQLITE_BUSY else { throw error }
            return false
        }
        return try shipReadable()
    }

    /// Whether something else than SQLite has written to the file since the last look. Where SQLite may have, that cannot be told.
    /// - Parameters:
    ///   - found: the file as it was since, before the position was read.
    ///   - position: that of the log now, while the transaction of the last look is open.
    func isOverwritten(
        _ open: FollowedStore,
        _ found: FileMark?,
        _ position: LogPosition
    ) throws(DatabaseError) -> Bool {
        guard let mark = open.mark, open.position.hasSameFile(as: position), found != mark else { return false }
        return try !open.current.mainFileHasMoved()
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

    /// Another process makes an index where none has that name. The one that this process has may be one that lost it.
    static func isWithoutIndex(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_READONLY_DBMOVED,
            reason: .unverified,
            message: """
                The index of the log of \(path) (-shm) was removed while this process has the store open: what it commits, \
                others do not see. Nothing was shipped. Close the store everywhere, and look at it with `sealdb verify`.
                """
        )
    }

    /// - Returns: what to tell if a generation was begun because of something that somebody should know of.
    package static func lostSight(_ report: Report, of path: String) -> DatabaseError? {
        let message: String
        switch report.begunBecause.flatMap(SnapshotManifest.Reason.init) {
        case .replacedUnseen:
            message = """
                Another file has taken the place of \(path), and what was last committed to the old one could not be read any \
                more: that is not in the repository. The new file is, as a generation of its own, and is shipped from now on.
                """
        case .logReplaced:
            message = """
                The log of \(path), or the log's index, was removed or replaced while the store was open. What is committed \
                by those who have opened it before, others do not see, and together they damage it: close it everywhere, and \
                look at it with `sealdb verify`. In the repository it is, as a generation of its own, as whoever opens it now sees it.
                """
        case .overwritten:
            message = """
                Something else than SQLite has written to \(path) while it was open, such as a copy that was put over it, or \
                has set its time. Whoever has it open may still have what it held before, and damage it: close it everywhere, \
                and look at it with `sealdb verify`. It is in the repository as it is now, as a generation of its own. A backup \
                is put in a store's place by `sealdb restore --replace`.
                """
        default: return nil
        }
        return DatabaseError(extendedCode: SQLITE_READONLY_DBMOVED, reason: .unverified, message: message)
    }
}
