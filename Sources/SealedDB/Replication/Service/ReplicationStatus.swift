public import Foundation

/// How far a ``DatabaseQueue`` or ``DatabasePool`` has shipped its store; see ``Replication``.
///
/// ```swift
/// if let status = queue.replicationStatus, let error = status.lastError {
///     print("not shipped since \(String(describing: status.lastSuccess)): \(error)")
/// }
/// ```
public struct ReplicationStatus: Sendable, Hashable {
    /// When what was committed was last in the repository; `nil` before the first time since the queue or pool was made.
    public internal(set) var lastSuccess: Date?
    /// How old the state is that the repository has: all that was committed longer ago is there. `nil` before the first
    /// success. It grows up to the interval, and the time that shipping takes, even if nothing is committed.
    public internal(set) var lag: Duration?
    /// The bytes of the store's log that are not in the repository, as of the last attempt.
    public internal(set) var unshippedBytes: Int64 = 0
    /// The generation of the repository that the store is shipped to; `nil` before the first success.
    public internal(set) var generation: Int64?
    /// The error of the last attempt; `nil` if it succeeded.
    public internal(set) var lastError: DatabaseError?
    /// How many attempts have failed.
    public internal(set) var failureCount = 0
    /// Whether the store is being shipped, or tried to be: false before it is opened, after it was closed, and after an error
    /// that only somebody can mend.
    public internal(set) var isActive = false
}
