import Foundation

/// The transaction of one or several calls of `write`, and what they wait for. It holds no connection: who waits touches
/// nothing any more.
// @unchecked: what changes belongs to whoever has the writer's place, until it is told; then nothing changes.
final class SharedTransaction: @unchecked Sendable {
    /// When its first block began.
    private var began: UInt64?
    /// How many blocks have run in it.
    var count = 0
    /// Whether it can be committed.
    var isOpen = false
    /// Why nothing of it is kept, for those calls that have no error of their own.
    var error: DatabaseError?
    /// The errors of its blocks and its end, which may show that the connection is of no more use.
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

    /// Somebody will wait for its end, in ``waitForEnd()`` or ``ended()``.
    func share() {
        if audience == nil { audience = Audience() }
    }

    /// The outcome is known, and the turn has ended.
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

    /// As ``waitForEnd()``, without a thread.
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
