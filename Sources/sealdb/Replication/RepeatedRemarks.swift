import Foundation
import SealedDB

extension SignalWatch {
    /// Waits, but no longer than until a signal comes.
    static func pause(_ seconds: Double) {
        let end = ContinuousClock.now + .seconds(seconds)
        while !wasInterrupted {
            let left = end - .now
            guard left > .zero else { return }
            // A signal may end the pause early.
            usleep(UInt32(min(left / .microseconds(1), 100_000)))
        }
    }
}

/// What is told on standard output of work that goes on, also if nobody reads it any more, or it has no room.
final class Announcements {
    private let store: String
    private let isOn: Bool
    /// What goes on.
    private let work: String
    private var hasFailed = false

    init(store: String, work: String, _ options: ReportOptions) {
        (self.store, self.work) = (store, work)
        isOn = !options.json && !options.quiet
    }

    func tell(_ text: String) {
        guard isOn, !hasFailed else { return }
        let output = ResultOutput(endsWithReader: false)
        do {
            try output.write("\(TerminalText.escaped(store)): \(text)\n")
            try output.flush()
        } catch {
            hasFailed = true
            let reason = ErrorReport.statusAndMessage(of: error).message
            StandardError.message("\(store): \(work) goes on, but is not told of any more: \(reason)", .warning)
        }
    }
}

/// What is told on standard error of work that is repeated, and not again and again.
struct RepeatedRemarks {
    private let store: String
    private let failure: String
    private let recovery: String
    private let logLimit: Int64
    /// The next length of the log that is told.
    private var toldAt: Int64
    private var lastMessage: String?
    private var lastTime = ContinuousClock.now

    /// The same failure is not told more often.
    private static let pause: Duration = .seconds(60)

    /// - Parameters:
    ///   - failure: what stands before the message of an error.
    ///   - recovery: what is told when it goes on.
    init(store: String, logLimit: Int64, failure: String, recovery: String) {
        (self.store, self.failure, self.recovery) = (store, failure, recovery)
        (self.logLimit, toldAt) = (logLimit, logLimit)
    }

    mutating func note(_ error: DatabaseError) {
        let now = ContinuousClock.now
        if let lastMessage, lastMessage.isSame(as: error.message), now - lastTime < RepeatedRemarks.pause { return }
        (lastMessage, lastTime) = (error.message, now)
        StandardError.message("\(store): \(failure): \(error.message)")
    }

    mutating func noteSuccess() {
        if lastMessage != nil { StandardError.message("\(store): \(recovery)", .warning) }
        lastMessage = nil
    }

    /// Tells of a log that is longer than its limit, and again when it has doubled.
    mutating func noteLog(_ bytes: Int64, _ why: String) {
        guard bytes > toldAt else {
            if bytes < logLimit { toldAt = logLimit }
            return
        }
        toldAt = max(toldAt, bytes) * 2
        StandardError.message("\(store): its log has \(ByteText.size(bytes)). \(why)", .warning)
    }
}
