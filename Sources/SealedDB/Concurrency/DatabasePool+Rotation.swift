import Foundation

extension DatabasePool {
    /// Gives the store a new key by copy, verify, swap (see ``KeyRotation``). Callers meanwhile wait, and go on with the
    /// new key.
    /// - Parameter progress: called on this thread after each step; throwing stops the rotation.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, the store is unchanged and the pool goes on with the
    ///   old key. Within a block of the pool it is an error.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws -> KeyRotation.Report {
        try alone { writer in
            defer { adoptKey(of: writer) }
            return try writer.rotateKey(to: newKey, progress: progress)
        }
    }

    /// As above, holding no thread of the tasks'. Cancelling the task stops the rotation and leaves the store as it was.
    /// - Parameter progress: called on a thread of the pool's.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: (@Sendable (KeyRotation.Progress) throws -> Void)? = nil
    ) async throws -> KeyRotation.Report {
        try await onOwnThread { [self] stop in
            try rotateKey(to: newKey) { state in
                if stop.isSet { throw CancellationError() }
                try progress?(state)
            }
        }
    }
}

extension DatabaseQueue {
    /// As above, holding no thread of the tasks'. Cancelling the task stops the rotation and leaves the store as it was.
    /// - Parameter progress: called on a thread of the queue's.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: (@Sendable (KeyRotation.Progress) throws -> Void)? = nil
    ) async throws -> KeyRotation.Report {
        try await onOwnThread { [self] stop in
            try rotateKey(to: newKey) { state in
                if stop.isSet { throw CancellationError() }
                try progress?(state)
            }
        }
    }
}

/// Runs rare work that blocks, on a thread that no task needs.
private func onOwnThread<T: Sendable>(
    _ work: @escaping @Sendable (_ stop: StopFlag) throws -> T
) async throws -> T {
    let stop = StopFlag()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                let result = Result { try work(stop) }
                if case .failure = result, stop.isSet {
                    continuation.resume(throwing: CancellationError())
                } else {
                    continuation.resume(with: result)
                }
            }
        }
    } onCancel: {
        stop.set()
    }
}
