import Foundation

extension DatabasePool {
    /// Gives the store a new key by copy, verify, swap (see ``KeyRotation``), while the pool is in use.
    ///
    /// Blocks go on while the copy is made, also those that write: what `write` changes reaches the copy. Writes by
    /// FMDB's calls, or in another process, come from another connection and make the copy begin anew; after a few times
    /// callers are kept waiting for it. Callers always wait while the copy is verified and put in the store's place, and
    /// go on with the new key.
    ///
    /// The new key is confirmed before it is the only one (see ``Key/confirm()``), also while nobody waits. One that was made
    /// in memory is yours: keep it where it outlasts a power failure before you call this.
    /// - Parameter progress: called on this thread after each step; throwing stops the rotation. From the phase
    ///   ``KeyRotation/Progress/Phase/verify`` on, and where callers wait for the copy, it is called within a block of the
    ///   store, and so must not call the queue or pool.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, the store is unchanged and the pool goes on with the
    ///   old key. Within a block of the pool it is an error, and while another call is changing the key.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws -> KeyRotation.Report {
        try rotateKey(to: newKey, nil, progress)
    }

    private func rotateKey(
        to newKey: Key,
        _ cancellation: Cancellation?,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws -> KeyRotation.Report {
        try rotation.enter {
            try ServiceRotation(newKey: newKey, progress: progress) { [self] body in
                try writeWithoutTransaction(body)
            } alone: { [self] body in
                try alone(cancellation, body)
            }
            .run()
        }
    }

    /// As above, holding no thread of the tasks'. Cancelling the task stops the rotation and leaves the store as it was.
    /// - Parameter progress: called on a thread of the pool's.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: (@Sendable (KeyRotation.Progress) throws -> Void)? = nil
    ) async throws -> KeyRotation.Report {
        try await onOwnThread { [self] cancellation in
            try rotateKey(to: newKey, cancellation) { state in
                if cancellation.isSet { throw CancellationError() }
                try progress?(state)
            }
        }
    }
}

extension DatabaseQueue {
    /// Gives the store a new key by copy, verify, swap (see ``KeyRotation``), while the queue is in use.
    ///
    /// Blocks go on while the copy is made, and what they write reaches it; a write in another process makes it begin anew,
    /// and after a few times callers are kept waiting for it. Callers always wait while the copy is verified and put in
    /// the store's place, and go on with the new key.
    ///
    /// The new key is confirmed before it is the only one (see ``Key/confirm()``), also while nobody waits. One that was made
    /// in memory is yours: keep it where it outlasts a power failure before you call this.
    /// - Parameter progress: called on this thread after each step; throwing stops the rotation. From the phase
    ///   ``KeyRotation/Progress/Phase/verify`` on, and where callers wait for the copy, it is called within a block of the
    ///   store, and so must not call the queue or pool.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, the store is unchanged and the queue goes on with
    ///   the old key. Within a block of the queue it is an error, while a transaction is open, and while another call is
    ///   changing the key.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws -> KeyRotation.Report {
        try rotateKey(to: newKey, nil, progress)
    }

    private func rotateKey(
        to newKey: Key,
        _ cancellation: Cancellation?,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws -> KeyRotation.Report {
        try rotation.enter {
            try ServiceRotation(newKey: newKey, progress: progress) { [self] body in
                try inDatabase(body)
            } alone: { [self] body in
                try writer.barrier(limit: nil, cancellation: cancellation, body)
            }
            .run()
        }
    }

    /// As above, holding no thread of the tasks'. Cancelling the task stops the rotation and leaves the store as it was.
    /// - Parameter progress: called on a thread of the queue's.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: (@Sendable (KeyRotation.Progress) throws -> Void)? = nil
    ) async throws -> KeyRotation.Report {
        try await onOwnThread { [self] cancellation in
            try rotateKey(to: newKey, cancellation) { state in
                if cancellation.isSet { throw CancellationError() }
                try progress?(state)
            }
        }
    }
}

/// Runs rare work that blocks, on a thread that no task needs.
private func onOwnThread<T: Sendable>(
    _ work: @escaping @Sendable (_ cancellation: Cancellation) throws -> T
) async throws -> T {
    let stop = Cancellation()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result { try work(stop) }.mapError { error in
                        // Every other error tells what became of the store, also when the task was cancelled meanwhile.
                        (error as? DatabaseError)?.underlyingError is CancellationError ? CancellationError() : error
                    }
                )
            }
        }
    } onCancel: {
        stop.set()
    }
}
