import ArgumentParser
import Foundation
import SealedDB
import Synchronization

/// What a command reports about one store.
struct StoreReport: Sendable {
    enum Text: Sendable {
        /// Lines that can stand below those of other stores. Each gets the store's name at its beginning.
        case lines([String])
        /// A block of several fields for this store alone.
        case block(String)
    }

    let text: Text
    /// An object whose members are the report.
    var content: any Encodable & Sendable = [String: String]()
    /// Whether there was nothing to do.
    var isUnchanged = false
    /// Whether only a plan was made.
    var isPlan = false
    /// The exit code of a store that is as it may be, but not as was asked for.
    var exitCode: Int32 = 0
    /// What is wrong with the store. The report is printed in any case.
    var failure: Failure?

    fileprivate var outcome: StoreOutcome {
        if let failure { return .failed(status: failure.status.rawValue, message: failure.message) }
        return isUnchanged ? .unchanged : .done
    }

    fileprivate var isGood: Bool { failure == nil && exitCode == 0 }

    fileprivate func record(of store: StoreItem) -> ResultRecord {
        var record = ResultRecord(store, outcome, status: status, content: content)
        if failure == nil { record.exitCode = exitCode }
        return record
    }

    /// What JSON says in place of the outcome.
    fileprivate var status: String? { isPlan && failure == nil && !isUnchanged ? "planned" : nil }
}

/// Runs a command on one or several stores, each by itself, without a journal.
struct StoreWork {
    typealias Work =
        @Sendable (StoreItem, @escaping (KeyRotation.Progress) throws -> Void) throws -> StoreReport

    /// Whether a single store is named, which gets a report of its own form.
    let isSingle: Bool
    let batchOptions: BatchOptions
    let progressOptions: ProgressOptions
    var reportOptions = ReportOptions()
    /// What a finished store is in the summary, such as "sound".
    let doneText: String
    let work: Work

    func run(_ stores: [StoreItem]) throws {
        guard isSingle else {
            let status = try runAll(stores)
            guard status == 0 else { throw ExitCode(status) }
            return
        }
        let store = stores[0]
        reportOptions.begin(store.path)
        let report = try progressOptions.watchingSignals { try work(store, $0) }
        let output = ResultOutput()
        if reportOptions.json {
            try JSONReport.complete(report.record(of: store), output)
        } else if !reportOptions.quiet || !report.isGood {
            try output.write(report.ownText(of: store))
        }
        try output.flush()
        if let failure = report.failure { throw failure }
        guard report.exitCode == 0 else { throw ExitCode(report.exitCode) }
    }

    private func runAll(_ stores: [StoreItem]) throws -> Int32 {
        let start = ContinuousClock.now
        SignalWatch.start()
        let control = BatchControl()
        let progress = BatchProgress(mode: progressOptions.progress, stores: stores)
        let output = BatchOutput(reportOptions, progress: progress)
        let runner = batchOptions.runner(control)
        let codes = ExitCodes()
        let outcomes = runner.run(stores) { [work] store, job in
            progress.begin(store, job: job)
            let outcome: StoreOutcome
            do {
                let report = try work(store) { state in
                    progress.update(state, job: job)
                    try control.check()
                }
                outcome = report.outcome
                codes.add(report.exitCode)
                output.write(report.record(of: store), report.text(of: store), isGood: report.isGood)
                output.message(store, outcome)
            } catch {
                outcome = StoreOutcome(error, isStopped: control.stopStatus != nil)
                output.message(store, outcome)
                output.write(ResultRecord(store, outcome, content: [String: String]()), "", isGood: false)
            }
            progress.end(outcome, job: job)
            return outcome
        }
        progress.finish()
        var status = output.failure?.rawValue ?? runner.status(of: outcomes)
        if status == 0 { status = codes.highest }
        var summary = BatchSummary(outcomes)
        summary.exitCode = status
        summary.seconds = (ContinuousClock.now - start) / .seconds(1)
        output.write(
            summary,
            "\(summary.stores.counted("store")): \(summary.done) \(doneText), \(summary.unchanged) unchanged, "
                + "\(summary.failed) failed, \(summary.left) left\n",
            isGood: status == 0
        )
        return status
    }
}

extension StoreReport {
    /// The text if this is the only store.
    fileprivate func ownText(of store: StoreItem) -> String {
        switch text {
        case .lines(let lines): lines.map { $0 + "\n" }.joined()
        case .block(let text): text
        }
    }

    /// The text if this is one of several stores.
    fileprivate func text(of store: StoreItem) -> String {
        switch text {
        case .lines(let lines):
            let start = TerminalText.escaped(store.name) + ": "
            return lines.map { ($0.hasPrefix(start) ? "" : start) + $0 + "\n" }.joined()
        case .block(let text):
            return text + "\n"
        }
    }
}

extension StoreOutcome {
    /// - Parameter isStopped: whether a signal came, or the deadline is reached.
    init(_ error: any Error, isStopped: Bool) {
        if isStopped, (error as? DatabaseError)?.reason == .interrupted {
            self = .stopped
        } else {
            let (status, message) = ErrorReport.statusAndMessage(of: error)
            self = .failed(status: status, message: message)
        }
    }
}

/// The exit codes of stores on which several jobs work.
private final class ExitCodes: Sendable {
    private let state = Mutex<Int32>(0)

    var highest: Int32 { state.withLock { $0 } }

    func add(_ code: Int32) { state.withLock { $0 = max($0, code) } }
}

/// The last line of `--json` for several stores.
struct BatchSummary: Encodable {
    let kind = "summary"
    let stores: Int
    let done: Int
    let unchanged: Int
    let failed: Int
    /// Number of stores that were stopped or not begun.
    let left: Int
    var exitCode: Int32 = 0
    var seconds: Double = 0

    init(_ outcomes: [StoreOutcome]) {
        stores = outcomes.count
        done = outcomes.count { $0 == .done }
        unchanged = outcomes.count { $0 == .unchanged }
        failed = outcomes.count { $0.isFailure }
        left = stores - done - unchanged - failed
    }
}
