import Foundation
import Synchronization

/// Prints the results of a batch on standard output and its failures on standard error, each as soon as it is known.
final class BatchOutput: Sendable {
    private let printsJSON: Bool
    private let progress: BatchProgress
    private let firstFailure = Mutex<ExitStatus?>(nil)

    init(printsJSON: Bool, progress: BatchProgress) {
        self.printsJSON = printsJSON
        self.progress = progress
    }

    /// The exit code if standard output could not be written to; otherwise `nil`. The work goes on without it.
    var failure: ExitStatus? { firstFailure.withLock { $0 } }

    /// - Parameter text: complete lines; empty to print nothing.
    func write(_ record: some Encodable, _ text: String) {
        progress.interlude {
            // If the reader of the output goes away, the work must not end.
            let output = ResultOutput(endsWithReader: false)
            do {
                if printsJSON { try output.writeJSON(record) } else { try output.write(text) }
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
