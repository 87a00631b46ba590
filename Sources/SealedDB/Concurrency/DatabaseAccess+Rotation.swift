import Foundation

extension DatabasePool {
    /// Gives the store a new key by copy, verify, swap (see ``KeyRotation``), while the pool is in use.
    ///
    /// Blocks run while the copy is made, also those that write: what they change is copied again. Callers wait only while
    /// what was changed last is copied and the copy is put in the store's place, however large the store is. After that they
    /// use the new key. If callers write faster than it can be copied, they have to wait in the end.
    ///
    /// With a rollback journal, FMDB's calls and other processes make the copy begin anew. After a few times, callers have to
    /// wait until it is complete. They also wait while it is compared with the store.
    ///
    /// In WAL mode two connections of the rotation read the store meanwhile. So the journal mode cannot be changed, and
    /// checkpoints need not empty the log.
    ///
    /// The new key is confirmed (see ``Key/confirm()``) before callers have to wait, and again before it becomes the
    /// only key. If the key was made in memory, keeping it is up to you: store it where it survives a power failure
    /// before you call this.
    /// - Parameters:
    ///   - newKey: the key that the store gets.
    ///   - progress: called on this thread after each step. If it throws, the rotation stops. From the phase
    ///     ``KeyRotation/Progress/Phase/verify`` on, and whenever callers wait for the copy, it is called within a block
    ///     of the store, so it must not call the pool then.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store is unchanged, and the pool continues
    ///   with the old key. The call is an error within a block of the pool, and while another call is changing the key.
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

    /// Like the synchronous form, but does not block a thread that tasks share. Cancelling the task stops the rotation
    /// and leaves the store as it was.
    /// - Parameters:
    ///   - newKey: the key that the store gets.
    ///   - progress: called on a thread that belongs to the rotation.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled.
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
    /// Blocks run while the copy is made, and what they write goes into the copy too. In WAL mode callers wait only while what
    /// was changed last is copied and the copy is put in the store's place, however large the store is; two connections of
    /// the rotation read the store meanwhile, so the journal mode cannot be changed, and checkpoints need not empty the log.
    /// With a rollback journal, callers wait while the copy is compared with the store, and a write by another process makes
    /// it begin anew; after a few times, callers have to wait until it is complete. After the rotation callers use the new
    /// key.
    ///
    /// The new key is confirmed (see ``Key/confirm()``) before callers have to wait, and again before it becomes the
    /// only key. If the key was made in memory, keeping it is up to you: store it where it survives a power failure
    /// before you call this.
    /// - Parameters:
    ///   - newKey: the key that the store gets.
    ///   - progress: called on this thread after each step. If it throws, the rotation stops. From the phase
    ///     ``KeyRotation/Progress/Phase/verify`` on, and whenever callers wait for the copy, it is called within a block
    ///     of the store, so it must not call the queue then.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store is unchanged, and the queue continues
    ///   with the old key. The call is an error within a block of the queue, and while another call is changing the
    ///   key.
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

    /// Like the synchronous form, but does not block a thread that tasks share. Cancelling the task stops the rotation
    /// and leaves the store as it was.
    /// - Parameters:
    ///   - newKey: the key that the store gets.
    ///   - progress: called on a thread that belongs to the rotation.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled.
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

/// Runs work that blocks and is rare, on a new thread that no task needs.
private func onOwnThread<T: Sendable>(
    _ work: @escaping @Sendable (_ cancellation: Cancellation) throws -> T
) async throws -> T {
    let stop = Cancellation()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result { try work(stop) }.mapError { error in
                        // Keep every other error, even if the task was cancelled in the meantime: it tells what became
                        // of the store.
                        (error as? DatabaseError)?.underlyingError is CancellationError ? CancellationError() : error
                    }
                )
            }
        }
    } onCancel: {
        stop.set()
    }
}
