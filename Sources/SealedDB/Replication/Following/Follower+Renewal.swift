internal import CSealedDBSystem
import Foundation

/// Making the replica, and bringing it to where it cannot get by commits alone.
extension Follower {
    /// Makes the replica.
    func make(
        _ mark: RepositoryMark,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        guard let file else { throw .notOpen }
        try RestorePlace.requireAbsent(path)
        let starts = try RestorePlan.starts(
            for: .newest,
            RepositoryContents(storage),
            RepositoryReader(storage: storage)
        )
        if let manifest = starts.first?.manifest { try requireFollowable(manifest) }
        let next = try nextFile(.newest, progress)
        defer { next.discard() }
        let plan = next.outcome.plan
        var state = FollowerState(
            repository: mark.identifier,
            identity: try FollowerState.Identity(next.path, salt: plan.manifest.fileSalt, pageSize: next.pageSize),
            done: FollowerState.ReplicaMoment(inFile: plan.end),
            // Those of a replica that was there before may still lie there.
            slots: file.state?.slots.changing(to: nil) ?? .none
        )
        // Whoever is killed from here on leaves a file that the next one knows.
        try file.write(state)
        try putSlots(next.outcome.slots, plan.slots, &state, attributesFrom: next.path)
        try StoreCopy.requireNoLog(of: path)
        guard sealeddb_rename_exclusively(next.path, path) == 0 else {
            let number = errno
            throw .system(
                "Cannot create \(path)",
                reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                number: number
            )
        }
        try FileSystem.synchronizeDirectory(of: path)
        try atStep(.made)
        state.mark = try FollowerState.Mark.of(path, settles: true)
        try file.write(state)
        self.state = state
        note(next.outcome, "made")
    }

    private func note(_ outcome: RepositoryRestore.RestoredParts, _ reason: String) {
        report.renewedBecause = reason
        report.remarks += outcome.report.remarks
        report.bytesBehind = 0
    }

    /// Brings the replica to the newest moment, whatever it holds.
    func renew(_ reason: String, _ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        // A copy of the whole store is only made if it can be used.
        try requireRenewable()
        let next = try nextFile(.newest, progress)
        do throws(DatabaseError) {
            try renew(to: next)
        } catch {
            // It was read for nothing. Where there is no room, its own is needed.
            if error.reason == .busy { next.keep() } else { next.discard() }
            throw error
        }
        next.discard()
        note(next.outcome, reason)
    }

    /// A copy of a moment, of which nothing stays after the next call that succeeds.
    func nextFile(
        _ moment: RepositoryMoment,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> NextFile {
        (mayHaveLeftCopy, isReadingCopy) = (true, true)
        let next = try NextFile(of: path, storage, moment, progress)
        isReadingCopy = false
        return next
    }

    private func renew(to next: NextFile) throws(DatabaseError) {
        guard let state, let log else { throw .notOpen }
        let plan = next.outcome.plan
        // A list may be older than the one before.
        guard !plan.end.isBefore(state.done.place) else { throw Follower.isBehind(storage.name, path) }
        if plan.manifest.fileSalt == state.identity.salt, next.pageSize == state.identity.pageSize {
            let different = try next.differentPages(from: log.keyless)
            let pages = different.first == 1 ? different : [1] + different
            // Before what is committed with them, as otherwise.
            if let slots = plan.slots { try putSlots(slots) }
            try add(plan.end, isRelative: true) { add throws(DatabaseError) in try next.read(pages, add) }
        } else {
            guard try emptyLogIfPossible() else { throw inUse("somebody reads it") }
            try replace(by: next)
        }
    }

    /// Throws early if somebody keeps the replica from being renewed.
    private func requireRenewable() throws(DatabaseError) {
        guard let state, let log else { throw .notOpen }
        let reader = RepositoryReader(storage: storage)
        let starts = try RestorePlan.starts(for: .newest, RepositoryContents(storage), reader)
        if let manifest = starts.first?.manifest { try requireFollowable(manifest) }
        let isEmpty = try emptyLogIfPossible()
        // What has changed the file's mark meanwhile is found out before the copy is made that the file is compared with.
        if isEmpty, let mark = self.state?.mark, try !isFile(as: mark) {
            try settleEmptyLog(log.keyless.position(), nil)
        }
        guard let manifest = starts.first?.manifest, manifest.fileSalt == state.identity.salt else {
            // This process is looked at when its own connection is closed, which keeps descriptors of others open.
            guard isEmpty, try FileUsers.others(path).isEmpty else { throw inUse("somebody reads it") }
            return
        }
        guard !isEmpty else { return }
        // Readers may keep the log from being emptied, but not from being moved, unless they read an old state.
        let wasAsLeft = try isFile(as: state.base)
        try log.keyless.moveIntoFile()
        if wasAsLeft { try noteMovedPart() }
        guard try log.keyless.position().isWholeInFile else { throw inUse("somebody reads an old state of it") }
    }

    /// The first bytes of a store are what tells whether it is the same file with the same key. Where they are in the clear, they
    /// are those of any store.
    private func requireFollowable(_ manifest: SnapshotManifest) throws(DatabaseError) {
        guard StoreHeader.hasMagic(manifest.fileSalt) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .unsupported,
            message: """
                The store in \(storage.name) has a header in the clear (--plaintext-header-size), and such a store cannot be \
                followed: whether it got another key cannot be told. Nothing was changed at \(path). `sealdb restore` brings \
                the store back.
                """
        )
    }

    private func inUse(_ why: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                The store has begun a new generation in \(storage.name), to which \(path) cannot be brought while \(why). It \
                stays as it is until then.
                """
        )
    }

    /// Puts a file in the place of the replica that nobody reads: it has another key.
    private func replace(by next: NextFile) throws(DatabaseError) {
        guard var state, let file, let log else { throw .notOpen }
        let plan = next.outcome.plan
        // Its log is empty, so closing loses nothing. If it stays open, what follows finds that.
        log.keyless.close()
        (self.log, known) = (nil, nil)
        do throws(DatabaseError) {
            let usage = try UsageLock.exclusive(path, timeout: 0)
            let lock = try StoreLock(path)
            defer {
                lock.release()
                usage.release()
            }
            try FileUsers.requireNobodyElse(path, ignoresUnseen: options.ignoresUnseenUsers)
            guard try state.mark == FollowerState.Mark.of(path, settles: false) else { throw changed() }
            try requireEmptyLog()
            state.successor = try FollowerState.Identity(
                next.path,
                salt: plan.manifest.fileSalt,
                pageSize: next.pageSize
            )
            state.successorSlots = plan.slots
            state.intent = FollowerState.ReplicaMoment(inFile: plan.end)
            try FileSystem.copyAttributes(from: path, to: next.path)
            try FileSystem.synchronize(next.path)
            try file.write(state)
            self.state = state
            try atStep(.madeSuccessor)
            // The file is whole without them, and they must not meet the new one.
            for suffix in ["-wal", "-shm"] {
                guard unlink(path + suffix) == 0 || errno == ENOENT else {
                    throw .system("Cannot remove \(path + suffix)", reason: .ioError)
                }
            }
            try FileSystem.synchronizeDirectory(of: path)
            try atStep(.removedLog)
            guard rename(next.path, path) == 0 else {
                throw .system("The new copy could not take the place of \(path)", reason: .ioError)
            }
            try atStep(.replaced)
            try FileSystem.synchronizeDirectory(of: path)
        } catch {
            guard error.reason == .busy else { throw error }
            throw inUse("somebody has it open").adding(context: error.message)
        }
        guard let successor = state.successor, let moment = state.intent else { throw .notOpen }
        var renewed = FollowerState(
            repository: state.repository,
            identity: successor,
            done: moment,
            slots: state.slots.changing(to: plan.slots)
        )
        renewed.mark = try FollowerState.Mark.of(path, settles: true)
        try file.write(renewed)
        try putSlots(next.outcome.slots, plan.slots, &renewed, attributesFrom: path)
        self.state = renewed
        try openLog(nil)
    }

    private func requireEmptyLog() throws(DatabaseError) {
        guard let status = try FileSystem.statusIfPresent(path + "-wal") else { return }
        guard status.st_size <= LogHeader.size else { throw changed() }
    }
}
