import Dispatch
import Synchronization

/// Runs an asynchronous closure that gives a key, and waits for it on the calling thread.
///
/// The caller's thread may be one of the few that all tasks share, and they may all wait here. So the closure runs on a
/// thread of its own, as far as it does not itself move to another executor, and the wait has an end.
final class AsyncKeyClosure: TaskExecutor, Sendable {
    private let timeout: Double
    private let body: @Sendable () async throws -> Key
    // A serial queue always gets a thread. https://developer.apple.com/documentation/dispatch/dispatchqueue
    private let queue = DispatchQueue(label: "SealedDB.AsyncKeyClosure")
    private let result = Mutex<Result<Key, any Error>?>(nil)

    init(timeout: Double, _ body: @escaping @Sendable () async throws -> Key) {
        self.timeout = timeout
        self.body = body
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Call this only once.
    func key() throws -> Key {
        guard timeout > 0, timeout <= 86_400 else {
            throw DatabaseError.malformedKey(
                "The timeout of a closure that gives a key is more than 0 and at most 86400 seconds."
            )
        }
        let isDone = DispatchSemaphore(value: 0)
        let task = Task(executorPreference: self) {
            let outcome: Result<Key, any Error>
            do {
                outcome = .success(try await self.body())
            } catch {
                outcome = .failure(error)
            }
            self.result.withLock { $0 = outcome }
            isDone.signal()
        }
        guard isDone.wait(timeout: .now() + timeout) == .success, let outcome = result.withLock({ $0 }) else {
            task.cancel()
            throw DatabaseError.keySourceFailed(
                "The closure that gives the key was not done within \(timeout) seconds, and was cancelled."
            )
        }
        return try outcome.get()
    }
}
