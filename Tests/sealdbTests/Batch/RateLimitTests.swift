import Foundation
import Testing

@testable import SealedDB
@testable import sealdb

@Suite(.hangLimit)
struct RateLimitTests {
    private func progress(_ phase: KeyRotation.Progress.Phase, _ pages: Int64) -> KeyRotation.Progress {
        KeyRotation.Progress(
            phase: phase,
            completedPages: pages,
            totalPages: 1000,
            pageSize: 1000,
            fractionCompleted: 0
        )
    }

    private func time(_ body: () -> Void) -> Duration { ContinuousClock().measure(body) }

    /// What is copied is paid for, once, and only that.
    @Test func copyingTakesItsTime() {
        let limit = RateLimit(bytesPerSecond: 1_000_000)
        let control = BatchControl()
        var copied: Int64 = 0
        // A clock that the sleep does not use may be a little behind.
        #expect(time { limit.pay(progress(.copy, 100), copied: &copied, control) } > .milliseconds(95))
        #expect(copied == 100_000)
        #expect(time { limit.pay(progress(.copy, 250), copied: &copied, control) } > .milliseconds(145))
        limit.pay(progress(.verify, 1000), copied: &copied, control)
        #expect(copied == 250_000)
    }

    /// Two jobs have the speed of one.
    @Test func jobsShareIt() {
        let limit = RateLimit(bytesPerSecond: 1_000_000)
        var (first, second): (Int64, Int64) = (0, 0)
        let both = time {
            limit.pay(progress(.copy, 100), copied: &first, BatchControl())
            limit.pay(progress(.copy, 100), copied: &second, BatchControl())
        }
        #expect(both > .milliseconds(195))
    }

    /// Nobody waits for a batch that is to stop.
    @Test func aDeadlineEndsTheWait() {
        let limit = RateLimit(bytesPerSecond: 1)
        var copied: Int64 = 0
        limit.pay(progress(.copy, 1000), copied: &copied, BatchControl(deadline: Date(timeIntervalSinceNow: 0.05)))
        #expect(copied == 1_000_000)
    }
}
