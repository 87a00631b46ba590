import Foundation
import HangClock
import Testing

/// Ends the process, with the names of the tests that run, when no test has begun or ended for longer than any ever
/// should take: a test that hangs would hang the whole run without a word.
///
/// Unlike `.timeLimit` it works where a test holds all the threads that tasks share, and does not wait for the test's end.
/// It does not count the time in which a test waits for others to leave a thread: on a busy machine that is all the run.
/// The tests of all targets share these threads, so one clock counts for all of them.
struct HangLimit: SuiteTrait, TestTrait, TestScoping {
    let minutes: Int

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        let number = HangWatch.shared.begin("\(test.id)", minutes: minutes)
        defer { HangWatch.shared.end(number) }
        try await function()
    }
}

/// The tests of this target that run.
private final class HangWatch: @unchecked Sendable {
    static let shared = HangWatch()

    private struct State {
        var running: [Int: (name: String, minutes: Int)] = [:]
        var count = 0
    }

    /// Only with the lock, which, unlike `Mutex`, the thread sanitizer knows.
    private var state = State()
    private let lock = NSLock()

    private init() {
        Thread.detachNewThread { [unowned self] in
            while true {
                // No test waits for this: it only looks now and then.
                Thread.sleep(forTimeInterval: 10)
                look()
            }
        }
    }

    func begin(_ name: String, minutes: Int) -> Int {
        lock.withLock {
            state.count += 1
            state.running[state.count] = (name, minutes)
            hang_clock_restart()
            return state.count
        }
    }

    func end(_ number: Int) {
        lock.withLock {
            state.running[number] = nil
            hang_clock_restart()
        }
    }

    private func look() {
        let message = lock.withLock { () -> String? in
            guard let minutes = state.running.values.map(\.minutes).max() else { return nil }
            guard hang_clock_seconds() > Double(minutes) * 60 else { return nil }
            return state.running.values.map {
                "✘ Test \($0.name) hangs, or waits for one that does: nothing has ended for \(minutes) minutes.\n"
            }.joined()
        }
        guard let message else { return }
        FileHandle.standardError.write(Data(message.utf8))
        // Neither waits for the tests, nor runs what is done at an orderly exit.
        _exit(1)
    }
}

extension Trait where Self == HangLimit {
    /// For every suite: far more than its slowest test takes on a machine that is busy, under a sanitizer.
    static var hangLimit: Self { HangLimit(minutes: 20) }

    static func hangLimit(minutes: Int) -> Self { HangLimit(minutes: minutes) }
}
