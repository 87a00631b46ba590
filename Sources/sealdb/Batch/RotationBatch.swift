import ArgumentParser
import Foundation
import SealedDB
import Synchronization

/// Changes the keys of many stores, and records that in a journal.
struct RotationBatch: Sendable {
    let stores: [StoreItem]
    let rotation: StoreRotation
    let runner: BatchRunner
    let rateLimit: RateLimit?
    let journalPath: String
    let isResumeOnly: Bool
    let reportOptions: ReportOptions
    let progressMode: ProgressMode

    static let defaultJournal = "sealdb-rotate.journal"
    private let operation = "rotate"

    // MARK: The run

    /// - Returns: the exit code.
    func run() throws -> Int32 {
        let start = ContinuousClock.now
        // This check comes before a journal is created.
        try BatchJournal.check(path: journalPath, operation: operation, stores, isResumeOnly: isResumeOnly)
        let journal = try BatchJournal(path: journalPath)
        let known = journal.unfinishedBatch(operation: operation, stores)
        try rotation.keyFiles?.check(known, isLooking: false)
        let pending = stores.filter { known?.state(of: $0.identity) != .done }
        try rotation.requireSameNewKey(as: stores.filter { known?.state(of: $0.identity) == .done })
        try SpaceCheck.check(
            pending.filter(rotation.copies),
            jobs: runner.jobs,
            keepsOld: rotation.oldFileSuffix != nil
        )
        SignalWatch.start()
        try journal.begin(operation: operation, stores, isResumeOnly: isResumeOnly)
        let progress = BatchProgress(mode: progressMode, stores: stores)
        let output = BatchOutput(reportOptions, progress: progress)
        let speed = Speed()
        let outcomes = runner.run(stores, mayBegin: { runner.control.hasTime(for: speed.seconds(for: $0.size)) }) {
            (store, job) in
            progress.begin(store, job: job)
            let isThoughtDone = known?.state(of: store.identity) == .done
            let outcome = change(store, job, journal, progress, output, speed, isThoughtDone: isThoughtDone)
            progress.end(outcome, job: job)
            return outcome
        }
        progress.finish()
        for remark in rotation.keyFiles?.remarks ?? [] { StandardError.message(remark) }
        let status = output.failure?.rawValue ?? runner.status(of: outcomes)
        var summary = BatchSummary(outcomes)
        summary.exitCode = status
        summary.seconds = (ContinuousClock.now - start) / .seconds(1)
        var record = JournalRecord(.end)
        record.exitCode = status
        try journal.append(record)
        output.write(
            summary,
            "\(summary.stores.counted("store")): \(summary.done) changed, \(summary.unchanged) had the new key already, "
                + "\(summary.failed) failed, \(summary.left) left\n",
            isGood: status == 0
        )
        if status != 0 {
            StandardError.message(
                "\(summary.done + summary.unchanged) of \(summary.stores) stores have their new key. To go on, run "
                    + "the same command. See: sealdb status \(journalPath)"
            )
        }
        return status
    }

    private func change(
        _ store: StoreItem,
        _ job: Int,
        _ journal: BatchJournal,
        _ progress: BatchProgress,
        _ output: BatchOutput,
        _ speed: Speed,
        isThoughtDone: Bool
    ) -> StoreOutcome {
        let start = ContinuousClock.now
        var copied: Int64 = 0
        do {
            try journal.append(JournalRecord(.start, path: store.identity))
            let result = try rotation.run(store, isThoughtDone: isThoughtDone) { state in
                progress.update(state, job: job)
                rateLimit?.pay(state, copied: &copied, runner.control)
                try runner.control.check()
            }
            let files = try rotation.replaceKeyFile(of: store) { files in
                var record = JournalRecord(.replacing, path: store.identity)
                (record.keyFile, record.newKeyFile) = (files.file, files.newFile)
                record.formerKeyFile = files.formerFile
                try append(record, to: journal)
            }
            var record = JournalRecord(.done, path: store.identity)
            record.keyFile = files?.file
            let outcome: StoreOutcome
            if case .changed(let report, _) = result {
                outcome = .done
                record.seconds = report.seconds
                record.bytes = report.pageCount * Int64(report.pageSize)
                speed.note(bytes: store.size, seconds: (ContinuousClock.now - start) / .seconds(1))
            } else {
                outcome = .unchanged
            }
            record.outcome = outcome.name
            output.write(
                ResultRecord(store, outcome, content: RotatedStore(result: result, files: files)),
                result.line(store, rotation.ciphers.settings(of: store)) + (files.map { "; " + $0.doneText } ?? "")
                    + "\n",
                isGood: true
            )
            try append(record, to: journal)
            return outcome
        } catch {
            return fail(store, error, journal, output)
        }
    }

    /// Records something of a store that has the new key.
    private func append(_ record: JournalRecord, to journal: BatchJournal) throws(Failure) {
        do {
            try journal.append(record)
        } catch {
            let message = ErrorReport.statusAndMessage(of: error).message
            throw Failure(.inputOutput, "It has the new key, but the run cannot go on. \(message)")
        }
    }

    private func fail(
        _ store: StoreItem,
        _ error: any Error,
        _ journal: BatchJournal,
        _ output: BatchOutput
    ) -> StoreOutcome {
        let outcome = StoreOutcome(error, isStopped: runner.control.stopStatus != nil)
        var record = JournalRecord(.stopped, path: store.identity)
        if case .failed(let status, let message) = outcome {
            record.event = .failed
            record.exitCode = status
            record.message = message
        }
        // If this fails too, the journal still names the store in its `start` record.
        try? journal.append(record)
        output.message(store, outcome)
        output.write(ResultRecord(store, outcome, content: [String: String]()), "", isGood: false)
        return outcome
    }

    // MARK: The plan

    /// Does everything that the run would do before it writes.
    /// - Returns: the exit code that the run would have.
    func plan() throws -> Int32 {
        // If the journal cannot be read, that is told below.
        let known = (try? JournalFile.state(journalPath))?.asUnfinishedBatch(operation: operation, stores)
        try rotation.keyFiles?.check(known, isLooking: true)
        try rotation.requireSameNewKey(as: stores.filter { known?.state(of: $0.identity) == .done })
        let progress = BatchProgress(mode: .never, stores: stores)
        let output = BatchOutput(reportOptions, progress: progress)
        var outcomes: [StoreOutcome] = []
        var bytes: Int64 = 0
        var seconds = 0.0
        var pending: [StoreItem] = []
        for store in stores {
            do {
                let result = try rotation.plan(store)
                if case .planned(let plan) = result {
                    bytes += plan.fileSize
                    seconds += plan.estimatedSeconds ?? 0
                    pending.append(store)
                    outcomes.append(.done)
                } else {
                    outcomes.append(.unchanged)
                }
                let status = outcomes.last == .done ? "planned" : nil
                let files = rotation.keyFiles?.replacement(of: store)
                output.write(
                    ResultRecord(
                        store,
                        outcomes.last!,
                        status: status,
                        content: RotatedStore(result: result, files: files)
                    ),
                    result.line(store, rotation.ciphers.settings(of: store)) + (files.map { "; " + $0.planText } ?? "")
                        + "\n",
                    isGood: true
                )
            } catch {
                let outcome = StoreOutcome(error, isStopped: false)
                outcomes.append(outcome)
                output.message(store, outcome)
                output.write(ResultRecord(store, outcome, content: [String: String]()), "", isGood: false)
            }
        }
        seconds /= Double(min(runner.jobs, ProcessInfo.processInfo.activeProcessorCount, max(1, pending.count)))
        if let rateLimit { seconds = max(seconds, Double(bytes) / rateLimit.bytesPerSecond) }
        var status = runner.status(of: outcomes)
        do throws(Failure) {
            try BatchJournal.check(path: journalPath, operation: operation, stores, isResumeOnly: isResumeOnly)
            try SpaceCheck.check(
                pending.filter(rotation.copies),
                jobs: runner.jobs,
                keepsOld: rotation.oldFileSuffix != nil
            )
        } catch {
            StandardError.message(error.message)
            status = error.status.rawValue
        }
        if status == 0, !runner.control.hasTime(for: seconds) {
            StandardError.message(
                "This takes longer than the deadline allows. What is left then can be done later.",
                .warning
            )
            status = ExitStatus.busy.rawValue
        }
        var summary = BatchSummary(outcomes)
        summary.exitCode = status
        summary.seconds = seconds
        output.write(
            summary,
            "\(summary.stores.counted("store")): \(pending.count) to change, \(summary.unchanged) have the new key, "
                + "\(summary.failed) cannot be changed; \(ByteText.size(bytes)), about \(DurationText.clock(seconds)); "
                + "nothing was written\n",
            isGood: status == 0
        )
        return status
    }
}

/// The members of the JSON object for a store: the result, and the key file that was replaced or would be.
struct RotatedStore: Encodable, Sendable {
    let result: StoreRotation.Result
    let files: KeyFileReplacement?

    func encode(to encoder: any Encoder) throws {
        try result.content.encode(to: encoder)
        try files?.report.encode(to: encoder)
    }
}

/// Estimates how long a store takes, from the stores that are done.
private final class Speed: Sendable {
    private let state = Mutex((bytes: Int64(0), seconds: 0.0))

    func note(bytes: Int64, seconds: Double) {
        state.withLock { state in
            state.bytes += bytes
            state.seconds += seconds
        }
    }

    /// The estimated seconds for a store of this size; 0 before the first store is done.
    func seconds(for bytes: Int64) -> Double {
        state.withLock { state in
            state.bytes == 0 ? 0 : state.seconds * Double(bytes) / Double(state.bytes)
        }
    }
}
