import ArgumentParser
import Foundation
import SealedDB

struct ReplicateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replicate",
        abstract: "Ship a store to a repository, continuously, while it is in use.",
        discussion: """
            Runs beside the processes that use the store, and copies what they commit to a directory, or to a bucket of an \
            object store: first all pages (a snapshot), and then what is committed, every second. Everything is shipped as it \
            is encrypted. "sealdb restore --from" puts the store of any moment together again, without a key. What is behind is the interval: this is no \
            cluster, and what was committed since is lost with the machine.

              sealdb replicate app.db --to /mnt/backup/app --key-file app.key
              sealdb replicate app.db --to /mnt/backup/app --key-file app.key --once
              sealdb replicate app.db --to s3://backups/app --key-file app.key
              sealdb replicate app.db --to /mnt/backup/app --key-file app.key \\
                  --snapshot-interval 86400 --keep-daily 7 --keep-weekly 4
              sealdb snapshots /mnt/backup/app
              sealdb restore --from /mnt/backup/app app.db

            The store must be in WAL mode. The directory is made if its last part is missing; a bucket must be there. It \
            belongs to one store, and one shipper at a time writes to it (exit 75).

            \(ObjectStoreOptions.discussion)

            What is reported as shipped is synced there. If the repository fails, that is told, and tried again at the next \
            interval; the store's log grows meanwhile, and past --log-limit that is told. With --once, and before the first \
            success, a failure ends the command. SIGTERM and SIGINT ship what is there, and end it with exit 0.

            If the log was begun anew while no shipper ran, or another file took the store's place, as after a rotation, a new \
            generation begins, with a snapshot that shares the pages that did not change. Stop this command to rotate the \
            store, and start it again. The generations from before stay, and open with the key of then.

            With --keep-…, snapshots that no rule keeps are removed after a new one was made, with what follows them up to \
            the next; never the newest. The rules are those of "sealdb backup", but for its look at backups that are \
            much smaller than the one before.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Option(
        help: ArgumentHelp("Directory of the repository, or s3://BUCKET/PREFIX.", valueName: "repository"),
        completion: .directory
    )
    var to: String

    @Flag(help: "Ship what is there, and end.")
    var once = false

    @Option(help: ArgumentHelp("Ship so often. Default: 1.", valueName: "seconds"))
    var interval: Double?

    @Option(
        help: ArgumentHelp(
            "Make another snapshot so often, so that a restore is short. Default: 86400.",
            valueName: "seconds"
        )
    )
    var snapshotInterval: Double?

    @Option(help: ArgumentHelp("Tell when the store's log is longer. Default: 1024.", valueName: "MiB"))
    var logLimit: Int64?

    @Flag(help: "Go on in a repository of a store that had another path.")
    var adopt = false

    @OptionGroup(title: "Retention; without any of these all snapshots are kept")
    var keepOptions: KeepOptions

    @OptionGroup(title: "Reaching the repository")
    var objectStoreOptions: ObjectStoreOptions

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    static let intervals = 0.1...86_400.0
    private static let snapshotIntervals = 1.0...3_153_600_000.0

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        try objectStoreOptions.validate(for: to)
        if let interval, !ReplicateCommand.intervals.contains(interval) {
            throw ValidationError("--interval takes seconds, from 0.1 to 86400.")
        }
        if once, interval != nil { throw ValidationError("--once and --interval exclude each other.") }
        if let snapshotInterval, !ReplicateCommand.snapshotIntervals.contains(snapshotInterval) {
            throw ValidationError("--snapshot-interval takes seconds, from 1 on.")
        }
        if let logLimit, !(1...1 << 30).contains(logLimit) {
            throw ValidationError("--log-limit takes a number of MiB, from 1 on.")
        }
    }

    func run() throws {
        let path = try Store.literalPath(store)
        reportOptions.begin(path)
        if to.isEmpty { throw Failure(.usage, "The name of the repository is empty.") }
        let settings = try cipherOptions.settings(of: path)
        var options = Replicator.Options()
        options.snapshotInterval = .seconds(snapshotInterval ?? 86_400)
        options.adopts = adopt
        options.busyTimeout = .seconds(lockOptions.lockWait)
        let totals = try keyOptions.withKey(of: path) { key in
            SignalWatch.start()
            let replicator = try Replicator(
                path: path,
                key: key,
                cipherSettings: settings,
                directory: to,
                access: objectStoreOptions.access,
                options: options
            )
            defer { replicator.close() }
            return try follow(replicator, path)
        }
        // One that runs on has told it, and tries it again.
        let failure =
            !once
            ? nil
            : totals.retentionFailure.map { error in
                let (status, message) = ErrorReport.statusAndMessage(of: error)
                return Failure(ExitStatus(rawValue: status) ?? .software, message)
            }
        let text =
            "\(TerminalText.escaped(store)): shipped \(totals.commitCount.counted("commit")) to generation "
            + "\(totals.generation)\(settings.remarkOnAuthentication)\n"
        try reportOptions.report(text, totals, failure: failure)
    }

    /// The members of the JSON object.
    private struct Totals: Encodable, Sendable {
        var generation: Int64 = 0
        var snapshotCount = 0
        var commitCount = 0
        var frameCount: Int64 = 0
        /// The bytes that were written to the repository.
        var byteCount: Int64 = 0
        /// The bytes of the store's log.
        var logBytes: Int64 = 0
        /// When the store was as the repository has it, in milliseconds since 1970.
        var shippedAt: Int64 = 0
        /// Why what is not kept could not be removed the last time.
        var retentionFailure: DatabaseError?

        private enum CodingKeys: String, CodingKey {
            case generation, snapshotCount, commitCount, frameCount, byteCount, logBytes, shippedAt
        }

        mutating func add(_ report: Replicator.Report) {
            generation = report.generation
            snapshotCount += report.madeSnapshot ? 1 : 0
            commitCount += report.commitCount
            frameCount += report.frameCount
            byteCount += report.byteCount + report.newSnapshotBytes
            (logBytes, shippedAt) = (report.logBytes, report.shippedAt)
        }
    }

    private func follow(_ replicator: Replicator, _ path: String) throws -> Totals {
        var totals = Totals()
        var remarks = RepeatedRemarks(
            store: store,
            logLimit: (logLimit ?? 1024) << 20,
            failure: "nothing was shipped, and it is tried again",
            recovery: "it is shipped again."
        )
        let announcements = Announcements(store: store, work: "shipping", reportOptions)
        var retention = RetentionSchedule()
        while true {
            let isLast = once || SignalWatch.wasInterrupted
            do throws(DatabaseError) {
                let reporter = progressOptions.reporter()
                defer { reporter.finish() }
                let report = try replicator.ship { reporter.update($0) }
                totals.add(report)
                announce(report, announcements)
                warnOfHealed(report)
                if let remark = Replicator.lostSight(report, of: path) {
                    StandardError.message("\(store): \(remark.message)", .warning)
                }
                remarks.noteSuccess()
                remarks.noteLog(report.logBytes, "All is shipped, but it does not begin anew: somebody reads from it.")
                if retention.isDue(after: report, isLast: isLast) {
                    totals.retentionFailure = prune(replicator, &retention, announcements)
                }
            } catch {
                guard !isLast, totals.generation > 0, Replicator.mayPass(error) else { throw error }
                remarks.noteLog(logSize(of: path), "It cannot begin anew before it is shipped.")
                remarks.note(error)
            }
            if isLast { return totals }
            SignalWatch.pause(interval ?? 1)
        }
    }

    /// - Returns: why not all was removed. All is shipped, whatever becomes of that.
    private func prune(
        _ replicator: Replicator,
        _ retention: inout RetentionSchedule,
        _ announcements: Announcements
    ) -> DatabaseError? {
        guard let policy = keepOptions.policy else { return nil }
        let removed: Replicator.Removed
        do throws(DatabaseError) {
            removed = try retention.removeOld(replicator) { policy.keeps($0) }
        } catch {
            if !once { StandardError.message("\(store): \(error.message) It is tried again.", .warning) }
            return error
        }
        if removed.snapshots > 0 { announcements.tell("\(removed.snapshots.counted("old snapshot")) removed") }
        return nil
    }

    private func warnOfHealed(_ report: Replicator.Report) {
        for name in report.healed {
            let advice = "See whether its disk is sound, and run \"sealdb snapshots --verify\"."
            StandardError.message(
                "\(store): \(name) was damaged in the repository, and was written again. \(advice)",
                .warning
            )
        }
    }

    private func logSize(of path: String) -> Int64 {
        // A log that is not there has no bytes.
        guard let status = try? FileSystem.statusIfPresent(path + "-wal") else { return 0 }
        return Int64(status.st_size)
    }

    private func announce(_ report: Replicator.Report, _ announcements: Announcements) {
        guard report.madeSnapshot else { return }
        let bytes = ByteText.size(report.newSnapshotBytes)
        guard let reason = report.begunBecause else { return announcements.tell("snapshot, \(bytes) of it new") }
        announcements.tell("generation \(report.generation) begun (\(reason)), snapshot, \(bytes) of it new")
    }
}
