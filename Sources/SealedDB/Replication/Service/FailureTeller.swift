import Foundation

/// Tells the owner of a queue or pool what has failed, on a thread that nobody waits for: he may use the queue there, of which
/// a block may wait for the thread that ships.
final class FailureTeller: Sendable {
    private let tell: (@Sendable (DatabaseError) -> Void)?
    private let queue = DispatchQueue(label: "SealedDB.shipper.failures")
    private let state = Guarded(Telling())

    private struct Telling {
        /// What is to be told next. An older one is not told any more.
        var next: DatabaseError?
        var isRunning = false
        var thread: pthread_t?
    }

    init(_ tell: (@Sendable (DatabaseError) -> Void)?) {
        self.tell = tell
    }

    /// Whether this is the thread that is telling.
    var isTellingHere: Bool { state.withLock { $0.thread } == pthread_self() }

    func add(_ error: DatabaseError) {
        guard let tell else { return }
        let mustStart = state.withLock { state in
            state.next = error
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard mustStart else { return }
        queue.async { [self] in
            while let error = next() { tell(error) }
        }
    }

    private func next() -> DatabaseError? {
        state.withLock { state in
            defer { state.next = nil }
            state.isRunning = state.next != nil
            state.thread = state.isRunning ? pthread_self() : nil
            return state.next
        }
    }
}
