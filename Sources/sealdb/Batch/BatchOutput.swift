import Foundation
import Synchronization

/// Prints the results of a batch on standard output and its failures on standard error, each as soon as it is known.
final class BatchOutput: Sendable {
    private let options: ReportOptions
    private let progress: BatchProgress
    private let firstFailure = Mutex<ExitStatus?>(nil)

    init(_ options: ReportOptions, progress: BatchProgress) {
        self.options = options
        if options.json { JSONReport.end() }
        self.progress = progress
    }

    /// The exit code if standard output could not be written to; otherwise `nil`. The work goes on without it.
    var failure: ExitStatus? { firstFailure.withLock { $0 } }

    /// - Parameters:
    ///   - text: complete lines; empty to print nothing.
    ///   - isGood: whether this is about something that went well.
    func write(_ record: some Encodable, _ text: String, isGood: Bool) {
        guard !isGood || !options.quiet else { return }
        progress.interlude {
            // If the reader of the output goes away, the work must not end.
            let output = ResultOutput(endsWithReader: false)
            do {
                if options.json { try output.writeJSON(record) } else { try output.write(text) }
                try output.flush()
            } catch {
                let isFirst = firstFailure.withLock { failure in
                    defer { failure = .inputOutput }
                    return failure == nil
                }
                if isFirst { StandardError.message(ErrorReport.statusAndMessage(of: error).message) }
            }
        }
    }

    /// Prints why a store failed, if it did.
    func message(_ store: StoreItem, _ outcome: StoreOutcome) {
        guard case .failed(_, let message) = outcome else { return }
        progress.interlude { StandardError.message("\(store.name): \(message)") }
    }
}
