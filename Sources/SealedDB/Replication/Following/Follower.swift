import Foundation

/// Keeps a copy of a store that follows a repository, while others read the copy. No key is needed.
///
/// The copy, called the replica, is a store in WAL mode like any other. What was committed since the last call is added to its
/// log as one transaction, in the way in which a writer of SQLite does it; see ``KeylessLog``. So those who read it, with the
/// key, see one commit of the store after the other, or several at once, and never a part of one. Nobody else may write to
/// the replica: the follower finds that out, and leaves it alone from then on.
///
/// Not for several threads at once.
package final class Follower {
    /// How it follows.
    package struct Options: Sendable {
        /// How long to wait for readers before the log is left to grow.
        package var busyTimeout: Duration = .milliseconds(200)
        /// Whether a replica is replaced although some processes cannot be examined.
        package var ignoresUnseenUsers = false
        /// From so many bytes of segments on, another transaction begins.
        var batchBytes = 32 << 20
        /// The bytes of the replica's log from which on it is emptied.
        var relievedAt: Int64 = 4 << 20
        /// So often everything that the repository has is listed, and not only looked for by its name.
        var listingInterval: Duration = .seconds(10)
        /// So often it is tried to empty a log that somebody has kept from that.
        var reliefInterval: Duration = .seconds(10)

        package init() {}
    }

    /// What one call has done. All of it is durable.
    package struct Report: Sendable, Codable, Hashable {
        /// The generation that the replica is of.
        package var generation: Int64 = 0
        /// Why it was made anew, or brought to another generation: as generations begin, `made` for a new replica, and
        /// `removed` if what it needed is not kept any more; `nil` if it only went on.
        package var renewedBecause: String?
        package var commitCount = 0
        package var frameCount: Int64 = 0
        /// The bytes of frames in the repository that are not applied, because their commit is not whole there.
        package var bytesBehind: Int64 = 0
        /// How long ago the replica was as the store; 0 if it has all that was shipped.
        package var secondsBehind: Int64 = 0
        /// The bytes of the replica's log after the call.
        package var logBytes: Int64 = 0
        /// When the shipper saw the store as the replica is now, in milliseconds since 1970.
        package var restoredTo: Int64 = 0
        /// What is damaged in the repository, and was not needed.
        package var remarks: [String] = []
    }

    private static let mostAttempts = 5

    /// The path of the replica, with symbolic links followed.
    package let path: String
    let storage: any RepositoryStorage
    var options: Options
    /// What the last call has done, also if it failed in the end.
    package internal(set) var report = Report()
    var file: FollowerFile?
    /// `nil` before there is a replica.
    var state: FollowerState?
    var log: ReplicaLog?
    /// How the log was when it last ended as the follower had left it. Its count of changes tells whether somebody else has
    /// written since, also if whoever reads has moved the log into the file.
    var known: LogPosition?
    /// Is called at each step that leaves something on the disk. A test that throws there leaves what a process leaves that is
    /// killed.
    var atStep: (Step) throws(DatabaseError) -> Void = { _ throws(DatabaseError) in }

    enum Step: CaseIterable {
        case announced, written, published, emptied, madeSuccessor, removedLog, replaced, made, announcedSlots, putSlots
    }

    /// From so many bytes on, the log is to be emptied; more than in the options if somebody reads from it.
    private var relievedAt: Int64 = 0
    /// When that was last tried in vain.
    private var lastRelief: ContinuousClock.Instant?
    private var lastListing: ContinuousClock.Instant?
    /// Whether a copy of the store, or a part of one, may lie beside the replica.
    var mayHaveLeftCopy = true
    /// Whether such a copy is being put together, which itself sees to what stays of it.
    var isReadingCopy = false

    /// Nothing is read or written before ``follow(progress:)``.
    /// - Parameters:
    ///   - directory: that of the repository, or `s3://bucket/prefix`.
    ///   - access: how an object store is reached.
    ///   - path: path of the replica.
    package convenience init(
        directory: String,
        access: RepositoryAccess = .init(),
        to path: String,
        options: Options = .init()
    ) throws(DatabaseError) {
        try self.init(storage: access.open(directory, creates: false), to: path, options: options)
    }

    init(storage: any RepositoryStorage, to path: String, options: Options = .init()) throws(DatabaseError) {
        if let resolved = FileSystem.resolve(path) {
            self.path = resolved
        } else {
            guard let directory = FileSystem.resolve(FileSystem.directory(of: path)) else {
                throw .system("Cannot open the directory of \(path)", reason: .cannotCreate)
            }
            self.path = "\(directory)/\(FileSystem.name(of: path))"
        }
        (self.storage, self.options) = (storage, options)
    }

    deinit {
        abandon()
    }

    /// Ends following. The log is moved into the replica's file if nobody reads from it.
    /// - Returns: why the replica is no copy any more, if that is found only now.
    @discardableResult
    package func close() -> DatabaseError? {
        defer { abandon() }
        do throws(DatabaseError) {
            try emptyLogIfPossible()
        } catch {
            // What is true of the replica was written before it became so. If the log stays, the next follower goes on with it.
            return error.reason == .unverified ? error : nil
        }
        return nil
    }

    /// Lets go of everything, and leaves it as it is.
    func abandon() {
        // Everything that was written is synced, or will be written again.
        log?.keyless.close()
        // A replica that was not made needs no file.
        if let file, file.state == nil { file.remove() }
        (log, file, state, known) = (nil, nil, nil, nil)
    }

    // MARK: Following

    /// Applies what was shipped up to now. What the report says is durable.
    /// - Parameter progress: called while a whole copy is put together. If it throws, the call ends.
    /// - Throws: what went wrong. The replica holds what it held, or some of the commits that follow; call this again, and it
    ///   goes on. ``DatabaseError/Reason/unverified`` if somebody else has written to the replica: it stays as it is.
    @discardableResult
    package func follow(
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> Report {
        (report, isReadingCopy) = (Report(), false)
        do throws(DatabaseError) {
            try open(progress)
            let failure = try failureOfSlots()
            try apply(progress)
            if let failure, state?.slots.arePut == false { throw failure }
            try relieveLog()
        } catch {
            if error.reason == .noSpace {
                // What was kept for later is in the way now.
                if !isReadingCopy { NextFile.discard(FollowerFile.pathOfNext(path)) }
                // If this fails, too, there is no more room than before, which the error says.
                try? makeRoom()
            }
            note()
            lastListing = nil
            throw error
        }
        if mayHaveLeftCopy {
            NextFile.discard(FollowerFile.pathOfNext(path))
            mayHaveLeftCopy = false
        }
        note()
        return report
    }

    /// A transaction that did not fit has left a part of itself behind the log, which may be what its emptying needs.
    private func makeRoom() throws(DatabaseError) {
        guard let log, let state else { return }
        try log.keyless.whileNobodyWrites { position throws(DatabaseError) in
            if try isEnd(position, state.done) { try log.cutOff(after: state.done.frameCount) }
        }
        try emptyLogIfPossible()
    }

    private func note() {
        guard let state else { return }
        report.generation = state.done.place.generation
        report.restoredTo = state.done.place.time.milliseconds
        report.logBytes = logBytes
        let age = max(0, RepositoryTime.now.milliseconds - report.restoredTo) / 1000
        report.secondsBehind = report.bytesBehind > 0 ? age : 0
    }

    private var logBytes: Int64 {
        guard let state else { return 0 }
        return state.done.frameCount * Int64(state.identity.pageSize + LogFrameHeader.size)
    }

    private func open(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        let mark = try RepositoryMark.existing(storage)
        if file == nil {
            try StoreName.requireNoPart(path)
            let file = try FollowerFile(of: path)
            (self.file, state) = (file, file.state)
        }
        try requireOwnFile()
        if let state {
            if try FileSystem.statusIfPresent(path) == nil {
                abandonLog()
                self.state = nil
            } else if !state.repository.utf8.elementsEqual(mark.identifier.utf8) {
                throw Follower.unverified(
                    "\(path) follows another repository than \(storage.name). It was left as it is. Give each its own replica."
                )
            }
        }
        if state == nil { try make(mark, progress) }
        if let log, try log.keyless.fileHasMoved() { abandonLog() }
        if log == nil { try openLog(progress) } else { try requireEnd(progress) }
    }

    /// Without its name the file keeps no other follower away, and the next one does not find it.
    private func requireOwnFile() throws(DatabaseError) {
        guard let file, state != nil, try !file.isNamed() else { return }
        throw Follower.unverified(
            """
            \(FollowerFile.path(of: path)), in which the follower keeps what it knows of \(path), was removed or replaced. \(path) \
            was left as it is, and nothing more is applied. Remove it with its -wal and -shm, or give another path.
            """
        )
    }

    private func abandonLog() {
        // See `abandon()`.
        log?.keyless.close()
        (log, known) = (nil, nil)
    }

    /// Finishes the slots. If those that are wanted are gone, the repository may have newer ones.
    private func failureOfSlots() throws(DatabaseError) -> DatabaseError? {
        do throws(DatabaseError) {
            try finishSlots()
            return nil
        } catch {
            guard error.reason == .damaged else { throw error }
            return error
        }
    }

    private func apply(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        guard let place = state?.done.place else { throw .notOpen }
        var lastSequence = place.sequence
        do throws(DatabaseError) {
            while true {
                let batch = try nextBatch()
                lastSequence = batch.lastSequence
                report.bytesBehind = batch.waitingBytes
                // Before what is committed with them: a store refuses slots that are older than those it has seen.
                if let slots = batch.slots { try putSlots(slots) }
                try apply(batch)
                if batch.isLast { break }
                try relieveLog()
            }
        } catch {
            guard error.reason == .damaged else { throw error }
            // What cannot be read may be needed by nobody any more. If that cannot be told either, the first error counts.
            guard let reason = try? reasonToRenew(after: lastSequence, lists: true) else {
                throw error.adding(
                    context: """
                        \(path) stays as the store was at \(place.time). If an older state of \(storage.name) was brought back, the \
                        two have come apart: then remove \(path) with its -wal and -shm, and it is made anew
                        """
                )
            }
            report.remarks.append(error.message)
            return try renew(reason, progress)
        }
        if let reason = try reasonToRenew(after: lastSequence, lists: false) { try renew(reason, progress) }
    }

    private func nextBatch() throws(DatabaseError) -> CommitBatch {
        guard let state else { throw .notOpen }
        return try CommitBatch(
            behind: state.done.place,
            pageSize: state.identity.pageSize,
            limit: options.batchBytes,
            least: state.intent?.place,
            RepositoryReader(storage: storage)
        )
    }

    private func apply(_ batch: CommitBatch) throws(DatabaseError) {
        guard batch.commitCount > 0 else { return }
        try add(batch.end) { add throws(DatabaseError) in try batch.pages(add) }
        report.commitCount += batch.commitCount
        report.frameCount += batch.frameCount
    }

    /// Adds a transaction to the log, which brings the replica to a commit.
    /// - Parameter isRelative: whether the pages are right only for the file as it was when they were chosen.
    func add(
        _ place: RepositoryPlace,
        isRelative: Bool = false,
        _ pages: ReplicaLog.Pages
    ) throws(DatabaseError) {
        for _ in 0..<Follower.mostAttempts {
            if try addOnce(place, pages) { return }
            guard !isRelative || known != nil else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Something has changed \(path) while it was compared. Nothing was added to it. Try again."
                )
            }
            try requireEnd(nil)
        }
        throw DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: "Somebody moves the log of \(path) into its file again and again. Nothing was added to it."
        )
    }

    /// - Returns: false if whoever reads has moved the log into the file. Then nothing was added.
    private func addOnce(_ place: RepositoryPlace, _ pages: ReplicaLog.Pages) throws(DatabaseError) -> Bool {
        guard let log, var state, let file else { throw .notOpen }
        guard let plan = try log.plan(place, after: state.done, pages) else {
            state.done = FollowerState.ReplicaMoment(
                place: place,
                frameCount: state.done.frameCount,
                salts: state.done.salts,
                checksum: state.done.checksum
            )
            try file.write(state)
            self.state = state
            return true
        }
        if state.intent != nil {
            // What was written of it and not told must not be found when nothing knows of it any more.
            let isAtEnd = try log.keyless.whileNobodyWrites { position throws(DatabaseError) in
                guard try isEnd(position, state.done) else { return false }
                try log.discardRest(after: state.done.frameCount)
                return true
            }
            guard isAtEnd else { return false }
        }
        if state.done.frameCount == 0, let mark = state.mark { state.base = mark }
        (state.intent, state.mark) = (plan.moment, nil)
        try file.write(state)
        self.state = state
        try atStep(.announced)
        let (done, base) = (state.done, state.base)
        let end = try log.add(
            plan,
            after: done,
            requiring: { position throws(DatabaseError) in
                guard try self.isEnd(position, done) else { return false }
                if done.frameCount > 0 { return true }
                if try self.isFile(as: base) { return true }
                // What it holds has to be found out.
                self.known = nil
                return false
            },
            synced: { () throws(DatabaseError) in try self.atStep(.written) },
            pages
        )
        guard let end else { return false }
        (state.done, state.intent) = (plan.moment, nil)
        (self.state, known) = (state, end)
        try atStep(.published)
        return true
    }

    // MARK: What else the repository has

    /// Why the replica cannot only go on.
    /// - Parameters:
    ///   - sequence: the last segment that was read.
    ///   - lists: whether to list the repository in any case.
    /// - Returns: `nil` if it can.
    private func reasonToRenew(after sequence: Int64, lists: Bool) throws(DatabaseError) -> String? {
        guard let place = state?.done.place else { throw .notOpen }
        let next = ObjectName.snapshot(generation: place.generation + 1, sequence: 0)
        let now = ContinuousClock.now
        let isDue = lastListing.map { now - $0 >= options.listingInterval } ?? true
        if !lists, !isDue {
            guard try storage.read(next.text, limit: 1) != nil else { return nil }
        }
        let contents = try RepositoryContents(storage)
        guard let newest = contents.generations.last, let snapshot = newest.snapshots.last,
            newest.number >= place.generation
        else { throw Follower.isBehind(storage.name, path) }
        lastListing = now
        if newest.number > place.generation {
            let reader = RepositoryReader(storage: storage)
            // Its beginning need not be kept any more.
            guard newest.snapshots.first == 0 else { return "removed" }
            return try reader.snapshot(newest.number, 0).0.reason.rawValue
        }
        let last = max(snapshot, newest.segments.last ?? 0)
        guard last >= place.sequence else { throw Follower.isBehind(storage.name, path) }
        guard last > sequence, !newest.segments.contains(sequence + 1) else { return nil }
        if snapshot > sequence { return "removed" }
        throw .damagedObject(
            ObjectName.segment(generation: place.generation, sequence: sequence + 1).text,
            "it is missing, and others follow it. \(path) stays at \(place.time)"
        )
    }

    static func isBehind(_ repository: String, _ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(repository) has less than \(path), which followed it: its end was removed, or an old state of it was brought \
                back. \(path) stays as it is.
                """
        )
    }

    static func unverified(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_CANTOPEN, reason: .unverified, message: message)
    }

    // MARK: The replica's log

    /// Empties the log if it is long enough.
    private func relieveLog() throws(DatabaseError) {
        relievedAt = max(relievedAt, options.relievedAt)
        let now = ContinuousClock.now
        let isDue = lastRelief.map { now - $0 >= options.reliefInterval } ?? false
        guard logBytes >= relievedAt || isDue else { return }
        // As long as somebody reads from it, it grows. The next attempt comes when there is half as much again, and after a
        // while in any case: the readers may be gone, and nothing may be added any more.
        let isEmpty = try emptyLogIfPossible()
        (relievedAt, lastRelief) = isEmpty ? (0, nil) : (logBytes / 2 * 3, now)
    }

    /// Moves the log into the file.
    /// - Returns: whether it is empty now.
    @discardableResult
    func emptyLogIfPossible() throws(DatabaseError) -> Bool {
        try requireEnd(nil)
        guard let log, let state, let file else { return false }
        if state.done.frameCount > 0 {
            // What is done with the log says what the file holds afterwards, if nobody has written to the file before.
            if file.state != state { try file.write(state) }
            let wasAsLeft = try isFile(as: state.base)
            let isEmpty: Bool
            do throws(DatabaseError) {
                isEmpty = try log.keyless.empty()
            } catch {
                // SQLite refuses a file that was cut off. Whatever else fails, such as a full disk, may have moved a part.
                guard wasAsLeft else { throw error.code == SQLITE_CORRUPT ? changed() : error }
                try noteMovedPart()
                throw error
            }
            guard isEmpty else {
                if wasAsLeft { try noteMovedPart() }
                return false
            }
            try atStep(.emptied)
            if wasAsLeft { self.state?.base = nil }
        }
        guard self.state?.mark == nil else { return true }
        if try isFile(as: self.state?.base) {
            try noteEmptyLog(state, at: state.done.place, file, log)
        } else {
            try settleEmptyLog(log.keyless.position(), nil)
        }
        return true
    }

    /// Whether the file is as it was; also if that is not known.
    func isFile(as mark: FollowerState.Mark?) throws(DatabaseError) -> Bool {
        guard let mark else { return true }
        return try mark == FollowerState.Mark.of(path, settles: false)
    }

    /// A part of the log may be in the file now.
    func noteMovedPart() throws(DatabaseError) { state?.base = try FollowerState.Mark.of(path, settles: true) }

    /// The log was moved into the file, by this process or by whoever reads.
    /// - Parameter place: what the file holds.
    func noteEmptyLog(
        _ state: FollowerState,
        at place: RepositoryPlace,
        _ file: FollowerFile,
        _ log: ReplicaLog
    ) throws(DatabaseError) {
        var state = state
        (state.done, state.intent, state.base) = (FollowerState.ReplicaMoment(inFile: place), nil, nil)
        // Without frames nobody changes the file but who writes, so the mark is that of what the log held.
        (known, state.mark) = try log.keyless.whileNobodyWrites { position throws(DatabaseError) in
            guard position.frameCount == 0, isUnchanged(position) else { throw changed() }
            try log.discardRest(after: 0)
            return (position, try FollowerState.Mark.of(path, settles: true))
        }
        if file.state != state { try file.write(state) }
        self.state = state
    }
}
