import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// An operation that is held at one of its calls of the system, so that somebody else does something just then.
///
/// The call is one that is made again after a signal. It fails by signals until the others are done.
enum HeldOperation {
    /// - Parameters:
    ///   - call: such as `flock` or `write .key.sealdb-*`.
    ///   - number: which of these calls, from 0; -1 for the last one.
    ///   - prepare: makes the files that the operation needs. It is also run in another directory, where the calls are counted.
    ///   - meanwhile: gets the directory by another name, under which its calls do not fail.
    /// - Returns: what became of the operation, and its directory.
    static func run<Value: Sendable>(
        _ call: String,
        number: Int = 0,
        prepare: (TemporaryDirectory) throws -> Void,
        _ body: @escaping (TemporaryDirectory) throws -> Value,
        meanwhile: (String) throws -> Void
    ) throws -> (Result<Value, any Error>, TemporaryDirectory) {
        let model = try TemporaryDirectory()
        try prepare(model)
        let count = CallWatch(model.path)
        let made = Result { _ = try body(model) }
        let calls = count.endWithAll()
        try made.get()
        let all = calls.indices.filter { calls[$0] == call || calls[$0].hasPrefix(call + " ") }
        let index = try #require(all.dropFirst(number < 0 ? all.count + number : number).first, "\(calls)")

        let directory = try TemporaryDirectory()
        try prepare(directory)
        let outcome = Guarded<Result<Value, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        let watch = failing_calls_begin(directory.path, Int64(index), Int64.max - 1, EINTR)
        // Only the other thread uses these until it has ended.
        nonisolated(unsafe) let (operation, place) = (body, directory)
        Thread.detachNewThread {
            let result = Result { try operation(place) }
            outcome.withLock { $0 = result }
            done.signal()
        }
        while failing_calls_count(watch) <= Int64(index), outcome.withLock({ $0 == nil }) { sched_yield() }
        let isHeld = outcome.withLock { $0 == nil }
        let interference = Result { try meanwhile("/" + directory.path) }
        failing_calls_end(watch)
        done.wait()
        try interference.get()
        #expect(isHeld, "It was not held: \(calls)")
        return (try #require(outcome.withLock { $0 }), directory)
    }
}
