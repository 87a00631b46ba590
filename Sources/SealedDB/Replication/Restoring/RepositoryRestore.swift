import Foundation

/// Puts the store of one moment together from a repository, which ``Replication`` or `sealdb replicate` has filled; see
/// <doc:Replicating>.
///
/// ```swift
/// let restore = RepositoryRestore(from: "/mnt/backup/app", to: "app.db")
/// let report = try restore.run()
/// print("as of \(report.restoredTo)")
/// ```
/// No key is needed: what is checked are digests, checksums and sizes. The result is exactly what the store was after one of its
/// commits. It is made beside its place, read back and synced, and takes its name only then. Whoever opens it with its key
/// finds pages that were not written with that.
///
/// What a restore that fails has read stays beside the store's place if the repository could not be reached or the caller
/// stopped it; its message says so. The next one to the same path goes on there.
public struct RepositoryRestore: Sendable {
    /// The directory of the repository, or `s3://bucket/prefix`.
    public let repository: String
    /// Which moment is wanted.
    public let moment: RepositoryMoment
    /// Path of the store; a symbolic link is followed if a store is replaced.
    public let path: String
    private let replaces: Bool
    private let ignoresUnseenUsers: Bool
    private let open: @Sendable () throws(DatabaseError) -> any RepositoryStorage

    /// What a finished restore did.
    public struct Report: Sendable, Codable, Hashable {
        /// Absolute path of the store, with symbolic links followed.
        public let path: String
        /// The number of pages of the restored store.
        public let pageCount: Int64
        /// Bytes per page.
        public let pageSize: Int
        /// Path of the store that was there before; `nil` if there was none.
        public let replacedPath: String?
        /// The number of the generation that the moment is of.
        public let generation: Int64
        /// How many commits were applied to a snapshot.
        public let commitCount: Int
        /// When the shipper saw the store so, by the clock of its machine, to the millisecond.
        public let restoredTo: Date
        /// The number of the segment that the snapshot followed.
        package let snapshot: Int64
        /// Whether the store got key slots.
        public let hasSlots: Bool
        /// What is damaged in the repository, or was not kept, and was not needed, or leaves something open.
        public let remarks: [String]
    }

    /// Describes a restore; nothing is read or written before ``run(progress:)``.
    /// - Parameters:
    ///   - repository: its directory, or `s3://bucket/prefix`.
    ///   - moment: which moment of the store is wanted. Default the last one that was shipped.
    ///   - path: path of the store.
    ///   - replaces: whether a store that exists is replaced, and kept under another name. If false, the default, the restore
    ///     fails with ``DatabaseError/Reason/alreadyExists``, also if the store appears while the restore runs.
    ///   - ignoresUnseenUsers: as in ``KeyRotation``.
    ///   - maximumBytesPerSecond: how many bytes a second are read from the repository, 1 or more; `nil` for no limit.
    ///   - allowsPlainHTTP: whether an object store on another machine may be reached without TLS.
    public init(
        from repository: String,
        at moment: RepositoryMoment = .newest,
        to path: String,
        replaces: Bool = false,
        ignoresUnseenUsers: Bool = false,
        maximumBytesPerSecond: Int64? = nil,
        allowsPlainHTTP: Bool = false
    ) {
        var access = RepositoryAccess()
        (access.bytesPerSecond, access.allowsPlainHTTP) = (maximumBytesPerSecond, allowsPlainHTTP)
        self.init(
            from: repository,
            access: access,
            at: moment,
            to: path,
            replaces: replaces,
            ignoresUnseenUsers: ignoresUnseenUsers
        )
    }

    /// - Parameter access: how an object store is reached.
    package init(
        from repository: String,
        access: RepositoryAccess,
        at moment: RepositoryMoment = .newest,
        to path: String,
        replaces: Bool = false,
        ignoresUnseenUsers: Bool = false
    ) {
        (self.repository, self.moment, self.path) = (repository, moment, path)
        (self.replaces, self.ignoresUnseenUsers) = (replaces, ignoresUnseenUsers)
        open = { () throws(DatabaseError) in try access.open(repository, creates: false) }
    }

    /// - Parameter storage: only this restore uses it while it runs.
    init(
        storage: any RepositoryStorage,
        at moment: RepositoryMoment = .newest,
        to path: String,
        replaces: Bool = false,
        ignoresUnseenUsers: Bool = false
    ) {
        (repository, self.moment, self.path) = (storage.name, moment, path)
        (self.replaces, self.ignoresUnseenUsers) = (replaces, ignoresUnseenUsers)
        // Whoever hands it over sees to it that nobody else uses it.
        nonisolated(unsafe) let storage = storage
        open = { storage }
    }

    /// Restores the store.
    /// - Parameter progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, what was there is as it was.
    ///   ``DatabaseError/Reason/damaged`` if the moment cannot be had; the message names the latest one before it that can.
    ///   ``DatabaseError/Reason/noSuchFile`` if there is no repository, or nothing in it from that moment or before.
    ///   ``DatabaseError/Reason/busy`` if somebody has the store that is to be replaced open, including this process, or if another
    ///   restore to the path is at work.
    @discardableResult
    public func run(progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        let parts = try restored(progress: progress) { () throws(DatabaseError) in
            try RestorePlace(path, replaces: replaces, ignoresUnseenUsers: ignoresUnseenUsers)
        }
        return parts.report
    }

    /// What a restore has put together, for what goes on from there.
    struct RestoredParts {
        let report: Report
        let plan: RestorePlan
        let slots: SealedSlots?
    }

    /// - Parameters:
    ///   - leavesSlots: whether the slots are left to the caller.
    ///   - makePlace: is asked for the place when it is known that there is something to restore.
    func restored(
        leavesSlots: Bool = false,
        progress: ((KeyRotation.Progress) throws -> Void)?,
        at makePlace: () throws(DatabaseError) -> RestorePlace
    ) throws(DatabaseError) -> RestoredParts {
        let context = "Nothing was restored, and \(path) is as it was"
        let reader: RepositoryReader
        let starts: [RestorePlan.Start]
        do throws(DatabaseError) {
            try FileSystem.requireNoNUL(path)
            let storage = try open()
            reader = RepositoryReader(storage: storage)
            _ = try RepositoryMark.existing(storage)
            starts = try RestorePlan.starts(for: moment, RepositoryContents(storage), reader)
        } catch {
            throw error.adding(context: context)
        }
        let place: RestorePlace
        do throws(DatabaseError) {
            try requireOutside(reader.storage)
            place = try makePlace()
        } catch {
            throw error.adding(context: context)
        }
        let plan: RestorePlan
        let slots: SealedSlots?
        var remarks: [String] = []
        do throws(DatabaseError) {
            plan = try filled(place, starts, reader, &remarks, progress)
            slots = try plan.slots.map { digest throws(DatabaseError) in
                try place.reading { () throws(DatabaseError) in try reader.slots(digest) }
            }
            try place.requireReady(leavesSlots ? nil : slots)
        } catch {
            throw place.end(error).adding(context: context)
        }
        let replaced = try place.take(leavesSlots ? nil : slots)
        let report = Report(
            path: FileSystem.resolve(path) ?? path,
            pageCount: plan.pageCount,
            pageSize: plan.manifest.pageSize,
            replacedPath: replaced,
            generation: plan.manifest.generation,
            commitCount: plan.commitCount,
            restoredTo: plan.time.date,
            snapshot: plan.manifest.sequence,
            hasSlots: slots != nil,
            remarks: remarks
        )
        return RestoredParts(report: report, plan: plan, slots: slots)
    }

    /// What lies in the repository is a part of it.
    private func requireOutside(_ storage: any RepositoryStorage) throws(DatabaseError) {
        guard let directory = (storage as? DirectoryStorage)?.path,
            let target = FileSystem.resolve(path) ?? FileSystem.resolve(FileSystem.directory(of: path)),
            target.isSame(as: directory) || target.begins(with: directory + "/")
        else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .alreadyExists,
            message: "It lies in the repository. Give the store a place outside of it."
        )
    }

    /// Fills the file, from the first snapshot that is whole.
    private func filled(
        _ place: RestorePlace,
        _ starts: [RestorePlan.Start],
        _ reader: RepositoryReader,
        _ remarks: inout [String],
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> RestorePlan {
        var first: DatabaseError?
        for start in starts {
            do throws(DatabaseError) {
                let plan = try place.reading { () throws(DatabaseError) in try start.plan(reader) }
                if let problem = plan.problem { throw RepositoryRestore.lost(problem, plan.time) }
                try fill(place, plan, reader, progress)
                remarks += plan.doubts
                return plan
            } catch {
                guard error.reason == .damaged else { throw error }
                remarks.append("An older snapshot was used: \(error.message)")
                if first == nil { first = error }
            }
        }
        guard let first else {
            throw DatabaseError(extendedCode: SQLITE_ERROR, reason: .misuse, message: "There is nothing to restore.")
        }
        throw first
    }

    private static func lost(_ problem: DatabaseError, _ time: RepositoryTime) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: "\(problem.message) The latest moment before that, which can be had, is \(time) (--at \(time))."
        )
    }

    private func fill(
        _ place: RestorePlace,
        _ plan: RestorePlan,
        _ reader: RepositoryReader,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        let manifest = plan.manifest
        let pageSize = manifest.pageSize
        try place.requireSpace(plan.mostPages * Int64(pageSize))
        let totals = PageTotals(count: plan.pageCount, size: pageSize)
        let report = ProgressReport(totals: totals, progress: progress)
        let copying = report.part(to: 0.7)
        var file = try RestoredFile(
            place.file,
            pageSize: pageSize,
            pageCount: manifest.pageCount,
            mostPages: plan.mostPages
        )
        try restoreChunks(of: manifest, place, reader, into: &file) { completed throws(DatabaseError) in
            try copying(.copy, min(completed, totals.count))
        }
        // The objects are read again, and may be others now.
        var chain = plan.chain
        let frameSize = LogFrameHeader.size + pageSize
        while chain.sequence < plan.lastSegment {
            let (header, bytes) = try place.reading { () throws(DatabaseError) in try chain.nextWithBytes(reader) }
            var commits = header.commits[...]
            for index in 0..<header.frameCount {
                let number = header.log.frame + index + 1
                if chain.sequence == plan.lastSegment, number > plan.lastFrame { break }
                let start = header.offset + Int(index) * frameSize
                let frame = bytes[start..<(start + frameSize)]
                try file.write(frame.dropFirst(LogFrameHeader.size), at: LogFrameHeader(frame).page)
                if let commit = commits.first, commit.frame == number {
                    guard commit.pageCount <= plan.mostPages else {
                        let name = ObjectName.segment(generation: manifest.generation, sequence: chain.sequence)
                        throw .damagedObject(name.text, "it was changed while it was read")
                    }
                    commits.removeFirst()
                    try file.end(pageCount: commit.pageCount)
                }
            }
            // Only so that the caller can stop it.
            try copying(.copy, totals.count)
        }
        let checking = report.part(from: 0.7)
        try file.finish(salt: manifest.fileSalt) { completed throws(DatabaseError) in try checking(.verify, completed) }
        try place.copy.synchronize(checking) { () throws(DatabaseError) in try place.file.synchronize() }
    }

    private func restoreChunks(
        of manifest: SnapshotManifest,
        _ place: RestorePlace,
        _ reader: RepositoryReader,
        into file: inout RestoredFile,
        _ progress: (_ completedPages: Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let chunkBytes = Int(manifest.chunkPages) * manifest.pageSize
        let pipeline = PagePipeline(partSize: chunkBytes, partCount: Int64(manifest.chunks.count))
        let unread = Guarded<Int64?>(nil)
        // One closure may not use what the other one changes.
        let initial = file
        var restored: Int64 = 0
        var stop: DatabaseError?
        do throws(DatabaseError) {
            try pipeline.forEachRun { () throws(DatabaseError) in
                ChunkWorker(manifest, reader, into: try initial.newAccess(), unread: unread)
            } deliver: { numbers, marks in
                file.append(marks)
                restored = numbers.upperBound
                do throws(DatabaseError) {
                    try progress(restored * manifest.chunkPages)
                } catch {
                    stop = error
                }
                return stop == nil
            }
        } catch {
            guard unread.withLock({ $0 }) == restored + 1 else { throw error }
            try place.reading { () throws(DatabaseError) in throw error }
        }
        if let stop { throw stop }
    }
}
