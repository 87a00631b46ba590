import ArgumentParser
import Foundation
import SealedDB

struct FollowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "follow",
        abstract: "Keep a copy of a store that follows a repository of \"replicate\", while others read the copy.",
        discussion: """
            The first time, the newest moment is restored to the path of the copy. From then on, what is shipped to the \
            repository is applied to it, every second, as it is encrypted. No key is needed; whoever reads the copy needs the \
            key of the store.

              sealdb follow /mnt/backup/app replica.db
              sealdb follow /mnt/backup/app replica.db --once
              sealdb follow s3://backups/app replica.db --interval 10
              sealdb query replica.db 'SELECT count(*) FROM orders' --key-file app.key

            Any process may read the copy while it follows, with SQLCipher or this package: it is in WAL mode, and each \
            transaction sees what the store was after one of its commits. Open it read-only. If somebody writes to it, that is \
            told, and nothing more is applied (exit 70): it is no copy any more. What the follower knows of the copy is in \
            .NAME.sealdb-follow beside it. One follower at a time has a copy (exit 75).

            \(ObjectStoreOptions.discussion)

            What fails is told, and tried again at the next interval; the copy stays as it is and can be read. With --once, and \
            before the first success, a failure ends the command. SIGTERM and SIGINT end it with exit 0.

            If the store was rotated or replaced, the copy is replaced too, as soon as nobody has it open. As long as somebody \
            reads an old state of the copy, its log grows; past --log-limit that is told.
            """
    )

    @Argument(help: "Directory of the repository, or s3://BUCKET/PREFIX.", completion: .directory)
    var repository: String

    @Argument(help: "The copy. It is made if it is missing.", completion: .file())
    var store: String

    @Flag(help: "Apply what is there, and end.")
    var once = false

    @Option(help: ArgumentHelp("Look for something new so often. Default: 1.", valueName: "seconds"))
    var interval: Double?

    @Option(help: ArgumentHelp("Tell when the log of the copy is longer. Default: 1024.", valueName: "MiB"))
    var logLimit: Int64?

    @OptionGroup(title: "Repository in an object store")
    var objectStoreOptions: ObjectStoreOptions

    @OptionGroup
    var forceOptions: ForceOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try objectStoreOptions.validate(for: repository)
        if let interval, !ReplicateCommand.intervals.contains(interval) {
            throw ValidationError("--interval takes seconds, from 0.1 to 86400.")
        }
        if once, interval != nil { throw ValidationError("--once and --interval exclude each other.") }
        if let logLimit, !(1...1 << 30).contains(logLimit) {
            throw ValidationError("--log-limit takes a number of MiB, from 1 on.")
        }
    }

    func run() throws {
        let path = try Store.literalPath(store)
        reportOptions.begin(path)
        if repository.isEmpty { throw Failure(.usage, "The name of the repository is empty.") }
        var options = Follower.Options()
        options.ignoresUnseenUsers = forceOptions.force
        SignalWatch.start()
        let follower = try Follower(
            directory: repository,
            access: objectStoreOptions.access,
            to: path,
            options: options
        )
        defer { follower.close() }
        let totals = try follow(follower)
        if let failure = follower.close() { throw failure }
        let text =
            "\(TerminalText.escaped(store)): applied \(totals.commitCount.counted("commit")) of generation "
            + "\(totals.generation), as of \(totals.restoredTo)\n"
        try reportOptions.report(text, totals)
    }

    /// What all calls have done: the members of the JSON object.
    private struct Totals: Encodable, Sendable {
        var generation: Int64 = 0
        var commitCount = 0
        var frameCount: Int64 = 0
        var bytesBehind: Int64 = 0
        var secondsBehind: Int64 = 0
        var logBytes: Int64 = 0
        /// With its zone, as `restore` has it.
        var restoredTo = ""

        mutating func add(_ report: Follower.Report) {
            guard report.generation > 0 else { return }
            generation = report.generation
            commitCount += report.commitCount
            frameCount += report.frameCount
            (bytesBehind, secondsBehind) = (report.bytesBehind, report.secondsBehind)
            (logBytes, restoredTo) = (report.logBytes, RepositoryTime(milliseconds: report.restoredTo).description)
        }
    }

    private func follow(_ follower: Follower) throws -> Totals {
        var totals = Totals()
        var remarks = RepeatedRemarks(
            store: store,
            logLimit: (logLimit ?? 1024) << 20,
            failure: "it does not follow, and that is tried again",
            recovery: "it follows again."
        )
        let announcements = Announcements(store: store, work: "following", reportOptions)
        while true {
            let isLast = once || SignalWatch.wasInterrupted
            do throws(DatabaseError) {
                let reporter = progressOptions.reporter()
                defer { reporter.finish() }
                let report = try follower.follow { reporter.update($0) }
                totals.add(report)
                announce(report, announcements)
                remarks.noteSuccess()
                remarks.noteLog(report.logBytes, "Somebody reads an old state, and keeps it.")
            } catch {
                totals.add(follower.report)
                guard !isLast, totals.generation > 0, Replicator.mayPass(error) else { throw error }
                remarks.note(error)
            }
            if isLast { return totals }
            SignalWatch.pause(interval ?? 1)
        }
    }

    private func announce(_ report: Follower.Report, _ announcements: Announcements) {
        for remark in report.remarks { StandardError.message("\(store): \(remark)", .warning) }
        guard let reason = report.renewedBecause else { return }
        let time = RepositoryTime(milliseconds: report.restoredTo)
        announcements.tell("generation \(report.generation) (\(reason)), as of \(time)")
    }
}
