import Foundation
import SealedDB
import Synchronization

/// Slows the copying down to so many bytes in a second, of all jobs together.
final class RateLimit: Sendable {
    let bytesPerSecond: Double
    /// When the bytes so far have been paid for.
    private let paidUntil = Mutex(ContinuousClock.now)

    init(bytesPerSecond: Double) {
        self.bytesPerSecond = bytesPerSecond
    }

    /// Waits as long as the bytes take that were copied since the last call for a store.
    /// - Parameter copied: how many there were then.
    func pay(_ progress: KeyRotation.Progress, copied: inout Int64, _ control: BatchControl) {
        guard progress.phase == .copy else { return }
        let bytes = progress.completedPages * Int64(progress.pageSize)
        pay(bytes - copied, control)
        copied = bytes
    }

    /// Until the work is to stop at the latest.
    private func pay(_ bytes: Int64, _ control: BatchControl) {
        let end = paidUntil.withLock { paidUntil in
            paidUntil = max(paidUntil, .now) + .seconds(Double(bytes) / bytesPerSecond)
            return paidUntil
        }
        while control.stopStatus == nil {
            let left = end - .now
            guard left > .zero else { return }
            // A signal may end it early, and is asked for then.
            usleep(UInt32(min(left / .microseconds(1), 100_000)))
        }
    }
}
