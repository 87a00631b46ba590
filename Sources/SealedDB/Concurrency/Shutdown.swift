import Foundation

/// Ends the work of some lanes for good: refuses new calls, waits for the others or stops them.
// @unchecked: the supervisions are only asked to stop, which any thread may do.
final class Shutdown: @unchecked Sendable {
    private let lanes: [Lane]
    private let supervisions: [Supervision]

    init(lanes: [Lane], databases: [Database]) {
        self.lanes = lanes
        supervisions = databases.map(\.supervision)
    }

    /// Returns when nothing runs or waits any more.
    func run(interruptingAfter grace: Duration?) async {
        for lane in lanes { lane.refuse(because: .shutDown) }
        let timer = grace.map { grace in
            let item = DispatchWorkItem { self.interrupt() }
            let (seconds, attoseconds) = grace.components
            let deadline = DispatchTime.now() + Double(seconds) + Double(attoseconds) / 1e18
            DispatchQueue.global().asyncAfter(deadline: deadline, execute: item)
            return item
        }
        await withTaskCancellationHandler {
            for lane in lanes { await withCheckedContinuation { lane.whenIdle($0.resume) } }
        } onCancel: {
            interrupt()
        }
        timer?.cancel()
    }

    /// Sends away those who wait, and stops the statements that run now or would be next.
    private func interrupt() {
        for supervision in supervisions { supervision.shutdown.set() }
        for lane in lanes { lane.dismissWaiting() }
    }
}

extension DatabaseError {
    static let shutDown = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .shutDown,
        message: "The queue or pool was shut down. The block was not called."
    )
}
