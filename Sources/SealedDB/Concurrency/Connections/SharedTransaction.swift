import Foundation

/// The transaction of one or several calls of `write`. The calls wait for its end. It does not hold the connection: a
/// call that waits here no longer touches the connection.
// @unchecked: until ``tell()``, only the holder of the writer's place changes the properties. After that, nobody does.
final class SharedTransaction: @unchecked Sendable {
    /// When its first block began.
    private var began: UInt64?
    /// How many blocks have begun in the transaction.
    var count = 0
    /// Whether the transaction is open and can be committed.
    var isOpen = false
    /// Why nothing of the transaction is kept. Calls that have no error of their own throw this.
    var error: DatabaseError?
    /// The errors of its blocks and of its commit. They may show that the connection is no longer usable.
    var failures: [any Error] = []
    private var audience: Audience?

    private final class Audience: Sendable {
        let tasks = Guarded((isOver: false, waiting: [UnsafeContinuation<Void, Never>]()))
        /// Wakes all threads at once.
        let threads = DispatchGroup()

        init() { threads.enter() }
    }

    /// The connection is opened and the lock waited for before that.
    func begin() { if began == nil { began = DispatchTime.now().uptimeNanoseconds } }

    /// Seconds since its first block began.
    var age: Double { began.map { Double(DispatchTime.now().uptimeNanoseconds - $0) / 1e9 } ?? 0 }

    /// Call this if somebody will wait for the end, with ``waitForEnd()`` or ``ended()``.
    func share() {
        if audience == nil { audience = Audience() }
    }

    /// Wakes all who wait. Call this when the outcome is known and the turn has ended.
    func tell() {
        guard let audience else { return }
        let tasks = audience.tasks.withLock { tasks in
            tasks.isOver = true
            return tasks.waiting
        }
        audience.threads.leave()
        for task in tasks { task.resume() }
    }

    func waitForEnd() { audience?.threads.wait() }

    /// Like ``waitForEnd()``, but does not block a thread.
    func ended() async {
        guard let audience else { return }
        await withUnsafeContinuation { continuation in
            let isOver = audience.tasks.withLock { tasks in
                if !tasks.isOver { tasks.waiting.append(continuation) }
                return tasks.isOver
            }
            if isOver { continuation.resume() }
        }
    }
}
