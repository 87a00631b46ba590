import Foundation

/// Puts the store of one moment together from a repository. No key is needed: what is checked are digests, checksums and
/// sizes.
///
/// The result is exactly what the store was after one of its commits. It is made beside its place, read back and synced, and
/// takes its name only then.
package struct RepositoryRestore {
    /// What a finished restore did.
    package struct Report: Sendable, Codable, Hashable {
        /// Absolute path of the store, with symbolic links followed.
        package let path: String
        package let pageCount: Int64
        package let pageSize: Int
        /// Path of the store that was there before; `nil` if there was none.
        package let replacedPath: String?
        package let generation: Int64
        /// How many commits were applied to the snapshot.
        package let commitCount: Int
        /// When the shipper saw the store so, in milliseconds since 1970.
        package let restoredTo: Int64
        /// The number of the segment that the snapshot followed.
        package let snapshot: Int64
        /// Whether the store got key slots.
        package let hasSlots: Bool
        /// What is damaged in the repository, and was not needed.
        package let remarks: [String]
    }

    private let storage: any RepositoryStorage
    private let moment: RepositoryMoment
    private let path: String
    private let replaces: Bool
    private let ignoresUnseenUsers: Bool

    /// - Parameters:
    ///   - directory: that of the repository, or `s3://bucket/prefix`.
    ///   - access: how an object store is reached.
    ///   - path: path of the store.
    ///   - replaces: whether a store that exists is replaced, and kept under another name.
    package init(
        directory: String,
        access: RepositoryAccess = .init(),
        moment: RepositoryMoment = .newest,
        to path: String,
        replaces: Bool = false,
        ignoresUnseenUsers: Bool = false
    ) throws(DatabaseError) {
        self.init(
            storage: try access.open(directory, creates: false),
            moment: moment,
            to: path,
            replaces: replaces,
            ignoresUnseenUsers: ignoresUnseenUsers
        )
    }

    init(
        storage: any RepositoryStorage,
        moment: RepositoryMoment = .newest,
        to path: String,
        replaces: Bool = false,
        ignoresUnseenUsers: Bool = false
    ) {
        (self.storage, self.moment, self.path) = (storage, moment, path)
        (self.replaces, self.ignoresUnseenUsers) = (replaces, ignoresUnseenUsers)
    }

    /// Restores the store.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, what was there is as it was.
    ///   ``DatabaseError/Reason/damaged`` if the moment cannot be had; the message names the latest one before it that can.
    @discardableResult
    package func run(progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        try restored(progress: progress).report
    }

    /// What a restore has put together, for what goes on from there.
    struct RestoredParts {
        let report: Report
        let plan: RestorePlan
        let slots: SealedSlots?
    }

    /// - Parameter leavesSlots: whether the slots are left to the caller.
    func restored(
        leavesSlots: Bool = false,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> RestoredParts {
        let context = "Nothing was restored, and \(path) is as it was"
        let reader = RepositoryReader(storage: storage)
        let starts: [RestorePlan.Start]
        do throws(DatabaseError) {
            _ = try RepositoryMark.existing(storage)
            starts = try RestorePlan.starts(for: moment, RepositoryContents(storage), reader)
        } catch {
            throw error.adding(context: context)
        }
        let place: RestorePlace
        do throws(DatabaseError) {
            try requireOutside()
            place = try RestorePlace(path, replaces: replaces, ignoresUnseenUsers: ignoresUnseenUsers)
        } catch {
            throw error.adding(context: context)
        }
        let plan: RestorePlan
        let slots: SealedSlots?
        var remarks: [String] = []
        do throws(DatabaseError) {
            plan = try filled(place, starts, reader, &remarks, progress)
            if let digest = plan.slots { slots = try reader.slots(digest) } else { slots = nil }
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
            restoredTo: plan.time.milliseconds,
            snapshot: plan.manifest.sequence,
            hasSlots: slots != nil,
            remarks: remarks
        )
        return RestoredParts(report: report, plan: plan, slots: slots)
    }

    /// What lies in the repository is a part of it.
    private func requireOutside() throws(DatabaseError) {
        guard let directory = (storage as? DirectoryStorage)?.path,
            let target = FileSystem.resolve(path) ?? FileSystem.resolve(FileSystem.directory(of: path)),
            target == directory || target.begins(with: directory + "/")
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
                let plan = try start.plan(reader)
                if let problem = plan.problem { throw RepositoryRestore.lost(problem, plan.time) }
                try fill(place, plan, reader, progress)
                return plan
            } catch {
                guard error.reason == .damaged else { throw error }
                remarks.append(error.message)
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
        for (index, digest) in manifest.chunks.enumerated() {
            let firstPage = Int64(index) * manifest.chunkPages + 1
            let byteCount = manifest.byteCount(ofChunk: index)
            let chunk: [UInt8]
            if let present = try file.present(at: firstPage, count: byteCount), try ObjectDigest.of(present) == digest {
                chunk = present
            } else {
                chunk = try place.waiting { () throws(DatabaseError) in
                    try reader.contents(.chunk(digest), digest: digest)
                }
            }
            guard chunk.count == byteCount else {
                throw .damagedObject(ObjectName.chunk(digest).text, "it has another size than its snapshot says")
            }
            // Also what is there: whether the disk has it is not known.
            try file.write(chunk[...], at: firstPage)
            try place.waiting { () throws(DatabaseError) in
                try copying(.copy, min(firstPage + manifest.chunkPages - 1, totals.count))
            }
        }
        // The objects are read again, and may be others now.
        var chain = plan.chain
        let frameSize = LogPlace.frameHeaderSize + pageSize
        while chain.sequence < plan.lastSegment {
            let (header, bytes) = try place.waiting { () throws(DatabaseError) in try chain.nextWithBytes(reader) }
            var commits = header.commits[...]
            for index in 0..<header.frameCount {
                let number = header.log.frame + index + 1
                if chain.sequence == plan.lastSegment, number > plan.lastFrame { break }
                let start = header.offset + Int(index) * frameSize
                let frame = bytes[start..<(start + frameSize)]
                try file.write(frame.dropFirst(LogPlace.frameHeaderSize), at: FrameScan.page(frame))
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
            try place.waiting { () throws(DatabaseError) in try copying(.copy, totals.count) }
        }
        let checking = report.part(from: 0.7)
        try file.finish(salt: manifest.fileSalt) { completed throws(DatabaseError) in try checking(.verify, completed) }
        try place.copy.synchronize(checking) { () throws(DatabaseError) in try place.file.synchronize() }
    }
}
