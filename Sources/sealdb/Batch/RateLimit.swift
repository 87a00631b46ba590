import Foundation
import SealedDB
import Synchronization

/// Limits the copying of all jobs together to a number of bytes per second.
final class RateLimit: Sendable {
    let bytesPerSecond: Double
    /// The time at which all bytes copied so far are within the limit.
    private let paidUntil = Mutex(ContinuousClock.now)

    init(bytesPerSecond: Double) {
        self.bytesPerSecond = bytesPerSecond
    }

    /// Waits as long as the limit demands for the bytes of a store that were copied since the last call.
    /// - Parameter copied: the number of bytes that were copied at the last call. It is updated.
    func pay(_ progress: KeyRotation.Progress, copied: inout Int64, _ control: BatchControl) {
        guard progress.phase == .copy else { return }
        let bytes = progress.completedPages * Int64(progress.pageSize)
        pay(bytes - copied, control)
        copied = bytes
    }

    /// Waits for these bytes, but no longer than the work may go on.
    private func pay(_ bytes: Int64, _ control: BatchControl) {
        let end = paidUntil.withLock { paidUntil in
            paidUntil = max(paidUntil, .now) + .seconds(Double(bytes) / bytesPerSecond)
            return paidUntil
        }
        while control.stopStatus == nil {
            let left = end - .now
            guard left > .zero else { return }
            // A signal may end the pause early. The loop checks for signals.
            usleep(UInt32(min(left / .microseconds(1), 100_000)))
        }
    }
}
