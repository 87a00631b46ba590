import Foundation
import Testing

/// Ends the process, with the test's name, when a test takes longer than it ever should: a test that hangs would hang the
/// whole run without a word.
///
/// Unlike `.timeLimit` it works where a test holds all the threads that tasks share, and does not wait for the test's end.
struct HangLimit: SuiteTrait, TestTrait, TestScoping {
    let minutes: Int

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        let message =
            "✘ Test \(test.id) hangs: it has not ended after \(minutes) minutes. The other tests are cut off.\n"
        let timer = DispatchSource.makeTimerSource(queue: HangLimit.queue)
        timer.schedule(deadline: .now() + .seconds(minutes * 60))
        timer.setEventHandler {
            FileHandle.standardError.write(Data(message.utf8))
            // Neither waits for the test, nor runs what is done at an orderly exit.
            _exit(1)
        }
        timer.resume()
        defer { timer.cancel() }
        try await function()
    }

    private static let queue = DispatchQueue(label: "HangLimit", qos: .userInteractive)
}

extension Trait where Self == HangLimit {
    /// For every suite: far more than its slowest test takes on a machine that is busy, under a sanitizer.
    static var hangLimit: Self { HangLimit(minutes: 20) }

    static func hangLimit(minutes: Int) -> Self { HangLimit(minutes: minutes) }
}
