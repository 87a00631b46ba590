/// Finding out whether the replica is as it was left.
extension Follower {
    /// Opens the replica's log, where another follower may have stopped at any moment.
    func openLog(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        guard var state else { throw .notOpen }
        let inode = UInt64(try FileSystem.status(path).st_ino)
        if let successor = state.successor {
            // It was killed while the replica was replaced.
            if inode == successor.inode, let intent = state.intent {
                state = FollowerState(
                    repository: state.repository,
                    identity: successor,
                    done: intent,
                    slots: state.slots.changing(to: state.successorSlots)
                )
            } else {
                (state.successor, state.successorSlots, state.intent) = (nil, nil, nil)
            }
        }
        guard inode == state.identity.inode else {
            throw Follower.unverified(
                "\(path) is another file than the one that followed \(storage.name). It was left as it is; give another path."
            )
        }
        try StoreName.requireOneName(path)
        let log = ReplicaLog(
            try KeylessLog(
                path: path,
                pageSize: state.identity.pageSize,
                busyTimeout: options.busyTimeout.seconds,
                newHeader: ReplicaLog.newHeader(pageSize: state.identity.pageSize),
                lock: try UsageLock.shared(path, timeout: options.busyTimeout.seconds)
            )
        )
        guard try log.keyless.fileHeader() == state.identity.salt else { throw changed() }
        let position = try log.keyless.position()
        if let intent = state.intent, intent.isEnd(position) {
            (state.done, state.intent) = (intent, nil)
        } else if position.frameCount > 0, !state.done.isEnd(position) {
            throw changed()
        }
        (self.state, self.log) = (state, log)
        if position.frameCount == 0 { try settleEmptyLog(position, progress) } else { known = position }
    }

    /// Makes sure that the log ends as it was left. Whoever reads may have moved it into the file.
    func requireEnd(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        guard var state, let log, let file else { throw .notOpen }
        try requireSeenLog(log)
        let position = try log.keyless.position()
        if let intent = state.intent, intent.isEnd(position) {
            // It was written, and not told; somebody else has found it.
            (state.done, state.intent) = (intent, nil)
            (self.state, known) = (state, position)
        } else if position.frameCount == 0, !isUnchanged(position) {
            try settleEmptyLog(position, progress)
        } else if try !isEnd(position, state.done) {
            try noteEmptyLog(state, at: state.done.place, file, log)
        }
    }

    /// Whether the log still ends as it was left.
    /// - Returns: false if whoever reads has moved all of it into the file.
    func isEnd(_ position: LogPosition, _ done: FollowerState.ReplicaMoment) throws(DatabaseError) -> Bool {
        if let log { try requireSeenLog(log) }
        if position.frameCount == 0 && isUnchanged(position) { return done.frameCount == 0 }
        guard done.isEnd(position) else { throw changed() }
        return true
    }

    /// Whether nobody has committed anything since the log was last as it was left. Each commit is counted, and only the log's
    /// beginning anew changes nothing else.
    func isUnchanged(_ position: LogPosition) -> Bool { position.changeCount == known?.changeCount }

    /// What is added to a log that has lost its name, or whose index has, nobody sees who opens the replica now; and what he reads
    /// changes under him when it is moved into the file.
    private func requireSeenLog(_ log: ReplicaLog) throws(DatabaseError) {
        guard try log.keyless.isUnseenByOthers() else { return }
        throw Follower.unverified(
            """
            The log of \(path), or the log's index, was removed or replaced while it was followed, so that those who open the copy \
            do not see what is applied. It was left as it is, and nothing more is applied. Remove it with its -wal and -shm when \
            nobody has it open, and it is made anew.
            """
        )
    }

    func changed() -> DatabaseError {
        Follower.unverified(
            """
            Somebody else has written to \(path), so it is no copy any more. It was left as it is, and nothing more is applied. \
            Keep what was written there if it is needed; then remove that file with its -wal and -shm, or give another path. \
            Replicas are to be opened read-only.
            """
        )
    }

    /// Finds out which commit the file holds if its log is gone: whoever closes a store last moves the log there.
    func settleEmptyLog(
        _ position: LogPosition,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        guard let state, let log, let file else { throw .notOpen }
        // Nothing is known as long as this has not come to its end.
        known = nil
        let place = try placeOfFile(state, log, progress)
        known = position
        do throws(DatabaseError) {
            try noteEmptyLog(state, at: place, file, log)
        } catch {
            known = nil
            throw error
        }
    }

    private func placeOfFile(
        _ state: FollowerState,
        _ log: ReplicaLog,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> RepositoryPlace {
        if let mark = state.mark, try mark == FollowerState.Mark.of(path, settles: false) { return state.done.place }
        var failure: DatabaseError?
        for moment in [state.done, state.intent].compactMap({ $0 }) {
            // If what the one needs is gone, it may be the other.
            do throws(DatabaseError) {
                guard try holds(moment.place, log, progress) else { continue }
            } catch {
                failure = error
                continue
            }
            return moment.place
        }
        throw failure ?? changed()
    }

    /// Whether the file is just what the store was after a commit.
    private func holds(
        _ place: RepositoryPlace,
        _ log: ReplicaLog,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> Bool {
        let moment = RepositoryMoment.commit(
            generation: place.generation,
            sequence: place.sequence,
            frame: place.frame
        )
        let next: NextFile
        do throws(DatabaseError) {
            next = try nextFile(moment, progress)
        } catch {
            guard error.reason == .noSuchFile || error.reason == .damaged else { throw error }
            throw error.adding(
                context: """
                    Whether somebody else has written to \(path) cannot be told: its log is gone, and what \(storage.name) had \
                    then is not there any more. It was left as it is. If nobody has, remove it with its -wal and -shm, and it is \
                    made anew
                    """
            )
        }
        defer { next.discard() }
        let size = next.pageCount * Int64(next.pageSize)
        guard next.outcome.plan.end.isSame(as: place), try log.keyless.fileSize() == size else { return false }
        // Pages of zeros were never written: no commit needs them, and what stands there is left from earlier.
        return try next.differentPages(from: log.keyless, ignoringUnwritten: true).isEmpty
    }
}

extension RepositoryPlace {
    func isSame(as other: RepositoryPlace) -> Bool {
        generation == other.generation && sequence == other.sequence && frame == other.frame
    }
}
